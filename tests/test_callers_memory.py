"""The caller's memory: after a call has returned, nothing reads the caller's arrays any more.

Each way to pass an array is tested with a caller that overwrites it as soon as it has the result.
Results, kept arguments and later computations must see the original elements.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy_compiler import NumPyCompiler

import defn as dn
from support import needs_plugin

COUNT = 6
WRITTEN = -7.0


class Keeping(dn.Compiler):
    """Compiles like the evaluator, and keeps all arguments of its programs."""

    def __init__(self) -> None:
        self.kept: list[dn.Tensor] = []

    def compile(self, key: Any, vars: Any, fun: Any, options: Any) -> Any:
        run = dn.compilers.get("evaluator").compile(key, vars, fun, options)

        def call(args_list: Any) -> Any:
            self.kept += [arg for args in args_list for arg in args if not arg.is_template]
            return run(args_list)

        return call


class KeepingThunks(Keeping):
    """The same, with a callback that compiles and does the first run in one step."""

    def jit(self, key: Any, vars: Any, fun: Any, args_list: Any, options: Any) -> Any:
        self.kept += [thunk() for thunk in args_list[0]]
        return super().jit(key, vars, fun, args_list, options)


COMPILERS: dict[str, Callable[[], Any]] = {
    "evaluator": lambda: "evaluator",
    "cpu": lambda: "cpu",
    "pjrt": lambda: "pjrt",
    "numpy": NumPyCompiler,
    "keeping": Keeping,
    "thunks": KeepingThunks,
}


class Offered:
    """Offers an array's memory by DLPack only."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Interface:
    """Offers an array by NumPy's ``__array__`` only."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.array


def read_only(array: np.ndarray) -> np.ndarray:
    view = array[:]
    view.flags.writeable = False
    return view


# The object to pass, made from the array that the caller overwrites.
KINDS: dict[str, Callable[[np.ndarray], Any]] = {
    "array": lambda array: array,
    "view": lambda array: array[:].reshape(array.shape),
    "strided": lambda array: np.lib.stride_tricks.as_strided(array, array.shape, array.strides),
    "read-only": read_only,
    "read-only twice": lambda array: read_only(read_only(array)),
    "read-only memory": lambda array: np.asarray(memoryview(array).toreadonly()),
}
# Objects that are not NumPy arrays, but offer one.
OFFERS: dict[str, Callable[[np.ndarray], Any]] = {
    "buffer": lambda array: memoryview(array),
    "dlpack": Offered,
    "dlpack read-only": lambda array: Offered(read_only(array)),
    "__array__": lambda array: Interface(read_only(array)),
}


class Jitting:
    """`dn.jit` with a compiler."""

    def __init__(self, compiler: Any) -> None:
        self.keywords = {"compiler": compiler}

    def __call__(self, fun: Callable[..., Any], **options: Any) -> Any:
        return dn.jit(fun, **self.keywords, **options)


# A function that reads a result after the caller has overwritten the array, and the expected value.
Late = tuple[Callable[[], Any], Any]
WAYS: dict[str, Callable[[Jitting, np.ndarray, np.ndarray], list[Late]]] = {}


def way(fun: Callable[[Jitting, np.ndarray, np.ndarray], list[Late]]) -> Any:
    WAYS[fun.__name__] = fun
    return fun


def late(value: Any, want: Any) -> Late:
    return (lambda: value, want)


@way
def identity(jit: Jitting, given: np.ndarray, was: np.ndarray) -> list[Late]:
    return [late(jit(lambda x: x)(given), was)]


@way
def twice_the_same(jit: Jitting, given: np.ndarray, was: np.ndarray) -> list[Late]:
    one, other = jit(lambda x: (x, {"again": x}))(given)
    return [late(one, was), late(other["again"], was)]


@way
def a_piece(jit: Jitting, given: np.ndarray, was: np.ndarray) -> list[Late]:
    return [late(jit(lambda x: x[2:])(given), was[2:])]


@way
def a_reshape(jit: Jitting, given: np.ndarray, was: np.ndarray) -> list[Late]:
    return [late(jit(lambda x: dn.reshape(x, (2, 3)))(given), was.reshape(2, 3))]


@way
def a_branch(jit: Jitting, given: np.ndarray, was: np.ndarray) -> list[Late]:
    fun = jit(lambda x, p: dn.cond([(p, lambda: x)], lambda: x * 2))
    return [late(fun(given, 1), was), late(fun(given, 0), was * 2)]


@way
def a_loop_without_trips(jit: Jitting, given: np.ndarray, was: np.ndarray) -> list[Late]:
    fun = jit(lambda x, n: dn.while_((x, n), lambda s: s[1] > 0, lambda s: (s[0] + 1, s[1] - 1)))
    return [late(fun(given, 0)[0], was), late(fun(given, 2)[0], was + 2)]


@way
def an_option(jit: Jitting, given: np.ndarray, was: np.ndarray) -> list[Late]:
    def fun(x: Any, *, w: Any) -> Any:
        return x * 0 + 1, w

    return [late(jit(fun)(np.float32(3), w=given)[1], was)]


@way
def closed_over(jit: Jitting, given: np.ndarray, was: np.ndarray) -> list[Late]:
    held = {"x": given}
    fun = jit(lambda n: (dn.reshape(held["x"], (2, 3)), dn.add(held["x"], n)))
    return [late(fun(1)[0], was.reshape(2, 3)), late(fun(1)[1], was + 1)]


@way
def compiled_ahead(jit: Jitting, given: np.ndarray, was: np.ndarray) -> list[Late]:
    template = dn.template((COUNT,), "f32")
    compiled = dn.compile(lambda x: (x, x[1:]), [template], **jit.keywords)
    whole, part = compiled(given)
    each = compiled.run_each([[given], [given]])
    return [late(whole, was), late(part, was[1:]), *(late(one[1], was[1:]) for one in each)]


@way
def gradients(jit: Jitting, given: np.ndarray, was: np.ndarray) -> list[Late]:
    value, gradient = jit(dn.value_and_grad(lambda x: (x * x).sum()))(given)
    return [late(value, (was * was).sum()), late(gradient, 2 * was)]


@way
def hooks(jit: Jitting, given: np.ndarray, was: np.ndarray) -> list[Late]:
    seen: list[Any] = []

    def fun(x: Any) -> Any:
        x = dn.hook(x, seen.append)
        return dn.hook({"piece": x[1:], "all": dn.reshape(x, (2, 3))}, seen.append)["piece"] + 1

    fun = jit(fun)
    for _ in range(2):
        fun(given)
    pairs = [*zip(seen[::2], seen[1::2], strict=True)]
    assert len(pairs) == 2
    return [
        entry
        for whole, parts in pairs
        for entry in (
            late(whole, was),
            late(parts["piece"], was[1:]),
            late(parts["all"], was.reshape(2, 3)),
        )
    ]


@way
def named_hooks(jit: Jitting, given: np.ndarray, was: np.ndarray) -> list[Late]:
    seen: list[Any] = []
    jit(lambda x: dn.hook(x, "name"), hooks={"name": seen.append})(given)
    return [late(seen[0], was)]


@way
def hooks_in_a_loop(jit: Jitting, given: np.ndarray, was: np.ndarray) -> list[Late]:
    seen: list[Any] = []

    def fun(x: Any) -> Any:
        body = lambda s: (s[0] + 1, s[1] + dn.hook(x, seen.append).sum())  # noqa: E731
        return dn.while_((0, 0.0), lambda s: s[0] < 2, body)[1]

    jit(fun)(given)
    assert len(seen) == 2
    return [late(one, was) for one in seen]


@way
def calls_of_the_host(jit: Jitting, given: np.ndarray, was: np.ndarray) -> list[Late]:
    seen: list[Any] = []

    def look(value: dn.Tensor) -> np.ndarray:
        seen.append(value)
        return value.to_numpy()

    out = jit(lambda x: dn.runtime_call(x, x, look))(given)
    return [late(seen[0], was), late(out, was)]


@way
def what_a_call_of_the_host_gives(jit: Jitting, given: np.ndarray, was: np.ndarray) -> list[Late]:
    fun = jit(lambda x: dn.runtime_call(dn.template((COUNT,), "f32"), x, lambda _: given))
    return [late(fun(np.float32(1)), was)]


def send_all(stream: Any, given: np.ndarray, was: np.ndarray) -> list[Late]:
    stream.send(given)
    stream.send({"x": given}["x"])
    return [(lambda: stream.recv(), was), (lambda: stream.recv(), 2 * was)]


@way
def a_stream(jit: Jitting, given: np.ndarray, was: np.ndarray) -> list[Late]:
    begin = threading.Event()

    def step(x: Any, total: Any) -> Any:
        # The step waits until the caller has written.
        total = dn.runtime_call(total, total, lambda value: (begin.wait(20), value)[1])
        return x + total, x + total

    template, zeros = dn.template((COUNT,), "f32"), dn.broadcast(0.0, (COUNT,))
    stream = dn.stream(step, [template, zeros], **jit.keywords)
    first, second = send_all(stream, given, was)
    return [(lambda: (begin.set(), first[0]())[1], was), second, (stream.done, 2 * was)]


@way
def what_a_stream_begins_with(jit: Jitting, given: np.ndarray, was: np.ndarray) -> list[Late]:
    step = lambda x, state, by: (x + state * by, state)  # noqa: E731
    template = dn.template((COUNT,), "f32")
    stream = dn.stream(step, [template, given, given], **jit.keywords)

    def send() -> Any:
        stream.send(np.zeros(COUNT, np.float32))
        return stream.recv()

    return [(send, was * was), (stream.done, was)]


@way
def stages(jit: Jitting, given: np.ndarray, was: np.ndarray) -> list[Late]:
    expr = dn.debug_expr(lambda x: (dn.cos(dn.sin(x)) * 0 + x, x[1:]))(dn.template((COUNT,), "f32"))
    parts = dn.graph.split(expr, dn.graph.every(1))
    options = jit.keywords
    threads = dn.engines.Threads(2)
    outs = [dn.graph.run(parts, [given], engine=engine, **options) for engine in (None, threads)]
    under_way = dn.graph.run_each(parts, [[given]] * 2, engine=threads, **options)
    outs.append(next(under_way))
    return [
        *(entry for out in outs for entry in (late(out[0], was), late(out[1], was[1:]))),
        (lambda: under_way.close(), None),
    ]


@way
def in_containers(jit: Jitting, given: np.ndarray, was: np.ndarray) -> list[Late]:
    out = jit(lambda tree: {**tree, "sum": tree["a"] + tree["b"][0]})({"a": given, "b": [given]})
    return [late(out["a"], was), late(out["b"][0], was), late(out["sum"], 2 * was)]


def check(found: list[Late], array: np.ndarray, what: str) -> None:
    """Overwrites the array, and checks the results."""
    array[:] = WRITTEN
    for position, (read, want) in enumerate(found):
        got = read()
        if want is not None:
            text = f"{what}, result {position}"
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6, err_msg=text)


@pytest.mark.parametrize(
    "compiler",
    [pytest.param(name, marks=needs_plugin if name == "pjrt" else ()) for name in COMPILERS],
)
@pytest.mark.parametrize("name", WAYS)
def test_what_returned_reads_no_more(name: str, compiler: str) -> None:
    for kind, give in KINDS.items():
        for checks in ((), ("nan",)) if isinstance(COMPILERS[compiler](), str) else ((),):
            one = COMPILERS[compiler]()
            array = np.arange(1, COUNT + 1, dtype=np.float32)
            with dn.checks(*checks):
                found = WAYS[name](Jitting(one), give(array), array.copy())
                check(found, array, f"{kind} {checks}")
            for tensor in getattr(one, "kept", ()):
                assert WRITTEN not in tensor.to_numpy(), f"{kind}: what the compiler kept"


@pytest.mark.parametrize("kind", [*KINDS, *OFFERS])
def test_what_ran_at_once_reads_no_more(kind: str) -> None:
    array = np.arange(1, COUNT + 1, dtype=np.float32)
    was, given = array.copy(), (KINDS | OFFERS)[kind](array)
    x = dn.tensor(given)
    seen: list[dn.Tensor] = []
    hooked = dn.hook(dn.tensor(given), seen.append)
    variable = given if isinstance(given, np.ndarray) else x
    gradient = dn.grad(lambda x: (x * x).sum())(variable)
    value, back = dn.vjp(lambda x: x * x)(variable)
    found = [
        late(x, was),
        late(dn.reshape(given, (2, 3)), was.reshape(2, 3)),
        late(dn.as_type(given, "f32"), was),
        late(dn.stop_grad(variable), was),
        late(dn.slice(given, [1], [2]), was[1:3]),
        late(dn.stack([given, given]), np.stack([was, was])),
        late(dn.cond([(1, lambda: dn.tensor(given))], lambda: x), was),
        late(dn.while_(x, lambda x: x.sum() < -100, lambda x: x), was),
        late(dn.vectorize(variable, "rows").devectorize(), was),
        late(hooked, was),
        late(seen[0], was),
        late(gradient, 2 * was),
        late(value, was * was),
        (lambda: back(np.ones(COUNT, np.float32)), 2 * was),
    ]
    check(found, array, kind)


@pytest.mark.parametrize("compiler", ["evaluator", "cpu"])
def test_one_buffer_through_a_stream(compiler: str) -> None:
    buffer = np.zeros((), np.int32)

    def chunks() -> Iterator[np.ndarray]:
        for i in range(5):
            buffer[...] = i
            yield buffer

    step = lambda x, state: (x, state + x)  # noqa: E731
    begin = [dn.template((), "s32"), 0]
    with dn.stream(step, begin, compiler=compiler) as stream:
        for chunk in chunks():
            stream.send(chunk)
        assert [int(output) for output in stream] == [0, 1, 2, 3, 4]
    with dn.stream(step, begin, compiler=compiler) as stream:
        assert [int(output) for output in stream.map(chunks())] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", [*KINDS, *OFFERS])
def test_sharing_is_asked_for(kind: str) -> None:
    array = np.arange(COUNT, dtype=np.float32)
    shared = dn.tensor((KINDS | OFFERS)[kind](array), copy=False, backend="cpu")
    array[0] = WRITTEN
    assert shared[0].item() == WRITTEN


def test_what_nothing_can_write_is_kept_as_it_is() -> None:
    frozen = np.frombuffer(np.arange(COUNT, dtype=np.float32).tobytes(), np.float32)
    where = lambda x: np.asarray(x).ctypes.data  # noqa: E731
    assert where(dn.tensor(frozen, backend="cpu")) == where(frozen)
    mine = dn.tensor([1.0, 2.0], backend="cpu")
    assert where(dn.tensor(mine.to_numpy()[:], backend="cpu")) == where(mine)
    # The owner may make it writeable again.
    owned = np.arange(COUNT, dtype=np.float32)
    owned.flags.writeable = False
    x = dn.tensor(owned[:], backend="cpu")
    owned.flags.writeable = True
    owned[0] = WRITTEN
    assert x[0].item() == 0.0
