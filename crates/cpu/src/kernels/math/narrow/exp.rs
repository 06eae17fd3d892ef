//! Exponentials and hyperbolic functions, reduced as in f64.

use super::super::bits::select;
use super::super::tables::{Precision, narrow};
use super::{ROUND, flipped, mac, poly, power_of_two, sign_of};

/// The leading 9 bits of log(2). Their products with exponents are exact.
pub(super) const LN2_HIGH: f32 = 355.0 / 512.0;
/// The remainder of log(2).
pub(super) const LN2_LOW: f32 = -2.121_944_4e-4;

/// `(p, n)` with `e^x = (1 + p) * 2^n` for `|x| < 1000`. The integer `n` is in the low bits.
#[inline(always)]
fn exp_parts<P: Precision>(x: f32) -> (f32, u32) {
    let raised = mac::<P>(x, std::f32::consts::LOG2_E, ROUND);
    let n = raised - ROUND;
    let r = mac::<P>(-n, LN2_LOW, mac::<P>(-n, LN2_HIGH, x));
    (mac::<P>(r * r, poly::<P>(r, narrow::EXP), r), raised.to_bits())
}

#[inline(always)]
pub(in super::super) fn exp<P: Precision>(x: f32) -> f32 {
    let x = select(x > 89.0, 89.0, x);
    let (p, n) = exp_parts::<P>(select(x < -104.0, -104.0, x));
    // Scaled in two steps, because the result may be subnormal and 2^128 overflows.
    let half = ((n << 9) as i32 >> 10) as u32;
    (1.0 + p) * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// For `|x|` up to this limit, `e^x` is neither subnormal nor infinite.
pub(in super::super) const PLAIN: f32 = 87.0;

/// `e^x` for `|x|` up to [`PLAIN`], with the same bits as `exp`.
#[inline(always)]
pub(in super::super) fn plain_exp<P: Precision>(x: f32) -> f32 {
    let (p, n) = exp_parts::<P>(x);
    f32::from_bits((1.0 + p).to_bits().wrapping_add(n << 23))
}

#[inline(always)]
pub(in super::super) fn expm1<P: Precision>(x: f32) -> f32 {
    let bounded = select(x > 89.0, 89.0, x);
    let (p, n) = exp_parts::<P>(select(bounded < -18.0, -18.0, bounded));
    // 2^n p + (2^n - 1), computed at half scale, because 2^128 overflows.
    let half = power_of_two(n.wrapping_sub(1));
    let less = mac::<P>(half, p, half - 0.5) * 2.0;
    // Keeps the sign of zero, and subnormal numbers.
    select(x.abs() < 1e-8, x, less)
}

/// `1 / (1 + e^-x)`, with the lost parts of its sums. Without fused products it is computed in f64.
#[inline(always)]
pub(in super::super) fn sigmoid<P: Precision>(x: f32) -> f32 {
    if !P::FUSED {
        return super::super::exp::sigmoid::<P>(x.into()) as f32;
    }
    let x = select(x > 20.0, 20.0, x);
    let x = select(x < -104.0, -104.0, x);
    let raised = mac::<P>(x, -std::f32::consts::LOG2_E, ROUND);
    let n = raised - ROUND;
    let r = mac::<P>(n, LN2_LOW, mac::<P>(n, LN2_HIGH, x));
    let mut coefficients = [0.0; narrow::EXP.len()];
    for (at, (to, from)) in coefficients.iter_mut().zip(narrow::EXP).enumerate() {
        *to = if at % 2 == 0 { *from } else { -from };
    }
    let p = mac::<P>(-(r * r), poly::<P>(r, &coefficients), r);
    let unit = f32::from_bits((127 - 32) << 23);
    let scale = power_of_two(raised.to_bits().wrapping_sub(32));
    let sum = mac::<P>(-scale, p, scale + unit);
    let low = mac::<P>(-scale, p, (scale - sum) + unit);
    let y = unit / sum;
    mac::<P>(-y, low * (1.0 / unit) * y, y)
}

/// `e^|x| / 4`. Its double overflows where `cosh` does. NaN stays NaN.
#[inline(always)]
fn quarter_exp<P: Precision>(magnitude: f32) -> f32 {
    let (p, n) = exp_parts::<P>(select(magnitude > 89.5, 89.5, magnitude));
    let scale = power_of_two(n.wrapping_sub(2));
    mac::<P>(scale, p, scale)
}

/// A polynomial up to 1, then `(e^x - e^-x) / 2`.
#[inline(always)]
pub(in super::super) fn sinh<P: Precision>(x: f32) -> f32 {
    let magnitude = x.abs();
    let z = magnitude * magnitude;
    let near = mac::<P>(magnitude * z, poly::<P>(z, narrow::SINH), magnitude);
    let quarter = quarter_exp::<P>(magnitude);
    let far = 2.0 * (quarter - 0.0625 / quarter);
    flipped(select(magnitude < 1.0, near, far), sign_of(x))
}

/// `(e^x + e^-x) / 2`.
#[inline(always)]
pub(in super::super) fn cosh<P: Precision>(x: f32) -> f32 {
    let quarter = quarter_exp::<P>(x.abs());
    2.0 * (quarter + 0.0625 / quarter)
}

/// A polynomial up to 5/8, then `1 - 2 / (e^2x + 1)`.
#[inline(always)]
pub(in super::super) fn tanh<P: Precision>(x: f32) -> f32 {
    let magnitude = x.abs();
    let z = magnitude * magnitude;
    let near = mac::<P>(magnitude * z, poly::<P>(z, narrow::TANH), magnitude);
    // From 10 on, 1 - 2e^(-2x) rounds to 1.
    let (p, n) = exp_parts::<P>(2.0 * select(magnitude > 10.0, 10.0, magnitude));
    let scale = power_of_two(n);
    let far = 1.0 - 2.0 / (mac::<P>(scale, p, scale) + 1.0);
    flipped(select(magnitude < 0.625, near, far), sign_of(x))
}
