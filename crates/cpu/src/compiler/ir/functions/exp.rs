//! Exponentials and hyperbolic functions.
//!
//! The two-step reduction to `|r| <= log(2) / 2` is that of Cody and Waite, Software Manual for the
//! Elementary Functions (1980). The low part is carried as in fdlibm (Sun Microsystems, 1993).

use super::super::{Op, Val};
use super::floats::{Exponent, Floats};
use super::tables::{LN2_HIGH, LN2_LOW};

/// `(p, n)` with `e^(x + low) = (1 + p) * 2^n`, for `|x| < 1500` and a `low` of at most one or two ulp of
/// `x`.
pub(super) fn exp_parts(m: &mut Floats, x: Val, low: Option<Val>) -> (Val, Exponent) {
    let n = m.exponent(x, std::f64::consts::LOG2_E);
    // Exact: the constant ends in zeros, and the difference cancels.
    let high = m.fnma(n.number, LN2_HIGH, x);
    if !m.precision.is_double {
        let r = m.fnma(n.number, LN2_LOW, high);
        let q = m.poly(r, m.precision.exp);
        let z = m.mul(r, r);
        return (m.fma(z, q, r), n);
    }
    let rest = match low {
        Some(low) => m.fnma(n.number, LN2_LOW, low),
        None => m.mul(n.number, -LN2_LOW),
    };
    let r = m.add(high, rest);
    let lost = m.sub(r, high);
    let lost = m.sub(rest, lost);
    let q = m.poly(r, m.precision.exp);
    let z = m.mul(r, r);
    let tail = m.fma(lost, r, lost);
    let tail = m.fma(z, q, tail);
    (m.add(r, tail), n)
}

/// `x * 2^n`, rounded once; for f32 the power must be a normal f64.
pub(super) fn scaled(m: &mut Floats, x: Val, n: Exponent) -> Val {
    if m.precision.is_double {
        return m.ir.op(Op::Scale, [x, n.number]);
    }
    let power = m.power_of_two(n.bits, 0);
    m.mul(x, power)
}

/// `e^x`. NaN stays NaN. Where the result rounds to zero, nothing is scaled: processors take a hundred cycles for a result
/// that underflows.
pub(super) fn exp(m: &mut Floats, x: Val) -> Val {
    let (low, high) = if m.precision.is_double { (-746.0, 710.0) } else { (-110.0, 90.0) };
    let vanishes = m.lt(x, low);
    let x = m.at_most(high, x);
    let x = m.select(vanishes, 0.0, x);
    let (p, n) = exp_parts(m, x, None);
    let factor = m.add(1.0, p);
    let power = scaled(m, factor, n);
    m.select(vanishes, 0.0, power)
}

/// `e^x - 1`.
pub(super) fn expm1(m: &mut Floats, x: Val) -> Val {
    let bounded = m.at_most(710.0, x);
    // Here the result is -1 already.
    let bounded = m.at_least(-60.0, bounded);
    let (p, n) = exp_parts(m, bounded, None);
    // 2^n p + (2^n - 1) at half scale, because 2^1024 overflows.
    let half = m.power_of_two(n.bits, -1);
    let below = m.sub(half, 0.5);
    let less = m.fma(half, p, below);
    let less = m.add(less, less);
    // Keeps the sign of zero, and subnormal numbers.
    let magnitude = m.abs(x);
    let small = m.lt(magnitude, 1e-17);
    m.select(small, x, less)
}

/// `e^-|x| / (1 + e^-|x|)` for negative `x`, else `1 / (1 + e^-|x|)`: neither form overflows.
pub(super) fn sigmoid(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let lower = m.neg(magnitude);
    let exp = exp(m, lower);
    let is_negative = m.lt(x, 0.0);
    let above = m.select(is_negative, exp, 1.0);
    let below = m.add(1.0, exp);
    m.div(above, below)
}

/// `(p, n, e^x / 2)` for `x = |x|`, with `e^x = (1 + p) * 2^n`. The last overflows only where `sinh` and
/// `cosh` do.
fn half_exp(m: &mut Floats, magnitude: Val) -> (Val, Exponent, Val) {
    let bounded = m.at_most(710.5, magnitude);
    let (p, n) = exp_parts(m, bounded, None);
    let quarter = m.power_of_two(n.bits, -2);
    let factor = m.add(1.0, p);
    let quarter = m.mul(factor, quarter);
    (p, n, m.add(quarter, quarter))
}

/// `(e + e / (e + 1)) / 2` for `e = e^x - 1`.
pub(super) fn sinh(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let (p, n, exp) = half_exp(m, magnitude);
    // `e^x / 2` and `(e^x - 1) / 2`. The former overflows only if the result does, and from 22 on it is the
    // result.
    let half = m.power_of_two(n.bits, -1);
    let below = m.sub(half, 0.5);
    let less = m.fma(half, p, below);
    let whole = m.add(exp, exp);
    let ratio = m.div(less, whole);
    let both = m.add(less, ratio);
    let large = m.lt(22.0, magnitude);
    let sum = m.select(large, exp, both);
    let small = m.lt(magnitude, 1e-17);
    let sum = m.select(small, magnitude, sum);
    m.flipped(sum, x)
}

/// `e^x / 2 + 1 / (2 e^x)`.
pub(super) fn cosh(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let (_, _, exp) = half_exp(m, magnitude);
    let inverse = m.div(0.25, exp);
    m.add(exp, inverse)
}

/// `e / (e + 2)` for `e = e^2x - 1`.
pub(super) fn tanh(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    // From 22 on, 1 - 2e^(-2x) rounds to 1.
    let bounded = m.at_most(22.0, magnitude);
    let twice = m.add(bounded, bounded);
    let (p, n) = exp_parts(m, twice, None);
    let scale = m.power_of_two(n.bits, 0);
    let below = m.sub(scale, 1.0);
    let less = m.fma(scale, p, below);
    let below = m.add(less, 2.0);
    let tanh = m.div(less, below);
    let small = m.lt(magnitude, 1e-17);
    let tanh = m.select(small, magnitude, tanh);
    m.flipped(tanh, x)
}
