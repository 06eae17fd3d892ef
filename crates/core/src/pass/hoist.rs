//! Loop-invariant code motion.

use std::sync::Arc;

use super::dce::live_nodes;
use super::fills::{with_fills, without_unused};
use super::state::{needed, without_others};
use super::turned::with_turned;
use super::{dce_owned, finish, rebuild};
use crate::error::Result;
use crate::graph::{Graph, Node, Value, Values};
use crate::op::{CondOp, OnScalars, Op, OpClass, WhileOp};
use crate::region::Region;
use crate::shape::TensorType;

/// Results of so many bytes are computed before a loop even where they are larger than what they are computed from.
const SMALL: usize = 1 << 12;

/// Computes before a loop what all of its trips would compute alike, if that is more than to look at memory in another
/// way. What is larger than its operands stays in the loop if it is element-wise: to compute it there takes less time
/// than to read it. For the same reason what has equal elements, all one constant, is made in the loop.
///
/// # Errors
/// When memory does not suffice.
///
/// # Panics
/// When verification is on and the pass has built an illegal region.
pub fn hoist(region: &Arc<Region>) -> Result<Arc<Region>> {
    let has_regions = |node: &Node| {
        let (OpClass::While(_) | OpClass::Cond(_)) = node.op.class() else { return false };
        true
    };
    if !region.graph().nodes().iter().any(has_regions) {
        return Ok(region.clone());
    }
    let used = used(region);
    let new = rebuild(region, |graph, position, node, inputs| {
        if let Op::While(op) = &node.op {
            return hoist_loop(graph, op, inputs, &used[position]);
        }
        let op = if let Op::Cond(op) = &node.op {
            let branches = op.branches.iter().map(hoist).collect::<Result<_>>()?;
            Op::Cond(CondOp { branches })
        } else {
            node.op.clone()
        };
        graph.push_typed(op, inputs, node.outputs.clone())
    })?;
    Ok(Arc::new(dce_owned(finish("hoist", region, new))?))
}

/// For each loop which of its results something uses.
fn used(region: &Region) -> Vec<Vec<bool>> {
    let nodes = region.graph().nodes();
    let mut used: Vec<Vec<bool>> = nodes
        .iter()
        .map(|node| if let Op::While(op) = &node.op { vec![false; op.state] } else { Vec::new() })
        .collect();
    let live = live_nodes(nodes, region.results());
    let inputs = nodes.iter().zip(live).filter(|(_, is_live)| *is_live).flat_map(|(node, _)| &node.inputs);
    for value in inputs.chain(region.results()) {
        if let Some(is_used) = used[value.node as usize].get_mut(value.output as usize) {
            *is_used = true;
        }
    }
    used
}

/// Adds a loop without the state that nobody needs, and what was taken out of it; gives its results. Those that nobody
/// uses are what the loop begins with.
fn hoist_loop(graph: &mut Graph, op: &WhileOp, operands: Values, is_used: &[bool]) -> Result<Values> {
    let mut needed = needed(op, is_used);
    // A loop of effects alone keeps what it has.
    if !needed.contains(&true) {
        needed.fill(true);
    }
    let mut results: Values = operands[..op.state].into();
    let kept = |at: usize| needed.get(at).copied().unwrap_or(true);
    let own = operands.iter().enumerate().filter(|(at, _)| kept(*at)).map(|(_, value)| *value).collect();
    let (op, own) = match needed.contains(&false) {
        true => hoist_from(graph, &without_others(op, &needed)?, own)?,
        false => hoist_from(graph, op, own)?,
    };
    let types = op.body.result_types().cloned().collect();
    let made = graph.push_typed(Op::While(op), own, types)?;
    let places = results.iter_mut().zip(&needed).filter(|(_, is_needed)| **is_needed);
    places.zip(made).for_each(|((result, _), made)| *result = made);
    Ok(results)
}

/// A loop, and its operands, without what was added to the graph before it.
fn hoist_from(graph: &mut Graph, op: &WhileOp, mut operands: Values) -> Result<(WhileOp, Values)> {
    let captures: Values = operands[op.state..].into();
    let hoisted =
        |graph: &Graph, region: &Region| hoist(&Arc::new(with_fills(graph, region, op.state, &captures)?));
    let cond = hoisted(graph, &op.cond)?;
    let (cond, of_cond) = without_invariants(graph, &cond, op.state, &captures)?;
    let body = hoisted(graph, &op.body)?;
    let (body, mut of_body) = without_invariants(graph, &body, op.state, &captures)?;
    let all: Values = captures.iter().chain(&of_body).copied().collect();
    let (body, turned) = with_turned(graph, body, op, &all)?;
    of_body.extend(turned);
    let (own, first) = (captures.len(), of_cond.len());
    operands.extend(of_cond.iter().chain(&of_body).copied());
    let types: Vec<TensorType> = operands[op.state..].iter().map(|&value| graph.ty(value).clone()).collect();
    let positions: Vec<usize> = (0..own + first).collect();
    let cond = cond.with_captures(&positions, &types);
    let positions: Vec<usize> = (0..own).chain(own + first..own + first + of_body.len()).collect();
    let body = body.with_captures(&positions, &types);
    Ok(without_unused(WhileOp { cond: Arc::new(cond), body: Arc::new(body), ..op.clone() }, operands))
}

