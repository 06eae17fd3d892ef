//! Cube roots and powers.

use super::super::bits::select;
use super::super::power::{LARGE, power_single, with_products};
use super::super::tables::{Precision, narrow};
use super::{SIGN, flipped, mac, poly, sign_of};

/// A polynomial gives the inverse cube root of the mantissa. One correction step improves the root without a division.
#[inline(always)]
pub(in super::super) fn cbrt<P: Precision>(x: f32) -> f32 {
    let magnitude = x.abs();
    let small = magnitude < f32::MIN_POSITIVE;
    // 2^24 is the cube of 2^8.
    let bits = select(small, magnitude * 16_777_216.0, magnitude).to_bits();
    // `3 * third + rest` is the exponent with a positive bias.
    let exponent = (bits >> 23) + 3 * 43 - 127;
    let third = (exponent * 21846) >> 16;
    let rest = exponent - 3 * third;
    let mantissa = bits & 0x007F_FFFF | 0x7F << 23;
    // The mantissa times 2^`rest`.
    let m = f32::from_bits(mantissa + (rest << 23));
    let factor = select(rest == 1, 0.793_700_5, 1.0);
    let factor = select(rest == 2, 0.629_960_5, factor);
    let inverse = poly::<P>(f32::from_bits(mantissa), narrow::CBRT) * factor;
    let root = m * (inverse * inverse);
    let lacks = mac::<P>(-root, inverse, 1.0);
    let root = mac::<P>(root, lacks * mac::<P>(lacks, 5.0 / 9.0, 2.0 / 3.0), root);
    let power = f32::from_bits((third + 127 - 43 - select(small, 8, 0)) << 23);
    let ends = (magnitude == 0.0) | (magnitude == f32::INFINITY) | magnitude.is_nan();
    flipped(select(ends, magnitude, root * power), sign_of(x))
}

/// `x^y`, with the special values of C99. The power is computed in f64, so results that f32 represents exactly are
/// exact.
#[inline(always)]
pub(in super::super) fn pow<P: Precision>(x: f32, y: f32) -> f32 {
    let magnitude = x.abs();
    let bounded = select(y > LARGE as f32, LARGE as f32, y);
    let bounded = select(bounded < -LARGE as f32, -LARGE as f32, bounded);
    let wide = f64::from(magnitude);
    let power = power_single::<P>(wide, f64::from(bounded));
    let power = with_products::<P>(wide, f64::from(y), power) as f32;

    let upwards = y > 0.0;
    let power = select(magnitude == 0.0, select(upwards, 0.0, f32::INFINITY), power);
    let power = select(magnitude == f32::INFINITY, select(upwards, f32::INFINITY, 0.0), power);
    // From 2^23 on every number is an integer, and from 2^24 on an even one.
    let size = y.abs();
    let whole = size + 8_388_608.0;
    let fits = size < 8_388_608.0;
    let integer = !fits | (whole - 8_388_608.0 == size);
    let unit = select(fits, whole.to_bits(), size.to_bits());
    let odd = integer & (size < 16_777_216.0) & (unit & 1 == 1);
    let negative = sign_of(x) != 0;
    let power = flipped(power, select(negative & odd, SIGN, 0));
    let ends = (magnitude == 0.0) | (magnitude == f32::INFINITY);
    let power = select(negative & !integer & !ends, f32::NAN, power);
    let power = select(x.is_nan() | y.is_nan(), f32::NAN, power);
    select((x == 1.0) | (y == 0.0), 1.0, power)
}
