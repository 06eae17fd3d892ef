//! Dead code elimination.

use super::{compacted, copy};
use crate::error::Result;
use crate::graph::{Fate, Node, Value};
use crate::region::Region;

/// Removes every node that neither a result nor an effect needs. Inputs keep their numbers, even unused ones,
/// and effects keep their order.
///
/// # Errors
/// Memory.
pub fn dce(region: &Region) -> Result<Region> {
    dce_owned(copy(region)?)
}

/// As [`dce`], of a region that is not needed any more: nothing is copied.
///
/// # Errors
/// Memory.
pub fn dce_owned(region: Region) -> Result<Region> {
    let live = live_nodes(region.graph().nodes(), region.results());
    if live.iter().all(|is_live| *is_live) {
        return Ok(region);
    }
    compacted("dce", region, |_, position, _| if live[position] { Fate::Kept } else { Fate::Dropped })
}

/// For each node, whether one of these results or an effect needs it.
pub(crate) fn live_nodes(nodes: &[Node], results: &[Value]) -> Vec<bool> {
    let mut live = vec![false; nodes.len()];
    for result in results {
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
