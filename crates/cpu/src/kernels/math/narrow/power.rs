//! Cube roots.

use super::super::bits::pick;
use super::super::tables::{Precision, narrow};
use super::{flipped, mac, poly, sign_of};

/// A polynomial gives the inverse root of the mantissa, and a step of Newton's improves it without a division.
#[inline(always)]
pub(in super::super) fn cbrt<P: Precision>(x: f32) -> f32 {
    let magnitude = x.abs();
    let small = magnitude < f32::MIN_POSITIVE;
    // 2^24 is the cube of 2^8.
    let bits = pick(small, magnitude * 16_777_216.0, magnitude).to_bits();
    // 3 * third + rest is the exponent, and more than 0.
    let exponent = (bits >> 23) + 3 * 43 - 127;
    let third = (exponent * 21846) >> 16;
    let rest = exponent - 3 * third;
    let mantissa = bits & 0x007F_FFFF | 0x7F << 23;
    // The mantissa with what the third of the exponent leaves.
    let m = f32::from_bits(mantissa + (rest << 23));
    let factor = pick(rest == 1, 0.793_700_5, 1.0);
    let factor = pick(rest == 2, 0.629_960_5, factor);
    let inverse = poly::<P>(f32::from_bits(mantissa), narrow::CBRT) * factor;
    let root = m * (inverse * inverse);
    let lacks = mac::<P>(-root, inverse, 1.0);
    let root = mac::<P>(root, lacks * mac::<P>(lacks, 5.0 / 9.0, 2.0 / 3.0), root);
    let power = f32::from_bits((third + 127 - 43 - pick(small, 8, 0)) << 23);
    let ends = (magnitude == 0.0) | !(magnitude < f32::INFINITY);
    flipped(pick(ends, magnitude, root * power), sign_of(x))
}
