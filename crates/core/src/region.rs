//! A closed graph: parameters, then captures, to results. Functions, branches and loop bodies are regions.

use std::fmt;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::graph::{Graph, Node, Values};
use crate::op::Op;
use crate::shape::TensorType;

/// A closed graph with a cached structural hash; immutable.
///
/// Inputs are numbered: first the parameters, which the caller or the op supplies, then the captures, which
/// are values of the surrounding graph. An unused input may have no node.
#[derive(Clone)]
pub struct Region {
    graph: Graph,
    inputs: Vec<TensorType>,
    parameters: usize,
    results: Values,
    hash: u64,
    effects: bool,
}

impl Region {
    /// Closes a graph. `inputs` are the types of parameters and captures together.
    ///
    /// # Panics
    /// When a parameter node's index or type disagrees with `inputs`: a bug of the caller.
    pub fn new(graph: Graph, inputs: Vec<TensorType>, parameters: usize, results: Values) -> Region {
        assert!(parameters <= inputs.len(), "more parameters than inputs");
        for node in graph.nodes() {
            if let Op::Parameter { index, ty } = &node.op {
                assert_eq!(inputs.get(*index), Some(ty), "parameter {index}");
            }
        }
        let mut hasher = FxHasher::default();
        (&graph, &inputs, parameters, &results).hash(&mut hasher);
        let effects = graph.nodes().iter().any(|node| node.op.has_effect());
        Region { graph, inputs, parameters, results, hash: hasher.finish(), effects }
    }

    /// The graph, the types of parameters and captures, the number of parameters, and the results.
    pub fn into_parts(self) -> (Graph, Vec<TensorType>, usize, Values) {
        (self.graph, self.inputs, self.parameters, self.results)
    }

    /// The same region with another list of captures: `positions[i]` is the new position of capture `i`.
    ///
    /// # Panics
    /// When a capture has no position, or one of another type: a bug of the caller.
    pub fn with_captures(self, positions: &[usize], captures: &[TensorType]) -> Region {
        assert_eq!(positions.len(), self.capture_count(), "a position for each capture");
        let (mut graph, mut inputs, parameters, results) = self.into_parts();
        let is_identity = positions.iter().copied().eq(0..positions.len());
        if !is_identity {
            graph.renumber_parameters(|index| match index.checked_sub(parameters) {
                Some(capture) => parameters + positions[capture],
                None => index,
            });
        }
        inputs.truncate(parameters);
        inputs.extend_from_slice(captures);
        Region::new(graph, inputs, parameters, results)
    }

    /// The nodes.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The types of parameters and captures.
    pub fn inputs(&self) -> &[TensorType] {
        &self.inputs
    }

    /// The types of the parameters: the inputs without the captures.
    pub fn parameters(&self) -> &[TensorType] {
        &self.inputs[..self.parameter_count()]
    }

    /// The types of the captures: the last inputs.
    pub fn captures(&self) -> &[TensorType] {
        &self.inputs[self.parameter_count()..]
    }

    /// The number of parameters among the inputs.
    pub fn parameter_count(&self) -> usize {
        self.parameters
    }

    /// The number of captures among the inputs.
    pub fn capture_count(&self) -> usize {
        self.inputs.len() - self.parameters
    }

    /// The result values.
    pub fn results(&self) -> &Values {
        &self.results
    }

    /// The types of the results.
    pub fn result_types(&self) -> impl ExactSizeIterator<Item = &TensorType> {
        self.results.iter().map(|&value| self.graph.ty(value))
    }

    /// The structural hash: equal for equal regions, independent of locations.
    pub fn structural_hash(&self) -> u64 {
        self.hash
    }

    /// Whether running the region has observable effects other than its results.
    pub fn has_effects(&self) -> bool {
        self.effects
    }

    /// The number of nodes here and in all nested regions.
    pub fn total_nodes(&self) -> usize {
        let inner =
            |node: &Node| -> usize { node.op.regions().iter().map(|region| region.total_nodes()).sum() };
        self.graph.len() + self.graph.nodes().iter().map(inner).sum::<usize>()
    }
}

impl PartialEq for Region {
    fn eq(&self, other: &Region) -> bool {
        self.hash == other.hash
            && self.parameters == other.parameters
            && self.inputs == other.inputs
            && self.results == other.results
            && self.graph == other.graph
    }
}

impl Eq for Region {}

impl Hash for Region {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Region({} inputs, {} nodes)", self.inputs.len(), self.graph.len())
    }
}
