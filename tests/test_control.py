"""Loops and branches: values, structures, captures and gradients."""

from __future__ import annotations

import _thread
import threading
import time
from typing import Any

import numpy as np
import pytest

import defn as dn


def test_while() -> None:
    def double(x: dn.Tensor) -> dn.Tensor:
        return dn.while_(x, lambda s: s < 100, lambda s: s * 2)

    assert int(double(dn.tensor(3))) == 192
    assert int(dn.jit(double)(3)) == 192


def test_while_keeps_structure_and_names() -> None:
    state = {"i": 0, "rest": (dn.tensor([[1.0]], names=["a", "b"]), [2.0])}
    out = dn.while_(
        state,
        lambda s: s["i"] < 3,
        lambda s: {"i": s["i"] + 1, "rest": (s["rest"][0] * 2.0, [s["rest"][1][0] + 1.0])},
    )
    assert int(out["i"]) == 3
    assert out["rest"][0].names == ("a", "b")
    assert out["rest"][0].to_list() == [[8.0]]
    assert float(out["rest"][1][0]) == 5.0


def test_while_uses_outer_tensors() -> None:
    limit, step = dn.tensor(10), dn.tensor(3)
    assert int(dn.while_(0, lambda s: s < limit, lambda s: s + step)) == 12

    @dn.defn
    def count(limit: dn.Tensor, step: dn.Tensor) -> dn.Tensor:
        bound = limit * 2
        return dn.while_(0, lambda s: s < bound, lambda s: s + step)

    assert int(count(5, 3)) == 12


def test_nested_loops() -> None:
    def body(state: tuple[dn.Tensor, dn.Tensor]) -> tuple[dn.Tensor, dn.Tensor]:
        i, total = state
        inner = dn.while_((0, total), lambda s: s[0] < i, lambda s: (s[0] + 1, s[1] + i))
        return i + 1, inner[1]

    out = dn.jit(lambda: dn.while_((0, 0), lambda s: s[0] < 4, body))()
    assert int(out[1]) == 14


def test_while_gradient() -> None:
    def power(x: dn.Tensor, n: dn.Tensor) -> dn.Tensor:
        return dn.while_((0, 1.0), lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * x))[1]

    for n in (0, 1, 2, 7, 100):
        x = 1.01
        assert dn.grad(power)(x, n).item() == pytest.approx(n * x ** (n - 1), rel=1e-4)
    second = dn.grad(dn.grad(power))(2.0, 5)
    assert second.item() == pytest.approx(20 * 8.0, rel=1e-5)


def test_while_gradient_of_state_and_captures() -> None:
    a = np.array([[0.5, 0.2], [-0.3, 0.9]])
    x = np.array([1.0, 2.0])

    def run(a: dn.Tensor, x: dn.Tensor) -> dn.Tensor:
        out = dn.while_((0, x), lambda s: s[0] < 5, lambda s: (s[0] + 1, dn.tanh(a @ s[1])))
        return dn.sum(out[1] * dn.tensor(np.array([1.0, 2.0])))

    def value(a: np.ndarray, x: np.ndarray) -> float:
        return float(run(dn.tensor(a), dn.tensor(x)))

    for position, array in ((0, a), (1, x)):
        got = dn.grad(run, argnums=position)(dn.tensor(a), dn.tensor(x)).to_numpy()
        for index in np.ndindex(array.shape):
            step = np.zeros_like(array)
            step[index] = 1e-6
            args = [[a, x], [a, x]]
            args[0][position], args[1][position] = array + step, array - step
            want = (value(*args[0]) - value(*args[1])) / 2e-6
            assert got[index] == pytest.approx(want, rel=1e-6, abs=1e-8)


def test_for_over_a_range() -> None:
    assert int(dn.for_(0, range(5), lambda s, i: s + i)) == 10
    assert int(dn.for_(0, range(10, 0, -3), lambda s, i: s + i)) == 10 + 7 + 4 + 1
    assert int(dn.for_(5, range(0), lambda s, i: s + i)) == 5
    assert int(dn.jit(lambda n: dn.for_(0, range(5), lambda s, i: s + i * n))(2)) == 20


