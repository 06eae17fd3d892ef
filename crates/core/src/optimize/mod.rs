//! Zeros and minima of functions, which are regions.
//!
//! The unknowns and the results are values of any shapes. The algorithms see them as one vector for each lane, an independent
//! problem. All lanes iterate together until each has ended: with a status that says why.
//!
//! The unknowns found are wrapped in an [`ImplicitOp`]: derivatives are those of the zero or the minimum, not of the
//! iterations. Where a lane has not converged they are NaN.

mod damped;
mod descent;
mod direction;
mod function;
mod marquardt;
mod objective;
mod state;
mod step;
mod wolfe;

use std::sync::Arc;

use crate::builder::{BuildControl, BuildCreate, BuildElementwise, BuildShape, Builder};
use crate::error::Result;
use crate::grad::region;
use crate::graph::{Graph, Value, Values};
use crate::op::{ImplicitOp, LinearSolver, Op};
use crate::region::Region;
use crate::scalar::Number;
use crate::shape::{Shape, TensorType};
use crate::solvers::coordinates::Coordinates;
use crate::solvers::{vectors, with_inputs};
use descent::{At, Method};
use direction::Curvature;
use function::Function;
use objective::Objective;
use state::Ended;
pub(crate) use state::Limits;
use step::Direction;

/// What is wanted of the unknowns, and how they are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// A zero, by Newton's method with the Jacobian.
    Newton,
    /// A zero, by Newton's method with products with the Jacobian, in cycles of this many.
    Krylov(usize),
    /// A minimum of a number, by BFGS.
    Bfgs,
    /// A minimum, by L-BFGS with this many of the last steps.
    Lbfgs(usize),
    /// A minimum, by Newton's method with the Hessian.
    NewtonMinimum,
    /// A minimum of the sum of squares of residuals, by the method of Levenberg and Marquardt.
    LevenbergMarquardt,
    /// A minimum of the sum of squares, by the method of Gauss and Newton.
    GaussNewton,
}

/// A problem: the inputs of the function are the unknowns, then captures.
pub(crate) struct Problem<'a> {
    pub(crate) search: Search,
    pub(crate) limits: Limits,
    /// The number of leading axes of lanes.
    pub(crate) lanes: usize,
    pub(crate) function: &'a Arc<Region>,
    /// Solves the linear systems of the derivative.
    pub(crate) derivative: LinearSolver,
}

/// What was found.
pub(crate) struct Found {
    /// The unknowns, with implicit derivatives.
    pub(crate) x: Values,
    /// The function's results there.
    pub(crate) results: Values,
    /// For each lane: 0 where it converged, 1 after the last allowed iteration, 2 where no step makes progress, 3 where a value
    /// is not finite.
    pub(crate) status: Value,
    pub(crate) iterations: Value,
    /// How often the function was evaluated.
    pub(crate) evaluations: Value,
    /// The greatest magnitude in the gradient of what decreases.
    pub(crate) gradient_norm: Value,
}

impl Problem<'_> {
    /// Adds the iterations from a start to a graph.
    pub(crate) fn solve(&self, graph: &mut Graph, start: &[Value], captures: &[Value]) -> Result<Found> {
        let types: Vec<TensorType> = start.iter().map(|&value| graph.ty(value).clone()).collect();
        let unknowns = Coordinates::new(types, self.lanes, false);
        let function = Function::new(self.function.clone(), &unknowns, self.lanes);
        let x = unknowns.join(graph, start)?;
        let (ended, condition) = if unknowns.is_empty() || function.results.is_empty() {
            (trivial(graph, x, &unknowns)?, None)
        } else {
            let (ended, condition) = self.iterate(graph, &function, captures, x)?;
            (ended, Some(condition))
        };
        let found = unknowns.split(graph, ended.x)?;
        let x = match condition {
            Some(condition) => self.wrap(graph, &unknowns, &condition, &found, captures, ended.status)?,
            None => found.into_iter().collect(),
        };
        let arguments: Vec<Value> = x.iter().chain(captures).copied().collect();
        Ok(Found {
            results: region::inline(graph, self.function, &arguments)?,
            x,
            status: ended.status,
            iterations: ended.iterations,
            evaluations: ended.evaluations,
            gradient_norm: graph.stop_grad(ended.gradient_norm)?,
        })
    }

    fn iterate(
        &self,
        graph: &mut Graph,
        function: &Function<'_>,
        captures: &[Value],
        x: Value,
    ) -> Result<(Ended, Arc<Region>)> {
        let zero = |graph: &mut Graph, direction: Direction| {
            damped::run(graph, function, direction, &self.limits, captures, x)
        };
        let minimum = |graph: &mut Graph, curvature: Curvature| {
            let objective = Objective::new(self.function, function.unknowns, self.lanes)?;
            let method = Method { objective: &objective, curvature };
            Ok((method.run(graph, &self.limits, captures, x)?, objective.gradient()?))
        };
        match self.search {
            Search::Newton => Ok((zero(graph, Direction::Lu)?, self.function.clone())),
            Search::Krylov(restart) => {
                Ok((zero(graph, Direction::Krylov { restart })?, self.function.clone()))
            }
            Search::Bfgs => minimum(graph, Curvature::Bfgs),
            Search::Lbfgs(history) => minimum(graph, Curvature::Lbfgs(history)),
            Search::NewtonMinimum => minimum(graph, Curvature::Newton),
            Search::LevenbergMarquardt => {
                let ended = marquardt::run(graph, function, &self.limits, captures, x)?;
                Ok((ended, function.gradient_of_squares()?))
            }
            Search::GaussNewton => Ok((zero(graph, Direction::Qr)?, function.gradient_of_squares()?)),
        }
    }

    /// The unknowns as the zero of a condition, which is NaN in lanes that have not converged.
    fn wrap(
        &self,
        graph: &mut Graph,
        unknowns: &Coordinates,
        condition: &Arc<Region>,
        found: &[Value],
        captures: &[Value],
        status: Value,
    ) -> Result<Values> {
        let converged = graph.equal(status, 0)?;
        let dtype = unknowns.dtype();
        let (one, nan) = (graph.constant(dtype, 1)?, graph.constant(dtype, Number::Float(f64::NAN))?);
        let factor = graph.select(converged, one, nan)?;
        let operands: Values = found.iter().chain(captures).chain([&factor]).copied().collect();
        let types: Vec<TensorType> = operands.iter().map(|&value| graph.ty(value).clone()).collect();
        let condition = with_inputs(&types, found.len(), |graph, inputs| {
            let (factor, inputs) = inputs.split_last().expect("the factor is an input");
            let results = region::inline(graph, condition, inputs)?;
            let zeros = unknowns.join(graph, &results)?;
            let zeros = vectors::scale(graph, *factor, zeros)?;
            Ok(unknowns.split(graph, zeros)?.into_iter().collect())
        })?;
        let op = ImplicitOp {
            values: found.len(),
            lanes: self.lanes,
            solver: self.derivative.clone(),
            holomorphic: false,
            condition,
            preconditioner: None,
        };
        Ok(graph.emit(Op::Implicit(op), &operands)?.into_iter().collect())
    }
}

