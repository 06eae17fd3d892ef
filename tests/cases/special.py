"""Rows of the special functions."""

from __future__ import annotations

import numpy as np
from scipy import special

from cases import Case, between, float_ulps, positive, small
from cases.dtypes import FLOATS, REAL
from cases.elementwise import binary, floating, transcendental


def trigamma(x):
    """SciPy's is infinite at negative infinity, where the function has no limit."""
    return np.where(np.isneginf(x), np.nan, special.polygamma(1, x))


def bessel(function):
    """SciPy's functions are NaN at infinities, where these are infinite."""

    def compute(x):
        return np.where(np.isinf(x), x if function is special.i1 else np.abs(x), function(x))

    return compute


def one(name, oracle, draw=positive, **options):
    return transcendental(
        name, oracle, draw, **{"dtypes": REAL, "ulps": float_ulps(8), "scale": 1.0, **options}
    )


def two(name, oracle, **options):
    defaults = {
        "dtypes": REAL,
        "draw": positive,
        "out": "float",
        "ulps": float_ulps(16, 32),
        "scale": 1.0,
    }
    return binary(name, floating(oracle), **{**defaults, **options})


inside = between(0.05, 0.95)

CASES = [
    one("lgamma", special.gammaln),
    one(
        "lgamma",
        special.gammaln,
        between(-3.9, -0.1),
        label="negative",
        dtypes=FLOATS,
        refusal=None,
        ulps=float_ulps(64),
    ),
    one("digamma", special.digamma),
    one("trigamma", trigamma),
    one("i0", bessel(special.i0), small),
    one("i0e", special.i0e, small),
    one("i1", bessel(special.i1), small),
    one("i1e", special.i1e, small),
    one("i0", special.i0, between(6, 30), label="large", dtypes=FLOATS, refusal=None, scale=0.0),
    one("ndtr", special.ndtr, small),
    one("ndtri", special.ndtri, inside, dtypes=FLOATS, refusal=None),
    # SciPy's is infinite at infinities, where the function has no limit: the label leaves them out.
    two("betaln", special.betaln, label="finite"),
    Case(
        "betainc",
        floating(special.betainc),
        dtypes=FLOATS,
        refusal=None,
        shapes=((2, 3),) * 3,
        draw=(positive, positive, between(0.05, 0.95)),
        out="float",
        ulps=float_ulps(16, 32),
        scale=1.0,
    ),
    two("gammainc", special.gammainc),
    # Where the first operand is tiny, SciPy's own error is 42 units in the last place.
    two("gammaincc", special.gammaincc, ulps=float_ulps(16, 64)),
    two(
        "gammainc",
        special.gammainc,
        draw=between(30, 90),
        label="large",
        dtypes=FLOATS,
        refusal=None,
    ),
]
