//! What a nest reads from memory, and the axes that follow from it.

use defn_core::graph::{Graph, Value};
use defn_core::op::Op as GraphOp;
use rustc_hash::FxHashMap;

use super::build::Part;
use super::domain::{Axes, Domain, Sizes};
use super::passes::Passes;
use crate::compiler::cluster::{Clusters, Role};
use crate::kernels::StridedView;

/// What a nest reads from memory.
pub(super) struct Reads {
    pub(super) inputs: Vec<(Value, StridedView)>,
    /// The input of each value and view, by whether it is read once for each group.
    pub(super) known: FxHashMap<(Value, StridedView, bool), usize>,
    /// Whether the domain has groups of several elements.
    pub(super) is_grouped: bool,
    /// For each input whether it is read once for each group.
    is_of_groups: Vec<bool>,
}

impl Reads {
    /// What nodes of a nest read that it does not compute.
    pub(super) fn new(graph: &Graph, clusters: &Clusters, passes: &Passes, domain: &Domain) -> Reads {
        let mut reads = Reads {
            inputs: Vec::new(),
            known: FxHashMap::default(),
            is_grouped: domain.reduced > 1,
            is_of_groups: Vec::new(),
        };
        let own: FxHashMap<usize, Part> = passes.nodes.iter().copied().collect();
        for &(position, part) in &passes.nodes {
            let node = &graph.nodes()[position];
            for &input in &node.inputs {
                let seen = clusters.seen(graph, input);
                let base = seen.base.node as usize;
                if own.contains_key(&base) || is_generated(graph, clusters, base) {
                    continue;
                }
                let is_of_groups = part == Part::Rows && reads.is_grouped;
                let sizes = domain_of(graph, position, part);
                let key = (seen.base, seen.walk(sizes), is_of_groups);
                if !reads.known.contains_key(&key) {
                    reads.known.insert(key.clone(), reads.inputs.len());
                    reads.inputs.push((key.0, key.1));
                    reads.is_of_groups.push(is_of_groups);
                }
            }
        }
        reads
    }

    /// The axes of the domain.
    pub(super) fn sizes(&self, domain: &Domain) -> Option<Sizes> {
        let mut axes = Axes::new(domain.elements());
        axes.divide(domain.inner);
        axes.divide(domain.inner * domain.reduced);
        for ((_, view), is_of_groups) in self.inputs.iter().zip(&self.is_of_groups) {
            if *is_of_groups { axes.add_of_groups(view, domain) } else { axes.add(view) }
        }
        axes.sizes()
    }
}

/// The sizes that a node's operands are read in.
pub(super) fn domain_of(graph: &Graph, position: usize, part: Part) -> &[usize] {
    let node = &graph.nodes()[position];
    match part {
        Part::Fold(_) => graph.ty(node.inputs[0]).shape.sizes(),
        Part::Elements | Part::Rows => node.outputs[0].shape.sizes(),
    }
}

/// Whether a value is made where it is read.
pub(super) fn is_generated(graph: &Graph, clusters: &Clusters, base: usize) -> bool {
    let op = &graph.nodes()[base].op;
    if let GraphOp::Constant(_) = op {
        return true;
    }
    if let GraphOp::Iota { .. } = op { matches!(clusters.roles[base], Role::Generated) } else { false }
}
