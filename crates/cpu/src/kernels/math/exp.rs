//! Exponentials and hyperbolic functions.
//!
//! The two-step reduction to `|r| <= log(2) / 2` is that of Cody and Waite, Software Manual for the Elementary
//! Functions (1980). The low part is carried as in fdlibm (Sun Microsystems, 1993).

use super::bits::{Exponent, exponent, flipped, mac, poly, scaled, select, sign_of};
use super::tables::{LN2_HIGH, LN2_LOW, Precision, Single};

/// `(p, n)` with `e^(x + low) = (1 + p) * 2^n`, for `|x| < 1500` and a `low` of at most one or two ulp of `x`.
#[inline(always)]
pub(super) fn exp_parts<P: Precision>(x: f64, low: f64) -> (f64, Exponent) {
    let n = exponent::<P>(x, std::f64::consts::LOG2_E);
    // Exact: the constant ends in zeros, and the difference cancels.
    let high = mac::<P>(-n.number, LN2_HIGH, x);
    if P::DOUBLE {
        let rest = mac::<P>(-n.number, LN2_LOW, low);
        let r = high + rest;
        let lost = rest - (r - high);
        (r + mac::<P>(r * r, poly::<P>(r, P::EXP), mac::<P>(lost, r, lost)), n)
    } else {
        let r = mac::<P>(-n.number, LN2_LOW, high);
        (mac::<P>(r * r, poly::<P>(r, P::EXP), r), n)
    }
}

/// `x` clamped to slightly more than the range where `e^x` is neither zero nor infinite. NaN stays NaN.
#[inline(always)]
fn clamped<P: Precision>(x: f64) -> f64 {
    let (low, high) = if P::DOUBLE { (-746.0, 710.0) } else { (-110.0, 90.0) };
    let x = select(x > high, high, x);
    select(x < low, low, x)
}

/// `|x|` clamped to slightly more than the range where `e^|x| / 2` is finite.
#[inline(always)]
fn clamped_abs(x: f64) -> f64 {
    let magnitude = x.abs();
    select(magnitude > 711.0, 711.0, magnitude)
}

#[inline(always)]
pub(super) fn exp<P: Precision>(x: f64) -> f64 {
    let (p, n) = exp_parts::<P>(clamped::<P>(x), 0.0);
    scaled::<P>(1.0 + p, n, 0)
}

#[inline(always)]
pub(super) fn expm1<P: Precision>(x: f64) -> f64 {
    let (p, n) = exp_parts::<P>(clamped::<P>(x), 0.0);
    // 2^n p + (2^n - 1) at half scale, because 2^1024 overflows.
    let half = scaled::<P>(0.5, n, 0);
    let less = mac::<P>(half, p, half - 0.5) * 2.0;
    // Keeps the sign of zero, and subnormal numbers.
    select(x.abs() < 1e-17, x, less)
}

/// `e^-|x| / (1 + e^-|x|)` for negative `x`, else `1 / (1 + e^-|x|)`: neither form overflows.
#[inline(always)]
pub(super) fn sigmoid<P: Precision>(x: f64) -> f64 {
    let (p, n) = exp_parts::<P>(clamped::<P>(-x.abs()), 0.0);
    let exp = scaled::<P>(1.0 + p, n, 0);
    let above = select(x < 0.0, exp, 1.0);
    above / (1.0 + exp)
}

/// `(e + e / (e + 1)) / 2` for `e = e^x - 1`.
#[inline(always)]
pub(super) fn sinh<P: Precision>(x: f64) -> f64 {
    let magnitude = x.abs();
    let (p, n) = exp_parts::<P>(clamped_abs(x), 0.0);
    let half = scaled::<P>(0.5, n, 0);
    // `e^x / 2` and `(e^x - 1) / 2`. The former overflows only if the result does, and from 22 on it is the result.
    let (exp, less) = (scaled::<P>(1.0 + p, n, -1), mac::<P>(half, p, half - 0.5));
    let both = less + less / (exp + exp);
    let sum = select(magnitude > 22.0, exp, both);
    let sum = select(magnitude < 1e-17, magnitude, sum);
    flipped(sum, sign_of(x))
}

/// `e^x / 2 + 1 / (2 e^x)`.
#[inline(always)]
pub(super) fn cosh<P: Precision>(x: f64) -> f64 {
    let (p, n) = exp_parts::<P>(clamped_abs(x), 0.0);
    let exp = scaled::<P>(1.0 + p, n, -1);
    exp + 0.25 / exp
}

/// `e / (e + 2)` for `e = e^2x - 1`.
#[inline(always)]
pub(super) fn tanh<P: Precision>(x: f64) -> f64 {
    let magnitude = x.abs();
    // From 22 on, 1 - 2e^(-2x) rounds to 1.
    let (p, n) = exp_parts::<P>(2.0 * select(magnitude > 22.0, 22.0, magnitude), 0.0);
    // The exponent is small.
    let scale = scaled::<Single>(1.0, n, 0);
    let less = mac::<P>(scale, p, scale - 1.0);
    let tanh = less / (less + 2.0);
    let tanh = select(magnitude < 1e-17, magnitude, tanh);
    flipped(tanh, sign_of(x))
}
