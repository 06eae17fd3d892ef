//! Logarithms and inverse hyperbolic functions.
//!
//! `log(1 + f) = f - f^2 / 2 + f^3 q(f)`, the largest term added last, as in the Cephes library (Moshier,
//! 1989).

use super::super::super::{Conv, Elem, Op, Val};
use super::super::floats::Floats;
use super::super::tables::narrow;
use super::exp::{LN2_HIGH, LN2_LOW};
use super::{split, split_any};

/// `k log(2) + log(1 + f) + c`, for `1 + f` between `sqrt(1/2)` and `sqrt(2)`.
fn log_of(m: &mut Floats, k: Val, f: Val, c: Option<Val>) -> Val {
    let z = m.mul(f, f);
    let q = m.poly(f, narrow::LOG);
    let cube = m.mul(f, z);
    let tail = match c {
        Some(c) => m.fma(cube, q, c),
        None => m.mul(cube, q),
    };
    let tail = m.fma(k, LN2_LOW, tail);
    let tail = m.fnma(0.5, z, tail);
    let log = m.add(f, tail);
    m.fma(k, LN2_HIGH, log)
}

/// Replaces a logarithm of `argument` by the special value at the ends of its domain and outside of it.
fn special_log(m: &mut Floats, log: Val, argument: Val) -> Val {
    let finite = m.lt(argument, f32::INFINITY);
    let log = m.select(finite, log, argument);
    let zero = m.eq(argument, 0.0);
    let log = m.select(zero, f32::NEG_INFINITY, log);
    let below = m.lt(argument, 0.0);
    m.select(below, f32::NAN, log)
}

/// The natural logarithm.
pub(in super::super) fn log(m: &mut Floats, x: Val) -> Val {
    let (mantissa, k) = split_any(m, x);
    let f = m.sub(mantissa, 1.0);
    let log = log_of(m, k, f, None);
    special_log(m, log, x)
}

/// `k (unit[0] + unit[1]) + (scale[0] + scale[1]) log(1 + f)` for `x = 2^k (1 + f)`. `k unit[0]` is exact.
fn log_scaled(m: &mut Floats, x: Val, unit: [f32; 2], scale: [f32; 2]) -> Val {
    let (mantissa, k) = split_any(m, x);
    let f = m.sub(mantissa, 1.0);
    let z = m.mul(f, f);
    let q = m.poly(f, narrow::LOG);
    let cube = m.mul(f, z);
    let cube = m.mul(cube, q);
    let tail = m.fnma(0.5, z, cube);
    let low = if unit[1] == 0.0 {
        m.mul(f, scale[1])
    } else {
        let low = m.mul(k, unit[1]);
        m.fma(f, scale[1], low)
    };
    let log = m.fma(tail, scale[0], low);
    let log = m.fma(f, scale[0], log);
    let log = if unit[0] == 1.0 { m.add(k, log) } else { m.fma(k, unit[0], log) };
    special_log(m, log, x)
}

/// The logarithm to base 2.
pub(in super::super) fn log2(m: &mut Floats, x: Val) -> Val {
    // 1 / log(2) as f32, and the remainder.
    log_scaled(m, x, [1.0, 0.0], [std::f32::consts::LOG2_E, 1.925_963e-8])
}

/// The logarithm to base 10.
pub(in super::super) fn log10(m: &mut Floats, x: Val) -> Val {
    // log10(2) to 15 bits, and the remainder; 1 / log(10) as f32, and the remainder.
    log_scaled(m, x, [0.301_025_4, 4.605_039e-6], [std::f32::consts::LOG10_E, -1.010_305e-8])
}

/// The logarithm of `x` times 2^`more`, for `x` so large that nothing else counts.
struct Large {
    /// Where it is.
    holds: Val,
    x: Val,
    more: f32,
}

/// `log(1 + y + low)` for `y > -1`, or that of a large number.
fn log_above(m: &mut Floats, y: Val, low: Option<Val>, large: &Large) -> Val {
    let sum = m.add(1.0, y);
    let argument = m.select(large.holds, large.x, sum);
    let (mantissa, k) = split(m, argument);
    // 2^-k y + (2^-k - 1), and the rounding error of this sum. The exponent of 2^-k is the difference to that
    // of 1.
    let bits = m.bits(argument);
    let near = m.bits(mantissa);
    let shifted = m.ir.sub(near, bits);
    let bits = m.plus(shifted, m.one_bits());
    let scale = m.of_bits(bits);
    let less = m.sub(scale, 1.0);
    let f = m.fma(y, scale, less);
    let lost = m.sub(less, f);
    let lost = m.fma(y, scale, lost);
    let lost = match low {
        Some(low) => m.fma(low, scale, lost),
        None => lost,
    };
    let k = if large.more == 0.0 {
        k
    } else {
        let more = m.add(k, large.more);
        m.select(large.holds, more, k)
    };
    let alone = m.sub(mantissa, 1.0);
    let f = m.select(large.holds, alone, f);
    let lost = m.select(large.holds, 0.0, lost);
    log_of(m, k, f, Some(lost))
}

