"""Rows of the element-wise functions."""

from __future__ import annotations

import numpy as np
from scipy import special

from cases import Case, apart, between, digits, float_ulps, positive, small, ties, unit, values
from cases.dtypes import (
    ALL,
    BITS,
    BITWISE,
    FLOATS,
    INTEGERS,
    NUMBERS,
    NUMPY,
    REAL,
    REAL_NUMBERS,
    SIGNED,
    limits,
)

KEPT = ((("x", None),), ("x", None))
MERGED = ((("x", None), (None, "y")), ("x", "y"))

# Near their branch cuts complex functions have larger errors than the rounding of real ones allows.
EXACT = {"c64": 8, "c128": 8, "other": 0}
NEAR = float_ulps(4)


def unary(name, oracle, **options):
    return Case(name, oracle, **{"names": KEPT, **options})


def binary(name, oracle, **options):
    return Case(name, oracle, **{"shapes": ((2, 3), (2, 3)), "names": MERGED, **options})


def floating(oracle):
    """An oracle on floats: integers are rounded to f32, in which the library computes them."""

    def compute(*arrays):
        arrays = [
            a.astype(np.float32).astype(np.float64) if a.dtype.kind in "iu" else a for a in arrays
        ]
        return oracle(*arrays)

    return compute


def transcendental(name, oracle, draw=small, **options):
    return unary(name, floating(oracle), **{"draw": draw, "out": "float", "ulps": NEAR, **options})


def round_half_away(x):
    """Rounds halves away from zero, not to the even neighbour."""
    if np.asarray(x).dtype.kind != "f":
        return x
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0.0)


def sign(x):
    if x.dtype.kind == "c":
        size = np.abs(x)
        return np.where(size == 0, 0, x / np.where(size == 0, 1, size))
    return np.sign(x)


def count_zeros(x, dtype):
    bits = BITS[dtype]
    return np.vectorize(lambda v: bits - (int(v) % 2**bits).bit_length(), otypes=[np.int64])(x)


def count_ones(x, dtype):
    bits = BITS[dtype]
    return np.vectorize(lambda v: (int(v) % 2**bits).bit_count(), otypes=[np.int64])(x)


def stored(oracle):
    """An oracle that needs the dtype: it takes the stored arrays."""

    def compute(*arrays):
        dtype = next(name for name in BITWISE if NUMPY[name] == arrays[0].dtype)
        wide = [a.astype(np.int64 if dtype in SIGNED else np.uint64) for a in arrays]
        return oracle(*wide, dtype)

    return compute


def invert(x, dtype):
    return x == 0 if dtype == "bool" else np.invert(x)


def erf_inv(x):
    return special.erfinv(x)


def erfc(x):
    return special.erfc(x)


def cbrt(x):
    if x.dtype.kind == "c":
        return np.where(x == 0, 0, np.exp(np.log(np.where(x == 0, 1, x)) / 3))
    return np.cbrt(x)


def power(x, y):
    if x.dtype.kind in "iu":
        out = np.ones_like(x)
        with np.errstate(all="ignore"):
            for _ in range(int(y.max(initial=0))):
                out = np.where(y > 0, out * x, out)
                y = np.where(y > 0, y - np.ones_like(y), y)
        return out
    return np.power(x, y)


def truncated_quotient(x, y):
    """Rounds towards zero; the least integer divided by -1 wraps."""
    size = np.abs(x.astype(object)) // np.abs(y.astype(object))
    return exact(np.where((x < 0) != (y < 0), -size, size), x.dtype)


def truncated_remainder(x, y):
    if x.dtype.kind == "f":
        return np.fmod(x, y)
    left = np.abs(x.astype(object)) % np.abs(y.astype(object))
    return exact(np.where(x < 0, -left, left), x.dtype)


def exact(numbers, kind):
    """Python integers, wrapped to 64 bits."""
    wrapped = np.vectorize(lambda v: int(v) % 2**64, otypes=[np.uint64])(numbers)
    return wrapped.astype(kind)


def shift_left(x, y, dtype):
    return exact(
        np.vectorize(lambda a, b: int(a) << int(b) if b < BITS[dtype] else 0, otypes=[object])(
            x, y
        ),
        x.dtype,
    )


def shift_right(x, y, dtype):
    return exact(np.vectorize(lambda a, b: int(a) >> int(b), otypes=[object])(x, y), x.dtype)


