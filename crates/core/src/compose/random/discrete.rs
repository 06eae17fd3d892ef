//! Discrete distributions. Their samples have no gradient.
//!
//! Counts are drawn in f64, in which the logarithms of factorials keep their digits.

use super::families::{Draw, family};
use super::gamma::keys;
use super::rejection::first_accepted;
use super::{Sample, check_key, gumbel, wrong_dtype};
use crate::builder::{Arg, BuildControl, BuildCreate, BuildElementwise, BuildReduce, BuildShape, Builder};
use crate::compose::matrix::batch::loop_while;
use crate::compose::special::polynomial;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::graph::{Graph, Value};
use crate::scalar::Number;
use crate::shape::{Axes, AxisRef, Shape, TensorType};

/// The number of terms that a trip of a sequential search adds.
const TERMS: usize = 8;

/// More than any uniform number: the sum of the probabilities where no more terms are added.
const NO_MORE: i64 = 2;

/// `log(k!) - (z log(z) - z + log(2 pi) / 2)` with `z = k + 1 / 2`, divided by `1 / (k + 1)`, in powers of it. The
/// error of the logarithm is 1e-11 for all `k` from 0 on.
const FACTORIAL: [f64; 11] = [
    -0.04166666669387932,
    -0.02083332669587257,
    -0.00798638712274563,
    -0.001557885193075799,
    0.00023203246642420995,
    3.030960218255134e-05,
    -0.0013942808042430941,
    0.001531876921324106,
    -0.0010374243009039373,
    0.00039264017986421747,
    -7.583127480268558e-05,
];

/// A sample of counts, whose parameters are real. `draw` draws in f64, and gets the parameters in their own shapes.
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
        let mut stopped = Vec::with_capacity(N);
        for value in values {
            stopped.push(b.stop_grad(value)?);
        }
        let Ok(values) = <[B::V; N]>::try_from(stopped) else { unreachable!("one value for each parameter") };
        draw(b, own, values)
    })?;
    b.as_type(value, dtype)
}

/// Two uniform numbers of the half-open interval from 0 to 1 for each element, from one draw.
fn uniform_pair(graph: &mut Graph, draw: &Draw<'_, Value>) -> Result<[Value; 2]> {
    let shape = Shape::from_axes(std::iter::once((2, None)).chain(draw.shape.entries()));
    let pair = Draw { op: draw.op, key: draw.key, dtype: draw.dtype, shape };
    let pair = pair.uniform(graph, Number::Int(0))?;
    let mut row = |row: i64| {
        let row = graph.slice_along_axis(pair, row, 1, 0, 1)?;
        graph.squeeze(row, AxisRef::Index(0))
    };
    Ok([row(0)?, row(1)?])
}

/// The probability of a count after that of the count before, which a scalar says.
type NextTerm<'a> = &'a dyn Fn(&mut Graph, Value, Value, &[Value]) -> Result<Value>;

/// Inversion by sequential search: the least count up to which the probabilities add up to more than a uniform number
/// (Devroye, Non-Uniform Random Variate Generation, 1986, III.2.1). `first` is the probability of 0 of each element
/// that `is_drawn` marks. Elsewhere the count is 0; if it marks none, there is no trip.
///
/// The terms have the shape of the parameters. Where rounding ends their sum below the uniform number, the count is
/// the first whose term is lost in the sum.
fn search<B: Builder>(
    b: &mut B,
    draw: &Draw<'_, B::V>,
    is_drawn: &B::V,
    first: B::V,
    parameters: &[B::V],
    next_term: NextTerm<'_>,
) -> Result<B::V> {
    let u = draw.uniform(b, Number::Int(0))?;
    let term = b.select(is_drawn, first, 0)?;
    let sum = b.select(is_drawn, &term, NO_MORE)?;
    let highest = highest(b, &u, &sum)?;
    let is_above = b.greater_equal(&highest, &sum)?;
    let open = b.any(is_above, Axes::All, false)?;
    let before = b.constant(draw.dtype, 0)?;
    let counts = b.full(draw.shape.clone(), draw.dtype, 0)?;
    let captures: Vec<B::V> = [u, highest].into_iter().chain(parameters.iter().cloned()).collect();
    let last = loop_while(
        b,
        None,
        &[open, before, term, sum, counts],
        &captures,
        |_, state, _| Ok(state[0]),
        |graph, state, captures| {
            let (u, highest, parameters) = (captures[0], captures[1], &captures[2..]);
            let (mut before, mut term, mut sum, mut counts) = (state[1], state[2], state[3], state[4]);
            for _ in 0..TERMS {
                let is_above = graph.greater_equal(u, sum)?;
                counts = graph.add(counts, is_above)?;
                term = next_term(graph, term, before, parameters)?;
                let next = graph.add(sum, term)?;
                let grows = graph.greater(next, sum)?;
                sum = graph.select(grows, next, NO_MORE)?;
                before = graph.add(before, 1)?;
            }
            let is_above = graph.greater_equal(highest, sum)?;
            let open = graph.any(is_above, Axes::All, false)?;
            Ok(vec![open, before, term, sum, counts])
        },
    )?;
    Ok(last[4].clone())
}

