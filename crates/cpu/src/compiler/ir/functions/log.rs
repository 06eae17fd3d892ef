//! Logarithms and inverse hyperbolic functions.
//!
//! `log(1 + f)` is computed from `s = f / (2 + f)`, as in fdlibm (Sun Microsystems, 1993).

use std::f64::consts::{LN_2, LN_10};

use super::super::Val;
use super::floats::Floats;
use super::power::unsigned;
use super::tables::{LN2_HIGH, LN2_LOW};

/// `(m, k)` with `x = m * 2^k` and `m` between `sqrt(1/2)` and `sqrt(2)`, for positive normal `x`.
pub(super) fn split(m: &mut Floats, x: Val) -> (Val, Val) {
    // The bits of sqrt(1/2). After their subtraction the exponent is that of the nearest power of two.
    const ROOT: u64 = 0x3FE6_A09E_667F_3BCD;
    // Keeps the exponent positive: few instruction sets can shift signed 64-bit lanes.
    const BIAS: u64 = 1024;
    let bits = m.bits(x);
    let moved = m.plus(bits, (BIAS << 52).wrapping_sub(ROOT));
    let exponent = m.shr(moved, 52);
    let k = unsigned(m, exponent, BIAS as f64);
    let mantissa = m.masked(moved, (1 << 52) - 1);
    let mantissa = m.plus(mantissa, ROOT);
    (m.of_bits(mantissa), k)
}

/// As [`split`], also for positive subnormal numbers.
pub(super) fn split_any(m: &mut Floats, x: Val) -> (Val, Val) {
    let small = m.lt(x, f64::MIN_POSITIVE);
    let raised = m.mul(x, 18_014_398_509_481_984.0);
    let x = m.select(small, raised, x);
    let (mantissa, k) = split(m, x);
    let lower = m.sub(k, 54.0);
    (mantissa, m.select(small, lower, k))
}

/// `k log(2) + log(1 + f) + c`, for `1 + f` between `sqrt(1/2)` and `sqrt(2)`. What is absent is 0.
fn log_of(m: &mut Floats, k: Option<Val>, f: Val, c: Option<Val>) -> Val {
    let below = m.add(2.0, f);
    let s = m.div(f, below);
    let z = m.mul(s, s);
    let q = m.poly(z, m.precision.log);
    let r = m.mul(z, q);
    if !m.precision.is_double {
        let factor = m.add(2.0, r);
        let log = match c {
            Some(c) => m.fma(s, factor, c),
            None => m.mul(s, factor),
        };
        return match k {
            Some(k) => m.fma(k, LN_2, log),
            None => log,
        };
    }
    let half = m.mul(0.5, f);
    let half = m.mul(half, f);
    let factor = m.add(half, r);
    let low = match (k, c) {
        (Some(k), Some(c)) => Some(m.fma(k, LN2_LOW, c)),
        (Some(k), None) => Some(m.mul(k, LN2_LOW)),
        (None, c) => c,
    };
    let rest = match low {
        Some(low) => m.fma(s, factor, low),
        None => m.mul(s, factor),
    };
    let rest = m.sub(half, rest);
    let log = m.sub(f, rest);
    match k {
        Some(k) => m.fma(k, LN2_HIGH, log),
        None => log,
    }
}

/// The natural logarithm.
pub(super) fn log(m: &mut Floats, x: Val) -> Val {
    let (mantissa, k) = if m.precision.is_double { split_any(m, x) } else { split(m, x) };
    let f = m.sub(mantissa, 1.0);
    let log = log_of(m, Some(k), f, None);
    special_log(m, log, x)
}

/// The logarithm to base 2.
pub(super) fn log2(m: &mut Floats, x: Val) -> Val {
    let (mantissa, k) = split_any(m, x);
    let f = m.sub(mantissa, 1.0);
    let log = log_of(m, None, f, None);
    let log = m.div(log, LN_2);
    let log = m.add(k, log);
    special_log(m, log, x)
}

/// The logarithm to base 10. In f64 that of a power of ten is exact, so that its floor counts digits: `log(1 + f)` is the
/// sum of a part of 20 bits and the rest, as are the constants (`e_log10.c` of FreeBSD's msun, 2011).
pub(super) fn log10(m: &mut Floats, x: Val) -> Val {
    if !m.precision.is_double {
        let log = log(m, x);
        return m.div(log, LN_10);
    }
    // log10(2) and 1 / log(10), each in two parts: products of the first ones are exact.
    const LOG10_2: [f64; 2] = [0.301_029_995_663_611_77, 3.694_239_077_158_931e-13];
    const INVERSE: [f64; 2] = [0.434_294_481_878_168_9, 2.508_294_671_164_527_5e-11];
    const UPPER: u64 = 0xFFFF_FFFF_0000_0000;
    let (mantissa, k) = split_any(m, x);
    let f = m.sub(mantissa, 1.0);
    let below = m.add(2.0, f);
    let s = m.div(f, below);
    let z = m.mul(s, s);
    let q = m.poly(z, m.precision.log);
    let r = m.mul(z, q);
    let half = m.mul(0.5, f);
    let half = m.mul(half, f);
    // log(1 + f) is `high + low`.
    let high = m.sub(f, half);
    let high = m.bits(high);
    let high = m.masked(high, UPPER);
    let high = m.of_bits(high);
    let rest = m.sub(f, high);
    let rest = m.sub(rest, half);
    let factor = m.add(half, r);
    let low = m.fma(s, factor, rest);
    // The large terms, and the small ones.
    let first = m.mul(k, LOG10_2[0]);
    let second = m.mul(high, INVERSE[0]);
    let both = m.add(low, high);
    let small = m.mul(both, INVERSE[1]);
    let small = m.fma(k, LOG10_2[1], small);
    let small = m.fma(low, INVERSE[0], small);
    let sum = m.add(first, second);
    let lost = m.sub(first, sum);
    let lost = m.add(lost, second);
    let small = m.add(small, lost);
    let log = m.add(sum, small);
    special_log(m, log, x)
}

