//! Minima by directions of Newton and quasi-Newton methods and a line search.

use super::direction::Curvature;
use super::objective::Objective;
use super::state::{self, CONVERGED, Ended, Limits, NONFINITE, RUNNING, STUCK};
use super::wolfe;
use crate::builder::{BuildCreate, BuildElementwise};
use crate::dtype::DType;
use crate::error::Result;
use crate::grad::region;
use crate::graph::{Graph, Value};
use crate::solvers::vectors;

/// What minimizes, and how it finds directions.
#[derive(Clone, Copy)]
pub(super) struct Method<'a> {
    pub(super) objective: &'a Objective<'a>,
    pub(super) curvature: Curvature,
}

/// A point, the number and the gradient there, and whether nothing is known of the curvature.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub(super) x: Value,
    pub(super) f: Value,
    pub(super) g: Value,
    pub(super) fresh: Value,
}

/// What a step found.
pub(super) struct Next {
    pub(super) found: wolfe::Found,
    /// The slope along the direction.
    slope: Value,
    /// What is known of the curvature, and whether that is nothing.
    pub(super) known: Vec<Value>,
    pub(super) fresh: Value,
    /// The lanes in which no length along a direction of known scale makes the number smaller.
    unfulfilled: Value,
    /// The lanes in which no step makes progress.
    stuck: Value,
}

impl Method<'_> {
    /// Iterates from `x` until each lane has ended.
    pub(super) fn run(
        self,
        graph: &mut Graph,
        limits: &Limits,
        captures: &[Value],
        x: Value,
    ) -> Result<Ended> {
        let Method { objective, curvature } = self;
        let lanes = objective.unknowns.lanes();
        let (f, g) = objective.evaluate(graph, captures, x)?;
        let start = state::counters(graph, lanes, RUNNING)?;
        let nonfinite = is_nonfinite(graph, f, g)?;
        let done = is_flat(graph, g, limits)?;
        let status = state::decided(graph, start, &[(nonfinite, NONFINITE), (done, CONVERGED)])?;
        let (none, one) = (state::counters(graph, lanes, 0)?, state::counters(graph, lanes, 1)?);
        let fresh = state::everybody(graph, lanes)?;
        let trips = graph.constant(DType::S32, 0)?;
        let mut carried = vec![trips, status, x, f, g, fresh, none, one];
        let fixed = carried.len();
        carried.extend(curvature.begin(graph, x)?);

        let last = region::while_(
            graph,
            None,
            &carried,
            captures,
            |graph, carried, _| state::goes_on(graph, carried[0], carried[1], limits.maxiter),
            |graph, carried, captures| {
                let &[trips, status, x, f, g, fresh, iterations, evaluations] = &carried[..fixed] else {
                    unreachable!("the state begins with these")
                };
                let running = graph.equal(status, RUNNING)?;
                let at = At { x, f, g, fresh };
                let next = self.advance(graph, captures, at, &carried[fixed..], (running, evaluations))?;
                let found = &next.found;
                let hidden = is_hidden(graph, x, (f, found.f), (g, found.g), &next)?;
                let nonfinite = is_nonfinite(graph, found.f, found.g)?;
                let done = is_flat(graph, found.g, limits)?;
                let conditions =
                    [(nonfinite, NONFINITE), (done, CONVERGED), (hidden, CONVERGED), (next.stuck, STUCK)];
                let mut state = vec![
                    graph.add(trips, 1)?,
                    state::decided(graph, status, &conditions)?,
                    vectors::choose(graph, running, found.x, x)?,
                    graph.select(running, found.f, f)?,
                    vectors::choose(graph, running, found.g, g)?,
                    next.fresh,
                    state::counted(graph, iterations, running)?,
                    found.evaluations,
                ];
                state.extend(next.known);
                Ok(state)
            },
        )?;
        Ok(Ended {
            x: last[2],
            status: state::finished(graph, last[1])?,
            iterations: last[6],
            evaluations: last[7],
            gradient_norm: state::greatest(graph, last[4])?,
        })
    }

    /// A step in the lanes of a mask.
    pub(super) fn advance(
        self,
        graph: &mut Graph,
        captures: &[Value],
        At { x, f, g, fresh }: At,
        known: &[Value],
        (running, evaluations): (Value, Value),
    ) -> Result<Next> {
        let Method { objective, curvature } = self;
        let lanes = objective.unknowns.lanes();
        let p = curvature.direction(graph, objective, captures, known, x, g)?;
        let steepest = graph.negate(g)?;
        let slope = vectors::dot(graph, g, p)?;
        let descends = graph.less(slope, 0)?;
        let (finite, bounded) = (state::all_finite(graph, p)?, graph.isfinite(slope)?);
        let usable = graph.logical_and(finite, bounded)?;
        let usable = graph.logical_and(usable, descends)?;
        let p = vectors::choose(graph, usable, p, steepest)?;
        let slope = vectors::dot(graph, g, p)?;
        let unscaled = if curvature.scales_itself() { state::nobody(graph, lanes)? } else { fresh };
        let rest = graph.logical_not(usable)?;
        let unscaled = graph.logical_or(unscaled, rest)?;
        let length = first_length(graph, unscaled, g)?;
        let begin = wolfe::Start { x, f, g, p, slope, length };
        let found = wolfe::search(graph, objective, captures, begin, running, evaluations)?;

        let moved = graph.logical_and(running, found.moved)?;
        let s = graph.subtract(found.x, x)?;
        let y = graph.subtract(found.g, g)?;
        let next = curvature.update(graph, known, (s, y), (moved, fresh))?;
        let failed = graph.logical_not(found.moved)?;
        let scaled = graph.logical_not(unscaled)?;
        let unfulfilled = graph.logical_and(failed, scaled)?;
        // What was kept of the curvature may mislead: once, the search begins again without it.
        let (again, stuck) = match curvature.scales_itself() {
            true => (state::nobody(graph, lanes)?, failed),
            false => (unfulfilled, graph.logical_and(failed, unscaled)?),
        };
        let known = curvature.restarted(graph, &next, again)?;
        Ok(Next { found, slope, known, fresh: again, unfulfilled, stuck })
    }
}

