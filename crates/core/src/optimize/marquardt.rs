//! Least squares by the method of Levenberg and Marquardt.
//!
//! A step minimizes the linearized squares and a multiple of the squared step, in units of the greatest norm of each column of the
//! Jacobian so far (Moré, The Levenberg-Marquardt Algorithm: Implementation and Theory, 1978). The multiple follows how well the
//! linearization predicts (Nielsen, Damping Parameter in Marquardt's Method, 1999). It decides nothing about the end: that is up to
//! the step without damping and the angle of the residuals.

use super::damped::{is_hidden, is_negligible};
use super::function::Function;
use super::state::{self, CONVERGED, Ended, Limits, NONFINITE, RUNNING, STUCK};
use super::step::{Reduced, product, transposed_product};
use crate::builder::{BuildCreate, BuildElementwise, BuildReduce, BuildShape};
use crate::dtype::DType;
use crate::error::Result;
use crate::grad::region;
use crate::graph::{Graph, Value};
use crate::solvers::vectors;

/// The first damping.
const DAMPING: f64 = 1e-3;
/// The part of the predicted decrease that suffices.
const DECREASE: f64 = 1e-4;
/// Dampings that are tried from a point.
const TRIALS: i64 = 40;

/// Iterates from `x` until each lane has ended.
pub(super) fn run(
    graph: &mut Graph,
    function: &Function<'_>,
    limits: &Limits,
    captures: &[Value],
    x: Value,
) -> Result<Ended> {
    let (lanes, dtype) = (function.unknowns.lanes(), function.unknowns.dtype());
    let r = function.value(graph, captures, x)?;
    let start = state::counters(graph, lanes, RUNNING)?;
    let finite = state::all_finite(graph, r)?;
    let nonfinite = graph.logical_not(finite)?;
    let status = state::decided(graph, start, &[(nonfinite, NONFINITE)])?;
    let (trips, largest) = (graph.constant(DType::S32, 0)?, graph.abs(x)?);
    let (none, one) = (state::counters(graph, lanes, 0)?, state::counters(graph, lanes, 1)?);
    let scales = graph.zeros_like(x)?;
    let damping = state::numbers(graph, lanes, dtype, DAMPING)?;
    let last = region::while_(
        graph,
        None,
        &[trips, status, x, r, largest, scales, damping, none, one],
        captures,
        |graph, carried, _| state::goes_on(graph, carried[0], carried[1], limits.maxiter),
        |graph, carried, captures| {
            let &[trips, status, x, r, largest, scales, damping, iterations, evaluations] = carried else {
                unreachable!("nine values are carried")
            };
            let jacobian = function.jacobian(graph, captures, x)?;
            let columns = column_norms(graph, jacobian)?;
            let scales = graph.max(scales, columns)?;
            let reduced = Reduced::new(graph, jacobian, r)?;
            let offset = reduced.offset(graph, r)?;
            let whole = reduced.step(graph)?;
            let magnitudes = graph.abs(x)?;
            let arrived = is_negligible(graph, whole, magnitudes, largest, limits)?;
            let aligned = graph.less_equal(offset, limits.gtol.0)?;
            let done = graph.logical_or(arrived, aligned)?;
            let known = state::all_finite(graph, columns)?;
            let unknown = graph.logical_not(known)?;

            let running = graph.equal(status, RUNNING)?;
            let tries = graph.logical_not(done)?;
            let tries = graph.logical_and(running, tries)?;
            let tries = graph.logical_and(tries, known)?;
            let from = From { x, r, jacobian, scales, damping, magnitudes, largest };
            let found = trial(graph, function, captures, (&reduced, from), tries, evaluations)?;

            let failed = graph.logical_not(found.accepted)?;
            let cosine = cosine(graph, jacobian, columns, r)?;
            let hidden = is_hidden(graph, failed, cosine)?;
            let conditions = [(unknown, NONFINITE), (done, CONVERGED), (hidden, CONVERGED), (failed, STUCK)];
            let next = vectors::choose(graph, found.accepted, found.x, x)?;
            let magnitudes = graph.abs(next)?;
            Ok(vec![
                graph.add(trips, 1)?,
                state::decided(graph, status, &conditions)?,
                next,
                vectors::choose(graph, found.accepted, found.r, r)?,
                graph.max(largest, magnitudes)?,
                scales,
                found.damping,
                state::counted(graph, iterations, tries)?,
                found.evaluations,
            ])
        },
    )?;
    let gradient = function.pull(graph, captures, last[2], last[3])?;
    Ok(Ended {
        x: last[2],
        status: state::finished(graph, last[1])?,
        iterations: last[7],
        evaluations: last[8],
        gradient_norm: state::greatest(graph, gradient)?,
    })
}

/// The point from which steps are tried.
#[derive(Clone, Copy)]
struct From {
    x: Value,
    r: Value,
    jacobian: Value,
    scales: Value,
    damping: Value,
    magnitudes: Value,
    largest: Value,
}

/// What was found from a point.
struct Found {
    x: Value,
    r: Value,
    damping: Value,
    accepted: Value,
    evaluations: Value,
}

