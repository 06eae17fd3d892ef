"""The errors of the functions, in units in the last place.

mpmath is the oracle. f64 is compared with it directly. f32 is compared with our f64 on the same
numbers, which is 2^29 times finer, and which the comparison with mpmath has shown to be right.

    python tests/ulp.py > docs/ulp.md          4,096 mantissas per exponent
    python tests/ulp.py --all > docs/ulp.md    every f32 there is: takes minutes
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from mpmath import mp, mpf

import defn as dn

# The bounds, in units of the last place.
BOUNDS = {"f32": 2.0, "f64": 4.0}


def cbrt(x: mpf) -> mpf:
    return mp.cbrt(x) if x >= 0 else -mp.cbrt(-x)


def erf_inv(x: mpf) -> mpf:
    """Newton's method on the error function or its complement, from our own result."""
    magnitude = abs(x)
    y = mpf(float(dn.erf_inv(dn.tensor(np.float64(magnitude))).to_numpy()))
    for _ in range(3):
        # Exact, without a difference of close numbers.
        error = mp.erfc(y) - (1 - magnitude) if magnitude > 0.5 else magnitude - mp.erf(y)
        y += error * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
    return y if x >= 0 else -y


class Function(NamedTuple):
    """The exact function, and the interval where its value is a finite number."""

    exact: Callable[[mpf], mpf]
    low: float = -float("inf")
    high: float = float("inf")


# Functions of two numbers, the first of which is positive.
PAIRS: dict[str, Callable[[mpf, mpf], mpf]] = {"pow": mp.power, "atan2": mp.atan2}

TINY = 5e-324
FUNCTIONS: dict[str, Function] = {
    "acos": Function(mp.acos, -1, 1),
    "acosh": Function(mp.acosh, 1),
    "asin": Function(mp.asin, -1, 1),
    "asinh": Function(mp.asinh),
    "atan": Function(mp.atan),
    "atanh": Function(mp.atanh, -1 + 2**-53, 1 - 2**-53),
    "cbrt": Function(cbrt),
    "cos": Function(mp.cos),
    "cosh": Function(mp.cosh, -711, 711),
    "erf": Function(mp.erf, -40, 40),
    "erf_inv": Function(erf_inv, -1 + 2**-53, 1 - 2**-53),
    "erfc": Function(mp.erfc, -40, 30),
    "exp": Function(mp.exp, -800, 710),
    "expm1": Function(mp.expm1, -800, 710),
    "log": Function(mp.log, TINY),
    "log10": Function(mp.log10, TINY),
    "log1p": Function(mp.log1p, -1 + 2**-53),
    "log2": Function(lambda x: mp.log(x, 2), TINY),
    "rsqrt": Function(lambda x: 1 / mp.sqrt(x), TINY),
    "sigmoid": Function(lambda x: 1 / (1 + mp.exp(-x)), -800, 800),
    "sin": Function(mp.sin),
    "sinh": Function(mp.sinh, -711, 711),
    "sqrt": Function(mp.sqrt, 0),
    "tan": Function(mp.tan),
    "tanh": Function(mp.tanh, -40, 40),
}


class Worst(NamedTuple):
    """The largest error, its argument, and the number of values."""

    ulps: float
    x: float
    count: int


def mantissas(dtype: str, each: int, seed: int = 0) -> np.ndarray:
    """Numbers with every exponent and both signs, ``each`` random mantissas for every one."""
    rng = np.random.default_rng(seed)
    width, exponents, unsigned = {
        "f32": (23, 255, np.uint32),
        "f64": (52, 2047, np.uint64),
    }[dtype]
    high = np.repeat(np.arange(exponents, dtype=unsigned), each) << unsigned(width)
    low = rng.integers(0, 1 << width, size=high.size).astype(unsigned)
    positive = (high | low).view(np.float32 if dtype == "f32" else np.float64)
    return np.concatenate([positive, -positive])


