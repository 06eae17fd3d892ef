//! The expression graph: an append-only arena of typed nodes.
//!
//! A value is one output of a node. The order of the nodes is the order of evaluation. [`Graph::push`] takes
//! a node's types from `infer`, so that all types have a single source. Parameters
//! have the types that the caller gives; passes copy nodes whose types are known.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::error::Result;
use crate::form;
use crate::infer;
use crate::location::Location;
use crate::memory;
use crate::op::{Op, Outputs};
use crate::scalar::Scalar;
use crate::shape::TensorType;

/// One output of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value {
    /// The node's position in the arena.
    pub node: u32,
    /// The index among the node's outputs.
    pub output: u32,
}

/// Inputs of a node or results of a region.
pub type Values = SmallVec<[Value; 3]>;

/// An operation on values of earlier nodes. Comparisons ignore its location.
#[derive(Clone, Debug)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// Operands, then captures.
    pub inputs: Values,
    /// The types of the outputs.
    pub outputs: Outputs,
    /// The user's line that created the node.
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
        // Op and inputs determine the outputs.
        (&self.op, &self.inputs).hash(state);
    }
}

/// What becomes of a node when a graph is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It stays.
    Kept,
    /// Another one, that stays, is in its place.
    Merged(u32),
    /// Nothing that stays needs it.
    Dropped,
}

/// A graph requests memory for so many nodes at once: copies of smaller graphs cost more than the memory.
const FIRST_NODES: usize = 32;

/// An arena of nodes. Equality compares the nodes one by one, without their locations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Graph {
    nodes: Vec<Node>,
    /// State for construction, which is no part of the graph's value.
    build_state: BuildState,
}

/// A graph's state besides its nodes; it compares equal to any other.
#[derive(Clone, Debug, Default)]
struct BuildState {
    /// The location of new nodes.
    location: Option<Location>,
    /// The first node of each parameter index.
    parameters: FxHashMap<usize, Value>,
    /// The first node of each constant.
    constants: FxHashMap<Scalar, Value>,
}

impl BuildState {
    /// Notes the first node of each parameter and of each constant.
    fn note(&mut self, op: &Op, value: Value) {
        if let Op::Parameter { index, .. } = op {
            self.parameters.entry(*index).or_insert(value);
        } else if let Op::Constant(scalar) = op {
            self.constants.entry(*scalar).or_insert(value);
        }
    }
}

impl PartialEq for BuildState {
    fn eq(&self, _: &BuildState) -> bool {
        true
    }
}

impl Eq for BuildState {}

impl Hash for BuildState {
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

    /// The location of new nodes.
    pub fn location(&self) -> Option<&Location> {
        self.build_state.location.as_ref()
    }

    /// Sets the location of new nodes, and returns the previous one.
    pub fn set_location(&mut self, location: Option<Location>) -> Option<Location> {
        std::mem::replace(&mut self.build_state.location, location)
    }

    /// Adds a node without simplification, and returns its outputs.
    ///
    /// # Errors
    /// Those of `infer`, with the current location and the operands' types. Memory. The graph is then
    /// unchanged.
    pub fn push(&mut self, op: Op, inputs: &[Value]) -> Result<Values> {
        let types: SmallVec<[&TensorType; 4]> = inputs.iter().map(|&input| self.ty(input)).collect();
        let outputs = infer::infer(&op, &types).map_err(|error| {
            error.at(self.build_state.location.clone()).with_operands(types.iter().copied())
        })?;
        drop(types);
        self.push_typed(op, inputs.into(), outputs)
    }

    /// Adds a node whose types are known from another graph: passes copy the types that `infer` computed.
    ///
    /// # Errors
    /// Memory; the graph is then unchanged.
    pub(crate) fn push_typed(&mut self, op: Op, inputs: Values, outputs: Outputs) -> Result<Values> {
        memory::check(form::name(&op))?;
        if self.nodes.len() == self.nodes.capacity() {
            self.reserve(form::name(&op), self.nodes.len().max(FIRST_NODES))?;
        }
        Ok(self.push_reserved(op, inputs, outputs))
    }

    /// Requests the memory for this number of nodes more.
    ///
    /// # Errors
    /// Memory; `op` is named in it.
    pub(crate) fn reserve(&mut self, op: &'static str, count: usize) -> Result<()> {
        memory::grow(op, &mut self.nodes, count)
    }