/// The first length to try: 1, and along a gradient of unknown scale at most that of a step of norm 1.
fn first_length(graph: &mut Graph, unscaled: Value, g: Value) -> Result<Value> {
    let norm = state::norm(graph, g)?;
    let norm = graph.max(norm, 1)?;
    let short = graph.reciprocal(norm)?;
    graph.select(unscaled, short, 1)
}

fn is_nonfinite(graph: &mut Graph, f: Value, g: Value) -> Result<Value> {
    let (value, gradient) = (graph.isfinite(f)?, state::all_finite(graph, g)?);
    let finite = graph.logical_and(value, gradient)?;
    graph.logical_not(finite)
}

fn is_flat(graph: &mut Graph, g: Value, limits: &Limits) -> Result<Value> {
    let most = state::greatest(graph, g)?;
    graph.less_equal(most, limits.gtol.0)
}

/// The part of the number that its change along all of the unknowns may be where an error of it hides a minimum: this power of
/// the epsilon.
const FLAT: f64 = 0.25;

/// The part of the number that a step may promise which no length fulfils: this power of the epsilon.
const UNFULFILLED: f64 = 0.5;

/// Whether the error of the number hides what is left. Either the slope promised less than rounding is, and the step made neither
/// the number nor the gradient smaller. Or no length along the direction makes the number smaller, and its slope promised little:
/// what a solver or an iteration computes has errors of its own. In both cases the gradient is small for such a number; far away
/// on a slope without an end it is not.
fn is_hidden(
    graph: &mut Graph,
    x: Value,
    (before, after): (Value, Value),
    (g, ahead): (Value, Value),
    next: &Next,
) -> Result<Value> {
    let epsilon = graph.ty(before).dtype.epsilon().to_f64();
    let magnitude = graph.abs(before)?;
    let promises_at_most = |graph: &mut Graph, part: f64| -> Result<Value> {
        let least = graph.multiply(magnitude, -part)?;
        graph.greater_equal(next.slope, least)
    };
    let resolved = promises_at_most(graph, wolfe::ROUNDING * epsilon)?;
    let same = graph.greater_equal(after, before)?;
    let (norm, norm_ahead) = (state::norm(graph, g)?, state::norm(graph, ahead)?);
    let steep = graph.greater_equal(norm_ahead, norm)?;
    let rounded = graph.logical_and(resolved, same)?;
    let rounded = graph.logical_and(rounded, steep)?;
    let little = promises_at_most(graph, epsilon.powf(UNFULFILLED))?;
    let unfulfilled = graph.logical_and(next.unfulfilled, little)?;
    let hidden = graph.logical_or(rounded, unfulfilled)?;
    let (widest, greatest) = (state::greatest(graph, x)?, state::greatest(graph, g)?);
    let change = graph.multiply(widest, greatest)?;
    let bound = graph.multiply(magnitude, epsilon.powf(FLAT))?;
    let flat = graph.less_equal(change, bound)?;
    graph.logical_and(hidden, flat)
}
