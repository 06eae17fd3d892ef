//! The regularized incomplete beta function.
//!
//! Below the mean it is the continued fraction of Didonato & Morris (Abramowitz & Stegun, 26.5.8), above it 1 minus
//! that of the opposite operands. The fraction is evaluated from its last term. The number of terms grows with the
//! square root of the greatest parameter, so all elements take as many as the one that needs most. Derivatives by
//! the parameters are those of the same terms.

use std::f64::consts::TAU;

use super::gamma::{log_beta, log_beta_slopes, stirling_remainder};
use super::{SpecialBuilder, with_gradient};
use crate::builder::{BuildCreate, BuildElementwise, BuildReduce, BuildShape, Builder};
use crate::compose::matrix::batch::loop_while;
use crate::compose::working_dtype;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::graph::{Graph, Value};
use crate::op::Domain;
use crate::shape::Axes;

/// See [`BuildSpecial::betainc`](crate::builder::BuildSpecial::betainc).
///
/// # Errors
/// As the method.
pub fn betainc<B: Builder>(b: &mut B, alpha: &B::V, beta: &B::V, x: &B::V) -> Result<B::V> {
    let op = "betainc";
    let types = [b.ty(alpha), b.ty(beta), b.ty(x)];
    for ty in &types {
        if ty.dtype.is_complex() {
            let (got, required) = (ty.clone(), Domain::Real.text());
            let hint = "; take real, imag or abs first";
            return Err(ErrorKind::OperandDType { op, got, required, hint }.into());
        }
    }
    let dtype = types[0].dtype.merge(types[1].dtype).merge(types[2].dtype).to_float();
    let shape = types[0].shape.broadcast_with(op, &types[1].shape)?.broadcast_with(op, &types[2].shape)?;
    let operand = |b: &mut B, x: &B::V| {
        let x = b.as_type(x, working_dtype(dtype))?;
        if b.ty(&x).shape == shape { Ok(x) } else { b.broadcast(x, shape.clone(), Axes::All) }
    };
    let (alpha, beta, x) = (operand(b, alpha)?, operand(b, beta)?, operand(b, x)?);
    let value = value(b, &alpha, &beta, &x)?;
    let value = with_gradient(b, &value, &[alpha, beta, x], |graph, g, inputs| {
        let slopes = slopes(graph, &inputs[0], &inputs[1], &inputs[2])?;
        slopes.into_iter().map(|slope| graph.multiply(g, slope)).collect()
    })?;
    b.as_type(value, dtype)
}

/// The operands where they are inside of their domains, on the side of the mean where the fraction is used.
struct Side<B: Builder> {
    is_inside: B::V,
    is_swapped: B::V,
    a: B::V,
    b: B::V,
    x: B::V,
    /// `1 - x`.
    y: B::V,
    log_x: B::V,
    log_y: B::V,
    /// `x^a y^b / (a beta(a, b))`.
    power: B::V,
}

