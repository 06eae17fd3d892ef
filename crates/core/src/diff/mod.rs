//! The difference of two graphs.

mod align;
mod text;

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::form;
use crate::graph::{Graph, Node, Value};
use crate::op::{Op, Outputs};
use crate::print;
use crate::region::Region;
use crate::shape::TensorType;
use crate::stage::role::{Role, role};

/// The difference of two regions. Its text has a line with `-` for each node that only the old one has, and
/// one with `+` for each node that only the new one has, as in the IR text. Differences inside a node follow
/// its line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// The numbers of parameters, where they differ.
    pub parameters: Option<(usize, usize)>,
    /// Inputs whose types differ, and those that only one region has.
    pub inputs: Vec<InputChange>,
    /// Nodes, in the order of the new graph; a removed node comes at its old position.
    pub nodes: Vec<Change>,
    /// The `return` lines, where they return different values.
    pub results: Option<(String, String)>,
    /// The number of nodes that both have, without parameters.
    pub equal: usize,
}

/// An input that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputChange {
    /// Its position among parameters and captures.
    pub index: usize,
    /// Its type before, if it was there.
    pub old: Option<TensorType>,
    /// Its type now, if it is there.
    pub new: Option<TensorType>,
}

/// A node that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Only the old graph has it.
    Removed(Line),
    /// Only the new graph has it.
    Added(Line),
    /// Both have it, with differences.
    Changed {
        /// The old node.
        old: Line,
        /// The new one.
        new: Line,
        /// The aspects that differ.
        aspects: Vec<Aspect>,
        /// The regions of the node that differ, by name.
        inside: Vec<(&'static str, Difference)>,
    },
}

/// A node as in its graph's IR text, without the elements of tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The position of the node in its graph.
    pub node: usize,
    /// The text.
    pub text: String,
}

/// An aspect in which a node differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aspect {
    /// Its op: another op on the same operands replaces it.
    Op,
    /// Its attributes.
    Attributes,
    /// The types of its outputs.
    Types,
    /// Its operands.
    Operands,
    /// The regions inside it.
    Regions,
}

impl Difference {
    /// Whether nothing differs: both have the same nodes on the same values, possibly in another order where
    /// the order cannot be observed.
    pub fn is_empty(&self) -> bool {
        self.parameters.is_none() && self.inputs.is_empty() && self.nodes.is_empty() && self.results.is_none()
    }
}

/// Computes the difference of two regions.
///
/// Nodes are matched by a longest common subsequence of computations. Between matched neighbours they are
/// matched by a longest common subsequence of ops, then by name, then by operands and types. Nodes without
/// effects are also matched where they moved. Matched nodes are compared by attributes, types and matched
/// operands, so that a change is reported once and not again for all its users. Locations are ignored.
///
/// ```
/// use defn_core::diff::diff;
/// use defn_core::region::Region;
/// let with = |number| {
///     Region::from_text(&format!("defn-ir 1
///         (f32) {{
///           %0 = parameter {{index: 0}} : f32
///           %1 = constant {{value: {number}}} : f32
///           %2 = multiply %0 %1 : f32
///           return %2
///         }}"))
/// };
/// let difference = diff(&with("2.0")?, &with("3.0")?);
/// assert_eq!(difference.to_string(), "\
/// - %1 = constant {value: 2.0} : f32
/// + %1 = constant {value: 3.0} : f32
/// ");
/// # Ok::<(), defn_core::Error>(())
/// ```
pub fn diff(old: &Region, new: &Region) -> Difference {
    if old == new {
        let equal = old.graph().nodes().iter().filter(|node| !is_input(node)).count();
        return Difference { equal, ..Difference::default() };
    }
    let pairing = NodeMatching::new(old.graph(), new.graph());
    let count = old.inputs().len().max(new.inputs().len());
    let inputs = (0..count)
        .map(|index| InputChange {
            index,
            old: old.inputs().get(index).cloned(),
            new: new.inputs().get(index).cloned(),
        })
        .filter(|input| input.old != input.new)
        .collect();
    let (nodes, equal) = pairing.changes();
    let same_results = pairing.same_values(old.results(), new.results());
    let results = (!same_results).then(|| (text::returned(old.results()), text::returned(new.results())));
    let counts = (old.parameter_count(), new.parameter_count());
    let parameters = (counts.0 != counts.1).then_some(counts);
    Difference { parameters, inputs, nodes, results, equal }
}

fn is_input(node: &Node) -> bool {
    role(&node.op) == Role::Input
}

/// Assigns the same numbers to equal nodes of all graphs.
#[derive(Default)]
struct NodeNumbering<'g> {
    /// By op and output types, regions included.
    ops: FxHashMap<(&'g Op, &'g Outputs), usize>,
    /// By the op's number and the operands' numbers.
    computations: FxHashMap<(usize, SmallVec<[(usize, u32); 3]>), usize>,
}