/// Raises the damping of the lanes that try until the squares decrease.
fn trial(
    graph: &mut Graph,
    function: &Function<'_>,
    captures: &[Value],
    (reduced, from): (&Reduced, From),
    tries: Value,
    evaluations: Value,
) -> Result<Found> {
    let (lanes, dtype) = (function.unknowns.lanes(), function.unknowns.dtype());
    let epsilon = dtype.epsilon().to_f64();
    let zero = graph.equal(from.scales, 0)?;
    let scales = graph.select(zero, 1, from.scales)?;
    let norm = state::norm(graph, from.r)?;
    let floor = graph.multiply(from.largest, epsilon)?;
    let scale = graph.max(from.magnitudes, floor)?;
    let least = graph.multiply(scale, epsilon)?;
    let (trips, nobody) = (graph.constant(DType::S32, 0)?, state::nobody(graph, lanes)?);
    let growth = state::numbers(graph, lanes, dtype, 2.0)?;
    let mut all = captures.to_vec();
    let given = captures.len();
    let (triangle, rhs) = reduced.parts();
    all.extend([from.x, from.jacobian, scales, norm, least, triangle, rhs]);
    let last = region::while_(
        graph,
        None,
        &[trips, tries, nobody, from.damping, growth, from.x, from.r, evaluations],
        &all,
        |graph, carried, _| state::is_open(graph, carried[0], carried[1], TRIALS),
        |graph, carried, all| {
            let &[trips, open, accepted, damping, growth, best, before, evaluations] = carried else {
                unreachable!("eight values are carried")
            };
            let &[x, jacobian, scales, norm, least, triangle, rhs] = &all[given..] else {
                unreachable!("seven values are given")
            };
            let root = graph.sqrt(damping)?;
            let weights = vectors::scale(graph, root, scales)?;
            let p = Reduced::of(triangle, rhs).damped(graph, weights)?;
            let candidate = graph.add(x, p)?;
            let r = function.value(graph, &all[..given], candidate)?;

            // The decrease of the squares, and what the linearization predicts, as parts of the squares.
            let size = state::norm(graph, r)?;
            let ratio = vectors::quotient(graph, size, norm)?;
            let squares = graph.multiply(ratio, ratio)?;
            let actual = graph.subtract(1, squares)?;
            let image = product(graph, jacobian, p)?;
            let weighted = graph.multiply(weights, p)?;
            let (image, weighted) =
                (state::divided(graph, image, norm)?, state::divided(graph, weighted, norm)?);
            let (linear, damped) =
                (vectors::dot(graph, image, image)?, vectors::dot(graph, weighted, weighted)?);
            let damped = graph.multiply(damped, 2)?;
            let predicted = graph.add(linear, damped)?;
            let gain = vectors::quotient(graph, actual, predicted)?;
            let suffices = graph.greater(gain, DECREASE)?;
            let decreases = graph.greater(actual, 0)?;
            let taken = graph.logical_and(suffices, decreases)?;
            let taken = graph.logical_and(open, taken)?;

            // 1 - (2 gain - 1)^3, from 1/3 to 2.
            let excess = graph.multiply(gain, 2)?;
            let excess = graph.subtract(excess, 1)?;
            let cube = graph.multiply(excess, excess)?;
            let cube = graph.multiply(cube, excess)?;
            let factor = graph.subtract(1, cube)?;
            let factor = graph.clip(factor, 1.0 / 3.0, 2.0)?;
            let factor = graph.select(taken, factor, growth)?;
            let changed = graph.multiply(damping, factor)?;
            let grown = graph.multiply(growth, 2)?;
            let lengths = graph.abs(p)?;
            let moves = graph.greater(lengths, least)?;
            let moves = graph.any(moves, 1, false)?;
            let rest = graph.logical_not(taken)?;
            let rest = graph.logical_and(open, rest)?;
            Ok(vec![
                graph.add(trips, 1)?,
                graph.logical_and(rest, moves)?,
                graph.logical_or(accepted, taken)?,
                graph.select(open, changed, damping)?,
                graph.select(taken, growth, grown)?,
                vectors::choose(graph, taken, candidate, best)?,
                vectors::choose(graph, taken, r, before)?,
                state::counted(graph, evaluations, open)?,
            ])
        },
    )?;
    Ok(Found { accepted: last[2], damping: last[3], x: last[5], r: last[6], evaluations: last[7] })
}

/// The Euclidean norms of the columns.
fn column_norms(graph: &mut Graph, jacobian: Value) -> Result<Value> {
    let magnitudes = graph.abs(jacobian)?;
    let most = graph.reduce_max(magnitudes, 1, true)?;
    let zero = graph.equal(most, 0)?;
    let by = graph.select(zero, 1, most)?;
    let scaled = graph.divide(jacobian, by)?;
    let squares = graph.multiply(scaled, scaled)?;
    let squares = graph.sum(squares, 1, true)?;
    let norms = graph.sqrt(squares)?;
    let norms = graph.multiply(norms, most)?;
    graph.sum(norms, 1, false)
}

/// The greatest cosine of the residuals and a column of the Jacobian. It has a meaning also where columns are dependent.
fn cosine(graph: &mut Graph, jacobian: Value, columns: Value, r: Value) -> Result<Value> {
    let zero = graph.equal(columns, 0)?;
    let by = graph.select(zero, 1, columns)?;
    let by = graph.new_axis(by, 1, None)?;
    let units = graph.divide(jacobian, by)?;
    let norm = state::norm(graph, r)?;
    let unit = state::divided(graph, r, norm)?;
    let cosines = transposed_product(graph, units, unit)?;
    state::greatest(graph, cosines)
}
