//! Gathers that nests do themselves: their steps are left out.

use defn_core::graph::Graph;
use rustc_hash::FxHashSet;

use super::cluster::{Clusters, Role};
use super::fuse::{Part, gathered};
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
    clusters: &Clusters,
    uses: &dyn Uses,
    mut pieces: Vec<Piece>,
) -> Vec<Piece> {
    let mut done: FxHashSet<usize> = FxHashSet::default();
    for piece in &mut pieces {
        if let Piece::One(place) = *piece
            && let Some(nest) = nest(graph, clusters, uses, place)
        {
            *piece = Piece::Nest(place, Box::new(nest), None);
        }
        if let Piece::Nest(_, nest, _) = piece {
            done.extend(nest.gathers.iter().copied());
        }
    }
    if !done.is_empty() {
        pieces.retain(|piece| piece.alone().is_none_or(|place| !done.contains(&place)));
    }
    pieces
}

/// The nest of an element-wise cluster by itself, if it does gathers.
fn nest(graph: &Graph, clusters: &Clusters, uses: &dyn Uses, place: usize) -> Option<Nest> {
    let cluster = &clusters.order[place];
    let Role::Elementwise = clusters.roles[cluster.nodes[0]] else { return None };
    let nodes: Vec<(usize, Part)> = cluster.nodes.iter().map(|&node| (node, Part::Elements)).collect();
    if gathered(graph, clusters, uses, &nodes).is_empty()
        || routine::of_group(graph, clusters, cluster, uses.of(place)).is_some()
    {
        return None;
    }
    Nest::of_elements(graph, clusters, uses, cluster, uses.of(place)).filter(|nest| !nest.gathers.is_empty())
}
