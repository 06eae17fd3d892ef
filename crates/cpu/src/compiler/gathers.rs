//! Gathers that nests do themselves: their steps are left out.

use defn_core::graph::Graph;
use rustc_hash::FxHashSet;

use super::fuse::{Part, gathered};
use super::fusion_groups::{FusionGroups, Role};
use super::nest::Nest;
use super::routine;
use super::strips::Piece;
use super::users::Uses;

/// The pieces without gathers that only one nest reads, which does them itself.
///
/// The table and the positions are read when the nest runs: what computes them comes before the gather, and so before
/// the nest, and its memory is kept for as long as a step reads it.
pub(super) fn with_gathers(
    graph: &Graph,
    fusion: &FusionGroups,
    uses: &dyn Uses,
    mut pieces: Vec<Piece>,
) -> Vec<Piece> {
    let mut done: FxHashSet<usize> = FxHashSet::default();
    for piece in &mut pieces {
        if let Piece::One(index) = *piece
            && let Some(nest) = nest(graph, fusion, uses, index)
        {
            *piece = Piece::Nest(index, Box::new(nest), None);
        }
        if let Piece::Nest(_, nest, _) = piece {
            done.extend(nest.gathers.iter().copied());
        }
    }
    if !done.is_empty() {
        pieces.retain(|piece| piece.alone().is_none_or(|index| !done.contains(&index)));
    }
    pieces
}

/// The nest of an element-wise fusion group by itself, if it does gathers.
fn nest(graph: &Graph, fusion: &FusionGroups, uses: &dyn Uses, index: usize) -> Option<Nest> {
    let group = &fusion.order[index];
    let Role::Elementwise = fusion.roles[group.nodes[0]] else { return None };
    let nodes: Vec<(usize, Part)> = group.nodes.iter().map(|&node| (node, Part::Elements)).collect();
    if gathered(graph, fusion, uses, &nodes).is_empty()
        || routine::of_group(graph, fusion, group, uses.live_outs(index)).is_some()
    {
        return None;
    }
    Nest::of_elements(graph, fusion, uses, group, uses.live_outs(index))
        .filter(|nest| !nest.gathers.is_empty())
}
