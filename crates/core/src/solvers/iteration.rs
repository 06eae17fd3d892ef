//! What the iterative algorithms share: when they end, and that they do not end too early.
//!
//! The residuals that conjugate gradients and BiCGSTAB update drift from `b - A x`. So before a lane counts as solved its
//! residual is computed anew, and if that is still too large, the algorithm begins again with it. It does the same after a
//! breakdown. A lane that has made no progress from one such residual to the next has stagnated, and ends unsolved.

use super::{Problem, bicgstab, cg, gmres, vectors};
use crate::builder::{BuildCreate, BuildElementwise, BuildReduce};
use crate::dtype::DType;
use crate::error::Result;
use crate::grad::region::{self, Draft};
use crate::graph::{Graph, Value};
use crate::op::{LinearMethod, LinearSolver};
use crate::shape::{Axes, Shape, TensorType};

/// The tolerances and the right-hand side.
pub(super) struct Target {
    /// The right-hand sides.
    pub(super) b: Value,
    /// The norms of residuals that are small enough.
    pub(super) tolerance: Value,
}

/// The state of an algorithm after a step.
pub(super) struct Stepped {
    pub(super) x: Value,
    /// The residual and, for each lane, whether the step succeeded; `None` if the residual is to be computed.
    pub(super) residual: Option<(Value, Value)>,
    /// What the algorithm carries to its next step.
    pub(super) carried: Vec<Value>,
}

/// The part of the residual's norm that must remain at most from one computed residual to the next.
fn progress(method: LinearMethod) -> f64 {
    match method {
        LinearMethod::Cg | LinearMethod::Bicgstab | LinearMethod::Dense => 0.5,
        // Each cycle computes its residual.
        LinearMethod::Gmres { .. } => 0.999,
    }
}

/// What an algorithm carries to its first step, for a residual.
fn begin(graph: &mut Graph, method: LinearMethod, r: Value) -> Result<Vec<Value>> {
    match method {
        LinearMethod::Cg => cg::begin(graph, r),
        LinearMethod::Bicgstab => bicgstab::begin(graph, r),
        LinearMethod::Gmres { .. } => Ok(Vec::new()),
        LinearMethod::Dense => unreachable!("a factorization is no iteration"),
    }
}

/// A step from a solution, its residual and what is carried.
fn step(
    graph: &mut Graph,
    problem: &Problem<'_>,
    method: LinearMethod,
    captures: &[Value],
    target: &Target,
    (x, r, carried): (Value, Value, &[Value]),
) -> Result<Stepped> {
    match method {
        LinearMethod::Cg => cg::step(graph, problem, captures, x, r, carried),
        LinearMethod::Bicgstab => bicgstab::step(graph, problem, captures, x, r, carried),
        LinearMethod::Gmres { restart } => gmres::cycle(graph, problem, captures, target, x, r, restart),
        LinearMethod::Dense => unreachable!("a factorization is no iteration"),
    }
}

