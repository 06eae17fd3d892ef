//! Cube roots and powers.

use std::f64::consts::LN_2;

use super::super::{Op, Val};
use super::exp::scaled;
use super::floats::Floats;
use super::log::{split, split_any};
use super::tables::{CBRT, EXP2_SINGLE, LOG2_SINGLE, PER_LN2, PER_LN2_LOW, POW};

/// A polynomial gives the inverse cube root of the mantissa. The root is computed from it as in FreeBSD's
/// `s_cbrt.c` (Evans, 2002), where the starting value is rounded so that its square is exact.
pub(super) fn cbrt(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let small = m.lt(magnitude, f64::MIN_POSITIVE);
    // 2^54 is the cube of 2^18.
    let raised = m.mul(magnitude, 18_014_398_509_481_984.0);
    let normal = m.select(small, raised, magnitude);
    let bits = m.bits(normal);
    // `3 * third + 1 + rest` is the exponent, biased by a multiple of 3; `rest` is -1, 0 or 1.
    let exponent = m.shr(bits, 52);
    let exponent = unsigned(m, exponent, 1.0);
    let third = m.exponent(exponent, 1.0 / 3.0);
    let rest = m.fnma(third.number, 3.0, exponent);
    let (is_one, is_two) = (m.eq(rest, 0.0), m.eq(rest, 1.0));
    let mantissa = m.mantissa(bits);
    let factor = m.select(is_one, 1.259_921_049_894_873_2, 1.0);
    let factor = m.select(is_two, 1.587_401_051_968_199_5, factor);
    let inverse = m.poly(mantissa, CBRT);
    // What remains of the exponent after division by 3.
    let power = m.select(is_one, 2.0, 1.0);
    let power = m.select(is_two, 4.0, power);
    let whole = m.mul(mantissa, power);
    let t = m.mul(mantissa, inverse);
    let t = m.mul(t, inverse);
    let t = m.mul(t, factor);
    let t = m.head(t);
    let square = m.mul(t, t);
    let quotient = m.div(whole, square);
    let twice = m.add(t, t);
    let sum = m.add(twice, quotient);
    let difference = m.sub(quotient, t);
    let step = m.div(difference, sum);
    let step = m.mul(t, step);
    let root = m.add(t, step);
    let power = m.shl(third.bits, 52);
    let [lower, bias] = [1023 - 341 - 18, 1023 - 341].map(|bias| m.integer(bias << 52));
    let bias = m.ir.select(small, lower, bias);
    let power = m.ir.add(power, bias);
    let power = m.of_bits(power);
    let root = m.mul(root, power);
    // 0, infinity and NaN stay what they are.
    let inside = m.is_positive_finite(magnitude);
    let root = m.select(inside, root, magnitude);
    m.flipped(root, x)
}

/// An unsigned integer below 2^52 less a number, as f64.
pub(super) fn unsigned(m: &mut Floats, integer: Val, less: f64) -> Val {
    // The low bits of 2^52 count integers.
    const UNITS: f64 = 4_503_599_627_370_496.0;
    let units = m.integer(UNITS.to_bits());
    let sum = m.ir.op(Op::Or, [integer, units]);
    let sum = m.of_bits(sum);
    m.sub(sum, UNITS + less)
}

/// The logarithm to base 2 in two parts, for positive `x`; relative error about 2^-64.
///
/// As in `e_pow.c` of fdlibm (Sun Microsystems, 1993), `log(m) = 2s + 2/3 s^3 + ...` for `s = (m - 1) / (m +
/// 1)`, with the leading terms in two parts each. What a rounded product `p = a * b` lost is `a * b - p`; `p
/// - a * b` is one op, so that low parts have the other sign here and there.
fn log2_parts(m: &mut Floats, x: Val) -> (Val, Val) {
    let (mantissa, k) = split_any(m, x);
    let (above, below) = (m.sub(mantissa, 1.0), m.add(mantissa, 1.0));
    let inverse = m.div(1.0, below);
    let s = m.mul(above, inverse);
    // The remainder of the quotient. The divisor is taken in two parts.
    let remainder = m.fnma(s, below, above);
    let kept = m.sub(below, 1.0);
    let kept = m.sub(mantissa, kept);
    let kept = m.mul(s, kept);
    let s_low = m.sub(remainder, kept);
    let s_low = m.mul(s_low, inverse);
    let z = m.mul(s, s);
    let gained = m.fnma(s, s, z);
    let twice = m.add(s, s);
    let z_above = m.fnma(twice, s_low, gained);
    // 3/2 log(m) = s (3 + s^2 + r).
    let q = m.poly(z, POW);
    let fourth = m.mul(z, z);
    let r = m.mul(fourth, q);
    let factor = m.add(z, r);
    let factor = m.add(3.0, factor);
    let rest = m.sub(factor, 3.0);
    let rest = m.sub(rest, z);
    let rest = m.sub(r, rest);
    let factor_low = m.sub(rest, z_above);
    let u = m.mul(s, factor);
    let gained = m.fnma(s, factor, u);
    let gained = m.fnma(s_low, factor, gained);
    let u_above = m.fnma(s, factor_low, gained);
    // Times 2 / (3 log(2)), plus the exponent.
    let v = m.mul(u, PER_LN2);
    let gained = m.fnma(u, PER_LN2, v);
    let gained = m.fma(u_above, PER_LN2, gained);
    let v_above = m.fnma(u, PER_LN2_LOW, gained);
    let sum = m.add(k, v);
    let low = m.sub(k, sum);
    let low = m.add(low, v);
    (sum, m.sub(low, v_above))
}

