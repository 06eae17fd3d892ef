//! A user's function on vectors, one for each lane, with its derivatives.

use std::sync::Arc;

use crate::builder::{BuildCreate, BuildElementwise, BuildShape, Start};
use crate::dtype::DType;
use crate::error::Result;
use crate::grad::region::{self, Draft};
use crate::grad::vjp_region;
use crate::graph::{Graph, Value};
use crate::jvp::{jvp_region, tangent_type};
use crate::region::Region;
use crate::shape::{Shape, TensorType};
use crate::solvers::coordinates::Coordinates;

/// A function from unknowns and captures to results, each one vector for each lane.
pub(super) struct Function<'a> {
    /// The inputs are the unknowns, then the captures.
    pub(super) region: Arc<Region>,
    pub(super) unknowns: &'a Coordinates,
    pub(super) results: Coordinates,
    lanes: usize,
}

impl<'a> Function<'a> {
    /// A function whose values have these many leading axes of lanes.
    pub(super) fn new(region: Arc<Region>, unknowns: &'a Coordinates, lanes: usize) -> Function<'a> {
        let results = Coordinates::new(region.result_types().cloned().collect(), lanes, false);
        Function { region, unknowns, results, lanes }
    }

    fn unknown_count(&self) -> usize {
        self.unknowns.types().len()
    }

    /// The unknowns and the captures as the inputs of a region.
    fn inputs(&self, graph: &mut Graph, captures: &[Value], x: Value) -> Result<Vec<Value>> {
        let mut inputs = self.unknowns.split(graph, x)?;
        inputs.extend(captures);
        Ok(inputs)
    }

    /// The results, in the dtype of the unknowns.
    pub(super) fn value(&self, graph: &mut Graph, captures: &[Value], x: Value) -> Result<Value> {
        let inputs = self.inputs(graph, captures, x)?;
        let results = region::inline(graph, &self.region, &inputs)?;
        let results = self.results.join(graph, &results)?;
        graph.as_type(results, self.unknowns.dtype())
    }

    /// The product of the transposed Jacobian at `x` and cotangents of the results.
    pub(super) fn pull(
        &self,
        graph: &mut Graph,
        captures: &[Value],
        x: Value,
        cotangents: Value,
    ) -> Result<Value> {
        let wrt: Vec<usize> = (0..self.unknown_count()).collect();
        let pullback = vjp_region(&self.region, &wrt)?;
        let mut inputs = self.inputs(graph, captures, x)?;
        let cotangents = self.results.split(graph, cotangents)?;
        let given = inputs.len();
        for (cotangent, ty) in cotangents.into_iter().zip(&pullback.inputs()[given..]) {
            let cotangent = region::convert(graph, cotangent, ty.dtype)?;
            inputs.push(graph.reshape_to(cotangent, ty.shape.clone())?);
        }
        let gradients = region::inline(graph, &pullback, &inputs)?;
        self.unknowns.join(graph, &gradients)
    }

    /// The region from tangents of the unknowns, then the unknowns and the captures, to the tangents of the results.
    /// Small floats are widened, so that a step is only rounded where it is added to the unknowns.
    pub(super) fn linearized(&self) -> Result<Arc<Region>> {
        let all: Vec<usize> = (0..self.unknown_count()).collect();
        let of: Vec<usize> = (0..self.region.results().len()).collect();
        let push = jvp_region(&self.region, &all, &of)?;
        let tangents = widened(self.unknowns.types());
        let mut draft = Draft::new();
        let tangents: Vec<Value> = tangents.into_iter().map(|ty| draft.input(ty)).collect();
        let given: Vec<Value> = self.region.inputs().iter().map(|ty| draft.input(ty.clone())).collect();
        let mut arguments = given.clone();
        for (&tangent, ty) in tangents.iter().zip(&push.inputs()[given.len()..]) {
            arguments.push(region::convert(&mut draft.graph, tangent, ty.dtype)?);
        }
        let pushed = region::inline(&mut draft.graph, &push, &arguments)?;
        Ok(Arc::new(draft.close(tangents.len(), &pushed[of.len()..])?))
    }

    /// The Jacobians at `x`, `[lanes][results][unknowns]`, column by column.
    pub(super) fn jacobian(&self, graph: &mut Graph, captures: &[Value], x: Value) -> Result<Value> {
        let (lanes, n, m) = (self.unknowns.lanes(), self.unknowns.count(), self.results.count());
        let (dtype, widened) = (self.unknowns.dtype(), self.widened());
        let map = self.linearized()?;
        let state = [graph.constant(DType::S32, 0)?, graph.full(Shape::new(&[lanes, m, n]), dtype, 0)?];
        let given = self.inputs(graph, captures, x)?;
        let last = region::while_(
            graph,
            Some(n as u64),
            &state,
            &given,
            |graph, state, _| graph.less(state[0], n as i64),
            |graph, state, given| {
                let positions = graph.iota(Shape::new(&[lanes, n]), DType::S32, Some(1.into()))?;
                let here = graph.equal(positions, state[0])?;
                let unit = graph.as_type(here, dtype)?;
                let mut arguments = widened.split(graph, unit)?;
                arguments.extend(given);
                let column = region::inline(graph, &map, &arguments)?;
                let column = self.results.join(graph, &column)?;
                let column = graph.new_axis(column, 2, None)?;
                let starts = [Start::Index(0), Start::Index(0), Start::Value(state[0])];
                Ok(vec![graph.add(state[0], 1)?, graph.put_slice(state[1], &starts, column)?])
            },
        )?;
        Ok(last[1])
    }

    /// The region of the gradient of half the squared norm of the results.
    pub(super) fn gradient_of_squares(&self) -> Result<Arc<Region>> {
        let wrt: Vec<usize> = (0..self.unknown_count()).collect();
        let pullback = vjp_region(&self.region, &wrt)?;
        let mut draft = Draft::new();
        let inputs: Vec<Value> = self.region.inputs().iter().map(|ty| draft.input(ty.clone())).collect();
        let residuals = region::inline(&mut draft.graph, &self.region, &inputs)?;
        let mut arguments = inputs;
        let given = arguments.len();
        for (residual, ty) in residuals.into_iter().zip(&pullback.inputs()[given..]) {
            arguments.push(region::convert(&mut draft.graph, residual, ty.dtype)?);
        }
        let gradient = region::inline(&mut draft.graph, &pullback, &arguments)?;
        Ok(Arc::new(draft.close(self.region.parameter_count(), &gradient)?))
    }

    /// The coordinates of tangents of the unknowns.
    pub(super) fn widened(&self) -> Coordinates {
        Coordinates::new(widened(self.unknowns.types()), self.lanes, false)
    }
}

fn widened(types: &[TensorType]) -> Vec<TensorType> {
    let widen = |ty: &TensorType| {
        let tangent = tangent_type(ty);
        TensorType { dtype: DType::F32.merge(tangent.dtype), shape: tangent.shape }
    };
    types.iter().map(widen).collect()
}
