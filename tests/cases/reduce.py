"""Rows of the reductions and scans."""

from __future__ import annotations

import numpy as np
from scipy import special

from cases import Case, apart, between, digits, float_ulps, small, ties, values
from cases.dtypes import ALL, NUMBERS, REAL, REAL_NUMBERS

DROPPED = ((("x", "y"),), ("x",))
KEPT = ((("x", "y"),), ("x", "y"))
EXACTLY = {"f8_e5m2": 4, "f8_e4m3fn": 4, "f16": 4, "bf16": 4, "other": 4}


def rows(name, oracle, *, axis_argument="axes", **options):
    """A reduction over all axes, over one axis, and over one axis that is kept."""
    out = []
    one = {axis_argument: 1}
    kept = {axis_argument: 1, f"keep_{axis_argument}": True}
    for label, call, axis, names in (
        ("", None, None, ((("x", "y"),), ())),
        ("axis", lambda f, x: f(x, **one), 1, DROPPED),
        ("keep", lambda f, x: f(x, **kept), 1, KEPT),
    ):

        def reference(x, axis=axis, keep=label == "keep"):
            return oracle(x, axis=axis, keepdims=keep)

        out.append(Case(name, reference, call=call, label=label, names=names, **options))
    return out


def mode(x, axis=None, keepdims=False):
    """The most frequent value; of several, the least."""

    def most(line):
        values, counts = np.unique(line, return_counts=True)
        return values[np.argmax(counts)]

    if axis is None:
        return np.asarray(most(x.reshape(-1)))
    out = np.apply_along_axis(most, axis, x)
    return np.expand_dims(out, axis) if keepdims else out


def floats(oracle):
    def compute(x, **options):
        x = x.astype(np.float64) if x.dtype.kind in "iu" else x
        return oracle(x, **options)

    return compute


def arg(name, oracle, first):
    """Both ways to break ties, one axis dropped or kept, and all axes."""

    def last(x, axis):
        flipped = oracle(np.flip(x, axis), axis=axis)
        return x.shape[axis] - 1 - flipped

    options = {"dtypes": REAL, "draw": ties, "out": "s32", "grad": "zero", "grad_draw": apart}
    return [
        Case(name, lambda x: oracle(x), names=((("x", "y"),), ()), **options),
        Case(
            name,
            lambda x: oracle(x, axis=1),
            call=lambda f, x: f(x, axis=1),
            label="axis",
            names=DROPPED,
            **options,
        ),
        Case(
            name,
            lambda x: oracle(x, axis=0, keepdims=True),
            label="keep",
            call=lambda f, x: f(x, axis=0, keep_axis=True),
            names=KEPT,
            **options,
        ),
        Case(
            name,
            lambda x: last(x, 1),
            call=lambda f, x: f(x, axis=1, tie_break="high"),
            label="high",
            names=DROPPED,
            **options,
        ),
        Case(
            name,
            lambda x: oracle(x, axis=1),
            call=lambda f, x: f(x, axis=1, dtype="u8"),
            label="dtype",
            names=DROPPED,
            **{**options, "out": "u8"},
        ),
    ]


def weighted(x, w, axis=None):
    x, w = (a.astype(np.float64) if a.dtype.kind in "iu" else a for a in (x, w))
    return (x * w).sum(axis) / w.sum(axis)


def covariance(x):
    x = x.astype(np.float64) if x.dtype.kind in "iu" else x
    x = x - x.mean(0)
    return x.conj().T @ x / x.shape[0]


def squares(x, axis=None, keepdims=False):
    """The variance by its definition: complex deviations are squared, not their magnitudes."""
    mean = x.mean(axis, keepdims=True)
    return ((x - mean) ** 2).mean(axis, keepdims=keepdims)


def scans(name, accumulate, dtypes=ALL, **options):
    """From the first element, from the last, along another axis, and over an empty axis."""

    def backwards(x):
        return np.flip(accumulate(np.flip(x, 0), 0), 0)

    options = {"dtypes": dtypes, "grad_draw": apart, **options}
    return [
        Case(name, accumulate, names=((("x", None),), ("x", None)), **options),
        Case(
            name,
            backwards,
            call=lambda f, x: f(x, reverse=True),
            label="reverse",
            shapes=((6,),),
            names=((("x",),), ("x",)),
            **options,
        ),
        Case(
            name,
            lambda x: accumulate(x, 1),
            call=lambda f, x: f(x, axis=1),
            label="axis",
            shapes=((2, 5, 3),),
            names=((("x", "y", "z"),), ("x", "y", "z")),
            **options,
        ),
        Case(
            name,
            lambda x: x,
            label="empty",
            shapes=((0, 3),),
            names=KEPT,
            **{**options, "grad": None},
        ),
    ]


SUMS = {"other": 4, "f8_e5m2": 2, "f8_e4m3fn": 2, "f16": 4, "bf16": 4}
MANY = float_ulps(16, 16, 4)

