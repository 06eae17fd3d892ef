"""Compilers turn a traced definition into a program; this module is for those written in Python.

``dn.Compiler`` is the base class of compilers written in Python. A traced definition is read as
nodes: ``program`` returns the graph of the values that it returned.
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

    An object of such a class, or the class itself, may stand wherever a compiler is named:
    ``dn.jit(f, compiler=Mine(), speed=11)``, ``dn.options(compiler=Mine())``. Options that ``jit``
    does not know are passed to the compiler, which has to refuse unknown ones. An object of any
    other class, or a module, works too if it has the callbacks.

    Every compiler needs ``compile``, which is called once for each signature of a definition. If a
    compiler defines ``jit``, that is called at every call instead.

    ``checks`` lists the checks that programs of the compiler make when ``dn.checks`` asks for them;
    others are refused. ``defn.compilers.checks()`` returns those that are asked for.

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
        """Compile a definition; returns a function from a list of argument lists to a list of
        results.

        ``vars`` are templates, one for each tensor among the arguments. ``fun(*vars)`` traces the
        definition and returns its results as traced tensors; ``compile`` must call it. The call
        appends to ``vars`` one template for each tensor that the definition captures, and the
        argument lists have these tensors too. ``key`` is opaque and hashable: it identifies the
        function and its static values, not the types in ``vars``.

        A result is a container with the structure that ``fun`` returned, in which each traced
        tensor is replaced by a tensor or a NumPy array of the same dtype and shape.
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
        """Compile a definition, or look up the version for the key and the types of ``vars``, and
        run it for each argument list.

        An argument is a function without parameters that returns the tensor. By default, the
        method calls ``compile`` and then its result.
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
        containers. ``fun(*vars)`` returns a pair: an output and the next accumulator. ``vars``
        begins with the tensors of a chunk. The argument lists hold the values after these: the
        initial accumulator, then the constants. By default the method compiles the step with
        ``compile`` and runs it on a thread.
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
        """The options of each partition of a program; by default there is one."""
        return [options]

    def to_backend(self, options: dict[str, Any]) -> BackendLike:
        """Return the backend that holds the results of programs: by default, the default backend.

        NumPy arrays that a program returns are copied there.
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
        """Compile as for a definition that names this compiler."""
        _core.find_compiler(self.name, options)
        traced = trace(fun, vars)
        run = _core.compile_region(self.name, traced.region, options)
        return lambda args_list: [traced.rebuild(values) for values in run.run_each(args_list)]

    def partitions_options(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        """The options for each device of the client if this is ``"pjrt"``."""
        if self.name == "pjrt":
            return _core.pjrt_partitions(options)
        return super().partitions_options(options)


@dataclass(frozen=True)
class Program:
    """The result of tracing a definition: the graph, and the container that was returned."""

    region: Region
    """The graph, with its parameters, captures and outputs."""
    _structure: Any

    @property
    def outputs(self) -> tuple[Node, ...]:
        """One node for each tensor in the returned container."""
        return self.region.outputs

    def walk(self) -> Iterator[Node]:
        """The operations in order of evaluation, including those with side effects."""
        return self.region.walk()

    def rebuild(self, values: Iterable[Any]) -> Any:
        """The returned container, with a value in place of each of its tensors."""
        return _core.unflatten_container(self._structure, list(values))


def program(value: Any) -> Program:
    """Return the graph of the value that a traced function returned: a container of traced tensors.

    Raises: ``TraceError`` for a container without traced tensors, or whose definition has ended.

    >>> double = dn.compilers.program(dn.debug_expr(lambda x: {"double": x + x})(1.0))
    >>> list(double.walk())
    [<%0 = parameter(0): f32>, <%1 = add(%0, %0): f32>]
    >>> double.rebuild([2.0])
    {'double': 2.0}
    """
    return Program(*_core.program(value))


def trace(fun: Callable[..., Any], vars: Sequence[Tensor]) -> Program:
    r"""Call the function that was passed to a compiler on ``vars``, and return the graph of its
    result.

    Raises: as the function, and ``TraceError`` if it traced nothing.

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
    """Return the tensors of a container in order, and a function that rebuilds it from others.

    Raises: ``ContainerError`` for a value that is neither a tensor nor a container.

    >>> leaves, rebuild = dn.compilers.flatten({"a": 1.0, "b": (2.0, "static")})
    >>> leaves
    [1.0, 2.0]
    >>> rebuild([10.0, 20.0])
    {'a': 10.0, 'b': (20.0, 'static')}
    """
    leaves, structure = _core.flatten_container(value)
    return leaves, lambda others: _core.unflatten_container(structure, list(others))


def current() -> Compiler | Any | None:
    """The compiler for which a definition is being traced here; None outside of definitions.

    Raises: nothing.

    >>> dn.compilers.current() is None
    True
    >>> dn.jit(lambda x: print(dn.compilers.current()) or x)(1.0).item()
    <compiler 'cpu'>
    1.0
    """
    return _core.current_compiler()


def tracing() -> bool:
    """Whether a function is being traced here; its tensors have no values.

    Raises: nothing.

    >>> dn.compilers.tracing()
    False
    """
    return _core.is_tracing()


def get(name: str) -> Compiler:
    """The compiler of this name, as an object with the callbacks.

    Raises: ``CompileError`` for an unknown name.

    >>> dn.compilers.get("evaluator")
    <compiler 'evaluator'>
    """
    _core.find_compiler(name)
    return BuiltIn(name)


def hooks() -> Hooks:
    """The host functions of the current run, for programs of compilers written in Python.

    A program gets them when it starts, and calls them with the ``slot`` of a ``hook`` node and the
    list of its values. Calling a slot without a function does nothing.

    Raises: ``TraceError`` when no program is running.
    """
    return _core.run_hooks()


def checks() -> tuple[str, ...]:
    """The checks that ``dn.checks`` asks for here, for compilers that implement them.

    Raises: nothing.

    >>> with dn.checks("nan"):
    ...     dn.compilers.checks()
    ('nan',)
    """
    return _core.checks_asked()