/// A region of a loop without what depends on captures alone: that is added to `graph`, and its values become further
/// captures.
fn without_invariants(
    graph: &mut Graph,
    region: &Region,
    state: usize,
    captures: &Values,
) -> Result<(Region, Values)> {
    let moved = moved(region, state);
    if !moved.contains(&true) {
        return Ok((region.clone(), Values::new()));
    }
    let nodes = region.graph().nodes();
    // What is moved needs its operands outside, too.
    let mut is_needed = moved.clone();
    for (position, node) in nodes.iter().enumerate().rev() {
        if is_needed[position] {
            node.inputs.iter().for_each(|input| is_needed[input.node as usize] = true);
        }
    }
    let mut outside: Vec<Values> = vec![Values::new(); nodes.len()];
    let of = |values: &[Values], value: Value| values[value.node as usize][value.output as usize];
    for (position, node) in nodes.iter().enumerate().filter(|(position, _)| is_needed[*position]) {
        outside[position] = if let Op::Parameter { index, .. } = &node.op {
            std::iter::once(captures[index - state]).collect()
        } else {
            graph.set_location(node.location.clone());
            let inputs = node.inputs.iter().map(|&input| of(&outside, input)).collect();
            graph.push_typed(node.op.clone(), inputs, node.outputs.clone())?
        };
    }
    let mut types = region.inputs().to_vec();
    let mut further = Values::new();
    let mut inner = Graph::new();
    inner.reserve("compile", nodes.len())?;
    let mut inside: Vec<Values> = Vec::with_capacity(nodes.len());
    for (position, node) in nodes.iter().enumerate() {
        inside.push(if moved[position] {
            further.extend(outside[position].iter().copied());
            let outputs = node.outputs.iter().map(|ty| {
                types.push(ty.clone());
                inner.parameter(types.len() - 1, ty.clone())
            });
            outputs.collect()
        } else {
            inner.set_location(node.location.clone());
            let inputs = node.inputs.iter().map(|&input| of(&inside, input)).collect();
            inner.push_typed(node.op.clone(), inputs, node.outputs.clone())?
        });
    }
    let results = region.results().iter().map(|&result| of(&inside, result)).collect();
    Ok((dce_owned(Region::new(inner, types, region.parameter_count(), results))?, further))
}

/// For each node whether it is moved out of a loop: none of the state reaches it, something that stays needs it, and it
/// is worth it.
fn moved(region: &Region, state: usize) -> Vec<bool> {
    let nodes = region.graph().nodes();
    let mut is_invariant: Vec<bool> = Vec::with_capacity(nodes.len());
    // The bytes that are read for a value.
    let mut weights: Vec<usize> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let operands = || node.inputs.iter().map(|input| input.node as usize);
        is_invariant.push(if let Op::Parameter { index, .. } = node.op {
            index >= state
        } else {
            !node.op.has_effect() && operands().all(|operand| is_invariant[operand])
        });
        let bytes = node.outputs.iter().map(TensorType::byte_size).sum();
        weights.push(if let Op::Constant(_) | Op::Iota { .. } = node.op {
            0
        } else if node.op.view().is_some() {
            operands().map(|operand| weights[operand]).min().unwrap_or(0).min(bytes)
        } else {
            bytes
        });
    }
    let mut is_read_by_loop = vec![false; nodes.len()];
    for node in nodes {
        if let Op::While(_) = &node.op {
            node.inputs.iter().for_each(|input| is_read_by_loop[input.node as usize] = true);
        }
    }
    let mut moved = vec![false; nodes.len()];
    let mut is_visited = vec![false; nodes.len()];
    let mut stack: Vec<usize> = region.results().iter().map(|result| result.node as usize).collect();
    let staying = nodes.iter().zip(&is_invariant).filter(|(_, is_invariant)| !**is_invariant);
    stack.extend(staying.flat_map(|(node, _)| &node.inputs).map(|input| input.node as usize));
    while let Some(position) = stack.pop() {
        if !is_invariant[position] || std::mem::replace(&mut is_visited[position], true) {
            continue;
        }
        let node = &nodes[position];
        // What a loop reads is in memory.
        let is_copy = if let Op::Transpose { .. } = node.op { is_read_by_loop[position] } else { false };
        let operand_bytes = node.inputs.iter().map(|input| weights[input.node as usize]).sum();
        if is_copy || is_worth_moving(node, operand_bytes) {
            moved[position] = true;
        } else {
            stack.extend(node.inputs.iter().map(|input| input.node as usize));
        }
    }
    moved
}

/// Whether an op takes longer than to read its results, which are computed from so many bytes.
fn is_worth_moving(node: &Node, operand_bytes: usize) -> bool {
    let bytes: usize = node.outputs.iter().map(TensorType::byte_size).sum();
    let grows = bytes > operand_bytes && bytes > SMALL;
    match node.op.on_scalars() {
        OnScalars::Input(_) | OnScalars::Constant(_) | OnScalars::Operand => false,
        OnScalars::ElementWise(_) => !grows,
        OnScalars::Block(_) | OnScalars::Other => {
            if let Op::Iota { .. } | Op::Literal(_) = node.op {
                return false;
            }
            if let Op::Eye { .. } = node.op {
                return !grows;
            }
            node.op.view().is_none()
        }
    }
}
