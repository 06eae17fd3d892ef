"""Positions that count from the end, and positions beyond the axis: every op, run in every way.

The oracle is NumPy's own indexing. A row describes an op at one position along an axis. The tests
run each row at positions below zero and at positions beyond both ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

import defn as dn
from support import needs_plugin, on_xla

X = np.arange(12, dtype=np.float32).reshape(4, 3)
SIZE = 4


class Row(NamedTuple):
    """An op at one position along the first axis of ``X``, and the same with NumPy.

    A window of ``length`` elements begins at the position. Beyond the axis, a compiled
    program clamps the positions of reads and windows (``moved``), and drops other writes.
    """

    name: str
    call: Callable[[dn.Tensor, object], dn.Tensor]
    numpy: Callable[[np.ndarray, int], np.ndarray]
    length: int = 1
    moved: bool = True
    static: bool = True


def put(value: float) -> Callable[[np.ndarray, int], np.ndarray]:
    def oracle(x: np.ndarray, at: int) -> np.ndarray:
        out = x.copy()
        out[at] = value
        return out

    return oracle


def put_window(x: np.ndarray, at: int) -> np.ndarray:
    out = x.copy()
    out[at : at + 2, 1:] = -1
    return out


def added(x: np.ndarray, at: int) -> np.ndarray:
    out = x.copy()
    out[at] += 1
    return out


def column(at: object) -> dn.Tensor:
    return dn.new_axis(dn.stack([at]), -1)


ONES = np.ones((1, 3), np.float32)
ROWS = [
    Row("index", lambda x, at: x[at], lambda x, at: x[at]),
    Row("index beside", lambda x, at: x[at, 1:], lambda x, at: x[at, 1:]),
    Row("slice_along_axis", lambda x, at: dn.slice_along_axis(x, at, 1), lambda x, at: x[[at]]),
    Row(
        "slice_along_axis of two",
        lambda x, at: dn.slice_along_axis(x, at, 2, axis=0),
        lambda x, at: x[[at, at + 1]],
        length=2,
    ),
    Row(
        "put_slice",
        lambda x, at: dn.put_slice(x, [at, 1], dn.broadcast(-1.0, (2, 2))),
        lambda x, at: put_window(x, at % SIZE),
        length=2,
    ),
    Row("take", lambda x, at: dn.take(x, at), lambda x, at: x[at], static=False),
    Row(
        "index by a list",
        lambda x, at: x[dn.stack([at, at])],
        lambda x, at: x[[at, at]],
        static=False,
    ),
    Row(
        "take_along_axis",
        lambda x, at: dn.take_along_axis(x, dn.broadcast(at, (1, 3))),
        lambda x, at: x[[at]],
        static=False,
    ),
    Row("gather", lambda x, at: dn.gather(x, column(at)), lambda x, at: x[[at]], static=False),
    Row(
        "gather of entries",
        lambda x, at: dn.gather(x, dn.reshape(dn.stack([at, dn.as_type(1, at.dtype)]), (1, 2))),
        lambda x, at: x[[at], [1]],
        static=False,
    ),
    Row(
        "indexed_add",
        lambda x, at: dn.indexed_add(x, column(at), ONES),
        added,
        moved=False,
        static=False,
    ),
    Row(
        "indexed_put",
        lambda x, at: dn.indexed_put(x, column(at), -ONES),
        put(-1.0),
        moved=False,
        static=False,
    ),
]
NEGATIVE = [-1, -2, -SIZE]
BEYOND = [SIZE, SIZE + 3, -SIZE - 1, -100]
WAYS = ["eager", "cpu", "evaluator", pytest.param("pjrt", marks=needs_plugin)]


def run(row: Row, way: str, at: int, how: str, dtype: str = "s32") -> dn.Tensor:
    x = dn.tensor(X)

    def call(x: dn.Tensor, position: dn.Tensor) -> dn.Tensor:
        return row.call(x, at if how == "static" else position)

    position = dn.tensor(at, dtype=dtype)
    return call(x, position) if way == "eager" else dn.jit(call, compiler=way)(x, position)


def cases() -> list[tuple[Row, str]]:
    return [
        (row, how) for row in ROWS for how in ("dynamic", "static") if how != "static" or row.static
    ]


IDS = [f"{row.name}-{how}" for row, how in cases()]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("row", "how"), cases(), ids=IDS)
def test_negative_positions_count_from_the_end(row: Row, how: str, way: str) -> None:
    for at in NEGATIVE:
        if at + row.length > 0:
            continue
        want = row.numpy(X, at)
        got = run(row, way, at, how)
        assert got.shape == want.shape
        assert (got.to_numpy() == want).all(), at


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("row", "how"), cases(), ids=IDS)
def test_beyond_the_axis(row: Row, how: str, way: str) -> None:
    """An eager op on the host raises. A compiled program clamps or drops, unless checks are on."""
    last = SIZE - row.length
    for at in BEYOND:
        refused = how == "static" and row.name.startswith("index")
        if refused or (way == "eager" and not on_xla()):
            with pytest.raises(IndexError, match=str(at)):
                run(row, way, at, how)
            continue
        nearest = row.numpy(X, min(max(at, 0), last)) if row.moved else X
        assert (run(row, way, at, how).to_numpy() == nearest).all(), at


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("row", "how"), cases(), ids=IDS)
def test_beyond_the_axis_where_it_is_looked_for(row: Row, how: str, way: str) -> None:
    with dn.checks("index"):
        for at in BEYOND:
            with pytest.raises(dn.BoundsError, match=str(at)):
                run(row, way, at, how)
        at = -row.length
        assert (run(row, way, at, how).to_numpy() == row.numpy(X, at)).all()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", ["dynamic", "static"])
def test_slice_moves_its_window(how: str, way: str) -> None:
    """As in Nx, a start below zero is clamped to zero, also in an eager op."""
    row = Row("slice", lambda x, at: dn.slice(x, [at, 0], [2, 3]), lambda x, at: x[at : at + 2], 2)
    for at in (-1, -4, -100, 3, 100):
        want = X[min(max(at, 0), 2) :][:2]
        assert (run(row, way, at, how).to_numpy() == want).all(), at
        with dn.checks("index"), pytest.raises(dn.BoundsError, match=f"start {at} on axis 0"):
            run(row, way, at, how)
    assert (run(row, way, 1, how).to_numpy() == X[1:3]).all()


def test_what_errors_say() -> None:
    x = dn.tensor(X)
    for call, text in (
        (lambda: x[dn.tensor(7)], "slice: start 7 on axis 0 of f32[4][3], it must be in -4..4"),
        (lambda: dn.take(x, -5), "take: index -5 on axis 0 of f32[4][3], it must be in -4..4"),
        (
            lambda: dn.put_slice(x, [3, 0], x[:2]),
            "put_slice: start 3 on axis 0 of f32[4][3], it must be in 0..3 or -4..-1 for a window "
            "of 2 elements",
        ),
    ):
        with dn.checks("index"), pytest.raises(dn.BoundsError) as caught:
            call()
        assert str(caught.value).splitlines()[0] == text


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["s8", "s16", "s64", "u8", "u32", "u64"])
def test_narrow_and_unsigned_positions(dtype: str, way: str) -> None:
    """The size is added in a dtype that holds the sum; unsigned positions are never below zero."""
    long = np.arange(200, dtype=np.float32)
    values = [0, 5, 127] if dtype[0] == "u" else [-1, -100, -128, 5]
    if dtype == "u8":
        values.append(199)
    at = dn.tensor(values, dtype=dtype)
    x = dn.tensor(long)
    calls = [
        lambda x, at: dn.take(x, at),
        lambda x, at: dn.take_along_axis(x, at),
        lambda x, at: dn.gather(x, dn.new_axis(at, -1)),
        lambda x, at: dn.stack([dn.slice_along_axis(x, at[k], 1)[0] for k in range(len(values))]),
    ]
    for call in calls:
        got = call(x, at) if way == "eager" else dn.jit(call, compiler=way)(x, at)
        assert got.to_list() == long[values].tolist()

    def write(x: dn.Tensor, at: dn.Tensor) -> dn.Tensor:
        return dn.indexed_put(x, dn.new_axis(at, -1), dn.broadcast(-1.0, (len(values),)))

    got = write(x, at) if way == "eager" else dn.jit(write, compiler=way)(x, at)
    want = long.copy()
    want[values] = -1
    assert got.to_list() == want.tolist()


@pytest.mark.parametrize("way", ["cpu", "evaluator", pytest.param("pjrt", marks=needs_plugin)])
def test_the_greatest_unsigned_position_is_beyond(way: str) -> None:
    """Merged with signed positions it would be negative, and count from the end."""
    x = dn.tensor(X)
    at = dn.tensor(2**64 - 2, dtype="u64")
    f = dn.jit(lambda x, at, k: dn.put_slice(x, [at, k], dn.broadcast(-1.0, (1, 1))), compiler=way)
    want = X.copy()
    want[3, 2] = -1
    assert (f(x, at, dn.tensor(-1)).to_numpy() == want).all()
    g = dn.jit(lambda x, at, k: x[at, k], compiler=way)
    assert g(x, at, dn.tensor(-1)).item() == X[3, 2]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("row", [row for row in ROWS if row.length == 1], ids=lambda row: row.name)
def test_gradients_through_negative_positions(row: Row, way: str) -> None:
    """They equal those of the same position counted from the front."""
    weights = dn.tensor(np.linspace(1, 2, row.numpy(X, 0).size, dtype=np.float32))

    def loss(x: dn.Tensor, at: dn.Tensor) -> dn.Tensor:
        return dn.sum(dn.flatten(row.call(x, at)) * weights)

    grad = dn.grad(loss)
    if way != "eager":
        grad = dn.jit(grad, compiler=way)
    for at in NEGATIVE:
        got = grad(dn.tensor(X), dn.tensor(at)).to_numpy()
        # Each op is linear in ``x``, so that NumPy's loss at unit arrays is its gradient.
        want = np.zeros_like(X)
        zero = row.numpy(np.zeros_like(X), at)
        for place in np.ndindex(*X.shape):
            unit = np.zeros_like(X)
            unit[place] = 1
            want[place] = ((row.numpy(unit, at) - zero).reshape(-1) * weights.to_numpy()).sum()
        assert np.allclose(got, want), at


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_vectorized_positions(row: Row, way: str) -> None:
    places = [at for at in (-1, -SIZE, 1, -2) if at >= 0 or at + row.length <= 0]

    def call(x: dn.Tensor, at: dn.Tensor) -> dn.Tensor:
        each = row.call(x, dn.vectorize(at, "each"))
        return dn.devectorize(each, keep_names=False)

    at = dn.tensor(places)
    got = call(dn.tensor(X), at) if way == "eager" else dn.jit(call, compiler=way)(dn.tensor(X), at)
    want = np.stack([row.numpy(X, place % SIZE) for place in places])
    assert (got.to_numpy() == want).all()
    mapped = dn.vmap(row.call, in_axes=(None, 0))(dn.tensor(X), at)
    assert (mapped.to_numpy() == want).all()