@pytest.mark.parametrize("unroll", [False, True, 2])
def test_for_over_an_axis(unroll: bool | int) -> None:
    rows = dn.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    def total(rows: dn.Tensor) -> dn.Tensor:
        return dn.for_(dn.tensor([0.0, 0.0]), rows, lambda s, row: s * 2.0 + row, unroll=unroll)

    assert total(rows).to_list() == [15.0, 22.0]
    assert dn.jit(total)(rows).to_list() == [15.0, 22.0]
    gradient = dn.grad(lambda r: dn.sum(total(r)))(rows)
    assert gradient.to_list() == [[4.0, 4.0], [2.0, 2.0], [1.0, 1.0]]


@pytest.mark.parametrize("unroll", [True, 2, 0])
def test_an_unknown_trip_count_is_not_unrolled(unroll: bool | int) -> None:
    count = dn.tensor(3)
    with pytest.raises(dn.OptionError, match="tensor bounds, False or 1 is required"):
        dn.for_(0, dn.range(count), lambda s, i: s + i, unroll=unroll)
    assert int(dn.for_(0, dn.range(count), lambda s, i: s + i, unroll=1)) == 3


def test_scan() -> None:
    last, outs = dn.scan(0.0, dn.tensor([1.0, 2.0, 3.0]), lambda s, x: (s + x, {"partial": s + x}))
    assert float(last) == 6.0
    assert outs["partial"].to_list() == [1.0, 3.0, 6.0]

    def loss(xs: dn.Tensor) -> dn.Tensor:
        last, outs = dn.scan(0.0, xs, lambda s, x: (s + x, s * x))
        return last + dn.sum(outs)

    assert dn.grad(loss)(dn.tensor([1.0, 2.0, 3.0])).to_list() == [6.0, 5.0, 4.0]


def test_cond_runs_one_branch() -> None:
    @dn.defn
    def magnitude(x: dn.Tensor) -> dn.Tensor:
        return dn.cond([(x > 0, lambda: x), (x < 0, lambda: -x)], lambda: dn.tensor(0.0))

    assert [float(magnitude(v)) for v in (2.0, -3.0, 0.0)] == [2.0, 3.0, 0.0]


def test_cond_merges_and_broadcasts() -> None:
    out = dn.jit(lambda p: dn.cond([(p, lambda: dn.tensor([1, 2]))], lambda: dn.tensor(0.5)))(1)
    assert (out.dtype, out.shape) == ("f32", (2,))
    assert out.to_list() == [1.0, 2.0]
    assert dn.jit(lambda p: dn.if_(p, lambda: dn.tensor([1, 2])))(0).to_list() == [0, 0]


def test_cond_gradient() -> None:
    w = dn.tensor(3.0)

    def piecewise(x: dn.Tensor) -> dn.Tensor:
        return dn.cond([(x > 0, lambda: x * x), (x < -5, lambda: dn.tensor(1.0))], lambda: x * w)

    assert [dn.grad(piecewise)(v).item() for v in (2.0, -1.0, -7.0)] == [4.0, 3.0, 0.0]


def test_cond_does_not_run_the_other_branch() -> None:
    """The branch that is not taken contains an endless loop."""

    @dn.defn
    def guarded(x: dn.Tensor) -> dn.Tensor:
        def forever() -> dn.Tensor:
            return dn.while_(x, lambda s: s >= s, lambda s: s)

        return dn.cond([(x > 0, lambda: x + 1.0)], forever)

    assert float(guarded(1.0)) == 2.0


def test_if_takes_values() -> None:
    assert int(dn.if_(dn.tensor(1), 10, 20)) == 10
    assert int(dn.if_(dn.tensor(0), 10, 20)) == 20
    assert int(dn.if_(dn.tensor(0), 10)) == 0


def test_constant_predicates_are_decided_while_tracing() -> None:
    @dn.defn
    def choose(x: dn.Tensor, *, square: bool) -> dn.Tensor:
        return dn.if_(square, lambda: x * x, lambda: x)

    assert float(choose(3.0, square=True)) == 9.0
    assert float(choose(3.0, square=False)) == 3.0
    assert "cond" not in repr(dn.debug_expr(lambda x: dn.if_(True, lambda: x + 1, lambda: x))(1.0))