/// About 2^64. For larger exponents every number but 1 under- or overflows.
const LARGE: f64 = 1.8e19;

/// `x^y` for positive finite `x`, as the exponential of `y log2(x)` in two parts.
fn power(m: &mut Floats, magnitude: Val, y: Val) -> Val {
    let y = m.at_most(LARGE, y);
    let y = m.at_least(-LARGE, y);
    let (log, log_low) = log2_parts(m, magnitude);
    let sum = m.mul(y, log);
    let gained = m.fnma(y, log, sum);
    let above = m.fnma(y, log_low, gained);
    let size = m.abs(sum);
    let beyond = m.lt(1090.0, size);
    let above = m.select(beyond, 0.0, above);
    let low = m.mul(above, -LN_2);
    exp2_sum(m, sum, Some(low))
}

/// `2^sum e^low`. NaN stays NaN.
fn exp2_sum(m: &mut Floats, sum: Val, low: Option<Val>) -> Val {
    let sum = m.at_most(1100.0, sum);
    let sum = m.at_least(-1200.0, sum);
    let n = m.exponent(sum, 1.0);
    // At most log(2) / 2, so no further reduction is needed.
    let rest = m.sub(sum, n.number);
    let r = match low {
        Some(low) => m.fma(rest, LN_2, low),
        None => m.mul(rest, LN_2),
    };
    let q = m.poly(r, m.precision.exp);
    let square = m.mul(r, r);
    let p = m.fma(square, q, r);
    let factor = m.add(1.0, p);
    scaled(m, factor, n)
}

/// `x^y` for positive finite `x` with the accuracy of f32. Both operands are f32 values.
pub(super) fn power_single(m: &mut Floats, magnitude: Val, y: Val) -> Val {
    let (mantissa, k) = split(m, magnitude);
    let (above, below) = (m.sub(mantissa, 1.0), m.add(mantissa, 1.0));
    let s = m.div(above, below);
    let z = m.mul(s, s);
    let q = m.poly(z, LOG2_SINGLE);
    let log = m.fma(s, q, k);
    let sum = m.mul(y, log);
    exp2_single(m, sum)
}

/// `2^sum` with the accuracy of f32, but not of NaN.
pub(super) fn exp2_single(m: &mut Floats, sum: Val) -> Val {
    let sum = m.at_most(130.0, sum);
    let sum = m.at_least(-160.0, sum);
    let n = m.exponent(sum, 1.0);
    let r = m.sub(sum, n.number);
    let q = m.poly(r, EXP2_SINGLE);
    let power = m.fma(r, q, 1.0);
    // The result is far from the ends of the f64 range, so the exponents can be added.
    let exponent = m.shl(n.bits, 52);
    let bits = m.bits(power);
    let bits = m.ir.add(bits, exponent);
    m.of_bits(bits)
}

/// `x^y` of positive `x` for the exponents 1, 2, 3 and -1, which are products and quotients, and for 4 too, if the
/// result is rounded to f32; else `power`.
pub(super) fn with_products(m: &mut Floats, magnitude: Val, y: Val, power: Val, is_rounded: bool) -> Val {
    let from_middle = m.sub(y, 1.5);
    let distance = m.abs(from_middle);
    let may_be = m.le(distance, 2.5);
    m.unless_any(may_be, power, |m| {
        let mut power = power;
        for exponent in [1, 2, 3, 4, -1] {
            if exponent == 4 && !is_rounded {
                continue;
            }
            let product = product(m, magnitude, exponent);
            let is_this = m.eq(y, f64::from(exponent));
            power = m.select(is_this, product, power);
        }
        power
    })
}

