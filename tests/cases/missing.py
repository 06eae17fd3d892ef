"""Rows of the reductions that leave out NaN, of quantiles and averages."""

from __future__ import annotations

import warnings

import numpy as np

from cases import Case, apart, between, float_ulps, is_whole, small, ties
from cases.dtypes import ALL, REAL
from cases.reduce import DROPPED, KEPT, MANY, SUMS, rows, weighted


def gaps(draw):
    """The drawn values, with NaN in some places of every row where the dtype has it."""

    def with_nan(rng, shape, dtype):
        drawn = draw(rng, shape, dtype)
        if not is_whole(dtype):
            flat = drawn.reshape(-1)
            flat[0 :: shape[-1]] = np.nan
            flat[4] = np.nan
        return drawn

    return with_nan


def quietly(oracle):
    def compute(x, *args, **options):
        x = x.astype(np.float64) if x.dtype.kind in "iu" else x
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return oracle(x, *args, **options)

    return compute


def silently(oracle):
    def compute(x, *args, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return oracle(x, *args, **options)

    return compute


def squares(x, axis=None, keepdims=False):
    """The variance by its definition: complex deviations are squared, not their magnitudes."""
    mean = np.nanmean(x, axis, keepdims=True)
    return np.nanmean((x - mean) ** 2, axis, keepdims=keepdims)


def deviation(x, axis=None, keepdims=False):
    return np.sqrt(squares(x, axis, keepdims))


def share(name, method, q, label="", **options):
    """A row of a quantile along the first axis."""
    oracle = quietly(getattr(np, name))
    out = "float" if method in ("linear", "midpoint") else "same"
    with_nan = name.startswith("nan")
    return Case(
        name,
        (lambda x: oracle(x, q, axis=0, method=method))
        if out == "float"
        else (lambda x: silently(getattr(np, name))(x, q, axis=0, method=method)),
        call=lambda f, x: f(x, q, axis=0, method=method),
        label=label,
        dtypes=REAL,
        shapes=((6, 2),),
        draw=gaps(small) if with_nan else small,
        out=out,
        ulps=float_ulps(4, 4, 1) if out == "float" else 0,
        scale=4.0 if out == "float" else 0.0,
        grad_draw=apart,
        names=((("x", "y"),), ("y",)),
        **options,
    )


SPREAD = {"ulps": float_ulps(32, 32, 4), "scale": 4.0, "out": "float", "draw": gaps(small)}
FOUND = {"dtypes": REAL, "draw": gaps(ties), "out": "s32", "grad": "zero", "grad_draw": apart}

CASES = [
    *rows("nansum", np.nansum, draw=gaps(small), out="sum", ulps=SUMS, scale=8.0),
    *rows("nanprod", np.nanprod, draw=gaps(between(-2, 2)), out="sum", ulps=SUMS, scale=1.0),
    *rows("nanmax", np.nanmax, dtypes=REAL, draw=gaps(small), grad_draw=apart),
    *rows("nanmin", np.nanmin, dtypes=REAL, draw=gaps(small), grad_draw=apart),
    *rows("nanmean", quietly(np.nanmean), draw=gaps(small), out="float", ulps=MANY, scale=4.0),
    *rows("nanvar", quietly(squares), grad_draw=apart, **SPREAD),
    *rows("nanstd", quietly(deviation), grad_draw=apart, **SPREAD),
    *rows("nanargmax", np.nanargmax, axis_argument="axis", **FOUND),
    *rows("nanargmin", np.nanargmin, axis_argument="axis", **FOUND),
    Case(
        "nanmedian",
        quietly(np.nanmedian),
        dtypes=REAL,
        shapes=((2, 4),),
        draw=gaps(small),
        out="float",
        ulps=float_ulps(2, 2, 1),
        scale=4.0,
        grad_draw=apart,
        names=((("x", "y"),), ()),
    ),
    Case(
        "nanmedian",
        lambda x: quietly(np.nanmedian)(x, axis=1, keepdims=True),
        call=lambda f, x: f(x, axis=1, keep_axis=True),
        label="keep",
        dtypes=REAL,
        shapes=((2, 4),),
        draw=gaps(small),
        out="float",
        ulps=float_ulps(2, 2, 1),
        scale=4.0,
        grad_draw=apart,
        names=KEPT,
    ),
    share("quantile", "linear", 0.3),
    share("percentile", "linear", 30),
    share("nanquantile", "linear", 0.3),
    share("nanpercentile", "linear", 70),
    *(
        share(name, method, 0.7, label=method)
        for name in ("quantile", "nanquantile")
        for method in ("lower", "higher", "nearest", "midpoint")
    ),
    Case(
        "quantile",
        lambda x: quietly(np.quantile)(x, [[0.25, 0.5, 1.0]], axis=1, keepdims=True),
        call=lambda f, x: f(x, np.array([[0.25, 0.5, 1.0]]), axis=1, keep_axis=True),
        label="several",
        dtypes=REAL,
        shapes=((2, 5),),
        draw=small,
        out="float",
        ulps=float_ulps(4, 4, 1),
        scale=4.0,
        grad_draw=apart,
        names=((("x", "y"),), (None, None, "x", "y")),
    ),
    Case(
        "nanpercentile",
        lambda x: quietly(np.nanpercentile)(x, [25, 50]),
        call=lambda f, x: f(x, np.array([25, 50])),
        label="several",
        dtypes=REAL,
        shapes=((2, 5),),
        draw=gaps(small),
        out="float",
        ulps=float_ulps(4, 4, 1),
        scale=4.0,
        grad_draw=apart,
    ),
    *rows("average", quietly(np.mean), draw=small, out="float", ulps=MANY, scale=4.0),
    Case(
        "average",
        lambda x, w: weighted(x, w, 1),
        call=lambda f, x, w: f(x, 1, weights=w),
        label="weights",
        dtypes=ALL,
        shapes=((2, 3), (2, 3)),
        draw=(small, between(1, 3)),
        out="float",
        ulps=MANY,
        scale=4.0,
        names=((("x", "y"), ("x", "y")), DROPPED[1]),
    ),
]