/// The vectors found, and for each lane 0 where its system is solved, else the number of iterations.
pub(crate) fn run(
    graph: &mut Graph,
    problem: &Problem<'_>,
    solver: &LinearSolver,
    captures: &[Value],
    b: Value,
    start: Option<Value>,
) -> Result<(Value, Value)> {
    let method = solver.method;
    let norm = vectors::norm(graph, b)?;
    let relative = graph.multiply(norm, solver.rtol.0)?;
    let tolerance = graph.max(relative, solver.atol.0)?;
    let zeros = graph.zeros_like(b)?;
    let (x, r) = match start {
        None => (zeros, b),
        Some(start) => {
            // The solution for 0 is exact, as no other right-hand side lets a tolerance be.
            let is_zero = graph.equal(norm, 0)?;
            let x = vectors::choose(graph, is_zero, zeros, start)?;
            (x, problem.residual(graph, captures, b, x)?)
        }
    };
    let first = vectors::norm(graph, r)?;
    let solved = graph.less_equal(first, tolerance)?;
    let open = graph.logical_not(solved)?;
    let is_finite = graph.isfinite(first)?;
    let active = graph.logical_and(open, is_finite)?;
    let trips = graph.constant(DType::S32, 0)?;
    let iterations = graph.full(Shape::new(&[problem.coordinates.lanes()]), DType::S32, 0)?;
    let mut state = vec![trips, x, r, active, solved, first, iterations];
    let fixed = state.len();
    state.extend(begin(graph, method, r)?);
    let limit = solver.maxiter.unwrap_or_else(|| problem.coordinates.count().saturating_mul(10));
    let limit = i32::try_from(limit).unwrap_or(i32::MAX);
    let mut all = captures.to_vec();
    all.extend([b, tolerance]);
    let given = captures.len();

    let last = region::while_(
        graph,
        None,
        &state,
        &all,
        |graph, state, _| {
            let may_go_on = graph.less(state[0], limit)?;
            let any = graph.any(state[3], Axes::All, false)?;
            graph.logical_and(may_go_on, any)
        },
        |graph, state, all| {
            let [trips, x, r, active, solved, verified, iterations] = state[..fixed] else {
                unreachable!("the state begins with these")
            };
            let (captures, target) = (&all[..given], Target { b: all[given], tolerance: all[given + 1] });
            let stepped = step(graph, problem, method, captures, &target, (x, r, &state[fixed..]))?;
            let (x, event, r) = accepted(graph, problem, captures, &target, active, x, &stepped)?;
            let norm = vectors::norm(graph, r)?;
            let is_small = graph.less_equal(norm, target.tolerance)?;
            let is_solved = graph.logical_and(event, is_small)?;
            let required = graph.multiply(verified, progress(method))?;
            let has_progress = graph.less(norm, required)?;
            let is_large = graph.logical_not(is_small)?;
            let goes_on = graph.logical_and(has_progress, is_large)?;
            let no_event = graph.logical_not(event)?;
            let goes_on = graph.logical_or(no_event, goes_on)?;
            let one = graph.as_type(active, DType::S32)?;
            let mut next = vec![graph.add(trips, 1)?, x, r];
            next.push(graph.logical_and(active, goes_on)?);
            next.push(graph.logical_or(solved, is_solved)?);
            next.push(vectors::choose(graph, event, norm, verified)?);
            next.push(graph.add(iterations, one)?);
            for (fresh, carried) in begin(graph, method, r)?.into_iter().zip(stepped.carried) {
                next.push(vectors::choose(graph, event, fresh, carried)?);
            }
            Ok(next)
        },
    )?;
    let (x, solved, iterations) = (last[1], last[4], last[6]);
    let iterations = graph.max(iterations, 1)?;
    let info = graph.select(solved, 0, iterations)?;
    Ok((x, graph.as_type(info, DType::S32)?))
}

/// The solution after a step; the lanes whose residual is computed, since they seem to be solved or broke down; and the
/// residual.
fn accepted(
    graph: &mut Graph,
    problem: &Problem<'_>,
    captures: &[Value],
    target: &Target,
    active: Value,
    before: Value,
    stepped: &Stepped,
) -> Result<(Value, Value, Value)> {
    let Some((r, succeeded)) = stepped.residual else {
        // A step that failed, as its norm shows, is undone.
        let norm = vectors::norm(graph, stepped.x)?;
        let is_finite = graph.isfinite(norm)?;
        let accepted = graph.logical_and(active, is_finite)?;
        let x = vectors::choose(graph, accepted, stepped.x, before)?;
        return Ok((x, active, problem.residual(graph, captures, target.b, x)?));
    };
    let norm = vectors::norm(graph, r)?;
    let is_finite = graph.isfinite(norm)?;
    let accepted = graph.logical_and(active, is_finite)?;
    let x = vectors::choose(graph, accepted, stepped.x, before)?;
    let is_small = graph.less_equal(norm, target.tolerance)?;
    let is_sound = graph.logical_and(succeeded, is_finite)?;
    let is_broken = graph.logical_not(is_sound)?;
    let event = graph.logical_or(is_small, is_broken)?;
    let event = graph.logical_and(active, event)?;

    let any = graph.any(event, Axes::All, false)?;
    let mut operands = vec![x, r, target.b];
    operands.extend(captures);
    let types: Vec<TensorType> = operands.iter().map(|&value| graph.ty(value).clone()).collect();
    let open = || {
        let mut draft = Draft::new();
        let inputs: Vec<Value> = types.iter().map(|ty| draft.input(ty.clone())).collect();
        (draft, inputs)
    };
    let (mut draft, inputs) = open();
    let computed = problem.residual(&mut draft.graph, &inputs[3..], inputs[2], inputs[0])?;
    let computed = draft.close(0, &[computed])?;
    let (draft, inputs) = open();
    let updated = draft.close(0, &[inputs[1]])?;
    let found = region::cond(graph, &[any], &operands, &[computed, updated])?[0];
    Ok((x, event, vectors::choose(graph, event, found, r)?))
}
