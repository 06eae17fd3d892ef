//! The error function, its complement and its inverse.
//!
//! The complement is `e^(-x^2)` times a function of `(x - 4) / (x + 4)`, after Shepherd and Laframboise,
//! Chebyshev Approximation of (1 + 2x) exp(x^2) erfc x (1981). The inverse is `x` times a function of
//! `w = -log(1 - x^2)` or its root, after Giles, Approximating the erfinv function (2010).

use super::bits::{flipped, head, mac, poly, scaled, select, sign_of};
use super::exp::exp_parts;
use super::log::log;
use super::tables::Precision;

/// `erf(x)` for `x` between 0 and 1.
#[inline(always)]
fn near<P: Precision>(x: f64) -> f64 {
    mac::<P>(x, poly::<P>(x * x, P::ERF), x)
}

/// `erfc(x)` from 1/2 on.
#[inline(always)]
fn complement<P: Precision>(x: f64) -> f64 {
    // The function underflows beyond this end.
    let end = if P::DOUBLE { 27.5 } else { 12.0 };
    let x = select(x > end, end, x);
    let t = (x - 4.0) / (x + 4.0);
    let (p, n) = if P::DOUBLE {
        // The square in two parts, the first one exact.
        let high = head(x);
        exp_parts::<P>(-high * high, (high - x) * (high + x))
    } else {
        exp_parts::<P>(-x * x, 0.0)
    };
    let value = poly::<P>(t, P::ERFC) / (1.0 + 2.0 * x);
    scaled::<P>(mac::<P>(value, p, value), n, 0)
}

#[inline(always)]
pub(super) fn erf<P: Precision>(x: f64) -> f64 {
    let magnitude = x.abs();
    let near = near::<P>(magnitude);
    let far = 1.0 - complement::<P>(magnitude);
    flipped(select(magnitude > 1.0, far, near), sign_of(x))
}

#[inline(always)]
pub(super) fn erfc<P: Precision>(x: f64) -> f64 {
    let magnitude = x.abs();
    let near = 1.0 - near::<P>(x);
    let far = complement::<P>(magnitude);
    let far = select(x < 0.0, 2.0 - far, far);
    select(magnitude > 0.5, far, near)
}

#[inline(always)]
pub(super) fn erf_inv<P: Precision>(x: f64) -> f64 {
    let w = -log::<P>((1.0 - x) * (1.0 + x));
    let root = w.sqrt();
    let centre = poly::<P>(w - 3.125, P::ERF_INV_CENTRE);
    let slope = poly::<P>(root - 3.25, P::ERF_INV_SLOPE);
    let end = poly::<P>(root - 5.03, P::ERF_INV_END);
    let ratio = select(w > 6.25, slope, centre);
    let ratio = select(w > 16.0, end, ratio);
    // At the ends of the domain w is infinite, outside it NaN.
    let ratio = select(w == f64::INFINITY, w, ratio);
    ratio * x
}
