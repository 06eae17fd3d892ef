//! Logarithms and inverse hyperbolic functions.
//!
//! `log(1 + f) = f - f^2 / 2 + f^3 q(f)`, the largest term added last, as in the Cephes library (Moshier, 1989).

use super::super::bits::select;
use super::super::tables::{Precision, narrow};
use super::exp::{LN2_HIGH, LN2_LOW};
use super::{flipped, mac, poly, power_of_two, sign_of, split, split_any};

/// `k log(2) + log(1 + f) + c`, for `1 + f` between `sqrt(1/2)` and `sqrt(2)`.
#[inline(always)]
fn log_of<P: Precision>(k: i32, f: f32, c: f32) -> f32 {
    let k = k as f32;
    let z = f * f;
    let tail = mac::<P>(k, LN2_LOW, mac::<P>(f * z, poly::<P>(f, narrow::LOG), c));
    mac::<P>(k, LN2_HIGH, f + mac::<P>(-0.5, z, tail))
}

/// Replaces a logarithm of `argument` by the special value at the ends of its domain and outside of it.
#[inline(always)]
fn special_log(log: f32, argument: f32, x: f32) -> f32 {
    let log = select(argument == f32::INFINITY, f32::INFINITY, log);
    let log = select(argument == 0.0, f32::NEG_INFINITY, log);
    // NaN for negative arguments and NaN.
    select(argument >= 0.0, log, f32::NAN + x)
}

#[inline(always)]
pub(in super::super) fn log<P: Precision>(x: f32) -> f32 {
    let (m, k) = split_any(x);
    special_log(log_of::<P>(k, m - 1.0, 0.0), x, x)
}

/// `k (unit[0] + unit[1]) + (scale[0] + scale[1]) log(1 + f)` for `x = 2^k (1 + f)`. `k unit[0]` is exact.
#[inline(always)]
fn log_scaled<P: Precision>(x: f32, unit: [f32; 2], scale: [f32; 2]) -> f32 {
    let (m, k) = split_any(x);
    let (f, k) = (m - 1.0, k as f32);
    let z = f * f;
    let tail = mac::<P>(-0.5, z, f * z * poly::<P>(f, narrow::LOG));
    let low = mac::<P>(f, scale[1], k * unit[1]);
    let log = mac::<P>(f, scale[0], mac::<P>(tail, scale[0], low));
    special_log(mac::<P>(k, unit[0], log), x, x)
}

#[inline(always)]
pub(in super::super) fn log2<P: Precision>(x: f32) -> f32 {
    // 1 / log(2) as f32, and the remainder.
    log_scaled::<P>(x, [1.0, 0.0], [std::f32::consts::LOG2_E, 1.925_963e-8])
}

#[inline(always)]
pub(in super::super) fn log10<P: Precision>(x: f32) -> f32 {
    // log10(2) to 15 bits, and the remainder; 1 / log(10) as f32, and the remainder.
    log_scaled::<P>(x, [0.301_025_4, 4.605_039e-6], [std::f32::consts::LOG10_E, -1.010_305e-8])
}

/// `log(1 + y + low)` for `y > -1`, or `log(x) + more log(2)` if `x` is large.
#[inline(always)]
fn log_above<P: Precision>(y: f32, low: f32, large: bool, x: f32, more: i32) -> f32 {
    let (m, k) = split(select(large, x, 1.0 + y));
    // 2^-k y + (2^-k - 1), and the rounding error of this sum.
    let scale = power_of_two(0u32.wrapping_sub(k as u32));
    let less = scale - 1.0;
    let f = mac::<P>(y, scale, less);
    let lost = mac::<P>(low, scale, mac::<P>(y, scale, less - f));
    log_of::<P>(select(large, k + more, k), select(large, m - 1.0, f), select(large, 0.0, lost))
}

#[inline(always)]
pub(in super::super) fn log1p<P: Precision>(x: f32) -> f32 {
    let log = special_log(log_above::<P>(x, 0.0, x > 16_777_216.0, x, 0), 1.0 + x, x);
    select(x.abs() < 1e-8, x, log)
}

/// Above this limit `asinh(x)` and `acosh(x)` are `log(2x)`.
const LARGE: f32 = 4096.0;

/// `log1p(x + x^2 / (1 + sqrt(1 + x^2)))`.
#[inline(always)]
pub(in super::super) fn asinh<P: Precision>(x: f32) -> f32 {
    let magnitude = x.abs();
    let root = mac::<P>(magnitude, magnitude, 1.0).sqrt();
    let rest = magnitude * magnitude / (1.0 + root);
    let y = magnitude + rest;
    let log = log_above::<P>(y, rest - (y - magnitude), magnitude > LARGE, magnitude, 1);
    // Infinity and NaN.
    let log = select(magnitude < f32::INFINITY, log, magnitude);
    flipped(log, sign_of(x))
}

/// `log1p(t + sqrt(2t + t^2))` for `t = x - 1`.
#[inline(always)]
pub(in super::super) fn acosh<P: Precision>(x: f32) -> f32 {
    let t = x - 1.0;
    let root = mac::<P>(t, t, 2.0 * t).sqrt();
    let y = root + t;
    let log = log_above::<P>(y, t - (y - root), x > LARGE, x, 1);
    let log = select(x == f32::INFINITY, x, log);
    select(x >= 1.0, log, f32::NAN + x)
}

/// Half the logarithm of `(1 + x) / (1 - x) = 2^k (1 + s) / (1 - s)`. For small `x`, `s` is `x`.
#[inline(always)]
pub(in super::super) fn atanh<P: Precision>(x: f32) -> f32 {
    let magnitude = x.abs();
    let (above, below) = (1.0 + magnitude, 1.0 - magnitude);
    // About the exponent of the quotient, because the bits of a number are nearly its logarithm. It is rounded down, so
    // that s is hardly below 0 and the two terms do not cancel.
    let k = (above.to_bits().wrapping_sub(below.to_bits()).wrapping_add(1 << 18) as i32) >> 23;
    let n = power_of_two(k as u32);
    // The difference cancels, so each form rounds once; near 1, 1 - x is exact.
    let near = mac::<P>(n, magnitude, 1.0 - n) + magnitude;
    let far = mac::<P>(-n, below, above);
    let s = select(magnitude < 0.5, near, far) / mac::<P>(n, below, above);
    let z = s * s;
    let k = k as f32;
    let tail = mac::<P>(k, 0.5 * LN2_LOW, s * z * poly::<P>(z, narrow::ATANH));
    let log = mac::<P>(k, 0.5 * LN2_HIGH, s + tail);
    let log = select(magnitude == 1.0, f32::INFINITY, log);
    flipped(select(magnitude <= 1.0, log, f32::NAN + x), sign_of(x))
}