def divisor(rng, shape, dtype):
    """Any numbers except zero, including -1."""
    drawn = values(rng, shape, dtype)
    one = np.asarray(1).astype(drawn.dtype)
    return np.where(drawn.astype(np.complex128) == 0, one, drawn).astype(drawn.dtype)


def shift(rng, shape, dtype):
    _, high = limits(dtype)
    return rng.integers(0, min(BITS[dtype] + 2, high + 1), size=shape).astype(NUMPY[dtype])


def clip(x, low, high):
    return np.minimum(np.maximum(x, low), high)


def select(pred, a, b):
    return np.where(pred != 0, a, b)


def all_close(a, b):
    a, b = (x.astype(np.float64) if x.dtype.kind in "iu" else x for x in (a, b))
    return np.allclose(a, b)


def pair(x, y):
    out = np.empty(x.shape, np.complex128)
    out.real, out.imag = x, y
    return out


def both_parts(oracle):
    return lambda x: oracle(x).astype(np.int64)


def no_order(name, oracle, **options):
    return binary(
        name,
        oracle,
        **{
            "dtypes": REAL,
            "draw": ties,
            "out": "predicate",
            "grad": "zero",
            "grad_draw": small,
            **options,
        },
    )


CASES = [
    unary("negate", np.negative, dtypes=NUMBERS),
    unary("abs", np.abs, out="magnitude", ulps=EXACT, grad_draw=apart),
    unary("sign", sign, ulps=EXACT, grad="zero", grad_draw=apart),
    unary("floor", np.floor, dtypes=REAL, grad="zero", grad_draw=unit),
    unary("ceil", np.ceil, dtypes=REAL, grad="zero", grad_draw=unit),
    unary("round", round_half_away, dtypes=REAL, grad="zero", grad_draw=between(-0.4, 0.4)),
    transcendental("exp", np.exp),
    transcendental("expm1", np.expm1),
    transcendental("expm1", np.expm1, label="near-zero", draw=between(-1e-4, 1e-4), grad=None),
    transcendental("log", np.log, positive),
    transcendental("log1p", np.log1p, positive),
    transcendental("log1p", np.log1p, label="near-zero", draw=between(-1e-4, 1e-4), grad=None),
    transcendental("log2", np.log2, positive, ulps=float_ulps(8)),
    transcendental("log10", np.log10, positive, ulps=float_ulps(8)),
    Case(
        "log",
        floating(lambda x, y: np.log(x) / np.log(y)),
        dtypes=tuple(dtype for dtype in ALL if dtype not in ("bool", "s2")),
        refusal=None,
        shapes=((2, 3), ()),
        label="base",
        draw=(positive, between(2, 3)),
        out="float",
        ulps=float_ulps(8),
        grad_complex=False,
        names=((("x", None), ()), ("x", None)),
    ),
    transcendental("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
    transcendental("sin", np.sin),
    transcendental("cos", np.cos),
    transcendental("tan", np.tan, between(-1.2, 1.2)),
    transcendental("sinh", np.sinh),
    transcendental("cosh", np.cosh),
    transcendental("tanh", np.tanh),
    transcendental("asin", np.arcsin, unit),
    transcendental("acos", np.arccos, unit),
    transcendental("atan", np.arctan, unit),
    transcendental("asinh", np.arcsinh),
    transcendental("acosh", np.arccosh, between(1, 4), grad_draw=between(1.5, 4)),
    transcendental("atanh", np.arctanh, unit),
    transcendental("sqrt", np.sqrt, positive),
    transcendental("rsqrt", lambda x: 1 / np.sqrt(x), positive),
    transcendental("cbrt", cbrt, positive),
    transcendental(
        "cbrt",
        np.cbrt,
        label="negative",
        draw=between(-4, -0.5),
        dtypes=FLOATS,
        grad=None,
        refusal=None,
    ),
    transcendental("erf", special.erf, dtypes=REAL),
    transcendental("erfc", erfc, dtypes=REAL, ulps=float_ulps(4, 16)),
    transcendental("erf_inv", erf_inv, unit, dtypes=REAL, ulps=float_ulps(8, 64)),
    unary("conjugate", np.conjugate, out="complex"),
    unary("real", np.real, out="real"),
    unary("imag", np.imag, out="real", grad_complex=False),
    transcendental("phase", np.angle, out="real", grad_draw=positive),
    unary("bitwise_not", stored(invert), dtypes=BITWISE, stored=True, grad="zero"),
    unary("population_count", stored(count_ones), dtypes=INTEGERS, stored=True, grad="zero"),
    unary("count_leading_zeros", stored(count_zeros), dtypes=INTEGERS, stored=True, grad="zero"),
    unary("is_nan", both_parts(np.isnan), out="predicate", grad="zero"),
    unary("is_infinity", both_parts(np.isinf), out="predicate", grad="zero"),
    unary("logical_not", lambda x: x == 0, out="predicate", draw=ties, grad="zero"),
    binary("add", np.add, ulps=EXACT),
    binary(
        "add",
        np.add,
        label="broadcast",
        shapes=((2, 3), (1,)),
        ulps=EXACT,
        names=((("x", "y"), (None,)), ("x", "y")),
    ),
    binary("subtract", np.subtract, dtypes=NUMBERS, ulps=EXACT),
    binary("multiply", np.multiply, ulps=EXACT),
    binary(
        "divide",
        floating(np.divide),
        draw=(values, divisor),
        out="float",
        ulps={"c64": 16, "c128": 16, "other": 0},
        grad_draw=(values, positive),
    ),
    binary(
        "pow",
        power,
        dtypes=NUMBERS,
        draw=(small, digits),
        ulps=NEAR,
        grad_draw=positive,
        label="integral",
    ),
    binary(
        "pow",
        power,
        dtypes=(*FLOATS, "c64", "c128"),
        draw=(positive, small),
        ulps=float_ulps(8),
        refusal=None,
        grad_draw=positive,
    ),
    binary(
        "atan2",
        floating(np.arctan2),
        dtypes=REAL,
        draw=(small, positive),
        out="float",
        ulps=NEAR,
        grad_draw=positive,
    ),
    binary("quotient", truncated_quotient, dtypes=INTEGERS, draw=(values, divisor), grad="refused"),
    binary(
        "remainder",
        truncated_remainder,
        dtypes=REAL_NUMBERS,
        draw=(values, divisor),
        grad_draw=(positive, between(5, 6)),
    ),
    binary("max", np.maximum, dtypes=REAL, draw=ties, grad_draw=apart),
    binary("min", np.minimum, dtypes=REAL, draw=ties, grad_draw=apart),
    binary("bitwise_and", np.bitwise_and, dtypes=BITWISE, grad="zero"),
    binary("bitwise_or", np.bitwise_or, dtypes=BITWISE, grad="zero"),
    binary("bitwise_xor", np.bitwise_xor, dtypes=BITWISE, grad="zero"),
    binary(
        "left_shift",
        stored(shift_left),
        dtypes=INTEGERS,
        draw=(values, shift),
        stored=True,
        grad="zero",
    ),
    binary(
        "right_shift",
        stored(shift_right),
        dtypes=INTEGERS,
        draw=(values, shift),
        stored=True,
        grad="zero",
    ),
    no_order("equal", np.equal, dtypes=ALL),
    no_order("not_equal", np.not_equal, dtypes=ALL),
    no_order("greater", np.greater),
    no_order("greater_equal", np.greater_equal),
    no_order("less", np.less),
    no_order("less_equal", np.less_equal),
    no_order("logical_and", np.logical_and, dtypes=ALL),
    no_order("logical_or", np.logical_or, dtypes=ALL),
    no_order("logical_xor", np.logical_xor, dtypes=ALL),
    binary("complex", pair, dtypes=REAL, draw=small, out="complex"),
    Case(
        "select",
        select,
        shapes=((2, 3),) * 3,
        draw=(ties, values, values),
        names=((("x", None), ("x", None), (None, "y")), ("x", "y")),
        grad_args=(1, 2),
    ),
    Case(
        "select",
        select,
        shapes=((), (2, 3), (3,)),
        draw=(ties, values, values),
        label="scalar",
        names=(((), ("a", None), ("b",)), ("a", "b")),
        grad_args=(1, 2),
    ),
    Case(
        "clip",
        clip,
        dtypes=REAL,
        shapes=((2, 3), (), ()),
        draw=(values, between(0, 0.5), between(1, 2)),
        names=((("x", None), (), ()), ("x", None)),
        grad_draw=(apart, between(-0.4, -0.3), between(0.6, 0.7)),
    ),
    Case(
        "all_close",
        all_close,
        shapes=((2, 3), (2, 3)),
        draw=ties,
        out="bool",
        grad="zero",
        names=((("x", None), (None, "y")), ()),
    ),
]
