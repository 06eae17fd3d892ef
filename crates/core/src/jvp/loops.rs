//! Tangents through loops: one loop carries the state and the tangents of its leaves.
//!
//! The tangents that are carried are those of the leaves that change, depend on an input with a tangent, and reach a
//! result whose tangent is needed. A leaf that the body passes on unchanged keeps its tangent, as a capture does.

use super::{Control, Tangents, materialized, push, tangent_type};
use crate::builder::{Builder, LoopOptions};
use crate::error::Result;
use crate::grad::{loops as reverse, reach, region};
use crate::graph::{Graph, Value, Values};
use crate::op::{Op, WhileOp};
use crate::shape::{Shape, TensorType};

/// A loop on the state and its tangents.
pub(super) fn while_(
    graph: &mut Graph,
    op: &WhileOp,
    inputs: &[Value],
    t: &[Option<Value>],
    varied: &[bool],
) -> Result<(Values, Tangents)> {
    let count = op.state;
    let constant = reverse::invariants(op);
    let after = reach::trips(count, &reach::results(&op.body));
    let is_useful = |leaf: usize| (0..count).any(|output| varied[output] && after[output].has(leaf));
    let is_varied = |leaf: usize| (0..inputs.len()).any(|input| t[input].is_some() && after[leaf].has(input));
    let active: Vec<usize> =
        (0..count).filter(|&leaf| !constant.contains(&leaf) && is_useful(leaf) && is_varied(leaf)).collect();
    let useful: Vec<bool> = (0..count).map(|leaf| active.contains(&leaf)).collect();
    let types: Vec<TensorType> = inputs.iter().map(|&value| graph.ty(value).clone()).collect();
    let carried: Vec<TensorType> = active.iter().map(|&leaf| tangent_type(&types[leaf])).collect();

    let mut operands = Vec::with_capacity(inputs.len());
    for &input in inputs {
        operands.push(region::nameless(graph, input)?);
    }
    let mut captures = operands.split_off(count);
    let mut state = operands;
    for (&leaf, ty) in active.iter().zip(&carried) {
        state.push(materialized(graph, t[leaf], ty)?);
    }
    // Tangents that stay the same.
    let fixed: Vec<usize> = (0..inputs.len())
        .filter(|input| t[*input].is_some() && (*input >= count || constant.contains(input)))
        .collect();
    captures.extend(fixed.iter().filter_map(|&input| t[input]));
    let constants = inputs.len() - count;
    let arguments = |graph: &mut Graph, state: &[Value], captures: &[Value]| -> Result<Vec<Value>> {
        let values = state[..count].iter().chain(&captures[..constants]).zip(&types);
        values.map(|(&value, ty)| shaped(graph, value, &ty.shape)).collect()
    };
    let outputs = region::while_(
        graph,
        LoopOptions { trips: op.trips, snapshots: op.snapshots },
        &state,
        &captures,
        |graph, state, captures| {
            let arguments = arguments(graph, state, captures)?;
            Ok(region::inline(graph, &op.cond, &arguments)?[0])
        },
        |graph, state, captures| {
            let arguments = arguments(graph, state, captures)?;
            let mut tangents = vec![None; arguments.len()];
            let moving = active.iter().zip(&state[count..]);
            for (&input, &tangent) in moving.chain(fixed.iter().zip(&captures[constants..])) {
                tangents[input] = Some(tangent);
            }
            let pushed = push(graph, &op.body, &arguments, &tangents, &useful, Control::Joint)?;
            let mut next = Vec::with_capacity(state.len());
            for &result in &pushed.results {
                next.push(region::nameless(graph, result)?);
            }
            for (&leaf, ty) in active.iter().zip(&carried) {
                next.push(materialized(graph, pushed.tangents[leaf], ty)?);
            }
            Ok(next)
        },
    )?;
    let mut values = Values::new();
    for (&output, ty) in outputs[..count].iter().zip(&types) {
        values.push(shaped(graph, output, &ty.shape)?);
    }
    let mut tangents: Tangents =
        (0..count).map(|leaf| t[leaf].filter(|_| varied[leaf] && constant.contains(&leaf))).collect();
    for (&leaf, &tangent) in active.iter().zip(&outputs[count..]) {
        tangents[leaf] = Some(tangent).filter(|_| varied[leaf]);
    }
    Ok((values, tangents))
}

/// A value with the names of a shape.
fn shaped(graph: &mut Graph, value: Value, shape: &Shape) -> Result<Value> {
    graph.emit_one(Op::Reshape { shape: shape.clone() }, &[value])
}
