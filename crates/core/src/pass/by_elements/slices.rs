//! Slices of what is computed: only what they select is computed, and right where it is read.
//!
//! The rule: a value that nothing but slices read is not written to memory if all that they select takes no more than
//! [`MOST_AGAIN`] cheap instructions per element to compute again. Windows that do not overlap, and pieces, take none.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::super::{finish, rebuild};
use super::{Cut, FEW, one, push, slice, users};
use crate::error::Result;
use crate::graph::{Graph, Value, Values};
use crate::op::{ElementWise, Op, OpClass, Primitive};
use crate::region::Region;

/// The most cheap instructions that may be computed again for an element. To write and to read it takes about as long
/// from the second cache.
const MOST_AGAIN: f64 = 8.0;

/// The most slices of a value.
const MOST_CUTS: usize = 16;

/// The region with computations of slices, if it has slices of computations.
pub(super) fn moved(region: &Region) -> Result<Option<Region>> {
    let nodes = region.graph().nodes();
    if !nodes.iter().any(|node| Cut::of(node).is_some_and(|_| is_computed(region.graph(), node.inputs[0]))) {
        return Ok(None);
    }
    let found = Found::of(region);
    if found.cuts.is_empty() {
        return Ok(None);
    }
    let mut known: FxHashMap<(Value, Cut), Value> = FxHashMap::default();
    let mut new_values: Vec<Values> = vec![Values::new(); nodes.len()];
    let new = rebuild(region, |graph, position, node, inputs| {
        let cut = Cut::of(node).filter(|_| found.cuts.contains_key(&node.inputs[0].node));
        let made = if let Some(cut) = cut {
            let mut moving = Moving { region, found: &found, new_values: &new_values, known: &mut known };
            let value = moving.sliced(graph, node.inputs[0], &cut)?;
            one(super::named(graph, value, &node.outputs[0])?)
        } else {
            graph.push_typed(node.op.clone(), inputs, node.outputs.clone())?
        };
        new_values[position].clone_from(&made);
        Ok(made)
    })?;
    Ok(Some(finish("by_elements", region, new)))
}

/// The nodes that are computed slice by slice, with all slices of each.
struct Found {
    cuts: FxHashMap<u32, FxHashSet<Cut>>,
}

impl Found {
    fn of(region: &Region) -> Found {
        let graph = region.graph();
        let users = users(region);
        let is_result: FxHashSet<u32> = region.results().iter().map(|result| result.node).collect();
        let mut found = Found { cuts: FxHashMap::default() };
        // What is computed again for each element of the slices, with what was moved before.
        let mut again: FxHashMap<u32, f64> = FxHashMap::default();
        for (position, node) in graph.nodes().iter().enumerate().rev() {
            let at = position as u32;
            let value = Value { node: at, output: 0 };
            if !is_computed(graph, value) || is_result.contains(&at) || users[position].is_empty() {
                continue;
            }
            let ty = &node.outputs[0];
            let mut cuts: FxHashSet<Cut> = FxHashSet::default();
            let mut total = 0.0f64;
            let is_sliced = users[position].iter().all(|&user| {
                let other = &graph.nodes()[user as usize];
                if let Some(cut) = Cut::of(other) {
                    cuts.insert(cut);
                    return true;
                }
                let Some(own) = found.cuts.get(&user) else { return false };
                cuts.extend(own.iter().cloned());
                total = total.max(again[&user]);
                other.outputs[0].shape.sizes() == ty.shape.sizes()
            });
            if !is_sliced || cuts.len() > MOST_CUTS || ty.size() < FEW || !has_plain_operands(graph, value) {
                continue;
            }
            let selected: usize = cuts.iter().map(Cut::size).sum();
            let more = (selected as f64 / ty.size() as f64 - 1.0).max(0.0);
            let leaves = node.inputs.iter().filter(|input| graph.ty(**input).size() == ty.size()).count();
            total += more * (cost(&node.op) + leaves.saturating_sub(1) as f64);
            if total <= MOST_AGAIN {
                found.cuts.insert(at, cuts);
                again.insert(at, total);
            }
        }
        found
    }
}

/// Whether a value is that of an op on each element.
fn is_computed(graph: &Graph, value: Value) -> bool {
    element_wise(&graph.node(value).op).is_some()
}

/// The op if it computes each element of its result from one of each operand.
pub(super) fn element_wise(op: &Op) -> Option<ElementWise> {
    let OpClass::Primitive(Primitive::ElementWise(op)) = op.class() else { return None };
    match op {
        ElementWise::Unary(_)
        | ElementWise::Binary(_)
        | ElementWise::AsType(_)
        | ElementWise::Select
        | ElementWise::Clip => Some(op),
        ElementWise::Bitcast(_) => None,
    }
}

/// Whether slices of all operands are views or single elements: not numbers that are made where they are read in order.
fn has_plain_operands(graph: &Graph, value: Value) -> bool {
    let sizes = graph.ty(value).shape.sizes();
    graph.node(value).inputs.iter().all(|&input| {
        let ty = graph.ty(input);
        if let Op::Iota { .. } | Op::Eye { .. } = graph.node(input).op {
            return false;
        }
        ty.size() == 1 || ty.shape.sizes() == sizes
    })
}

/// The cheap instructions that an element of an op takes.
fn cost(op: &Op) -> f64 {
    element_wise(op).map_or(1.0, |op| op.cost().instructions() as f64)
}

struct Moving<'a> {
    region: &'a Region,
    found: &'a Found,
    new_values: &'a [Values],
    known: &'a mut FxHashMap<(Value, Cut), Value>,
}

impl Moving<'_> {
    /// A slice of an old value in the new graph. Chains of ops are gone through without recursion.
    fn sliced(&mut self, graph: &mut Graph, value: Value, cut: &Cut) -> Result<Value> {
        let old = self.region.graph();
        let mut stack = vec![(value, false)];
        while let Some((value, is_ready)) = stack.pop() {
            let key = (value, cut.clone());
            if self.known.contains_key(&key) {
                continue;
            }
            let node = old.node(value);
            if !self.found.cuts.contains_key(&value.node) {
                let new = self.new_values[value.node as usize][value.output as usize];
                // A single element is read by all.
                let made = if old.ty(value).size() > 1 { slice(graph, new, cut)? } else { new };
                self.known.insert(key, made);
                continue;
            }
            if !is_ready {
                stack.push((value, true));
                stack.extend(node.inputs.iter().map(|&input| (input, false)));
                continue;
            }
            let inputs = node.inputs.iter().map(|input| self.known[&(*input, cut.clone())]);
            let inputs: SmallVec<[Value; 3]> = inputs.collect();
            let made = push(graph, node.op.clone(), &inputs)?;
            self.known.insert(key, made);
        }
        Ok(self.known[&(value, cut.clone())])
    }
}
