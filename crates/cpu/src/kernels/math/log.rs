//! Logarithms and inverse hyperbolic functions.
//!
//! `log(1 + f)` is computed from `s = f / (2 + f)`, as in fdlibm (Sun Microsystems, 1993).

use std::f64::consts::{LN_2, LN_10};

use super::bits::{flipped, mac, poly, select, sign_of, split, split_any};
use super::tables::{LN2_HIGH, LN2_LOW, Precision};

/// `k log(2) + log(1 + f) + c`, for `1 + f` between `sqrt(1/2)` and `sqrt(2)`.
#[inline(always)]
fn log_of<P: Precision>(k: f64, f: f64, c: f64) -> f64 {
    let s = f / (2.0 + f);
    let z = s * s;
    let r = z * poly::<P>(z, P::LOG);
    if P::DOUBLE {
        let half = 0.5 * f * f;
        mac::<P>(k, LN2_HIGH, -((half - mac::<P>(s, half + r, mac::<P>(k, LN2_LOW, c))) - f))
    } else {
        mac::<P>(k, LN_2, mac::<P>(s, 2.0 + r, c))
    }
}

#[inline(always)]
pub(super) fn log<P: Precision>(x: f64) -> f64 {
    let (m, k) = if P::DOUBLE { split_any(x) } else { split(x) };
    special_log(log_of::<P>(k, m - 1.0, 0.0), x, x)
}

#[inline(always)]
pub(super) fn log2<P: Precision>(x: f64) -> f64 {
    let (m, k) = split_any(x);
    special_log(k + log_of::<P>(0.0, m - 1.0, 0.0) / LN_2, x, x)
}

#[inline(always)]
pub(super) fn log10<P: Precision>(x: f64) -> f64 {
    log::<P>(x) / LN_10
}

/// The logarithm, or its special value at the ends of the domain of `argument`.
#[inline(always)]
fn special_log(log: f64, argument: f64, x: f64) -> f64 {
    let log = select(argument == f64::INFINITY, f64::INFINITY, log);
    let log = select(argument == 0.0, f64::NEG_INFINITY, log);
    // NaN for negative arguments and NaN.
    select(argument >= 0.0, log, f64::NAN + x)
}

/// `log(1 + x)`, corrected for the rounding of `1 + x`.
#[inline(always)]
fn log1p_finite<P: Precision>(x: f64) -> f64 {
    let u = 1.0 + x;
    let (m, k) = split(u);
    let lost = select(k >= 2.0, 1.0 - (u - x), x - (u - 1.0));
    let exact = k == 0.0;
    let (f, c) = (m - 1.0, lost / u);
    log_of::<P>(k, select(exact, x, f), select(exact, 0.0, c))
}

#[inline(always)]
pub(super) fn log1p<P: Precision>(x: f64) -> f64 {
    let log = special_log(log1p_finite::<P>(x), 1.0 + x, x);
    select(x.abs() < 1e-17, x, log)
}

/// Above this limit `asinh(x)` and `acosh(x)` are `log(2x)`.
const LARGE: f64 = 268_435_456.0;

/// `log1p(x + x^2 / (1 + sqrt(1 + x^2)))`.
#[inline(always)]
pub(super) fn asinh<P: Precision>(x: f64) -> f64 {
    let magnitude = x.abs();
    let square = magnitude * magnitude;
    let root = (1.0 + square).sqrt();
    let log = log1p_or_double::<P>(magnitude, magnitude + square / (1.0 + root));
    let log = select(magnitude == f64::INFINITY, magnitude, log);
    // The first terms of the series.
    let series = magnitude - magnitude * square * (1.0 / 6.0);
    let log = select(magnitude < 1e-9, series, log);
    let log = select(x.is_nan(), x, log);
    flipped(log, sign_of(x))
}

/// `log1p(t + sqrt(2t + t^2))` for `t = x - 1`.
#[inline(always)]
pub(super) fn acosh<P: Precision>(x: f64) -> f64 {
    let t = x - 1.0;
    let root = (2.0 * t + t * t).sqrt();
    let log = log1p_or_double::<P>(x, t + root);
    let log = select(x == f64::INFINITY, x, log);
    select(x >= 1.0, log, f64::NAN + x)
}

/// `log(1 + y)`, or `log(2x)` where `x` is large.
#[inline(always)]
fn log1p_or_double<P: Precision>(x: f64, y: f64) -> f64 {
    let large = x > LARGE;
    let u = 1.0 + y;
    let (m, k) = split(select(large, x, u));
    let lost = select(k >= 2.0, 1.0 - (u - y), y - (u - 1.0));
    let lost = lost / u;
    let exact = k == 0.0;
    let c = select(exact || large, 0.0, lost);
    let f = m - 1.0;
    log_of::<P>(select(large, k + 1.0, k), select(exact, y, f), c)
}

/// `log1p(2x / (1 - x)) / 2`.
#[inline(always)]
pub(super) fn atanh<P: Precision>(x: f64) -> f64 {
    let magnitude = x.abs();
    let ratio = 2.0 * magnitude / (1.0 - magnitude);
    let log = log1p_finite::<P>(select(magnitude < 1.0, ratio, 0.0));
    let log = select(magnitude == 1.0, f64::INFINITY, 0.5 * log);
    let log = select(magnitude <= 1.0, log, f64::NAN + x);
    let series = magnitude + magnitude * magnitude * magnitude * (1.0 / 3.0);
    let log = select(magnitude < 1e-9, series, log);
    flipped(log, sign_of(x))
}
