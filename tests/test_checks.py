"""Positions out of range, eager and compiled, and the checks that compiled programs make."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import defn as dn
from support import HERE

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=np.float32)

# Reads with positions beyond both ends, the result of a compiled program, and the message.
READS = [
    (
        lambda x: dn.gather(x, dn.tensor([[0, 9], [-7, -2]])),
        [3.0, 2.0],
        "gather: index 9 on axis 1 of f32[2][3], it must be in -3..3",
    ),
    (
        lambda x: dn.gather(x, dn.tensor([[-4], [-1], [5]]), axes=[1]),
        [[1.0, 4.0], [3.0, 6.0], [3.0, 6.0]],
        "gather: index -4 on axis 1 of f32[2][3], it must be in -3..3",
    ),
    (
        lambda x: dn.take(x, dn.tensor([1, 2, -3])),
        [[4.0, 5.0, 6.0], [4.0, 5.0, 6.0], [1.0, 2.0, 3.0]],
        "take: index 2 on axis 0 of f32[2][3], it must be in -2..2",
    ),
    (
        lambda x: dn.take_along_axis(x, dn.tensor([[3], [-4]]), axis=1),
        [[3.0], [4.0]],
        "take_along_axis: index 3 on axis 1 of f32[2][3], it must be in -3..3",
    ),
    (
        lambda x: x[dn.tensor([0, 7])],
        [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
        "take: index 7 on axis 0 of f32[2][3], it must be in -2..2",
    ),
]
WRITES = [
    (
        lambda x: dn.indexed_add(
            x, dn.tensor([[0, 3], [1, 1], [2, 0]]), dn.tensor([9.0, 10.0, 9.0])
        ),
        [[1.0, 2.0, 3.0], [4.0, 15.0, 6.0]],
        "indexed_add: index 3 on axis 1 of f32[2][3], it must be in -3..3",
    ),
    (
        lambda x: dn.indexed_put(x, dn.tensor([[-3], [-1]]), dn.tensor([[9.0], [0.0]])),
        [[1.0, 2.0, 3.0], [0.0, 5.0, 6.0]],
        "indexed_put: index -3 on axis 0 of f32[2][3], it must be in -2..2",
    ),
]
BACKENDS = [HERE, dn.backends.NumPyBackend()]


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
@pytest.mark.parametrize(("call", "want", "message"), READS + WRITES)
def test_positions_out_of_range(call, want, message, backend) -> None:
    x = dn.tensor(X, backend=backend)
    if isinstance(backend, dn.backends.PJRT):
        # Devices do not check positions.
        assert call(x).to_list() == want
    else:
        with pytest.raises(dn.BoundsError) as eager:
            call(x)
        assert str(eager.value).splitlines()[0] == message
    compiled = dn.jit(call)
    assert compiled(x).to_list() == want
    with dn.checks("index"):
        with pytest.raises(dn.BoundsError) as checked:
            compiled(x)
        assert str(checked.value).splitlines()[0] == message
        assert "test_checks.py" in str(checked.value).splitlines()[-1]
    assert compiled(x).to_list() == want
    assert isinstance(checked.value, IndexError)


@pytest.mark.parametrize("dtype", ["u2", "u8", "u64", "s2", "s16", "s64"])
def test_every_width_of_indices_clamps(dtype: str) -> None:
    low, high = {
        "u2": (0, 3),
        "u8": (0, 255),
        "u64": (0, 2**64 - 1),
        "s2": (-2, 1),
        "s16": (-(2**15), 2**15 - 1),
        "s64": (-(2**63), 2**63 - 1),
    }[dtype]
    x = dn.tensor([10, 20])
    places = dn.tensor([low, high], dtype=dtype)
    want = [10, 20]
    assert dn.jit(dn.take)(x, places).to_list() == want
    assert dn.jit(dn.take_along_axis)(x, places).to_list() == want
    assert dn.jit(lambda x, i: dn.gather(x, dn.new_axis(i, -1)))(x, places).to_list() == want
    put = dn.jit(lambda x, i: dn.indexed_put(x, dn.new_axis(i, -1), dn.tensor([7, 7])))
    assert put(x, places).to_list() == [
        7 if {0, -2} & {low, high} else 10,
        7 if {1, -1} & {low, high} else 20,
    ]


def test_an_empty_axis_takes_no_write() -> None:
    x = dn.broadcast(1.0, (0, 2))
    write = dn.jit(lambda x: dn.indexed_add(x, dn.tensor([[0]]), dn.tensor([[1.0, 2.0]])))
    assert write(x).shape == (0, 2)
    grad = dn.grad(lambda u: dn.sum(dn.indexed_add(x, dn.tensor([[0]]), u)))
    assert grad(dn.tensor([[1.0, 2.0]])).to_list() == [[0.0, 0.0]]


def test_checks_are_part_of_the_key() -> None:
    f = dn.jit(lambda x: dn.take(x, dn.tensor([0])))
    x = dn.tensor(X)
    f(x)
    with dn.checks("index"):
        f(x)
        assert f.explain()[-1] == 'the set of checks changed from none to "index"'
        f(x)
    f(x)
    info = f.cache_info()
    assert (info["hits"], info["misses"], info["size"]) == (2, 2, 2)


def test_checks_nest_and_end_with_an_exception() -> None:
    nan = dn.jit(dn.log)
    bad = dn.jit(lambda x: dn.take(x, dn.tensor([9])))
    x = dn.tensor([-1.0])
    with dn.checks("nan"):
        with dn.checks("index"):
            with pytest.raises(dn.BoundsError):
                bad(x)
            with pytest.raises(ArithmeticError):
                nan(x)
        bad(dn.abs(x))
        with pytest.raises(ZeroDivisionError), dn.checks("index"):
            raise ZeroDivisionError
        bad(dn.abs(x))
        with pytest.raises(dn.NonFiniteError):
            nan(x)
    assert np.isnan(nan(x).item())


def test_checks_are_a_context_s_own() -> None:
    bad = dn.jit(lambda x: dn.take(x, dn.tensor([9])))
    seen = []
    with dn.checks("index"):
        thread = threading.Thread(target=lambda: seen.append(bad(dn.tensor([1.0])).to_list()))
        thread.start()
        thread.join()
    assert seen == [[1.0]]


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_the_first_nan_is_named(backend) -> None:
    x = dn.tensor([1.0, -1.0], backend=backend)
    f = dn.jit(lambda x: dn.sum(dn.sqrt(x) * 2.0))
    with dn.checks("nan"):
        for call in (f, lambda x: dn.sqrt(x)):
            with pytest.raises(dn.NonFiniteError, match=r"sqrt: the result f32\[2\] has a NaN"):
                call(x)
        # Infinities are not NaN, and integers have no NaN.
        assert f(dn.abs(x)).item() == 4.0
        assert dn.log(dn.tensor(0.0)).item() == -np.inf
    assert np.isnan(f(x).item())


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_what_integers_are_not_defined_for(backend) -> None:
    x = dn.tensor([3, 4, 5], backend=backend)
    for function, wrong, want, message in (
        (dn.quotient, [1, 0, 2], [3, -1, 2], "the divisor of an integer division is zero"),
        (dn.remainder, [1, 0, 2], [0, 4, 1], "the divisor of an integer division is zero"),
        # A compiled program shifts all bits out if the count is negative.
        (dn.left_shift, [1, -1, 2], [6, 0, 20], "the number of bits to shift by is -1"),
        (dn.right_shift, [1, -2, 2], [1, 0, 1], "the number of bits to shift by is -2"),
        # A compiled program reads -1 as 2**32 - 1: 4 to this power is 0 modulo 2**32.
        (dn.pow, [1, -1, 2], [3, 0, 25], "the exponent of an integer base is -1"),
    ):
        kinds = dn.DivisionError if "divisor" in message else dn.OptionError
        message = f"{function.__name__}: {message}"
        y = dn.tensor(wrong, backend=backend)
        with pytest.raises(kinds, match=message):
            function(x, y)
        with dn.checks("index"), pytest.raises(kinds, match=message):
            dn.jit(function)(x, y)
        assert dn.jit(function)(x, y).to_list() == want
        # Operands are checked only if the result has elements.
        nothing = dn.broadcast(dn.tensor(1, backend=backend), (0, 3))
        assert function(nothing, y).shape == (0, 3)
        assert function(nothing, dn.tensor(0, backend=backend)).shape == (0, 3)


def test_the_first_of_several_wrong_integers_is_named() -> None:
    """However many threads look for them."""
    counts = np.ones(300_000, dtype="int32")
    counts[[70_000, 150_000, 290_000]] = -7, -3, -5
    x, y = dn.tensor(np.ones_like(counts)), dn.tensor(counts)
    for _ in range(20):
        with pytest.raises(dn.OptionError, match="bits to shift by is -7"):
            dn.right_shift(x, y)


def test_integers_by_zero() -> None:
    """In a compiled program the quotient has all bits set, and the remainder is the dividend."""
    for dtype, ones in (("s32", -1), ("u8", 255), ("s2", -1), ("u64", 2**64 - 1)):
        x = dn.tensor([1, 0, 1], dtype=dtype)
        y = dn.tensor([0, 0, 1], dtype=dtype)
        for function, want in ((dn.quotient, [ones, ones, 1]), (dn.remainder, [1, 0, 0])):
            with pytest.raises(dn.DivisionError, match="divisor"):
                function(x, y)
            compiled = dn.jit(function)
            assert compiled(x, y).to_list() == want
            with dn.checks("index"), pytest.raises(dn.DivisionError, match="divisor"):
                compiled(x, y)


def test_checks_reach_into_loops_and_branches() -> None:
    x = dn.tensor([1.0, 2.0])
    loop = dn.jit(lambda x: dn.for_(0.0, range(4), lambda s, i: s + dn.take(x, i)))
    assert loop(x).item() == 1.0 + 2.0 + 2.0 + 2.0
    with dn.checks("index"), pytest.raises(dn.BoundsError, match="index 2 on axis 0"):
        loop(x)


def test_sort_keeps_the_order_of_equal_elements() -> None:
    x = np.array([0.0, -0.0, np.nan, 1.0, -0.0, 0.0, -np.inf, -np.nan, np.inf], np.float32)
    for direction, places in (
        ("asc", [6, 0, 1, 4, 5, 3, 8, 2, 7]),
        ("desc", [2, 7, 8, 3, 0, 1, 4, 5, 6]),
    ):
        got = dn.sort(dn.tensor(x), direction=direction)
        assert dn.argsort(dn.tensor(x), direction=direction).to_list() == places
        assert got.to_numpy().tobytes() == x[places].tobytes()


def test_gradients_of_ties() -> None:
    """A tie of the cumulative maximum shares the gradient equally; sort permutes it back."""
    x = dn.tensor([2.0, 2.0, 1.0])
    weights = dn.tensor([1.0, 10.0, 100.0])
    gradient = dn.grad(lambda x: dn.sum(dn.cumulative_max(x) * weights))(x)
    # Result 0 is element 0; for results 1 and 2 elements 0 and 1 tie.
    assert gradient.to_list() == [1.0 + 5.0 + 50.0, 5.0 + 50.0, 0.0]
    gradient = dn.grad(lambda x: dn.sum(dn.sort(x) * weights))(x)
    assert gradient.to_list() == [10.0, 100.0, 1.0]


def test_every_put_of_one_element_has_its_gradient() -> None:
    at = dn.tensor([[0], [0]])
    x = dn.tensor([1.0, 2.0])
    grad = dn.grad(lambda x, u: dn.sum(dn.indexed_put(x, at, u) * dn.tensor([3.0, 5.0])))
    assert grad(x, dn.tensor([7.0, 8.0])).to_list() == [0.0, 5.0]
    updates = dn.grad(lambda u: dn.sum(dn.indexed_put(x, at, u) * dn.tensor([3.0, 5.0])))
    assert updates(dn.tensor([7.0, 8.0])).to_list() == [3.0, 3.0]


def test_rank_ten() -> None:
    x = dn.iota((1, 2, 1, 2, 1, 2, 1, 2, 1, 2))
    want = np.arange(32).reshape(x.shape)
    reverse = dn.tensor([1, 0])
    assert (dn.take(x, reverse, axis=5).to_numpy() == want[:, :, :, :, :, ::-1]).all()
    places = dn.gather(x, dn.tensor([[0, 1], [1, 0]]), axes=[3, 7])
    assert places.shape == (2, 1, 2, 1, 1, 2, 1, 1, 2)
    assert (places.to_numpy()[0] == want[:, :, :, 0, :, :, :, 1]).all()
    assert (dn.sort(x, axis=1, direction="desc").to_numpy() == np.flip(want, 1)).all()
    assert (dn.cumulative_sum(x, axis=3).to_numpy() == want.cumsum(3)).all()
    put = dn.indexed_put(x, dn.broadcast(0, (1, 10)), dn.tensor([-1]))
    assert put.to_numpy().reshape(-1).tolist() == [-1, *range(1, 32)]


def test_errors_of_loops_name_the_trip() -> None:
    def rows(x):
        return dn.for_(x[0], dn.range(6), lambda row, i: row + dn.slice(x, [2 * i, 0], [1, 3])[0])

    def nested(x):
        return dn.for_(x[0], dn.range(3), lambda row, i: row + rows(x) * dn.as_type(i, "f32"))

    x = np.ones((5, 3), np.float32)
    with dn.checks("index"):
        with pytest.raises(dn.BoundsError, match="start 6 on axis 0") as raised:
            dn.jit(rows)(x)
        assert "\n  in trip 3\n  at " in str(raised.value)
        with pytest.raises(dn.BoundsError, match="start 6 on axis 0") as raised:
            dn.jit(nested)(x)
        assert "\n  in trip 3 of the loop in trip 0\n  at " in str(raised.value)
