//! Zeros and minima of functions, which are regions.
//!
//! The unknowns and the results are values of any shapes. The algorithms see them as one vector for each lane, an independent
//! problem. All lanes iterate together until each has ended: with a status that says why.
//!
//! The unknowns found are wrapped in an [`ImplicitOp`]: derivatives are those of the zero or the minimum, not of the
//! iterations. Where a lane has not converged they are NaN.

mod damped;
mod function;
mod state;
mod step;

use std::sync::Arc;

use crate::builder::{BuildControl, BuildCreate, BuildElementwise, Builder};
use crate::error::Result;
use crate::grad::region;
use crate::graph::{Graph, Value, Values};
use crate::op::{ImplicitOp, LinearSolver, Op};
use crate::region::Region;
use crate::scalar::Number;
use crate::shape::{Shape, TensorType};
use crate::solvers::coordinates::Coordinates;
use crate::solvers::{vectors, with_inputs};
use function::Function;
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
        let ended = if unknowns.is_empty() || function.results.is_empty() {
            trivial(graph, x, &unknowns)?
        } else {
            self.iterate(graph, &function, captures, x)?
        };
        let found = unknowns.split(graph, ended.x)?;
        let x = self.wrap(graph, &function, &found, captures, ended.status)?;
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
    ) -> Result<Ended> {
        let direction = match self.search {
            Search::Newton => Direction::Lu,
            Search::Krylov(restart) => Direction::Krylov { restart },
        };
        damped::run(graph, function, direction, &self.limits, captures, x)
    }

    /// The unknowns as the zero of a condition, which is NaN in lanes that have not converged.
    fn wrap(
        &self,
        graph: &mut Graph,
        function: &Function<'_>,
        found: &[Value],
        captures: &[Value],
        status: Value,
    ) -> Result<Values> {
        let converged = graph.equal(status, 0)?;
        let dtype = function.unknowns.dtype();
        let (one, nan) = (graph.constant(dtype, 1)?, graph.constant(dtype, Number::Float(f64::NAN))?);
        let factor = graph.select(converged, one, nan)?;
        let operands: Values = found.iter().chain(captures).chain([&factor]).copied().collect();
        let types: Vec<TensorType> = operands.iter().map(|&value| graph.ty(value).clone()).collect();
        let condition = with_inputs(&types, found.len(), |graph, inputs| {
            let (factor, inputs) = inputs.split_last().expect("the factor is an input");
            let results = region::inline(graph, self.function, inputs)?;
            let zeros = function.unknowns.join(graph, &results)?;
            let zeros = vectors::scale(graph, *factor, zeros)?;
            Ok(function.unknowns.split(graph, zeros)?.into_iter().collect())
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

/// Where there are no unknowns or no results.
fn trivial(graph: &mut Graph, x: Value, unknowns: &Coordinates) -> Result<Ended> {
    let lanes = unknowns.lanes();
    let none = state::counters(graph, lanes, 0)?;
    let gradient_norm = graph.full(Shape::new(&[lanes]), unknowns.dtype(), 0)?;
    Ok(Ended { x, status: none, iterations: none, evaluations: none, gradient_norm })
}
