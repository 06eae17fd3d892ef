//! Inverse trigonometric functions, reduced as in fdlibm (Sun Microsystems, 1993), with polynomials instead
//! of its rational functions.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

use super::super::Val;
use super::floats::Floats;
use super::tables::{ASIN, ATAN, HALF_PI_LOW};

/// The tangent of pi / 8.
const TAN_EIGHTH: f64 = 0.414_213_562_373_095_03;

/// The angle whose tangent is `small / large`, between 0 and pi / 4, in two parts; `small <= large`, and
/// their sum is finite.
fn octant(m: &mut Floats, small: Val, large: Val) -> (Val, Val) {
    let limit = m.mul(large, TAN_EIGHTH);
    let steep = m.lt(limit, small);
    // Beyond pi / 8, the angle is relative to the diagonal.
    let (difference, sum) = (m.sub(small, large), m.add(small, large));
    let above = m.select(steep, difference, small);
    let below = m.select(steep, sum, large);
    let t = m.div(above, below);
    let z = m.mul(t, t);
    let q = m.poly(z, ATAN);
    let cube = m.mul(t, z);
    let tail = m.mul(cube, q);
    let low = m.add(tail, HALF_PI_LOW * 0.5);
    let tail = m.select(steep, low, tail);
    (m.select(steep, FRAC_PI_4, 0.0), m.add(tail, t))
}

/// The arc tangent.
pub(super) fn atan(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let exceeds_one = m.lt(1.0, magnitude);
    // Beyond 2^60 the angle is pi / 2.
    let bounded = m.at_most(1.2e18, magnitude);
    let small = m.select(exceeds_one, 1.0, magnitude);
    let large = m.select(exceeds_one, bounded, 1.0);
    let (base, rest) = octant(m, small, large);
    let near = m.add(base, rest);
    let high = m.sub(FRAC_PI_2, base);
    let low = m.sub(rest, HALF_PI_LOW);
    let far = m.sub(high, low);
    let angle = m.select(exceeds_one, far, near);
    let tiny = m.lt(magnitude, 1e-9);
    let angle = m.select(tiny, magnitude, angle);
    m.flipped(angle, x)
}

/// The angle of the point `(x, y)`.
pub(super) fn atan2(m: &mut Floats, y: Val, x: Val) -> Val {
    let (height, width) = (m.abs(y), m.abs(x));
    let high = m.lt(width, height);
    let large = m.select(high, height, width);
    let small = m.select(high, width, height);
    // Two infinities lie on the diagonal. One infinity and a finite number lie on an axis; NaN stays NaN.
    let endless = m.eq(large, f64::INFINITY);
    let both = m.eq(small, f64::INFINITY);
    let on_axis = m.mul(small, 0.0);
    let unit = m.select(both, 1.0, on_axis);
    let small = m.select(endless, unit, small);
    let origin = m.eq(large, 0.0);
    let special = m.either(endless, origin);
    let large = m.select(special, 1.0, large);
    // Powers of two that keep sums finite and quotients accurate to the last bit.
    let huge = m.lt(1e300, large);
    let scale = m.select(huge, f64::from_bits((1023 - 60) << 52), 1.0);
    let tiny = m.lt(large, 1e-250);
    let scale = m.select(tiny, f64::from_bits((1023 + 120) << 52), scale);
    let (small, large) = (m.mul(small, scale), m.mul(large, scale));
    let (base, rest) = octant(m, small, large);
    // The angle is a = base + rest, pi / 2 - a, pi - a or pi / 2 + a.
    let other = m.neg(x);
    let sign = m.select(high, other, x);
    let bits = m.bits(x);
    let is_negative = m.has_bits(bits, 1 << 63);
    let start = m.select(is_negative, PI, 0.0);
    let start = m.select(high, FRAC_PI_2, start);
    let low = m.select(is_negative, 2.0 * HALF_PI_LOW, 0.0);
    let low = m.select(high, HALF_PI_LOW, low);
    let (base, rest) = (m.flipped(base, sign), m.flipped(rest, sign));
    let (high, low) = (m.add(start, base), m.add(rest, low));
    let angle = m.add(high, low);
    m.flipped(angle, y)
}

/// `asin(t) - t` for `t` between 0 and 1/2; `z` is `t^2`.
fn asin_tail(m: &mut Floats, t: Val, z: Val) -> Val {
    let q = m.poly(z, ASIN);
    let cube = m.mul(t, z);
    m.mul(cube, q)
}

/// `s = sqrt((1 - x) / 2)` in two parts, and its square.
fn half_complement(m: &mut Floats, x: Val) -> (Val, Val, Val) {
    let z = m.sub(1.0, x);
    let z = m.mul(z, 0.5);
    let s = m.sqrt(z);
    let high = m.head(s);
    // The difference between z and s^2 is the rounding error of s.
    let square = m.mul(high, high);
    let lost = m.sub(z, square);
    let (rest, sum) = (m.sub(s, high), m.add(s, high));
    let more = m.mul(rest, sum);
    let lost = m.sub(lost, more);
    let twice = m.add(s, s);
    let low = m.div(lost, twice);
    let positive = m.lt(0.0, s);
    (s, m.select(positive, low, 0.0), z)
}

/// The arc sine.
pub(super) fn asin(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let far = m.lt(0.5, magnitude);
    let (s, low, z) = half_complement(m, magnitude);
    let t = m.select(far, s, magnitude);
    let square = m.mul(magnitude, magnitude);
    let z = m.select(far, z, square);
    let tail = asin_tail(m, t, z);
    // pi / 2 - 2 (s + tail), the largest terms added last.
    let low = m.add(tail, low);
    let low = m.add(low, low);
    let low = m.sub(low, HALF_PI_LOW);
    let high = m.fnma(2.0, s, FRAC_PI_4);
    let low = m.sub(low, high);
    let angle = m.sub(FRAC_PI_4, low);
    let near = m.add(magnitude, tail);
    let angle = m.select(far, angle, near);
    let tiny = m.lt(magnitude, 1e-9);
    let angle = m.select(tiny, magnitude, angle);
    m.flipped(angle, x)
}

/// The arc cosine.
pub(super) fn acos(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let far = m.lt(0.5, magnitude);
    let (s, low, z) = half_complement(m, magnitude);
    let t = m.select(far, s, x);
    let square = m.mul(x, x);
    let z = m.select(far, z, square);
    let tail = asin_tail(m, t, z);
    let low = m.add(tail, low);
    let right = m.add(s, low);
    let right = m.add(right, right);
    let lower = m.sub(low, HALF_PI_LOW);
    let left = m.add(s, lower);
    let left = m.fnma(2.0, left, PI);
    let middle = m.sub(tail, HALF_PI_LOW);
    let middle = m.add(x, middle);
    let middle = m.sub(FRAC_PI_2, middle);
    let is_negative = m.lt(x, 0.0);
    let end = m.select(is_negative, left, right);
    m.select(far, end, middle)
}
