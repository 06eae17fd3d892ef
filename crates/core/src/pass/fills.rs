//! Equal elements that loops use from outside: to make them where they are needed takes less time than to read them.

use super::{dce_owned, rebuild};
use crate::error::Result;
use crate::graph::{Graph, Value, Values};
use crate::op::{OnScalars, Op, WhileOp};
use crate::region::Region;

/// The region of a loop in which captures whose elements are all one constant are made anew. `graph` has what the loop
/// captures, and `state` parameters of the region come before.
///
/// # Errors
/// When memory does not suffice.
pub(super) fn with_fills(graph: &Graph, region: &Region, state: usize, captures: &[Value]) -> Result<Region> {
    let needs_memory = needing_memory(region);
    let chain_of = |index: usize| {
        let capture = index.checked_sub(state)?;
        fill(graph, captures[capture]).filter(|_| !needs_memory[index])
    };
    let has_fills = region.graph().nodes().iter().any(|node| {
        let Op::Parameter { index, .. } = node.op else { return false };
        chain_of(index).is_some()
    });
    if !has_fills {
        return Ok(region.clone());
    }
    let new = rebuild(region, |inner, _, node, inputs| {
        let chain = if let Op::Parameter { index, .. } = node.op { chain_of(index) } else { None };
        let Some(chain) = chain else {
            return inner.push_typed(node.op.clone(), inputs, node.outputs.clone());
        };
        let mut made = Values::new();
        for &position in chain.iter().rev() {
            let node = &graph.nodes()[position];
            made = inner.push_typed(node.op.clone(), made, node.outputs.clone())?;
        }
        Ok(made)
    })?;
    dce_owned(new)
}

/// For each input of a region whether something needs its elements in memory, where they would be written in each trip.
fn needing_memory(region: &Region) -> Vec<bool> {
    let nodes = region.graph().nodes();
    let mut needed = vec![false; region.inputs().len()];
    // The input that each node is, or is a view of.
    let mut origins: Vec<Option<usize>> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let origin = |input: &Value| origins[input.node as usize];
        let own = if let Op::Parameter { index, .. } = node.op {
            Some(index)
        } else if node.op.view().is_some() {
            node.inputs.first().and_then(origin)
        } else {
            let is_joined = |op: &Op| {
                let (Op::Concatenate { .. } | Op::Pad { .. }) = op else { return false };
                true
            };
            let reads_elements = match node.op.on_scalars() {
                OnScalars::ElementWise(_) => true,
                _ if is_joined(&node.op) => true,
                OnScalars::Input(_)
                | OnScalars::Constant(_)
                | OnScalars::Operand
                | OnScalars::Block(_)
                | OnScalars::Other => false,
            };
            if !reads_elements {
                node.inputs.iter().filter_map(origin).for_each(|input| needed[input] = true);
            }
            None
        };
        origins.push(own);
    }
    needed
}

/// The nodes from a value to the constant that all of its elements are.
fn fill(graph: &Graph, value: Value) -> Option<Vec<usize>> {
    let mut chain = vec![value.node as usize];
    loop {
        let node = &graph.nodes()[chain[chain.len() - 1]];
        if let Op::Constant(_) = node.op {
            return Some(chain);
        }
        let [input] = node.inputs[..] else { return None };
        node.op.view()?;
        chain.push(input.node as usize);
    }
}

/// A loop, and its operands, without the captures that neither region uses.
pub(super) fn without_unused(op: WhileOp, operands: Values) -> (WhileOp, Values) {
    let captures = &operands[op.state..];
    let mut is_used = vec![false; captures.len()];
    for node in [&op.cond, &op.body].into_iter().flat_map(|region| region.graph().nodes()) {
        if let Op::Parameter { index, .. } = node.op
            && let Some(capture) = index.checked_sub(op.state)
        {
            is_used[capture] = true;
        }
    }
    if !is_used.contains(&false) {
        return (op, operands);
    }
    let position = |capture: usize| is_used[..capture].iter().filter(|is_used| **is_used).count();
    let positions: Vec<usize> = (0..is_used.len()).map(position).collect();
    let kept = |at: usize| is_used[at];
    let types: Vec<_> = op.body.inputs()[op.state..].iter().enumerate().collect();
    let types: Vec<_> = types.into_iter().filter(|(at, _)| kept(*at)).map(|(_, ty)| ty.clone()).collect();
    let [cond, body] =
        [&op.cond, &op.body].map(|region| Region::clone(region).with_captures(&positions, &types).into());
    let captures = captures.iter().enumerate().filter(|(at, _)| kept(*at)).map(|(_, value)| *value);
    let operands = operands[..op.state].iter().copied().chain(captures).collect();
    (WhileOp { cond, body, ..op }, operands)
}
