"""Compilers: what turns a traced definition into something that runs, and how to write one.

``dn.Compiler`` is the base class of those written in Python. What is traced is read as nodes:
``program`` gives the graph of what a definition returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from defn import _core
from defn._core import Node, Region
from defn._names import caller
from defn.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from defn._core import Hooks, Tensor
    from defn.streams import Stream
    from defn.typing import BackendLike

__all__ = [
    "Compiler",
    "Node",
    "Program",
    "Region",
    "checks",
    "current",
    "flatten",
    "get",
    "hooks",
    "program",
    "trace",
    "tracing",
]


class Compiler:
    """The base class of compilers that are written in Python.

    An object of such a class, or the class itself, is given wherever a compiler is named:
    ``dn.jit(f, compiler=Mine(), speed=11)``, ``dn.options(compiler=Mine())``. Options that are not
    those of ``jit`` are handed to the compiler as they are; it refuses those that it does not know.
    An object of any class will do, and a module, if it has the callbacks.

    ``compile`` is the one that every compiler needs. It is called once for each signature of a
    definition. ``jit``, where a compiler has its own, is called at every call instead.

    ``checks`` names what programs of the compiler look for when ``dn.checks`` asks for it; other
    checks are refused. ``defn.compilers.checks()`` says what is asked for.

    >>> class Counting(dn.Compiler):
    ...     def compile(self, key, vars, fun, options):
    ...         program = dn.compilers.trace(fun, vars)
    ...         print(f"{sum(1 for node in program.walk())} operations")
    ...         return dn.compilers.get("evaluator").compile(key, vars, fun, options)
    >>> dn.jit(lambda x: dn.sin(x) + x, compiler=Counting())(0.0).item()
    3 operations
    0.0
    """

    checks: Sequence[str] = ()

    def compile(
        self,
        key: object,
        vars: list[Tensor],
        fun: Callable[..., Any],
        options: dict[str, Any],
    ) -> Callable[[list[list[Tensor]]], list[Any]]:
        """Compile a definition: the result takes a list of argument lists, and gives a list of
        results.

        ``vars`` are templates, one for each tensor among the arguments. ``fun(*vars)`` traces the
        definition and returns what it returns, with traced tensors; it must be called. Afterwards
        ``vars`` has a template more for each tensor that the definition takes from around it, and
        so have the argument lists. ``key`` is opaque and hashable: it stands for the function and
        its static values, not for the types in ``vars``.

        A result is a container as ``fun`` returned it, with a tensor or a NumPy array of the same
        dtype and shape in the place of each traced tensor.
        """
        raise _missing("compile", self)

    def jit(
        self,
        key: object,
        vars: list[Tensor],
        fun: Callable[..., Any],
        args_list: list[list[Callable[[], Tensor]]],
        options: dict[str, Any],
    ) -> list[Any]:
        """Compile a definition, or take what was compiled for the key and the types of ``vars``,
        and run it for each argument list.

        An argument is a function without arguments that gives the tensor when it is called. By
        default, ``compile`` is called, and its result.
        """
        run = self.compile(key, vars, fun, options)
        return run([[thunk() for thunk in args] for args in args_list])

    def stream(
        self,
        key: object,
        input: Any,
        acc: Any,
        vars: list[Tensor],
        fun: Callable[..., Any],
        args_list: list[list[Callable[[], Tensor]]],
        options: dict[str, Any],
    ) -> list[Stream]:
        """Start a stream for each argument list: an object with ``send``, ``recv``, ``done`` and
        ``close``.

        ``input`` and ``acc`` are the templates of a chunk and of the accumulator, in their
        containers. ``fun(*vars)`` returns the pair of an output and the next accumulator; ``vars``
        begins with the tensors of a chunk. The argument lists give those that follow: the first
        accumulator, then what is constant. By default the steps run on a thread, by ``compile``.
        """
        from defn.ops.create import tensor
        from defn.streams import start

        run = self.compile(key, vars, fun, options)
        leaves, rebuild = flatten(acc)
        count = len(leaves)
        streams: list[Stream] = []
        for args in args_list:
            tensors = [thunk() for thunk in args]
            constants = tensors[count:]

            def step(chunk: Any, state: Any, constants: Any = constants) -> Any:
                given = [*map(tensor, flatten(chunk)[0]), *flatten(state)[0], *constants]
                return _core.run_stream(fun, run, [given])[0]

            streams.append(start(step, rebuild(tensors[:count])))
        return streams

    def partitions_options(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        """The options of each of the parts that a program is divided into: one, by default."""
        return [options]

    def to_backend(self, options: dict[str, Any]) -> BackendLike:
        """Where the results of programs are: on the default backend, unless told otherwise.

        NumPy arrays that a program gives are placed there.
        """
        return _core.default_backend()


def _missing(callback: str, compiler: object) -> CompileError:
    return CompileError(
        f"{callback}: the compiler {type(compiler).__name__} has no such callback; "
        f"define it as dn.Compiler describes it{caller()}"
    )


class BuiltIn(Compiler):
    """A compiler that is part of this build."""

    checks = ("index", "inf", "nan")

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<compiler {self.name!r}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BuiltIn) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def compile(
        self,
        key: object,
        vars: list[Tensor],
        fun: Callable[..., Any],
        options: dict[str, Any],
    ) -> Callable[[list[list[Tensor]]], list[Any]]:
        """Compile as a definition is that names this compiler."""
        _core.find_compiler(self.name, options)
        traced = trace(fun, vars)
        run = _core.compile_region(self.name, traced.region, options)
        return lambda args_list: [traced.rebuild(values) for values in run.run_each(args_list)]

    def partitions_options(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        """For ``"pjrt"`` the options for each device of the client."""
        if self.name == "pjrt":
            return _core.pjrt_partitions(options)
        return super().partitions_options(options)


@dataclass(frozen=True)
class Program:
    """What a definition traced: the graph, and the container of what it returned."""

    region: Region
    """The graph, with its parameters, captures and outputs."""
    _structure: Any

    @property
    def outputs(self) -> tuple[Node, ...]:
        """A node for each tensor of what was returned."""
        return self.region.outputs

    def walk(self) -> Iterator[Node]:
        """The operations in the order of evaluation, those with an effect included."""
        return self.region.walk()

    def rebuild(self, values: Iterable[Any]) -> Any:
        """A container as it was returned, with a value for each of its tensors."""
        return _core.unflatten_container(self._structure, list(values))


def program(value: Any) -> Program:
    """The graph of what a traced function returned: a container of traced tensors.

    Raises: ``TraceError`` for a container without one, or whose definition has ended.

    >>> double = dn.compilers.program(dn.debug_expr(lambda x: {"double": x + x})(1.0))
    >>> list(double.walk())
    [<%0 = parameter(0): f32>, <%1 = add(%0, %0): f32>]
    >>> double.rebuild([2.0])
    {'double': 2.0}
    """
    return Program(*_core.program(value))


def trace(fun: Callable[..., Any], vars: Sequence[Tensor]) -> Program:
    r"""Call the function that a compiler is given with its vars, and give the graph of what it
    returns.

    Raises: as the function does, and ``TraceError`` if it traced nothing.

    >>> class Printing(dn.Compiler):
    ...     def compile(self, key, vars, fun, options):
    ...         print(*dn.compilers.trace(fun, vars).walk(), sep="\n")
    ...         return dn.compilers.get("evaluator").compile(key, vars, fun, options)
    >>> _ = dn.jit(lambda x: dn.sum(x), compiler=Printing)(dn.tensor([1.0, 2.0]))
    <%0 = parameter(0): f32[2]>
    <%1 = sum(%0, axes=(0,), keep_axes=False): f32>
    """
    return Program(*_core.program(fun(*vars), fun))


def flatten(value: Any) -> tuple[list[Any], Callable[[Iterable[Any]], Any]]:
    """The tensors of a container in order, and a function that puts others in their places.

    Raises: ``ContainerError`` for what is neither a tensor nor a container.

    >>> leaves, rebuild = dn.compilers.flatten({"a": 1.0, "b": (2.0, "static")})
    >>> leaves
    [1.0, 2.0]
    >>> rebuild([10.0, 20.0])
    {'a': 10.0, 'b': (20.0, 'static')}
    """
    leaves, structure = _core.flatten_container(value)
    return leaves, lambda others: _core.unflatten_container(structure, list(others))


def current() -> Compiler | Any | None:
    """The compiler for which a definition is being traced here, None outside of definitions.

    Raises: nothing.

    >>> dn.compilers.current() is None
    True
    >>> dn.jit(lambda x: print(dn.compilers.current()) or x)(1.0).item()
    <compiler 'cpu'>
    1.0
    """
    return _core.current_compiler()


def tracing() -> bool:
    """Whether a function is being traced here, so that tensors have no values.

    Raises: nothing.

    >>> dn.compilers.tracing()
    False
    """
    return _core.is_tracing()


def get(name: str) -> Compiler:
    """The compiler of a name, as an object with the callbacks.

    Raises: ``CompileError`` for a name that is unknown.

    >>> dn.compilers.get("evaluator")
    <compiler 'evaluator'>
    """
    _core.find_compiler(name)
    return BuiltIn(name)


def hooks() -> Hooks:
    """The host functions of the run in progress, for programs of compilers in Python.

    A program asks for them when it begins to run, and calls them with the ``slot`` of a ``hook``
    node and a list of its values; a slot that nobody fills does nothing.

    Raises: ``TraceError`` where no program runs.
    """
    return _core.run_hooks()


def checks() -> tuple[str, ...]:
    """What ``dn.checks`` asks for here, for compilers that look for it.

    Raises: nothing.

    >>> with dn.checks("nan"):
    ...     dn.compilers.checks()
    ('nan',)
    """
    return _core.checks_asked()
