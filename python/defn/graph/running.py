"""Running stages: a plan, which is validated once, and functions that pass it to an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from defn import _core
from defn._core import Stage, StageProgram
from defn._names import caller, option_error, unknown_options
from defn.engines import Engine, Sequential
from defn.errors import ContainerError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

# Options of definitions that do not apply to a stage.
_NOT_HERE = ("compile", "donate", "max_compiles", "on_conflict", "static")
# The common options that also apply to a stage with its own compiler.
_SHARED = ("backend", "hooks")


@dataclass(frozen=True)
class Plan:
    """Validated stages, with the data that an engine needs to run them.

    ``stages`` are all stages of one split, in order, and ``options`` are the options of ``compile``
    for each. ``sources`` is the origin of each parameter of each stage: the position of a stage, or
    ``None`` for the arguments of the whole, and the index there. ``last_uses`` says for each of
    these whether no later stage uses the value. ``waits`` are the positions of the stages that must
    have run before: those whose outputs a stage takes and, for a stage with effects (see
    ``has_effects``), the previous stage with effects. Other stages may run in parallel. Of several
    argument sets, the effects of one come before those of the next.

    >>> expr = dn.debug_expr(lambda x: dn.cos(dn.sin(x)))(1.0)
    >>> plan = dn.graph.Plan.of(dn.graph.split(expr, dn.graph.every(1)))
    >>> plan.sources, plan.last_uses, plan.waits
    ((((None, 0),), ((0, 0),)), ((True,), (True,)), ((), (0,)))
    """

    stages: tuple[Stage, ...]
    options: tuple[dict[str, Any], ...]
    sources: tuple[tuple[tuple[int | None, int], ...], ...]
    last_uses: tuple[tuple[bool, ...], ...]
    waits: tuple[tuple[int, ...], ...]
    has_effects: tuple[bool, ...]

    @staticmethod
    def of(
        stages: Sequence[Stage],
        stage_options: Mapping[int, Mapping[str, Any]] | None = None,
        **jit_options: Any,
    ) -> Plan:
        """Validate stages and their options.

        Raises: ``ContainerError`` for a list that is not all stages of one split in order,
            ``OptionError`` for options of a stage that does not exist.
        """
        if not isinstance(stages, list | tuple):
            raise ContainerError(
                f"run: stages is of type {type(stages).__name__}, "
                f"the list that split gave is required{caller()}"
            )
        last_uses, waits = _core.graph_order(stages)
        return Plan(
            stages=tuple(stages),
            options=tuple(_options(len(stages), stage_options, jit_options)),
            sources=tuple(tuple(stage.sources) for stage in stages),
            last_uses=tuple(map(tuple, last_uses)),
            waits=tuple(map(tuple, waits)),
            has_effects=tuple(stage.has_effects for stage in stages),
        )

    def compile(self, position: int) -> StageProgram:
        """The program of a stage: it takes one tensor for each of the stage's ``sources``, and
        returns a tuple of tensors.

        A program that was compiled before with equal options is reused.
        """
        return compile(self.stages[position], **self.options[position])

    def inputs(self, args: Sequence[Any]) -> list[Any]:
        """The tensors in the arguments of the whole, in order.

        Raises: ``ShapeError`` and others for arguments that the graph was not traced with.
        """
        return _core.graph_inputs(self.stages[0], args)

    def result(self, values: Sequence[Any]) -> Any:
        """The container of the whole's results, from the tensors that the last stage returned."""
        return _core.graph_results(self.stages[-1], list(values))


