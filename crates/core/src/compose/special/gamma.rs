//! The logarithm of the gamma function and its derivatives.

use std::f64::consts::PI;

use super::tables::{DIGAMMA, DIGAMMA_ROOT, LOG_GAMMA, ROOT_DOUBLE, ROOT_SINGLE, STIRLING, TRIGAMMA};
use super::{SpecialBuilder, of_real, of_reals, polynomial, with_gradient};
use crate::builder::{BuildElementwise, Builder};
use crate::dtype::DType;
use crate::error::Result;

/// `log(2 pi) / 2`.
const HALF_LOG_TAU: f64 = 0.918_938_533_204_672_7;

/// See [`BuildSpecial::lgamma`](crate::builder::BuildSpecial::lgamma).
///
/// # Errors
/// As the method.
pub fn lgamma<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    of_real(b, "lgamma", x, log_gamma)
}

/// `log(|gamma(x)|)` of f32 or f64, with its gradient.
pub(super) fn log_gamma<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let value = log_gamma_value(b, x)?;
    with_gradient(b, &value, std::slice::from_ref(x), |graph, g, inputs| {
        let slope = digamma_of(graph, &inputs[0])?;
        Ok(vec![graph.multiply(g, slope)?])
    })
}

/// `log(gamma(1 + z)) = log(gamma(2 + z)) - log1p(z)` for `|z| <= 0.5`, without rounding `1 + z`.
pub(super) fn log_gamma_1p<B: Builder>(b: &mut B, z: &B::V) -> Result<B::V> {
    let series = log_gamma_2p(b, z)?;
    let log = b.log1p(z)?;
    b.subtract(series, log)
}

/// `log(gamma(2 + z))` for `|z| <= 0.5`; its zero at 0 is exact.
fn log_gamma_2p<B: Builder>(b: &mut B, z: &B::V) -> Result<B::V> {
    let dtype = b.ty(z).dtype;
    let ratio = polynomial(b, z, LOG_GAMMA.of(dtype))?;
    b.multiply(z, ratio)
}

/// The remainder of Stirling's formula for `log_gamma(x)`, `x >= 8`.
pub(super) fn stirling_remainder<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let dtype = b.ty(x).dtype;
    let place = b.inverse_square(x)?;
    let sum = polynomial(b, &place, STIRLING.of(dtype))?;
    b.divide(sum, x)
}

/// A value without a gradient rule.
///
/// Below 8 the recurrence leads to the interval around 2, where the function is a polynomial times its exact zero.
/// From 8 on it is Stirling's formula. Up to -0.5 it is reflected: `|gamma(x) gamma(-x)| = pi / |x sin(pi x)|`.
fn log_gamma_value<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let size = b.abs(x)?;
    let is_reflected = b.less_equal(x, -0.5)?;
    let a = b.select(&is_reflected, &size, x)?;
    let is_small = b.less(&a, 8)?;

    let mut y = b.only(&is_small, &a, 2.0)?;
    let mut product = b.constant_like(&y, 1.0)?;
    for _ in 0..6 {
        let is_high = b.greater(&y, 2.5)?;
        let lower = b.subtract(&y, 1)?;
        let next = b.multiply(&product, &lower)?;
        product = b.select(&is_high, next, product)?;
        y = b.select(is_high, lower, y)?;
    }
    let (is_low, is_lowest) = (b.less(&y, 1.5)?, b.less(&y, 0.5)?);
    let (zero, one) = (b.constant_like(&y, 0.0)?, b.constant_like(&y, 1.0)?);
    let start = b.select(&is_low, &one, 2)?;
    let start = b.select(&is_lowest, &zero, start)?;
    let z = b.subtract(&y, start)?;
    let series = log_gamma_2p(b, &z)?;
    let step = b.select(is_low, z, &zero)?;
    let step = b.log1p(step)?;
    let near = b.subtract(series, step)?;
    let magnitude = b.abs(&y)?;
    let factor = b.select(&is_lowest, magnitude, product)?;
    let log = b.log(factor)?;
    let negative = b.negate(&log)?;
    let log = b.select(is_lowest, negative, log)?;
    let near = b.add(near, log)?;

    let far = b.select(&is_small, 8, &a)?;
    let log = b.log(&far)?;
    let log = b.subtract(log, 1)?;
    let rest = b.subtract(&far, 0.5)?;
    let main = b.multiply(rest, log)?;
    let remainder = stirling_remainder(b, &far)?;
    let remainder = b.add(remainder, HALF_LOG_TAU - 0.5)?;
    let far = b.add(main, remainder)?;
    let value = b.select(is_small, near, far)?;

    let whole = b.round(&a)?;
    let rest = b.subtract(&a, &whole)?;
    let rest = b.abs(rest)?;
    let angle = b.multiply(rest, PI)?;
    let sine = b.sin(angle)?;
    let product = b.multiply(sine, &a)?;
    let log = b.log(product)?;
    let log = b.subtract(PI.ln(), log)?;
    let reflection = b.subtract(log, &value)?;
    let is_pole = b.equal(&a, whole)?;
    let reflection = b.select(is_pole, f64::INFINITY, reflection)?;
    b.select(is_reflected, reflection, value)
}

