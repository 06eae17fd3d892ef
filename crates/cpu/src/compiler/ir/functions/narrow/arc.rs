//! Inverse trigonometric functions, reduced as in f64. Only the arc tangent differs: its polynomial covers
//! arguments up to 1.

use std::f32::consts::{FRAC_PI_2, PI};

use super::super::super::{Op, Val};
use super::super::floats::Floats;
use super::super::tables::narrow;

/// pi / 2 minus the nearest f32.
const HALF_PI_LOW: f32 = -4.371_139e-8;

/// `atan(t) - t` for `t` between 0 and 1.
fn atan_tail(m: &mut Floats, t: Val) -> Val {
    let z = m.mul(t, t);
    let q = m.poly(z, narrow::ATAN);
    let cube = m.mul(t, z);
    m.mul(cube, q)
}

/// The arc tangent.
pub(in super::super) fn atan(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let exceeds_one = m.lt(1.0, magnitude);
    let inverse = m.div(-1.0, magnitude);
    let t = m.select(exceeds_one, inverse, magnitude);
    let tail = atan_tail(m, t);
    let low = m.select(exceeds_one, HALF_PI_LOW, 0.0);
    let rest = m.add(tail, low);
    let rest = m.add(t, rest);
    let start = m.select(exceeds_one, FRAC_PI_2, 0.0);
    let angle = m.add(start, rest);
    m.flipped(angle, x)
}

/// The angle of the point `(x, y)`.
pub(in super::super) fn atan2(m: &mut Floats, y: Val, x: Val) -> Val {
    let (height, width) = (m.abs(y), m.abs(x));
    let high = m.lt(width, height);
    let large = m.select(high, height, width);
    let small = m.select(high, width, height);
    // Two infinities lie on the diagonal, as all that is equal. The origin lies on an axis.
    let t = m.div(small, large);
    let origin = m.eq(large, 0.0);
    let diagonal = m.select(origin, 0.0, 1.0);
    let is_diagonal = m.eq(small, large);
    let t = m.select(is_diagonal, diagonal, t);
    let tail = atan_tail(m, t);
    // The angle is a = t + tail, pi / 2 - a, pi - a or pi / 2 + a.
    let other = m.neg(x);
    let sign = m.select(high, other, x);
    let bits = m.bits(x);
    let is_negative = m.has_bits(bits, 1 << 31);
    let start = m.select(is_negative, PI, 0.0);
    let start = m.select(high, FRAC_PI_2, start);
    let low = m.select(is_negative, 2.0 * HALF_PI_LOW, 0.0);
    let low = m.select(high, HALF_PI_LOW, low);
    let (t, tail) = (m.flipped(t, sign), m.flipped(tail, sign));
    let rest = m.add(tail, low);
    let rest = m.add(t, rest);
    let angle = m.add(start, rest);
    m.flipped(angle, y)
}

/// `asin(t) - t` for `t` between 0 and 1/2; `z` is `t^2`.
fn asin_tail(m: &mut Floats, t: Val, z: Val) -> Val {
    let q = m.poly(z, narrow::ASIN);
    let cube = m.mul(t, z);
    m.mul(cube, q)
}

/// `(far, t, z)`: whether `|x|` is above 1/2, and what the tail is computed of. Small numbers keep their sign
/// if `x` has one.
fn asin_parts(m: &mut Floats, x: Val, magnitude: Val) -> (Val, Val, Val) {
    let far = m.lt(0.5, magnitude);
    let half = m.fnma(0.5, magnitude, 0.5);
    let square = m.mul(x, x);
    let z = m.select(far, half, square);
    let root = m.ir.op(Op::Sqrt, [half]);
    (far, m.select(far, root, x), z)
}

/// The arc sine.
pub(in super::super) fn asin(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let (far, t, z) = asin_parts(m, magnitude, magnitude);
    let tail = asin_tail(m, t, z);
    // pi / 2 - 2 (t + tail).
    let low = m.add(tail, tail);
    let low = m.sub(low, HALF_PI_LOW);
    let taken = m.fma(2.0, t, low);
    let angle = m.sub(FRAC_PI_2, taken);
    let near = m.add(magnitude, tail);
    let angle = m.select(far, angle, near);
    m.flipped(angle, x)
}

/// The arc cosine.
pub(in super::super) fn acos(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let (far, t, z) = asin_parts(m, x, magnitude);
    let tail = asin_tail(m, t, z);
    let right = m.add(t, tail);
    let right = m.add(right, right);
    let low = m.sub(tail, HALF_PI_LOW);
    let left = m.add(t, low);
    let left = m.fnma(2.0, left, PI);
    let middle = m.add(x, low);
    let middle = m.sub(FRAC_PI_2, middle);
    let is_negative = m.lt(x, 0.0);
    let end = m.select(is_negative, left, right);
    m.select(far, end, middle)
}
