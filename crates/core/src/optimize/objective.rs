//! A number to be minimized, with its gradient, as a function of vectors, one for each lane.

use std::sync::Arc;

use super::function::Function;
use crate::builder::{BuildElementwise, BuildShape};
use crate::error::Result;
use crate::grad::region::{self, Draft};
use crate::grad::value_and_grad;
use crate::graph::{Graph, Value};
use crate::region::Region;
use crate::shape::Shape;
use crate::solvers::coordinates::Coordinates;
use crate::solvers::vectors;

/// A number to be minimized.
pub(super) struct Objective<'a> {
    /// From the unknowns and captures to the number.
    number: &'a Region,
    /// From the unknowns and captures to the number and the direction of steepest ascent.
    region: Region,
    pub(super) unknowns: &'a Coordinates,
    lanes: usize,
}

impl<'a> Objective<'a> {
    /// A number whose values have these many leading axes of lanes.
    pub(super) fn new(
        function: &'a Region,
        unknowns: &'a Coordinates,
        lanes: usize,
    ) -> Result<Objective<'a>> {
        let wrt: Vec<usize> = (0..unknowns.types().len()).collect();
        let region = ascending(&value_and_grad(function, 0, &wrt)?)?;
        Ok(Objective { number: function, region, unknowns, lanes })
    }

    /// The region of the gradient alone.
    pub(super) fn gradient(&self) -> Result<Arc<Region>> {
        let mut draft = Draft::new();
        let inputs: Vec<Value> = self.region.inputs().iter().map(|ty| draft.input(ty.clone())).collect();
        let results = region::inline(&mut draft.graph, &self.region, &inputs)?;
        Ok(Arc::new(draft.close(self.region.parameter_count(), &results[1..])?))
    }

    /// The Hessians at `x`.
    pub(super) fn hessian(&self, graph: &mut Graph, captures: &[Value], x: Value) -> Result<Value> {
        Function::new(self.gradient()?, self.unknowns, self.lanes).jacobian(graph, captures, x)
    }

    /// The numbers.
    pub(super) fn value(&self, graph: &mut Graph, captures: &[Value], x: Value) -> Result<Value> {
        let inputs = self.inputs(graph, captures, x)?;
        let results = region::inline(graph, self.number, &inputs)?;
        self.numbers(graph, results[0])
    }

    /// The numbers and the gradients.
    pub(super) fn evaluate(&self, graph: &mut Graph, captures: &[Value], x: Value) -> Result<(Value, Value)> {
        let inputs = self.inputs(graph, captures, x)?;
        let results = region::inline(graph, &self.region, &inputs)?;
        Ok((self.numbers(graph, results[0])?, self.unknowns.join(graph, &results[1..])?))
    }

    fn inputs(&self, graph: &mut Graph, captures: &[Value], x: Value) -> Result<Vec<Value>> {
        let mut inputs = self.unknowns.split(graph, x)?;
        inputs.extend(captures);
        Ok(inputs)
    }

    fn numbers(&self, graph: &mut Graph, value: Value) -> Result<Value> {
        let numbers = graph.as_type(value, self.unknowns.dtype())?;
        graph.reshape_to(numbers, Shape::new(&[self.unknowns.lanes()]))
    }
}

/// A region of a number and its gradient, with the directions of steepest ascent in place of the gradient: the conjugates of
/// complex parts.
fn ascending(region: &Region) -> Result<Region> {
    let mut draft = Draft::new();
    let inputs: Vec<Value> = region.inputs().iter().map(|ty| draft.input(ty.clone())).collect();
    let mut results = region::inline(&mut draft.graph, region, &inputs)?;
    for gradient in &mut results[1..] {
        *gradient = vectors::conjugate(&mut draft.graph, *gradient)?;
    }
    draft.close(region.parameter_count(), &results)
}