/// One step of L-BFGS for a number.
pub(crate) struct LbfgsStep<'a> {
    /// The number: the inputs are the unknowns, then captures.
    pub(crate) function: &'a Arc<Region>,
    /// The number of leading axes of lanes.
    pub(crate) lanes: usize,
}

impl LbfgsStep<'_> {
    /// Adds the step to a graph: from the unknowns, the gradient there, what is known of the curvature and whether that is
    /// nothing, to what is added to the unknowns, and what is known then. Each has the axes of its lanes.
    pub(crate) fn take(
        &self,
        graph: &mut Graph,
        (unknowns, gradient): (&[Value], &[Value]),
        known: &[Value],
        captures: &[Value],
    ) -> Result<(Vec<Value>, Vec<Value>)> {
        let types: Vec<TensorType> = unknowns.iter().map(|&value| graph.ty(value).clone()).collect();
        let unknown = Coordinates::new(types, self.lanes, false);
        if unknown.is_empty() {
            return Ok((gradient.to_vec(), known.to_vec()));
        }
        let mut ascent = Vec::with_capacity(gradient.len());
        for &g in gradient {
            // Of a complex number the direction of steepest ascent is the conjugate.
            ascent.push(vectors::conjugate(graph, g)?);
        }
        let (x, g) = (unknown.join(graph, unknowns)?, unknown.join(graph, &ascent)?);
        let shapes: Vec<Shape> = known.iter().map(|&value| graph.ty(value).shape.clone()).collect();
        let mut flat = Vec::with_capacity(known.len());
        for (&value, shape) in known.iter().zip(&shapes) {
            let sizes: Vec<usize> = [&[unknown.lanes()], &shape.sizes()[self.lanes..]].concat();
            flat.push(graph.reshape_to(value, Shape::new(&sizes))?);
        }
        let (&fresh, pairs) = flat.split_last().expect("whether nothing is known stands last");
        let history = graph.ty(pairs[0]).shape.sizes()[1];

        let objective = Objective::new(self.function, &unknown, self.lanes)?;
        let method = Method { objective: &objective, curvature: Curvature::Lbfgs(history) };
        let at = At { x, f: objective.value(graph, captures, x)?, g, fresh };
        let everybody = state::everybody(graph, unknown.lanes())?;
        let evaluations = state::counters(graph, unknown.lanes(), 0)?;
        let next = method.advance(graph, captures, at, pairs, (everybody, evaluations))?;

        let step = graph.subtract(next.found.x, x)?;
        let mut known = Vec::with_capacity(shapes.len());
        for (value, shape) in next.known.into_iter().chain([next.fresh]).zip(shapes) {
            known.push(graph.reshape_to(value, shape)?);
        }
        Ok((unknown.split(graph, step)?, known))
    }
}

/// Where there are no unknowns or no results.
fn trivial(graph: &mut Graph, x: Value, unknowns: &Coordinates) -> Result<Ended> {
    let lanes = unknowns.lanes();
    let none = state::counters(graph, lanes, 0)?;
    let gradient_norm = graph.full(Shape::new(&[lanes]), unknowns.dtype(), 0)?;
    Ok(Ended { x, status: none, iterations: none, evaluations: none, gradient_norm })
}
