//! The tangent.

use super::super::bits::select;
use super::super::tables::{Precision, narrow};
use super::super::trig::reduce_single;
use super::{flipped, mac, poly, sign_of};

/// The argument is reduced in f64. The remainder, in two parts, is at most an eighth of a turn.
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
    flipped(select(odd, -1.0, tan) / select(odd, tan, 1.0), sign_of(x))
}
