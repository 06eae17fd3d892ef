"""``x.at[index]``: values and gradients as in NumPy and JAX, dtypes, names, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import defn as dn
from indices import as_lists, as_tensors, indices, is_mask, selected_by_numpy, split
from support import on_xla

SHAPES = ((), (4,), (3, 4), (2, 3, 4))
METHODS = {
    "set": lambda x, index, value: x.__setitem__(index, value),
    "add": np.add.at,
    "multiply": np.multiply.at,
    "max": np.maximum.at,
    "min": np.minimum.at,
}


def numbers(shape: tuple[int, ...], start: float = 0.0) -> np.ndarray:
    """Numbers in no order, no two of them equal."""
    return np.sin(np.arange(start, start + np.prod(shape))).reshape(shape)


def changed(method: str, x: np.ndarray, index: Any, value: Any) -> np.ndarray:
    """NumPy's array after it was changed in place."""
    out = x.copy()
    # A view has the window's shape, and NumPy's ufuncs take it where they refuse the index.
    if all(isinstance(entry, slice | int | type(...)) or entry is None for entry in index):
        METHODS[method](out[(*index, ...) if ... not in index else index], ..., value)
    else:
        # NumPy's `at` leaves out updates of which one value serves several.
        METHODS[method](out, index, np.broadcast_to(value, x[index].shape).copy())
    return out


@st.composite
def values(draw: st.DrawFn, shape: tuple[int, ...]) -> np.ndarray:
    """A value that broadcasts to a shape."""
    sizes = [draw(st.sampled_from([size, 1])) for size in shape[draw(st.integers(0, len(shape))) :]]
    return numbers(tuple(sizes), 100.0)