/// `log(1 + x)`.
pub(in super::super) fn log1p(m: &mut Floats, x: Val) -> Val {
    let holds = m.lt(16_777_216.0, x);
    let log = log_above(m, x, None, &Large { holds, x, more: 0.0 });
    let argument = m.add(1.0, x);
    let log = special_log(m, log, argument);
    let magnitude = m.abs(x);
    let small = m.lt(magnitude, 1e-8f32);
    m.select(small, x, log)
}

/// Above this limit `asinh(x)` and `acosh(x)` are `log(2x)`.
const LARGE: f32 = 4096.0;

/// `log1p(x + x^2 / (1 + sqrt(1 + x^2)))`.
pub(in super::super) fn asinh(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let above = m.fma(magnitude, magnitude, 1.0);
    let root = m.sqrt(above);
    let square = m.mul(magnitude, magnitude);
    let below = m.add(1.0, root);
    let rest = m.div(square, below);
    let y = m.add(magnitude, rest);
    let taken = m.sub(y, magnitude);
    let low = m.sub(rest, taken);
    let holds = m.lt(LARGE, magnitude);
    let log = log_above(m, y, Some(low), &Large { holds, x: magnitude, more: 1.0 });
    // Infinity and NaN.
    let finite = m.lt(magnitude, f32::INFINITY);
    let log = m.select(finite, log, magnitude);
    m.flipped(log, x)
}

/// `log1p(t + sqrt(2t + t^2))` for `t = x - 1`.
pub(in super::super) fn acosh(m: &mut Floats, x: Val) -> Val {
    let t = m.sub(x, 1.0);
    let twice = m.add(t, t);
    let square = m.fma(t, t, twice);
    let root = m.sqrt(square);
    let y = m.add(root, t);
    let taken = m.sub(y, root);
    let low = m.sub(t, taken);
    let holds = m.lt(LARGE, x);
    let log = log_above(m, y, Some(low), &Large { holds, x, more: 1.0 });
    let finite = m.lt(x, f32::INFINITY);
    let log = m.select(finite, log, x);
    let below = m.lt(x, 1.0);
    m.select(below, f32::NAN, log)
}

/// Half the logarithm of `(1 + x) / (1 - x) = 2^k (1 + s) / (1 - s)`. For small `x`, `s` is `x`.
pub(in super::super) fn atanh(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let (above, below) = (m.add(1.0, magnitude), m.sub(1.0, magnitude));
    // About the exponent of the quotient, because the bits of a number are nearly its logarithm. It is
    // rounded down, so that s is hardly below 0 and the two terms do not cancel.
    let (high, low) = (m.bits(above), m.bits(below));
    let quotient = m.ir.sub(high, low);
    let quotient = m.plus(quotient, 1 << 18);
    let k = m.ir.op(Op::SarBy(23), [quotient]);
    let k = m.ir.convert(Conv::FloatOfS, Elem::F32, k);
    let bits = m.masked(quotient, 0xFF80_0000);
    let bits = m.plus(bits, m.one_bits());
    let n = m.of_bits(bits);
    // The difference cancels, so each form rounds once; near 1, 1 - x is exact.
    let near = m.sub(1.0, n);
    let near = m.fma(n, magnitude, near);
    let near = m.add(near, magnitude);
    let far = m.fnma(n, below, above);
    let is_near = m.lt(magnitude, 0.5);
    let difference = m.select(is_near, near, far);
    let sum = m.fma(n, below, above);
    let s = m.div(difference, sum);
    let z = m.mul(s, s);
    let q = m.poly(z, narrow::ATANH);
    let cube = m.mul(s, z);
    let tail = m.mul(cube, q);
    let tail = m.fma(k, 0.5 * LN2_LOW, tail);
    let log = m.add(s, tail);
    let log = m.fma(k, 0.5 * LN2_HIGH, log);
    let end = m.eq(magnitude, 1.0);
    let log = m.select(end, f32::INFINITY, log);
    let inside = m.le(magnitude, 1.0);
    let log = m.select(inside, log, f32::NAN);
    m.flipped(log, x)
}
