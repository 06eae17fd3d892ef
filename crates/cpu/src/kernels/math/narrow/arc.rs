//! Inverse trigonometric functions, reduced as in f64. Only the arc tangent differs: its polynomial covers arguments up
//! to 1.

use std::f32::consts::{FRAC_PI_2, PI};

use super::super::bits::select;
use super::super::tables::{Precision, narrow};
use super::{SIGN, flipped, poly, sign_of};

/// pi / 2 minus the nearest f32.
const HALF_PI_LOW: f32 = -4.371_139e-8;

/// `atan(t) - t` for `t` between 0 and 1.
#[inline(always)]
fn atan_tail<P: Precision>(t: f32) -> f32 {
    let z = t * t;
    t * z * poly::<P>(z, narrow::ATAN)
}

#[inline(always)]
pub(in super::super) fn atan<P: Precision>(x: f32) -> f32 {
    let magnitude = x.abs();
    let exceeds_one = magnitude > 1.0;
    let t = select(exceeds_one, -1.0 / magnitude, magnitude);
    let tail = atan_tail::<P>(t);
    let angle = select(exceeds_one, FRAC_PI_2, 0.0) + (t + (tail + select(exceeds_one, HALF_PI_LOW, 0.0)));
    flipped(angle, sign_of(x))
}

/// The angle of the point `(x, y)`.
#[inline(always)]
pub(in super::super) fn atan2<P: Precision>(y: f32, x: f32) -> f32 {
    let (height, width) = (y.abs(), x.abs());
    let high = height > width;
    let large = select(high, height, width);
    let small = select(high, width, height);
    // Two infinities lie on the diagonal. The origin lies on an axis.
    let t = small / large;
    let t = select(large == 0.0, 0.0, t);
    let t = select(small == f32::INFINITY, 1.0, t);
    let tail = atan_tail::<P>(t);
    let is_negative = x.is_sign_negative();
    // The angle is a = t + tail, pi / 2 - a, pi - a or pi / 2 + a.
    let turned = if high != is_negative { SIGN } else { 0 };
    let start = select(high, FRAC_PI_2, select(is_negative, PI, 0.0));
    let start_low = select(high, HALF_PI_LOW, select(is_negative, 2.0 * HALF_PI_LOW, 0.0));
    let angle = start + (flipped(t, turned) + (flipped(tail, turned) + start_low));
    let angle = select(x.is_nan() | y.is_nan(), f32::NAN, angle);
    flipped(angle, sign_of(y))
}

/// `asin(t) - t` for `t` between 0 and 1/2; `z` is `t^2`.
#[inline(always)]
fn asin_tail<P: Precision>(t: f32, z: f32) -> f32 {
    t * z * poly::<P>(z, narrow::ASIN)
}

#[inline(always)]
pub(in super::super) fn asin<P: Precision>(x: f32) -> f32 {
    let magnitude = x.abs();
    let far = magnitude > 0.5;
    let half = 0.5 - 0.5 * magnitude;
    let z = select(far, half, magnitude * magnitude);
    let t = select(far, half.sqrt(), magnitude);
    let tail = asin_tail::<P>(t, z);
    // pi / 2 - 2 (t + tail).
    let angle = FRAC_PI_2 - (2.0 * t + (2.0 * tail - HALF_PI_LOW));
    flipped(select(far, angle, magnitude + tail), sign_of(x))
}

#[inline(always)]
pub(in super::super) fn acos<P: Precision>(x: f32) -> f32 {
    let magnitude = x.abs();
    let far = magnitude > 0.5;
    let half = 0.5 - 0.5 * magnitude;
    let z = select(far, half, x * x);
    let t = select(far, half.sqrt(), x);
    let tail = asin_tail::<P>(t, z);
    let right = 2.0 * (t + tail);
    let left = PI - 2.0 * (t + (tail - HALF_PI_LOW));
    let middle = FRAC_PI_2 - (x + (tail - HALF_PI_LOW));
    select(far, select(x < 0.0, left, right), middle)
}
