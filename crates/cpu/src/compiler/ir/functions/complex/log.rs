//! Logarithms, powers and the cube root.

use std::f64::consts::LN_2;

use super::super::super::{Cmp, Conv, Elem, Op, Val};
use super::super::arc::atan2;
use super::super::floats::Floats;
use super::super::log as real;
use super::super::power as roots;
use super::super::trig::sin_cos;
use super::{Complex, divide, exp, hypot};

pub(super) fn log(m: &mut Floats, z: Complex) -> Complex {
    Complex::new(log_abs(m, z), atan2(m, z.im, z.re))
}

/// `ln |z|`, accurate where `|z|` is near 1.
pub(super) fn log_abs(m: &mut Floats, z: Complex) -> Val {
    let (x, y) = (m.abs(z.re), m.abs(z.im));
    let is_flat = m.le(y, x);
    let (large, small) = (m.select(is_flat, x, y), m.select(is_flat, y, x));
    let abs = hypot(m, z.re, z.im);
    let log = real::log(m, abs);
    let (is_above, is_below, is_narrow) = (m.le(0.5, large), m.le(large, 2.0), m.le(small, 2.0));
    let is_near = m.both(is_above, is_below);
    let is_near = m.both(is_near, is_narrow);
    let (is_huge, is_finite) = (m.lt(1e300, large), m.lt(large, f64::INFINITY));
    let is_huge = m.both(is_huge, is_finite);
    let log = m.unless_any(is_near, log, |m| {
        let (less, more) = (m.sub(large, 1.0), m.add(large, 1.0));
        let (product, square) = (m.mul(less, more), m.mul(small, small));
        let sum = m.add(product, square);
        let near = real::log1p(m, sum);
        let near = m.mul(0.5, near);
        m.select(is_near, near, log)
    });
    m.unless_any(is_huge, log, |m| {
        // The hypotenuse could overflow.
        let (x, y) = (m.mul(z.re, 0.5), m.mul(z.im, 0.5));
        let half = hypot(m, x, y);
        let half = real::log(m, half);
        let huge = m.add(half, LN_2);
        m.select(is_huge, huge, log)
    })
}

/// `log(1 + z)`, accurate near zero.
pub(super) fn log1p(m: &mut Floats, z: Complex) -> Complex {
    let more = m.add(1.0, z.re);
    let im = atan2(m, z.im, more);
    let re = log_abs(m, Complex::new(more, z.im));
    let (x, y) = (m.abs(z.re), m.abs(z.im));
    let (is_small, is_flat) = (m.lt(x, 0.5), m.lt(y, 0.5));
    let is_near = m.both(is_small, is_flat);
    let re = m.unless_any(is_near, re, |m| {
        let twice = m.add(2.0, z.re);
        let (product, square) = (m.mul(z.re, twice), m.mul(z.im, z.im));
        let sum = m.add(product, square);
        let near = real::log1p(m, sum);
        let near = m.mul(0.5, near);
        m.select(is_near, near, re)
    });
    Complex::new(re, im)
}

/// The cube root whose argument is a third of the principal one.
pub(super) fn cbrt(m: &mut Floats, z: Complex) -> Complex {
    let angle = atan2(m, z.im, z.re);
    let angle = m.div(angle, 3.0);
    let (sin, cos) = sin_cos(m, angle);
    let abs = hypot(m, z.re, z.im);
    let abs = roots::cbrt(m, abs);
    let general = Complex::new(m.mul(abs, cos), m.mul(abs, sin));
    // With a real part of +infinity a finite imaginary part is negligible: the angle is 0, which avoids infinity times
    // 0.
    let (is_real, ends, is_finite) = (m.eq(z.im, 0.0), m.eq(z.re, f64::INFINITY), m.is_finite(z.im));
    let is_flat = m.both(ends, is_finite);
    let is_flat = m.either(is_flat, is_real);
    let is_right = m.le(0.0, z.re);
    let special = m.both(is_flat, is_right);
    m.patched(special, general, |m| {
        let flat = Complex::new(roots::cbrt(m, z.re), m.with_sign(0.0, z.im));
        m.choose(special, flat, general)
    })
}

/// `a^b`: by multiplication for small integers, else `e^(b log a)`.
pub(super) fn pow(m: &mut Floats, a: Complex, b: Complex) -> Complex {
    let logarithm = log(m, a);
    let product = m.times(b, logarithm);
    let general = exp::exp(m, product);
    let size = m.abs(b.re);
    let whole = m.ir.op(Op::Trunc, [b.re]);
    let (is_whole, is_flat, is_small) = (m.eq(whole, b.re), m.eq(b.im, 0.0), m.le(size, 64.0));
    let is_whole = m.both(is_whole, is_flat);
    let is_integer = m.both(is_whole, is_small);
    let (no_re, no_im) = (m.eq(a.re, 0.0), m.eq(a.im, 0.0));
    let of_zero = m.both(no_re, no_im);
    let special = m.either(is_integer, of_zero);
    m.patched(special, general, |m| {
        let exponent = m.select(is_integer, size, 0.0);
        let exponent = m.ir.convert(Conv::ToS, Elem::I64, exponent);
        let power = power(m, a, exponent);
        let one = m.one();
        let inverse = divide(m, one, power);
        let is_below = m.lt(b.re, 0.0);
        let power = m.choose(is_below, inverse, power);
        let value = m.choose(is_integer, power, general);
        let is_above = m.lt(0.0, b.re);
        let end = m.select(is_above, 0.0, f64::NAN);
        let value = m.choose(of_zero, Complex::new(end, end), value);
        let to_zero = m.eq(b.re, 0.0);
        let to_zero = m.both(to_zero, is_flat);
        m.choose(to_zero, one, value)
    })
}

/// The power to an integer that is not negative, by squares. The first factor is not multiplied by 1, which could change
/// the sign of a zero; to the power of 0 it is 1.
fn power(m: &mut Floats, base: Complex, exponent: Val) -> Complex {
    let is_vector = [base.re, base.im, exponent].iter().any(|&value| m.ir.ty(value).is_vector);
    let [none, one] = [0, 1].map(|bits| m.integer(bits));
    let start = m.one();
    let carried = [start.re, start.im, base.re, base.im, exponent, none];
    let carried = carried.map(|value| (value, is_vector));
    let (_, carries) = m.ir.begin_loop(None, &carried);
    let &[re, im, square_re, square_im, left, begun] = carries.as_slice() else {
        unreachable!("six are carried")
    };
    let is_left = m.ir.compare(Cmp::Ne, left, none);
    let goes_on = if is_vector { m.ir.any(is_left) } else { is_left };
    m.ir.while_(goes_on);
    let (power, square) = (Complex::new(re, im), Complex::new(square_re, square_im));
    let is_odd = m.ir.test(left, one);
    let has_begun = m.ir.test(begun, one);
    let product = m.times(power, square);
    let product = m.choose(has_begun, product, square);
    let next = m.choose(is_odd, product, power);
    let next_square = m.times(square, square);
    let next_left = m.shr(left, 1);
    let next_begun = m.ir.select(is_odd, one, begun);
    m.ir.end_loop(&[
        (re, next.re),
        (im, next.im),
        (square_re, next_square.re),
        (square_im, next_square.im),
        (left, next_left),
        (begun, next_begun),
    ]);
    power
}