impl<'g> NodeNumbering<'g> {
    /// For each node, a number of its whole computation from the inputs, and a number of its op alone.
    fn of(&mut self, graph: &'g Graph) -> (Vec<usize>, Vec<usize>) {
        let (mut computations, mut ops): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        for node in graph.nodes() {
            let next = self.ops.len();
            let op = *self.ops.entry((&node.op, &node.outputs)).or_insert(next);
            let operands = node.inputs.iter().map(|value| (computations[value.node as usize], value.output));
            let next = self.computations.len();
            computations.push(*self.computations.entry((op, operands.collect())).or_insert(next));
            ops.push(op);
        }
        (computations, ops)
    }
}

/// The matching between the nodes of two graphs.
struct NodeMatching<'g> {
    old: &'g Graph,
    new: &'g Graph,
    /// For each new node, its old one.
    old_of: Vec<Option<usize>>,
    /// For each old node, its new one.
    new_of: Vec<Option<usize>>,
}

impl<'g> NodeMatching<'g> {
    fn new(old: &'g Graph, new: &'g Graph) -> NodeMatching<'g> {
        let mut pairing =
            NodeMatching { old, new, old_of: vec![None; new.len()], new_of: vec![None; old.len()] };
        let mut numbers = NodeNumbering::default();
        let (old_ids, new_ids) = (numbers.of(old), numbers.of(new));
        let nodes = |graph: &Graph| -> Vec<usize> {
            (0..graph.len()).filter(|&position| !is_input(&graph.nodes()[position])).collect()
        };
        let (old_nodes, new_nodes) = (nodes(old), nodes(new));
        pairing.pair_listed(&old_nodes, &new_nodes, &[(&old_ids.0, &new_ids.0), (&old_ids.1, &new_ids.1)]);
        pairing.pair_moved(&old_nodes, &new_nodes);
        pairing
    }

    /// Matches nodes by a longest common subsequence of their first numbers, and the nodes between matches by
    /// the next numbers. Without further numbers it matches by name.
    fn pair_listed(&mut self, old: &[usize], new: &[usize], numbers: &[(&Vec<usize>, &Vec<usize>)]) {
        let Some(((old_ids, new_ids), rest)) = numbers.split_first() else {
            return self.pair_by_name(old, new);
        };
        let listed =
            |nodes: &[usize], ids: &[usize]| -> Vec<usize> { nodes.iter().map(|&at| ids[at]).collect() };
        let pairs = align::align(&listed(old, old_ids), &listed(new, new_ids));
        let (mut old_from, mut new_from) = (0, 0);
        for &(old_at, new_at) in &pairs {
            self.pair_listed(&old[old_from..old_at], &new[new_from..new_at], rest);
            self.pair(old[old_at], new[new_at]);
            (old_from, new_from) = (old_at + 1, new_at + 1);
        }
        self.pair_listed(&old[old_from..], &new[new_from..], rest);
    }

    fn pair(&mut self, old: usize, new: usize) {
        self.new_of[old] = Some(new);
        self.old_of[new] = Some(old);
    }

    /// Matches nodes of the same name in order, without crossings, and the nodes between them by operands.
    fn pair_by_name(&mut self, old: &[usize], new: &[usize]) {
        let mut by_name: FxHashMap<&str, VecDeque<usize>> = FxHashMap::default();
        for (index, &position) in new.iter().enumerate() {
            by_name.entry(form::name(&self.new.nodes()[position].op)).or_default().push_back(index);
        }
        let (mut old_from, mut new_from) = (0, 0);
        for (old_at, &position) in old.iter().enumerate() {
            let Some(candidates) = by_name.get_mut(form::name(&self.old.nodes()[position].op)) else {
                continue;
            };
            while candidates.front().is_some_and(|&index| index < new_from) {
                candidates.pop_front();
            }
            if let Some(new_at) = candidates.pop_front() {
                self.pair_by_operands(&old[old_from..old_at], &new[new_from..new_at]);
                self.pair(position, new[new_at]);
                (old_from, new_from) = (old_at + 1, new_at + 1);
            }
        }
        self.pair_by_operands(&old[old_from..], &new[new_from..]);
    }

    /// Matches nodes that compute something else of the same type from the same values, in one pass over both
    /// lists. If two nodes do not match, the old one is skipped, unless more new ones are left.
    fn pair_by_operands(&mut self, mut old: &[usize], mut new: &[usize]) {
        while let ([old_first, old_rest @ ..], [new_first, new_rest @ ..]) = (old, new) {
            let (before, after) = (&self.old.nodes()[*old_first], &self.new.nodes()[*new_first]);
            if before.outputs == after.outputs && self.same_values(&before.inputs, &after.inputs) {
                self.pair(*old_first, *new_first);
                (old, new) = (old_rest, new_rest);
            } else if new.len() > old.len() {
                new = new_rest;
            } else {
                old = old_rest;
            }
        }
    }

    /// Matches the remaining nodes that compute the same from matched values.
    fn pair_moved(&mut self, old: &[usize], new: &[usize]) {
        let mut unmatched: FxHashMap<(&Op, &Outputs), Vec<usize>> = FxHashMap::default();
        for &position in old {
            let node = &self.old.nodes()[position];
            if self.new_of[position].is_none() && !node.op.has_effect() {
                unmatched.entry((&node.op, &node.outputs)).or_default().push(position);
            }
        }
        for &position in new {
            let node = &self.new.nodes()[position];
            if self.old_of[position].is_some() {
                continue;
            }
            let Some(candidates) = unmatched.get_mut(&(&node.op, &node.outputs)) else { continue };
            let same = |&old: &usize| self.same_values(&self.old.nodes()[old].inputs, &node.inputs);
            if let Some(index) = candidates.iter().position(same) {
                let old_position = candidates.remove(index);
                self.pair(old_position, position);
            }
        }
    }

    /// Whether two lists of values match. Inputs match by position.
    fn same_values(&self, old: &[Value], new: &[Value]) -> bool {
        let same = |(old, new): (&Value, &Value)| {
            let (old_op, new_op) = (&self.old.node(*old).op, &self.new.node(*new).op);
            if let (Op::Parameter { index: a, ty: _ }, Op::Parameter { index: b, ty: _ }) = (old_op, new_op) {
                return a == b;
            }
            old.output == new.output && self.new_of[old.node as usize] == Some(new.node as usize)
        };
        old.len() == new.len() && old.iter().zip(new).all(same)
    }

    /// The differences, and the number of equal nodes.
    fn changes(&self) -> (Vec<Change>, usize) {
        let (mut changes, mut equal) = (Vec::new(), 0);
        // For each new node, the old position of the next node that has one.
        let mut follower = vec![self.old.len(); self.new.len() + 1];
        for position in (0..self.new.len()).rev() {
            follower[position] = self.old_of[position].unwrap_or(follower[position + 1]);
        }
        let mut next_old = 0;
        let removed_until = |changes: &mut Vec<Change>, next: &mut usize, end: usize| {
            for position in std::mem::replace(next, end.max(*next))..end {
                let node = &self.old.nodes()[position];
                if self.new_of[position].is_none() && !is_input(node) {
                    changes.push(Change::Removed(line(position, node)));
                }
            }
        };
        for (position, node) in self.new.nodes().iter().enumerate() {
            if is_input(node) {
                continue;
            }
            // Nodes removed at a position come before nodes added there.
            removed_until(&mut changes, &mut next_old, follower[position]);
            let Some(old) = self.old_of[position] else {
                changes.push(Change::Added(line(position, node)));
                continue;
            };
            let before = &self.old.nodes()[old];
            let (aspects, inside) = self.compare(before, node);
            if aspects.is_empty() {
                equal += 1;
            } else {
                changes.push(Change::Changed {
                    old: line(old, before),
                    new: line(position, node),
                    aspects,
                    inside,
                });
            }
        }
        removed_until(&mut changes, &mut next_old, self.old.len());
        (changes, equal)
    }

    fn compare(&self, old: &Node, new: &Node) -> (Vec<Aspect>, Vec<(&'static str, Difference)>) {
        let (mut aspects, mut inside) = (Vec::new(), Vec::new());
        let (old_form, new_form) = (form::form(&old.op), form::form(&new.op));
        let (old_regions, new_regions) = (old.op.regions(), new.op.regions());
        if form::name(&old.op) != form::name(&new.op) {
            aspects.push(Aspect::Op);
        } else if old.op != new.op {
            let without = |form: &form::Form| -> Vec<(&'static str, String)> {
                form.attributes().map(|(name, value)| (name, value.to_string())).collect()
            };
            if without(&old_form) != without(&new_form) {
                aspects.push(Aspect::Attributes);
            }
        }
        if old.outputs != new.outputs {
            aspects.push(Aspect::Types);
        }
        if !self.same_values(&old.inputs, &new.inputs) {
            aspects.push(Aspect::Operands);
        }
        let nothing = Arc::new(Region::new(Graph::new(), Vec::new(), 0, Default::default()));
        for at in 0..old_regions.len().max(new_regions.len()) {
            let name = new_form.regions.get(at).or(old_form.regions.get(at)).copied().unwrap_or_default();
            let region =
                |regions: &[&Arc<Region>]| regions.get(at).map_or(nothing.clone(), |&region| region.clone());
            let difference = diff(&region(&old_regions), &region(&new_regions));
            if !difference.is_empty() || old_regions.get(at).is_some() != new_regions.get(at).is_some() {
                inside.push((name, difference));
            }
        }
        if !inside.is_empty() {
            aspects.push(Aspect::Regions);
        }
        (aspects, inside)
    }
}

fn line(position: usize, node: &Node) -> Line {
    Line { node: position, text: print::line(position, node) }
}
