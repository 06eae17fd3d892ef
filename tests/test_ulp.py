"""Accuracy: mpmath is the oracle of f64, and f64 is the oracle of f32."""

from __future__ import annotations

import numpy as np
import pytest

import defn as dn
from ulp import (
    BOUNDS,
    FUNCTIONS,
    PAIRS,
    against_double,
    against_mpmath,
    mantissas,
    pair_against_double,
    pair_against_mpmath,
)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", BOUNDS)
def test_functions_are_as_accurate_as_promised(name: str, dtype: str) -> None:
    each = {"f32": 4, "f64": 1}[dtype]
    worst = against_mpmath(name, dtype, each)
    assert worst.ulps <= BOUNDS[dtype], worst
    # A comparison without values, or of results with themselves, would find no error.
    assert worst.count > 500
    assert worst.ulps > 0.4


@pytest.mark.parametrize("name", FUNCTIONS)
def test_f32_agrees_with_f64_on_every_exponent(name: str) -> None:
    x = mantissas("f32", 4096)
    edges = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2**-149], np.float32)
    worst = against_double(name, np.concatenate([x, edges]))
    assert worst.ulps <= BOUNDS["f32"], worst
    assert worst.count > 255 * 4096


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two_numbers_are_as_accurate(name: str) -> None:
    for dtype, worst in (
        ("f64", pair_against_mpmath(name, 1)),
        ("f32", pair_against_double(name, 256)),
    ):
        assert worst.ulps <= BOUNDS[dtype], (dtype, worst)
        assert worst.count > 4000
        assert worst.ulps > 0.4


def test_powers_that_are_numbers_are_exact() -> None:
    """Powers of integers are exact as long as they fit."""
    base = np.arange(-40, 41, dtype=np.int64)
    for dtype, bits in (("f32", 24), ("f64", 53)):
        for exponent in range(12):
            exact = np.array([int(b) ** exponent for b in base], dtype=object)
            fits = np.array([abs(int(e)) < 2**bits for e in exact])
            x = dn.as_type(dn.tensor(base[fits]), dtype)
            got = dn.pow(x, dn.tensor(float(exponent), dtype=dtype)).to_numpy()
            np.testing.assert_array_equal(got, exact[fits].astype(np.float64))


def test_the_comparison_sees_an_error() -> None:
    """An error of a few units is found."""
    x = mantissas("f32", 16)
    original = dn.exp
    try:
        dn.exp = lambda t: original(t) * (1 + 2.0**-20 if t.dtype == dn.dtype("f32") else 1)
        assert against_double("exp", x).ulps > 4
        assert against_mpmath("exp", "f32", 1).ulps > 4
    finally:
        dn.exp = original


@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 10), (np.float64, 22)])
def test_logarithms_of_powers_are_exact(dtype: type, most: int) -> None:
    """So that their floors count digits."""
    tens = np.arange(-most, most + 1)
    powers = dn.tensor(np.array([dtype(f"1e{k}") for k in tens]))
    for log in (dn.log10, dn.jit(dn.log10)):
        np.testing.assert_array_equal(log(powers).to_numpy(), tens)
    twos = np.arange(-120, 121)
    powers = dn.tensor(np.ldexp(dtype(1), twos).astype(dtype))
    for log in (dn.log2, dn.jit(dn.log2)):
        np.testing.assert_array_equal(log(powers).to_numpy(), twos)
