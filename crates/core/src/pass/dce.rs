//! Dead code elimination.

use super::{finish, rebuild};
use crate::error::Result;
use crate::graph::Values;
use crate::region::Region;

/// Removes every node that neither a result nor an effect needs. Inputs keep their numbers, even unused ones,
/// and effects keep their order.
///
/// # Errors
/// None is known; the signature is that of all passes.
pub fn dce(region: &Region) -> Result<Region> {
    without(region, &live(region))
}

/// As [`dce`], of a region that is not needed any more: it stays what it is if all of it is needed.
pub(super) fn dce_owned(region: Region) -> Result<Region> {
    let live = live(&region);
    if live.iter().all(|is_live| *is_live) { Ok(region) } else { without(&region, &live) }
}

/// For each node whether a result or an effect needs it.
fn live(region: &Region) -> Vec<bool> {
    let nodes = region.graph().nodes();
    let mut live = vec![false; nodes.len()];
    for result in region.results() {
        live[result.node as usize] = true;
    }
    // Inputs come before their users, so that a single backward pass visits every user first.
    for (position, node) in nodes.iter().enumerate().rev() {
        if live[position] || node.op.has_effect() {
            live[position] = true;
            for input in &node.inputs {
                live[input.node as usize] = true;
            }
        }
    }
    live
}

fn without(region: &Region, live: &[bool]) -> Result<Region> {
    let new = rebuild(region, |graph, position, node, inputs| {
        if !live[position] {
            return Ok(Values::new());
        }
        graph.push_typed(node.op.clone(), inputs, node.outputs.clone())
    })?;
    Ok(finish("dce", region, new))
}