def pairs(dtype: str, each: int, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Positive bases with every exponent and around 1, and mostly finite powers of them."""
    rng = np.random.default_rng(seed)
    base = mantissas(dtype, each, seed)
    base = base[base > 0]
    base = np.concatenate([base, 1 + rng.uniform(-0.5, 1, base.size).astype(base.dtype)])
    with np.errstate(divide="ignore"):
        reach = {"f32": 88.0, "f64": 708.0}[dtype] / np.abs(np.log(base.astype(np.float64)))
    beside = rng.uniform(-1, 1, base.size) * np.minimum(reach, 1e30)
    return base, beside.astype(base.dtype)


def in_domain(name: str, x: np.ndarray) -> np.ndarray:
    function = FUNCTIONS[name]
    # In f64, because f32 has no number that close to the end of the domain.
    wide = x.astype(np.float64)
    return x[(wide >= function.low) & (wide <= function.high)]


def samples(name: str, dtype: str, each: int) -> np.ndarray:
    """Numbers for the comparison with mpmath: all exponents, and more where functions bend."""
    rng = np.random.default_rng(1)
    own = np.float32 if dtype == "f32" else np.float64
    bends = [rng.uniform(-30, 30, 60 * each), rng.uniform(-2, 2, 60 * each)]
    bends += [rng.uniform(-720, 720, 40 * each), 1 - np.exp(rng.uniform(-36, 0, 20 * each))]
    x = np.concatenate([mantissas(dtype, each), np.concatenate(bends).astype(own)])
    return in_domain(name, x)


def ulps(got: float, exact: mpf, digits: int, least: int, largest: float) -> float:
    """The error in units of the last place of the exact value."""
    if got != got or abs(got) == float("inf"):
        # The nearest float to an exact value beyond the largest number may be infinity.
        overflown = got == got and abs(exact) >= largest and (got > 0) == (exact > 0)
        return 0.0 if overflown else float("inf")
    if exact == 0:
        return 0.0 if got == 0 else float("inf")
    _, exponent = mp.frexp(exact)
    unit = mpf(2) ** max(exponent - digits, least)
    return float(abs(mpf(got) - exact) / unit)


def against_mpmath(name: str, dtype: str, each: int) -> Worst:
    """The largest error over the samples, compared with mpmath."""
    x = samples(name, dtype, each)
    got = getattr(dn, name)(dn.tensor(x)).to_numpy().astype(np.float64)
    digits, least, largest = (
        (24, -149, 3.4028235677973366e38)
        if dtype == "f32"
        else (53, -1074, mpf(2) ** 1024 - mpf(2) ** 970)
    )
    exact = FUNCTIONS[name].exact
    # mpmath itself adds the digits that the reduction of a large trigonometric argument needs.
    mp.prec = 100
    worst = Worst(0.0, 0.0, x.size)
    for number, value in zip(x.astype(np.float64).tolist(), got.tolist(), strict=True):
        error = ulps(value, exact(mpf(number)), digits, least, largest)
        if error > worst.ulps:
            worst = Worst(error, number, x.size)
    return worst


def against_double(name: str, x: np.ndarray) -> Worst:
    """The largest error of f32, compared with f64 on the same numbers; NaN must agree."""
    function = getattr(dn, name)
    got = function(dn.tensor(x)).to_numpy()
    want = function(dn.as_type(dn.tensor(x), "f64")).to_numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        near = want.astype(np.float32)
        # A result that is the nearest f32 is off by half a unit at most.
        far = np.flatnonzero((got != near) & ~((got != got) & (near != near)))
        if far.size == 0:
            return Worst(0.5, float("nan"), x.size)
        value, exact = got[far].astype(np.float64), want[far]
        _, exponent = np.frexp(exact)
        error = np.abs(value - exact) / np.ldexp(1.0, np.maximum(exponent - 24, -149))
        error[~np.isfinite(error)] = np.inf
    place = int(np.argmax(error))
    return Worst(float(error[place]), float(x[far[place]]), x.size)


def pair_against_mpmath(name: str, each: int) -> Worst:
    """The largest error of a function of two f64, compared with mpmath."""
    x, y = pairs("f64", each)
    got = getattr(dn, name)(dn.tensor(x), dn.tensor(y)).to_numpy()
    largest = mpf(2) ** 1024 - mpf(2) ** 970
    mp.prec = 150
    worst = Worst(0.0, 0.0, x.size)
    for a, b, value in zip(x.tolist(), y.tolist(), got.tolist(), strict=True):
        error = ulps(value, PAIRS[name](mpf(a), mpf(b)), 53, -1074, largest)
        if error > worst.ulps:
            worst = Worst(error, a, x.size)
    return worst


def pair_against_double(name: str, each: int) -> Worst:
    """The largest error of a function of two f32, compared with f64 on the same numbers."""
    x, y = pairs("f32", each)
    function = getattr(dn, name)
    got = function(dn.tensor(x), dn.tensor(y)).to_numpy().astype(np.float64)
    exact = function(dn.as_type(dn.tensor(x), "f64"), dn.as_type(dn.tensor(y), "f64")).to_numpy()
    _, exponent = np.frexp(exact)
    error = np.abs(got - exact) / np.ldexp(1.0, np.maximum(exponent - 24, -149))
    place = int(np.argmax(error))
    return Worst(float(error[place]), float(x[place]), x.size)


def every_single(name: str) -> Worst:
    """The same for all 2^32 values of f32."""
    worst = Worst(0.5, float("nan"), 1 << 32)
    step = 1 << 20
    for start in range(0, 1 << 32, step):
        x = np.arange(start, start + step, dtype=np.uint64).astype(np.uint32).view(np.float32)
        found = against_double(name, x)
        if found.ulps > worst.ulps:
            worst = Worst(found.ulps, found.x, 1 << 32)
    return worst


def main(options: list[str]) -> int:
    """Prints the document."""
    everything = "--all" in options
    each = 64 if everything else 4
    count = "all 2^32 values" if everything else "4,096 mantissas per exponent and sign"
    print("# Accuracy of the functions of real numbers\n")
    print("`python tests/ulp.py` writes this page. Errors are in units in the last place;")
    print("rounding the exact value alone costs up to half a unit.")
    print(f"f32: {count}, compared with f64, which is 2^29 times finer.")
    print(f"f64: {each} mantissas per exponent and sign, with more samples where functions")
    print("curve, compared with mpmath. `-`: every f32 result was correctly rounded.\n")
    print("| function | f32, at most | at | f64, at most | at | values of f64 |")
    print("|---|---:|---:|---:|---:|---:|")
    singles = mantissas("f32", 4096)
    for name in FUNCTIONS:
        single = every_single(name) if everything else against_double(name, singles)
        double = against_mpmath(name, "f64", each)
        at = "-" if single.x != single.x else repr(single.x)
        print(
            f"| `{name}` | {single.ulps:.4f} | {at} | {double.ulps:.3f} | {double.x!r} "
            f"| {double.count:,} |",
            flush=True,
        )
    for name in PAIRS:
        single = pair_against_double(name, 4096)
        double = pair_against_mpmath(name, each)
        print(
            f"| `{name}` | {single.ulps:.4f} | {single.x!r} | {double.ulps:.3f} | {double.x!r} "
            f"| {double.count:,} |",
            flush=True,
        )
    print("\n`pow` and `atan2` take two numbers, so both dtypes are compared on random pairs.")
    print("The first number is positive and takes every exponent, the second is such that")
    print("powers are finite. The table shows the first number.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
