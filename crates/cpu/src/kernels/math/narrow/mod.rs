//! Functions that are computed in f32, with twice the lanes of f64. Their errors are within 2 ulp; the functions in f64
//! round once to f32.
//!
//! Steps that must be exact are exact without FMA, too, so all instruction sets keep the error bound.

pub(super) mod arc;
pub(super) mod exp;
pub(super) mod log;
pub(super) mod power;
pub(super) mod trig;

use super::bits::select;
use super::tables::Precision;

/// Adding this rounds a number below 2^22 to an integer, ties to even. The integer is then in the low bits.
const ROUND: f32 = 12_582_912.0;

const SIGN: u32 = 1 << 31;
const ONE: u32 = 0x7F << 23;

/// `a * b + c`, with one rounding where FMA is fast, else with two.
#[inline(always)]
fn mac<P: Precision>(a: f32, b: f32, c: f32) -> f32 {
    if P::FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// The polynomial with these coefficients, lowest first, by Horner's scheme.
#[inline(always)]
fn poly<P: Precision>(x: f32, coefficients: &[f32]) -> f32 {
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
fn sign_of(x: f32) -> u32 {
    x.to_bits() & SIGN
}

/// `x` with its sign flipped if the sign bit of `sign` is set.
#[inline(always)]
fn flipped(x: f32, sign: u32) -> f32 {
    f32::from_bits(x.to_bits() ^ sign)
}

/// `2^n` for `n` in the low bits, between -126 and 127.
#[inline(always)]
fn power_of_two(n: u32) -> f32 {
    f32::from_bits((n << 23).wrapping_add(ONE))
}

/// `(m, k)` with `x = m * 2^k` and `m` between `sqrt(1/2)` and `sqrt(2)`, for positive normal `x`.
#[inline(always)]
fn split(x: f32) -> (f32, i32) {
    // The bits of sqrt(1/2). After their subtraction the exponent is that of the nearest power of two.
    const ROOT: u32 = 0x3F35_04F3;
    let moved = x.to_bits().wrapping_sub(ROOT);
    (f32::from_bits((moved & 0x007F_FFFF).wrapping_add(ROOT)), (moved as i32) >> 23)
}

/// As [`split`], also for positive subnormal numbers.
#[inline(always)]
fn split_any(x: f32) -> (f32, i32) {
    let small = x < f32::MIN_POSITIVE;
    let (m, k) = split(select(small, x * 16_777_216.0, x));
    (m, select(small, k - 24, k))
}
