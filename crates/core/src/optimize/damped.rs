//! Newton's method and that of Gauss and Newton, whose steps are shortened until the residuals decrease.
//!
//! A step is accepted when the squared norm of the residuals decreases by a part of what the linearization predicts (Armijo,
//! Minimization of Functions Having Lipschitz Continuous First Partial Derivatives, 1966). The next length is that of the
//! least value of a parabola (Dennis and Schnabel, Numerical Methods for Unconstrained Optimization and Nonlinear Equations,
//! 1983, algorithm A6.3.1).

use super::function::Function;
use super::state::{self, CONVERGED, Ended, Limits, NONFINITE, RUNNING, STUCK};
use super::step::{Direction, Step};
use crate::builder::{BuildCreate, BuildElementwise, BuildReduce};
use crate::dtype::DType;
use crate::error::Result;
use crate::grad::region;
use crate::graph::{Graph, Value};
use crate::solvers::vectors;

/// The part of the predicted decrease that suffices.
const DECREASE: f64 = 1e-4;
/// Lengths that are tried along a direction.
const TRIALS: i64 = 60;

/// Iterates from `x` until each lane has ended.
pub(super) fn run(
    graph: &mut Graph,
    function: &Function<'_>,
    direction: Direction,
    limits: &Limits,
    captures: &[Value],
    x: Value,
) -> Result<Ended> {
    let lanes = function.unknowns.lanes();
    let r = function.value(graph, captures, x)?;
    let start = state::counters(graph, lanes, RUNNING)?;
    let (finite, solved) = (state::all_finite(graph, r)?, is_solved(graph, r, limits)?);
    let nonfinite = graph.logical_not(finite)?;
    let status = state::decided(graph, start, &[(nonfinite, NONFINITE), (solved, CONVERGED)])?;
    let (trips, largest) = (graph.constant(DType::S32, 0)?, graph.abs(x)?);
    let (none, one) = (state::counters(graph, lanes, 0)?, state::counters(graph, lanes, 1)?);
    let last = region::while_(
        graph,
        None,
        &[trips, status, x, r, largest, none, one],
        captures,
        |graph, carried, _| state::goes_on(graph, carried[0], carried[1], limits.maxiter),
        |graph, carried, captures| {
            let &[trips, status, x, r, largest, iterations, evaluations] = carried else {
                unreachable!("seven values are carried")
            };
            let step = direction.step(graph, function, captures, x, r)?;
            let running = graph.equal(status, RUNNING)?;
            let done = match step.stationary {
                Some(cosine) => {
                    let done = graph.less_equal(cosine, limits.gtol.0)?;
                    graph.logical_and(running, done)?
                }
                None => state::nobody(graph, lanes)?,
            };
            let tries = graph.logical_not(done)?;
            let tries = graph.logical_and(running, tries)?;
            let found = search(graph, function, captures, (x, r, &step), tries, evaluations)?;

            let failed = graph.logical_not(found.accepted)?;
            let hidden = match step.stationary {
                Some(cosine) => is_hidden(graph, failed, cosine)?,
                None => state::nobody(graph, lanes)?,
            };
            let next = vectors::choose(graph, found.accepted, found.x, x)?;
            let residual = vectors::choose(graph, found.accepted, found.r, r)?;
            let magnitudes = graph.abs(next)?;
            let largest = graph.max(largest, magnitudes)?;
            let solved = is_solved(graph, residual, limits)?;
            let negligible = is_negligible(graph, step.p, magnitudes, largest, limits)?;
            let whole = graph.equal(found.length, 1)?;
            let arrived = graph.logical_and(found.accepted, whole)?;
            let arrived = graph.logical_and(arrived, step.exact)?;
            let arrived = graph.logical_and(arrived, negligible)?;
            // Where rounding hides the decrease of a step that is small anyway, there is no more to gain.
            let (shortest, widest) = (state::greatest(graph, step.p)?, state::greatest(graph, largest)?);
            let reach = graph.multiply(widest, limits.rtol.0)?;
            let small = graph.less_equal(shortest, reach)?;
            let rounded = graph.logical_and(failed, small)?;
            let rounded = graph.logical_and(rounded, step.exact)?;
            let (finite, known) = (state::all_finite(graph, step.p)?, state::all_finite(graph, step.image)?);
            let finite = graph.logical_and(finite, known)?;
            let nonfinite = graph.logical_not(finite)?;
            let conditions = [
                (done, CONVERGED),
                (nonfinite, NONFINITE),
                (solved, CONVERGED),
                (arrived, CONVERGED),
                (rounded, CONVERGED),
                (hidden, CONVERGED),
                (failed, STUCK),
            ];
            let iterations = state::counted(graph, iterations, tries)?;
            let status = state::decided(graph, status, &conditions)?;
            Ok(vec![graph.add(trips, 1)?, status, next, residual, largest, iterations, found.evaluations])
        },
    )?;
    let (x, r) = (last[2], last[3]);
    let gradient = function.pull(graph, captures, x, r)?;
    Ok(Ended {
        x,
        status: state::finished(graph, last[1])?,
        iterations: last[5],
        evaluations: last[6],
        gradient_norm: state::greatest(graph, gradient)?,
    })
}

