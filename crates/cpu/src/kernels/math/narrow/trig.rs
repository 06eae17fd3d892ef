//! Sine, cosine and tangent.

use super::super::bits::pick;
use super::super::tables::{Precision, narrow};
use super::super::trig::reduce_single;
use super::{ROUND, flipped, mac, poly, sign_of};

/// The leading 24 bits of pi / 2, of what they lack, and of what both lack.
const HALF_PI: [f32; 3] = [1.570_796_4, -4.371_139e-8, -1.715_124_7e-15];

/// A number without its quadrants, and these in the low bits; exact but for three roundings of what is left. The first
/// product's difference is exact, since what is left is below 1 and both are multiples of 2^-24.
#[inline(always)]
fn reduce<P: Precision>(x: f32) -> (f32, u32) {
    if !P::FUSED {
        let (rest, quadrants) = reduce_single::<P>(f64::from(x));
        return (rest as f32, quadrants as u32);
    }
    let raised = mac::<P>(x, std::f32::consts::FRAC_2_PI, ROUND);
    let n = raised - ROUND;
    let rest = mac::<P>(-n, HALF_PI[1], mac::<P>(-n, HALF_PI[0], x));
    (mac::<P>(-n, HALF_PI[2], rest), raised.to_bits())
}

/// Sine of what is left and its quadrants.
#[inline(always)]
fn turned<P: Precision>(r: f32, quadrants: u32) -> f32 {
    let z = r * r;
    let sin = mac::<P>(z * r, poly::<P>(z, narrow::SIN), r);
    let cos = mac::<P>(z * z, poly::<P>(z, narrow::COS), mac::<P>(-0.5, z, 1.0));
    flipped(pick(quadrants & 1 == 0, sin, cos), (quadrants & 2) << 30)
}

#[inline(always)]
pub(in super::super) fn near_sin<P: Precision>(x: f32) -> f32 {
    let (r, quadrants) = reduce::<P>(x.abs());
    flipped(turned::<P>(r, quadrants), sign_of(x))
}

#[inline(always)]
pub(in super::super) fn near_cos<P: Precision>(x: f32) -> f32 {
    let (r, quadrants) = reduce::<P>(x.abs());
    turned::<P>(r, quadrants.wrapping_add(1))
}

/// The quadrants are taken off in f64; what is left, in two parts, is less than an eighth of a turn.
#[inline(always)]
pub(in super::super) fn near_tan<P: Precision>(x: f32) -> f32 {
    let (rest, quadrants) = reduce_single::<P>(f64::from(x.abs()));
    let r = rest as f32;
    let low = (rest - f64::from(r)) as f32;
    let z = r * r;
    // The slope of the tangent is about 1 + r^2.
    let tail = mac::<P>(r * z, poly::<P>(z, narrow::TAN), mac::<P>(low, z, low));
    let tan = r + tail;
    let odd = quadrants as u32 & 1 != 0;
    flipped(pick(odd, -1.0, tan) / pick(odd, tan, 1.0), sign_of(x))
}
