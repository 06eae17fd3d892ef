//! The builder that adds nodes to a graph.

use smallvec::SmallVec;

use super::Builder;
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::location::Location;
use crate::op::Op;
use crate::pass::simplify;
use crate::shape::TensorType;

impl Builder for Graph {
    type V = Value;

    fn ty(&self, value: &Value) -> TensorType {
        Graph::ty(self, *value).clone()
    }

    fn emit(&mut self, op: Op, operands: &[Value]) -> Result<SmallVec<[Value; 1]>> {
        if let Some(value) = simplify::at_construction(self, &op, operands)? {
            return Ok(SmallVec::from_elem(value, 1));
        }
        Ok(self.push(op, operands)?.into_iter().collect())
    }

    fn relocate(&mut self, location: Option<Location>) -> Option<Location> {
        self.set_location(location)
    }
}
