//! Cube roots and powers.

use super::super::super::{Conv, Elem, Val};
use super::super::floats::Floats;
use super::super::power::{SpecialPowers, exp2_single, power_single, with_products};
use super::super::tables::narrow;

/// A polynomial gives the inverse cube root of the mantissa. One correction step improves the root without a
/// division.
pub(in super::super) fn cbrt(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let small = m.lt(magnitude, f32::MIN_POSITIVE);
    // 2^24 is the cube of 2^8.
    let raised = m.mul(magnitude, 16_777_216.0);
    let normal = m.select(small, raised, magnitude);
    let bits = m.bits(normal);
    // `3 * third + 1 + rest` is the exponent, biased by a multiple of 3; `rest` is -1, 0 or 1.
    let exponent = m.shr(bits, 23);
    let exponent = m.plus(exponent, 3 * 43 - 127 - 1);
    let exponent = m.ir.convert(Conv::FloatOfS, Elem::F32, exponent);
    let third = m.exponent(exponent, 1.0f32 / 3.0);
    let rest = m.fnma(third.number, 3.0, exponent);
    let (is_one, is_two) = (m.eq(rest, 0.0), m.eq(rest, 1.0));
    let mantissa = m.mantissa(bits);
    // What remains of the exponent after division by 3.
    let power = m.select(is_one, 2.0, 1.0);
    let power = m.select(is_two, 4.0, power);
    let whole = m.mul(mantissa, power);
    let factor = m.select(is_one, 0.793_700_5f32, 1.0);
    let factor = m.select(is_two, 0.629_960_5f32, factor);
    let inverse = m.poly(mantissa, narrow::CBRT);
    let inverse = m.mul(inverse, factor);
    let square = m.mul(inverse, inverse);
    let root = m.mul(whole, square);
    let lacks = m.fnma(root, inverse, 1.0);
    let step = m.fma(lacks, 5.0f32 / 9.0, 2.0f32 / 3.0);
    let step = m.mul(lacks, step);
    let root = m.fma(root, step, root);
    let power = m.shl(third.bits, 23);
    let [lower, bias] = [127 - 43 - 8, 127 - 43].map(|bias| m.integer(bias << 23));
    let bias = m.ir.select(small, lower, bias);
    let power = m.ir.add(power, bias);
    let power = m.of_bits(power);
    let root = m.mul(root, power);
    // 0, infinity and NaN stay what they are.
    let inside = m.is_positive_finite(magnitude);
    let root = m.select(inside, root, magnitude);
    m.flipped(root, x)
}

/// `2^y`, with the bits of [`pow`].
pub(in super::super) fn exp2(m: &mut Floats, y: Val) -> Val {
    let wide = m.widened(y);
    let power = exp2_single(&mut m.wide(), wide);
    let power = m.narrowed(power);
    let is_nan = m.is_nan(y);
    m.select(is_nan, f64::NAN, power)
}

/// `x^y`, with the special values of C99. The power is computed in f64, so results that f32 represents
/// exactly are exact.
pub(in super::super) fn pow(m: &mut Floats, x: Val, y: Val) -> Val {
    let magnitude = m.abs(x);
    let (wide_magnitude, wide_y) = (m.widened(magnitude), m.widened(y));
    let mut wide = m.wide();
    let power = power_single(&mut wide, wide_magnitude, wide_y);
    let power = with_products(&mut wide, wide_magnitude, wide_y, power, true);
    let power = m.narrowed(power);
    SpecialPowers { x, magnitude, y }.of(m, power)
}
