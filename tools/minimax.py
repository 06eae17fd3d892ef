"""Derives the coefficients of crates/cpu/src/compiler/ir/functions/tables.rs and prints that file.

Each polynomial interpolates its function in the Chebyshev nodes of the interval, computed with 100
digits (mpmath), and has the least degree whose error, weighted as the kernel uses it, is below the
bound: such a polynomial is within a small factor of the best one (Powell, On the Maximum Errors of
Polynomial Approximations, 1967). `SINGLE` serves f32 where that is computed in f64
and rounded once, `DOUBLE` serves f64, and `narrow` f32 where that is computed in f32.

    python tools/minimax.py | rustfmt > crates/cpu/src/compiler/ir/functions/tables.rs
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from mpmath import mp, mpf

mp.dps = 100

Function = Callable[[mpf], mpf]


class Fit(NamedTuple):
    """A polynomial: its function, its interval, the weight of an error, bounds as powers of 2."""

    name: str
    doc: str
    function: Function
    low: mpf
    high: mpf
    weight: Function
    single: int
    double: int


def even(f: Function) -> Function:
    """An even function, as a function of the square of its argument."""
    return lambda z: f(mp.sqrt(z))


def erfcx(x: mpf) -> mpf:
    return mp.exp(x * x) * mp.erfc(x)


CENTRE = mpf(4)


def erfc_ratio(t: mpf) -> mpf:
    """`(1 + 2x) exp(x^2) erfc(x)` of `t = (x - 4) / (x + 4)`."""
    x = CENTRE * (1 + t) / (1 - t)
    return (1 + 2 * x) * erfcx(x)


def erfc_place(x: float) -> mpf:
    return (x - CENTRE) / (x + CENTRE)


def complement_inverse(w: mpf) -> mpf:
    """The `y` with `erfc(y) = c`, `w = -log(c (2 - c))`; `c` keeps its digits where it is small."""
    u = mp.exp(-w)
    c = u / (1 + mp.sqrt(1 - u))
    y = mp.sqrt(w) * mpf("0.886") / mp.sqrt(1 + w * mpf("0.2146"))
    for _ in range(60):
        error = mp.erfc(y) - c
        slope = -2 / mp.sqrt(mp.pi) * mp.exp(-y * y)
        # Halley's method: the second derivative is -2y times the first.
        step = error / slope
        step = step / (1 + y * step)
        y -= step
        if abs(step) < abs(y) * mpf(10) ** -80:
            break
    return y


def erf_inv_ratio(w: mpf) -> mpf:
    """`erf_inv(x) / x` of `w = -log(1 - x^2)`."""
    u = mp.exp(-w)
    return complement_inverse(w) / mp.sqrt(1 - u)


def atanh2(s: mpf) -> mpf:
    return mp.log((1 + s) / (1 - s))


FITS = [
    Fit(
        "EXP",
        "`(e^r - 1 - r) / r^2` for `|r| <= ln(2) / 2`.",
        lambda r: (mp.expm1(r) - r) / (r * r),
        mpf("-0.3470"),
        mpf("0.3470"),
        lambda r: abs(r),
        31,
        56,
    ),
    Fit(
        "LOG",
        "`(log((1 + s) / (1 - s)) / s - 2) / z` of `z = s^2`, for `s <= 3 - sqrt(8)`.",
        even(lambda s: (atanh2(s) / s - 2) / (s * s)),
        mpf(0),
        mpf("0.02950"),
        lambda z: z / 2,
        33,
        58,
    ),
    Fit(
        "SIN",
        "`(sin(r) / r - 1) / z` of `z = r^2`, for `r <= pi / 4`.",
        even(lambda r: (mp.sin(r) / r - 1) / (r * r)),
        mpf(0),
        mpf("0.6170"),
        lambda z: z,
        32,
        57,
    ),
    Fit(
        "COS",
        "`(cos(r) - 1 + z / 2) / z^2` of `z = r^2`, for `r <= pi / 4`.",
        even(lambda r: (mp.cos(r) - 1 + r * r / 2) / r**4),
        mpf(0),
        mpf("0.6170"),
        lambda z: z * z / mpf("0.7"),
        31,
        57,
    ),
    Fit(
        "ERF",
        "`erf(x) / x - 1` of `z = x^2`, for `x <= 1`.",
        even(lambda x: mp.erf(x) / x - 1),
        mpf(0),
        mpf(1),
        lambda z: mpf(1),
        32,
        58,
    ),
    Fit(
        "ERFC",
        "`(1 + 2x) e^(x^2) erfc(x)` of `t = (x - 4) / (x + 4)`, for `1/2 <= x <= 27.5`.",
        erfc_ratio,
        erfc_place(0.5),
        erfc_place(27.5),
        lambda t: mpf(1),
        32,
        57,
    ),
    Fit(
        "ERF_INV_CENTRE",
        "`erf_inv(x) / x` of `w - 3.125`, for `w = -log(1 - x^2) <= 6.25`.",
        lambda t: erf_inv_ratio(t + mpf("3.125")),
        mpf("-3.125"),
        mpf("3.125"),
        lambda t: 1 / erf_inv_ratio(t + mpf("3.125")),
        31,
        56,
    ),
    Fit(
        "ERF_INV_SLOPE",
        "`erf_inv(x) / x` of `sqrt(w) - 3.25`, for `6.25 <= w <= 16`.",
        lambda t: erf_inv_ratio((t + mpf("3.25")) ** 2),
        mpf("-0.75"),
        mpf("0.75"),
        lambda t: 1 / erf_inv_ratio((t + mpf("3.25")) ** 2),
        31,
        56,
    ),
    Fit(
        "ERF_INV_END",
        "`erf_inv(x) / x` of `sqrt(w) - 5.03`, for `16 <= w <= 36.7`.",
        lambda t: erf_inv_ratio((t + mpf("5.03")) ** 2),
        mpf("-1.03"),
        mpf("1.03"),
        lambda t: 1 / erf_inv_ratio((t + mpf("5.03")) ** 2),
        31,
        56,
    ),
]


# Computed in f64, for only one of the two types: the one whose bound is not 0.
WIDE = [
    Fit(
        "POW",
        "`(3/2 log((1 + s) / (1 - s)) / s - 3 - z) / z^2` of `z = s^2`, for `s <= 3 - sqrt(8)`.",
        even(lambda s: (atanh2(s) / s * 3 / 2 - 3 - s * s) / s**4),
        mpf(0),
        mpf("0.02950"),
        lambda z: z * z / 3,
        0,
        68,
    ),
    Fit(
        "LOG2_SINGLE",
        "`log2((1 + s) / (1 - s)) / s` of `z = s^2`, for `s <= 3 - sqrt(8)`.",
        even(lambda s: atanh2(s) / s / mp.log(2)),
        mpf(0),
        mpf("0.02950"),
        lambda z: mpf("0.34"),
        35,
        0,
    ),
    Fit(
        "EXP2_SINGLE",
        "`(2^r - 1) / r` for `|r| <= 1/2`.",
        lambda r: (mp.mpf(2) ** r - 1) / r,
        mpf("-0.5"),
        mpf("0.5"),
        lambda r: abs(r),
        27,
        0,
    ),
    Fit(
        "ATAN",
        "`(atan(t) / t - 1) / z` of `z = t^2`, for `t <= tan(pi / 8)`.",
        even(lambda t: (mp.atan(t) / t - 1) / (t * t)),
        mpf(0),
        mpf("0.17158"),
        lambda z: z,
        0,
        57,
    ),
    Fit(
        "ASIN",
        "`(asin(t) / t - 1) / z` of `z = t^2`, for `t <= 1/2`.",
        even(lambda t: (mp.asin(t) / t - 1) / (t * t)),
        mpf(0),
        mpf("0.25"),
        lambda z: z,
        0,
        57,
    ),
    Fit(
        "CBRT",
        "`1 / cbrt(m)` for `1 <= m <= 2`, to be improved by one step.",
        lambda m: 1 / mp.cbrt(m),
        mpf(1),
        mpf(2),
        lambda m: mp.cbrt(m),
        0,
        26,
    ),
]


# For computation in f32: the coefficients are rounded to f32.
NARROW = [
    Fit(
        "EXP",
        "`(e^r - 1 - r) / r^2` for `|r| <= ln(2) / 2`.",
        lambda r: (mp.expm1(r) - r) / (r * r),
        mpf("-0.3470"),
        mpf("0.3470"),
        lambda r: abs(r),
        26,
        0,
    ),
    Fit(
        "SINH",
        "`(sinh(x) / x - 1) / z` of `z = x^2`, for `x <= 1`.",
        even(lambda x: (mp.sinh(x) / x - 1) / (x * x)),
        mpf(0),
        mpf(1),
        lambda z: z,
        26,
        0,
    ),
    Fit(
        "TANH",
        "`(tanh(x) / x - 1) / z` of `z = x^2`, for `x <= 5/8`.",
        even(lambda x: (mp.tanh(x) / x - 1) / (x * x)),
        mpf(0),
        mpf("0.390625"),
        lambda z: z,
        26,
        0,
    ),
    Fit(
        "LOG",
        "`(log(1 + f) - f + f^2 / 2) / f^3` for `1 + f` between `sqrt(1/2)` and `sqrt(2)`.",
        lambda f: (mp.log(1 + f) - f + f * f / 2) / f**3,
        mpf("-0.2930"),
        mpf("0.4143"),
        lambda f: f * f,
        26,
        0,
    ),
    Fit(
        "ATANH",
        "`(atanh(s) / s - 1) / z` of `z = s^2`, for `s <= 0.36`.",
        even(lambda s: (mp.atanh(s) / s - 1) / (s * s)),
        mpf(0),
        mpf("0.1296"),
        lambda z: z,
        26,
        0,
    ),
    Fit(
        "ATAN",
        "`(atan(t) / t - 1) / z` of `z = t^2`, for `t <= 1`.",
        even(lambda t: (mp.atan(t) / t - 1) / (t * t)),
        mpf(0),
        mpf(1),
        lambda z: z,
        26,
        0,
    ),
    Fit(
        "ASIN",
        "`(asin(t) / t - 1) / z` of `z = t^2`, for `t <= 1/2`.",
        even(lambda t: (mp.asin(t) / t - 1) / (t * t)),
        mpf(0),
        mpf("0.25"),
        lambda z: z,
        26,
        0,
    ),
    *(fit._replace(single=24, double=0) for fit in FITS if fit.name in ("SIN", "COS")),
    Fit(
        "TAN",
        "`(tan(r) / r - 1) / z` of `z = r^2`, for `r <= pi / 4`.",
        even(lambda r: (mp.tan(r) / r - 1) / (r * r)),
        mpf(0),
        mpf("0.6170"),
        lambda z: z,
        26,
        0,
    ),
    Fit(
        "CBRT",
        "`1 / cbrt(m)` for `1 <= m <= 2`, to be improved by one step.",
        lambda m: 1 / mp.cbrt(m),
        mpf(1),
        mpf(2),
        lambda m: mp.cbrt(m),
        13,
        0,
    ),
]


def cached(f: Function) -> Function:
    seen: dict[mpf, mpf] = {}

    def call(x: mpf) -> mpf:
        if x not in seen:
            seen[x] = f(x)
        return seen[x]

    return call


def interpolate(f: Function, low: mpf, high: mpf, degree: int) -> list[mpf]:
    """The coefficients, lowest degree first, of the polynomial through the Chebyshev nodes."""
    count = degree + 1
    centre, half = (low + high) / 2, (high - low) / 2
    nodes = [mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]
    points = [centre + half * node for node in nodes]
    # The quotients are not defined at 0 itself.
    points = [point if abs(point) > mpf(10) ** -20 else mpf(10) ** -20 for point in points]
    # Newton's divided differences, then the product form is expanded.
    table = [f(point) for point in points]
    for level in range(1, count):
        for k in range(count - 1, level - 1, -1):
            table[k] = (table[k] - table[k - 1]) / (points[k] - points[k - level])
    polynomial = [table[-1]]
    for k in range(count - 2, -1, -1):
        shifted = [mpf(0), *polynomial]
        for i, c in enumerate(polynomial):
            shifted[i] -= points[k] * c
        shifted[0] += table[k]
        polynomial = shifted
    return polynomial


def evaluate(polynomial: list[mpf], x: mpf) -> mpf:
    total = mpf(0)
    for c in reversed(polynomial):
        total = total * x + c
    return total


def fit(item: Fit, bits: int) -> tuple[list[mpf], mpf]:
    """The polynomial of the least degree that meets the bound, and its error."""
    f = cached(item.function)
    samples = [item.low + (item.high - item.low) * (k + mpf("0.37")) / 61 for k in range(61)]
    for degree in range(1, 40):
        polynomial = interpolate(f, item.low, item.high, degree)
        error = max(abs(evaluate(polynomial, x) - f(x)) * item.weight(x) for x in samples)
        if error < mpf(2) ** -bits:
            return polynomial, error
    raise SystemExit(f"{item.name}: no degree reaches 2^-{bits}")


def rounded(x: mpf, bits: int) -> float:
    """Rounds down to a multiple of `2^-bits`, so that products with small integers are exact."""
    return float(mp.floor(x * mpf(2) ** bits) / mpf(2) ** bits)


def literal(x: mpf | float) -> str:
    return repr(float(x))


def single_literal(x: mpf) -> str:
    """The shortest decimal number whose nearest f32 is that of `x`."""
    return str(np.float32(float(x)))


def constants() -> list[tuple[str, str, float]]:
    """The names, descriptions and values of the constants that need more than 53 bits."""
    ln2, half_pi = mp.log(2), mp.pi / 2
    ln2_high = rounded(ln2, 33)
    first = rounded(half_pi, 32)
    second = rounded(half_pi - mpf(first), 66)
    per_ln2 = 2 / (3 * ln2)
    return [
        ("LN2_HIGH", "The leading 33 bits of the logarithm of 2.", ln2_high),
        ("LN2_LOW", "The rest of it.", float(ln2 - mpf(ln2_high))),
        ("HALF_PI_1", "The leading 33 bits of pi / 2.", first),
        ("HALF_PI_2", "The next 33 bits of pi / 2.", second),
        ("HALF_PI_3", "What follows the first 66 bits.", float(half_pi - mpf(first) - mpf(second))),
        (
            "HALF_PI_LOW",
            "What the nearest f64 to pi / 2 lacks.",
            float(half_pi - mpf(float(half_pi))),
        ),
        ("PER_LN2", "2 / (3 log(2)).", float(per_ln2)),
        ("PER_LN2_LOW", "What the nearest f64 to it lacks.", float(per_ln2 - mpf(float(per_ln2)))),
    ]


def two_over_pi() -> list[int]:
    """The fraction bits of 2 / pi in 64-bit words, highest first, after one word of zeros."""
    words = 19
    with mp.workdps(400):
        number = int(mp.floor(2 / mp.pi * mpf(2) ** (64 * words)))
    return [0, *(number >> (64 * (words - 1 - k)) & (2**64 - 1) for k in range(words))]


def main() -> None:
    """Prints the file."""
    print("//! Coefficients and constants, made by `tools/minimax.py`: not to be edited.\n")
    print("#![allow(clippy::excessive_precision, clippy::unreadable_literal)]")
    print("#![allow(clippy::approx_constant)]\n")
    print("/// How accurate the polynomials are, lowest coefficient first.")
    print("pub(super) struct Precision {")
    print("    /// Whether results are f64, and the parts below its last bit count.")
    print("    pub(super) is_double: bool,")
    for item in FITS:
        print(f"    /// {item.doc}")
        print(f"    pub(super) {item.name.lower()}: &'static [f64],")
    print("}\n")
    for name, doc, double in (
        ("SINGLE", "For results that are rounded to f32.", False),
        ("DOUBLE", "For results in f64.", True),
    ):
        print(f"/// {doc}\npub(super) const {name}: Precision = Precision {{")
        print(f"    is_double: {str(double).lower()},")
        for item in FITS:
            polynomial, error = fit(item, item.double if double else item.single)
            print(f"    // Within 2^{float(mp.log(error, 2)):.1f}.")
            print(f"    {item.name.lower()}: &[")
            for c in polynomial:
                print(f"        {literal(c)},")
            print("    ],")
        print("};\n")
    for item in WIDE:
        polynomial, error = fit(item, item.single or item.double)
        print(f"/// {item.doc}\n// Within 2^{float(mp.log(error, 2)):.1f}.")
        print(f"pub(super) const {item.name}: &[f64] = &[")
        for c in polynomial:
            print(f"    {literal(c)},")
        print("];\n")
    print("/// Polynomials for computation in f32.")
    print("pub(super) mod narrow {")
    for item in NARROW:
        polynomial, error = fit(item, item.single)
        # The printed bound does not include the error of rounding the coefficients.
        print(f"    /// {item.doc}\n    // Within 2^{float(mp.log(error, 2)):.1f}.")
        print(f"    pub(in super::super) const {item.name}: &[f32] = &[")
        for c in polynomial:
            print(f"        {single_literal(c)},")
        print("    ];")
    print("}\n")
    for name, doc, value in constants():
        print(f"/// {doc}\npub(super) const {name}: f64 = {literal(value)};\n")
    words = two_over_pi()
    print("/// The bits of 2 / pi behind the point, highest first, after 64 zeros.")
    print(f"pub(super) const TWO_OVER_PI: [u64; {len(words)}] = [")
    for word in words:
        print(f"    0x{word:016x},")
    print("];")


if __name__ == "__main__":
    main()
