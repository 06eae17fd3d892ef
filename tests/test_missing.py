"""Reductions that leave out NaN, and quantiles: nothing but NaN, infinities and ends of dtypes."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import defn as dn

NAN = math.nan
REDUCTIONS = ("nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanmedian")
NUMBERS = st.sampled_from([NAN, NAN, -2.0, 0.0, 0.5, 1.0, 3.0])


def quietly(name: str, *args: Any, **options: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return getattr(np, name)(*args, **options)


@pytest.mark.parametrize("name", REDUCTIONS)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5))
def test_nan_at_any_position(name: str, rows: list[tuple[float, float]]) -> None:
    x = np.array(rows)
    option = "axis" if name == "nanmedian" else "axes"
    for axis in (None, 0, -1):
        want = quietly(name, x, axis=axis)
        got = getattr(dn, name)(dn.tensor(x), **({option: axis} if axis is not None else {}))
        assert np.allclose(got.to_numpy(), want, rtol=1e-12, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("dtype", ["f8_e5m2", "f8_e4m3fn", "f16", "bf16", "f32", "f64"])
def test_nothing_but_nan(dtype: str) -> None:
    x = dn.as_type(dn.tensor([[NAN, NAN], [NAN, 2.0]]), dtype)
    assert dn.nansum(x, 1).to_list() == [0.0, 2.0]
    assert dn.nanprod(x, 1).to_list() == [1.0, 2.0]
    for name in REDUCTIONS[2:]:
        first, second = getattr(dn, name)(x, 1).to_list()
        assert math.isnan(first)
        assert second == (0.0 if name in ("nanvar", "nanstd") else 2.0)
    assert dn.nanargmax(x, 1).to_list() == [-1, 1]
    assert dn.nanargmin(x, 1, keep_axis=True).to_list() == [[-1], [1]]


def test_infinities_are_no_replacements() -> None:
    x = dn.tensor([NAN, -math.inf, NAN])
    assert dn.nanargmax(x).item() == 1
    assert dn.nanargmin(-x).item() == 1
    assert dn.nanmax(x).item() == -math.inf
    assert math.isnan(dn.nanmean(dn.tensor([math.inf, -math.inf, NAN])).item())


def test_too_few_elements_for_a_variance() -> None:
    x = dn.tensor([1.0, NAN, NAN])
    assert math.isnan(dn.nanvar(x, ddof=1).item())
    assert dn.nanvar(x).item() == 0.0


def test_gradients_leave_nan_out() -> None:
    x = dn.tensor([1.0, NAN, 3.0])
    assert dn.grad(dn.nansum)(x).to_list() == [1.0, 0.0, 1.0]
    assert dn.grad(dn.nanprod)(x).to_list() == [3.0, 0.0, 1.0]
    assert dn.grad(dn.nanmean)(x).to_list() == [0.5, 0.0, 0.5]
    assert dn.grad(dn.nanmax)(x).to_list() == [0.0, 0.0, 1.0]
    assert dn.grad(dn.nanvar)(x).to_list() == [-1.0, 0.0, 1.0]
    assert dn.grad(dn.nanmedian)(x).to_list() == [0.5, 0.0, 0.5]
    assert dn.grad(lambda x: dn.quantile(x, 0.25))(dn.tensor([4.0, 0.0, 1.0])).to_list() == [
        0.0,
        0.5,
        0.5,
    ]


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.parametrize("size", [1, 2, 5, 8, 101])
def test_quantiles_are_numpys(size: int, method: Any) -> None:
    x = np.random.default_rng(size).normal(size=(size, 3))
    q = np.linspace(0, 1, 21)
    want = np.quantile(x, q, axis=0, method=method)
    got = dn.quantile(dn.tensor(x), dn.tensor(q), axis=0, method=method).to_numpy()
    assert np.allclose(got, want, rtol=1e-13, atol=1e-14)
    x[0, 1] = NAN
    want = quietly("nanquantile", x, q, axis=0, method=method)
    got = dn.nanquantile(dn.tensor(x), dn.tensor(q), axis=0, method=method).to_numpy()
    assert np.allclose(got, want, rtol=1e-13, atol=1e-14, equal_nan=True)
    whole = dn.quantile(dn.tensor(x), dn.tensor(q), axis=0, method=method).to_numpy()
    assert np.isnan(whole[:, 1]).all()
    assert not np.isnan(whole[:, 0]).any()


def test_quantiles_of_wide_integers_and_infinities() -> None:
    wide = dn.tensor(np.array([2**64 - 1, 2**53 + 1, 5], np.uint64))
    assert dn.quantile(wide, 0.5, method="lower").item() == 2**53 + 1
    assert dn.quantile(wide, 1, method="higher").item() == 2**64 - 1
    infinite = dn.tensor([math.inf, math.inf, 1.0])
    assert dn.quantile(infinite, 0.75).item() == math.inf
    assert dn.percentile(infinite, 0).item() == 1.0
    assert dn.quantile(dn.tensor(3), 0.3).item() == 3.0


def test_shares_are_clipped_and_axes_come_first() -> None:
    x = dn.tensor(np.arange(6.0).reshape(2, 3), names=["a", "b"])
    got = dn.quantile(x, dn.tensor([[-1.0, 2.0]]), axis="b")
    assert (got.shape, got.names) == ((1, 2, 2), (None, None, "a"))
    assert got.to_list() == [[[0.0, 3.0], [2.0, 5.0]]]
    empty = dn.quantile(dn.tensor(np.zeros((0, 3))), dn.tensor([0.5]), axis=1)
    assert empty.shape == (1, 0)


@pytest.mark.parametrize("name", [*REDUCTIONS, "nanargmax", "nanargmin"])
def test_vmap(name: str) -> None:
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    x[0, 1] = x[2] = NAN
    function = getattr(dn, name)
    want = np.stack([function(dn.tensor(row)).to_numpy() for row in x])
    got = dn.vmap(function)(dn.tensor(x)).to_numpy()
    assert np.allclose(got, want, rtol=1e-6, equal_nan=True)


def test_vmap_of_quantiles() -> None:
    x = np.random.default_rng(0).normal(size=(3, 4))
    q = np.array([0.1, 0.5, 0.9])
    got = dn.vmap(dn.quantile)(dn.tensor(x), dn.tensor(q)).to_numpy()
    assert np.allclose(got, [np.quantile(*pair) for pair in zip(x, q, strict=True)])
