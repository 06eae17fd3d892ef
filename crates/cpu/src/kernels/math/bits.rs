//! Building blocks of the functions: polynomials and the decomposition of numbers.

use super::tables::Precision;

/// Adding this rounds a number below 2^51 to an integer, ties to even. The integer is then in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;

const SIGN: u64 = 1 << 63;
const ONE: u64 = 0x3FF << 52;

/// `a` if the condition holds, else `b`. Both are computed: branches would not vectorise, and for repeated conditions
/// the compiler would duplicate the code for each combination of them.
#[inline(always)]
pub(super) fn select<T>(condition: bool, a: T, b: T) -> T {
    std::hint::select_unpredictable(condition, a, b)
}

/// `a * b + c`, with one rounding where FMA is fast, else with two.
#[inline(always)]
pub(super) fn mac<P: Precision>(a: f64, b: f64, c: f64) -> f64 {
    if P::FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// The polynomial with these coefficients, lowest first, by Horner's scheme.
#[inline(always)]
pub(super) fn poly<P: Precision>(x: f64, coefficients: &[f64]) -> f64 {
    let mut index = coefficients.len() - 1;
    let mut sum = coefficients[index];
    while index > 0 {
        index -= 1;
        sum = mac::<P>(sum, x, coefficients[index]);
    }
    sum
}

/// The sign bit.
#[inline(always)]
pub(super) fn sign_of(x: f64) -> u64 {
    x.to_bits() & SIGN
}

/// `x` with its sign flipped if the sign bit of `sign` is set.
#[inline(always)]
pub(super) fn flipped(x: f64, sign: u64) -> f64 {
    f64::from_bits(x.to_bits() ^ sign)
}

/// `x` without its low 27 bits: products of two such numbers are exact.
#[inline(always)]
pub(super) fn head(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & (u64::MAX << 27))
}

/// The rounding error `a * b - product` of `product`; exact unless something under- or overflows.
#[inline(always)]
pub(super) fn lost<P: Precision>(a: f64, b: f64, product: f64) -> f64 {
    if P::FUSED {
        return a.mul_add(b, -product);
    }
    // Dekker, A Floating-Point Technique for Extending the Available Precision (1971).
    let (c, d) = (head(a), head(b));
    let (e, f) = (a - c, b - d);
    ((c * d - product) + c * f + e * d) + e * f
}

/// The nearest integer, as a number and in the low bits.
#[inline(always)]
fn rounded(x: f64) -> (f64, u64) {
    let raised = x + ROUND;
    (raised - ROUND, raised.to_bits())
}

/// `2^n` for `n` in the low bits, between -1022 and 1023.
#[inline(always)]
fn power_of_two(n: u64) -> f64 {
    f64::from_bits((n << 52).wrapping_add(ONE))
}

/// An integer as a number and in the low bits.
#[derive(Clone, Copy)]
pub(super) struct Exponent {
    pub(super) number: f64,
    pub(super) bits: u64,
}

/// The integer nearest to `x * scale`.
#[inline(always)]
pub(super) fn exponent<P: Precision>(x: f64, scale: f64) -> Exponent {
    let raised = mac::<P>(x, scale, ROUND);
    Exponent { number: raised - ROUND, bits: raised.to_bits() }
}

/// `x * 2^(n + more)` for exponents between -2044 and 2046, with one rounding if the result is subnormal. For f32 the
/// exponent must be between -1022 and 1023.
#[inline(always)]
pub(super) fn scaled<P: Precision>(x: f64, n: Exponent, more: i64) -> f64 {
    if !P::DOUBLE {
        return x * power_of_two(n.bits.wrapping_add(more as u64));
    }
    let number = n.number + more as f64;
    let (half, low) = rounded(number * 0.5);
    let (_, high) = rounded(number - half);
    x * power_of_two(low) * power_of_two(high)
}

/// `(m, k)` with `x = m * 2^k` and `m` between `sqrt(1/2)` and `sqrt(2)`, for positive normal `x`.
#[inline(always)]
pub(super) fn split(x: f64) -> (f64, f64) {
    // The bits of sqrt(1/2). After their subtraction the exponent is that of the nearest power of two.
    const ROOT: u64 = 0x3FE6_A09E_667F_3BCD;
    // Keeps the exponent positive: few instruction sets can shift signed 64-bit lanes.
    const BIAS: u64 = 1024;
    // 2^52, whose low bits count integers.
    const UNITS: u64 = 0x433 << 52;
    let moved = x.to_bits().wrapping_sub(ROOT).wrapping_add(BIAS << 52);
    let exponent = moved >> 52;
    let k = f64::from_bits(exponent | UNITS) - (4_503_599_627_370_496.0 + BIAS as f64);
    (f64::from_bits((moved & ((1 << 52) - 1)).wrapping_add(ROOT)), k)
}

/// As [`split`], also for positive subnormal numbers.
#[inline(always)]
pub(super) fn split_any(x: f64) -> (f64, f64) {
    let small = x < f64::MIN_POSITIVE;
    let (m, k) = split(select(small, x * 18_014_398_509_481_984.0, x));
    (m, select(small, k - 54.0, k))
}
