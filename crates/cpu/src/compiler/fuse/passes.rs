//! Passes over a row: which values are computed in which, and which are materialized for a later one.

use defn_core::graph::{Graph, Value};
use defn_core::op::{ElementCost, OnScalars};
use rustc_hash::{FxHashMap, FxHashSet};

use super::build::NodeRole;
use crate::compiler::fusion_groups::FusionGroups;

/// The most cheap instructions that computing a value again may take, in place of materializing it.
const MAX_RECOMPUTE_COST: usize = 4;

/// The nodes of a nest, in an order in which they can be computed.
pub(super) struct Passes {
    pub(super) nodes: Vec<(usize, NodeRole)>,
    /// For each node the pass that it is computed in: for reductions the one that reads, for values of rows the one
    /// that may read them.
    pass: FxHashMap<usize, usize>,
    pub(super) count: usize,
    /// The element-wise nodes that are materialized for a later pass.
    pub(super) materialized: Vec<usize>,
    /// What groups have that is read in another loop over them than it is computed in.
    kept: FxHashSet<usize>,
}

impl Passes {
    pub(super) fn new(graph: &Graph, fusion: &FusionGroups, nodes: Vec<(usize, NodeRole)>) -> Passes {
        let roles: FxHashMap<usize, NodeRole> = nodes.iter().copied().collect();
        let mut pass: FxHashMap<usize, usize> = FxHashMap::default();
        let mut cost: FxHashMap<usize, usize> = FxHashMap::default();
        let mut materialized = Vec::new();
        let mut kept = FxHashSet::default();
        let mut count = 1;
        let base = |input: Value| fusion.base(input).node as usize;
        for &(position, role) in &nodes {
            let inputs = &graph.nodes()[position].inputs;
            let own = |input: &Value| roles.get(&base(*input)).map(|role| (base(*input), *role));
            // A reduction's result is there one pass later.
            let ready = |(input, role): (usize, NodeRole)| match role {
                NodeRole::Elements | NodeRole::Rows => pass[&input],
                NodeRole::Reduction(_) | NodeRole::Across(_) => pass[&input] + 1,
            };
            let at = inputs.iter().filter_map(own).map(ready).max().unwrap_or(0);
            // What groups have before a pass is computed in one loop, behind the reductions of the pass before.
            let is_kept = |input: &(usize, NodeRole)| {
                input.1 != NodeRole::Elements && (role != NodeRole::Rows || ready(*input) != at)
            };
            kept.extend(inputs.iter().filter_map(own).filter(is_kept).map(|(input, _)| input));
            pass.insert(position, at);
            count = count.max(at + 1);
            if role == NodeRole::Rows {
                continue;
            }
            let mut total = instructions(graph, position);
            for (input, role) in inputs.iter().filter_map(own) {
                if role != NodeRole::Elements {
                    continue;
                }
                if pass[&input] < at && cost[&input] > MAX_RECOMPUTE_COST && !materialized.contains(&input) {
                    materialized.push(input);
                }
                // What is read twice counts twice, so that a long chain of such nodes has no finite cost.
                let added = if materialized.contains(&input) { 1 } else { cost[&input] };
                total = total.saturating_add(added);
            }
            cost.insert(position, total);
        }
        Passes { nodes, pass, count, materialized, kept }
    }

    pub(super) fn of(&self, position: usize) -> usize {
        self.pass[&position]
    }

    /// Whether what groups have of a node is read in another loop over them than it is computed in.
    pub(super) fn is_kept(&self, position: usize) -> bool {
        self.kept.contains(&position)
    }

    /// Whether a node must not be written over what is read: what groups have, because elements of other groups lie
    /// there; and what is written before a pass that reads elements again.
    pub(super) fn is_unaliasable(&self, position: usize) -> bool {
        let mut others = self.nodes.iter().filter(|(_, role)| *role != NodeRole::Rows);
        !self.nodes.contains(&(position, NodeRole::Elements))
            || others.any(|&(node, _)| self.of(node) > self.of(position))
    }
}

/// The cheap instructions that an op takes for an element.
pub(in super::super) fn instructions(graph: &Graph, position: usize) -> usize {
    let cost = match graph.nodes()[position].op.on_scalars() {
        OnScalars::ElementWise(op) => op.cost(),
        OnScalars::Block(_) => ElementCost::Costly,
        OnScalars::Input(_) | OnScalars::Constant(_) | OnScalars::Operand | OnScalars::Other => {
            ElementCost::Cheap
        }
    };
    cost.instructions()
}
