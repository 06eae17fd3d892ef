//! Inverse trigonometric and hyperbolic functions.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2};

use super::super::super::Val;
use super::super::arc::atan2;
use super::super::floats::Floats;
use super::super::log as real;
use super::log::log_abs;
use super::{Complex, hypot, sqrt};

/// Beyond this magnitude arc sines and cosines equal logarithms, and their products would overflow.
const LARGE: f64 = 1e150;

fn is_large(m: &mut Floats, z: Complex) -> Val {
    let (x, y) = (m.abs(z.re), m.abs(z.im));
    let (x, y) = (m.lt(LARGE, x), m.lt(LARGE, y));
    m.either(x, y)
}

/// `ln |2z|`.
fn log_twice(m: &mut Floats, z: Complex) -> Val {
    let log = log_abs(m, z);
    m.add(log, LN_2)
}

/// Whether the real part is 0, and the imaginary part NaN.
fn is_nowhere(m: &mut Floats, z: Complex) -> Val {
    let (no_re, no_im) = (m.eq(z.re, 0.0), m.is_nan(z.im));
    m.both(no_re, no_im)
}

/// What is special of a function: large numbers, and those without a place.
fn specials(m: &mut Floats, z: Complex) -> (Val, Val, Val) {
    let (is_large, is_nowhere) = (is_large(m, z), is_nowhere(m, z));
    (m.either(is_large, is_nowhere), is_large, is_nowhere)
}

/// The square roots of `1 - z` and `1 + z`.
fn roots(m: &mut Floats, z: Complex) -> (Complex, Complex) {
    let minus = Complex::new(m.sub(1.0, z.re), m.neg(z.im));
    let plus = Complex::new(m.add(1.0, z.re), z.im);
    (sqrt(m, minus), sqrt(m, plus))
}

/// `a b - c d`.
fn difference(m: &mut Floats, [a, b]: [Val; 2], [c, d]: [Val; 2]) -> Val {
    let (first, second) = (m.mul(a, b), m.mul(c, d));
    m.sub(first, second)
}

/// Arc sine, cut along the real axis outside [-1, 1].
pub(super) fn asin(m: &mut Floats, z: Complex) -> Complex {
    let (minus, plus) = roots(m, z);
    let across = difference(m, [minus.re, plus.re], [minus.im, plus.im]);
    let along = difference(m, [minus.re, plus.im], [minus.im, plus.re]);
    let general = Complex::new(atan2(m, z.re, across), real::asinh(m, along));
    let (special, is_large, is_nowhere) = specials(m, z);
    m.patched(special, general, |m| {
        let value = m.choose(is_nowhere, z, general);
        // The argument of the point mirrored to the right half-plane.
        let y = m.abs(z.im);
        let re = atan2(m, z.re, y);
        let log = log_twice(m, z);
        let im = m.with_sign(log, z.im);
        m.choose(is_large, Complex::new(re, im), value)
    })
}

/// Arc cosine, cut along the real axis outside [-1, 1].
pub(super) fn acos(m: &mut Floats, z: Complex) -> Complex {
    let (minus, plus) = roots(m, z);
    let half = atan2(m, minus.re, plus.re);
    let along = difference(m, [plus.re, minus.im], [plus.im, minus.re]);
    let general = Complex::new(m.mul(2.0, half), real::asinh(m, along));
    let (special, is_large, is_nowhere) = specials(m, z);
    m.patched(special, general, |m| {
        let upright = m.complex(FRAC_PI_2, f64::NAN);
        let value = m.choose(is_nowhere, upright, general);
        let y = m.abs(z.im);
        let re = atan2(m, y, z.re);
        let log = log_twice(m, z);
        let im = m.with_sign(log, z.im);
        let large = Complex::new(re, m.neg(im));
        m.choose(is_large, large, value)
    })
}