impl<B: Builder> Side<B> {
    fn new(b: &mut B, alpha: &B::V, beta: &B::V, x: &B::V) -> Result<Side<B>> {
        let positive = |b: &mut B, x: &B::V, end: f64| {
            let (above, below) = (b.greater(x, 0)?, b.less(x, end)?);
            b.logical_and(above, below)
        };
        let (first, second) = (positive(b, alpha, f64::INFINITY)?, positive(b, beta, f64::INFINITY)?);
        let third = positive(b, x, 1.0)?;
        let both = b.logical_and(first, second)?;
        let is_inside = b.logical_and(both, third)?;
        let (alpha, beta) = (b.only(&is_inside, alpha, 1.0)?, b.only(&is_inside, beta, 1.0)?);
        let x = b.only(&is_inside, x, 0.5)?;
        let y = b.subtract(1, &x)?;
        let (above, sum) = (b.add(&alpha, 1)?, b.add(&alpha, &beta)?);
        let below = b.add(&sum, 2)?;
        let mean = b.divide(above, below)?;
        let is_swapped = b.greater(&x, mean)?;
        // Each logarithm of the smaller number of both.
        let (is_high, is_low) = (b.greater(&x, 0.5)?, b.less_equal(&x, 0.5)?);
        let near = |b: &mut B, mask: &B::V, own: &B::V, other: &B::V| {
            let other = b.only(mask, other, 0.5)?;
            let other = b.negate(other)?;
            let near = b.log1p(other)?;
            let own = b.log(own)?;
            b.select(mask, near, own)
        };
        let (log_x, log_y) = (near(b, &is_high, &x, &y)?, near(b, &is_low, &y, &x)?);
        let swap = |b: &mut B, x: &B::V, y: &B::V| b.select(&is_swapped, y, x);
        let (a, other) = (swap(b, &alpha, &beta)?, swap(b, &beta, &alpha)?);
        let (own, rest) = (swap(b, &x, &y)?, swap(b, &y, &x)?);
        let (log_own, log_rest) = (swap(b, &log_x, &log_y)?, swap(b, &log_y, &log_x)?);
        let power = power(b, [&a, &other], [&own, &rest], [&log_own, &log_rest])?;
        Ok(Side {
            is_inside,
            is_swapped,
            a,
            b: other,
            x: own,
            y: rest,
            log_x: log_own,
            log_y: log_rest,
            power,
        })
    }

    /// The denominator of the fraction, and its derivatives by both parameters if they are wanted.
    fn fraction(&self, b: &mut B, has_slopes: bool) -> Result<Vec<B::V>> {
        let ty = b.ty(&self.x);
        let dtype = ty.dtype;
        let greatest = b.max(&self.a, &self.b)?;
        let count = if ty.shape.size() == 0 {
            b.constant(dtype, 0)?
        } else {
            let greatest = b.reduce_max(greatest, Axes::All, false)?;
            let root = b.sqrt(greatest)?;
            let steep = b.multiply(&root, if dtype == DType::F64 { 6.0 } else { 2.0 })?;
            let steep = b.add(steep, if dtype == DType::F64 { 14.0 } else { 8.0 })?;
            let flat = b.multiply(root, if dtype == DType::F64 { 1.3 } else { 0.6 })?;
            let flat = b.add(flat, if dtype == DType::F64 { 55.0 } else { 25.0 })?;
            let count = b.min(steep, flat)?;
            let count = b.min(count, 200_000.0)?;
            b.floor(count)?
        };
        let one = b.full(ty.shape.clone(), dtype, 1)?;
        let mut state = vec![count, one];
        if has_slopes {
            let zero = b.full(ty.shape, dtype, 0)?;
            state.extend([zero.clone(), zero]);
        }
        let captures = [self.a.clone(), self.b.clone(), self.x.clone()];
        let last = loop_while(
            b,
            None,
            &state,
            &captures,
            |graph, state, _| graph.greater(state[0], 0.5),
            |graph, state, captures| step(graph, state, [captures[0], captures[1], captures[2]]),
        )?;
        Ok(last[1..].to_vec())
    }
}

