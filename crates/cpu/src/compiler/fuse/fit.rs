//! Which element-wise ops can share a nest.

use defn_core::graph::Graph;

use super::domain::Axes;
use super::reads::{Generated, generated};
use crate::compiler::cluster::{Clusters, Random, random};

/// How many element-wise nodes of a cluster, from the first on, one nest can compute: there are axes along which all that
/// they read has strides. Nodes that a reshape connects may divide the elements in ways that have none.
pub(in super::super) fn fitting(graph: &Graph, clusters: &Clusters, nodes: &[usize]) -> usize {
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
                axes.add(&clusters.seen(graph, inputs[1]).along_first(0).walk(shape(node)));
            }
            continue;
        }
        for &input in inputs {
            let seen = clusters.seen(graph, input);
            let base = seen.base.node as usize;
            if nodes.binary_search(&base).is_ok() {
                continue;
            }
            match generated(graph, clusters, base, None) {
                Some(Generated::Constant(_)) => {}
                Some(Generated::Counted(view)) => axes.add(&view),
                None => axes.add(&seen.walk(shape(node))),
            }
        }
        if axes.clone().sizes().is_none() {
            return at;
        }
    }
    nodes.len()
}
