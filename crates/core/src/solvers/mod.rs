//! Solutions of linear systems whose matrix is a region: a function that multiplies by it.
//!
//! The unknowns are values of any shapes. The algorithms see them as one vector for each lane, an independent system:
//! vectors are of shape `[lanes][n]`, and numbers, such as norms, of shape `[lanes]`. All lanes iterate together until each
//! has ended.
//!
//! The result is wrapped in an [`ImplicitOp`]: derivatives are those of the solution, not of the iterations.

mod bicgstab;
mod cg;
pub(crate) mod coordinates;
mod dense;
mod gmres;
pub(crate) mod iteration;
pub(crate) mod vectors;

use std::sync::Arc;

use crate::builder::{BuildCreate, BuildElementwise, Builder};
use crate::dtype::DType;
use crate::error::Result;
use crate::grad::region::{self, Draft};
use crate::graph::{Graph, Value, Values};
use crate::op::{ImplicitOp, LinearMethod, LinearSolver, Op};
use crate::region::Region;
use crate::scalar::Number;
use crate::shape::{Shape, TensorType};
use coordinates::Coordinates;

/// A linear system without its right-hand side. The inputs of its regions are the unknowns, then shared captures.
pub(crate) struct LinearSystem<'a> {
    /// How it is solved.
    pub solver: &'a LinearSolver,
    /// See [`ImplicitOp::lanes`].
    pub lanes: usize,
    /// Whether the map is linear over complex numbers.
    pub holomorphic: bool,
    /// Multiplies by the matrix: the results have the types of the unknowns.
    pub map: &'a Arc<Region>,
    /// Multiplies by an approximate inverse of the matrix.
    pub preconditioner: Option<&'a Arc<Region>>,
}

/// A solution.
pub(crate) struct Solution {
    /// The unknowns, whose derivatives are implicit.
    pub values: Values,
    /// For each lane, 0 where it is solved, else the number of iterations, as s32. `None` for a factorization.
    pub info: Option<Value>,
}

/// What becomes of a lane that was not solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsolved {
    /// Its last iterate is the result.
    Keep,
    /// The result is NaN.
    Nan,
}

impl LinearSystem<'_> {
    /// Adds the solution for a right-hand side to a graph. Iterations begin with `start`, or with zeros.
    pub(crate) fn solve(
        &self,
        graph: &mut Graph,
        rhs: &[Value],
        start: Option<&[Value]>,
        captures: &[Value],
        unsolved: Unsolved,
    ) -> Result<Solution> {
        let types: Vec<TensorType> = rhs.iter().map(|&value| graph.ty(value).clone()).collect();
        let coordinates = Coordinates::new(types, self.lanes, self.holomorphic);
        let b = coordinates.join(graph, rhs)?;
        let problem =
            Problem { coordinates: &coordinates, map: self.map, preconditioner: self.preconditioner };
        let (x, info) = if coordinates.is_empty() {
            (b, Some(graph.full(Shape::new(&[coordinates.lanes()]), DType::S32, 0)?))
        } else if self.solver.method == LinearMethod::Dense {
            (dense::solve(graph, &problem, captures, b)?, None)
        } else {
            let start = start.map(|start| coordinates.join(graph, start)).transpose()?;
            let (x, info) = iteration::run(graph, &problem, self.solver, captures, b, start)?;
            let x = match unsolved {
                Unsolved::Keep => x,
                Unsolved::Nan => {
                    let solved = graph.equal(info, 0)?;
                    let nan = graph.constant(coordinates.dtype(), Number::Float(f64::NAN))?;
                    vectors::choose(graph, solved, x, nan)?
                }
            };
            (x, Some(info))
        };
        let found = coordinates.split(graph, x)?;
        Ok(Solution { values: self.wrap(graph, &found, rhs, captures)?, info })
    }

    /// Values that are the zero of `map(values) - rhs`.
    fn wrap(&self, graph: &mut Graph, values: &[Value], rhs: &[Value], captures: &[Value]) -> Result<Values> {
        let all: Vec<Value> = captures.iter().chain(rhs).copied().collect();
        let types: Vec<TensorType> =
            values.iter().chain(&all).map(|&value| graph.ty(value).clone()).collect();
        let condition = with_inputs(&types, values.len(), |graph, inputs| {
            let (own, rhs) = inputs.split_at(values.len() + captures.len());
            let images = region::inline(graph, self.map, own)?;
            images.into_iter().zip(rhs).map(|(image, &b)| graph.subtract(image, b)).collect()
        })?;
        let extended = |preconditioner: &Arc<Region>| {
            with_inputs(&types, values.len(), |graph, inputs| {
                region::inline(graph, preconditioner, &inputs[..values.len() + captures.len()])
            })
        };
        let op = ImplicitOp {
            values: values.len(),
            lanes: self.lanes,
            solver: self.solver.clone(),
            holomorphic: self.holomorphic,
            condition,
            preconditioner: self.preconditioner.map(extended).transpose()?,
        };
        let operands: Values = values.iter().chain(&all).copied().collect();
        Ok(graph.emit(Op::Implicit(op), &operands)?.into_iter().collect())
    }
}

