//! Assigns nodes to stages.

use super::role::{Role, role};
use crate::graph::{Graph, Node, Value, Values};
use crate::region::Region;

/// The assignment of a region's nodes to stages, one stage after the other.
pub(super) struct Cuts<'r> {
    graph: &'r Graph,
    /// The stage of each assigned node.
    stage_of: Vec<Option<usize>>,
    /// The previous effect of each effect: the later one must not be in an earlier stage.
    before: Vec<Option<usize>>,
    /// The values for which each stage was made, which come first among its outputs.
    targets: Vec<Values>,
}

/// The finished assignment. A node without a stage is a parameter, a constant, or unused.
pub(super) struct StageAssignment {
    pub stage_of: Vec<Option<usize>>,
    pub targets: Vec<Values>,
}

impl<'r> Cuts<'r> {
    pub fn new(region: &'r Region) -> Cuts<'r> {
        let graph = region.graph();
        let mut before = vec![None; graph.len()];
        let mut last = None;
        for (position, node) in graph.nodes().iter().enumerate() {
            if node.op.has_effect() {
                before[position] = last.replace(position);
            }
        }
        Cuts { graph, stage_of: vec![None; graph.len()], before, targets: Vec::new() }
    }

    /// The nodes that a region's results need, and those with effects, each after its operands and after
    /// previous effects. They are in depth-first order from the first result, operands from left to right.
    /// Nodes that only effects need come last.
    pub fn order(&self, region: &Region) -> Vec<usize> {
        let nodes = self.graph.nodes();
        let effects = (0..nodes.len()).filter(|&position| nodes[position].op.has_effect());
        let roots = region.results().iter().map(|value| value.node as usize).chain(effects);
        let mut order = Vec::with_capacity(nodes.len());
        let mut seen = vec![false; nodes.len()];
        for root in roots {
            let mut stack = vec![(root, 0)];
            while let Some((position, next)) = stack.pop() {
                if seen[position] {
                    continue;
                }
                let inputs = &nodes[position].inputs;
                let operand = inputs.get(next).map(|value| value.node as usize);
                let operand =
                    operand.or_else(|| if next == inputs.len() { self.before[position] } else { None });
                match operand {
                    Some(operand) => {
                        stack.push((position, next + 1));
                        stack.push((operand, 0));
                    }
                    None => {
                        seen[position] = true;
                        order.push(position);
                    }
                }
            }
        }
        order
    }

    /// Ends a stage that computes a node's operands, and for a node with an effect also the previous effect.
    pub fn end_before(&mut self, position: usize) {
        let operands = &self.graph.nodes()[position].inputs;
        let nodes = operands.iter().map(|value| value.node as usize).chain(self.before[position]);
        self.end_stage(nodes.collect(), operands);
    }

    /// Ends a stage that computes a node.
    pub fn end_after(&mut self, position: usize) {
        self.end_stage(vec![position], &self.graph.outputs(position));
    }

    /// Ends a stage that computes some nodes, and all that they need and no earlier stage has. The targets
    /// come first among its outputs. Without new nodes nothing happens.
    pub fn end_stage(&mut self, mut stack: Vec<usize>, targets: &[Value]) {
        let stage = self.targets.len();
        let mut is_empty = true;
        while let Some(position) = stack.pop() {
            let node = &self.graph.nodes()[position];
            if self.stage_of[position].is_some() || !is_op(node) {
                continue;
            }
            self.stage_of[position] = Some(stage);
            is_empty = false;
            stack.extend(node.inputs.iter().map(|value| value.node as usize));
            stack.extend(self.before[position]);
        }
        if !is_empty {
            self.targets.push(targets.into());
        }
    }

    /// Assigns all remaining nodes to the last stage. There is at least one stage, possibly empty, and a cut
    /// without nodes after it is ignored.
    pub fn finish(mut self, order: &[usize]) -> StageAssignment {
        self.end_stage(order.to_vec(), &[]);
        if self.targets.is_empty() {
            self.targets.push(Values::new());
        }
        StageAssignment { stage_of: self.stage_of, targets: self.targets }
    }
}

/// Whether a node is an op that a stage computes.
pub(super) fn is_op(node: &Node) -> bool {
    match role(&node.op) {
        Role::Computes | Role::Whole => true,
        Role::Input | Role::CopiedConstant => false,
    }
}
