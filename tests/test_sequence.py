"""Integrals, slopes, convolutions and polynomials: long operands, unequal distances, ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import defn as dn
from cases.dtypes import NUMPY
from cases.sequence import parted, partition_order

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("sizes", [(1500, 700), (700, 1500), (1500, 40), (513, 512)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_long_operands(name: str, mode: Any, sizes: tuple[int, int], dtype: Any) -> None:
    a, b = (RNG.normal(size=size) + 1j * RNG.normal(size=size) for size in sizes)
    a, b = (x.astype(dtype) if dtype is np.complex128 else x.real.astype(dtype) for x in (a, b))
    want = getattr(np, name)(a.astype(np.complex128), b.astype(np.complex128), mode)
    got = getattr(dn, name)(dn.tensor(a), dn.tensor(b), mode=mode).to_numpy()
    assert got.dtype == dtype
    within = 2e-6 if dtype is np.float32 else 2e-15
    assert np.abs(got - want).max() <= within * np.abs(want).max() * 8


def test_long_integers_are_exact() -> None:
    a, b = RNG.integers(-9, 9, (2, 600))
    assert np.array_equal(dn.convolve(dn.tensor(a), dn.tensor(b)).to_numpy(), np.convolve(a, b))


def test_gradients_of_a_long_convolution() -> None:
    a, b = RNG.normal(size=(2, 600))
    grad = dn.grad(lambda a: dn.sum(dn.convolve(a, dn.tensor(b), mode="same") * 2.0))
    want = [2.0 * np.convolve(row, b, "same").sum() for row in np.eye(600)[::50]]
    assert np.allclose(grad(dn.tensor(a)).to_numpy()[::50], want, atol=1e-9)


@pytest.mark.parametrize("order", [1, 2])
def test_slopes_along_several_axes(order: int) -> None:
    x = RNG.normal(size=(4, 3, 5))
    at = np.array([0.0, 1.0, 3.0])
    ours = dn.gradient(dn.tensor(x), 2.0, dn.tensor(at), 0.5, edge_order=order)
    for got, want in zip(ours, np.gradient(x, 2.0, at, 0.5, edge_order=order), strict=True):
        assert np.allclose(got.to_numpy(), want, rtol=1e-12)
    one = dn.gradient(dn.tensor(x), 2.0, axes=(0, -1), edge_order=order)
    for got, want in zip(one, np.gradient(x, 2.0, axis=(0, -1), edge_order=order), strict=True):
        assert np.allclose(got.to_numpy(), want, rtol=1e-12)
    z = dn.tensor(x[0, 0] + 1j * x[1, 1])
    assert np.allclose(dn.gradient(z).to_numpy(), np.gradient(z.to_numpy()))


def test_slopes_of_two_elements_and_in_a_definition() -> None:
    assert dn.gradient(dn.tensor([1, 4])).to_list() == [3.0, 3.0]
    x = dn.tensor(RNG.normal(size=(3, 6)))
    slopes = dn.jit(lambda x: dn.gradient(x, axes=1))(x)
    assert np.allclose(slopes.to_numpy(), np.gradient(x.to_numpy(), axis=1))
    rows = dn.vmap(dn.gradient)(x).to_numpy()
    assert np.allclose(rows, np.gradient(x.to_numpy(), axis=1))


@pytest.mark.parametrize("degree", [0, 1, 3])
def test_fits_are_numpys(degree: int) -> None:
    x = np.linspace(-1.0, 2.0, 30)
    y = np.cos(x) + 0.1 * RNG.normal(size=30)
    got = dn.polyfit(dn.tensor(x), dn.tensor(y), degree)
    assert np.allclose(got.to_numpy(), np.polyfit(x, y, degree), rtol=1e-8, atol=1e-9)
    values = dn.polyval(got, dn.tensor(x)).to_numpy()
    assert np.allclose(values, np.polyval(got.to_numpy(), x))


def test_polynomials_without_coefficients() -> None:
    assert dn.polyval(dn.tensor(np.zeros(0)), dn.tensor([1.0, 2.0])).to_list() == [0.0, 0.0]
    assert dn.polyval(dn.tensor([3.0]), dn.tensor([1.0, 2.0])).to_list() == [3.0, 3.0]


def test_integrals_of_one_sample_and_of_names() -> None:
    y = dn.tensor(np.arange(6.0).reshape(2, 3), names=["a", "b"])
    assert dn.trapezoid(y, axis="a").names == ("b",)
    assert dn.trapezoid(y[:, :1]).to_list() == [0.0, 0.0]
    at = np.array([[0.0, 1.0, 3.0], [0.0, 2.0, 3.0]])
    want = np.trapezoid(y.to_numpy(), at)
    assert np.allclose(dn.trapezoid(y, dn.tensor(at)).to_numpy(), want)


def test_correlations_of_a_vector_and_of_constants() -> None:
    assert dn.corrcoef(dn.tensor([1.0, 2.0, 4.0])).item() == 1.0
    got = dn.corrcoef(dn.tensor([[1.0, 2.0], [3.0, 3.0]])).to_numpy()
    assert np.isnan(got).tolist() == [[False, True], [True, True]]


def test_keys_of_any_number() -> None:
    keys = RNG.integers(0, 3, (4, 50))
    assert dn.lexsort([dn.tensor(key) for key in keys]).to_list() == np.lexsort(keys).tolist()
    assert dn.lexsort([dn.tensor(np.zeros((2, 0)))]).shape == (2, 0)


def test_partitions() -> None:
    x = RNG.normal(size=(3, 9))
    got = dn.partition(dn.tensor(x), [2, -3]).to_numpy()
    assert np.array_equal(got[:, [2, -3]], np.partition(x, [2, -3])[:, [2, -3]])
    assert np.array_equal(got, parted(x, [2, -3]))
    order = dn.argpartition(dn.tensor(x), 4, axis=0 - 1)
    assert np.array_equal(order.to_numpy(), partition_order(x, [4]))
    assert np.array_equal(dn.partition(dn.tensor(x), []).to_numpy(), x)
    assert dn.argpartition(dn.tensor(x), [], axis=0).to_list() == [[i] * 9 for i in range(3)]


@pytest.mark.parametrize("dtype", ["u8", "f16", "f32", "s64"])
@pytest.mark.parametrize("count", [1000, 70_000])
def test_partitions_of_long_rows(dtype: str, count: int) -> None:
    """Rows that threads share, with many equal elements and few, in the order of the elements."""
    wide = RNG.integers(0, 200, (2, count)).astype(np.dtype(NUMPY[dtype]))
    few = wide % 3
    ascending = np.sort(wide)
    for x in (wide, few, ascending, ascending[:, ::-1].copy()):
        for kth in ([0], [count // 3], [5, count // 2, count // 2 + 1, -1]):
            t = dn.tensor(x, dtype=dtype)
            assert np.array_equal(dn.partition(t, kth).to_numpy(), parted(x, kth))
            assert np.array_equal(dn.argpartition(t, kth).to_numpy(), partition_order(x, kth))
    x = np.array([[0.0, -0.0, np.nan, 1.0, -np.nan, -np.inf] * 4000])
    got = dn.partition(dn.tensor(x), 9000).to_numpy()
    assert np.array_equal(got.view(np.int64), parted(x, [9000]).view(np.int64))


def test_partitions_are_those_of_definitions() -> None:
    x = dn.tensor(RNG.integers(0, 5, (3, 50)), dtype="f64")
    weights = dn.tensor(RNG.normal(size=(3, 50)))

    def total(x):
        return dn.sum(dn.partition(x, [7, 30]) * weights)

    for compiler in ("cpu", "evaluator"):
        jitted = dn.jit(lambda x: dn.partition(x, [7, 30]), compiler=compiler)
        assert np.array_equal(jitted(x).to_numpy(), parted(x.to_numpy(), [7, 30]))
        slope = dn.jit(dn.grad(total), compiler=compiler)(x).to_numpy()
        order = partition_order(x.to_numpy(), [7, 30])
        want = np.zeros((3, 50))
        np.put_along_axis(want, order, weights.to_numpy(), 1)
        assert np.array_equal(slope, want)


def test_values_put_along_an_axis() -> None:
    x = RNG.normal(size=(3, 4))
    at = np.argsort(x, 1)[:, :2]
    want = x.copy()
    np.put_along_axis(want, at, [[5.0, 6.0]], 1)
    got = dn.put_along_axis(dn.tensor(x), dn.tensor(at), dn.tensor([[5.0, 6.0]]), axis=1)
    assert np.array_equal(got.to_numpy(), want)
    grads = dn.grad(lambda v: dn.sum(dn.put_along_axis(dn.tensor(x), dn.tensor(at), v, 1)))
    assert grads(dn.tensor([[5.0, 6.0]])).to_list() == [[3.0, 3.0]]
