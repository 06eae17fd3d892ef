//! The error function, its complement and its inverse.
//!
//! The complement is `e^(-x^2)` times a function of `(x - 4) / (x + 4)`, after Shepherd and Laframboise,
//! Chebyshev Approximation of (1 + 2x) exp(x^2) erfc x (1981). The inverse is `x` times a function of
//! `w = -log(1 - x^2)` or its root, after Giles, Approximating the erfinv function (2010).

use super::super::Val;
use super::exp::{exp_parts, scaled};
use super::floats::Floats;
use super::log::log;

/// `erf(x)` for `x` between 0 and 1.
fn near(m: &mut Floats, x: Val) -> Val {
    let z = m.mul(x, x);
    let q = m.poly(z, m.precision.erf);
    m.fma(x, q, x)
}

/// `erfc(x)` from 1/2 on.
fn complement(m: &mut Floats, x: Val) -> Val {
    // The function underflows beyond this end.
    let end = if m.precision.is_double { 27.5 } else { 12.0 };
    let x = m.at_most(end, x);
    let (above, below) = (m.sub(x, 4.0), m.add(x, 4.0));
    let t = m.div(above, below);
    let (p, n) = if m.precision.is_double {
        // The square in two parts, the first one exact.
        let high = m.head(x);
        let square = m.mul(high, high);
        let square = m.neg(square);
        let (rest, sum) = (m.sub(high, x), m.add(high, x));
        let low = m.mul(rest, sum);
        exp_parts(m, square, Some(low))
    } else {
        let square = m.mul(x, x);
        let square = m.neg(square);
        exp_parts(m, square, None)
    };
    let value = m.poly(t, m.precision.erfc);
    let below = m.fma(2.0, x, 1.0);
    let value = m.div(value, below);
    let value = m.fma(value, p, value);
    scaled(m, value, n)
}

/// The error function.
pub(super) fn erf(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let near = near(m, magnitude);
    let far = complement(m, magnitude);
    let far = m.sub(1.0, far);
    let is_far = m.lt(1.0, magnitude);
    let erf = m.select(is_far, far, near);
    m.flipped(erf, x)
}

/// The complement of the error function.
pub(super) fn erfc(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let near = near(m, x);
    let near = m.sub(1.0, near);
    let far = complement(m, magnitude);
    let is_negative = m.lt(x, 0.0);
    let other = m.sub(2.0, far);
    let far = m.select(is_negative, other, far);
    let is_far = m.lt(0.5, magnitude);
    m.select(is_far, far, near)
}

/// The inverse of the error function.
pub(super) fn erf_inv(m: &mut Floats, x: Val) -> Val {
    let (below, above) = (m.sub(1.0, x), m.add(1.0, x));
    let product = m.mul(below, above);
    let log = log(m, product);
    let w = m.neg(log);
    let root = m.sqrt(w);
    let place = m.sub(w, 3.125);
    let ratio = m.poly(place, m.precision.erf_inv_centre);
    let place = m.sub(root, 3.25);
    let slope = m.poly(place, m.precision.erf_inv_slope);
    let is_slope = m.lt(6.25, w);
    let ratio = m.select(is_slope, slope, ratio);
    let place = m.sub(root, 5.03);
    let end = m.poly(place, m.precision.erf_inv_end);
    let is_end = m.lt(16.0, w);
    let ratio = m.select(is_end, end, ratio);
    // At the ends of the domain w is infinite, outside it NaN.
    let infinite = m.eq(w, f64::INFINITY);
    let ratio = m.select(infinite, w, ratio);
    m.mul(ratio, x)
}
