"""Other libraries with our tensors and arrays: the example's functions, and what they rest on."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import defn as dn
import defn.array_api as xp
from test_examples import load

EXAMPLE = load("neighbours")
RNG = np.random.default_rng(3)
HOLES = RNG.normal(size=(4, 5, 6))
HOLES[RNG.random(HOLES.shape) < 0.3] = np.nan
HOLES[1, :, 2] = np.nan


def _quiet() -> Any:
    """NumPy warns of lines without elements."""
    return warnings.catch_warnings(action="ignore")


def call(library: str) -> Any:
    pytest.importorskip(library)
    return getattr(EXAMPLE, library)()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_go_in_and_out(library: str) -> None:
    sizes = np.array([1.0, 2.0, 6.0])
    want = (sizes - sizes.mean()) / sizes.std()
    np.testing.assert_allclose(call(library)["z"].to_numpy(), want, rtol=1e-12)


def test_matplotlib_draws_tensors() -> None:
    assert b"</svg>" in call("matplotlib")


def test_xarray_selects_and_skips_nan() -> None:
    out = call("xarray")
    assert isinstance(out.data, xp.Array)
    assert out.dims == ("day",)
    assert out.data._tensor.to_list() == [-1.0, 0.0, 1.0]


REDUCTIONS = ["min", "max", "sum", "mean", "prod", "std", "var", "median", "count"]


@pytest.mark.parametrize("axis", [None, "b", ("a", "c")])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_xarrays_reductions_give_our_arrays(name: str, axis: Any) -> None:
    xr = pytest.importorskip("xarray")
    ours = xr.DataArray(xp.asarray(HOLES), dims=("a", "b", "c"))
    theirs = xr.DataArray(HOLES, dims=("a", "b", "c"))
    with _quiet():
        got, want = getattr(ours, name)(axis), getattr(theirs, name)(axis)
    assert isinstance(got.data, xp.Array)
    np.testing.assert_allclose(np.asarray(got.data), want.data, rtol=1e-12)


def test_einops_arranges_and_reduces() -> None:
    einops = pytest.importorskip("einops")
    out = call("einops")
    images = np.arange(24.0).reshape(2, 4, 3)
    rows = einops.rearrange(images, "i (b r) c -> (i b) r c", r=2)
    assert isinstance(out, xp.Array)
    np.testing.assert_array_equal(out, einops.reduce(rows, "b r c -> b c", "mean"))


def test_pytorch_shares_memory_in_both_directions() -> None:
    theirs, ours, back = call("torch")
    assert theirs == ours == back


def test_jax_shares_its_memory() -> None:
    theirs, ours, back = call("jax")
    assert theirs == ours
    assert back == [0.0, 1.0, 2.0, 3.0]


SKIPPING = ["nanmax", "nanmin", "nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmedian"]


@pytest.mark.parametrize("axis", [None, 0, -2, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", SKIPPING)
def test_nan_is_skipped_as_in_numpy(name: str, axis: Any, keepdims: bool) -> None:
    with _quiet():
        want = getattr(np, name)(HOLES, axis=axis, keepdims=keepdims)
    got = getattr(xp, name)(xp.asarray(HOLES), axis=axis, keepdims=keepdims)
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12)
    traced = dn.jit(lambda x: getattr(xp, name)(x, axis=axis, keepdims=keepdims))
    np.testing.assert_allclose(np.asarray(traced(xp.asarray(HOLES))), want, rtol=1e-12)


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("name", ["nanargmax", "nanargmin", "nancumsum", "nancumprod"])
def test_positions_and_running_sums_skip_nan(name: str, axis: int | None) -> None:
    whole = np.where(np.isnan(HOLES).all(axis=1, keepdims=True), 0.0, HOLES)
    want = getattr(np, name)(whole, axis=axis)
    np.testing.assert_allclose(np.asarray(getattr(xp, name)(xp.asarray(whole), axis=axis)), want)


def test_a_line_of_nan_has_no_position() -> None:
    with pytest.raises(ValueError, match="nanargmax: all elements of a line are NaN"):
        xp.nanargmax(xp.asarray(HOLES), axis=1)


@pytest.mark.parametrize("ddof", [0, 1, 3])
def test_few_elements_have_no_variance(ddof: int) -> None:
    values = np.array([[1.0, np.nan, 3.0], [2.0, np.nan, np.nan]], np.float32)
    with _quiet():
        want = np.nanvar(values, axis=1, ddof=ddof)
    got = xp.nanvar(xp.asarray(values), axis=1, ddof=ddof)
    assert got.dtype == xp.float32
    np.testing.assert_allclose(np.asarray(got), want)


def test_integers_have_no_nan() -> None:
    x = xp.asarray([[3, 1], [2, 7]])
    assert int(xp.nanmax(x)) == 7
    assert xp.nansum(x, axis=0)._tensor.to_list() == [5, 8]
    assert xp.nanargmin(x, axis=1)._tensor.to_list() == [1, 0]
    with pytest.raises(TypeError, match="nanmean: the array has data type int64"):
        xp.nanmean(x)


# Found by SciPy's and xarray's own use of the namespace.


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_truth_values_are_summed_as_0_and_1(name: str) -> None:
    out = getattr(xp, name)(xp.asarray([True, True, False]))
    numpys = {"cumulative_sum": np.cumsum, "cumulative_prod": np.cumprod}
    want = numpys.get(name, getattr(np, name))([True, True, False])
    assert out.dtype == xp.int64
    np.testing.assert_array_equal(out, want)


def test_an_array_without_axes_is_formatted_as_its_number() -> None:
    assert f"{xp.asarray(1.25):.1f} {xp.asarray(7):03d}" == "1.2 007"
    assert f"{xp.asarray([1])}" == "Array([1], dtype=int64)"
    with pytest.raises(TypeError, match="format"):
        f"{xp.asarray([1.0]):.2e}"
    with pytest.raises(ValueError, match="format"):
        f"{xp.asarray(1.0):d}"


def test_einsum_takes_the_notation_of_numpy() -> None:
    a, b = RNG.normal(size=(2, 3)), RNG.normal(size=(3, 4))
    got = xp.einsum("ij,jk->ki", xp.asarray(a), xp.asarray(b))
    np.testing.assert_allclose(np.asarray(got), np.einsum("ij,jk->ki", a, b))
    mask = b > 0
    weights = xp.einsum("ij,jk->k", xp.asarray(a), xp.asarray(mask))
    np.testing.assert_allclose(np.asarray(weights), np.einsum("ij,jk->k", a, mask))
    assert int(xp.einsum("ij->", xp.asarray(mask))) == mask.sum()


@pytest.mark.parametrize("number", [np.int64(2), np.float64(2), np.float32(2), np.uint8(2)])
def test_numpys_numbers_are_numbers(number: Any) -> None:
    x = xp.asarray([1.0, 3.0], dtype=xp.float32)
    for out in (x + number, number + x, xp.add(number, x)):
        assert isinstance(out, xp.Array)
        assert out.dtype == xp.float32
        assert out._tensor.to_list() == [3.0, 5.0]
    assert (number < x)._tensor.to_list() == [False, True]
    x[0] = number
    assert x._tensor.to_list() == [2.0, 3.0]
    with pytest.raises(TypeError, match="a Python float does not combine with an array of int64"):
        xp.asarray([1]) + np.float32(0.5)
