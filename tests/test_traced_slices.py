"""``x[i:i + 2]``: slices that begin at a traced position and have a length that is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import defn as dn

X = np.arange(20.0).reshape(10, 2)

# The slice, and where it begins and ends for i = 3. Each begins inside, and ends inside.
SLICES = {
    "i:i + 2": (lambda i: slice(i, i + 2), slice(3, 5)),
    "i - 1:i + 2": (lambda i: slice(i - 1, i + 2), slice(2, 5)),
    "i * 2:i * 2 + 3": (lambda i: slice(i * 2, i * 2 + 3), slice(6, 9)),
    "2 * i:2 + i + i": (lambda i: slice(2 * i, 2 + i + i), slice(6, 8)),
    "(i + 1) * 2:(i + 2) * 2": (lambda i: slice((i + 1) * 2, (i + 2) * 2), slice(8, 10)),
    "5 - i:8 - i": (lambda i: slice(5 - i, 8 - i), slice(2, 5)),
    "-i:-i + 2": (lambda i: slice(-i, -i + 2), slice(7, 9)),
    "i // 2:i // 2 + 4": (lambda i: slice(i // 2, i // 2 + 4), slice(1, 5)),
    "i % 7 * 2:(i % 7 + 1) * 2": (
        lambda i: slice(i % 7 * 2, (i % 7 + 1) * 2),
        slice(6, 8),
    ),
    "i:i + 5:2": (lambda i: slice(i, i + 5, 2), slice(3, 8, 2)),
    "i:i + 6:4": (lambda i: slice(i, i + 6, 4), slice(3, 9, 4)),
    "i + 4:i:-1": (lambda i: slice(i + 4, i, -1), slice(7, 3, -1)),
    "i + 5:i:-2": (lambda i: slice(i + 5, i, -2), slice(8, 3, -2)),
    "i:i": (lambda i: slice(i, i), slice(3, 3)),
    "i:i - 2": (lambda i: slice(i, i - 2), slice(3, 1)),
    "i:i + 3:-1": (lambda i: slice(i, i + 3, -1), slice(3, 6, -1)),
    "s64": (lambda i: slice(dn.as_type(i, "s64"), dn.as_type(i, "s64") + 2), slice(3, 5)),
}
WAYS = [dn.jit, lambda f: dn.jit(f, compiler="evaluator"), dn.defn]


@pytest.mark.parametrize("name", SLICES)
@pytest.mark.parametrize("way", WAYS, ids=["jit", "evaluator", "defn"])
def test_slices_of_a_known_length(name: str, way: Any) -> None:
    index, known = SLICES[name]
    for i in (3, dn.tensor(3), np.int32(3)):
        got = way(lambda x, i: x[index(i)])(X, i)
        np.testing.assert_array_equal(got.to_numpy(), X[known])
    both = way(lambda x, i: x[index(i), i - 2])(X, 3)
    np.testing.assert_array_equal(both.to_numpy(), X[known, 1])
    put = way(lambda x, i: x.at[index(i)].set(-1.0))(X, 3)
    want = X.copy()
    want[known] = -1.0
    np.testing.assert_array_equal(put.to_numpy(), want)


@pytest.mark.parametrize("name", SLICES)
def test_gradients(name: str) -> None:
    index, known = SLICES[name]
    weights = np.sin(np.arange(X[known].size)).reshape(X[known].shape)
    grad = dn.grad(lambda x: dn.sum(x[index(dn.as_type(x[3, 0] / 2, "s32"))] * weights))(X)
    want = np.zeros_like(X)
    want[known] = weights
    np.testing.assert_array_equal(grad.to_numpy(), want)


def test_in_loops() -> None:
    """The loop's variable, and a number from around the loop."""

    @dn.defn
    def windows(x: Any, width: Any) -> Any:
        total = dn.broadcast(dn.f64(0.0), (3, 2))
        for i in dn.range(4):
            total = total + x[i + width : width + i + 3]
        return total

    got = windows(X, 2)
    np.testing.assert_array_equal(got.to_numpy(), sum(X[i + 2 : i + 5] for i in range(4)))
    inside = dn.jit(
        lambda x, i: dn.if_(x[0, 0] < 1, lambda: x[i : i + 2], lambda: x[i + 1 : (i + 2) + 1])
    )
    np.testing.assert_array_equal(inside(X, 4).to_numpy(), X[4:6])
    np.testing.assert_array_equal(inside(X + 1, 4).to_numpy(), X[5:7] + 1)


def test_vmap() -> None:
    got = dn.vmap(lambda i: dn.tensor(X)[i : i + 2])(np.array([0, 3, 8]))
    np.testing.assert_array_equal(got.to_numpy(), np.stack([X[0:2], X[3:5], X[8:10]]))
    put = dn.vmap(lambda i: dn.tensor(X).at[i : i + 2, 0].add(1.0))(np.array([0, 8]))
    uneven = np.array([1, 2])
    with pytest.raises(dn.TraceError, match="the number of elements must be known"):
        dn.vmap(lambda i, n: dn.tensor(X)[i : i + n])(uneven, uneven)
    for at, i in enumerate((0, 8)):
        want = X.copy()
        want[i : i + 2, 0] += 1.0
        np.testing.assert_array_equal(put[at].to_numpy(), want)


def test_a_window_out_of_range_is_moved_inside() -> None:
    f = dn.jit(lambda x, i: x[i : i + 4])
    np.testing.assert_array_equal(f(X, 8).to_numpy(), X[6:])
    with dn.checks("index"), pytest.raises(dn.BoundsError, match="start 8 on axis 0"):
        f(X, 8)


REFUSED = {
    "i:": lambda i, j: slice(i, None),
    ":i": lambda i, j: slice(None, i),
    "0:i": lambda i, j: slice(0, i),
    "i:4": lambda i, j: slice(i, 4),
    "i:j": lambda i, j: slice(i, j),
    "i:2 * i": lambda i, j: slice(i, 2 * i),
    "i:i * j": lambda i, j: slice(i, i * j),
    "i:i + j": lambda i, j: slice(i, i + j),
    "narrowed": lambda i, j: slice(i, dn.as_type(dn.as_type(i, "s8"), "s32") + 2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_lengths_that_are_unknown_are_refused(name: str) -> None:
    with pytest.raises(dn.TraceError) as error:
        dn.jit(lambda x, i, j: x[:, REFUSED[name](i, j)])(X, dn.tensor(1), dn.tensor(2))
    bound = "stop" if name in (":i", "0:i") else "start"
    assert str(error.value).splitlines()[0] == (
        f"index: the {bound} of a slice along axis 1 of f64[10][2] is a traced s32, the number of "
        "elements must be known, as in x[i:i + 2]; use dn.slice_along_axis(x, start, length, axis),"
        " or keep all elements and mask them with dn.select(mask, x, 0)"
    )


def test_more_elements_than_the_axis_has() -> None:
    with pytest.raises(dn.BoundsError) as error:
        dn.jit(lambda x, i: x[i : i + 11])(X, 0)
    assert str(error.value).splitlines()[0] == (
        "index: a slice of 11 elements along axis 0 of f64[10][2], at most 10 are possible"
    )


def test_what_is_left_of_long_chains() -> None:
    def chained(x: Any, i: Any) -> Any:
        start = i
        for _ in range(40):
            start = start + start
        stop = i
        for _ in range(40):
            stop = stop * 2
        return x[start : start + 1], x[start : stop + 2]

    one, two = dn.jit(chained)(X, dn.tensor(0))
    np.testing.assert_array_equal(one.to_numpy(), X[:1])
    np.testing.assert_array_equal(two.to_numpy(), X[:2])