/// The logarithm, or its special value at the ends of the domain of `argument` and outside of it.
pub(super) fn special_log(m: &mut Floats, log: Val, argument: Val) -> Val {
    let finite = m.lt(argument, f64::INFINITY);
    let log = m.select(finite, log, argument);
    let zero = m.eq(argument, 0.0);
    let log = m.select(zero, f64::NEG_INFINITY, log);
    let below = m.lt(argument, 0.0);
    m.select(below, f64::NAN, log)
}

/// `1 + y` was rounded to `u`, and its exponent is `k`: the quotient of what was lost and `u`.
fn lost(m: &mut Floats, y: Val, u: Val, k: Val) -> Val {
    let large = m.le(2.0, k);
    let above = m.sub(u, y);
    let above = m.sub(1.0, above);
    let below = m.sub(u, 1.0);
    let below = m.sub(y, below);
    let lost = m.select(large, above, below);
    m.div(lost, u)
}

/// `log(1 + x)`, corrected for the rounding of `1 + x`.
fn log1p_finite(m: &mut Floats, x: Val) -> Val {
    let u = m.add(1.0, x);
    let (mantissa, k) = split(m, u);
    let c = lost(m, x, u, k);
    let exact = m.eq(k, 0.0);
    let f = m.sub(mantissa, 1.0);
    let f = m.select(exact, x, f);
    let c = m.select(exact, 0.0, c);
    log_of(m, Some(k), f, Some(c))
}

/// `log(1 + x)`.
pub(super) fn log1p(m: &mut Floats, x: Val) -> Val {
    let log = log1p_finite(m, x);
    let argument = m.add(1.0, x);
    let log = special_log(m, log, argument);
    let magnitude = m.abs(x);
    let small = m.lt(magnitude, 1e-17);
    m.select(small, x, log)
}

/// Above this limit `asinh(x)` and `acosh(x)` are `log(2x)`.
const LARGE: f64 = 268_435_456.0;

/// `log1p(x + x^2 / (1 + sqrt(1 + x^2)))`.
pub(super) fn asinh(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let square = m.mul(magnitude, magnitude);
    let sum = m.add(1.0, square);
    let root = m.sqrt(sum);
    let below = m.add(1.0, root);
    let rest = m.div(square, below);
    let y = m.add(magnitude, rest);
    let log = log1p_or_double(m, magnitude, y);
    // Infinity and NaN.
    let finite = m.lt(magnitude, f64::INFINITY);
    let log = m.select(finite, log, magnitude);
    // The first terms of the series.
    let cube = m.mul(magnitude, square);
    let cube = m.mul(cube, 1.0 / 6.0);
    let series = m.sub(magnitude, cube);
    let small = m.lt(magnitude, 1e-9);
    let log = m.select(small, series, log);
    m.flipped(log, x)
}

/// `log1p(t + sqrt(2t + t^2))` for `t = x - 1`.
pub(super) fn acosh(m: &mut Floats, x: Val) -> Val {
    let t = m.sub(x, 1.0);
    let square = m.mul(t, t);
    let twice = m.add(t, t);
    let sum = m.add(twice, square);
    let root = m.sqrt(sum);
    let y = m.add(t, root);
    let log = log1p_or_double(m, x, y);
    let finite = m.lt(x, f64::INFINITY);
    let log = m.select(finite, log, x);
    let below = m.lt(x, 1.0);
    m.select(below, f64::NAN, log)
}

/// `log(1 + y)`, or `log(2x)` where `x` is large.
fn log1p_or_double(m: &mut Floats, x: Val, y: Val) -> Val {
    let large = m.lt(LARGE, x);
    let u = m.add(1.0, y);
    let argument = m.select(large, x, u);
    let (mantissa, k) = split(m, argument);
    let c = lost(m, y, u, k);
    let exact = m.eq(k, 0.0);
    let negligible = m.either(exact, large);
    let c = m.select(negligible, 0.0, c);
    let f = m.sub(mantissa, 1.0);
    let f = m.select(exact, y, f);
    let more = m.add(k, 1.0);
    let k = m.select(large, more, k);
    log_of(m, Some(k), f, Some(c))
}

/// `log1p(2x / (1 - x)) / 2`.
pub(super) fn atanh(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let above = m.add(magnitude, magnitude);
    let below = m.sub(1.0, magnitude);
    let ratio = m.div(above, below);
    let inside = m.lt(magnitude, 1.0);
    let ratio = m.select(inside, ratio, 0.0);
    let log = log1p_finite(m, ratio);
    let half = m.mul(0.5, log);
    let end = m.eq(magnitude, 1.0);
    let log = m.select(end, f64::INFINITY, half);
    let within = m.le(magnitude, 1.0);
    let log = m.select(within, log, f64::NAN);
    let square = m.mul(magnitude, magnitude);
    let cube = m.mul(square, magnitude);
    let cube = m.mul(cube, 1.0 / 3.0);
    let series = m.add(magnitude, cube);
    let small = m.lt(magnitude, 1e-9);
    let log = m.select(small, series, log);
    m.flipped(log, x)
}