/// `x` to a power of which [`with_products`] says that it is a product or a quotient.
fn product(m: &mut Floats, x: Val, exponent: i32) -> Val {
    if exponent == 1 {
        return x;
    }
    if exponent == -1 {
        return m.div(1.0, x);
    }
    let square = m.mul(x, x);
    match exponent {
        2 => square,
        3 => m.mul(square, x),
        4 => m.mul(square, square),
        _ => unreachable!("no product is known for the exponent {exponent}"),
    }
}

/// `x^y` for an exponent that is known and whose powers are products or quotients, in f32 if it `is_rounded`.
pub(super) fn known_power(m: &mut Floats, x: Val, y: f64, is_rounded: bool) -> Option<Val> {
    let known = [0, 1, 2, 3, 4, -1].into_iter().find(|&exponent| f64::from(exponent) == y)?;
    match (known, is_rounded) {
        (0, _) => Some(m.value(1.0)),
        (4, false) => None,
        // What takes one rounding takes the same one in f32.
        (1 | 2 | -1, _) | (3, false) => Some(product(m, x, known)),
        _ => {
            let wide = m.widened(x);
            let power = product(&mut m.wide(), wide, known);
            Some(m.narrowed(power))
        }
    }
}

/// `2^y`, with the bits of [`pow`], in which the logarithm of 2 is exact.
pub(super) fn exp2(m: &mut Floats, y: Val) -> Val {
    exp2_sum(m, y, None)
}

/// `x^y`, with the special values of C99.
pub(super) fn pow(m: &mut Floats, x: Val, y: Val) -> Val {
    let magnitude = m.abs(x);
    let power = power(m, magnitude, y);
    let power = with_products(m, magnitude, y, power, false);
    SpecialPowers { x, magnitude, y }.of(m, power)
}

/// The powers that are special in C99: of numbers that are not positive or not finite, and by NaN.
#[derive(Clone, Copy)]
pub(super) struct SpecialPowers {
    pub(super) x: Val,
    /// `|x|`.
    pub(super) magnitude: Val,
    pub(super) y: Val,
}

impl SpecialPowers {
    /// `x^y`, where `power` is `|x|^y` for all that is not special. Infinite exponents count as special:
    /// `power` may be NaN for them.
    pub(super) fn of(self, m: &mut Floats, power: Val) -> Val {
        // 0, or NaN where the exponent is no number.
        let (zero, other) = (m.sub(self.x, self.x), m.sub(self.y, self.y));
        let zero = m.add(zero, other);
        let ordinary = m.lt(zero, self.x);
        let special = m.not(ordinary);
        m.unless_any(special, power, |m| self.patched(m, power))
    }

    fn patched(self, m: &mut Floats, power: Val) -> Val {
        let SpecialPowers { x, magnitude, y } = self;
        let infinity = f64::INFINITY;
        let upwards = m.lt(0.0, y);
        let (is_zero, is_infinite) = (m.eq(magnitude, 0.0), m.eq(magnitude, infinity));
        let of_zero = m.select(upwards, 0.0, infinity);
        let power = m.select(is_zero, of_zero, power);
        let of_infinity = m.select(upwards, infinity, 0.0);
        let power = m.select(is_infinite, of_infinity, power);
        // From this on every number is an integer, and from its double on an even one.
        let integers = (1u64 << m.mantissa_width()) as f64;
        let size = m.abs(y);
        let whole = m.add(size, integers);
        let fits = m.lt(size, integers);
        let back = m.sub(whole, integers);
        let is_whole = m.eq(back, size);
        let fraction = m.ir.op(Op::AndNot, [fits, is_whole]);
        let unit = m.select(fits, whole, size);
        let unit = m.bits(unit);
        let odd = m.has_bits(unit, 1);
        let below = m.lt(size, 2.0 * integers);
        let odd = m.both(odd, below);
        let odd = m.ir.op(Op::AndNot, [odd, fraction]);
        let sign = m.select(odd, x, 0.0);
        let power = m.flipped(power, sign);
        // Fractional powers of finite negative numbers.
        let is_negative = m.lt(x, 0.0);
        let no_number = m.both(is_negative, fraction);
        let no_number = m.ir.op(Op::AndNot, [no_number, is_infinite]);
        let (x_nan, y_nan) = (m.is_nan(x), m.is_nan(y));
        let no_operand = m.either(x_nan, y_nan);
        let no_number = m.either(no_number, no_operand);
        let power = m.select(no_number, f64::NAN, power);
        let (is_one, to_none) = (m.eq(x, 1.0), m.eq(y, 0.0));
        let is_one = m.either(is_one, to_none);
        // -1 to an infinite power, as if that were a large even number.
        let (is_unit, to_end) = (m.eq(magnitude, 1.0), m.eq(size, infinity));
        let to_end = m.both(is_unit, to_end);
        let is_one = m.either(is_one, to_end);
        m.select(is_one, 1.0, power)
    }
}
