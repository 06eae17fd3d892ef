"""Functions that rearrange elements, where rows of one result do not show what they do."""

from __future__ import annotations

import numpy as np
import pytest

import defn as dn

GRID = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)


def lists(tensors):
    return [tensor.to_list() for tensor in tensors]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_all_parts_of_a_split_are_numpys(count: int, axis: int) -> None:
    want = [part.tolist() for part in np.array_split(GRID, count, axis)]
    assert lists(dn.array_split(GRID, count, axis)) == want
    assert lists(dn.jit(lambda x: dn.array_split(x, count, axis))(GRID)) == want


@pytest.mark.parametrize("cuts", [[], [0], [2, 1], [-1], [1, 1, 3], [9, -9]])
def test_cuts_are_those_of_numpy(cuts: list[int]) -> None:
    want = [part.tolist() for part in np.array_split(GRID, cuts, 2)]
    assert lists(dn.array_split(GRID, cuts, axis=2)) == want


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unstacked_parts_stack_to_the_same(axis: int) -> None:
    parts = dn.unstack(GRID, axis)
    assert isinstance(parts, tuple)
    assert (dn.stack(parts, axis).to_numpy() == GRID).all()


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sizes", [(), (2,), (2, 3), (2, 0, 4)])
def test_grids_are_numpys(sizes: tuple[int, ...], indexing: str) -> None:
    vectors = [np.arange(size, dtype=np.int32) for size in sizes]
    want = np.meshgrid(*vectors, indexing=indexing)
    got = dn.meshgrid(*vectors, indexing=indexing)
    assert [grid.shape for grid in got] == [grid.shape for grid in want]
    assert lists(got) == [grid.tolist() for grid in want]


def test_each_tensor_keeps_its_dtype() -> None:
    pair = dn.broadcast_arrays(dn.tensor([1, 2], dtype="u8"), 0.5)
    assert [str(x.dtype) for x in pair] == ["u8", "f32"]
    pair = dn.meshgrid(dn.tensor([1, 2], dtype="u8"), dn.tensor([True]))
    assert [str(x.dtype) for x in pair] == ["u8", "bool"]
    assert dn.broadcast_arrays() == dn.meshgrid() == ()


def test_joined_tensors_are_promoted() -> None:
    small = dn.tensor([1, 2], dtype="u8")
    assert str(dn.column_stack([small, dn.tensor([1, 2], dtype="s8")]).dtype) == "s16"
    assert str(dn.dstack([small, dn.tensor([0.5, 2], dtype="f16")]).dtype) == "f16"
    # A number takes the dtype of the tensor beside it.
    assert str(dn.column_stack([dn.tensor([[1]], dtype="u8"), 3]).dtype) == "u8"


@pytest.mark.parametrize(
    ("function", "want"),
    [
        (lambda x: dn.roll(x, 1), lambda x: np.roll(x, 1)),
        (lambda x: dn.repeat(x, [1, 0, 2, 1], axis=1), lambda x: np.repeat(x, [1, 0, 2, 1], 1)),
        (lambda x: dn.rot90(x), np.rot90),
        (lambda x: dn.unstack(x, 1)[2], lambda x: x[:, 2]),
        (lambda x: dn.column_stack([x, x[:, 0]]), lambda x: np.column_stack([x, x[:, 0]])),
        (lambda x: dn.meshgrid(x[0], x[1, :2])[1], lambda x: np.meshgrid(x[0], x[1, :2])[1]),
        (lambda x: dn.trace(x, offset=1), lambda x: np.trace(x, 1)),
        (lambda x: dn.ptp(x, axes=0), lambda x: np.ptp(x, 0)),
        (lambda x: dn.count_nonzero(x, axes=1), lambda x: np.count_nonzero(x, 1)),
        (lambda x: dn.unravel_index(dn.argmax(x), x.shape)[1], lambda x: np.int64(3)),
    ],
)
def test_vectorized_axes_stay_outside(function, want) -> None:
    each = np.stack([want(matrix) for matrix in GRID])
    assert (dn.vmap(function)(GRID).to_numpy() == each).all()
    lanes = function(dn.vectorize(GRID, "lane"))
    assert (dn.devectorize(lanes).to_numpy() == each).all()


