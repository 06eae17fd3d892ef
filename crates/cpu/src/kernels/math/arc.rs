//! Inverse trigonometric functions, reduced as in fdlibm (Sun Microsystems, 1993), with polynomials instead of its
//! rational functions.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

use super::bits::{flipped, head, poly, select, sign_of};
use super::tables::{ASIN, ATAN, HALF_PI_LOW, Precision};

/// The tangent of pi / 8.
const TAN_EIGHTH: f64 = 0.414_213_562_373_095_03;

/// The angle whose tangent is `small / large`, between 0 and pi / 4, in two parts; `small <= large`, and their
/// sum is finite.
#[inline(always)]
fn octant<P: Precision>(small: f64, large: f64) -> (f64, f64) {
    let steep = small > large * TAN_EIGHTH;
    // Beyond pi / 8, the angle is relative to the diagonal.
    let above = select(steep, small - large, small);
    let below = select(steep, small + large, large);
    let t = above / below;
    let z = t * t;
    let tail = t * z * poly::<P>(z, ATAN);
    (select(steep, FRAC_PI_4, 0.0), select(steep, tail + HALF_PI_LOW * 0.5 + t, tail + t))
}

#[inline(always)]
pub(super) fn atan<P: Precision>(x: f64) -> f64 {
    let magnitude = x.abs();
    let exceeds_one = magnitude > 1.0;
    // Beyond 2^60 the angle is pi / 2.
    let bounded = select(magnitude > 1.2e18, 1.2e18, magnitude);
    let (base, rest) = octant::<P>(select(exceeds_one, 1.0, magnitude), select(exceeds_one, bounded, 1.0));
    let near = base + rest;
    let far = (FRAC_PI_2 - base) - (rest - HALF_PI_LOW);
    let angle = select(exceeds_one, far, near);
    let angle = select(magnitude < 1e-9, magnitude, angle);
    flipped(angle, sign_of(x))
}

/// The angle of the point `(x, y)`.
#[inline(always)]
pub(super) fn atan2<P: Precision>(y: f64, x: f64) -> f64 {
    let (height, width) = (y.abs(), x.abs());
    let high = height > width;
    let large = select(high, height, width);
    let small = select(high, width, height);
    // Two infinities lie on the diagonal. One infinity and a finite number lie on an axis.
    let endless = large == f64::INFINITY;
    let both = small == f64::INFINITY;
    let small = select(endless, select(both, 1.0, 0.0), small);
    let large = select(endless || large == 0.0, 1.0, large);
    // Powers of two that keep sums finite and quotients accurate to the last bit.
    let scale = select(large > 1e300, f64::from_bits((1023 - 60) << 52), 1.0);
    let scale = select(large < 1e-250, f64::from_bits((1023 + 120) << 52), scale);
    let (base, rest) = octant::<P>(small * scale, large * scale);
    let is_negative = x.is_sign_negative();
    // The angle is a = base + rest, pi / 2 - a, pi - a or pi / 2 + a.
    let turned = high != is_negative;
    let start = select(high, FRAC_PI_2, 0.0);
    let start = select(is_negative && !high, PI, start);
    let start_low = select(high, HALF_PI_LOW, 0.0);
    let start_low = select(is_negative && !high, 2.0 * HALF_PI_LOW, start_low);
    let rest = select(turned, -rest, rest);
    let base = select(turned, -base, base);
    let angle = (start + base) + (rest + start_low);
    let angle = select(x.is_nan() || y.is_nan(), f64::NAN, angle);
    flipped(angle, sign_of(y))
}

/// `asin(t) - t` for `t` between 0 and 1/2; `z` is `t^2`.
#[inline(always)]
fn asin_tail<P: Precision>(t: f64, z: f64) -> f64 {
    t * z * poly::<P>(z, ASIN)
}

/// `s = sqrt((1 - x) / 2)` in two parts, and its square.
#[inline(always)]
fn half_complement(x: f64) -> (f64, f64, f64) {
    let z = (1.0 - x) * 0.5;
    let s = z.sqrt();
    let high = head(s);
    // The difference between z and s^2 is the rounding error of s.
    let lost = (z - high * high) - (s - high) * (s + high);
    let low = lost / (s + s);
    (s, select(s > 0.0, low, 0.0), z)
}

#[inline(always)]
pub(super) fn asin<P: Precision>(x: f64) -> f64 {
    let magnitude = x.abs();
    let far = magnitude > 0.5;
    let (s, low, z) = half_complement(magnitude);
    let t = select(far, s, magnitude);
    let z = select(far, z, magnitude * magnitude);
    let tail = asin_tail::<P>(t, z);
    // pi / 2 - 2 (s + tail), the largest terms added last.
    let angle = FRAC_PI_4 - (2.0 * (tail + low) - HALF_PI_LOW - (FRAC_PI_4 - 2.0 * s));
    let angle = select(far, angle, magnitude + tail);
    let angle = select(magnitude < 1e-9, magnitude, angle);
    flipped(angle, sign_of(x))
}

#[inline(always)]
pub(super) fn acos<P: Precision>(x: f64) -> f64 {
    let magnitude = x.abs();
    let far = magnitude > 0.5;
    let (s, low, z) = half_complement(magnitude);
    let t = select(far, s, x);
    let z = select(far, z, x * x);
    let tail = asin_tail::<P>(t, z);
    let right = 2.0 * (s + (tail + low));
    let left = PI - (2.0 * (s + (tail + low - HALF_PI_LOW)));
    let middle = FRAC_PI_2 - (x + (tail - HALF_PI_LOW));
    let end = select(x < 0.0, left, right);
    select(far, end, middle)
}
