//! Which element-wise ops can share a nest.

use defn_core::graph::Graph;

use super::domain::Axes;
use super::reads::{Generated, generated};
use crate::compiler::fusion_groups::{FusionGroups, Random, random};

/// How many element-wise nodes of a fusion group, from the first on, one nest can compute: there are axes along which
/// all that they read has strides. Nodes that a reshape connects may divide the elements in ways that have none.
pub(in super::super) fn fitting(graph: &Graph, fusion: &FusionGroups, nodes: &[usize]) -> usize {
    let shape = |node: usize| graph.nodes()[node].outputs[0].shape.sizes();
    let first = shape(nodes[0]);
    // Axes of one shape are axes of all that is broadcast to it.
    if nodes.iter().all(|&node| shape(node) == first) {
        return nodes.len();
    }
    let mut axes = Axes::new(first.iter().product());
    for (at, &node) in nodes.iter().enumerate() {
        let inputs = &graph.nodes()[node].inputs;
        if let Some(random) = random(&graph.nodes()[node].op) {
            if random == Random::Threefry {
                axes.add(&fusion.view(graph, inputs[1]).fix_first_axis(0).strided_view(shape(node)));
            }
            continue;
        }
        for &input in inputs {
            let value_view = fusion.view(graph, input);
            let base = value_view.base.node as usize;
            if nodes.binary_search(&base).is_ok() {
                continue;
            }
            match generated(graph, fusion, base, None) {
                Some(Generated::Constant(_)) => {}
                Some(Generated::Iota(view)) => axes.add(&view),
                None => axes.add(&value_view.strided_view(shape(node))),
            }
        }
        if axes.clone().sizes().is_none() {
            return at;
        }
    }
    nodes.len()
}