def test_mark() -> None:
    out = dn.jit(lambda x: dn.mark({"a": x, "b": x + 1}, "here"))(1.0)
    assert (float(out["a"]), float(out["b"])) == (1.0, 2.0)
    assert dn.grad(lambda x: dn.mark(x * x, "square"))(3.0).item() == 6.0


def test_a_long_loop_is_quick() -> None:
    assert int(dn.jit(lambda: dn.while_(0, lambda i: i < 50_000, lambda i: i + 1))()) == 50_000


@pytest.mark.parametrize("over", [range(0), dn.iota((0, 3), dtype="f32")], ids=["range", "tensor"])
def test_a_scan_over_nothing(over: Any) -> None:
    state, outs = dn.scan({"n": 1.5}, over, lambda s, x: (s, (x * 2.0, s["n"])))
    assert state["n"].item() == 1.5
    assert outs[0].shape == ((0,) if isinstance(over, range) else (0, 3))
    assert outs[1].shape == (0,)
    assert outs[1].dtype == "f32"


def test_a_range_beyond_64_bits() -> None:
    with pytest.raises(dn.OptionError, match="64-bit"):
        dn.for_(0, range(2**70, 2**70 + 3), lambda s, i: s)


def test_scan_refuses_outputs_that_change_while_tracing() -> None:
    calls = []

    def body(state: dn.Tensor, item: dn.Tensor):
        calls.append(item)
        return state, (item,) * len(calls)

    with pytest.raises(dn.ContainerError, match="scan: the body's output and its first differ"):
        dn.scan(0, range(3), body)


def test_dicts_come_in_any_order() -> None:
    """The keys of states, branches and outputs may come in any order; the first order is kept."""
    state = dn.while_(
        {"a": 0, "b": {"x": 1.0, "y": 2}},
        lambda s: s["a"] < 3,
        lambda s: {"b": {"y": s["b"]["y"] + 1, "x": s["b"]["x"] * 2}, "a": s["a"] + 1},
    )
    assert (list(state), int(state["a"])) == (["a", "b"], 3)
    assert (float(state["b"]["x"]), int(state["b"]["y"])) == (8.0, 5)
    chosen = dn.if_(dn.tensor(0), lambda: {"p": 1, "q": 2.5}, lambda: {"q": 3.5, "p": 2})
    assert (list(chosen), int(chosen["p"]), float(chosen["q"])) == (["p", "q"], 2, 3.5)
    swapped = dn.for_({"a": 0, "b": 1}, range(3), lambda s, i: {"b": s["a"], "a": s["b"]})
    assert (int(swapped["a"]), int(swapped["b"])) == (1, 0)
    last, _ = dn.scan({"a": 0, "b": 1}, range(3), lambda s, i: ({"b": s["a"], "a": s["b"]}, i))
    assert (int(last["a"]), int(last["b"])) == (1, 0)


def test_ranges_beyond_32_bits() -> None:
    start = 2**40
    total = dn.for_(dn.tensor(0, dtype="s64"), range(start, start + 3), lambda s, i: s + i)
    assert int(total) == 3 * start + 3
    _, items = dn.scan(0, range(start, start - 2 * 2**33, -(2**33)), lambda s, i: (s, i))
    assert items.to_list() == [start, start - 2**33]


def test_a_loop_that_runs_at_once_can_be_interrupted() -> None:
    """Other threads run meanwhile, and an interrupt that one of them raises here ends the loop."""
    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        dn.while_(dn.tensor(1), lambda s: s > 0, lambda s: s)
    assert time.monotonic() - began < 5.0
    timer.join()