def _options(
    count: int, stage_options: Any, jit_options: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """The options of each stage."""
    refused = [name for name in jit_options if name in _NOT_HERE]
    own = {} if stage_options is None else stage_options
    if not isinstance(own, Mapping) or not all(isinstance(o, Mapping) for o in own.values()):
        raise option_error(
            f"run: stage_options is {own!r}, "
            "a dict from positions of stages to dicts of options is required"
        )
    for position, options in own.items():
        if not isinstance(position, int) or not 0 <= position < count:
            raise option_error(
                f"run: stage_options has {position!r}, the positions of stages are 0 to {count - 1}"
            )
        refused += [name for name in options if name in _NOT_HERE]
    if refused:
        raise unknown_options("run", refused, ("compiler", "hooks", "backend", "stage_options"))
    # Other processes and threads may have other defaults.
    if jit_options.get("compiler") is None and "compiler" in (defaults := _core.default_options()):
        jit_options = {**jit_options, "compiler": defaults["compiler"]}
    shared = {name: jit_options[name] for name in _SHARED if name in jit_options}
    for position in range(count):
        mine = own.get(position, {})
        yield {**(shared if "compiler" in mine else jit_options), **mine}


def compile(stage: Stage, /, **jit_options: Any) -> StageProgram:
    """Compile a stage separately; it takes one tensor for each parameter, and returns a tuple.

    ``compiler``, ``hooks`` and the options of the compiler are as in ``dn.jit``. ``backend`` is
    where the stage runs: its inputs are copied there. Without it, a stage runs on the device that
    the compiler's options name, or where its inputs are.

    A program that was compiled before with equal options is reused. A stage that was unpickled in
    another process is compiled in the same way.

    Raises: ``OptionError`` for options that the compiler does not take, ``CompileError`` for an
        unknown compiler, and the compiler's errors.

    >>> expr = dn.debug_expr(lambda x: dn.cos(dn.sin(x)))(1.0)
    >>> first, last = dn.graph.split(expr, dn.graph.every(1))
    >>> dn.graph.compile(first)(dn.tensor(0.0))[0].item()
    0.0
    """
    return _core.graph_compile(stage, jit_options)


def run(
    stages: Sequence[Stage],
    args: Sequence[Any],
    *,
    engine: Engine | None = None,
    stage_options: Mapping[int, Mapping[str, Any]] | None = None,
    **jit_options: Any,
) -> Any:
    """Run stages on the arguments of the traced function; returns the container of its results.

    ``args`` are the function's arguments without options and static values, which were traced. A
    value is freed after its last use. ``engine`` runs the stages: by default
    ``dn.engines.Sequential()``, one after the other.

    ``jit_options`` are those of ``compile``, for all stages. ``stage_options`` are the options of
    single stages by position, which take precedence. A stage with its own compiler inherits only
    ``backend`` and ``hooks``.

    Raises: ``ContainerError`` for a list that is not all stages of one split in order,
        ``ShapeError`` and others for arguments of other types, ``OptionError``, and the errors of
        the stages, which name the stage.

    >>> expr = dn.debug_expr(lambda x: {"out": dn.cos(dn.sin(x))})(1.0)
    >>> stages = dn.graph.split(expr, dn.graph.every(1))
    >>> dn.graph.run(stages, [0.0], stage_options={1: {"backend": "cpu"}})["out"].item()
    1.0
    """
    results = run_each(stages, [args], engine=engine, stage_options=stage_options, **jit_options)
    for result in results:
        return result
    raise OptionError(f"run: the engine {engine!r} gave no result, one is required{caller()}")


def run_each(
    stages: Sequence[Stage],
    args_list: Iterable[Sequence[Any]],
    *,
    engine: Engine | None = None,
    stage_options: Mapping[int, Mapping[str, Any]] | None = None,
    **jit_options: Any,
) -> Iterator[Any]:
    """Run stages on many argument lists; returns an iterator of the results, in order.

    Engines that support it run several lists at a time. The options are as in ``run``.

    Raises: as ``run``, in place of the result that fails; earlier results are returned.

    >>> expr = dn.debug_expr(lambda x: dn.cos(dn.sin(x)))(1.0)
    >>> stages = dn.graph.split(expr, dn.graph.every(1))
    >>> [result.item() for result in dn.graph.run_each(stages, [[0.0], [0.0]])]
    [1.0, 1.0]
    """
    plan = Plan.of(stages, stage_options, **jit_options)
    engine = Sequential() if engine is None else engine
    if not isinstance(engine, Engine) or isinstance(engine, type):
        raise option_error(
            f"run: the engine is {engine!r}, an object with run_each is required, "
            "such as dn.engines.Sequential()"
        )
    return _results(plan, engine.run_each(plan, map(plan.inputs, args_list)))


def _results(plan: Plan, given: Iterator[Sequence[Any]]) -> Iterator[Any]:
    try:
        for values in given:
            yield plan.result(values)
    finally:
        # An engine that is a generator stops its running work when it is closed.
        close = getattr(given, "close", None)
        if close is not None:
            close()
