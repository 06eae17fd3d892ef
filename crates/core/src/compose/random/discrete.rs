//! Discrete distributions. Their samples have no gradient.
//!
//! Counts are drawn in f64, in which the logarithms of factorials keep their digits.

use super::families::{Draw, family};
use super::gamma::keys;
use super::{Sample, check_key, gumbel, wrong_dtype};
use crate::builder::{
    Arg, BuildControl, BuildCreate, BuildElementwise, BuildReduce, BuildShape, BuildSpecial, Builder,
};
use crate::compose::matrix::batch::loop_while;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::graph::{Graph, Value};
use crate::scalar::Number;
use crate::shape::{Axes, AxisRef, Shape, TensorType};

/// More trips than any sample needs.
const TRIPS: i64 = 10_000;

/// A sample of counts, whose parameters are real. `draw` draws in f64.
fn counts<B: Builder, const N: usize>(
    b: &mut B,
    op: &'static str,
    key: &B::V,
    parameters: [(&'static str, &Arg<B::V>); N],
    sample: &Sample,
    draw: impl FnOnce(&mut B, &Draw<'_, B::V>, [B::V; N]) -> Result<B::V>,
) -> Result<B::V> {
    let dtype = sample.dtype.unwrap_or(DType::S32);
    if dtype.is_bool() || dtype.is_complex() {
        return Err(wrong_dtype(op, dtype, "an integer or a float dtype"));
    }
    let floats = Sample { shape: sample.shape.clone(), dtype: Some(DType::F64) };
    let value = family(b, op, key, parameters, &floats, |b, own, values| {
        let mut whole = Vec::with_capacity(N);
        for value in values {
            let value = b.stop_grad(value)?;
            let shape = own.shape.clone();
            whole.push(if b.ty(&value).shape == shape {
                value
            } else {
                b.broadcast(value, shape, Axes::All)?
            });
        }
        let Ok(values) = <[B::V; N]>::try_from(whole) else { unreachable!("one value for each parameter") };
        draw(b, own, values)
    })?;
    b.as_type(value, dtype)
}

/// A candidate, and whether it is accepted, from two uniform numbers of the half-open interval from 0 to 1.
type Candidate<'a> = &'a dyn Fn(&mut Graph, [Value; 2], &[Value]) -> Result<(Value, Value)>;

/// The first accepted candidate of each element.
fn rejection<B: Builder>(
    b: &mut B,
    draw: &Draw<'_, B::V>,
    captures: &[B::V],
    candidate: Candidate<'_>,
) -> Result<B::V> {
    let (op, dtype, shape) = (draw.op, draw.dtype, draw.shape.clone());
    let start = b.full(shape.clone(), dtype, 0)?;
    let open = b.full(shape.clone(), DType::Bool, true)?;
    let trip = b.constant(DType::S32, 0)?;
    let last = loop_while(
        b,
        None,
        &[trip, draw.key.clone(), open, start],
        captures,
        |graph, state, _| continues(graph, state[0], state[2]),
        |graph, state, captures| {
            let [next, first, second] = keys(graph, &state[1])?;
            let mut uniform =
                |key: &Value| Draw { op, key, dtype, shape: shape.clone() }.uniform(graph, Number::Int(0));
            let pair = [uniform(&first)?, uniform(&second)?];
            let (value, accepted) = candidate(graph, pair, captures)?;
            let takes = graph.logical_and(accepted, state[2])?;
            let rejected = graph.logical_not(accepted)?;
            Ok(vec![
                graph.add(state[0], 1)?,
                next,
                graph.logical_and(state[2], rejected)?,
                graph.select(takes, value, state[3])?,
            ])
        },
    )?;
    Ok(last[3].clone())
}

fn continues(graph: &mut Graph, trip: Value, open: Value) -> Result<Value> {
    let more = graph.less(trip, TRIPS)?;
    let any = graph.any(open, Axes::All, false)?;
    graph.logical_and(more, any)
}

/// The number of terms, without the last, until a sum exceeds a bound. `term` makes a positive term of a uniform
/// number above 0.
fn terms_below<B: Builder>(
    b: &mut B,
    draw: &Draw<'_, B::V>,
    bound: &B::V,
    rate: &B::V,
    term: &dyn Fn(&mut Graph, Value, Value) -> Result<Value>,
) -> Result<B::V> {
    let (op, dtype, shape) = (draw.op, draw.dtype, draw.shape.clone());
    let start = b.full(shape.clone(), dtype, 0)?;
    let open = b.full(shape.clone(), DType::Bool, true)?;
    let trip = b.constant(DType::S32, 0)?;
    let last = loop_while(
        b,
        None,
        &[trip, draw.key.clone(), open, start.clone(), start],
        &[bound.clone(), rate.clone()],
        |graph, state, _| continues(graph, state[0], state[2]),
        |graph, state, captures| {
            let [next, own] = keys(graph, &state[1])?;
            let draw = Draw { op, key: &own, dtype, shape: shape.clone() };
            let u = draw.uniform(graph, dtype.smallest_normal())?;
            let term = term(graph, u, captures[1])?;
            let sum = graph.add(state[3], term)?;
            let within = graph.less_equal(sum, captures[0])?;
            let open = graph.logical_and(state[2], within)?;
            Ok(vec![graph.add(state[0], 1)?, next, open, sum, graph.add(state[4], open)?])
        },
    )?;
    Ok(last[4].clone())
}

/// Poisson-distributed counts with the mean `lam`. Below 10 they count exponential numbers (Knuth, The Art of
/// Computer Programming 2, 3.4.1), from 10 on they are rejected: Hoermann, "The transformed rejection method for
/// generating Poisson random variables" (1993), algorithm PTRS. As integers, a count for a mean that is negative or
/// NaN is 0.
///
/// # Errors
/// A value that is no key, an element type that is bool or complex, and a parameter that is complex or does not
/// broadcast to the shape.
pub fn poisson<B: Builder>(b: &mut B, key: &B::V, lam: &Arg<B::V>, sample: &Sample) -> Result<B::V> {
    counts(b, "poisson", key, [("lam", lam)], sample, |b, draw, [lam]| {
        let [first, second] = keys(b, draw.key)?;
        let with_key = |key| Draw { op: draw.op, key, dtype: draw.dtype, shape: draw.shape.clone() };
        let is_large = b.greater_equal(&lam, 10)?;
        let is_valid = b.greater_equal(&lam, 0)?;
        let below = b.less(&lam, 10)?;
        let is_small = b.logical_and(&is_valid, below)?;
        let small = b.select(is_small, &lam, 0)?;
        let low = terms_below(b, &with_key(&first), &small, &small, &|graph, u, _| {
            let log = graph.log(u)?;
            graph.negate(log)
        })?;
        let finite = b.less(&lam, f64::INFINITY)?;
        let usual = b.logical_and(&is_large, finite)?;
        let mean = b.select(usual, &lam, 10)?;
        let high = rejection(b, &with_key(&second), &[mean], &|graph, [u, v], captures| {
            let mean = captures[0];
            let root = graph.sqrt(mean)?;
            let spread = graph.multiply(root, 2.53)?;
            let spread = graph.add(spread, 0.931)?;
            let a = graph.multiply(spread, 0.02483)?;
            let a = graph.add(a, -0.059)?;
            let below = graph.add(spread, -3.4)?;
            let inverse = graph.divide(1.1328, below)?;
            let inverse = graph.add(inverse, 1.1239)?;
            let below = graph.add(spread, -2)?;
            let ratio = graph.divide(3.6224, below)?;
            let limit = graph.subtract(0.9277, ratio)?;
            let move_to = graph.add(mean, 0.43)?;
            let (k, us, u_limit) = hat(graph, u, v, a, spread, move_to, limit)?;
            let log_mean = graph.log(mean)?;
            let product = graph.multiply(k, log_mean)?;
            let next = graph.add(k, 1)?;
            let factorial = graph.lgamma(next)?;
            let density = graph.subtract(product, mean)?;
            let density = graph.subtract(density, factorial)?;
            let bound = squeeze(graph, v, us, a, spread, inverse)?;
            let is_below = graph.less_equal(bound, density)?;
            let is_positive = graph.greater_equal(k, 0)?;
            let is_below = graph.logical_and(is_below, is_positive)?;
            Ok((k, graph.logical_or(u_limit, is_below)?))
        })?;
        let value = b.select(&is_large, high, low)?;
        let infinite = b.equal(&lam, f64::INFINITY)?;
        let value = b.select(infinite, f64::INFINITY, value)?;
        b.select(is_valid, value, f64::NAN)
    })
}

/// The candidate of a transformed rejection, the distance of `u` from the ends, and whether the candidate is accepted
/// without its density.
fn hat(
    graph: &mut Graph,
    u: Value,
    v: Value,
    a: Value,
    spread: Value,
    shift: Value,
    limit: Value,
) -> Result<(Value, Value, Value)> {
    let u = graph.subtract(u, 0.5)?;
    let size = graph.abs(u)?;
    let us = graph.subtract(0.5, size)?;
    let twice = graph.multiply(a, 2)?;
    let ratio = graph.divide(twice, us)?;
    let slope = graph.add(ratio, spread)?;
    let place = graph.multiply(slope, u)?;
    let place = graph.add(place, shift)?;
    let k = graph.floor(place)?;
    let (inner, low) = (graph.greater_equal(us, 0.07)?, graph.less_equal(v, limit)?);
    Ok((k, us, graph.logical_and(inner, low)?))
}

/// `log(v inverse / (a / us^2 + spread))`, which an accepted candidate's density exceeds.
fn squeeze(graph: &mut Graph, v: Value, us: Value, a: Value, spread: Value, inverse: Value) -> Result<Value> {
    let square = graph.multiply(us, us)?;
    let ratio = graph.divide(a, square)?;
    let below = graph.add(ratio, spread)?;
    let above = graph.multiply(v, inverse)?;
    let quotient = graph.divide(above, below)?;
    graph.log(quotient)
}

/// Binomially distributed counts of `n` trials with the probability `p`. Where fewer than 10 successes are expected,
/// or failures, the waiting times between them are added (Devroye, Non-Uniform Random Variate Generation, 1986,
/// X.4.3). Elsewhere candidates are rejected: Hoermann, "The generation of binomial random variates" (1993),
/// algorithm BTRS. As integers, counts for invalid parameters are 0.
///
/// # Errors
/// As [`poisson`].
pub fn binomial<B: Builder>(
    b: &mut B,
    key: &B::V,
    n: &Arg<B::V>,
    p: &Arg<B::V>,
    sample: &Sample,
) -> Result<B::V> {
    counts(b, "binomial", key, [("n", n), ("p", p)], sample, |b, draw, [n, p]| {
        let [first, second] = keys(b, draw.key)?;
        let with_key = |key| Draw { op: draw.op, key, dtype: draw.dtype, shape: draw.shape.clone() };
        let n = b.floor(n)?;
        let (above, below) = (b.greater_equal(&p, 0)?, b.less_equal(&p, 1)?);
        let within = b.logical_and(above, below)?;
        let (natural, finite) = (b.greater_equal(&n, 0)?, b.less(&n, f64::INFINITY)?);
        let counted = b.logical_and(natural, finite)?;
        let is_valid = b.logical_and(within, counted)?;
        let (count, p) = (b.select(&is_valid, &n, 0)?, b.select(&is_valid, p, 0.5)?);
        let is_high = b.greater(&p, 0.5)?;
        let rest = b.subtract(1, &p)?;
        let p = b.select(&is_high, rest, p)?;
        let mean = b.multiply(&count, &p)?;
        let is_large = b.greater_equal(mean, 10)?;

        let none = b.less_equal(&p, 0)?;
        let skip = b.logical_or(&is_large, &none)?;
        let trials = b.select(&skip, 0, &count)?;
        let chance = b.select(&skip, 0.5, &p)?;
        let opposite = b.negate(chance)?;
        let rate = b.log1p(opposite)?;
        let low = terms_below(b, &with_key(&first), &trials, &rate, &|graph, u, rate| {
            let log = graph.log(u)?;
            let wait = graph.divide(log, rate)?;
            graph.ceil(wait)
        })?;
        let low = b.select(none, 0, low)?;

        let (trials, chance) = (b.select(&is_large, &count, 40)?, b.select(&is_large, p, 0.5)?);
        let high = rejection(b, &with_key(&second), &[trials, chance], &|graph, [u, v], captures| {
            let (n, p) = (captures[0], captures[1]);
            let q = graph.subtract(1, p)?;
            let mean = graph.multiply(n, p)?;
            let variance = graph.multiply(mean, q)?;
            let deviation = graph.sqrt(variance)?;
            let spread = graph.multiply(deviation, 2.53)?;
            let spread = graph.add(spread, 1.15)?;
            let a = graph.multiply(spread, 0.0248)?;
            let term = graph.multiply(p, 0.01)?;
            let a = graph.add(a, term)?;
            let a = graph.add(a, -0.0873)?;
            let ratio = graph.divide(4.2, spread)?;
            let limit = graph.subtract(0.92, ratio)?;
            let ratio = graph.divide(5.1, spread)?;
            let alpha = graph.add(ratio, 2.83)?;
            let alpha = graph.multiply(alpha, deviation)?;
            let shift = graph.add(mean, 0.5)?;
            let (k, us, quick) = hat(graph, u, v, a, spread, shift, limit)?;
            let (above, below) = (graph.greater_equal(k, 0)?, graph.less_equal(k, n)?);
            let inside = graph.logical_and(above, below)?;
            let k = graph.select(inside, k, 0)?;
            // The logarithm of the density over that of the mode.
            let next = graph.add(n, 1)?;
            let mode = graph.multiply(next, p)?;
            let mode = graph.floor(mode)?;
            let of_mode = log_ways(graph, n, mode)?;
            let own = log_ways(graph, n, k)?;
            let odds = graph.divide(p, q)?;
            let log_odds = graph.log(odds)?;
            let distance = graph.subtract(k, mode)?;
            let product = graph.multiply(distance, log_odds)?;
            let density = graph.subtract(of_mode, own)?;
            let density = graph.add(density, product)?;
            let bound = squeeze(graph, v, us, a, spread, alpha)?;
            let is_below = graph.less_equal(bound, density)?;
            let accepted = graph.logical_or(quick, is_below)?;
            Ok((k, graph.logical_and(accepted, inside)?))
        })?;
        let value = b.select(is_large, high, low)?;
        let opposite = b.subtract(&count, &value)?;
        let value = b.select(is_high, opposite, value)?;
        b.select(is_valid, value, f64::NAN)
    })
}

/// `log(k! (n - k)!)`.
fn log_ways(graph: &mut Graph, n: Value, k: Value) -> Result<Value> {
    let next = graph.add(k, 1)?;
    let first = graph.lgamma(next)?;
    let rest = graph.subtract(n, k)?;
    let next = graph.add(rest, 1)?;
    let second = graph.lgamma(next)?;
    graph.add(first, second)
}

/// Positions along an axis of `logits`, with probabilities in proportion to their exponentials: the greatest after
/// Gumbel numbers were added. The sample's shape comes before the other axes, whose names stay.
///
/// # Errors
/// A value that is no key, logits that are complex, an axis that they do not have, and an element type that is no
/// integer.
pub fn categorical<B: Builder>(
    b: &mut B,
    key: &B::V,
    logits: &Arg<B::V>,
    axis: &AxisRef,
    sample: &Sample,
) -> Result<B::V> {
    let op = "categorical";
    check_key(b, op, key)?;
    let dtype = sample.dtype.unwrap_or(DType::S32);
    if !dtype.is_integer() {
        return Err(wrong_dtype(op, dtype, "an integer dtype"));
    }
    let x = b.operand(logits.clone())?;
    let got = b.ty(&x);
    if got.dtype.is_complex() {
        let required = crate::op::Domain::Real.text();
        return Err(ErrorKind::ParameterDType { op, what: "logits", got, required }.into());
    }
    let axis = got.shape.resolve(op, axis)?;
    let float = super::super::working_dtype(got.dtype.to_float());
    let x = b.as_type(x, float)?;
    let shape = Shape::from_axes(sample.shape.entries().chain(got.shape.entries()));
    TensorType::new(float, shape.clone())?;
    let noise = gumbel(b, key, &Sample { shape, dtype: Some(float) })?;
    let scores = b.add(noise, x)?;
    let axis = AxisRef::Index((sample.shape.rank() + axis.0) as i64);
    let value = b.argmax(scores, Some(axis), false, crate::op::TieBreak::Low, dtype)?;
    let value = b.stop_grad(value)?;
    b.order_vectorized_axes(value, &[&key.into(), logits])
}
