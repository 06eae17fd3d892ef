"""Large folds and products on a device: XLA leaves some of them to a library of kernels."""

from __future__ import annotations

import numpy as np
import pytest

import defn as dn

ROWS, COLUMNS = 256, 1024


def numbers(dtype: str) -> np.ndarray:
    """Numbers, and in some rows what is not finite: at an end, inside, and everywhere."""
    x = (np.arange(ROWS * COLUMNS) * 7919 % 1009 / 64 - 8).reshape(ROWS, COLUMNS).astype(dtype)
    x[3, 77], x[4, 0], x[5, -1] = np.nan, -np.nan, np.nan
    x[6, 5], x[7, 5] = np.inf, -np.inf
    x[8], x[9], x[10] = -np.inf, np.inf, np.nan
    x[11, :2] = np.inf, -np.inf
    x[12, 1000], x[13, 1000] = -0.0, 100.0
    return x


def on_device(fun, *arrays: np.ndarray) -> np.ndarray:
    """What a definition gives on a device."""
    return dn.jit(fun, compiler="pjrt")(*arrays).to_numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_extremes_keep_nan(dtype: str, axis: int | None):
    for x in (numbers(dtype), numbers(dtype)[12:]):
        most = on_device(lambda x: dn.reduce_max(x, axes=axis), x)
        least = on_device(lambda x: dn.reduce_min(x, axes=axis), x)
        np.testing.assert_array_equal(most, x.max(axis=axis))
        np.testing.assert_array_equal(least, x.min(axis=axis))


@pytest.mark.parametrize("axis", [0, 1])
def test_places_of_extremes_are_the_first_nan(axis: int):
    x = numbers("float32")
    np.testing.assert_array_equal(on_device(lambda x: dn.argmax(x, axis=axis), x), x.argmax(axis))
    np.testing.assert_array_equal(on_device(lambda x: dn.argmin(x, axis=axis), x), x.argmin(axis))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("axis", [0, 1, None])
def test_sums_are_those_of_numpy(axis: int | None):
    for x in (numbers("float32"), numbers("float32")[12:]):
        got = on_device(lambda x: dn.sum(x, axes=axis), x)
        np.testing.assert_allclose(got, x.sum(axis=axis, dtype=np.float64), rtol=1e-5, atol=0.02)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_products_of_matrices_are_those_of_numpy():
    for x in (numbers("float32"), numbers("float32")[14:]):
        y = np.ascontiguousarray(numbers("float32")[14:30].T)
        got = on_device(lambda x, y: x @ y, x, y)
        want = x.astype(np.float64) @ y.astype(np.float64)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=0.05)


def test_truths_are_counted_and_chosen_by():
    x = numbers("float32")[14:]

    def counted(x):
        positive = x > 0.0
        wide = dn.broadcast(positive[0], x.shape)
        return dn.sum(positive * 3) + dn.sum(dn.select(wide, 2, 1)) + dn.sum(dn.is_infinity(x) + 1)

    positive = x > 0
    want = 3 * positive.sum() + np.where(positive[0], 2, 1).sum() * len(x) + x.size
    assert on_device(counted, x) == want