@settings(max_examples=300)
@given(st.data())
def test_values_are_numpys(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    index = (
        data.draw(indices(shape)) if shape else data.draw(st.sampled_from([(), (...,), (None,)]))
    )
    x = numbers(shape)
    selected = selected_by_numpy(x, index)
    value = data.draw(values(selected.shape))
    method = data.draw(st.sampled_from(sorted(METHODS)))
    want = changed(method, x, index, value)
    for form in (index, as_lists(index), as_tensors(index)):
        got = getattr(dn.tensor(x).at[form], method)(value)
        np.testing.assert_allclose(got.to_numpy(), want, rtol=1e-14, err_msg=f"{method} {form}")


@settings(max_examples=100)
@given(st.data())
def test_traced_values_are_numpys(data: st.DataObject) -> None:
    """All integers are arguments of a definition."""
    shape = data.draw(st.sampled_from(SHAPES[1:]))
    index = data.draw(indices(shape, ("basic", "array")))
    x = numbers(shape)
    selected = selected_by_numpy(x, index)
    value = data.draw(values(selected.shape))
    leaves, joined = split(index)
    method = data.draw(st.sampled_from(sorted(METHODS)))

    @dn.jit
    def update(x: Any, leaves: Any, value: Any) -> Any:
        return getattr(x.at[joined(leaves)], method)(value)

    want = changed(method, x, index, value)
    got = update(x, leaves, value)
    np.testing.assert_allclose(got.to_numpy(), want, rtol=1e-14)


def is_unique(x: np.ndarray, index: Any) -> bool:
    places = np.arange(x.size).reshape(x.shape)[index]
    return np.unique(places).size == places.size


@given(st.data())
def test_gradients_are_those_of_jax(data: st.DataObject) -> None:
    import jax

    shape = data.draw(st.sampled_from(SHAPES[1:]))
    index = data.draw(indices(shape))
    x = numbers(shape)
    selected = selected_by_numpy(x, index)
    value = data.draw(values(selected.shape))
    unique = is_unique(x, index)
    method = data.draw(st.sampled_from(sorted(METHODS) if unique else ["add"]))
    weights = np.cos(np.arange(x.size)).reshape(shape)

    def ours(x: Any, value: Any) -> Any:
        return dn.sum(getattr(x.at[index], method)(value) * weights)

    def theirs(x: Any, value: Any) -> Any:
        update = getattr(x.at[index], method)
        return (update(value, unique_indices=unique) * weights).sum()

    with jax.enable_x64(True):
        want = jax.grad(theirs, argnums=(0, 1))(x, value)
    got = dn.grad(ours, argnums=(0, 1))(x, value)
    for mine, other in zip(got, want, strict=True):
        np.testing.assert_allclose(mine.to_numpy(), other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("method", ["multiply", "max", "min"])
def test_gradients_of_several_values_of_one_element(method: str) -> None:
    """The oracle changes one element after the other."""
    import jax

    x, value, places = numbers((4, 3)), numbers((6, 3), 50.0), [1, 3, 1, 1, 0, -1]
    weights = np.cos(np.arange(x.size)).reshape(x.shape)

    def theirs(x: Any, value: Any) -> Any:
        for at, place in enumerate(places):
            x = getattr(x.at[place], method)(value[at])
        return (x * weights).sum()

    def ours(x: Any, value: Any) -> Any:
        return dn.sum(getattr(x.at[places], method)(value) * weights)

    with jax.enable_x64(True):
        want = jax.grad(theirs, argnums=(0, 1))(x, value)
    got = dn.grad(ours, argnums=(0, 1))(x, value)
    for mine, other in zip(got, want, strict=True):
        np.testing.assert_allclose(mine.to_numpy(), other, rtol=1e-12)


X = np.arange(12.0).reshape(3, 4)


def test_a_traced_mask_is_a_select() -> None:
    for mask in (X > 5, X[:, 0] > 3):
        update = dn.jit(lambda x, mask, value: (x.at[mask].set(value), x.at[mask].add(value)))
        for value in (7.0, np.array([7.0])):
            put, added = update(X, mask, value)
            np.testing.assert_array_equal(put.to_numpy(), np.where(mask.T, value, X.T).T)
            np.testing.assert_array_equal(added.to_numpy(), np.where(mask.T, X.T + value, X.T).T)
    row = np.array([1.0, 2.0, 3.0, 4.0])
    rows = dn.jit(lambda x, mask, value: x.at[mask].set(value))(X, X[:, 0] > 3, row)
    np.testing.assert_array_equal(rows.to_numpy(), np.where((X[:, 0] > 3)[:, None], row, X))
    part = dn.jit(lambda x, mask, i: x.at[1:, mask, ...].set(-1.0).at[i, mask].add(1.0))
    want = X.copy()
    want[1:, row > 2] = -1.0
    want[2, row > 2] += 1.0
    np.testing.assert_array_equal(part(X, row > 2, 2).to_numpy(), want)
    text = dn.graph.to_text(dn.debug_expr(lambda x: x.at[x > 5].set(0.0))(X))
    assert "select" in text
    assert "indexed_put" not in text


def test_a_slice_is_written_as_a_slice() -> None:
    """In a loop it is written in place: no other operation copies what is not changed."""
    text = dn.graph.to_text(dn.debug_expr(lambda x, i: x.at[i, 1:3].set(0.0))(X, 1))
    assert "put_slice" in text
    assert not any(name in text for name in ("indexed_put", "select", "gather"))


def test_dtypes() -> None:
    x = dn.tensor([1, 2, 3])
    assert x.at[0].set(5).dtype == "s32"
    assert x.at[0].set(0.5).to_list() == [0.5, 2.0, 3.0]
    assert x.at[0].set(dn.s64(5)).dtype == dn.put_slice(x, [0], dn.s64(5)).dtype == "s64"
    assert x.at[[0, 1]].add(dn.f64(0.5)).dtype == "f64"
    half = dn.tensor([1.0, 2.0], dtype="bf16")
    for index in (0, [0], dn.tensor([True, False]), slice(None, None, -1)):
        for method in METHODS:
            assert getattr(half.at[index], method)(1e-3).dtype == "bf16"
    with pytest.raises(dn.RangeError, match="at: "):
        dn.tensor([1], dtype="u8").at[0].set(300)
    flags = dn.tensor([False, True, False])
    assert flags.at[[0, 0]].add(dn.tensor([True, False])).to_list() == [True, True, False]
    assert flags.at[:2].add(True).to_list() == [True, True, False]
    assert flags.at[[0, 1]].multiply(False).to_list() == [False, False, False]
    assert dn.jit(lambda x, n: x.at[0].set(n))(half, 0.5).dtype == "bf16"


def test_names_are_kept_and_checked() -> None:
    x = dn.tensor(X, names=["row", "column"])
    index: Any
    for index in (0, slice(1), ([0, 1], 1), {"column": 2}, {"column": [0, 0]}, X > 5):
        assert x.at[index].set(0.0).names == ("row", "column")
        assert x.at[index].add(0.0).names == ("row", "column")
    assert x.at[0].set(dn.tensor([0.0] * 4, names=["column"])).names == ("row", "column")
    for index in (0, [0]):
        with pytest.raises(dn.AxisError):
            x.at[index].set(dn.tensor([0.0] * 4, names=["other"]))
    np.testing.assert_array_equal(
        x.at[{"column": [0, 2], "row": slice(1, None)}].set(0.0).to_numpy(),
        x.at[1:, [0, 2]].set(0.0).to_numpy(),
    )


@pytest.mark.parametrize("index", [0, slice(0, 2), slice(None, None, 2), [0, 2, 0], X[:, 0] > 3])
@pytest.mark.parametrize("method", sorted(METHODS))
def test_vmap(index: Any, method: str) -> None:
    xs, values = np.stack([X, X + 1, X * 2]), np.array([3.0, 7.0, -1.0])
    got = dn.vmap(lambda x, value: getattr(x.at[index], method)(value))(xs, values)
    want = [changed(method, x, (index,), value) for x, value in zip(xs, values, strict=True)]
    np.testing.assert_array_equal(got.to_numpy(), np.stack(want))


@pytest.mark.parametrize("method", sorted(METHODS))
def test_vmap_over_the_index(method: str) -> None:
    places, lists = np.array([2, 0, -1]), np.array([[0, 1], [1, 1], [2, 0]])
    one = dn.vmap(lambda i: getattr(dn.tensor(X).at[i, 1:3], method)(2.5))(places)
    several = dn.vmap(lambda i, v: getattr(dn.tensor(X).at[:, i], method)(v))(lists, places)
    masks = X.T[:3, :3] > 3
    under = dn.vmap(lambda m, v: getattr(dn.tensor(X).at[m], method)(v))(masks, places)
    for at in range(3):
        index = (int(places[at]), slice(1, 3))
        np.testing.assert_array_equal(one[at].to_numpy(), changed(method, X, index, 2.5))
        want = changed(method, X, (slice(None), lists[at]), places[at])
        np.testing.assert_array_equal(several[at].to_numpy(), want)
        want = changed(method, X, (masks[at],), places[at])
        np.testing.assert_array_equal(under[at].to_numpy(), want)


def test_apply_get_and_other_names() -> None:
    x = dn.tensor(X)
    np.testing.assert_array_equal(x.at[1, ::2].get().to_numpy(), X[1, ::2])
    want = X.copy()
    want[:, [1, 1]] = np.sqrt(want[:, [1, 1]])
    np.testing.assert_array_equal(x.at[:, [1, 1]].apply(dn.sqrt).to_numpy(), want)
    assert x.at[0].mul(2.0).to_list() == x.at[0].multiply(2.0).to_list()
    assert isinstance(x.at[0], dn.At)
    assert "set(value)" in repr(x.at)
    assert "set(value)" in repr(x.at[0])


def test_the_last_of_several_values_wins() -> None:
    x = dn.tensor([0.0, 0.0, 0.0])
    value = dn.tensor([1.0, 2.0, 3.0])
    for run in (lambda f: f, dn.jit):
        put = run(lambda x, at: x.at[at].set(value))
        assert put(x, dn.tensor([1, 1, 1])).to_list() == [0.0, 3.0, 0.0]


def test_positions_out_of_range() -> None:
    x, far, beyond = dn.tensor(X), dn.tensor(9), dn.tensor([0, 9, -9])
    for method in METHODS:
        update = dn.jit(lambda x, i, method=method: getattr(x.at[i], method)(7.0))
        for at in () if on_xla() else (far, beyond):
            with pytest.raises(dn.BoundsError, match="on axis 0"):
                getattr(x.at[at], method)(7.0)
        with pytest.raises(dn.BoundsError, match="index: 3 is out of range for axis 0 of f64"):
            x.at[3].set(7.0)
        with pytest.raises(
            dn.BoundsError, match=r"index: 9 is out of range for axis 1 of f64\[3\]"
        ):
            dn.jit(lambda x, method=method: getattr(x.at[:, [1, 9]], method)(7.0))(x)
        # A window is moved inside; what is written at positions is left out.
        np.testing.assert_array_equal(update(x, far).to_numpy(), changed(method, X, (2,), 7.0))
        np.testing.assert_array_equal(update(x, beyond).to_numpy(), changed(method, X, (0,), 7.0))
        for at in (far, beyond):
            with dn.checks("index"), pytest.raises(dn.BoundsError, match="on axis 0"):
                update(x, at)


def test_a_loop_fills_a_table() -> None:
    @dn.defn
    def fibonacci(x: Any) -> Any:
        for i in dn.range(2, x.size):
            x = x.at[i].set(x[i - 1] + x[i - 2])
        return x

    got = fibonacci(dn.tensor([1.0, 1.0, 0.0, 0.0, 0.0, 0.0]))
    assert got.to_list() == [1.0, 1.0, 2.0, 3.0, 5.0, 8.0]
    grad = dn.grad(lambda x: fibonacci(x)[-1])(dn.tensor([1.0, 1.0, 0.0, 0.0, 0.0, 0.0]))
    assert grad.to_list() == [3.0, 5.0, 0.0, 0.0, 0.0, 0.0]


def test_masks_beside_positions_must_be_known() -> None:
    x = dn.tensor(X)
    mask = X[:, 0] > 3
    want = changed("set", X, (mask, [1, 2]), 0.0)
    np.testing.assert_array_equal(x.at[mask, [1, 2]].set(0.0).to_numpy(), want)
    np.testing.assert_array_equal(dn.jit(lambda x: x.at[mask, [1, 2]].set(0.0))(x).to_numpy(), want)
    with pytest.raises(dn.BoundsError, match="the shape of the result would depend on its values"):
        dn.jit(lambda x, mask: x.at[mask, [1, 2]].set(0.0))(x, mask)
    assert is_mask(mask)
