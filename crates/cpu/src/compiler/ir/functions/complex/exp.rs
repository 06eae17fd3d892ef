//! Exponentials and hyperbolic functions.

use super::super::super::{Op, Val};
use super::super::exp as real;
use super::super::floats::Floats;
use super::super::trig::sin_cos;
use super::{Complex, divide};

/// Beyond it the exponential may overflow although its products do not.
const LARGE: f64 = 700.0;

/// A zero with the sign of `y`, positive if `y` is NaN.
fn vanished(m: &mut Floats, y: Val) -> Val {
    let is_negative = m.lt(y, 0.0);
    m.select(is_negative, -0.0, 0.0)
}

/// `scale * e^x (cos y + i sin y)` for large `x`.
fn large_exp(m: &mut Floats, x: Val, (sin, cos): (Val, Val), scale: f64) -> Complex {
    let half = m.mul(x, 0.5);
    let half = real::exp(m, half);
    let scaled = m.mul(half, scale);
    let (re, im) = (m.mul(scaled, cos), m.mul(scaled, sin));
    Complex::new(m.mul(re, half), m.mul(im, half))
}

/// Whether the real part is infinite, and the imaginary part is not finite.
fn has_no_angle(m: &mut Floats, z: Complex) -> Val {
    let (ends, is_finite) = (m.is_infinite(z.re), m.is_finite(z.im));
    m.ir.op(Op::AndNot, [ends, is_finite])
}

/// `e^x (cos y + i sin y)`.
pub(super) fn exp(m: &mut Floats, z: Complex) -> Complex {
    let (sin, cos) = sin_cos(m, z.im);
    let power = real::exp(m, z.re);
    let general = Complex::new(m.mul(power, cos), m.mul(power, sin));
    let (is_flat, is_large) = (m.eq(z.im, 0.0), m.lt(LARGE, z.re));
    let vanishes = m.eq(z.re, f64::NEG_INFINITY);
    let special = m.either(is_flat, is_large);
    let special = m.either(special, vanishes);
    m.patched(special, general, |m| {
        let large = large_exp(m, z.re, (sin, cos), 1.0);
        let value = m.choose(is_large, large, general);
        let zero = vanished(m, z.im);
        let (down, up) = (m.complex(0.0, zero), m.complex(f64::INFINITY, f64::NAN));
        let end = m.choose(vanishes, down, up);
        let no_angle = has_no_angle(m, z);
        let value = m.choose(no_angle, end, value);
        m.choose(is_flat, Complex::new(power, z.im), value)
    })
}

/// `e^z - 1`, accurate near zero.
pub(super) fn expm1(m: &mut Floats, z: Complex) -> Complex {
    let half = m.mul(z.im, 0.5);
    let (half, _) = sin_cos(m, half);
    let (sin, cos) = sin_cos(m, z.im);
    let (power, less) = (real::exp(m, z.re), real::expm1(m, z.re));
    let twice = m.mul(2.0, half);
    let lost = m.mul(twice, half);
    let re = m.mul(less, cos);
    let general = Complex::new(m.sub(re, lost), m.mul(power, sin));
    let size = m.abs(z.re);
    let (is_large, is_flat, is_finite) = (m.lt(40.0, size), m.eq(z.im, 0.0), m.is_finite(z.im));
    let no_angle = m.not(is_finite);
    let special = m.either(is_large, is_flat);
    let special = m.either(special, no_angle);
    m.patched(special, general, |m| {
        let large = exp(m, z);
        let large = Complex::new(m.sub(large.re, 1.0), m.sub(large.im, 0.0));
        let value = m.choose(is_large, large, general);
        // Infinity times zero is NaN.
        let is_defined = m.lt(z.re, f64::INFINITY);
        let im = m.select(is_defined, z.im, f64::NAN);
        let value = m.choose(is_flat, Complex::new(less, im), value);
        let nothing = m.complex(f64::NAN, f64::NAN);
        m.choose(no_angle, nothing, value)
    })
}

/// `1 / (1 + e^-z)`; each form is used on the side where it does not overflow.
pub(super) fn sigmoid(m: &mut Floats, z: Complex) -> Complex {
    let is_right = m.le(0.0, z.re);
    let negative = Complex::new(m.neg(z.re), m.neg(z.im));
    let argument = m.choose(is_right, negative, z);
    let power = exp(m, argument);
    let below = Complex::new(m.add(1.0, power.re), m.add(0.0, power.im));
    let one = m.one();
    let above = m.choose(is_right, one, power);
    divide(m, above, below)
}