/// The greatest of the uniform numbers that are compared with the same element of the parameters' shape. Whether it is
/// above a sum is whether any of them is.
fn highest<B: Builder>(b: &mut B, u: &B::V, sum: &B::V) -> Result<B::V> {
    let (whole, own) = (b.ty(u).shape, b.ty(sum).shape);
    if whole.size() == 0 {
        return Ok(u.clone());
    }
    let lead = whole.rank() - own.rank();
    let is_shared = |axis: usize| axis < lead || own.sizes()[axis - lead] == 1;
    let shared = (0..whole.rank()).filter(|&axis| is_shared(axis));
    let shared = shared.map(|axis| AxisRef::Index(axis as i64)).collect();
    b.reduce_max(u, Axes::List(shared), true)
}

/// What [`FACTORIAL`] says.
fn factorial_remainder<B: Builder>(b: &mut B, k: &B::V) -> Result<B::V> {
    let next = b.add(k, 1)?;
    let place = b.divide(1, next)?;
    let sum = polynomial(b, &place, &FACTORIAL)?;
    b.multiply(sum, place)
}

/// Poisson-distributed counts with the mean `lam`. Below 10 they are found by inversion (see `search`), from 10 on
/// they are rejected: Hoermann, "The transformed rejection method for generating Poisson random variables" (1993),
/// algorithm PTRS. As integers, a count for a mean that is negative or NaN is 0.
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
        let small = b.select(&is_small, &lam, 0)?;
        let opposite = b.negate(&small)?;
        let none = b.exp(opposite)?;
        let low =
            search(b, &with_key(&first), &is_small, none, &[small], &|graph, term, before, parameters| {
                let count = graph.add(before, 1)?;
                let factor = graph.divide(parameters[0], count)?;
                graph.multiply(term, factor)
            })?;
        let finite = b.less(&lam, f64::INFINITY)?;
        let usual = b.logical_and(&is_large, finite)?;
        let high = large_poisson(b, &with_key(&second), &usual, &lam)?;
        let value = b.select(&is_large, high, low)?;
        let infinite = b.equal(&lam, f64::INFINITY)?;
        let value = b.select(infinite, f64::INFINITY, value)?;
        b.select(is_valid, value, f64::NAN)
    })
}

/// Poisson-distributed counts where `is_drawn` marks a mean from 10 on.
fn large_poisson<B: Builder>(b: &mut B, draw: &Draw<'_, B::V>, is_drawn: &B::V, lam: &B::V) -> Result<B::V> {
    let mean = b.select(is_drawn, lam, 10)?;
    let root = b.sqrt(&mean)?;
    let spread = b.multiply(root, 2.53)?;
    let spread = b.add(spread, 0.931)?;
    let a = b.multiply(&spread, 0.02483)?;
    let a = b.add(a, -0.059)?;
    let below = b.add(&spread, -3.4)?;
    let ratio = b.divide(1.1328, below)?;
    let inverse = b.add(ratio, 1.1239)?;
    let below = b.add(&spread, -2)?;
    let ratio = b.divide(3.6224, below)?;
    let limit = b.subtract(0.9277, ratio)?;
    let shift = b.add(&mean, 0.43)?;
    // The terms of the log density that do not depend on the count.
    let around = b.multiply(&mean, std::f64::consts::TAU)?;
    let log = b.log(around)?;
    let level = b.multiply(log, -0.5)?;
    let reciprocal = b.divide(1, &mean)?;
    let captures = [mean, reciprocal, level, a, spread, shift, limit, inverse];
    first_accepted(b, draw, is_drawn, &captures, &|graph, draw, captures| {
        let [u, v] = uniform_pair(graph, draw)?;
        let [mean, reciprocal, level, inverse] = [0, 1, 2, 7].map(|at| captures[at]);
        let hat = Hat { a: captures[3], spread: captures[4], shift: captures[5], limit: captures[6] };
        let (k, us, quick) = hat.candidate(graph, u, v)?;
        let is_count = graph.greater_equal(k, 0)?;
        let k = graph.max(k, 0)?;
        let density = log_poisson(graph, k, mean, reciprocal)?;
        let density = graph.add(density, level)?;
        let bound = hat.bound(graph, v, us, inverse)?;
        let is_below = graph.less_equal(bound, density)?;
        let accepted = graph.logical_or(quick, is_below)?;
        Ok((k, graph.logical_and(accepted, is_count)?))
    })
}