@pytest.mark.parametrize("width", [1, 64])
def test_a_fold_can_be_interrupted(width: int) -> None:
    """For any number of positions that are folded together."""
    x = dn.broadcast(dn.tensor(1, dtype="u8"), (2**24 // width, width))

    def slow(x: dn.Tensor, acc: dn.Tensor) -> dn.Tensor:
        for _ in range(40):
            acc = dn.sin(acc + x)
        return acc

    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        dn.reduce(x, 0.5, slow, axes=0)
    assert time.monotonic() - began < 5.0
    timer.join()


def test_a_known_predicate_merges_with_values_that_are_there() -> None:
    """The result of a branch that cannot run has no known type; a plain value has one."""
    half = dn.tensor(np.float16(1.5))
    wide = dn.tensor([1, 2], dtype="s64")
    assert dn.if_(True, 1, 2.0).dtype == "f32"
    assert dn.if_(False, 1, 2.0).dtype == "f32"
    assert dn.if_(True, half).dtype == "f16"
    assert dn.if_(True, half, 1.0).dtype == "f16"
    assert dn.if_(True, half, dn.tensor(1.0)).dtype == "f32"
    assert dn.cond([(False, wide)], 1).to_list() == [1, 1]
    assert dn.cond([(True, lambda: 1), (False, wide)], 0.5).dtype == "f32"
    both = dn.if_(True, lambda: {"a": 1, "b": half}, {"b": 2.5, "a": wide})
    assert (both["a"].dtype, both["a"].shape, both["b"].dtype) == ("s64", (2,), "f16")
    assert dn.if_(True, lambda: (half, half), None)[0].dtype == "f16"
    assert dn.if_(True, lambda: half, lambda: dn.tensor(1.0)).dtype == "f16"


@pytest.mark.parametrize("unroll", [False, 2, True])
@pytest.mark.parametrize("apply", [lambda f: f, dn.jit], ids=["at once", "jit"])
def test_progress_is_told_after_each_trip(apply: Any, unroll: bool | int) -> None:
    told: list[Any] = []

    def body(s, i):
        dn.hook(i, lambda i: told.append(int(i)))
        return s + i

    def f(x):
        return dn.for_(
            x,
            range(3),
            body,
            unroll=unroll,
            progress=lambda done, total: told.append((done, total)),
        )

    assert int(apply(f)(0)) == 3
    assert told == [0, (1, 3), 1, (2, 3), 2, (3, 3)]


@pytest.mark.parametrize(
    ("bounds", "trips"), [((0, 5, 2), 3), ((6, 0, -2), 3), ((3, 4, 1), 1), ((4, 4, 1), 0)]
)
def test_progress_with_traced_bounds(bounds: tuple[int, int, int], trips: int) -> None:
    told: list[Any] = []

    @dn.jit
    def f(start, stop):
        over = dn.range(start, stop, bounds[2])
        return dn.for_(0, over, lambda s, i: s + 1, progress=lambda *counts: told.append(counts))

    dtype = "u8" if bounds[2] > 0 else "s32"
    assert int(f(dn.tensor(bounds[0], dtype=dtype), dn.tensor(bounds[1], dtype=dtype))) == trips
    assert told == [(done + 1, trips) for done in range(trips)]


def test_progress_prints(capsys: pytest.CaptureFixture[str]) -> None:
    rows = dn.iota((250,))
    assert int(dn.for_(0, rows, lambda s, row: s + row, progress=True)) == 249 * 125
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\r") == 84
    assert err.endswith("\rfor_: 250 of 250\n")
    assert dn.grad(lambda x: dn.for_(x, range(2), lambda x, i: x * x, progress=True))(2.0) == 32.0
    assert capsys.readouterr().err == "\rfor_: 1 of 2\rfor_: 2 of 2\n"
    dn.for_(0, rows, lambda s, row: s + row, progress=False)
    assert capsys.readouterr().err == ""


def test_a_fold_may_go_through_complex_numbers() -> None:
    """Intermediate values of a fold may have any dtype."""
    x = dn.tensor([1.0, 2.0, 3.0])

    def add(element: dn.Tensor, total: dn.Tensor) -> dn.Tensor:
        return dn.real(dn.as_type(element, "c64") + total)

    assert dn.reduce(x, 0.0, add).item() == 6.0
    assert dn.jit(lambda x: dn.reduce(x, 0.0, add))(x).item() == 6.0


@pytest.mark.parametrize("apply", [lambda f: f, dn.jit], ids=["at once", "jit"])
def test_progress_of_scan_and_while(apply: Any) -> None:
    told: list[Any] = []

    def summed(x):
        last, outs = dn.scan(
            x, dn.iota((3,)), lambda s, i: (s + i, s), progress=lambda *counts: told.append(counts)
        )
        return last, outs

    last, outs = apply(summed)(1)
    assert int(last) == 4
    assert outs.to_list() == [1, 1, 2]
    assert told == [(1, 3), (2, 3), (3, 3)]
    told.clear()

    def halved(x):
        note = lambda *counts: told.append(counts)  # noqa: E731
        return dn.while_(x, lambda x: x > 1.0, lambda x: x / 2, progress=note)

    assert float(apply(halved)(8.0)) == 1.0
    assert told == [(1, None), (2, None), (3, None)], "how many there will be is not known"
    assert float(dn.grad(halved)(8.0)) == 0.125


def test_progress_of_scan_and_while_prints(capsys: pytest.CaptureFixture[str]) -> None:
    dn.scan(0, dn.iota((2,)), lambda s, i: (s + i, s), progress=True)
    assert capsys.readouterr().err == "\rscan: 1 of 2\rscan: 2 of 2\n"
    dn.while_(8.0, lambda x: x > 1.0, lambda x: x / 2, progress=True)
    shown = capsys.readouterr().err
    assert shown.startswith("\rwhile_: 1 trips")
    assert shown.endswith("\rwhile_: 3 trips\n")
    dn.while_(8.0, lambda x: x > 1.0, lambda x: x / 2, progress=False)
    assert capsys.readouterr().err == ""
    for loop in (
        lambda: dn.while_(8.0, lambda x: x > 1.0, lambda x: x / 2, progress=3),  # type: ignore[arg-type]
        lambda: dn.scan(0, dn.iota((2,)), lambda s, i: (s, s), progress=3),  # type: ignore[arg-type]
    ):
        with pytest.raises(dn.OptionError, match="progress is of type int, it must be a bool or a"):
            loop()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x, f: dn.scan(f, x, x),
            r"scan: body is of type Tensor, .* order of arguments is scan\(init, over, body\)",
        ),
        (
            lambda x, f: dn.for_(0, f, x),
            r"for_: body is of type Tensor, .* order of arguments is for_\(init, over, body\)",
        ),
        (
            lambda x, f: dn.while_(f, f, x),
            r"while_: body is of type Tensor, .* order of arguments is while_\(init, cond, body\)",
        ),
    ],
    ids=["scan", "for_", "while_"],
)
def test_loops_show_the_order_of_their_arguments(call: Any, message: str) -> None:
    with pytest.raises(dn.OptionError, match=message):
        call(dn.iota((3,)), lambda *_: True)


