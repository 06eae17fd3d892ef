//! What the algorithms share: the state of a lane, and numbers of its vectors.

use crate::builder::{BuildCreate, BuildElementwise, BuildReduce};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::op::Tolerance;
use crate::shape::{Axes, Shape};
use crate::solvers::vectors;

/// A lane that still iterates. All other numbers are results.
pub(super) const RUNNING: i64 = -1;
/// A lane whose result meets the tolerances.
pub(super) const CONVERGED: i64 = 0;
/// A lane that has done as many iterations as are allowed.
const EXHAUSTED: i64 = 1;
/// A lane for which no step makes progress.
pub(super) const STUCK: i64 = 2;
/// A lane with a NaN or an infinity in the value or in a derivative.
pub(super) const NONFINITE: i64 = 3;

/// When iterations end.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// The tolerance of the unknowns, relative to each.
    pub(crate) rtol: Tolerance,
    /// The absolute tolerance of the residuals.
    pub(crate) atol: Tolerance,
    /// The tolerance of the gradient: its greatest magnitude, or the cosine of the residuals and the range of the Jacobian.
    pub(crate) gtol: Tolerance,
    /// The maximum number of iterations.
    pub(crate) maxiter: usize,
}

/// Where the iterations of each lane ended.
pub(crate) struct Ended {
    /// The unknowns.
    pub(crate) x: Value,
    pub(crate) status: Value,
    pub(crate) iterations: Value,
    pub(crate) evaluations: Value,
    /// The greatest magnitude in the gradient.
    pub(crate) gradient_norm: Value,
}

/// The status of lanes after the last iteration.
pub(super) fn finished(graph: &mut Graph, status: Value) -> Result<Value> {
    let running = graph.equal(status, RUNNING)?;
    let status = graph.select(running, EXHAUSTED, status)?;
    graph.as_type(status, DType::S32)
}

/// The status of lanes of which some changed: the first of the conditions that holds decides.
pub(super) fn decided(graph: &mut Graph, status: Value, conditions: &[(Value, i64)]) -> Result<Value> {
    let mut next = status;
    for &(condition, verdict) in conditions.iter().rev() {
        next = graph.select(condition, verdict, next)?;
    }
    let running = graph.equal(status, RUNNING)?;
    let next = graph.select(running, next, status)?;
    graph.as_type(next, DType::S32)
}

/// Whether iterations go on: some lane is running, and the limit is not reached.
pub(super) fn goes_on(graph: &mut Graph, trips: Value, status: Value, maxiter: usize) -> Result<Value> {
    let running = graph.equal(status, RUNNING)?;
    let limit = i64::try_from(maxiter).unwrap_or(i64::MAX).min(i64::from(i32::MAX));
    is_open(graph, trips, running, limit)
}

/// Whether a loop goes on: a mask holds for some lane, and the limit is not reached.
pub(super) fn is_open(graph: &mut Graph, trips: Value, mask: Value, limit: i64) -> Result<Value> {
    let may_go_on = graph.less(trips, limit)?;
    let any = graph.any(mask, Axes::All, false)?;
    graph.logical_and(may_go_on, any)
}

/// A counter of each lane, with one more where the mask holds.
pub(super) fn counted(graph: &mut Graph, counter: Value, mask: Value) -> Result<Value> {
    let one = graph.as_type(mask, DType::S32)?;
    graph.add(counter, one)
}

/// A number for each lane.
pub(super) fn numbers(graph: &mut Graph, lanes: usize, dtype: DType, number: f64) -> Result<Value> {
    graph.full(Shape::new(&[lanes]), dtype, number)
}

/// A counter for each lane.
pub(super) fn counters(graph: &mut Graph, lanes: usize, count: i64) -> Result<Value> {
    graph.full(Shape::new(&[lanes]), DType::S32, count)
}

/// A mask that holds for no lane.
pub(super) fn nobody(graph: &mut Graph, lanes: usize) -> Result<Value> {
    let zeros = counters(graph, lanes, 0)?;
    graph.not_equal(zeros, 0)
}

/// A mask that holds for each lane.
pub(super) fn everybody(graph: &mut Graph, lanes: usize) -> Result<Value> {
    let zeros = counters(graph, lanes, 0)?;
    graph.equal(zeros, 0)
}

/// The greatest magnitudes, NaN where an element is NaN.
pub(super) fn greatest(graph: &mut Graph, x: Value) -> Result<Value> {
    let magnitudes = graph.abs(x)?;
    graph.reduce_max(magnitudes, 1, false)
}

/// Whether all elements are finite.
pub(super) fn all_finite(graph: &mut Graph, x: Value) -> Result<Value> {
    let finite = graph.isfinite(x)?;
    graph.all(finite, 1, false)
}

/// The Euclidean norms, of which no square overflows or vanishes.
pub(super) fn norm(graph: &mut Graph, x: Value) -> Result<Value> {
    let most = greatest(graph, x)?;
    let scaled = divided(graph, x, most)?;
    let norm = vectors::norm(graph, scaled)?;
    let product = graph.multiply(most, norm)?;
    let zero = graph.equal(most, 0)?;
    graph.select(zero, most, product)
}

/// Vectors divided by a number of each lane, which counts as 1 where it is 0.
pub(super) fn divided(graph: &mut Graph, x: Value, by: Value) -> Result<Value> {
    let zero = graph.equal(by, 0)?;
    let by = graph.select(zero, 1, by)?;
    let by = vectors::spread(graph, by, graph.ty(x).shape.rank())?;
    graph.divide(x, by)
}
