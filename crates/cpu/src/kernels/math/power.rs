//! Cube roots and powers.

use std::f64::consts::LN_2;

use super::bits::{exponent, flipped, head, lost, mac, poly, scaled, select, sign_of, split, split_any};
use super::tables::{CBRT, EXP2_SINGLE, LOG2_SINGLE, PER_LN2, PER_LN2_LOW, POW, Precision};

/// A polynomial gives the inverse cube root of the mantissa. The root is computed from it as in FreeBSD's `s_cbrt.c`
/// (Evans, 2002), where the starting value is rounded so that its square is exact.
#[inline(always)]
pub(super) fn cbrt<P: Precision>(x: f64) -> f64 {
    let magnitude = x.abs();
    let small = magnitude < f64::MIN_POSITIVE;
    // 2^54 is the cube of 2^18.
    let bits = (select(small, magnitude * 18_014_398_509_481_984.0, magnitude)).to_bits();
    // `3 * third + rest` is the exponent, biased to be positive.
    let exponent = (bits >> 52) + 3 * 341 - 1023;
    let third = (exponent * 21846) >> 16;
    let rest = exponent - 3 * third;
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 0x3FF << 52);
    let factor = select(rest == 1, 1.259_921_049_894_873_2, 1.0);
    let factor = select(rest == 2, 1.587_401_051_968_199_5, factor);
    let inverse = poly::<P>(mantissa, CBRT);
    // The mantissa times 2^`rest`, which remains of the exponent after division by 3.
    let m = f64::from_bits(mantissa.to_bits() + (rest << 52));
    let t = head(mantissa * inverse * inverse * factor);
    let quotient = m / (t * t);
    let root = t + t * ((quotient - t) / (t + t + quotient));
    let power = f64::from_bits((third + 1023 - 341) << 52);
    let power = select(small, power * 3.814_697_265_625e-6, power);
    let root = root * power;
    let ends = magnitude == 0.0 || magnitude == f64::INFINITY || magnitude.is_nan();
    flipped(select(ends, magnitude, root), sign_of(x))
}

/// 2^600.
const UP: f64 = f64::from_bits((1023 + 600) << 52);
/// 2^-600.
const DOWN: f64 = f64::from_bits((1023 - 600) << 52);

/// `sqrt(x^2 + y^2)`, scaled so that no square over- or underflows. It is infinite if either operand is.
#[inline(always)]
pub(super) fn hypot(x: f64, y: f64) -> f64 {
    let (x, y) = (x.abs(), y.abs());
    let large = select(x > y, x, y);
    let huge = large > 1e150;
    let tiny = large < 1e-140;
    let scale = select(huge, DOWN, 1.0);
    let scale = select(tiny, UP, scale);
    let back = select(huge, UP, 1.0);
    let back = select(tiny, DOWN, back);
    let (a, b) = (x * scale, y * scale);
    let root = (a * a + b * b).sqrt() * back;
    select(x == f64::INFINITY || y == f64::INFINITY, f64::INFINITY, root)
}

/// `sqrt(x^2 + y^2)` in single precision, with an error below 1 ulp. The squares are exact in f64. An f64 root would
/// take most of the time, so the sum is scaled to the range of f32 before the root.
#[inline(always)]
pub(super) fn hypot_f32(x: f32, y: f32) -> f32 {
    let (x, y) = (x.abs(), y.abs());
    let large = select(x > y, x, y);
    let (a, b) = (f64::from(x), f64::from(y));
    let (huge, tiny) = (large > 1e15, large < 1e-15);
    // Powers of two: the factors of the sum and of the root.
    let (down, up) = (f64::from_bits((1023 - 140) << 52), f64::from_bits((1023 + 200) << 52));
    let scale = select(huge, down, select(tiny, up, 1.0));
    let back =
        select(huge, f32::from_bits((127 + 70) << 23), select(tiny, f32::from_bits((127 - 100) << 23), 1.0));
    let root = (((a * a + b * b) * scale) as f32).sqrt() * back;
    select(x == f32::INFINITY || y == f32::INFINITY, f32::INFINITY, root)
}

/// The logarithm to base 2 in two parts, for positive `x`; relative error about 2^-64.
///
/// As in `e_pow.c` of fdlibm (Sun Microsystems, 1993), `log(m) = 2s + 2/3 s^3 + ...` for `s = (m - 1) / (m + 1)`,
/// with the leading terms in two parts each.
#[inline(always)]
fn log2_parts<P: Precision>(x: f64) -> (f64, f64) {
    let (m, k) = split_any(x);
    let (above, below) = (m - 1.0, m + 1.0);
    let inverse = 1.0 / below;
    let s = above * inverse;
    // The remainder of the quotient. The divisor is taken in two parts.
    let s_low = (-lost::<P>(s, below, above) - s * (m - (below - 1.0))) * inverse;
    let z = s * s;
    let z_low = mac::<P>(s + s, s_low, lost::<P>(s, s, z));
    // 3/2 log(m) = s (3 + s^2 + r).
    let r = z * z * poly::<P>(z, POW);
    let factor = 3.0 + (z + r);
    let factor_low = (r - ((factor - 3.0) - z)) + z_low;
    let u = s * factor;
    let u_low = mac::<P>(s, factor_low, mac::<P>(s_low, factor, lost::<P>(s, factor, u)));
    // Times 2 / (3 log(2)), plus the exponent.
    let v = u * PER_LN2;
    let v_low = mac::<P>(u, PER_LN2_LOW, mac::<P>(u_low, PER_LN2, lost::<P>(u, PER_LN2, v)));
    let sum = k + v;
    (sum, ((k - sum) + v) + v_low)
}

