//! Sine, cosine and tangent.
//!
//! The argument is reduced modulo a quadrant in three steps, all exact but the last, as in fdlibm (Sun Microsystems,
//! 1993). Arguments beyond [`LIMIT`] are rare, and [`Rare`](crate::compiler::ir::Rare) has their functions.

use super::bits::{Exponent, exponent, flipped, mac, poly, select, sign_of};
use super::tables::{HALF_PI_1, HALF_PI_2, HALF_PI_3, HALF_PI_23, Precision};

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
