"""Positions and sets whose sizes the values decide, against NumPy's, and the form with a size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import defn as dn
import defn.array_api as xp
from cases.dtypes import NUMPY

NAN = np.nan
BIG = 2**53
OPERANDS = {
    "empty": np.zeros((0,), np.float32),
    "no rows": np.zeros((0, 3), np.int32),
    "all equal": np.full((2, 3), 7, np.int16),
    "zeros": np.zeros((2, 3), np.float64),
    "NaNs": np.array([[NAN, 1.0, NAN], [0.0, NAN, 1.0]]),
    "signed zeros": np.array([0.0, -0.0, 1.0, -0.0]),
    "infinities": np.array([np.inf, -np.inf, np.inf, NAN], np.float32),
    "bools": np.array([[True, False], [True, True]]),
    "one bool": np.array([True]),
    "complex": np.array([1 + 1j, 1 - 1j, 1 + 1j, 0, -0.0, 2], np.complex64),
    "complex NaNs": np.array([complex(NAN, 1), 1, complex(1, NAN), 1, complex(NAN, NAN)]),
    "large u64": np.array([BIG + 1, BIG, BIG + 1, 2**64 - 1, 2**63, 0], np.uint64),
    "least s64": np.array([-(2**63), 2**63 - 1, -(2**63), BIG + 1], np.int64),
    "cube": np.arange(24).reshape(2, 3, 4) % 5,
    "thin": np.array([[[0], [2]], [[3], [0]]], np.uint8),
}
X = pytest.mark.parametrize("x", OPERANDS.values(), ids=OPERANDS)


def same(ours: Any, theirs: Any) -> bool:
    """Equal values; the signs of zeros, and which of several NaNs it is, are not compared."""
    got, want = np.asarray(ours), np.asarray(theirs)
    return got.shape == want.shape and np.array_equal(got, want, equal_nan=got.dtype.kind in "fc")


@X
def test_positions_are_numpys(x: np.ndarray) -> None:
    found, want = dn.nonzero(x), np.nonzero(x)
    assert isinstance(found, tuple)
    assert len(found) == len(want)
    assert all(map(same, found, want))
    assert all(str(part.dtype) == "s32" for part in found)
    assert same(dn.flatnonzero(x), np.flatnonzero(x))
    assert same(dn.argwhere(x), np.argwhere(x))


def test_positions_of_scalars() -> None:
    assert dn.flatnonzero(3.0).to_list() == [0]
    assert dn.argwhere(dn.tensor(3)).shape == np.argwhere(np.array(3)).shape
    assert dn.argwhere(dn.tensor(0)).shape == np.argwhere(np.array(0)).shape
    assert dn.argwhere(dn.tensor(3), size=2).shape == (2, 0)


@pytest.mark.parametrize("equal_nan", [True, False])
@X
def test_distinct_elements_are_numpys(x: np.ndarray, equal_nan: bool) -> None:
    flags: Any = dict.fromkeys(("return_index", "return_inverse", "return_counts"), True)
    values, index, inverse, counts = dn.unique(x, equal_nan=equal_nan, **flags)
    want = np.unique(x, equal_nan=equal_nan, **flags)
    if "complex" not in str(x.dtype) or not np.isnan(x).any():
        assert all(map(same, (values, index, inverse, counts), want))
    assert (str(values.dtype), counts.shape) == (str(dn.tensor(x).dtype), want[3].shape)
    assert same(dn.unique(x, equal_nan=equal_nan), values)
    # Each part tells the same.
    assert same(x.reshape(-1)[index.to_numpy()], values)
    assert inverse.shape == x.shape
    if equal_nan:
        assert same(np.asarray(values)[inverse.to_numpy()], x) or np.isnan(x).any()
    assert counts.to_numpy().sum() == x.size


@X
def test_the_functions_of_the_standard_are_numpys(x: np.ndarray) -> None:
    if x.dtype.kind == "c" and np.isnan(x).any():
        return
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        assert all(map(same, getattr(dn, name)(x), getattr(np, name)(x))), name
        found = getattr(xp, name)(xp.asarray(x))
        assert all(np.asarray(one.dtype == xp.int64) for one in found[1:]), (
            "the standard's positions are int64"
        )
        assert all(same(one, two) for one, two in zip(found, getattr(np, name)(x), strict=True))
    assert same(dn.unique_values(x), np.unique(x, equal_nan=False))


def test_a_scalar_is_a_set_of_one() -> None:
    values, inverse = dn.unique(dn.tensor(2.5), return_inverse=True)
    assert (values.to_list(), inverse.shape) == ([2.5], ())
    assert dn.union1d(1, 2).to_list() == [1, 2]
    assert dn.isin(1, dn.tensor([1, 2])).item() is True


SETS = ["union1d", "intersect1d", "setdiff1d"]


@pytest.mark.parametrize("name", SETS)
@X
def test_sets_are_numpys(name: str, x: np.ndarray) -> None:
    if x.dtype.kind == "c" and np.isnan(x).any():
        return
    y = np.concatenate([x.reshape(-1)[1::2], x.reshape(-1)[:1]] * 4)
    for other in (y, y[:2], y[:0]):
        want = getattr(np, name)(x, other)
        assert same(getattr(dn, name)(x, other), want)
        found = dn.jit(lambda a, b: getattr(dn, name)(a, b, size=60))(x, other)
        assert same(found.to_numpy()[: len(want)], want)
        assert same(dn.isin(x, other), np.isin(x, other))
        assert same(dn.isin(x, other, invert=True), ~np.isin(x, other))


def test_nan_is_not_in_a_set() -> None:
    many = np.array([NAN, 1.0, 2.0] * 5)
    assert dn.isin(np.array([NAN, 1.0]), many).to_list() == [False, True]
    assert dn.intersect1d(many, many).to_list() == [1.0, 2.0]
    mixed = np.array([1 + 1j, complex(1, NAN), complex(NAN, 0), 3j] * 3)
    assert dn.isin(mixed, mixed).to_list() == [True, False, False, True] * 3


@pytest.mark.parametrize("dtype", ["u8", "s16", "u16", "s32", "s64", "u64", "f16", "f32", "f64"])
def test_members_of_sets_close_together_and_far_apart(dtype: str) -> None:
    """What is found in a bitmap, and what by hashes, also at the ends of the dtype."""
    kind = np.dtype(NUMPY[dtype])
    rng = np.random.default_rng(7)
    whole = kind.kind in "iu"
    ends = np.iinfo(kind) if whole else np.finfo(kind)
    close = rng.integers(0, 100, 5000).astype(kind)
    far = rng.integers(ends.min, ends.max, 5000, kind) if whole else rng.normal(size=5000)
    steps = np.arange(5000).astype(kind) * kind.type(1 if kind.itemsize < 4 else 4096)
    special = [ends.min, ends.max, 0, 1] + ([] if whole else [NAN, -0.0, np.inf, -np.inf])
    for drawn in (close, far, steps):
        among = np.concatenate([drawn[:2000].astype(kind), np.array(special, kind)])
        x = np.concatenate([drawn.astype(kind), close, np.array(special, kind)])
        for few in (9, 100, len(among)):
            for others in (among[:few], among[-few:]):
                a, b = dn.tensor(x, dtype=dtype), dn.tensor(others, dtype=dtype)
                want = np.isin(x, others)
                assert same(dn.isin(a, b), want)
                for compiler in ("cpu", "evaluator"):
                    assert same(dn.jit(dn.isin, compiler=compiler)(a, b), want)
    nothing = np.full(9, NAN)
    assert not dn.any(dn.isin(nothing, nothing)).item()


def test_mixed_operands_are_promoted() -> None:
    small = dn.tensor([1, 2, 255], dtype="u8")
    assert str(dn.union1d(small, dn.tensor([0.5])).dtype) == "f32"
    assert dn.isin(small, dn.tensor([-1, 255])).to_list() == [False, False, True]
    assert dn.isin(small, 255).to_list() == [False, False, True]
    with pytest.raises(dn.RangeError, match="isin"):
        dn.isin(small, 256)


@given(
    arrays.arrays(
        np.int32,
        arrays.array_shapes(min_dims=1, max_dims=3, max_side=5, min_side=0),
        elements=st.integers(-3, 3),
    ),
    st.integers(0, 12),
)
def test_a_size_cuts_or_fills(x: np.ndarray, size: int) -> None:
    def padded(found: np.ndarray, fill: int) -> np.ndarray:
        return np.concatenate([found, np.full(size, fill, found.dtype)])[:size]

    for part, want in zip(dn.nonzero(x, size=size, fill_value=9), np.nonzero(x), strict=True):
        assert np.array_equal(part.to_numpy(), padded(want, 9))
    values, index, inverse, counts = dn.unique_all(x, size=size, fill_value=-7)
    want = np.unique_all(x)
    assert np.array_equal(values.to_numpy(), padded(want.values, -7))
    first = want.indices[0] if x.size else 0
    assert np.array_equal(index.to_numpy(), padded(want.indices, first))
    assert np.array_equal(inverse.to_numpy(), want.inverse_indices)
    assert np.array_equal(counts.to_numpy(), padded(want.counts, 0))


CALLS = {
    "nonzero": lambda x, **o: dn.nonzero(x, **o),
    "flatnonzero": lambda x, **o: dn.flatnonzero(x, **o),
    "argwhere": lambda x, **o: dn.argwhere(x, **o),
    "unique": lambda x, **o: dn.unique(x, **o),
    "unique_all": lambda x, **o: dn.unique_all(x, **o),
    "unique_values": lambda x, **o: dn.unique_values(x, **o),
    "union1d": lambda x, **o: dn.union1d(x, x, **o),
    "intersect1d": lambda x, **o: dn.intersect1d(x, x, **o),
    "setdiff1d": lambda x, **o: dn.setdiff1d(x, x + 1, **o),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_definition_needs_a_size(name: str) -> None:
    x = np.array([3, 0, 3, 1])
    with pytest.raises(dn.TraceError, match=rf"^{name}: .*s64\[[48]\].*size=n"):
        dn.jit(CALLS[name])(x)
    constant = dn.tensor(x)
    with pytest.raises(dn.TraceError, match=rf"^{name}: .*size=n"):
        dn.jit(lambda y: (y, CALLS[name](constant)))(1.0)
    with pytest.raises(dn.Error, match=r"size"):
        dn.vmap(CALLS[name])(np.stack([x, x]))
    with pytest.raises(dn.OptionError, match=rf"^{name}: size is -1"):
        CALLS[name](x, size=-1)
    # With one, all ways give the same.
    eager = CALLS[name](x, size=3)
    jitted = dn.jit(lambda x: CALLS[name](x, size=3))(x)
    mapped = dn.vmap(lambda x: CALLS[name](x, size=3))(np.stack([x, x[::-1]]))
    backwards = CALLS[name](x[::-1].copy(), size=3)
    eager, jitted, mapped, backwards = (
        found if isinstance(found, tuple) else (found,)
        for found in (eager, jitted, mapped, backwards)
    )
    for one, two, both, other in zip(eager, jitted, mapped, backwards, strict=True):
        assert same(one, two)
        assert same(both, np.stack([one.to_numpy(), other.to_numpy()]))


def test_a_traced_mask_says_what_to_do() -> None:
    with pytest.raises(dn.BoundsError, match=r"nonzero\(mask, size=n\)"):
        dn.jit(lambda x: x[x > 0])(np.array([1.0, -1.0]))
    x = np.array([1.0, -1.0, 2.0])
    found = dn.jit(lambda x: dn.take(x, dn.flatnonzero(x > 0, size=2)))(x)
    assert found.to_list() == [1.0, 2.0]


def test_gradients_reach_the_first_of_equal_elements() -> None:
    x = np.array([3.0, 1.0, 3.0, 2.0])
    weights = np.array([1.0, 10.0, 100.0])
    gradient = dn.grad(lambda x: dn.sum(dn.unique(x, size=3) * weights))(x)
    assert gradient.to_list() == [100.0, 1.0, 0.0, 10.0]
    gradient = dn.grad(lambda x: dn.sum(dn.setdiff1d(x, 1.0, size=2) * weights[:2]))(x)
    assert gradient.to_list() == [10.0, 0.0, 0.0, 1.0]


def test_names_of_the_inverse_are_kept() -> None:
    x = dn.tensor([[1, 2], [2, 2]], names=["a", "b"])
    assert dn.unique(x, return_inverse=True)[1].names == ("a", "b")
    assert dn.unique(x).names == (None,)
    assert dn.isin(x, 2).names == ("a", "b")