/// See [`BuildSpecial::digamma`](crate::builder::BuildSpecial::digamma).
///
/// # Errors
/// As the method.
pub fn digamma<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    of_real(b, "digamma", x, digamma_of)
}

/// The derivative of [`log_gamma`], with its gradient.
pub(super) fn digamma_of<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let value = digamma_value(b, x)?;
    with_gradient(b, &value, std::slice::from_ref(x), |graph, g, inputs| {
        let slope = trigamma_of(graph, &inputs[0])?;
        Ok(vec![graph.multiply(g, slope)?])
    })
}

/// An operand of digamma or trigamma, led to their asymptotic series.
struct Shifted<V> {
    /// Whether the function is reflected: up to -0.5.
    is_reflected: V,
    /// The operand, with the other sign where the function is reflected.
    a: V,
    /// The terms of the recurrence.
    sum: V,
    /// The number at which the series is used.
    far: V,
}

/// Adds the terms of the recurrence, one for each step to where the asymptotic series is accurate.
fn shifted<B: Builder>(
    b: &mut B,
    x: &B::V,
    term: impl Fn(&mut B, &B::V) -> Result<B::V>,
) -> Result<Shifted<B::V>> {
    let is_reflected = b.less_equal(x, -0.5)?;
    let opposite = b.negate(x)?;
    let a = b.select(&is_reflected, opposite, x)?;
    let start = if b.ty(x).dtype == DType::F64 { 10 } else { 6 };
    let is_small = b.less(&a, start)?;
    let y = b.only(&is_small, &a, 1.0)?;
    let mut sum = term(b, &y)?;
    for step in 1..start {
        let next = b.add(&y, step)?;
        let next = term(b, &next)?;
        sum = b.add(sum, next)?;
    }
    let sum = b.only(&is_small, &sum, 0.0)?;
    let moved = b.add(&a, start)?;
    let far = b.select(is_small, moved, &a)?;
    Ok(Shifted { is_reflected, a, sum, far })
}

/// A value without a gradient rule.
///
/// The recurrence leads to the asymptotic series. Around the positive root, where both nearly cancel, their
/// difference to the root is written with the distance as a factor. Up to -0.5 the function is reflected.
fn digamma_value<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let dtype = b.ty(x).dtype;
    let Shifted { is_reflected, a, sum, far } = shifted(b, x, B::inverse)?;
    let log = b.log(&far)?;
    let place = b.inverse_square(&far)?;
    let series = polynomial(b, &place, DIGAMMA.of(dtype))?;
    let series = b.multiply(place, series)?;
    let half = b.divide(0.5, &far)?;
    let rest = b.add(half, series)?;
    let log = b.subtract(log, rest)?;
    let value = b.subtract(log, sum)?;

    let root = if dtype == DType::F64 { ROOT_DOUBLE } else { ROOT_SINGLE };
    let distance = b.subtract(&a, root.high)?;
    let distance = b.subtract(distance, root.low)?;
    let size = b.abs(&distance)?;
    let is_around = b.less_equal(size, 0.5)?;
    // The next numbers are led there by one step of the recurrence.
    let lower = b.subtract(&distance, 1)?;
    let size = b.abs(&lower)?;
    let is_next = b.less_equal(size, 0.5)?;
    let is_near = b.logical_or(is_around, &is_next)?;
    let distance = b.select(&is_next, lower, distance)?;
    let before = b.subtract(&a, 1)?;
    let y = b.select(&is_next, before, &a)?;
    let (distance, y) = (b.only(&is_near, &distance, 0.0)?, b.only(&is_near, &y, 1.0)?);
    let step = b.inverse(&y)?;
    let step = b.only(&is_next, &step, 0.0)?;
    let series = polynomial(b, &distance, DIGAMMA_ROOT.of(dtype))?;
    let first = b.multiply(&y, root.high)?;
    let first = b.inverse(&first)?;
    let next = b.add(y, 1)?;
    let second = b.multiply(next, root.high + 1.0)?;
    let second = b.inverse(&second)?;
    let slope = b.add(first, second)?;
    let slope = b.add(slope, series)?;
    let near = b.multiply(distance, slope)?;
    let near = b.add(near, step)?;
    let value = b.select(is_near, near, value)?;

    let whole = b.round(x)?;
    let rest = b.subtract(x, whole)?;
    let angle = b.multiply(&rest, PI)?;
    let tangent = b.tan(angle)?;
    let cotangent = b.divide(PI, tangent)?;
    let inverse = b.inverse(&a)?;
    let step = b.subtract(inverse, cotangent)?;
    let reflection = b.add(&value, step)?;
    let is_pole = b.equal(rest, 0)?;
    let reflection = b.select(is_pole, f64::NAN, reflection)?;
    b.select(is_reflected, reflection, value)
}

/// See [`BuildSpecial::trigamma`](crate::builder::BuildSpecial::trigamma).
///
/// # Errors
/// As the method.
pub fn trigamma<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    of_real(b, "trigamma", x, trigamma_of)
}

