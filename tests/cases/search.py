"""Rows of the functions that find positions in an ordered vector, count and interpolate."""

from __future__ import annotations

import numpy as np

import defn as dn
from cases import Case, apart, between, digits, float_ulps, small, store, values
from cases.dtypes import ALL, FLOATS, INTEGERS, REAL, widen

KEPT = ((("x",), ("y", None)), ("y", None))
# The place of each element of the weights.
IDS = np.array([2, 0, 2, 3])


def ordered(draw):
    """The drawn values in ascending order."""

    def sorted_values(rng, shape, dtype):
        return store(np.sort(widen(draw(rng, shape, dtype), dtype)), dtype)

    return sorted_values


def sums(weights):
    out = np.zeros(4, weights.dtype)
    np.add.at(out, IDS, weights)
    return out


def distribution(x, **options):
    return np.histogram(x.astype(np.float64), **options)


def positions(weights):
    """The places as a tensor on the backend of the weights."""
    return dn.tensor(IDS) if weights.is_traced else dn.tensor(IDS, backend=weights.backend)


def lines(x, xp, fp, **options):
    return np.interp(*(a.astype(np.float64) for a in (x, xp, fp)), **options)


LINES = {
    "dtypes": ("u8", "s16", "s32", "s64", *FLOATS),
    "refusal": None,
    "shapes": ((2, 3), (4,), (4,)),
    "draw": (small, ordered(apart), small),
    "grad_draw": (between(-1, 1), ordered(apart), small),
    "out": "float",
    "ulps": float_ulps(16, 16, 1),
    "scale": 16.0,
    "grad_complex": False,
}

CASES = [
    Case(
        "searchsorted",
        np.searchsorted,
        dtypes=REAL,
        shapes=((5,), (2, 3)),
        draw=(ordered(small), small),
        out="s32",
        grad="zero",
        names=KEPT,
    ),
    Case(
        "searchsorted",
        lambda a, v: np.searchsorted(a, v, "right"),
        call=lambda f, a, v: f(a, v, side="right"),
        label="right",
        dtypes=REAL,
        shapes=((8,), (2, 3)),
        draw=(ordered(values), values),
        out="s32",
        grad="zero",
        names=KEPT,
    ),
    Case(
        "searchsorted",
        lambda a, v: np.zeros(v.shape),
        label="empty",
        dtypes=REAL,
        shapes=((0,), (2, 3)),
        out="s32",
        grad=None,
    ),
    Case(
        "digitize",
        lambda x, bins: np.digitize(x, bins),
        dtypes=REAL,
        shapes=((2, 3), (4,)),
        draw=(small, ordered(small)),
        out="s32",
        grad="zero",
        names=((("x", "y"), ("z",)), ("x", "y")),
    ),
    Case(
        "digitize",
        lambda x, bins: np.digitize(x, bins[::-1], right=True),
        call=lambda f, x, bins: f(x, bins[::-1], right=True),
        label="descending",
        dtypes=REAL,
        shapes=((2, 3), (4,)),
        draw=(small, ordered(small)),
        out="s32",
        grad="zero",
    ),
    Case(
        "bincount",
        lambda x: np.bincount(x.astype(np.int64), minlength=4)[:4],
        dtypes=INTEGERS,
        shapes=((6,),),
        draw=digits,
        call=lambda f, x: f(x, length=4),
        out="s32",
        grad=None,
        names=((("x",),), (None,)),
    ),
    Case(
        "bincount",
        sums,
        dtypes=ALL,
        shapes=((4,),),
        draw=small,
        call=lambda f, w: f(positions(w), w, length=4),
        label="weights",
        out="number",
        ulps=1,
        scale=8.0,
        names=((("x",),), (None,)),
    ),
    Case(
        "histogram",
        lambda x: distribution(x, bins=4, range=(-4, 4))[0],
        dtypes=REAL,
        shapes=((4, 5),),
        draw=small,
        call=lambda f, x: f(x, 4, range=(-4, 4))[0],
        out="s32",
        grad="zero",
        names=((("x", "y"),), (None,)),
    ),
    Case(
        "histogram",
        lambda x: distribution(x, bins=4)[1],
        dtypes=REAL,
        shapes=((4, 5),),
        draw=small,
        call=lambda f, x: f(x, 4)[1],
        label="edges",
        out="float",
        ulps=2,
        scale=4.0,
        grad_draw=apart,
    ),
    Case(
        "histogram",
        lambda x: distribution(x, bins=4, density=True)[0],
        dtypes=("u8", "s32", "f32", "f64"),
        refusal=None,
        shapes=((20,),),
        draw=small,
        call=lambda f, x: f(x, 4, density=True)[0],
        label="density",
        out="float",
        ulps=4,
        grad_draw=apart,
    ),
    Case(
        "histogram",
        lambda x: distribution(x, bins=[-2, 0.5, 1, 3])[0],
        dtypes=REAL,
        shapes=((20,),),
        draw=small,
        call=lambda f, x: f(x, np.array([-2, 0.5, 1, 3]))[0],
        label="given",
        out="s32",
        grad="zero",
    ),
    Case("interp", lines, names=((("x", "y"), ("z",), ("w",)), ("x", "y")), **LINES),
    Case(
        "interp",
        lambda *xs: lines(*xs, left=2, right=-3),
        call=lambda f, *xs: f(*xs, left=2, right=-3),
        label="outside",
        **LINES,
    ),
    Case(
        "interp",
        lambda *xs: lines(*xs, period=3),
        call=lambda f, *xs: f(*xs, period=3),
        label="period",
        **{**LINES, "dtypes": ("s32", "f32", "f64")},
    ),
]