/// Inverse hyperbolic cosine, cut along the real axis below 1.
pub(super) fn acosh(m: &mut Floats, z: Complex) -> Complex {
    let minus = Complex::new(m.sub(z.re, 1.0), z.im);
    let plus = Complex::new(m.add(1.0, z.re), z.im);
    let (minus, plus) = (sqrt(m, minus), sqrt(m, plus));
    let (x, y) = (m.mul(minus.re, plus.re), m.mul(minus.im, plus.im));
    let along = m.add(x, y);
    let half = atan2(m, minus.im, plus.re);
    let general = Complex::new(real::asinh(m, along), m.mul(2.0, half));
    let (special, is_large, is_nowhere) = specials(m, z);
    m.patched(special, general, |m| {
        let upright = m.complex(f64::NAN, FRAC_PI_2);
        let value = m.choose(is_nowhere, upright, general);
        let large = Complex::new(log_twice(m, z), atan2(m, z.im, z.re));
        m.choose(is_large, large, value)
    })
}

/// Inverse hyperbolic tangent, cut along the real axis outside [-1, 1].
pub(super) fn atanh(m: &mut Floats, z: Complex) -> Complex {
    let (x, y) = (z.re, z.im);
    let size = m.abs(x);
    let rest = m.sub(1.0, size);
    let (square, height) = (m.mul(rest, rest), m.mul(y, y));
    let below = m.add(square, height);
    let above = m.mul(4.0, size);
    let ratio = m.div(above, below);
    let re = real::log1p(m, ratio);
    let re = m.mul(0.25, re);
    let twice = m.mul(2.0, y);
    let (less, more) = (m.sub(1.0, x), m.add(1.0, x));
    let product = m.mul(less, more);
    let across = m.sub(product, height);
    let im = atan2(m, twice, across);
    let general = Complex::new(m.with_sign(re, x), m.mul(0.5, im));
    let (is_real, is_inner, no_im) = (m.eq(y, 0.0), m.le(size, 1.0), m.is_nan(y));
    let is_flat = m.both(is_real, is_inner);
    let (at_zero, ends) = (m.eq(x, 0.0), m.eq(size, f64::INFINITY));
    let is_nowhere = m.either(at_zero, ends);
    let is_nowhere = m.both(is_nowhere, no_im);
    // Next to a NaN, only an infinite part decides the limit.
    let (sum, far) = (m.add(x, y), m.abs(y));
    let (is_known, is_far) = (m.eq(sum, sum), m.eq(far, f64::INFINITY));
    let is_known = m.either(is_known, ends);
    let is_known = m.either(is_known, is_far);
    let is_large = is_large(m, z);
    let is_large = m.both(is_large, is_known);
    let to_end = hypot(m, rest, y);
    let is_end = m.lt(to_end, 1e-150);
    let special = m.either(is_flat, is_nowhere);
    let special = m.either(special, is_large);
    let special = m.either(special, is_end);
    m.patched(special, general, |m| {
        // The square of the distance to an end would underflow; that to the other end is 2.
        let log = real::log(m, to_end);
        let re = m.sub(LN_2, log);
        let re = m.mul(re, 0.5);
        let end = Complex::new(m.with_sign(re, x), m.with_sign(FRAC_PI_4, y));
        let value = m.choose(is_end, end, general);
        // 1/z, without squaring |z|.
        let abs = hypot(m, x, y);
        let is_finite = m.lt(abs, f64::INFINITY);
        let re = m.div(x, abs);
        let re = m.div(re, abs);
        let zero = m.with_sign(0.0, x);
        let re = m.select(is_finite, re, zero);
        let large = Complex::new(re, m.with_sign(FRAC_PI_2, y));
        let value = m.choose(is_large, large, value);
        let nothing = m.complex(zero, f64::NAN);
        let value = m.choose(is_nowhere, nothing, value);
        let flat = real::atanh(m, x);
        m.choose(is_flat, Complex::new(flat, y), value)
    })
}