/// `k log(mean) - mean - log(k!) + log(2 pi mean) / 2` as `d - z log(z / mean) - remainder` of `z = k + 1 / 2` and
/// `d = z - mean`, whose terms are of the size of `d`.
fn log_poisson(graph: &mut Graph, k: Value, mean: Value, reciprocal: Value) -> Result<Value> {
    let z = graph.add(k, 0.5)?;
    let distance = graph.subtract(z, mean)?;
    let ratio = graph.multiply(distance, reciprocal)?;
    let log = graph.log1p(ratio)?;
    let product = graph.multiply(z, log)?;
    let value = graph.subtract(distance, product)?;
    let remainder = factorial_remainder(graph, &k)?;
    graph.subtract(value, remainder)
}

/// The hat function of a transformed rejection.
struct Hat {
    a: Value,
    spread: Value,
    shift: Value,
    limit: Value,
}

impl Hat {
    /// A candidate, the distance of `u` from the ends, and whether the candidate is accepted without its density.
    fn candidate(&self, graph: &mut Graph, u: Value, v: Value) -> Result<(Value, Value, Value)> {
        let u = graph.subtract(u, 0.5)?;
        let size = graph.abs(u)?;
        let us = graph.subtract(0.5, size)?;
        let twice = graph.multiply(self.a, 2)?;
        let ratio = graph.divide(twice, us)?;
        let slope = graph.add(ratio, self.spread)?;
        let place = graph.multiply(slope, u)?;
        let place = graph.add(place, self.shift)?;
        let k = graph.floor(place)?;
        let (inner, low) = (graph.greater_equal(us, 0.07)?, graph.less_equal(v, self.limit)?);
        Ok((k, us, graph.logical_and(inner, low)?))
    }

    /// `log(v inverse / (a / us^2 + spread))`, which an accepted candidate's density exceeds.
    fn bound(&self, graph: &mut Graph, v: Value, us: Value, inverse: Value) -> Result<Value> {
        let square = graph.multiply(us, us)?;
        let scaled = graph.multiply(self.spread, square)?;
        let below = graph.add(self.a, scaled)?;
        let above = graph.multiply(v, inverse)?;
        let above = graph.multiply(above, square)?;
        let quotient = graph.divide(above, below)?;
        graph.log(quotient)
    }
}

/// Binomially distributed counts of `n` trials with the probability `p`. Where fewer than 10 successes are expected,
/// or failures, they are found by inversion (see `search`). Elsewhere candidates are rejected: Hoermann, "The
/// generation of binomial random variates" (1993), algorithm BTRS. As integers, counts for invalid parameters are 0.
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

        let is_small = b.logical_not(&is_large)?;
        let is_small = b.logical_and(&is_valid, is_small)?;
        let opposite = b.negate(&p)?;
        let log = b.log1p(&opposite)?;
        let log = b.multiply(log, &count)?;
        let none = b.exp(log)?;
        let rest = b.add(opposite, 1)?;
        let odds = b.divide(&p, rest)?;
        let parameters = [count.clone(), odds];
        let low = search(b, &with_key(&first), &is_small, none, &parameters, &|graph, term, before, own| {
            let left = graph.subtract(own[0], before)?;
            let next = graph.add(before, 1)?;
            let factor = graph.divide(own[1], next)?;
            let factor = graph.multiply(factor, left)?;
            graph.multiply(term, factor)
        })?;

        let (trials, chance) = (b.select(&is_large, &count, 40)?, b.select(&is_large, p, 0.5)?);
        let high = large_binomial(b, &with_key(&second), &is_large, trials, &chance)?;
        let value = b.select(is_large, high, low)?;
        let opposite = b.subtract(&count, &value)?;
        let value = b.select(is_high, opposite, value)?;
        b.select(is_valid, value, f64::NAN)
    })
}