CASES = [
    *rows("sum", np.sum, draw=small, out="sum", ulps=SUMS, scale=8.0),
    *rows("product", np.prod, draw=between(-2, 2), out="sum", ulps=SUMS, scale=1.0),
    *rows("mean", floats(np.mean), draw=small, out="sum float", ulps=SUMS, scale=4.0),
    *rows("all", np.all, draw=ties, out="bool", grad="zero"),
    *rows("any", np.any, draw=ties, out="bool", grad="zero"),
    *rows("reduce_max", np.max, dtypes=REAL, draw=values, grad_draw=apart),
    *rows("reduce_min", np.min, dtypes=REAL, draw=values, grad_draw=apart),
    *arg("argmax", np.argmax, "first"),
    *arg("argmin", np.argmin, "first"),
    *rows("variance", floats(squares), draw=small, out="sum float", ulps=MANY, scale=8.0),
    Case(
        "variance",
        lambda x: floats(squares)(x) * 6 / 5,
        call=lambda f, x: f(x, ddof=1),
        label="ddof",
        draw=small,
        out="sum float",
        ulps=MANY,
        scale=8.0,
        names=((("x", "y"),), ()),
    ),
    *rows(
        "standard_deviation",
        floats(lambda x, **o: np.sqrt(squares(x, **o))),
        draw=small,
        out="sum float",
        ulps=MANY,
        scale=8.0,
    ),
    Case(
        "covariance",
        covariance,
        shapes=((4, 3),),
        draw=small,
        out="sum float",
        ulps=MANY,
        scale=8.0,
        names=((("x", "y"),), (None, None)),
        grad_complex=False,
    ),
    Case(
        "weighted_mean",
        weighted,
        shapes=((2, 3), (2, 3)),
        draw=(small, between(1, 2)),
        out="sum float",
        ulps=MANY,
        scale=4.0,
        names=((("x", "y"), ("x", "y")), ()),
    ),
    Case(
        "weighted_mean",
        lambda x, w: weighted(x, np.broadcast_to(w, (2, 3)), 1),
        label="axis",
        call=lambda f, x, w: f(x, w, axes=[1]),
        shapes=((2, 3), (3,)),
        draw=(small, between(1, 2)),
        out="sum float",
        ulps=MANY,
        scale=4.0,
        names=((("x", "y"), (None,)), ("x",)),
    ),
    *rows(
        "logsumexp",
        floats(special.logsumexp),
        dtypes=REAL,
        refusal=None,
        draw=small,
        out="float",
        ulps=MANY,
        scale=4.0,
        grad_complex=False,
    ),
    Case(
        "logsumexp",
        lambda x, s: floats(special.logsumexp)(x, b=s.astype(np.float64)),
        dtypes=REAL,
        shapes=((2, 3), (2, 3)),
        draw=(small, between(1, 2)),
        label="scaled",
        out="float",
        call=lambda f, x, s: f(x, exp_scaling_factor=s),
        ulps=MANY,
        scale=4.0,
        refusal=None,
        names=((("x", "y"), ("x", "y")), ()),
    ),
    Case(
        "median",
        lambda x: np.median(x),
        dtypes=REAL,
        draw=small,
        out="float",
        shapes=((2, 3),),
        grad_draw=apart,
        names=((("x", "y"),), ()),
    ),
    Case(
        "median",
        lambda x: np.sort(x, axis=1)[:, 1],
        call=lambda f, x: f(x, axis=1),
        label="odd",
        dtypes=REAL,
        shapes=((2, 3),),
        grad_draw=apart,
        names=DROPPED,
    ),
    Case(
        "median",
        lambda x: np.median(x, axis=0, keepdims=True),
        call=lambda f, x: f(x, axis=0, keep_axis=True),
        label="keep",
        dtypes=REAL,
        draw=small,
        out="float",
        grad_draw=apart,
        names=KEPT,
    ),
    *rows(
        "mode",
        mode,
        axis_argument="axis",
        dtypes=REAL,
        shapes=((3, 5),),
        draw=digits,
        grad_draw=apart,
    ),
    *scans("cumulative_sum", np.add.accumulate, draw=small, out="number", ulps=SUMS, scale=8.0),
    *scans(
        "cumulative_product",
        np.multiply.accumulate,
        draw=between(-2, 2),
        out="number",
        ulps=SUMS,
        scale=1.0,
    ),
    *scans("cumulative_max", np.maximum.accumulate, dtypes=REAL),
    *scans("cumulative_min", np.minimum.accumulate, dtypes=REAL),
    Case("diff", np.diff, dtypes=NUMBERS, shapes=((2, 4),), names=KEPT),
    Case(
        "diff",
        lambda x: np.diff(x, 2, axis=0),
        dtypes=NUMBERS,
        call=lambda f, x: f(x, order=2, axis=0),
        label="order",
        shapes=((4, 3),),
        draw=small,
        ulps=4,
        scale=8.0,
        names=KEPT,
    ),
    Case("diff", lambda x: x, call=lambda f, x: f(x, order=0), label="none", names=KEPT),
    Case(
        "diff",
        lambda x: np.diff(x, 3),
        dtypes=NUMBERS,
        call=lambda f, x: f(x, order=3),
        label="all",
        names=KEPT,
        grad=None,
    ),
    Case(
        "trace",
        np.trace,
        shapes=((3, 3),),
        draw=small,
        out="sum",
        ulps=4,
        scale=8.0,
        names=((("x", "y"),), ()),
    ),
    Case(
        "trace",
        lambda x: np.trace(x, -1, axis1=1, axis2=2),
        call=lambda f, x: f(x, offset=-1),
        label="offset",
        shapes=((2, 3, 4),),
        draw=small,
        out="sum",
        ulps=4,
        scale=8.0,
        names=((("x", "y", "z"),), ("x",)),
    ),
    Case("trace", lambda x: x.sum(), label="empty", shapes=((0, 3),), out="sum", grad=None),
    *rows("count_nonzero", np.count_nonzero, draw=ties, out="s32", grad="zero"),
    *rows("ptp", np.ptp, dtypes=REAL_NUMBERS, ulps=1, grad_draw=apart),
]
