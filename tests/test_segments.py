"""Reductions of segments: values, gradients as in JAX, vectorized axes, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import defn as dn

NAMES = {
    "segment_sum": "sum",
    "segment_product": "prod",
    "segment_max": "max",
    "segment_min": "min",
}
IDENTITY = {"segment_sum": 0, "segment_product": 1, "segment_max": -np.inf, "segment_min": np.inf}
UFUNCS = {
    "segment_sum": np.add,
    "segment_product": np.multiply,
    "segment_max": np.maximum,
    "segment_min": np.minimum,
}


def numbers(shape: tuple[int, ...]) -> np.ndarray:
    return np.sin(np.arange(1.0, np.prod(shape) + 1)).reshape(shape)


def oracle(name: str, data: np.ndarray, ids: np.ndarray, count: int) -> np.ndarray:
    out = np.full((count, *data.shape[1:]), IDENTITY[name], data.dtype)
    inside = (ids >= 0) & (ids < count)
    UFUNCS[name].at(out, ids[inside].astype(int), data[inside])
    return out


@settings(max_examples=60)
@given(st.data())
@pytest.mark.parametrize("name", NAMES)
def test_values(name: str, data: st.DataObject) -> None:
    size, count = data.draw(st.integers(0, 9)), data.draw(st.integers(0, 4))
    dtype = data.draw(st.sampled_from(["s8", "s32", "s64", "u8", "u64"]))
    low = 0 if dtype.startswith("u") else -2
    ids = np.array(data.draw(st.lists(st.integers(low, 6), min_size=size, max_size=size)), int)
    rest = data.draw(st.sampled_from([(), (2,), (2, 3)]))
    x = numbers((size, *rest))
    want = oracle(name, x, ids, count)
    got = getattr(dn, name)(x, dn.tensor(ids.tolist() or ids, dtype=dtype) if size else ids, count)
    np.testing.assert_allclose(got.to_numpy(), want, rtol=1e-14)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "ids", [[0, 2, 0, 0, 2], [3, 1, 1, -1, 0], [1, 1, 1, 1, 1], [4, 5, 6, 7, 8]]
)
def test_gradients_are_those_of_jax(name: str, ids: list[int]) -> None:
    """JAX has no gradient of products. There the product of what is selected is differentiated."""
    import jax

    x, weights = numbers((5, 2)), np.cos(np.arange(6.0)).reshape(3, 2)
    inside = [at for at in range(3) if at in ids]

    def theirs(x: Any) -> Any:
        if name == "segment_product":
            parts = [jax.numpy.prod(x[np.array(ids) == at], 0) * weights[at] for at in inside]
            return sum(part.sum() for part in parts) if parts else 0.0 * x.sum()
        reduced = getattr(jax.ops, f"segment_{NAMES[name]}")(x, np.array(ids), 3)
        return (reduced[np.array(inside, int)] * weights[np.array(inside, int)]).sum()

    def ours(x: Any) -> Any:
        reduced = getattr(dn, name)(x, dn.tensor(ids), 3)
        return dn.sum(reduced[np.array(inside, int)] * weights[np.array(inside, int)])

    with jax.enable_x64(True):
        want = jax.grad(theirs)(x)
    for way in (ours, dn.jit(ours, on_conflict="reuse")):
        np.testing.assert_allclose(dn.grad(way)(x).to_numpy(), want, rtol=1e-13, atol=1e-15)


def test_gradients_of_products_with_zeros() -> None:
    x = dn.tensor([2.0, 0.0, 3.0, 0.0, 0.0])
    ids = dn.tensor([0, 0, 0, 1, 1])
    grad = dn.grad(lambda x: dn.segment_product(x, ids, 2))(x)
    assert grad.to_list() == [0.0, 6.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("name", NAMES)
def test_compiled_and_in_loops(name: str) -> None:
    x, ids = numbers((33, 2)), np.arange(33) * 7 % 5 - 1
    reduce = getattr(dn, name)
    want = oracle(name, x, ids, 3)
    for compiler in (None, "evaluator"):
        options = {} if compiler is None else {"compiler": compiler}
        got = dn.jit(lambda x, ids: reduce(x, ids, 3), **options)(x, ids)
        np.testing.assert_allclose(got.to_numpy(), want, rtol=1e-13)
    states = dn.for_(
        dn.broadcast(dn.f64(0), (3, 2)), range(3), lambda s, i: s + reduce(x, ids + i, 3)
    )
    want = sum(oracle(name, x, ids + i, 3) for i in range(3))
    np.testing.assert_allclose(states.to_numpy(), want, rtol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_vmap(name: str) -> None:
    x, ids = (
        numbers((3, 6)),
        np.array([[0, 1, 0, 2, 1, 9], [2, 2, 2, 2, 2, 0], [-1, 0, 1, 0, 1, 2]]),
    )
    reduce = getattr(dn, name)
    both = dn.vmap(lambda x, ids: reduce(x, ids, 3))(x, ids)
    data = dn.vmap(lambda x: reduce(x, ids[0], 3))(x)
    own = dn.vmap(lambda ids: reduce(x[0], ids, 3))(ids)
    for at in range(3):
        np.testing.assert_allclose(both[at].to_numpy(), oracle(name, x[at], ids[at], 3), rtol=1e-14)
        np.testing.assert_allclose(data[at].to_numpy(), oracle(name, x[at], ids[0], 3), rtol=1e-14)
        np.testing.assert_allclose(own[at].to_numpy(), oracle(name, x[0], ids[at], 3), rtol=1e-14)


def test_empty_segments_have_the_ends_of_the_dtype() -> None:
    ids = dn.tensor([1])
    for dtype, least, greatest in (
        ("s8", -128, 127),
        ("u8", 0, 255),
        ("bf16", -np.inf, np.inf),
        ("bool", False, True),
    ):
        x = dn.tensor([1], dtype=dtype)
        assert dn.segment_max(x, ids, 2).to_list()[0] == least
        assert dn.segment_min(x, ids, 2).to_list()[0] == greatest
        assert dn.segment_max(x, ids, 2).dtype == dtype


def test_nan_is_the_greatest_and_the_least() -> None:
    x, ids = dn.tensor([1.0, np.nan, 2.0, 3.0]), dn.tensor([0, 0, 1, 1])
    for reduce, other in ((dn.segment_max, 3.0), (dn.segment_min, 2.0)):
        nan, rest = reduce(x, ids, 2).to_list()
        assert np.isnan(nan)
        assert rest == other


def test_sums_and_products_of_narrow_types() -> None:
    ones = dn.broadcast(dn.tensor(1.0, dtype="bf16"), (1000,))
    assert dn.segment_sum(ones, dn.fill(dn.iota((1000,)), 0), 1).to_list() == [1000.0]
    mask = dn.tensor([True, True, False, True])
    counts = dn.segment_sum(mask, dn.tensor([0, 0, 0, 1]), 2)
    assert (counts.dtype, counts.to_list()) == ("s32", [2, 1])
    assert dn.segment_product(mask, dn.tensor([0, 0, 0, 1]), 2).to_list() == [0, 1]
    assert dn.segment_sum(dn.tensor([200, 100], dtype="u8"), dn.tensor([0, 0]), 1).to_list() == [44]


def test_errors() -> None:
    x = dn.tensor([1.0, 2.0])
    for call, kind, text in (
        (
            lambda: dn.segment_sum(x, x, 2),
            dn.DTypeError,
            "segment_sum: the indices are f32[2], integers",
        ),
        (
            lambda: dn.segment_max(x, dn.tensor([0]), 2),
            dn.ShapeError,
            "segment_max: the indices are",
        ),
        (
            lambda: dn.segment_min(x[0], dn.tensor(0), 2),
            dn.ShapeError,
            "segment_min: the indices are",
        ),
        (lambda: dn.segment_sum(x, [0, 1], -1), dn.Error, "segment_sum: "),
        (
            lambda: dn.segment_sum(x, dn.tensor([0, 1]), -1),
            dn.OptionError,
            "segment_sum: num_segments is -1, it must be an int that is at least 0",
        ),
        (
            lambda: dn.segment_max(x + 1j, dn.tensor([0, 1]), 2),
            dn.DTypeError,
            "segment_max: the operand is c64[2], it must be an integer or a float, not complex",
        ),
    ):
        with pytest.raises(kind) as error:
            call()
        assert str(error.value).startswith(text), str(error.value)


def sorted_positions(rng: np.random.Generator, kind: str, count: int, cells: int) -> np.ndarray:
    if kind == "few":
        return np.sort(rng.integers(0, cells, count))
    if kind == "one":
        return np.full(count, cells // 2)
    if kind == "long and short":
        return np.sort((cells * rng.random(count) ** 4).astype(int))
    if kind == "beyond":
        return np.sort(rng.integers(0, cells + cells // 3, count))
    # From the end, which is not where the others are.
    return np.sort(rng.integers(-cells, cells, count))


@pytest.mark.parametrize("dtype", ["f32", "f64", "s32", "bf16", "c64"])
@pytest.mark.parametrize("kind", ["few", "one", "long and short", "beyond", "from the end"])
@pytest.mark.parametrize("count", [1, 7, 64, 65, 1023, 1024, 1025, 5000])
def test_updates_of_an_element_are_added_in_order(count: int, kind: str, dtype: str) -> None:
    rng = np.random.default_rng(count)
    cells = max(3, count // 5)
    at = sorted_positions(rng, kind, count, cells)
    exact = {"c64": np.complex64, "s32": np.int32, "f64": np.float64}.get(dtype, np.float32)
    updates = (100 * rng.normal(size=count)).astype(exact)
    if dtype == "bf16":
        # Sums that are exact in any order.
        updates = np.sign(updates)
    want = np.ones(cells, exact)
    inside = (at >= -cells) & (at < cells)
    np.add.at(want, at[inside], updates[inside])
    start, added = dn.tensor(np.ones(cells, exact), dtype=dtype), dn.tensor(updates, dtype=dtype)
    got = dn.jit(dn.indexed_add)(start, at.astype(np.int32)[:, None], added)
    np.testing.assert_array_equal(got.to_numpy().astype(exact), want)