/// Binomially distributed counts where `is_drawn` marks that 10 or more are expected; `p` is at most 0.5.
fn large_binomial<B: Builder>(
    b: &mut B,
    draw: &Draw<'_, B::V>,
    is_drawn: &B::V,
    n: B::V,
    p: &B::V,
) -> Result<B::V> {
    let q = b.subtract(1, p)?;
    let mean = b.multiply(&n, p)?;
    let variance = b.multiply(&mean, &q)?;
    let deviation = b.sqrt(variance)?;
    let spread = b.multiply(&deviation, 2.53)?;
    let spread = b.add(spread, 1.15)?;
    let a = b.multiply(&spread, 0.0248)?;
    let term = b.multiply(p, 0.01)?;
    let a = b.add(a, term)?;
    let a = b.add(a, -0.0873)?;
    let ratio = b.divide(4.2, &spread)?;
    let limit = b.subtract(0.92, ratio)?;
    let ratio = b.divide(5.1, &spread)?;
    let alpha = b.add(ratio, 2.83)?;
    let alpha = b.multiply(alpha, deviation)?;
    let shift = b.add(mean, 0.5)?;
    let next = b.add(&n, 1)?;
    let (left, right) = (b.multiply(&next, p)?, b.multiply(next, q)?);
    let mode = b.floor(&left)?;
    let means = Means { of_left: b.divide(1, &left)?, of_right: b.divide(1, right)?, left };
    let level = log_binomial(b, &mode, &n, &means)?;
    let Means { left, of_left, of_right } = means;
    let captures = [n, left, of_left, of_right, level, a, spread, shift, limit, alpha];
    first_accepted(b, draw, is_drawn, &captures, &|graph, draw, captures| {
        let [u, v] = uniform_pair(graph, draw)?;
        let n = captures[0];
        let means = Means { left: captures[1], of_left: captures[2], of_right: captures[3] };
        let hat = Hat { a: captures[5], spread: captures[6], shift: captures[7], limit: captures[8] };
        let (k, us, quick) = hat.candidate(graph, u, v)?;
        let (above, below) = (graph.greater_equal(k, 0)?, graph.less_equal(k, n)?);
        let inside = graph.logical_and(above, below)?;
        let k = graph.select(inside, k, 0)?;
        // The logarithm of the density over that of the mode.
        let own = log_binomial(graph, &k, &n, &means)?;
        let density = graph.subtract(own, captures[4])?;
        let bound = hat.bound(graph, v, us, captures[9])?;
        let is_below = graph.less_equal(bound, density)?;
        let accepted = graph.logical_or(quick, is_below)?;
        Ok((k, graph.logical_and(accepted, inside)?))
    })
}

/// `left`, `n + 1` times the probability of success, its reciprocal, and that of `n + 1` times the probability of
/// failure.
struct Means<V> {
    left: V,
    of_left: V,
    of_right: V,
}

/// The terms of the logarithm of a binomial density that depend on `k`. As in [`log_poisson`], with `z = k + 1 / 2` and
/// `y = n - k + 1 / 2`: `-z log(z / left) - y log(y / right)` without the remainders.
fn log_binomial<B: Builder>(b: &mut B, k: &B::V, n: &B::V, means: &Means<B::V>) -> Result<B::V> {
    let rest = b.subtract(n, k)?;
    let z = b.add(k, 0.5)?;
    let y = b.add(&rest, 0.5)?;
    let distance = b.subtract(&z, &means.left)?;
    let ratio = b.multiply(&distance, &means.of_left)?;
    let log = b.log1p(ratio)?;
    let successes = b.multiply(z, log)?;
    let opposite = b.negate(distance)?;
    let ratio = b.multiply(opposite, &means.of_right)?;
    let log = b.log1p(ratio)?;
    let failures = b.multiply(y, log)?;
    let sum = b.add(successes, failures)?;
    let (of_successes, of_failures) = (factorial_remainder(b, k)?, factorial_remainder(b, &rest)?);
    let remainder = b.add(of_successes, of_failures)?;
    let sum = b.add(sum, remainder)?;
    b.negate(sum)
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
