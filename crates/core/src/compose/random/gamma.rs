//! The gamma distribution and those that are built from it.
//!
//! Samples are drawn as logarithms, since with a small shape parameter they are often below the least float. Their
//! gradient by the shape parameter is the implicit one: Figurnov, Mohamed & Mnih, "Implicit reparameterization
//! gradients" (2018).

use super::families::{Draw, dtype_of, family};
use super::rejection::first_accepted;
use super::{Sample, check_key, split, wrong_dtype};
use crate::builder::{Arg, BuildControl, BuildCreate, BuildElementwise, BuildReduce, BuildShape, Builder};
use crate::compose::special::{log_quantile_slope, with_captures};
use crate::error::{ErrorKind, Result};
use crate::shape::{Axes, AxisRef, Name, Shape};

/// One key for each purpose.
pub(super) fn keys<B: Builder, const N: usize>(b: &mut B, key: &B::V) -> Result<[B::V; N]> {
    let rows = split(b, key, N)?;
    let mut keys = Vec::with_capacity(N);
    for row in 0..N {
        let key = b.slice_along_axis(&rows, row as i64, 1, 0, 1)?;
        keys.push(b.squeeze(key, AxisRef::Index(0))?);
    }
    let Ok(keys) = <[B::V; N]>::try_from(keys) else { unreachable!("one key for each row") };
    Ok(keys)
}

/// The logarithm of gamma-distributed floats, with its gradient by the shape parameter `a`. NaN where `a` is not
/// positive.
pub(super) fn log_gamma<B: Builder>(b: &mut B, draw: &Draw<'_, B::V>, a: &B::V) -> Result<B::V> {
    let value = log_gamma_value(b, draw, a)?;
    let value = b.stop_grad(value)?;
    let a = &whole(b, draw, a)?;
    // The rule reads a sample with a rule of its own, so that second derivatives are those of the same sample.
    let sample = log_slope(b, &value, a, &value)?;
    log_slope(b, &value, a, &sample)
}

/// A value whose gradient by `a` is that of the logarithm `sample` of a quantile.
fn log_slope<B: Builder>(b: &mut B, value: &B::V, a: &B::V, sample: &B::V) -> Result<B::V> {
    let captures = [a.clone(), sample.clone()];
    with_captures(b, value, std::slice::from_ref(a), &captures, |graph, g, captures| {
        let slope = log_quantile_slope(graph, &captures[0], &captures[1])?;
        Ok(vec![graph.multiply(g, slope)?])
    })
}

/// Marsaglia & Tsang, "A simple method for generating gamma variables", ACM Trans. Math. Softw. 26 (2000): `d v` with
/// `d = a - 1 / 3` and `v = (1 + x / sqrt(9 d))^3` of normal `x`, rejected by a uniform number. Below 1 a sample of
/// `a + 1` is multiplied by `u^(1 / a)`.
fn log_gamma_value<B: Builder>(b: &mut B, draw: &Draw<'_, B::V>, a: &B::V) -> Result<B::V> {
    let [key, boost] = keys(b, draw.key)?;
    let (dtype, shape, op) = (draw.dtype, draw.shape.clone(), draw.op);
    let is_positive = b.greater(a, 0)?;
    let is_finite = b.less(a, f64::INFINITY)?;
    let is_valid = b.logical_and(&is_positive, &is_finite)?;
    let valid = b.select(&is_valid, a, 1)?;
    let is_small = b.less(&valid, 1)?;
    let more = b.add(&valid, 1)?;
    let large = b.select(&is_small, more, &valid)?;
    let d = b.subtract(large, 1.0 / 3.0)?;
    let root = b.multiply(&d, 9)?;
    let c = b.rsqrt(root)?;

    let draw = Draw { op, key: &key, dtype, shape: shape.clone() };
    let log_v = first_accepted(b, &draw, &is_valid, &[d.clone(), c], &|graph, draw, captures| {
        let (d, c) = (captures[0], captures[1]);
        let [first, second] = keys(graph, draw.key)?;
        let with_key = |key| Draw { op, key, dtype, shape: draw.shape.clone() };
        let x = with_key(&first).normal(graph)?;
        let u = with_key(&second).uniform(graph, dtype.smallest_normal())?;
        let scaled = graph.multiply(x, c)?;
        let base = graph.add(scaled, 1)?;
        let is_above = graph.greater(base, 0)?;
        let base = graph.select(is_above, base, 1)?;
        let log_v = graph.log(base)?;
        let log_v = graph.multiply(log_v, 3)?;
        let square = graph.multiply(base, base)?;
        let v = graph.multiply(square, base)?;
        // log(u) < x^2 / 2 + d (1 - v + log(v))
        let rest = graph.subtract(1, v)?;
        let rest = graph.add(rest, log_v)?;
        let rest = graph.multiply(rest, d)?;
        let square = graph.multiply(x, x)?;
        let half = graph.multiply(square, 0.5)?;
        let bound = graph.add(half, rest)?;
        let log_u = graph.log(u)?;
        let is_below = graph.less(log_u, bound)?;
        Ok((log_v, graph.logical_and(is_above, is_below)?))
    })?;
    let log_d = b.log(d)?;
    let value = b.add(log_v, log_d)?;
    let draw = Draw { op, key: &boost, dtype, shape };
    let u = draw.uniform(b, dtype.smallest_normal())?;
    let log = b.log(u)?;
    let step = b.divide(log, &valid)?;
    let step = b.select(is_small, step, 0)?;
    let value = b.add(value, step)?;
    let (nan, infinite) = (b.constant(dtype, f64::NAN)?, b.constant(dtype, f64::INFINITY)?);
    let edge = b.select(is_positive, infinite, nan)?;
    b.select(is_valid, value, edge)
}

