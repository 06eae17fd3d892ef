//! Gathers that nests do themselves: their steps are left out.

use defn_core::graph::Graph;
use rustc_hash::FxHashSet;

use super::fuse::{NodeRole, gathered};
use super::fusion_groups::{FusionGroups, Role};
use super::nest::Nest;
use super::row_blocks::FusedKernel;
use super::users::Uses;

/// The kernels, with each gather fused into the only nest that reads it.
///
/// The table and the positions are read when the nest runs: what computes them comes before the gather, and so before
/// the nest, and its memory is kept for as long as a step reads it.
pub(super) fn fuse_gathers(
    graph: &Graph,
    fusion: &FusionGroups,
    uses: &dyn Uses,
    mut kernels: Vec<FusedKernel>,
) -> Vec<FusedKernel> {
    let mut fused: FxHashSet<usize> = FxHashSet::default();
    for kernel in &mut kernels {
        if let FusedKernel::Single(index) = *kernel
            && let Some(nest) = nest(graph, fusion, uses, index)
        {
            *kernel = FusedKernel::Nest(index, Box::new(nest), None);
        }
        if let FusedKernel::Nest(_, nest, _) = kernel {
            fused.extend(nest.gathers.iter().copied());
        }
    }
    if !fused.is_empty() {
        kernels.retain(|kernel| kernel.single_group().is_none_or(|index| !fused.contains(&index)));
    }
    kernels
}

/// The nest of an element-wise fusion group by itself, if it does gathers.
fn nest(graph: &Graph, fusion: &FusionGroups, uses: &dyn Uses, index: usize) -> Option<Nest> {
    let group = &fusion.order[index];
    let Role::Elementwise = fusion.roles[group.nodes[0]] else { return None };
    let nodes: Vec<(usize, NodeRole)> = group.nodes.iter().map(|&node| (node, NodeRole::Elements)).collect();
    if gathered(graph, fusion, uses, &nodes).is_empty() {
        return None;
    }
    Nest::of_elements(graph, fusion, uses, group, uses.live_outs(index))
        .filter(|nest| !nest.gathers.is_empty())
}