def test_counts_can_repeat_in_a_compiled_function() -> None:
    repeated = dn.jit(lambda x: dn.repeat(x, (3, 0, 1)))
    assert repeated(dn.tensor([1, 2, 3])).to_list() == [1, 1, 1, 3]
    # The gradient of an element is the sum over its copies.
    slope = dn.grad(lambda x: dn.sum(dn.repeat(x, (3, 0, 1)) * dn.tensor([1.0, 2.0, 4.0, 8.0])))
    assert slope(dn.tensor([1.0, 2.0, 3.0])).to_list() == [7.0, 0.0, 8.0]


def test_a_triangle_selects_and_fills() -> None:
    x = dn.tensor(GRID[0, :, :3])
    assert x[dn.tril_indices(3)].to_list() == GRID[0, :, :3][np.tril_indices(3)].tolist()
    upper = dn.jit(lambda x: x[dn.triu_indices(3, offset=1)])
    assert upper(x).to_list() == GRID[0, :, :3][np.triu_indices(3, 1)].tolist()


@pytest.mark.parametrize("dtype", ["s8", "s32", "s64", "u8", "u32", "u64"])
@pytest.mark.parametrize("shape", [(6,), (2, 3), (1, 6, 1), (3, 1, 2)])
def test_positions_are_unravelled_in_every_integer_dtype(shape, dtype: str) -> None:
    at = np.arange(6).reshape(2, 3)
    got = dn.unravel_index(dn.tensor(at).as_type(dtype), shape)
    assert lists(got) == [entry.tolist() for entry in np.unravel_index(at, shape)]
    assert {str(entry.dtype) for entry in got} == {"s32"}


def test_a_narrow_dtype_counts_in_a_large_shape() -> None:
    index = dn.tensor([255], dtype="u8")
    assert lists(dn.unravel_index(index, (1000, 2))) == [[127], [1]]
    index = dn.tensor([3 * 10**9 + 7], dtype="s64")
    got = dn.unravel_index(index, (10**5, 10**5))
    assert lists(got) == [[30000], [7]]
    assert {str(entry.dtype) for entry in got} == {"s64"}


@pytest.mark.parametrize("index", [6, -7, 100, -(2**31)])
def test_a_position_out_of_range_raises_or_is_moved(index: int) -> None:
    unravel = dn.jit(lambda i: dn.unravel_index(i, (2, 3)))
    with pytest.raises(dn.BoundsError, match="unravel_index: index"):
        dn.unravel_index(dn.tensor([0, index]), (2, 3))
    nearest = [1, 2] if index > 0 else [0, 0]
    assert [int(entry) for entry in unravel(dn.tensor(index))] == nearest
    with dn.checks("index"), pytest.raises(dn.BoundsError):
        dn.jit(lambda i: dn.unravel_index(i, (2, 3)))(dn.tensor(index))


def test_a_shape_without_axes_has_one_position() -> None:
    assert dn.unravel_index(0, ()) == ()
    with pytest.raises(dn.BoundsError, match=r"must be in -1\.\.1"):
        dn.unravel_index(1, ())
    assert [x.shape for x in dn.unravel_index(dn.iota((0,)), (0, 3))] == [(0,), (0,)]


def test_ranges_and_counts_at_the_ends() -> None:
    assert dn.ptp(dn.tensor([-128, 127], dtype="s8")).item() == -1
    assert np.isnan(dn.ptp(dn.tensor([1.0, np.nan])).item())
    assert dn.ptp(dn.tensor([-np.inf, np.inf])).item() == np.inf
    assert dn.count_nonzero(dn.tensor([np.nan, -0.0, np.inf, 0.0])).item() == 2
    assert dn.count_nonzero(dn.tensor([0j, 1j, -0.0 + 0j])).item() == 1
    assert dn.count_nonzero(dn.iota((0, 3))).item() == 0
    assert str(dn.trace(dn.tensor([[True, False], [True, True]])).dtype) == "s32"


def test_the_methods_are_the_functions() -> None:
    x = dn.tensor(GRID, names=["a", "b", "c"])
    assert x.moveaxis("c", 0).names == ("c", "a", "b")
    assert x.roll(1, axis="b").names == ("a", "b", "c")
    assert x.repeat(2, axis="b").shape == (2, 6, 4)
    assert x.trace().names == ("a",)
    assert x.ptp("c").names == ("a", "b")
    assert len(x.unstack("b")) == len(x.array_split(3, "b")) == 3
