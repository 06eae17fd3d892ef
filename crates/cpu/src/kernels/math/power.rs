//! Cube roots and powers.

use super::bits::{exponent, flipped, head, mac, pick, poly, scaled, sign_of, split, split_any};
use super::exp::exp;
use super::tables::{CBRT, Double, LN2_HIGH, LN2_LOW, PER_LN2, PER_LN2_HIGH, PER_LN2_LOW, Precision};

/// A polynomial gives the inverse root of the mantissa, from which the root comes as in FreeBSD's `s_cbrt.c`
/// (Evans, 2002), where the start is rounded so that its square is exact.
#[inline(always)]
pub(super) fn cbrt<P: Precision>(x: f64) -> f64 {
    let magnitude = x.abs();
    let small = magnitude < f64::MIN_POSITIVE;
    // 2^54 is the cube of 2^18.
    let bits = (pick(small, magnitude * 18_014_398_509_481_984.0, magnitude)).to_bits();
    // 3 * third + rest is the exponent, and more than 0.
    let exponent = (bits >> 52) + 3 * 341 - 1023;
    let third = (exponent * 21846) >> 16;
    let rest = exponent - 3 * third;
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 0x3FF << 52);
    let factor = pick(rest == 1, 1.259_921_049_894_873_2, 1.0);
    let factor = pick(rest == 2, 1.587_401_051_968_199_5, factor);
    let inverse = poly::<P>(mantissa, CBRT);
    // The mantissa with what the third of the exponent leaves.
    let m = f64::from_bits(mantissa.to_bits() + (rest << 52));
    let t = head(mantissa * inverse * inverse * factor);
    let quotient = m / (t * t);
    let root = t + t * ((quotient - t) / (t + t + quotient));
    let power = f64::from_bits((third + 1023 - 341) << 52);
    let power = pick(small, power * 3.814_697_265_625e-6, power);
    let root = root * power;
    let ends = magnitude == 0.0 || magnitude == f64::INFINITY || magnitude.is_nan();
    flipped(pick(ends, magnitude, root), sign_of(x))
}

/// 2^600.
const UP: f64 = f64::from_bits((1023 + 600) << 52);
/// 2^-600.
const DOWN: f64 = f64::from_bits((1023 - 600) << 52);

/// `sqrt(x^2 + y^2)`, scaled so that no square over- or underflows; infinite if either is.
#[inline(always)]
pub(super) fn hypot(x: f64, y: f64) -> f64 {
    let (x, y) = (x.abs(), y.abs());
    let large = pick(x > y, x, y);
    let huge = large > 1e150;
    let tiny = large < 1e-140;
    let scale = pick(huge, DOWN, 1.0);
    let scale = pick(tiny, UP, scale);
    let back = pick(huge, UP, 1.0);
    let back = pick(tiny, DOWN, back);
    let (a, b) = (x * scale, y * scale);
    let root = (a * a + b * b).sqrt() * back;
    pick(x == f64::INFINITY || y == f64::INFINITY, f64::INFINITY, root)
}

/// The logarithm to base 2 in two parts, for positive `x`; relative error about 2^-64.
///
/// After `e_pow.c` of fdlibm (Sun Microsystems, 1993): `log(m) = 2s + 2/3 s^3 + ...` for `s = (m - 1) / (m + 1)`,
/// with the leading terms in two parts each, whose products are exact.
#[inline(always)]
fn log2_parts<P: Precision>(x: f64) -> (f64, f64) {
    let (m, k) = split_any(x);
    let (above, below) = (m - 1.0, m + 1.0);
    let inverse = 1.0 / below;
    let s = above * inverse;
    let s_high = head(s);
    let below_high = head(below);
    let below_low = m - (below_high - 1.0);
    let s_low = ((above - s_high * below_high) - s_high * below_low) * inverse;
    let z = s * s;
    // 3/2 log(m) = s (3 + s^2 + r).
    let r = z * z * poly::<P>(z, P::POW) + s_low * (s_high + s);
    let square = s_high * s_high;
    let factor = head(3.0 + square + r);
    let factor_low = r - ((factor - 3.0) - square);
    let (u, v) = (s_high * factor, s_low * factor + factor_low * s);
    let high = head(u + v);
    let low = v - (high - u);
    // Times 2 / (3 log(2)), plus the exponent.
    let (high, low) = (PER_LN2_HIGH * high, PER_LN2_LOW * high + low * PER_LN2);
    let sum = head((high + low) + k);
    (sum, low - ((sum - k) - high))
}