pub(super) fn sinh(m: &mut Floats, z: Complex) -> Complex {
    let (sin, cos) = sin_cos(m, z.im);
    let (odd, even) = (real::sinh(m, z.re), real::cosh(m, z.re));
    let general = Complex::new(m.mul(odd, cos), m.mul(even, sin));
    let (special, cases) = hyperbolic_cases(m, z);
    m.patched(special, general, |m| {
        let value = ends(m, z, (sin, cos), &cases, general, true);
        let re = m.mul(z.re, cos);
        let re = m.select(cases.is_finite, re, z.re);
        let value = m.choose(cases.is_upright, Complex::new(re, sin), value);
        m.choose(cases.is_flat, Complex::new(odd, z.im), value)
    })
}

pub(super) fn cosh(m: &mut Floats, z: Complex) -> Complex {
    let (sin, cos) = sin_cos(m, z.im);
    let (odd, even) = (real::sinh(m, z.re), real::cosh(m, z.re));
    let general = Complex::new(m.mul(even, cos), m.mul(odd, sin));
    let (special, cases) = hyperbolic_cases(m, z);
    m.patched(special, general, |m| {
        let value = ends(m, z, (sin, cos), &cases, general, false);
        let im = m.mul(z.re, sin);
        let im = m.select(cases.is_finite, im, 0.0);
        let value = m.choose(cases.is_upright, Complex::new(cos, im), value);
        let no_number = m.is_nan(z.re);
        let flipped = m.flipped(z.im, z.re);
        let im = m.select(no_number, z.im, flipped);
        m.choose(cases.is_flat, Complex::new(even, im), value)
    })
}

/// The special cases of hyperbolic sines and cosines.
struct Cases {
    /// Without an imaginary part, and without a real one.
    is_flat: Val,
    is_upright: Val,
    is_large: Val,
    /// Whether the imaginary part is finite.
    is_finite: Val,
}

fn hyperbolic_cases(m: &mut Floats, z: Complex) -> (Val, Cases) {
    let size = m.abs(z.re);
    let cases = Cases {
        is_flat: m.eq(z.im, 0.0),
        is_upright: m.eq(z.re, 0.0),
        is_large: m.lt(LARGE, size),
        is_finite: m.is_finite(z.im),
    };
    let special = m.either(cases.is_flat, cases.is_upright);
    (m.either(special, cases.is_large), cases)
}

/// A hyperbolic function of large numbers, where all terms but one vanish. The sign of the real part is that of the odd
/// function.
fn ends(
    m: &mut Floats,
    z: Complex,
    angle: (Val, Val),
    cases: &Cases,
    general: Complex,
    is_odd: bool,
) -> Complex {
    let size = m.abs(z.re);
    let large = large_exp(m, size, angle, 0.5);
    let large = if is_odd {
        Complex::new(m.flipped(large.re, z.re), large.im)
    } else {
        Complex::new(large.re, m.flipped(large.im, z.re))
    };
    let value = m.choose(cases.is_large, large, general);
    let no_angle = has_no_angle(m, z);
    let end = m.complex(f64::INFINITY, f64::NAN);
    m.choose(no_angle, end, value)
}

pub(super) fn tanh(m: &mut Floats, z: Complex) -> Complex {
    let (sin, cos) = sin_cos(m, z.im);
    let (odd, even) = (real::sinh(m, z.re), real::cosh(m, z.re));
    // |cosh z|^2 as a sum of two terms that do not cancel.
    let (x, y) = (m.mul(odd, odd), m.mul(cos, cos));
    let norm = m.add(x, y);
    let (re, im) = (m.mul(odd, even), m.mul(sin, cos));
    let general = Complex::new(m.div(re, norm), m.div(im, norm));
    let size = m.abs(z.re);
    // 1 - 2e^(-2x) rounds to 1.
    let (is_flat, is_upright, is_large) = (m.eq(z.im, 0.0), m.eq(z.re, 0.0), m.lt(22.0, size));
    let special = m.either(is_flat, is_upright);
    let special = m.either(special, is_large);
    m.patched(special, general, |m| {
        let is_finite = m.is_finite(z.im);
        // Only the limit does not depend on an angle that is no number.
        let is_limit = m.eq(size, f64::INFINITY);
        let is_known = m.either(is_finite, is_limit);
        let is_large = m.both(is_large, is_known);
        let power = m.mul(-2.0, size);
        let power = real::exp(m, power);
        let small = m.mul(4.0, sin);
        let small = m.mul(small, cos);
        let small = m.mul(small, power);
        let zero = vanished(m, z.im);
        let small = m.select(is_finite, small, zero);
        let one = m.with_sign(1.0, z.re);
        let value = m.choose(is_large, Complex::new(one, small), general);
        let no_angle = m.ir.op(Op::AndNot, [is_upright, is_finite]);
        let nothing = m.complex(z.re, f64::NAN);
        let value = m.choose(no_angle, nothing, value);
        let flat = real::tanh(m, z.re);
        m.choose(is_flat, Complex::new(flat, z.im), value)
    })
}