/// About 2^64. For larger exponents every number but 1 under- or overflows.
pub(super) const LARGE: f64 = 1.8e19;

/// `x^y` for positive finite `x` and `|y| <= LARGE`, as the exponential of `y log2(x)` in two parts.
#[inline(always)]
pub(super) fn power<P: Precision>(magnitude: f64, y: f64) -> f64 {
    let (log, log_low) = log2_parts::<P>(magnitude);
    let sum = y * log;
    let low = mac::<P>(y, log_low, lost::<P>(y, log, sum));
    let low = select(sum.abs() > 1090.0, 0.0, low);
    let sum = select(sum > 1100.0, 1100.0, sum);
    let sum = select(sum < -1200.0, -1200.0, sum);
    let n = exponent::<P>(sum, 1.0);
    // At most log(2) / 2, so no further reduction is needed.
    let r = mac::<P>(sum - n.number, LN_2, low * LN_2);
    let p = mac::<P>(r * r, poly::<P>(r, P::EXP), r);
    scaled::<P>(1.0 + p, n, 0)
}

/// `x^y` for positive finite `x` and `|y| <= LARGE` with the accuracy of f32. Both operands are f32 values.
#[inline(always)]
pub(super) fn power_single<P: Precision>(magnitude: f64, y: f64) -> f64 {
    let (m, k) = split(magnitude);
    let s = (m - 1.0) / (m + 1.0);
    let log = mac::<P>(s, poly::<P>(s * s, LOG2_SINGLE), k);
    let sum = y * log;
    let sum = select(sum > 130.0, 130.0, sum);
    let sum = select(sum < -160.0, -160.0, sum);
    let n = exponent::<P>(sum, 1.0);
    let r = sum - n.number;
    let power = mac::<P>(r, poly::<P>(r, EXP2_SINGLE), 1.0);
    // The result is far from the ends of the f64 range, so the exponents can be added.
    f64::from_bits(power.to_bits().wrapping_add(n.bits << 52))
}

/// `x^y` of positive `x` for the exponents 1, 2, 3 and -1, which are products and quotients, and for 4 too, if the
/// result is rounded to f32; else `power`.
#[inline(always)]
pub(super) fn with_products<P: Precision>(magnitude: f64, y: f64, power: f64) -> f64 {
    let square = magnitude * magnitude;
    let power = select(y == 1.0, magnitude, power);
    let power = select(y == 2.0, square, power);
    let power = select(y == 3.0, square * magnitude, power);
    let power = if P::DOUBLE { power } else { select(y == 4.0, square * square, power) };
    select(y == -1.0, 1.0 / magnitude, power)
}

/// `x^y` for positive finite `x` and `|y| <= LARGE`.
#[inline(always)]
pub(super) fn ordinary<P: Precision>(x: f64, y: f64) -> f64 {
    let power = if P::DOUBLE { power::<P>(x, y) } else { power_single::<P>(x, y) };
    with_products::<P>(x, y, power)
}

/// `x^y`, with the special values of C99.
#[inline(always)]
pub(super) fn pow<P: Precision>(x: f64, y: f64) -> f64 {
    let magnitude = x.abs();
    let bounded = select(y > LARGE, LARGE, y);
    let bounded = select(bounded < -LARGE, -LARGE, bounded);
    let power = power::<P>(magnitude, bounded);
    let power = with_products::<P>(magnitude, y, power);

    let upwards = y > 0.0;
    let power = select(magnitude == 0.0, select(upwards, 0.0, f64::INFINITY), power);
    let power = select(magnitude == f64::INFINITY, select(upwards, f64::INFINITY, 0.0), power);
    // From 2^52 on every number is an integer, and from 2^53 on an even one.
    let size = y.abs();
    let whole = size + 4_503_599_627_370_496.0;
    let fits = size < 4_503_599_627_370_496.0;
    let integer = !fits | (whole - 4_503_599_627_370_496.0 == size);
    let unit = select(fits, whole.to_bits(), size.to_bits());
    let odd = integer & (size < 9_007_199_254_740_992.0) & (unit & 1 == 1);
    let negative = sign_of(x) != 0;
    let power = flipped(power, select(negative & odd, 1 << 63, 0));
    let ends = (magnitude == 0.0) | (magnitude == f64::INFINITY);
    let power = select(negative & !integer & !ends, f64::NAN, power);
    let power = select(x.is_nan() | y.is_nan(), f64::NAN, power);
    select((x == 1.0) | (y == 0.0), 1.0, power)
}