/// The solution of the linear system of a condition's derivative, NaN where it is not found. The inputs of its regions are
/// the unknowns, then the inputs of the condition, which are `given`; `linearized` makes them of the condition and of the
/// preconditioner.
pub(crate) fn solve_derivative(
    graph: &mut Graph,
    op: &ImplicitOp,
    rhs: &[Value],
    given: &[Value],
    linearized: impl Fn(&Region) -> Result<Arc<Region>>,
) -> Result<Values> {
    let map = linearized(&op.condition)?;
    let preconditioner = op.preconditioner.as_deref().map(linearized).transpose()?;
    let system = LinearSystem {
        solver: &op.solver,
        lanes: op.lanes,
        holomorphic: op.holomorphic,
        map: &map,
        preconditioner: preconditioner.as_ref(),
    };
    Ok(system.solve(graph, rhs, None, given, Unsolved::Nan)?.values)
}

/// A region of these inputs, whose results have the types of its parameters.
pub(crate) fn with_inputs(
    types: &[TensorType],
    parameters: usize,
    body: impl FnOnce(&mut Graph, &[Value]) -> Result<Values>,
) -> Result<Arc<Region>> {
    let mut draft = Draft::new();
    let inputs: Vec<Value> = types.iter().map(|ty| draft.input(ty.clone())).collect();
    let results = body(&mut draft.graph, &inputs)?;
    let fitted = results.into_iter().zip(types).map(|(result, ty)| {
        let result = region::convert(&mut draft.graph, result, ty.dtype)?;
        draft.graph.emit_one(Op::Reshape { shape: ty.shape.clone() }, &[result])
    });
    let fitted = fitted.collect::<Result<Values>>()?;
    Ok(Arc::new(draft.close(parameters, &fitted)?))
}

/// A system in coordinates.
pub(crate) struct Problem<'a> {
    pub(crate) coordinates: &'a Coordinates,
    pub(crate) map: &'a Region,
    pub(crate) preconditioner: Option<&'a Arc<Region>>,
}

impl Problem<'_> {
    /// The product of the matrix and a vector.
    pub(crate) fn apply(&self, graph: &mut Graph, captures: &[Value], x: Value) -> Result<Value> {
        self.call(graph, self.map, captures, x)
    }

    /// An approximate solution for a right-hand side: the right-hand side itself without a preconditioner.
    fn precondition(&self, graph: &mut Graph, captures: &[Value], r: Value) -> Result<Value> {
        match self.preconditioner {
            Some(preconditioner) => self.call(graph, preconditioner, captures, r),
            None => Ok(r),
        }
    }

    /// `b - A x`.
    fn residual(&self, graph: &mut Graph, captures: &[Value], b: Value, x: Value) -> Result<Value> {
        let image = self.apply(graph, captures, x)?;
        graph.subtract(b, image)
    }

    fn call(&self, graph: &mut Graph, region: &Region, captures: &[Value], x: Value) -> Result<Value> {
        let mut arguments = self.coordinates.split(graph, x)?;
        arguments.extend(captures);
        let results = region::inline(graph, region, &arguments)?;
        self.coordinates.join(graph, &results)
    }
}
