"""Exceptions in the methods of an argument pass through every public function unchanged.

An interrupt can arrive while an argument is read. It must not become an error that the argument
has the wrong kind. Each argument of each function is replaced by objects that raise in one of
their methods. If a method was called, the call must raise the method's exception.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import defn as dn
from cases import all_cases


class UsersError(Exception):
    """An exception that no library knows."""


class AboveAll(BaseException):
    """An exception that `except Exception` does not catch."""


RAISED = [KeyboardInterrupt, SystemExit, MemoryError, RecursionError, UsersError, AboveAll]
METHODS = [
    "__index__", "__int__", "__float__", "__complex__", "__bool__", "__len__", "__iter__",
    "__getitem__", "__array__", "__dlpack__", "__dlpack_device__", "__eq__", "__hash__", "__repr__",
    "__str__", "__fspath__", "__call__", "__getattr__", "__getattribute__", "__gt__",
    "__contains__",
]  # fmt: skip


class Trap:
    """Creates objects that raise, and records the exceptions."""

    def __init__(self, kind: type[BaseException]) -> None:
        self.kind = kind
        self.raised: list[BaseException] = []

    def spring(self, *args: Any, **kwargs: Any) -> Any:
        self.raised.append(self.kind("in an argument's method"))
        raise self.raised[-1]

    def objects(self) -> Iterator[tuple[str, Any]]:
        for method in METHODS:
            yield method, type("Raising", (), {method: self.spring, "__module__": "user"})()
        # Objects that look like an array or an integer, and raise when their attributes are read.
        for name in ("dtype", "shape", "__array_interface__", "__dlpack__"):
            yield name, type("Raising", (), {name: property(self.spring)})()
        sized = {"__len__": lambda _: 2, "__getitem__": self.spring, "__iter__": self.spring}
        yield "a sequence", type("Raising", (), sized)()
        yield "a list that raises", type("Raising", (list,), {"__iter__": self.spring})([1, 2])
        # Static values are hashed and compared.
        told = {"__eq__": self.spring, "__hash__": lambda _: 7}
        yield "a value", type("Raising", (), told)()


WRAPPED: list[Callable[[Any], Any]] = [
    lambda one: one,
    lambda one: [one],
    lambda one: (one, one),
    lambda one: [(one, 0), (0, one)],
    lambda one: [(0, 0, one)],
    lambda one: {"x": one},
    lambda one: slice(one, None),
]


def passes(call: Callable[[Any], Any], kinds: list[type[BaseException]] = RAISED) -> list[str]:
    """The objects whose exception did not come out of the call."""
    lost = []
    for kind in kinds:
        trap = Trap(kind)
        for name, one in trap.objects():
            for shape, wrap in enumerate(WRAPPED):
                trap.raised.clear()
                given: BaseException | None = None
                try:
                    call(wrap(one))
                except BaseException as error:
                    given = error
                if trap.raised and not any(given is raised for raised in trap.raised):
                    lost.append(f"{kind.__name__} in {name}, {shape}: {type(given)} {given!s:.90}")
                elif isinstance(given, KeyboardInterrupt) and not trap.raised:
                    raise given
    return lost


def calls() -> dict[str, list[tuple[Any, tuple[Any, ...], dict[str, Any]]]]:
    """For each function of the table of cases, calls with valid arguments."""
    found: dict[str, list[Any]] = {}
    for case in all_cases():
        dtype = case.dtypes[len(case.dtypes) // 2]
        tensors = [dn.tensor(array) for array in case.arrays(dtype)]
        function = getattr(getattr(dn, case.module) if case.module else dn, case.name)
        seen = found.setdefault(f"{case.module}.{case.name}".lstrip("."), [])

        def note(*args: Any, **kwargs: Any) -> Any:
            seen.append((function, args, kwargs))  # noqa: B023
            return function(*args, **kwargs)  # noqa: B023

        given = (dtype,) if case.creates else tensors
        if case.call and not seen:
            case.call(note, *given)
        elif not seen:
            seen.append((function, tuple(given), {}))
    return found


CALLS = calls()


@pytest.mark.parametrize("name", CALLS)
def test_of_every_operation(name: str) -> None:
    lost = []
    for function, args, kwargs in CALLS[name]:
        signature = inspect.signature(function)
        for position in range(len(args)):
            before, after = args[:position], args[position + 1 :]
            call = lambda one: function(*before, one, *after, **kwargs)  # noqa: B023, E731
            lost += [f"{position}: {text}" for text in passes(call, SOME)]
        for option, parameter in signature.parameters.items():
            if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
                continue
            call = lambda one: function(*args, **{**kwargs, option: one})  # noqa: B023, E731
            lost += [f"{option}: {text}" for text in passes(call, SOME)]
    assert not lost


# One exception of each group that is caught in the same way.
SOME = [KeyboardInterrupt, UsersError]

x = dn.tensor([1.0, 2.0])
key = dn.random.key(1)
add = lambda a, b: dn.add(a, b)  # noqa: E731
OTHERS: dict[str, Callable[[Any], Any]] = {
    "a tensor": dn.tensor,
    "a tensor's dtype": lambda one: dn.tensor(1, dtype=one),
    "a tensor's names": lambda one: dn.tensor([1], names=one),
    "a tensor's backend": lambda one: dn.tensor(1, backend=one),
    "a template": lambda one: dn.template(one, "f32"),
    "a template's dtype": lambda one: dn.template((), one),
    "a template's names": lambda one: dn.template((1,), "f32", names=one),
    "an index": lambda one: x[one],
    "an operand": lambda one: x + one,
    "a power": lambda one: x**one,
    "a comparison": lambda one: x < one,
    "bytes": lambda one: dn.from_binary(one, "u8"),
    "bytes as": lambda one: dn.from_binary(b"a", one),
    "serialized": dn.deserialize,
    "to serialize": dn.serialize,
    "an address": lambda one: dn.from_pointer(one, "f32", (2,)),
    "the shape at an address": lambda one: dn.from_pointer(4096, "f32", one),
    "the dtype at an address": lambda one: dn.from_pointer(4096, one, (2,)),
    "an argument": lambda one: dn.jit(lambda x: x)(one),
    "a keyword": lambda one: dn.jit(lambda x, *, k: x)(1.0, k=one),
    "static": lambda one: dn.jit(lambda x, k: x, static="k")(1.0, one),
    "names of static parameters": lambda one: dn.jit(lambda x: x, static=one),
    "donated parameters": lambda one: dn.jit(lambda x: x, donate=one),
    "a limit of versions": lambda one: dn.jit(lambda x: x, max_compiles=one),
    "a conflict": lambda one: dn.jit(lambda x: x, on_conflict=one),
    "a compiler": lambda one: dn.jit(lambda x: x, compiler=one)(1.0),
    "hooks": lambda one: dn.jit(lambda x: x, hooks=one)(1.0),
    "a result": lambda one: result(iter([one])),
    "compiled for": lambda one: dn.compile(lambda x: x, one),
    "compiled with": lambda one: dn.compile(lambda x: x, [x], {"k": one}),
    "differentiated": lambda one: dn.grad(lambda x: x * x)(one),
    "a loss": lambda one: dn.grad(lambda x: one)(1.0),
    "arguments to differentiate by": lambda one: dn.grad(add, argnums=one)(1.0, 2.0),
    "a cotangent": lambda one: dn.vjp(lambda x: x)(1.0)[1](one),
    "axes to map": lambda one: dn.vmap(add, in_axes=one)(x, x),
    "axes of what is mapped": lambda one: dn.vmap(add, out_axes=one)(x, x),
    "a state": lambda one: dn.while_(one, lambda s: False, lambda s: s),
    "a condition": lambda one: dn.while_(1, lambda s: one, lambda s: s),
    "a body": lambda one: dn.while_(1, lambda s: s < 2, lambda s: one),
    "a range": lambda one: dn.for_(0, one, lambda i, s: s),
    "what is scanned": lambda one: dn.scan(0, one, lambda s, i: (s, s)),
    "what a scan gives": lambda one: dn.scan(0, range(2), lambda s, i: one),
    "clauses": lambda one: dn.cond(one, lambda: 1),
    "a predicate": lambda one: dn.cond([(one, lambda: 1)], lambda: 2),
    "a branch": lambda one: dn.cond([(1, lambda: one)], lambda: 2),
    "a hook's value": lambda one: dn.hook(one, lambda v: None),
    "what a host function gives": lambda one: dn.runtime_call(x, x, lambda v: one),
    "what a host function takes": lambda one: dn.runtime_call(x, one, lambda v: v),
    "a seed": dn.random.key,
    "a key": lambda one: dn.random.uniform(one),
    "a random shape": lambda one: dn.random.uniform(key, shape=one),
    "a random dtype": lambda one: dn.random.normal(key, dtype=one),
    "a method": lambda one: dn.random.multivariate_normal(
        key, dn.tensor([0.0]), dn.tensor([[1.0]]), method=one
    ),
    "threads": dn.set_threads,
    "threads of a context": lambda one: dn.default_options(threads=one),
    "a limit of a print": lambda one: dn.default_options(print_limit=one),
    "a default compiler": lambda one: dn.default_options(compiler=one),
    "a copy's backend": lambda one: dn.backend_copy(x, one),
    "what is copied": dn.backend_copy,
    "what is freed": dn.backend_deallocate,
    "templates": dn.to_template,
    "batches": lambda one: list(dn.to_batched(x, one)),
    "what is batched": lambda one: list(dn.to_batched(one, 1)),
    "numbers of a graph's rule": dn.graph.every,
    "a chunk": lambda one: stream().send(one),
    "a saved executable": lambda one: dn.pjrt.deserialize(one, trust=True),
    "trust": lambda one: dn.pjrt.deserialize(b"", trust=one),
}


def result(results: Iterator[Any]) -> Any:
    """The result of a definition that takes it from an iterator, which tracing does not inspect."""
    return dn.jit(lambda: next(results))()


def stream() -> Any:
    return dn.stream(lambda x, s: (x, s), [dn.template((), "f32"), 0.0])


@pytest.mark.parametrize("name", OTHERS)
def test_of_every_other_function(name: str) -> None:
    before = dn.default_options()
    try:
        # A message leaves out a value that it cannot show.
        lost = passes(OTHERS[name])
        assert not [text for text in lost if not text.startswith("UsersError in __repr__")]
    finally:
        dn.default_options(before)


def test_the_traps_are_sprung() -> None:
    """The tests above would pass for a function that ignores its argument."""
    sprung = set()
    for function, args, kwargs in (found[0] for found in CALLS.values()):
        for name, one in (trap := Trap(UsersError)).objects():
            for wrap in WRAPPED:
                with contextlib.suppress(BaseException):
                    function(wrap(one), *args[1:], **kwargs)
            if trap.raised:
                sprung.add(name)
                trap.raised.clear()
    assert {"__array__", "__getattribute__", "a list that raises"} <= sprung


def test_arrays_that_raise() -> None:
    """NumPy reads more attributes of an array than we do."""
    for kind in RAISED:
        error = kind("in an array")

        class Array(np.ndarray):
            @property
            def base(self) -> Any:  # type: ignore[override]
                raise error  # noqa: B023

        array = np.arange(3.0).view(Array)
        array.flags.writeable = False
        assert dn.tensor(array).to_list() == [0.0, 1.0, 2.0], "it is not asked for its base"
