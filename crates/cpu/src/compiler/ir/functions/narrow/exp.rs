//! Exponentials and hyperbolic functions, reduced as in f64.

use super::super::super::{Op, Val};
use super::super::floats::{Exponent, Floats};
use super::super::tables::narrow;

/// The leading 9 bits of log(2). Their products with exponents are exact.
pub(super) const LN2_HIGH: f32 = 355.0 / 512.0;
/// The remainder of log(2).
pub(super) const LN2_LOW: f32 = -2.121_944_4e-4;

/// `(p, n)` with `e^x = (1 + p) * 2^n` for `|x| < 1000`.
fn exp_parts(m: &mut Floats, x: Val) -> (Val, Exponent) {
    let n = m.exponent(x, std::f32::consts::LOG2_E);
    let r = m.fnma(n.number, LN2_HIGH, x);
    let r = m.fnma(n.number, LN2_LOW, r);
    let q = m.poly(r, narrow::EXP);
    let z = m.mul(r, r);
    (m.fma(z, q, r), n)
}

/// `e^x`. Where it rounds to zero, nothing is scaled: processors take a hundred cycles for a result that underflows, and
/// what a mask takes out of a softmax is `e^-inf`.
pub(in super::super) fn exp(m: &mut Floats, x: Val) -> Val {
    let vanishes = m.lt(x, -104.0);
    let x = m.at_most(89.0, x);
    let x = m.select(vanishes, 0.0, x);
    let (p, n) = exp_parts(m, x);
    let factor = m.add(p, 1.0);
    let power = m.ir.op(Op::Scale, [factor, n.number]);
    m.select(vanishes, 0.0, power)
}

/// `e^x - 1`.
pub(in super::super) fn expm1(m: &mut Floats, x: Val) -> Val {
    let bounded = m.at_most(89.0, x);
    let bounded = m.at_least(-18.0, bounded);
    let (p, n) = exp_parts(m, bounded);
    // 2^n p + (2^n - 1), computed at half scale, because 2^128 overflows.
    let half = m.power_of_two(n.bits, -1);
    let below = m.sub(half, 0.5);
    let less = m.fma(half, p, below);
    let less = m.add(less, less);
    // Keeps the sign of zero, and subnormal numbers.
    let magnitude = m.abs(x);
    let small = m.lt(magnitude, 1e-8f32);
    m.select(small, x, less)
}

/// `1 / (1 + e^-x)` with one division and no other case: both parts of the sum are made 2^32 times smaller,
/// which keeps them and the result in range from the least result that is not zero to the greatest below 1.
pub(in super::super) fn sigmoid(m: &mut Floats, x: Val) -> Val {
    let x = m.at_most(20.0, x);
    let x = m.at_least(-104.0, x);
    // As `exp_parts` of -x, with the signs of r and p the other way round.
    let n = m.exponent(x, -std::f32::consts::LOG2_E);
    let r = m.fma(n.number, LN2_HIGH, x);
    let r = m.fma(n.number, LN2_LOW, r);
    let mut coefficients = [0.0; narrow::EXP.len()];
    for (at, (to, from)) in coefficients.iter_mut().zip(narrow::EXP).enumerate() {
        *to = if at % 2 == 0 { *from } else { -from };
    }
    let q = m.poly(r, &coefficients);
    let z = m.mul(r, r);
    let p = m.fnma(z, q, r);
    let unit = f32::from_bits((127 - 32) << 23);
    let scale = m.power_of_two(n.bits, -32);
    let sum = m.add(scale, unit);
    let sum = m.fnma(scale, p, sum);
    let low = m.sub(scale, sum);
    let low = m.add(low, unit);
    let low = m.fnma(scale, p, low);
    let y = m.div(unit, sum);
    let low = m.mul(low, 1.0 / f64::from(unit));
    let c = m.mul(low, y);
    m.fnma(y, c, y)
}

/// `e^|x| / 4`. Its double overflows where `cosh` does. NaN stays NaN.
fn quarter_exp(m: &mut Floats, magnitude: Val) -> Val {
    let bounded = m.at_most(89.5, magnitude);
    let (p, n) = exp_parts(m, bounded);
    let scale = m.power_of_two(n.bits, -2);
    m.fma(scale, p, scale)
}

/// A polynomial up to 1, then `(e^x - e^-x) / 2`.
pub(in super::super) fn sinh(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let near = odd(m, magnitude, narrow::SINH);
    let quarter = quarter_exp(m, magnitude);
    let inverse = m.div(0.0625, quarter);
    let far = m.sub(quarter, inverse);
    let far = m.add(far, far);
    let is_near = m.lt(magnitude, 1.0);
    let sinh = m.select(is_near, near, far);
    m.flipped(sinh, x)
}

/// `(e^x + e^-x) / 2`.
pub(in super::super) fn cosh(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let quarter = quarter_exp(m, magnitude);
    let inverse = m.div(0.0625, quarter);
    let half = m.add(quarter, inverse);
    m.add(half, half)
}

/// A polynomial up to 5/8, then `1 - 2 / (e^2x + 1)`.
pub(in super::super) fn tanh(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let near = odd(m, magnitude, narrow::TANH);
    // From 10 on, 1 - 2e^(-2x) rounds to 1.
    let bounded = m.at_most(10.0, magnitude);
    let twice = m.add(bounded, bounded);
    let (p, n) = exp_parts(m, twice);
    let scale = m.power_of_two(n.bits, 0);
    let exp = m.fma(scale, p, scale);
    let below = m.add(exp, 1.0);
    let lacks = m.div(2.0, below);
    let far = m.sub(1.0, lacks);
    let is_near = m.lt(magnitude, 0.625);
    let tanh = m.select(is_near, near, far);
    m.flipped(tanh, x)
}

/// `x + x^3` times the polynomial of `x^2`.
fn odd(m: &mut Floats, x: Val, coefficients: &[f32]) -> Val {
    let z = m.mul(x, x);
    let q = m.poly(z, coefficients);
    let cube = m.mul(x, z);
    m.fma(cube, q, x)
}