/// `x^y` for positive `x`, as the exponential of `y log2(x)` in two parts.
#[inline(always)]
fn power_double<P: Precision>(magnitude: f64, y: f64) -> f64 {
    // Beyond 2^64, any x but 1 under- or overflows.
    let bounded = pick(y > 1.8e19, 1.8e19, y);
    let bounded = pick(bounded < -1.8e19, -1.8e19, bounded);
    let (log, log_low) = log2_parts::<P>(magnitude);
    let y_head = head(bounded);
    let high = y_head * log;
    let low = (bounded - y_head) * log + bounded * log_low;
    let sum = high + low;
    let sum = pick(sum > 1100.0, 1100.0, sum);
    let sum = pick(sum < -1200.0, -1200.0, sum);
    let n = exponent::<P>(sum, 1.0);
    // What is left, times log(2), again in two parts.
    let exact = high - n.number;
    let left = exact + low;
    let far = sum.abs() > 1090.0;
    let left_low = pick(far, 0.0, low - (left - exact));
    let left = pick(far, 0.0, left);
    let left_head = head(left);
    let main = left_head * LN2_HIGH;
    let rest = (left - left_head) * LN2_HIGH + left * LN2_LOW + left_low * std::f64::consts::LN_2;
    let r = main + rest;
    // At most half of log(2): nothing is left to be taken off.
    let p = r + r * r * poly::<P>(r, P::EXP);
    let p = p + (rest - (r - main));
    scaled::<Double>(1.0 + p, n, 0)
}

/// The same to the accuracy of f32, as the exponential of `y log(x)`.
#[inline(always)]
fn power_single<P: Precision>(magnitude: f64, y: f64) -> f64 {
    let (m, k) = split(magnitude);
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let log = mac::<P>(k, std::f64::consts::LN_2, s * mac::<P>(z, poly::<P>(z, Double::LOG), 2.0));
    let bounded = pick(y > 1.8e19, 1.8e19, pick(y < -1.8e19, -1.8e19, y));
    let exponent = bounded * log;
    let exponent = pick(exponent > 90.0, 90.0, pick(exponent < -110.0, -110.0, exponent));
    exp::<P>(exponent)
}

/// `x^y`, with the special values of C99.
#[inline(always)]
pub(super) fn pow<P: Precision>(x: f64, y: f64) -> f64 {
    let magnitude = x.abs();
    let power = if P::DOUBLE { power_double::<P>(magnitude, y) } else { power_single::<P>(magnitude, y) };

    let upwards = y > 0.0;
    let power = pick(magnitude == 0.0, pick(upwards, 0.0, f64::INFINITY), power);
    let power = pick(magnitude == f64::INFINITY, pick(upwards, f64::INFINITY, 0.0), power);
    // From 2^52 on every number is an integer, from 2^53 on an even one.
    let size = y.abs();
    let whole = size + 4_503_599_627_370_496.0;
    let fits = size < 4_503_599_627_370_496.0;
    let integer = !fits | (whole - 4_503_599_627_370_496.0 == size);
    let unit = pick(fits, whole.to_bits(), size.to_bits());
    let odd = integer & (size < 9_007_199_254_740_992.0) & (unit & 1 == 1);
    let negative = sign_of(x) != 0;
    let power = flipped(power, pick(negative & odd, 1 << 63, 0));
    let ends = (magnitude == 0.0) | (magnitude == f64::INFINITY);
    let power = pick(negative & !integer & !ends, f64::NAN, power);
    let power = pick(x.is_nan() | y.is_nan(), f64::NAN, power);
    pick((x == 1.0) | (y == 0.0), 1.0, power)
}
