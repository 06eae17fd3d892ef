"""Generated shapes, axes, positions and values: reads, writes, sorts and scans beside NumPy's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import defn as dn
from cases.dtypes import REAL
from cases.order import ascending, descending
from support import Held

SOLID = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4)
SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4)
ORACLE = dn.backends.NumPyBackend()
EDGES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-40, 3e38, 2.5]


def counted(shape: tuple[int, ...], start: int = 0) -> np.ndarray:
    """Distinct elements, so that a wrong position is seen."""
    return np.arange(start, start + int(np.prod(shape)), dtype=np.int32).reshape(shape)


def agree(function: Callable[..., dn.Tensor], want: np.ndarray, *arrays: np.ndarray) -> None:
    """The results of the function, eager, compiled, and on NumPy's backend, are as expected."""
    held = Held(function)
    tensors = [dn.tensor(array) for array in arrays]
    others = [dn.tensor(array, backend=ORACLE) for array in arrays]
    for got in (
        function(*tensors),
        dn.jit(lambda *args: held.value(*args))(*tensors),
        function(*others),
    ):
        array = got.to_numpy()
        assert array.shape == want.shape
        assert array.tobytes() == want.astype(array.dtype).tobytes()


def indices(data: st.DataObject, shape: tuple[int, ...], size: int) -> np.ndarray:
    """Positions below a size, in one of some dtypes; no positions if the axis is empty."""
    dtype = data.draw(
        st.sampled_from([np.int8, np.int32, np.uint16, np.uint32, np.int64, np.uint64])
    )
    shape = shape if size else (0, *shape[1:])
    return data.draw(hnp.arrays(dtype, shape, elements=st.integers(0, max(size - 1, 0))))


@given(SHAPES, hnp.array_shapes(min_dims=0, max_dims=2, max_side=3), st.data())
def test_take(shape: tuple[int, ...], places: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    if not shape[axis] and not places:
        places = (1,)
    at = indices(data, places, shape[axis])
    array = counted(shape)
    agree(lambda x, i: dn.take(x, i, axis=axis), np.take(array, at, axis), array, at)
    if axis == 0 and at.ndim and at.dtype != np.uint8:
        agree(lambda x, i: x[i], array[at.astype(int)], array, at)


@given(SHAPES, st.integers(0, 4), st.data())
def test_take_along_axis(shape: tuple[int, ...], count: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    picks = list(shape)
    picks[axis] = count if shape[axis] else 0
    at = data.draw(
        hnp.arrays(np.int32, tuple(picks), elements=st.integers(0, max(shape[axis] - 1, 0)))
    )
    array = counted(shape)
    want = np.take_along_axis(array, at, axis)
    agree(lambda x, i: dn.take_along_axis(x, i, axis=axis - len(shape)), want, array, at)


@given(SOLID, st.integers(0, 5), st.data())
def test_positions(shape: tuple[int, ...], count: int, data: st.DataObject) -> None:
    axes = sorted(data.draw(st.sets(st.integers(0, len(shape) - 1))))
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    rows = [[data.draw(st.integers(0, shape[axis] - 1)) for axis in axes] for _ in range(count)]
    at = np.array(rows, dtype=np.int32).reshape(count, len(axes))
    array = counted(shape)
    front = np.moveaxis(array, axes, range(len(axes)))
    sizes = tuple(shape[axis] for axis in rest)
    read = np.stack([front[tuple(row)] for row in rows]) if rows else np.zeros((0, *sizes))
    agree(lambda x, i: dn.gather(x, i, axes=axes), read, array, at)

    lengths = tuple(data.draw(st.integers(0, size)) for size in sizes)
    updates = counted((count, *lengths), 1000)
    window = tuple(slice(0, length) for length in lengths)
    added, put = array.copy(), array.copy()
    for row, update in zip(rows, updates, strict=True):
        np.moveaxis(added, axes, range(len(axes)))[(*row, *window)] += update
        np.moveaxis(put, axes, range(len(axes)))[(*row, *window)] = update
    agree(lambda x, i, u: dn.indexed_add(x, i, u, axes=axes), added, array, at, updates)
    agree(lambda x, i, u: dn.indexed_put(x, i, u, axes=axes), put, array, at, updates)


@given(SHAPES, st.sampled_from(["f32", "f64", "s8", "u32"]), st.data())
def test_order(shape: tuple[int, ...], dtype: str, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    if dtype[0] == "f":
        elements = st.sampled_from(EDGES) | st.floats(width=32)
        array = data.draw(hnp.arrays(np.float64, shape, elements=elements))
        with np.errstate(over="ignore"):
            array = array.astype(np.float32 if dtype == "f32" else np.float64)
    else:
        array = data.draw(hnp.arrays(np.int8 if dtype == "s8" else np.uint32, shape))
    for direction, order in (("asc", ascending), ("desc", descending)):
        places = order(array, axis)
        want = np.take_along_axis(array, places, axis)
        agree(
            lambda x, d=direction: dn.argsort(x, axis=axis, direction=d),
            places.astype(np.int32),
            array,
        )
        agree(lambda x, d=direction: dn.sort(x, axis=axis, direction=d), want, array)


@given(SHAPES, st.booleans(), st.data())
def test_scans(shape: tuple[int, ...], reverse: bool, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    array = data.draw(hnp.arrays(np.int32, shape))
    for name, function in (
        ("sum", np.add),
        ("product", np.multiply),
        ("max", np.maximum),
        ("min", np.minimum),
    ):
        call = getattr(dn, f"cumulative_{name}")
        there = np.flip(array, axis) if reverse else array
        want = function.accumulate(there, axis)
        want = np.flip(want, axis) if reverse else want
        agree(lambda x, f=call: f(x, axis=axis, reverse=reverse), want, array)


@pytest.mark.parametrize("dtype", REAL)
def test_long_rows_of_few_values(dtype: str) -> None:
    """Long enough for several threads; argsort shows the order of equal elements."""
    numbers = np.random.default_rng(1).integers(0, 2, 70_000)
    x = dn.as_type(dn.tensor(numbers), dtype)
    assert (dn.argsort(x).to_numpy() == np.argsort(numbers, kind="stable")).all()
    assert (dn.argsort(x, direction="desc").to_numpy() == np.argsort(-numbers, kind="stable")).all()
    assert (dn.as_type(dn.sort(x), "s64").to_numpy() == np.sort(numbers)).all()


@pytest.mark.parametrize("size", [300, 1 << 18, (1 << 23) + 5])
@pytest.mark.parametrize("dtype", [np.int32, np.uint64])
def test_many_single_elements_are_written_in_order(size: int, dtype: type) -> None:
    """Results in the first cache, in the last one, and larger; positions beyond are skipped."""
    rng = np.random.default_rng(size)
    at = rng.integers(0, size, 100_003)
    added = rng.integers(-9, 9, at.size).astype(np.float32)
    summed, put = np.zeros(size, np.float32), np.zeros(size, np.float32)
    np.add.at(summed, at, added)
    put[at] = added
    # The compiled functions skip these.
    places = np.append(at, [size, size + 7]).astype(dtype)[:, None]
    updates = np.append(added, [1, 1]).astype(np.float32)
    base = dn.broadcast(dn.tensor(0.0), (size,))
    for function, want in ((dn.indexed_add, summed), (dn.indexed_put, put)):
        np.testing.assert_array_equal(function(base, at[:, None].astype(dtype), added), want)
        np.testing.assert_array_equal(dn.jit(function)(base, places, updates), want)
