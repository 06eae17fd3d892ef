//! Which node is in which stage.

use super::role::{Role, role};
use crate::graph::{Graph, Node, Value, Values};
use crate::region::Region;

/// The nodes of a region dealt to stages, one stage after the other.
pub(super) struct Cuts<'r> {
    graph: &'r Graph,
    /// The stage of each node that is in one.
    stage_of: Vec<Option<usize>>,
    /// The effect before each effect: the later one must not be in an earlier stage.
    before: Vec<Option<usize>>,
    /// What each stage was made to compute, which is first among its outputs.
    targets: Vec<Values>,
}

/// The finished deal. What is in no stage is a parameter, written in the program, or needed by nobody.
pub(super) struct Deal {
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

    /// The nodes that a region's results need, and those with effects, each after its operands and after the effects
    /// before it: in the order in which a walk from the first result on meets them, operands from left to right. What
    /// only effects need follows.
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

    /// A stage ends that computes a node's operands, and where the node has an effect whatever has one before it.
    pub fn end_before(&mut self, position: usize) {
        let operands = &self.graph.nodes()[position].inputs;
        let nodes = operands.iter().map(|value| value.node as usize).chain(self.before[position]);
        self.end_stage(nodes.collect(), operands);
    }

    /// A stage ends that computes a node.
    pub fn end_after(&mut self, position: usize) {
        self.end_stage(vec![position], &self.graph.outputs(position));
    }

    /// A stage ends that computes some nodes, with whatever they need and no stage has; some values are first among
    /// its outputs. Where all of that is there already nothing happens.
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

    /// The last stage computes all that is left of what is needed. There is one, though it may have nothing to do, and
    /// a cut after which nothing is left to compute is none.
    pub fn finish(mut self, order: &[usize]) -> Deal {
        self.end_stage(order.to_vec(), &[]);
        if self.targets.is_empty() {
            self.targets.push(Values::new());
        }
        Deal { stage_of: self.stage_of, targets: self.targets }
    }
}

/// Whether a node is an op that a stage computes.
pub(super) fn is_op(node: &Node) -> bool {
    match role(&node.op) {
        Role::Computes | Role::Whole => true,
        Role::Input | Role::Written => false,
    }
}