/// The derivative of [`digamma_of`]. Its terms have the same sign, and so have those of its derivatives, so that the
/// definition has accurate ones. Each form gets operands for which they are finite.
fn trigamma_of<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let dtype = b.ty(x).dtype;
    let Shifted { is_reflected, a, sum, far } = shifted(b, x, B::inverse_square)?;
    let place = b.inverse_square(&far)?;
    let series = polynomial(b, &place, TRIGAMMA.of(dtype))?;
    let series = b.divide(series, &far)?;
    let series = b.add(series, 0.5)?;
    let series = b.divide(series, &far)?;
    let series = b.add(series, 1)?;
    let tail = b.divide(series, far)?;
    let value = b.add(sum, tail)?;

    let whole = b.round(x)?;
    let rest = b.subtract(x, whole)?;
    let rest = b.only(&is_reflected, &rest, 0.5)?;
    let angle = b.multiply(rest, PI)?;
    let sine = b.sin(angle)?;
    let ratio = b.divide(PI, sine)?;
    let square = b.multiply(&ratio, &ratio)?;
    let a = b.only(&is_reflected, &a, 1.0)?;
    let step = b.inverse_square(&a)?;
    let step = b.subtract(step, &value)?;
    let reflection = b.add(square, step)?;
    b.select(is_reflected, reflection, value)
}

/// See [`BuildSpecial::betaln`](crate::builder::BuildSpecial::betaln).
///
/// # Errors
/// As the method.
pub fn betaln<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    of_reals(b, "betaln", x, y, log_beta)
}

/// `log(|beta(x, y)|)` of f32 or f64, with its gradient.
pub(super) fn log_beta<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    let value = log_beta_value(b, x, y)?;
    with_gradient(b, &value, &[x.clone(), y.clone()], |graph, g, inputs| {
        let slopes = log_beta_slopes(graph, &inputs[0], &inputs[1])?;
        slopes.into_iter().map(|slope| graph.multiply(g, slope)).collect()
    })
}

/// The derivatives of [`log_beta`] by both operands.
pub(super) fn log_beta_slopes<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<[B::V; 2]> {
    let sum = b.add(x, y)?;
    let both = digamma_of(b, &sum)?;
    let (left, right) = (digamma_of(b, x)?, digamma_of(b, y)?);
    Ok([b.subtract(left, &both)?, b.subtract(right, both)?])
}

/// A value without a gradient rule.
///
/// If the greater operand is at least 8, the difference `log_gamma(high) - log_gamma(high + low)` is that of
/// Stirling's formulas, whose large terms cancel before they are rounded: DiDonato & Morris, "Significant digit
/// computation of the incomplete beta function ratios", ACM Trans. Math. Softw. 18 (1992).
fn log_beta_value<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    let is_less = b.less(x, y)?;
    let (low, high) = (b.select(&is_less, x, y)?, b.select(is_less, y, x)?);
    let log_low = log_gamma_value(b, &low)?;

    let (first, sum) = (log_gamma_value(b, &high)?, b.add(&high, &low)?);
    let last = log_gamma_value(b, &sum)?;
    let rest = b.subtract(first, last)?;
    let plain = b.add(&log_low, rest)?;

    let (is_high, is_positive) = (b.greater_equal(&high, 8)?, b.greater(&low, 0)?);
    let is_large = b.logical_and(is_high, is_positive)?;
    let (large, small) = (b.only(&is_large, &high, 8.0)?, b.only(&is_large, &low, 1.0)?);
    let ratio = b.divide(&small, &large)?;
    let step = b.log1p(&ratio)?;
    let both = b.add(&large, &small)?;
    let factor = b.subtract(&both, 0.5)?;
    // (large + small - 0.5) log(1 + small / large)
    let product = b.multiply(factor, step)?;
    let (own, joint) = (stirling_remainder(b, &large)?, stirling_remainder(b, &both)?);
    let remainder = b.subtract(own, joint)?;

    // With Stirling's formula for one of the terms.
    let log = b.log(&large)?;
    let log = b.subtract(1, log)?;
    let term = b.multiply(&small, log)?;
    let term = b.subtract(term, &product)?;
    let term = b.add(term, &remainder)?;
    let one = b.add(log_low, term)?;

    // And for both.
    let are_large = b.greater_equal(&small, 8)?;
    let small = b.only(&are_large, &small, 8.0)?;
    let log_ratio = b.log(ratio)?;
    let term = b.multiply(&small, log_ratio)?;
    let log = b.log(&small)?;
    let half = b.multiply(log, -0.5)?;
    let term = b.add(term, half)?;
    let term = b.subtract(term, product)?;
    let own = stirling_remainder(b, &small)?;
    let remainder = b.add(own, remainder)?;
    let remainder = b.add(remainder, HALF_LOG_TAU)?;
    let two = b.add(term, remainder)?;

    let value = b.select(are_large, two, one)?;
    let is_infinite = b.equal(high, f64::INFINITY)?;
    let is_infinite = b.logical_and(is_infinite, &is_large)?;
    let value = b.select(is_infinite, f64::NEG_INFINITY, value)?;
    b.select(is_large, value, plain)
}