/// A parameter in the shape of the draw.
fn whole<B: Builder>(b: &mut B, draw: &Draw<'_, B::V>, value: &B::V) -> Result<B::V> {
    if b.ty(value).shape == draw.shape {
        Ok(value.clone())
    } else {
        b.broadcast(value, draw.shape.clone(), Axes::All)
    }
}

/// Gamma-distributed floats with the shape parameter `a` and the scale 1.
///
/// # Errors
/// As [`exponential`](super::exponential).
pub fn gamma<B: Builder>(b: &mut B, key: &B::V, a: &Arg<B::V>, sample: &Sample) -> Result<B::V> {
    family(b, "gamma", key, [("a", a)], sample, |b, draw, [a]| {
        let log = log_gamma(b, draw, &a)?;
        b.exp(log)
    })
}

/// Floats of the chi-square distribution: twice a gamma-distributed number.
///
/// # Errors
/// As [`exponential`](super::exponential).
pub fn chisquare<B: Builder>(b: &mut B, key: &B::V, df: &Arg<B::V>, sample: &Sample) -> Result<B::V> {
    family(b, "chisquare", key, [("df", df)], sample, |b, draw, [df]| {
        let half = b.multiply(df, 0.5)?;
        let log = log_gamma(b, draw, &half)?;
        let exp = b.exp(log)?;
        b.multiply(exp, 2)
    })
}

/// Floats of the beta distribution: `x / (x + y)` of two gamma-distributed numbers.
///
/// # Errors
/// As [`exponential`](super::exponential).
pub fn beta<B: Builder>(
    b: &mut B,
    key: &B::V,
    alpha: &Arg<B::V>,
    beta: &Arg<B::V>,
    sample: &Sample,
) -> Result<B::V> {
    family(b, "beta", key, [("a", alpha), ("b", beta)], sample, |b, draw, [alpha, beta]| {
        let [first, second] = keys(b, draw.key)?;
        let with_key = |key| Draw { op: draw.op, key, dtype: draw.dtype, shape: draw.shape.clone() };
        let x = log_gamma(b, &with_key(&first), &alpha)?;
        let y = log_gamma(b, &with_key(&second), &beta)?;
        let difference = b.subtract(x, y)?;
        b.sigmoid(difference)
    })
}

/// Floats of Student's t distribution: a normal number divided by the root of a chi-square one over `df`.
///
/// # Errors
/// As [`exponential`](super::exponential).
pub fn t<B: Builder>(b: &mut B, key: &B::V, df: &Arg<B::V>, sample: &Sample) -> Result<B::V> {
    family(b, "t", key, [("df", df)], sample, |b, draw, [df]| {
        let [first, second] = keys(b, draw.key)?;
        let with_key = |key| Draw { op: draw.op, key, dtype: draw.dtype, shape: draw.shape.clone() };
        let x = with_key(&first).normal(b)?;
        let half = b.multiply(df, 0.5)?;
        let log = log_gamma(b, &with_key(&second), &half)?;
        let log_half = b.log(half)?;
        let ratio = b.subtract(log_half, log)?;
        let exponent = b.multiply(ratio, 0.5)?;
        let factor = b.exp(exponent)?;
        b.multiply(x, factor)
    })
}

/// Vectors of the Dirichlet distribution with the concentrations `alpha`, whose last axis has the elements of a
/// vector. The sample's shape is the batch shape. The axis of the vectors is last and has its own `name`.
///
/// # Errors
/// As [`exponential`](super::exponential), and concentrations without an axis.
pub fn dirichlet<B: Builder>(
    b: &mut B,
    key: &B::V,
    alpha: &Arg<B::V>,
    sample: &Sample,
    name: Option<Name>,
) -> Result<B::V> {
    let op = "dirichlet";
    check_key(b, op, key)?;
    let dtype = sample.dtype.unwrap_or(dtype_of(b, op, &[("alpha", alpha)])?);
    if !dtype.is_float() {
        return Err(wrong_dtype(op, dtype, "a float dtype"));
    }
    let value = b.operand(alpha.clone())?;
    let got = b.ty(&value);
    let Some(&size) = got.shape.sizes().last() else {
        let required = "an axis with the concentrations is required";
        return Err(ErrorKind::Rank { op, got, required }.into());
    };
    let shape = Shape::from_axes(sample.shape.entries().chain([(size, name)]));
    let floats = Sample { shape, dtype: Some(dtype) };
    let alpha = Arg::Value(value);
    family(b, op, key, [("alpha", &alpha)], &floats, |b, draw, [alpha]| {
        let logs = log_gamma(b, draw, &alpha)?;
        let sum = b.logsumexp(&logs, [-1], true, None)?;
        let rest = b.subtract(logs, sum)?;
        b.exp(rest)
    })
}
