"""The order of hooks in every construct: eager, in definitions, in gradients and in streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import defn as dn


class Seen:
    """The labels of the hooks that have run, and the label of the hook that raises."""

    def __init__(self) -> None:
        self.items: list[str] = []
        self.fails_at: str | None = None

    def note(self, label: str) -> Callable[[Any], None]:
        def show(value: Any) -> None:
            text = f"{label}{int(value)}"
            if text == self.fails_at:
                raise KeyError(text)
            self.items.append(text)

        return show


def make_while(seen: Seen) -> Callable[[Any], Any]:
    def f(x):
        def goes_on(state):
            return dn.hook(state[0], seen.note("test")) < 2

        def body(state):
            i, x = state
            x = dn.hook(x * 2, seen.note("x"))
            return dn.hook(i + 1, seen.note("i")), x

        x = dn.hook(x, seen.note("start"))
        return dn.hook(dn.while_((0, x), goes_on, body)[1], seen.note("end"))

    return f


WHILE = ["start3", "test0", "x6", "i1", "test1", "x12", "i2", "test2", "end12"]


def make_for_range(seen: Seen) -> Callable[[Any], Any]:
    def f(x):
        def body(x, i):
            dn.hook(i, seen.note("i"))
            return dn.hook(x + 1, seen.note("x"))

        return dn.for_(x, range(3), body)

    return f


FOR_RANGE = ["i0", "x4", "i1", "x5", "i2", "x6"]


def make_for_axis(unroll: bool | int) -> Callable[[Seen], Callable[[Any], Any]]:
    def make(seen: Seen) -> Callable[[Any], Any]:
        def f(x):
            rows = dn.tensor([10.0, 20.0, 30.0]) * (x / 3)

            def body(x, row):
                dn.hook(row, seen.note("row"))
                return dn.hook(x + row, seen.note("x"))

            return dn.for_(x, rows, body, unroll=unroll)

        return f

    return make


FOR_AXIS = ["row10", "x13", "row20", "x33", "row30", "x63"]


def make_for_bounds(seen: Seen) -> Callable[[Any], Any]:
    def f(x):
        stop = dn.as_type(x, "s32") + 4

        def body(x, i):
            return dn.hook(x, seen.note("x")) + dn.hook(i, seen.note("i"))

        return dn.for_(x, dn.range(3, stop, 2), body)

    return f


FOR_BOUNDS = ["x3", "i3", "x6", "i5"]


def make_scan(seen: Seen) -> Callable[[Any], Any]:
    def f(x):
        def body(x, i):
            x = dn.hook(x + i, seen.note("x"))
            return x, dn.hook(x * 10, seen.note("out"))

        last, outs = dn.scan(x, range(3), body)
        return dn.hook(last, seen.note("last")) + dn.hook(dn.sum(outs), seen.note("sum"))

    return f


SCAN = ["x3", "out30", "x4", "out40", "x6", "out60", "last6", "sum130"]


def make_cond(seen: Seen) -> Callable[[Any], Any]:
    def f(x):
        clauses = [
            (dn.hook(x > 5, seen.note("a")), lambda: dn.hook(x, seen.note("first"))),
            (dn.hook(x > 2, seen.note("b")), lambda: dn.hook(x * 2, seen.note("second"))),
        ]
        y = dn.cond(clauses, lambda: dn.hook(x * 3, seen.note("third")))
        return dn.hook(y, seen.note("end"))

    return f


COND = ["a0", "b1", "second6", "end6"]


def make_if(seen: Seen) -> Callable[[Any], Any]:
    def f(x):
        y = dn.if_(x > 5, lambda: dn.hook(x, seen.note("then")), lambda: x + 1)
        return dn.if_(y < 5, lambda: dn.hook(y, seen.note("small")))

    return f


IF = ["small4"]


def make_nested(seen: Seen) -> Callable[[Any], Any]:
    """A branch in a loop in a branch in a loop."""

    def f(x):
        def inner(x, j):
            big = lambda: dn.hook(x - 4, seen.note("big"))  # noqa: E731
            small = lambda: dn.hook(x + 1, seen.note("small"))  # noqa: E731
            return dn.if_(x > 4, big, small)

        def outer(x, i):
            dn.hook(i, seen.note("i"))
            even = lambda: dn.for_(x, range(3), inner)  # noqa: E731
            odd = lambda: dn.hook(x, seen.note("odd"))  # noqa: E731
            return dn.hook(dn.if_(i % 2 == 0, even, odd), seen.note("o"))

        return dn.for_(x, range(3), outer)

    return f


NESTED = [
    *("i0", "small4", "small5", "big1", "o1"),
    *("i1", "odd1", "o1"),
    *("i2", "small2", "small3", "small4", "o4"),
]


def make_syntax(seen: Seen) -> Callable[[Any], Any]:
    @dn.defn
    def f(x):
        for i in dn.range(2):
            dn.hook(i, seen.note("i"))
            if x > 3:
                dn.hook(i, seen.note("above"))
                x = dn.hook(x - 1, seen.note("less"))
            else:
                x = dn.hook(x + 1, seen.note("more"))
        while x < 5:
            x = dn.hook(x + 1, seen.note("up"))
        return x

    return f


SYNTAX = ["i0", "more4", "i1", "above1", "less3", "up4", "up5"]


CONSTRUCTS = {
    "while": (make_while, WHILE),
    "for over a range": (make_for_range, FOR_RANGE),
    "for over an axis": (make_for_axis(False), FOR_AXIS),
    "for, two at a time": (make_for_axis(2), FOR_AXIS),
    "for, unrolled": (make_for_axis(True), FOR_AXIS),
    "for with traced bounds": (make_for_bounds, FOR_BOUNDS),
    "scan": (make_scan, SCAN),
    "cond": (make_cond, COND),
    "if": (make_if, IF),
    "nested": (make_nested, NESTED),
    "syntax": (make_syntax, SYNTAX),
}
RUNS = {
    "at once": lambda f: f(dn.tensor(3.0)),
    "jit": lambda f: dn.jit(f, on_conflict="reuse")(3.0),
    "compile": lambda f: dn.compile(f, [dn.template((), "f32")])(3.0),
    "inlined": lambda f: dn.jit(lambda x: f(x) + 0)(3.0),
    "grad": lambda f: dn.grad(f)(3.0),
    "value_and_grad": lambda f: dn.value_and_grad(f)(3.0),
    "grad of grad": lambda f: dn.grad(dn.grad(f))(3.0),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(("make", "expected"), CONSTRUCTS.values(), ids=CONSTRUCTS)
def test_order(make: Any, expected: list[str], run: Any) -> None:
    seen = Seen()
    run(make(seen))
    assert seen.items == expected


@pytest.mark.parametrize("run", ["at once", "jit", "grad"])
@pytest.mark.parametrize(("make", "expected"), CONSTRUCTS.values(), ids=CONSTRUCTS)
def test_a_hook_that_raises_stops_the_run(make: Any, expected: list[str], run: str) -> None:
    """One of three hooks raises: nothing runs after it, and the next call is complete."""
    seen = Seen()
    f = make(seen)
    call = {
        "at once": f,
        "jit": dn.jit(f, on_conflict="reuse"),
        "grad": dn.grad(f),
    }[run]
    for position in sorted({0, len(expected) // 2, len(expected) - 1}):
        # If a label occurs twice, its first hook raises.
        seen.fails_at = expected[position]
        seen.items.clear()
        with pytest.raises(KeyError, match=seen.fails_at):
            call(dn.tensor(3.0))
        assert seen.items == expected[: expected.index(seen.fails_at)]
    seen.fails_at = None
    seen.items.clear()
    call(dn.tensor(3.0))
    assert seen.items == expected


def test_named_hooks_in_loops_are_filled_for_each_call() -> None:
    first: list[int] = []
    second: list[int] = []

    def f(x):
        return dn.for_(x, range(3), lambda x, i: dn.hook(x + 1, "step"))

    for seen in (first, second, first):
        g = dn.jit(f, hooks={"step": lambda v, seen=seen: seen.append(int(v))})
        g(0)
    assert (first, second) == ([1, 2, 3, 1, 2, 3], [1, 2, 3])


def test_hooks_of_streams_run_in_the_order_of_the_chunks() -> None:
    seen = Seen()

    def step(chunk, total):
        dn.hook(chunk, seen.note("chunk"))
        total = dn.for_(total, range(2), lambda t, i: dn.hook(t + chunk, seen.note("t")))
        return dn.hook(total, seen.note("out")), total

    with dn.stream(step, [dn.template((), "s32"), 0], maxsize=8) as stream:
        for chunk in (1, 2, 3):
            stream.send(chunk)
        assert [int(stream.recv()) for _ in range(3)] == [2, 6, 12]
        assert int(stream.done()) == 12
    assert seen.items == [
        *("chunk1", "t1", "t2", "out2"),
        *("chunk2", "t4", "t6", "out6"),
        *("chunk3", "t9", "t12", "out12"),
    ]


def test_a_hook_that_raises_in_a_stream_reaches_the_receiver() -> None:
    seen = Seen()
    seen.fails_at = "out2"

    def step(chunk, total):
        return dn.hook(total + chunk, seen.note("out")), total + chunk

    with dn.stream(step, [dn.template((), "s32"), 0], maxsize=8) as stream:
        stream.send(1)
        stream.send(1)
        assert int(stream.recv()) == 1
        with pytest.raises(KeyError, match="out2"):
            stream.recv()
    assert seen.items == ["out1"]
    seen.fails_at = None
    with dn.stream(step, [dn.template((), "s32"), 0]) as stream:
        stream.send(2)
        assert int(stream.recv()) == 2
    assert seen.items == ["out1", "out2"]