/// Two terms of the fraction `1 + d1 / (1 + d2 / (1 + ...))`, the later one first: `d(2m) = m (b - m) x / ((a + 2m -
/// 1) (a + 2m))` and `d(2m - 1) = -(a + m - 1) (a + b + m - 1) x / ((a + 2m - 2) (a + 2m - 1))`. The state is `m`,
/// the fraction and perhaps its derivatives by `a` and `b`.
fn step(graph: &mut Graph, state: &[Value], [a, b, x]: [Value; 3]) -> Result<Vec<Value>> {
    let m = state[0];
    let twice = graph.multiply(m, 2)?;
    let last = graph.add(a, twice)?;
    let (middle, first) = (graph.subtract(last, 1)?, graph.subtract(last, 2)?);

    let rest = graph.subtract(b, m)?;
    let below = graph.multiply(middle, last)?;
    let ratio = graph.divide(x, below)?;
    let scale = graph.multiply(ratio, m)?;
    let term = graph.multiply(scale, rest)?;
    let (first_inverse, middle_inverse, last_inverse) =
        (graph.inverse(&first)?, graph.inverse(&middle)?, graph.inverse(&last)?);
    let by_a = graph.add(middle_inverse, last_inverse)?;
    let by_a = graph.multiply(term, by_a)?;
    let by_a = graph.negate(by_a)?;
    let state_after = apply(graph, &state[1..], term, by_a, scale)?;

    let before = graph.subtract(m, 1)?;
    let (left, sum) = (graph.add(a, before)?, graph.add(a, b)?);
    let right = graph.add(sum, before)?;
    let below = graph.multiply(first, middle)?;
    let ratio = graph.divide(x, below)?;
    let scale = graph.multiply(ratio, left)?;
    let by_b = graph.negate(scale)?;
    let term = graph.multiply(by_b, right)?;
    let (left_inverse, right_inverse) = (graph.inverse(&left)?, graph.inverse(&right)?);
    let above = graph.add(left_inverse, right_inverse)?;
    let below = graph.add(first_inverse, middle_inverse)?;
    let by_a = graph.subtract(above, below)?;
    let by_a = graph.multiply(term, by_a)?;
    let mut next = apply(graph, &state_after, term, by_a, by_b)?;
    next.insert(0, before);
    Ok(next)
}

/// `1 + term / f` and its derivatives, from `f` and its derivatives.
fn apply(graph: &mut Graph, state: &[Value], term: Value, by_a: Value, by_b: Value) -> Result<Vec<Value>> {
    let quotient = graph.divide(term, state[0])?;
    let mut next = vec![graph.add(quotient, 1)?];
    for (slope, own) in state[1..].iter().zip([by_a, by_b]) {
        let inner = graph.multiply(quotient, *slope)?;
        let inner = graph.subtract(own, inner)?;
        next.push(graph.divide(inner, state[0])?);
    }
    Ok(next)
}

/// See [`Side::power`]. If both parameters are at least 8, the large terms of its logarithm cancel before they are
/// rounded: Loader, "Fast and accurate computation of binomial probabilities" (2000).
fn power<B: Builder>(
    b: &mut B,
    [alpha, beta]: [&B::V; 2],
    [x, y]: [&B::V; 2],
    [log_x, log_y]: [&B::V; 2],
) -> Result<B::V> {
    let (left, right) = (b.multiply(alpha, log_x)?, b.multiply(beta, log_y)?);
    let sum = b.add(left, right)?;
    let log = log_beta(b, alpha, beta)?;
    let exponent = b.subtract(sum, log)?;
    let exp = b.exp(exponent)?;
    let plain = b.divide(exp, alpha)?;

    let least = b.min(alpha, beta)?;
    let is_large = b.greater_equal(least, 8)?;
    let (large_a, large_b) = (b.only(&is_large, alpha, 8.0)?, b.only(&is_large, beta, 8.0)?);
    let (left, right) = (b.multiply(&large_b, x)?, b.multiply(&large_a, y)?);
    // x (a + b) - a, which is also b - y (a + b)
    let shift = b.subtract(left, right)?;
    let opposite = b.negate(&shift)?;
    let mut exponent = b.constant_like(x, 0.0)?;
    for (parameter, step, log) in [(&large_a, &shift, log_x), (&large_b, &opposite, log_y)] {
        let distance = b.divide(step, parameter)?;
        let curvature = super::incomplete_gamma::curvature(b, &distance)?;
        let square = b.multiply(&distance, &distance)?;
        let close = b.multiply(square, curvature)?;
        let total = b.add(&large_a, &large_b)?;
        let mean = b.divide(parameter, total)?;
        let mean = b.log(mean)?;
        let gap = b.subtract(log, mean)?;
        let far = b.subtract(&distance, gap)?;
        let size = b.abs(&distance)?;
        let is_close = b.less_equal(size, 0.5)?;
        let term = b.select(is_close, close, far)?;
        let term = b.multiply(term, parameter)?;
        exponent = b.add(exponent, term)?;
    }
    let total = b.add(&large_a, &large_b)?;
    let (first, second) = (stirling_remainder(b, &large_a)?, stirling_remainder(b, &large_b)?);
    let both = stirling_remainder(b, &total)?;
    let remainder = b.add(first, second)?;
    let remainder = b.subtract(both, remainder)?;
    let exponent = b.subtract(remainder, exponent)?;
    let exp = b.exp(exponent)?;
    // sqrt(a b / (2 pi (a + b))) / a
    let ratio = b.divide(large_b, total)?;
    let spread = b.multiply(large_a, TAU)?;
    let ratio = b.divide(ratio, spread)?;
    let root = b.sqrt(ratio)?;
    let large = b.multiply(exp, root)?;
    b.select(is_large, large, plain)
}

