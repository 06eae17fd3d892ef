//! Sine, cosine and tangent.
//!
//! The argument is reduced modulo a quadrant in three steps, all exact but the last, as in fdlibm (Sun Microsystems,
//! 1993). Arguments beyond [`LIMIT`] are rare. They are reduced one by one by the method of Payne and Hanek, Radian
//! Reduction for Trigonometric Functions (1983).

use std::f64::consts::FRAC_PI_2;

use super::bits::{Exponent, exponent, flipped, head, mac, poly, select, sign_of};
use super::tables::{
    Double, HALF_PI_1, HALF_PI_2, HALF_PI_3, HALF_PI_23, HALF_PI_LOW, Precision, TWO_OVER_PI,
};

/// Up to this limit the number of quadrants has 20 bits, and its product with 33 bits is exact.
pub(super) const LIMIT: f64 = 1.0e6;

/// A reduced number: the remainder in a high and a low part, and the number of quadrants in the low bits.
struct Reduced {
    high: f64,
    low: f64,
    quadrants: u64,
}

/// The reduction of an f32 number, in f64. The low part is negligible.
#[inline(always)]
pub(super) fn reduce_single<P: Precision>(x: f64) -> (f64, u64) {
    let Exponent { number: n, bits: quadrants } = exponent::<P>(x, std::f64::consts::FRAC_2_PI);
    (mac::<P>(-n, HALF_PI_23, mac::<P>(-n, HALF_PI_1, x)), quadrants)
}

#[inline(always)]
fn reduce<P: Precision>(x: f64) -> Reduced {
    if !P::DOUBLE {
        let (high, quadrants) = reduce_single::<P>(x);
        return Reduced { high, low: 0.0, quadrants };
    }
    let Exponent { number: n, bits: quadrants } = exponent::<P>(x, std::f64::consts::FRAC_2_PI);
    let first = mac::<P>(-n, HALF_PI_1, x);
    let second = n * HALF_PI_2;
    let near = first - second;
    // Exact two-sum, after Knuth, The Art of Computer Programming 2 (1969).
    let back = near - first;
    let lost = (first - (near - back)) - (second + back);
    let rest = mac::<P>(-n, HALF_PI_3, lost);
    let high = near + rest;
    Reduced { high, low: (near - high) + rest, quadrants }
}

/// Sine of the remainder.
#[inline(always)]
fn sin_rest<P: Precision>(r: &Reduced) -> f64 {
    let z = r.high * r.high;
    let cube = z * r.high;
    if P::DOUBLE {
        r.high + mac::<P>(cube, poly::<P>(z, P::SIN), mac::<P>(-0.5 * z, r.low, r.low))
    } else {
        mac::<P>(cube, poly::<P>(z, P::SIN), r.high)
    }
}

/// Cosine of the remainder.
#[inline(always)]
fn cos_rest<P: Precision>(r: &Reduced) -> f64 {
    let z = r.high * r.high;
    let half = 0.5 * z;
    let tail = poly::<P>(z, P::COS);
    if P::DOUBLE {
        let near = 1.0 - half;
        near + (((1.0 - near) - half) + mac::<P>(z * z, tail, -(r.high * r.low)))
    } else {
        mac::<P>(z * z, tail, 1.0 - half)
    }
}

/// Sine of the number plus `more` quadrants.
#[inline(always)]
fn turned<P: Precision>(r: &Reduced, more: u64) -> f64 {
    let quadrants = r.quadrants.wrapping_add(more);
    let (sin, cos) = (sin_rest::<P>(r), cos_rest::<P>(r));
    let value = select(quadrants & 1 == 0, sin, cos);
    flipped(value, (quadrants & 2) << 62)
}

#[inline(always)]
pub(super) fn near_sin<P: Precision>(x: f64) -> f64 {
    flipped(turned::<P>(&reduce::<P>(x.abs()), 0), sign_of(x))
}

#[inline(always)]
pub(super) fn near_cos<P: Precision>(x: f64) -> f64 {
    turned::<P>(&reduce::<P>(x.abs()), 1)
}

#[inline(always)]
pub(super) fn near_tan<P: Precision>(x: f64) -> f64 {
    let r = reduce::<P>(x.abs());
    let (sin, cos) = (sin_rest::<P>(&r), cos_rest::<P>(&r));
    let odd = r.quadrants & 1;
    let above = select(odd == 0, sin, cos);
    let below = select(odd == 0, cos, sin);
    flipped(above / below, (odd << 63) ^ sign_of(x))
}

#[inline(always)]
pub(super) fn near_sin_cos<P: Precision>(x: f64) -> (f64, f64) {
    let r = reduce::<P>(x.abs());
    (flipped(turned::<P>(&r, 0), sign_of(x)), turned::<P>(&r, 1))
}

/// Sine and cosine of numbers beyond the limit; NaN for infinity and NaN.
#[cold]
pub(super) fn far(x: f64) -> (f64, f64) {
    if !x.is_finite() {
        return (f64::NAN, f64::NAN);
    }
    let r = reduce_far(x.abs());
    (flipped(turned::<Double>(&r, 0), sign_of(x)), turned::<Double>(&r, 1))
}

/// Reduces any finite number from 2^19 on.
fn reduce_far(x: f64) -> Reduced {
    // x = mantissa * 2^power.
    let power = (x.to_bits() >> 52) as isize - 1075;
    let mantissa = u128::from(x.to_bits() << 12 >> 12 | 1 << 52);
    // Bits of 2 / pi before this one contribute multiples of four quadrants. The next 192 bits suffice: no f64 is
    // closer to a multiple of a quadrant than about 2^-62.
    let start = (power - 2 + 64) as usize;
    let (first, offset) = (start / 64, start % 64);
    let window = |k: usize| {
        let (high, low) = (TWO_OVER_PI[first + k], TWO_OVER_PI[first + k + 1]);
        // With offset 0 no bits come from `low`. It is shifted in two steps, because a shift by 64 is not allowed.
        u128::from(high << offset | low >> 1 >> (63 - offset))
    };
    // The product modulo 2^192 without its last 62 bits: two bits of quadrants, then the fraction.
    let low = mantissa * window(2);
    let middle = mantissa * window(1) + (low >> 64);
    let high = (mantissa * window(0) + (middle >> 64)) as u64;
    let middle = middle as u64;
    let floor = high >> 62;
    let fraction =
        (u128::from(high << 2 | middle >> 62) << 64 | u128::from(middle << 2 | low as u64 >> 62)) as i128;
    // As a signed number, the fraction is relative to the nearest quadrant.
    let quadrants = floor + u64::from(fraction < 0);
    let above = fraction as f64;
    let below = (fraction - above as i128) as f64;
    // The product with pi / 2 in two parts, after Dekker, A Floating-Point Technique (1971).
    let product = above * FRAC_PI_2;
    let (a, b) = (head(above), head(FRAC_PI_2));
    let (c, d) = (above - a, FRAC_PI_2 - b);
    let lost = ((a * b - product) + a * d + c * b) + c * d;
    let rest = lost + (above * HALF_PI_LOW + below * FRAC_PI_2);
    let high = product + rest;
    // 2^-128 scales the integer to a fraction.
    const UNIT: f64 = 2.938_735_877_055_719e-39;
    Reduced { high: high * UNIT, low: ((product - high) + rest) * UNIT, quadrants }
}
