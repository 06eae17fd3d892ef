"""``x[index]`` as in NumPy: integers in tensors, arrays and lists, masks, and mixtures of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import defn as dn
from indices import as_lists, as_tensors, indices, selected_by_numpy, split
from support import on_xla

SHAPES = ((4,), (3, 4), (2, 3, 4), (3, 2, 2, 3))
CUBE = np.arange(24.0).reshape(2, 3, 4)


def numbers(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(1.0, np.prod(shape) + 1).reshape(shape)


@settings(max_examples=200)
@given(st.data())
def test_indices_are_numpys(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    index = data.draw(indices(shape))
    x = numbers(shape)
    want = selected_by_numpy(x, index)
    for form in (index, as_lists(index), as_tensors(index)):
        got = dn.tensor(x)[form]
        assert got.shape == want.shape, form
        np.testing.assert_array_equal(got.to_numpy(), want)


@settings(max_examples=60)
@given(st.data())
def test_traced_indices_are_numpys(data: st.DataObject) -> None:
    """Integers are arguments of a definition; so is what is read, and its gradient is checked."""
    shape = data.draw(st.sampled_from(SHAPES))
    index = data.draw(indices(shape, ("basic", "array")))
    x = numbers(shape)
    want = selected_by_numpy(x, index)
    leaves, joined = split(index)

    @dn.defn
    def read(x: Any, leaves: Any) -> Any:
        return x[joined(leaves)]

    got = read(x, leaves)
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.to_numpy(), want)
    weights = np.cos(np.arange(want.size)).reshape(want.shape)
    added = np.zeros(shape)
    np.add.at(added, index, weights)
    grad = dn.grad(lambda x: dn.sum(read(x, leaves) * weights))(dn.tensor(x))
    np.testing.assert_allclose(grad.to_numpy(), added, rtol=1e-12)


ROW, COLUMN = np.array([1, 0, 1]), np.array([[2], [0]])


@pytest.mark.parametrize(
    "index",
    [
        (slice(None), ROW),
        (ROW, ROW),
        (ROW, slice(None), COLUMN),
        (slice(None), ROW, COLUMN),
        (0, slice(None), ROW),
        (slice(None), 0, ROW),
        (ROW, None, ROW),
        (None, ROW, ROW, slice(1, 3)),
        (..., COLUMN),
        (ROW, ..., COLUMN),
        (slice(None), ROW, ..., COLUMN),
        (ROW[:0],),
        (slice(None, None, -1), ROW),
    ],
)
def test_axes_of_positions_stand_as_in_numpy(index: tuple[Any, ...]) -> None:
    want = CUBE[index]
    assert want.shape == dn.tensor(CUBE)[as_tensors(index)].shape
    for run in (lambda f: f, dn.jit):
        got = run(lambda x: x[as_tensors(index)])(dn.tensor(CUBE))
        np.testing.assert_array_equal(got.to_numpy(), want)


def test_an_empty_list_selects_nothing() -> None:
    assert dn.tensor(CUBE)[[]].shape == (0, 3, 4)
    assert dn.tensor(CUBE)[:, []].shape == (2, 0, 4)


def test_names() -> None:
    x = dn.tensor(CUBE, names=["a", "b", "c"])
    at = dn.tensor([1, 0])
    assert x[at].names == ("a", "b", "c")
    assert x[:, at].names == ("a", "b", "c")
    assert x[:, dn.tensor([[1, 0]], names=["p", None])].names == ("a", "p", None, "c")
    assert x[at, at].names == (None, "c")
    assert x[dn.tensor([1, 0], names=["p"]), :, at].names == ("p", "b")
    assert x[{"c": at}].names == ("a", "b", "c")
    # The axes of an index by name stay in their order. NumPy's index [0, :, at] moves them.
    assert x[{"c": at, "a": 0}].names == ("b", "c")
    assert x[{"c": at, "a": at}].names == (None, "b")
    with pytest.raises(dn.AxisError):
        x[:, dn.tensor([1, 0], names=["p"])]


def test_masks_and_positions() -> None:
    x, mask = dn.tensor(CUBE), np.array([True, False, True])
    for index in ((ROW[:2], mask), (0, slice(None), [True, False, True, True]), (mask[:2], mask)):
        np.testing.assert_array_equal(x[index].to_numpy(), CUBE[index])
    picked = {"got": x[{1: dn.tensor(mask), 2: [0, 1]}], "want": CUBE[:, mask, [0, 1]]}
    np.testing.assert_array_equal(picked["got"].to_numpy(), picked["want"])
    square = CUBE[0] > 5
    np.testing.assert_array_equal(x[{1: square}].to_numpy(), CUBE[:, square])


def test_a_mask_that_is_known_selects_in_a_definition() -> None:
    mask = CUBE[:, :, 0] > 3
    got = dn.jit(lambda x: x[mask])(CUBE)
    np.testing.assert_array_equal(got.to_numpy(), CUBE[mask])
    assert dn.jit(lambda x: x[:, [True, False, True]])(CUBE).shape == (2, 2, 4)


def test_positions_may_be_vectorized() -> None:
    at = np.array([[0, 2], [1, 1], [2, 0]])
    rows = np.array([1, 0, 1])
    got = dn.vmap(lambda at, row: dn.tensor(CUBE)[row, at])(at, rows)
    np.testing.assert_array_equal(got.to_numpy(), CUBE[rows[:, None], at])
    both = dn.vmap(lambda x, at: x[:, at, at])(np.stack([CUBE, CUBE + 1, CUBE + 2]), at)
    want = [CUBE[:, at[0], at[0]], CUBE[:, at[1], at[1]] + 1, CUBE[:, at[2], at[2]] + 2]
    np.testing.assert_array_equal(both.to_numpy(), np.stack(want))


def test_known_positions_out_of_range_raise_while_tracing() -> None:
    for index, position, axis in (
        ((slice(None), [0, 3]), 3, 1),
        ((slice(None), np.array([-4, 0])), -4, 1),
        (([[0], [2]], 0), 2, 0),
        ([0, 2**40], 2**40, 0),
    ):
        with pytest.raises(dn.BoundsError) as error:
            dn.jit(lambda x, index=index: x[index])(CUBE)
        size = CUBE.shape[axis]
        assert str(error.value).splitlines()[0] == (
            f"index: {position} is out of range for axis {axis} of f64[2][3][4], "
            f"it must be in {-size}..{size}"
        )


def test_positions_out_of_range() -> None:
    x, at = dn.tensor(CUBE), dn.tensor([0, 7])
    if not on_xla():
        with pytest.raises(dn.BoundsError, match="index 7 on axis 1"):
            x[:, at]
        with pytest.raises(dn.BoundsError, match=r"index 7 on axis 1 of f64\[3\]\[4\]"):
            x[0, at * 0, at]
    read = dn.jit(lambda x, at: (x[:, at], x[0, at * 0, at]))
    clamped = read(x, at)
    np.testing.assert_array_equal(clamped[0].to_numpy(), CUBE[:, [0, 2]])
    np.testing.assert_array_equal(clamped[1].to_numpy(), CUBE[0, 0, [0, 3]])
    with dn.checks("index"), pytest.raises(dn.BoundsError, match="index 7 on axis"):
        dn.jit(lambda x, at: x[0, at * 0, at])(x, at)
    # The greatest u64 does not become -1 beside other dtypes.
    greatest = dn.tensor([0, 2**64 - 1], dtype="u64")
    read = dn.jit(lambda x, at, far: x[0, at, far])
    np.testing.assert_array_equal(read(x, at * 0, greatest).to_numpy(), CUBE[0, 0, [0, 3]])
    with dn.checks("index"), pytest.raises(dn.BoundsError):
        read(x, at * 0, greatest)
