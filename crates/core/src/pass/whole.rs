//! Decompositions that are computed whole anyway, so that their values need not be computed once more.

use rustc_hash::FxHashSet;

use super::live_nodes;
use crate::compose::matrix::values::whole;
use crate::graph::Value;
use crate::op::{Block, Op};
use crate::region::Region;

/// The positions of the blocks of values alone for which the whole decomposition of the same operand is in the region too,
/// as where a gradient needs its vectors. Their definitions are merged with it.
pub(super) fn values_of_wholes(region: &Region) -> FxHashSet<usize> {
    let nodes = region.graph().nodes();
    let wanted: Vec<(usize, Value, Block)> = nodes
        .iter()
        .enumerate()
        .filter_map(|(at, node)| {
            let Op::Block(block) = &node.op else { return None };
            Some((at, node.inputs[0], whole(block)?))
        })
        .collect();
    if wanted.is_empty() {
        return FxHashSet::default();
    }
    let live = live_nodes(nodes, region.results());
    let wholes: FxHashSet<(Value, &Block)> = nodes
        .iter()
        .zip(live)
        .filter_map(|(node, is_live)| {
            let Op::Block(block) = &node.op else { return None };
            is_live.then(|| (node.inputs[0], block))
        })
        .collect();
    wanted
        .into_iter()
        .filter(|(_, input, whole)| wholes.contains(&(*input, whole)))
        .map(|(at, ..)| at)
        .collect()
}
