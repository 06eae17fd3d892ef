//! Sine, cosine and tangent, as [`narrow::trig`](crate::compiler::ir::functions::narrow::trig) describes them.
//!
//! The steps of the reduction need fused products. Without them the argument is reduced in f64.

use super::super::bits::select;
use super::super::tables::{Precision, narrow};
use super::super::trig::{self, reduce_single};
use super::{ROUND, SIGN, flipped, mac, poly, sign_of};
use crate::compiler::ir::functions::narrow::trig::HALF_PI;

/// The sine of a number plus `more` quadrants, with fused products.
#[inline(always)]
fn turned<P: Precision>(x: f32, more: f32) -> f32 {
    let round = ROUND + more;
    let raised = mac::<P>(x, std::f32::consts::FRAC_2_PI, round);
    let n = raised - round;
    let r = HALF_PI.iter().fold(x, |r, &part| mac::<P>(-n, part, r));
    let z = r * r;
    let sin = mac::<P>(mac::<P>(z, poly::<P>(z, narrow::SIN), 0.0), r, r);
    let cos = mac::<P>(mac::<P>(poly::<P>(z, narrow::COS), z, -0.5), z, 1.0);
    let quadrants = raised.to_bits();
    flipped(select(quadrants & 1 == 0, sin, cos), quadrants << 30 & SIGN)
}

#[inline(always)]
pub(in super::super) fn near_sin<P: Precision>(x: f32) -> f32 {
    if P::FUSED { turned::<P>(x, 0.0) } else { trig::near_sin::<P>(x.into()) as f32 }
}

#[inline(always)]
pub(in super::super) fn near_cos<P: Precision>(x: f32) -> f32 {
    if P::FUSED { turned::<P>(x, 1.0) } else { trig::near_cos::<P>(x.into()) as f32 }
}

/// The remainder in two parts, which is at most an eighth of a turn, and the quadrants in the low bits.
#[inline(always)]
fn reduce_twice<P: Precision>(magnitude: f32) -> (f32, f32, u32) {
    if !P::FUSED {
        let (rest, quadrants) = reduce_single::<P>(magnitude.into());
        let r = rest as f32;
        return (r, (rest - f64::from(r)) as f32, quadrants as u32);
    }
    let raised = mac::<P>(magnitude, std::f32::consts::FRAC_2_PI, ROUND);
    let n = raised - ROUND;
    let first = mac::<P>(-n, HALF_PI[0], magnitude);
    let second = n * HALF_PI[1];
    let gained = mac::<P>(-n, HALF_PI[1], second);
    let near = first - second;
    let low = mac::<P>(-n, HALF_PI[2], ((first - near) - second) + gained);
    let r = near + low;
    (r, (near - r) + low, raised.to_bits())
}

#[inline(always)]
pub(in super::super) fn near_tan<P: Precision>(x: f32) -> f32 {
    let (r, low, quadrants) = reduce_twice::<P>(x.abs());
    let z = r * r;
    // The slope of the tangent is about 1 + r^2.
    let tail = mac::<P>(r * z, poly::<P>(z, narrow::TAN), mac::<P>(low, z, low));
    let tan = r + tail;
    let odd = quadrants & 1 != 0;
    flipped(select(odd, -1.0, tan) / select(odd, tan, 1.0), sign_of(x))
}