/// A value without a gradient rule.
fn value<B: Builder>(b: &mut B, alpha: &B::V, beta: &B::V, x: &B::V) -> Result<B::V> {
    let side = Side::new(b, alpha, beta, x)?;
    let fraction = side.fraction(b, false)?;
    let own = b.divide(&side.power, &fraction[0])?;
    let rest = b.subtract(1, &own)?;
    let inside = b.select(&side.is_swapped, rest, own)?;

    // The limits: all mass is at 0 where `a` is 0 or `b` infinite, and at 1 where `b` is 0 or `a` infinite.
    let (zero, one) = (b.constant_like(x, 0.0)?, b.constant_like(x, 1.0)?);
    let (none, infinite) = (b.equal(alpha, 0)?, b.equal(beta, f64::INFINITY)?);
    let is_left = b.logical_or(none, infinite)?;
    let (none, infinite) = (b.equal(beta, 0)?, b.equal(alpha, f64::INFINITY)?);
    let is_right = b.logical_or(none, infinite)?;
    let (is_start, is_end) = (b.equal(x, 0)?, b.equal(x, 1)?);
    let outside = b.select(&is_left, &one, &zero)?;
    let outside = b.select(is_end, one, outside)?;
    let outside = b.select(is_start, zero, outside)?;
    let is_both = b.logical_and(is_left, is_right)?;
    let outside = b.select(is_both, f64::NAN, outside)?;
    let (first, second) = (b.greater_equal(alpha, 0)?, b.greater_equal(beta, 0)?);
    let natural = b.logical_and(first, second)?;
    let (above, below) = (b.greater_equal(x, 0)?, b.less_equal(x, 1)?);
    let within = b.logical_and(above, below)?;
    let is_defined = b.logical_and(natural, within)?;
    let outside = b.select(is_defined, outside, f64::NAN)?;
    b.select(&side.is_inside, inside, outside)
}

/// The derivatives by both parameters and by `x`; 0 outside of the domain and at its ends.
fn slopes(graph: &mut Graph, alpha: &Value, beta: &Value, x: &Value) -> Result<Vec<Value>> {
    let side = Side::new(graph, alpha, beta, x)?;
    let fraction = side.fraction(graph, true)?;
    let own = graph.divide(side.power, fraction[0])?;
    let [by_a, by_b] = log_beta_slopes(graph, &side.a, &side.b)?;
    let inverse = graph.inverse(&side.a)?;
    let rate = graph.subtract(side.log_x, by_a)?;
    let rate = graph.subtract(rate, inverse)?;
    let other = graph.subtract(side.log_y, by_b)?;
    let mut found = Vec::with_capacity(3);
    for (rate, slope) in [(rate, fraction[1]), (other, fraction[2])] {
        let relative = graph.divide(slope, fraction[0])?;
        let rate = graph.subtract(rate, relative)?;
        let slope = graph.multiply(own, rate)?;
        let opposite = graph.negate(slope)?;
        found.push((slope, opposite));
    }
    let ((by_a, minus_a), (by_b, minus_b)) = (found[0], found[1]);
    let first = graph.select(side.is_swapped, minus_b, by_a)?;
    let second = graph.select(side.is_swapped, minus_a, by_b)?;
    let density = graph.multiply(side.power, side.a)?;
    let density = graph.divide(density, side.x)?;
    let density = graph.divide(density, side.y)?;
    [first, second, density].into_iter().map(|slope| graph.select(side.is_inside, slope, 0)).collect()
}