@pytest.mark.parametrize("compiler", ["cpu", "evaluator"])
def test_slices_of_what_is_computed_from_any_part_of_the_state(compiler: str) -> None:
    """The parts have one type, so that the wrong one would be no error."""

    def halves(x):
        state = dn.while_(
            (x, x + 9.0), lambda s: s[1][0] < 10.0, lambda s: (s[0] + 1.0, s[1] + 1.0)
        )
        low, high = state
        return low, (2.0 * high)[:4000] - (3.0 * high)[4000:]

    x = np.arange(8000, dtype=np.float32)
    _, got = dn.jit(halves, compiler=compiler)(x)
    np.testing.assert_array_equal(got.to_numpy(), 2 * (x[:4000] + 10) - 3 * (x[4000:] + 10))


@pytest.mark.parametrize("compiler", ["cpu", "evaluator"])
@pytest.mark.parametrize("dtype", ["f8_e5m2", "f8_e4m3fn", "bf16", "f16", "f32", "f64", "c64"])
def test_minus_zero_is_no_truth(compiler: str, dtype: str) -> None:
    def chosen(x):
        def trip(total, _):
            return dn.cond([(x, lambda: total + 1)], lambda: total + 10)

        return dn.cond([(x, lambda: 1)], lambda: 2), dn.for_(0, range(2), trip)

    for number, want in [(-0.0, (2, 20)), (0.0, (2, 20)), (-0.5, (1, 2)), (2.0, (1, 2))]:
        got = dn.jit(chosen, compiler=compiler)(dn.tensor(number, dtype=dtype))
        assert (int(got[0]), int(got[1])) == want, number
