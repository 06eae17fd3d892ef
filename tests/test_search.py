"""Searches, counts and interpolation: ties, NaN, wide integers, empty operands and derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import defn as dn
from cases.dtypes import NUMPY

NUMBERS = st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0, 1.0, 1.5, -2.0, 3e38, 1e-40])
SIDES = pytest.mark.parametrize("side", ["left", "right"])


@SIDES
@given(st.lists(NUMBERS, max_size=9), st.lists(NUMBERS, max_size=5))
def test_positions_among_any_floats(side: Any, ordered: list[float], values: list[float]) -> None:
    a = np.sort(np.array(ordered, np.float64))
    v = np.array(values, np.float64)
    want = np.searchsorted(a, v, side)
    assert dn.searchsorted(dn.tensor(a), dn.tensor(v), side=side).to_list() == want.tolist()


@SIDES
@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8, 9, 100, 1023, 1024, 1025])
def test_every_size_of_vector(size: int, side: Any) -> None:
    rng = np.random.default_rng(size)
    a = np.sort(rng.integers(-size, size, size)).astype(np.int32)
    v = rng.integers(-size - 2, size + 2, (2, 50)).astype(np.int32)
    for call in (dn.searchsorted, dn.jit(dn.searchsorted)):
        got = call(dn.tensor(a), dn.tensor(v), side=side).to_numpy()
        assert np.array_equal(got, np.searchsorted(a, v, side))


def test_wide_integers_are_compared_exactly() -> None:
    a = np.array([2**53, 2**53 + 1, 2**63, 2**64 - 1], np.uint64)
    found = dn.searchsorted(dn.tensor(a), dn.tensor(a))
    assert found.to_list() == [0, 1, 2, 3]
    signed = dn.tensor(np.array([-1, 2**53 + 1, 2**63 - 1], np.int64))
    assert dn.searchsorted(dn.tensor(a), signed).to_list() == [0, 1, 2]
    assert dn.searchsorted(dn.tensor(a), -1).item() == 0
    assert dn.digitize(dn.tensor(a), dn.tensor(a)).to_list() == [1, 2, 3, 4]


def test_sorted_vectors_and_values_are_vectorized() -> None:
    a = np.sort(np.random.default_rng(0).normal(size=(3, 7)).astype(np.float32), 1)
    v = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    want = [np.searchsorted(x, y).tolist() for x, y in zip(a, v, strict=True)]
    got = dn.vmap(dn.searchsorted)(dn.tensor(a), dn.tensor(v))
    assert got.to_list() == want
    one = dn.vmap(lambda x: dn.searchsorted(x, 0.25))(dn.tensor(a))
    assert one.to_list() == [int(np.searchsorted(x, 0.25)) for x in a]


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [[], [1.0], [0.0, 1.0, 1.0, 2.0], [2.0, 1.0, 1.0, 0.0]])
def test_bins_that_ascend_and_descend(bins: list[float], right: bool) -> None:
    x = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, math.inf, math.nan])
    got = dn.digitize(dn.tensor(x), dn.tensor(np.array(bins)), right)
    assert got.to_list() == np.digitize(x, np.array(bins), right).tolist()


def test_the_values_decide_the_length_of_counts() -> None:
    x = np.array([3, 1, 1, 0], np.uint8)
    assert dn.bincount(dn.tensor(x)).to_list() == np.bincount(x).tolist()
    assert dn.bincount(dn.tensor(x), minlength=6).to_list() == np.bincount(x, None, 6).tolist()
    assert dn.bincount(dn.tensor(x), length=2).to_list() == [1, 2]
    assert dn.bincount(dn.tensor(np.array([-1, 5, 1])), length=3).to_list() == [0, 1, 0]
    empty = dn.tensor(np.zeros(0, np.int32))
    assert dn.bincount(empty).shape == (0,)
    assert dn.bincount(empty, minlength=2).to_list() == [0, 0]
    assert dn.jit(lambda x: dn.bincount(x, length=4))(dn.tensor(x)).to_list() == [1, 2, 0, 1]
    with pytest.raises(dn.OptionError, match="length"):
        dn.jit(dn.bincount)(dn.tensor(x))


@pytest.mark.parametrize("dtype", ["u8", "s16", "u32", "s32", "s64", "u64"])
@pytest.mark.parametrize("length", [1, 20, 5000, 300_000])
def test_many_integers_are_counted(dtype: str, length: int) -> None:
    """Also those that threads count in tables of their own, and those out of range."""
    kind = np.dtype(NUMPY[dtype])
    rng = np.random.default_rng(5)
    for count in (0, 100, 300_000):
        x = rng.integers(0, min(length, np.iinfo(kind).max), count, kind, endpoint=True)
        if kind.kind == "i":
            x[::7] = -1
        x[1::9] = np.iinfo(kind).max
        inside = x[(x >= 0) & (x < length)].astype(np.int64)
        want = np.bincount(inside, minlength=length)
        got = dn.bincount(dn.tensor(x, dtype=dtype), length=length)
        assert str(got.dtype) == "s32"
        assert np.array_equal(got.to_numpy(), want)
        counted = dn.jit(lambda x: dn.bincount(x, length=length))
        assert np.array_equal(counted(dn.tensor(x, dtype=dtype)).to_numpy(), want)


def test_weights_of_small_floats_are_summed_before_they_are_rounded() -> None:
    ids = dn.tensor(np.zeros(4096, np.int32))
    weights = dn.tensor(np.ones(4096, np.float16))
    assert dn.bincount(ids, weights, length=1).to_list() == [4096.0]
    grad = dn.grad(lambda w: dn.bincount(ids, w, length=2)[0])(weights)
    assert grad.to_list() == [1.0] * 4096


@pytest.mark.parametrize("bins", [1, 7, 64])
@pytest.mark.parametrize("limits", [None, (-1.0, 1.5), (2.0, 2.0)])
def test_histograms_are_numpys(bins: int, limits: Any) -> None:
    x = np.random.default_rng(bins).normal(size=(50, 40))
    x[0, 0] = 2.0
    weights = np.random.default_rng(1).integers(0, 9, x.shape)
    for options in ({}, {"density": True}, {"weights": weights}):
        counts, edges = np.histogram(x, bins, limits, **options)
        ours = dn.histogram(dn.tensor(x), bins, range=limits, **options)
        assert np.allclose(ours[0].to_numpy(), counts, rtol=1e-13)
        assert np.allclose(ours[1].to_numpy(), edges, rtol=1e-14)


def test_histograms_of_nothing_and_of_nan() -> None:
    counts, edges = dn.histogram(dn.tensor(np.zeros(0)), 2)
    assert (counts.to_list(), edges.to_list()) == ([0, 0], [0.0, 0.5, 1.0])
    x = dn.tensor([math.nan, 0.5, math.inf, -math.inf, 1.0])
    assert dn.histogram(x, 2, range=(0, 1))[0].to_list() == [0, 2]
    assert dn.histogram(x, dn.tensor([0.0, 1.0, math.inf]))[0].to_list() == [1, 2]
    wide = dn.tensor(np.array([2**53, 2**53 + 1, 2**63], np.uint64))
    edges = dn.tensor(np.array([2**53 + 1, 2**54], np.uint64))
    assert dn.histogram(wide, edges)[0].to_list() == [1]


@pytest.mark.parametrize("options", [{}, {"left": -1.0}, {"right": 9.0}, {"period": 2.5}])
def test_interpolation_is_numpys(options: dict[str, float]) -> None:
    rng = np.random.default_rng(0)
    xp = np.unique(rng.normal(size=30))
    fp = rng.normal(size=len(xp))
    x = np.concatenate([rng.normal(size=200) * 2, xp, [math.nan, math.inf, -math.inf]])
    if "period" in options:
        x = x[:-2]
    want = np.interp(x, xp, fp, **options)
    got = dn.interp(dn.tensor(x), dn.tensor(xp), dn.tensor(fp), **options).to_numpy()
    assert np.allclose(got, want, rtol=1e-12, atol=1e-12, equal_nan=True)


def test_interpolation_at_edges() -> None:
    one = dn.interp(dn.tensor([0.0, 1.0, 2.0]), dn.tensor([1.0]), dn.tensor([5.0]), left=3, right=4)
    assert one.to_list() == [3.0, 5.0, 4.0]
    step = dn.interp(dn.tensor([0.5, 1.0, 1.5]), dn.tensor([0, 1, 1, 2]), dn.tensor([0, 1, 3, 4]))
    assert step.to_list() == [0.5, 3.0, 3.5]
    infinite = dn.tensor([math.inf, 1.0, -math.inf])
    got = dn.interp(dn.tensor([0.0, 1.0, 2.0]), dn.tensor([0.0, 1.0, 2.0]), infinite)
    assert got.to_list() == [math.inf, 1.0, -math.inf]
    z = np.array([1j, 2.0, 3 - 1j])
    x, xp = np.array([0.25, 1.5]), np.arange(3.0)
    got = dn.interp(dn.tensor(x), dn.tensor(xp), dn.tensor(z)).to_numpy()
    assert np.allclose(got, np.interp(x, xp, z))


def test_derivatives_of_interpolation() -> None:
    xp, fp = dn.tensor([0.0, 1.0, 3.0], dtype="f64"), dn.tensor([2.0, 4.0, 0.0], dtype="f64")
    slope = dn.grad(lambda x: dn.interp(x, xp, fp))
    points = (0.5, 2.0, -1.0, 4.0, 3.0)
    assert [float(slope(dn.tensor(x, dtype="f64"))) for x in points] == [2.0, -2.0, 0.0, 0.0, 0.0]
    x = dn.tensor([0.25, 2.0, 9.0], dtype="f64")
    shares = dn.grad(lambda fp: dn.sum(dn.interp(x, xp, fp)))(fp)
    assert np.allclose(shares.to_numpy(), [0.75, 0.75, 1.5])