    /// As [`Graph::push_typed`], where memory was reserved before.
    #[doc(hidden)]
    pub fn push_reserved(&mut self, op: Op, inputs: Values, outputs: Outputs) -> Values {
        let location = self.build_state.location.clone();
        let value = Value { node: self.nodes.len() as u32, output: 0 };
        self.build_state.note(&op, value);
        self.nodes.push(Node { op, inputs, outputs, location });
        self.outputs(self.nodes.len() - 1)
    }

    /// The first parameter node with an index, if there is one.
    pub fn find_parameter(&self, index: usize) -> Option<Value> {
        self.build_state.parameters.get(&index).copied()
    }

    /// The first constant node with the same bits, if there is one.
    pub fn find_constant(&self, scalar: Scalar) -> Option<Value> {
        self.build_state.constants.get(&scalar).copied()
    }

    /// Renumbers the inputs of the region.
    pub(crate) fn renumber_parameters(&mut self, number: impl Fn(usize) -> usize) {
        for node in &mut self.nodes {
            if let Op::Parameter { index, .. } = &mut node.op {
                *index = number(*index);
            }
        }
    }

    /// For each of the first `inputs` inputs, whether one of the results or an effect needs it.
    pub(crate) fn needed_inputs(&self, results: &[Value], inputs: usize) -> Vec<bool> {
        let mut live = vec![false; self.nodes.len()];
        results.iter().for_each(|result| live[result.node as usize] = true);
        let mut needed = vec![false; inputs];
        for (position, node) in self.nodes.iter().enumerate().rev() {
            if !live[position] && !node.op.has_effect() {
                continue;
            }
            node.inputs.iter().for_each(|input| live[input.node as usize] = true);
            if let Op::Parameter { index, .. } = &node.op {
                needed[*index] = true;
            }
        }
        needed
    }

    /// Renumbers the inputs of the region. The nodes of inputs without a new number become zeros.
    pub(crate) fn renumber_inputs(&mut self, positions: &[Option<usize>]) {
        self.build_state.parameters.clear();
        for (position, node) in self.nodes.iter_mut().enumerate() {
            let Op::Parameter { index, ty } = &mut node.op else { continue };
            match positions[*index] {
                Some(new_index) => {
                    *index = new_index;
                    let value = Value { node: position as u32, output: 0 };
                    self.build_state.parameters.entry(new_index).or_insert(value);
                }
                None => node.op = Op::Constant(Scalar::zero(ty.dtype)),
            }
        }
    }

    /// Goes through the nodes in order and leaves out some, as `fate` says of each: it gets the nodes that stay so far,
    /// the node's position, and the node with its inputs renumbered. Returns the new positions of all but dropped nodes.
    pub(crate) fn compact(
        &mut self,
        mut fate: impl FnMut(&[Node], usize, &Node) -> Fate,
    ) -> Result<Vec<Option<u32>>> {
        let mut positions: Vec<Option<u32>> = memory::with_capacity("compile", self.nodes.len())?;
        let mut kept = 0;
        self.build_state.parameters.clear();
        self.build_state.constants.clear();
        for position in 0..self.nodes.len() {
            let (before, rest) = self.nodes.split_at_mut(position);
            let node = &mut rest[0];
            for input in &mut node.inputs {
                // Only nodes that are dropped have inputs that were.
                if let Some(new_position) = positions[input.node as usize] {
                    input.node = new_position;
                }
            }
            positions.push(match fate(&before[..kept], position, node) {
                Fate::Kept => {
                    let value = Value { node: kept as u32, output: 0 };
                    self.build_state.note(&node.op, value);
                    self.nodes.swap(kept, position);
                    kept += 1;
                    Some(value.node)
                }
                Fate::Merged(other) => Some(other),
                Fate::Dropped => None,
            });
        }
        self.nodes.truncate(kept);
        Ok(positions)
    }

    /// Sets the location of the parameter nodes so far.
    pub(crate) fn locate_parameters(&mut self, location: &Location) {
        for node in &mut self.nodes {
            if let Op::Parameter { .. } = &node.op {
                node.location = Some(location.clone());
            }
        }
    }

    /// Adds an input of the future region.
    pub fn parameter(&mut self, index: usize, ty: TensorType) -> Value {
        let outputs = SmallVec::from_elem(ty.clone(), 1);
        self.push_reserved(Op::Parameter { index, ty }, Values::new(), outputs)[0]
    }
}
