"""Rows of the element-wise functions that are built from other operations."""

from __future__ import annotations

import numpy as np

from cases import apart, between, float_ulps, positive, small, ties
from cases.dtypes import FLOATS, NUMPY, REAL, REAL_NUMBERS
from cases.elementwise import (
    EXACT,
    NEAR,
    binary,
    both_parts,
    divisor,
    exact,
    floating,
    transcendental,
    unary,
)


def signbit(x):
    return np.signbit(x) if x.dtype.kind == "f" else x < 0


def reciprocal(x):
    return 1 / x


def sinc(x):
    """NumPy's sinc is not 0 at whole numbers, because its angle is rounded."""
    return np.where((x == np.round(x)) & (x != 0) & np.isfinite(x), 0, np.sinc(x))


def quotient(x, y):
    """Python's quotient; that of the least integer and -1 wraps."""
    if x.dtype.kind == "f":
        return np.floor_divide(x, y)
    return exact(x.astype(object) // y.astype(object), x.dtype)


def remainder(x, y):
    if x.dtype.kind == "f":
        return np.mod(x, y)
    return exact(x.astype(object) % y.astype(object), x.dtype)


def hypot(x, y):
    """Beside an infinity NaN counts for nothing, as in C."""
    return np.where(np.isinf(x) | np.isinf(y), np.inf, np.hypot(x, y))


def next_after(x, y):
    """Of stored arrays; integers become f32."""
    kinds = {NUMPY[dtype] for dtype in FLOATS}
    x, y = (a if a.dtype in kinds else a.astype(np.float32) for a in (x, y))
    return np.nextafter(x, y)


def isclose(a, b):
    a, b = (x.astype(np.float64) if x.dtype.kind in "iu" else x for x in (a, b))
    return np.isclose(a, b)


def with_numbers(x):
    return np.nan_to_num(x, nan=1.5, posinf=3.0, neginf=-2.0)


def floats(name, oracle, **options):
    """Rows of functions of two real operands, whose results are floats."""
    return binary(
        name, floating(oracle), **{"dtypes": REAL, "draw": small, "out": "float", **options}
    )


CASES = [
    unary("isfinite", both_parts(np.isfinite), out="predicate", grad="zero"),
    unary("signbit", signbit, dtypes=REAL, out="predicate", grad="zero"),
    unary("square", np.square, ulps=EXACT),
    transcendental(
        "reciprocal",
        reciprocal,
        positive,
        ulps={"c64": 16, "c128": 16, "other": 0},
    ),
    unary("trunc", np.trunc, dtypes=REAL, grad="zero", grad_draw=between(-0.9, 0.9)),
    transcendental("exp2", lambda x: np.exp(x * np.log(2)), ulps=float_ulps(4, 8)),
    transcendental("radians", np.radians, dtypes=REAL, ulps=float_ulps(1)),
    transcendental("degrees", np.degrees, dtypes=REAL, ulps=float_ulps(1)),
    transcendental("sinc", sinc, ulps=float_ulps(4), scale=1.0),
    transcendental("sinc", sinc, ties, label="whole", dtypes=FLOATS, refusal=None, grad=None),
    transcendental("sinc", sinc, between(-0.4, 0.4), label="near-zero", ulps=float_ulps(4)),
    floats("copysign", np.copysign, grad_draw=apart),
    floats("hypot", hypot, ulps=1),
    floats("logaddexp", np.logaddexp, ulps=NEAR, scale=1.0),
    floats("heaviside", np.heaviside, draw=ties, grad_draw=apart),
    binary("nextafter", next_after, dtypes=REAL, out="float", stored=True, grad="zero"),
    binary(
        "divmod",
        quotient,
        call=lambda f, x, y: f(x, y)[0],
        dtypes=REAL_NUMBERS,
        draw=(small, divisor),
        grad=None,
    ),
    binary(
        "divmod",
        remainder,
        call=lambda f, x, y: f(x, y)[1],
        dtypes=REAL_NUMBERS,
        draw=(small, divisor),
        label="remainder",
        grad_draw=(positive, between(5, 6)),
    ),
    binary("isclose", isclose, draw=ties, out="predicate", grad="zero"),
    unary(
        "nan_to_num",
        with_numbers,
        call=lambda f, x: f(x, nan=1.5, posinf=3.0, neginf=-2.0),
        grad_draw=small,
    ),
]
