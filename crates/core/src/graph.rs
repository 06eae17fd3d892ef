//! The expression graph: an append-only arena of typed nodes.
//!
//! A value is one output of a node. The order of the nodes is the order of evaluation. Only [`Graph::push`]
//! makes a node, and it asks `infer` for the node's types, so that no node has a type of its own opinion.

use std::hash::{Hash, Hasher};

use smallvec::SmallVec;

use crate::error::Result;
use crate::infer;
use crate::location::Location;
use crate::op::{Op, Outputs};
use crate::shape::TensorType;

/// One output of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value {
    /// The node's position in the arena.
    pub node: u32,
    /// Which of the node's outputs.
    pub output: u32,
}

/// Inputs of a node or results of a region.
pub type Values = SmallVec<[Value; 3]>;

/// An operation on values of earlier nodes. Its location takes no part in comparisons.
#[derive(Clone, Debug)]
pub struct Node {
    /// What is computed.
    pub op: Op,
    /// From what: operands, then captures.
    pub inputs: Values,
    /// The types of the outputs.
    pub outputs: Outputs,
    /// The user's line that made the node.
    pub location: Option<Location>,
}

impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        self.op == other.op && self.inputs == other.inputs && self.outputs == other.outputs
    }
}

impl Eq for Node {}

impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The outputs follow from op and inputs.
        (&self.op, &self.inputs).hash(state);
    }
}

/// An arena of nodes. Equality compares the nodes one by one, without their locations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Graph {
    nodes: Vec<Node>,
    /// The location that new nodes get.
    location: CurrentLocation,
}

/// A location that compares equal to any other.
#[derive(Clone, Debug, Default)]
struct CurrentLocation(Option<Location>);

impl PartialEq for CurrentLocation {
    fn eq(&self, _: &CurrentLocation) -> bool {
        true
    }
}

impl Eq for CurrentLocation {}

impl Hash for CurrentLocation {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// Every node in order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node that computes a value.
    pub fn node(&self, value: Value) -> &Node {
        &self.nodes[value.node as usize]
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> &TensorType {
        &self.node(value).outputs[value.output as usize]
    }

    /// The outputs of the node at a position.
    pub fn outputs(&self, node: usize) -> Values {
        let count = self.nodes[node].outputs.len();
        (0..count).map(|output| Value { node: node as u32, output: output as u32 }).collect()
    }

    /// Sets the location that nodes made from now on get, and returns the one before.
    pub fn set_location(&mut self, location: Option<Location>) -> Option<Location> {
        std::mem::replace(&mut self.location.0, location)
    }

    /// Adds a node as it is, without simplification, and returns its outputs.
    ///
    /// # Errors
    /// Whatever `infer` has against the op on these operands; the error names the current location and
    /// the operands' types. The graph is then as before.
    pub fn push(&mut self, op: Op, inputs: &[Value]) -> Result<Values> {
        let types: SmallVec<[&TensorType; 4]> = inputs.iter().map(|&input| self.ty(input)).collect();
        let outputs = infer::infer(&op, &types).map_err(|error| {
            error.at(self.location.0.clone()).with_operands(types.iter().copied())
        })?;
        let location = self.location.0.clone();
        self.nodes.push(Node { op, inputs: inputs.into(), outputs, location });
        Ok(self.outputs(self.nodes.len() - 1))
    }

    /// Adds an input of the region that the graph will be.
    pub fn parameter(&mut self, index: usize, ty: TensorType) -> Value {
        let outputs = self.push(Op::Parameter { index, ty }, &[]);
        outputs.expect("a parameter has its type by declaration")[0]
    }
}