/// Whether the residuals are small enough.
fn is_solved(graph: &mut Graph, r: Value, limits: &Limits) -> Result<Value> {
    let most = state::greatest(graph, r)?;
    graph.less_equal(most, limits.atol.0)
}

/// The part of the squares that may be hidden: this power of the epsilon.
const HIDDEN: f64 = 0.5;

/// Whether rounding, or the error of what the residuals are computed by, hides a decrease of the squares: no step of any length
/// was found that decreases them, and the linearization promises little. What it promises is the square of the cosine of the
/// residuals and its range, as a part of the squares.
pub(super) fn is_hidden(graph: &mut Graph, failed: Value, cosine: Value) -> Result<Value> {
    let epsilon = graph.ty(cosine).dtype.epsilon().to_f64();
    let small = graph.less_equal(cosine, epsilon.powf(HIDDEN / 2.0))?;
    graph.logical_and(failed, small)
}

/// Whether a step is small for each unknown. One that goes to zero is compared with what it was.
pub(super) fn is_negligible(
    graph: &mut Graph,
    step: Value,
    magnitudes: Value,
    largest: Value,
    limits: &Limits,
) -> Result<Value> {
    let floor = graph.multiply(largest, limits.rtol.0)?;
    let scale = graph.max(magnitudes, floor)?;
    let bound = graph.multiply(scale, limits.rtol.0)?;
    let step = graph.abs(step)?;
    let within = graph.less_equal(step, bound)?;
    graph.all(within, 1, false)
}

/// What a search along a direction found.
struct Found {
    x: Value,
    r: Value,
    length: Value,
    accepted: Value,
    evaluations: Value,
}

/// Shortens the step of the lanes that try until the residuals decrease.
fn search(
    graph: &mut Graph,
    function: &Function<'_>,
    captures: &[Value],
    (x, r, step): (Value, Value, &Step),
    tries: Value,
    evaluations: Value,
) -> Result<Found> {
    let (lanes, dtype) = (function.unknowns.lanes(), function.unknowns.dtype());
    let epsilon = dtype.epsilon().to_f64();
    let norm = state::norm(graph, r)?;
    // The derivative of the squared norm, as a part of it.
    let (unit, image) = (state::divided(graph, r, norm)?, state::divided(graph, step.image, norm)?);
    let half = vectors::dot(graph, unit, image)?;
    let slope = graph.multiply(half, 2)?;
    let descends = graph.less(slope, 0)?;
    let open = graph.logical_and(tries, descends)?;
    let (longest, widest) = (state::greatest(graph, step.p)?, state::greatest(graph, x)?);
    let least = graph.multiply(widest, epsilon)?;
    let nobody = state::nobody(graph, lanes)?;
    let length = state::numbers(graph, lanes, dtype, 1.0)?;
    let trips = graph.constant(DType::S32, 0)?;
    let mut all = captures.to_vec();
    let given = captures.len();
    all.extend([x, step.p, norm, slope, longest, least]);
    let last = region::while_(
        graph,
        None,
        &[trips, open, nobody, length, x, r, evaluations],
        &all,
        |graph, carried, _| state::is_open(graph, carried[0], carried[1], TRIALS),
        |graph, carried, all| {
            let (&[trips, open, accepted, length, best, before, evaluations], captures) =
                (carried, &all[..given])
            else {
                unreachable!("seven values are carried")
            };
            let &[x, p, norm, slope, longest, least] = &all[given..] else {
                unreachable!("six values are given")
            };
            let candidate = vectors::add_scaled(graph, x, length, p)?;
            let r = function.value(graph, captures, candidate)?;
            let size = state::norm(graph, r)?;
            let ratio = graph.divide(size, norm)?;
            let ratio = graph.multiply(ratio, ratio)?;
            let predicted = graph.multiply(length, slope)?;
            let required = graph.multiply(predicted, DECREASE)?;
            let required = graph.add(required, 1)?;
            let suffices = graph.less_equal(ratio, required)?;
            let taken = graph.logical_and(open, suffices)?;

            // The least value of the parabola through both values with the slope.
            let rise = graph.subtract(ratio, 1)?;
            let rise = graph.subtract(rise, predicted)?;
            let fraction = graph.divide(predicted, rise)?;
            let fraction = graph.multiply(fraction, -0.5)?;
            let finite = graph.isfinite(fraction)?;
            let fraction = graph.select(finite, fraction, 0.1)?;
            let fraction = graph.clip(fraction, 0.1, 0.5)?;
            let shorter = graph.multiply(length, fraction)?;
            let reach = graph.multiply(shorter, longest)?;
            let moves = graph.greater(reach, least)?;
            let rest = graph.logical_not(taken)?;
            let rest = graph.logical_and(open, rest)?;
            let goes_on = graph.logical_and(rest, moves)?;
            Ok(vec![
                graph.add(trips, 1)?,
                goes_on,
                graph.logical_or(accepted, taken)?,
                graph.select(goes_on, shorter, length)?,
                vectors::choose(graph, taken, candidate, best)?,
                vectors::choose(graph, taken, r, before)?,
                state::counted(graph, evaluations, open)?,
            ])
        },
    )?;
    Ok(Found { accepted: last[2], length: last[3], x: last[4], r: last[5], evaluations: last[6] })
}
