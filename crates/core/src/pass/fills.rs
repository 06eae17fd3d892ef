//! Equal elements that loops use from outside: to make them where they are needed takes less time than to read them.

use super::{dce_owned, rebuild};
use crate::builder::Builder;
use crate::error::Result;
use crate::graph::{Graph, Value, Values};
use crate::op::{OnScalars, Op, WhileOp};
use crate::region::Region;
use crate::scalar::Scalar;
use crate::shape::{AxisList, TensorType};

/// The region of a loop in which captures whose elements are all one constant are made anew. `graph` has what the loop
/// captures, and `state` parameters of the region come before.
///
/// # Errors
/// When memory does not suffice.
pub(super) fn with_fills(graph: &Graph, region: &Region, state: usize, captures: &[Value]) -> Result<Region> {
    let needs_memory = needing_memory(region);
    let fill_of = |op: &Op| {
        let Op::Parameter { index, .. } = *op else { return None };
        let capture = index.checked_sub(state).filter(|_| !needs_memory[index])?;
        fill(graph, captures[capture])
    };
    if !region.graph().nodes().iter().any(|node| fill_of(&node.op).is_some()) {
        return Ok(region.clone());
    }
    let new = rebuild(region, |inner, _, node, inputs| {
        let Some(scalar) = fill_of(&node.op) else {
            return inner.push_typed(node.op.clone(), inputs, node.outputs.clone());
        };
        let (value, shape) = (inner.scalar(scalar)?, node.outputs[0].shape.clone());
        if shape.rank() == 0 {
            return Ok(std::iter::once(value).collect());
        }
        inner.push(Op::Broadcast { shape, axes: AxisList::new() }, &[value])
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
            if !reads_elements(&node.op) {
                node.inputs.iter().filter_map(origin).for_each(|input| needed[input] = true);
            }
            None
        };
        origins.push(own);
    }
    needed
}

/// Whether an op reads its operands element by element, or joins them.
fn reads_elements(op: &Op) -> bool {
    if let Op::Concatenate { .. } | Op::Pad { .. } = op {
        return true;
    }
    match op.on_scalars() {
        OnScalars::ElementWise(_) => true,
        OnScalars::Input(_)
        | OnScalars::Constant(_)
        | OnScalars::Operand
        | OnScalars::Block(_)
        | OnScalars::Other => false,
    }
}

/// The constant that all elements of a value are, if it is a view of one.
fn fill(graph: &Graph, value: Value) -> Option<Scalar> {
    let mut node = graph.node(value);
    while let ([input], Some(_)) = (&node.inputs[..], node.op.view()) {
        node = graph.node(*input);
    }
    if let Op::Constant(scalar) = node.op { Some(scalar) } else { None }
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
    let used: Vec<usize> = (0..captures.len()).filter(|&capture| is_used[capture]).collect();
    if used.len() == captures.len() {
        return (op, operands);
    }
    // Those that are not used are nowhere, whatever position they have.
    let positions: Vec<usize> =
        (0..captures.len()).map(|capture| used.partition_point(|&other| other < capture)).collect();
    let types: Vec<TensorType> =
        used.iter().map(|&capture| op.body.inputs()[op.state + capture].clone()).collect();
    let [cond, body] =
        [&op.cond, &op.body].map(|region| Region::clone(region).with_captures(&positions, &types).into());
    let used = used.iter().map(|&capture| captures[capture]);
    let operands = operands[..op.state].iter().copied().chain(used).collect();
    (WhileOp { cond, body, ..op }, operands)
}
