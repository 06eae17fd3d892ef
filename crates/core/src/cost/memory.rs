//! Peak memory: the most bytes that are live at one time.

use super::op::Count;
use crate::graph::Value;
use crate::region::Region;

/// The storage of one value.
#[derive(Clone, Copy)]
enum Storage {
    /// An input of the region, which the caller owns.
    Input,
    /// Memory of its own.
    Own,
    /// The memory of another value, which is no alias itself.
    Of(Value),
}

/// The most bytes that are live at one time while a region runs, in addition to its inputs.
pub(super) fn extra(region: &Region, counts: &[Count]) -> u64 {
    let graph = region.graph();
    // The storage of each value.
    let mut storages: Vec<Vec<Storage>> = Vec::with_capacity(graph.len());
    for (node, count) in graph.nodes().iter().zip(counts) {
        let storage = |output: usize| {
            if count.is_input {
                return Storage::Input;
            }
            if output >= count.passes {
                return Storage::Own;
            }
            let operand = node.inputs[output];
            match storages[operand.node as usize][operand.output as usize] {
                Storage::Own => Storage::Of(operand),
                storage @ (Storage::Input | Storage::Of(_)) => storage,
            }
        };
        storages.push((0..node.outputs.len()).map(storage).collect());
    }
    let owner = |value: Value| match storages[value.node as usize][value.output as usize] {
        Storage::Input => None,
        Storage::Own => Some(value),
        Storage::Of(owner) => Some(owner),
    };
    // The last node that uses each value's memory; results are used after all nodes.
    let mut last: Vec<Vec<usize>> =
        graph.nodes().iter().enumerate().map(|(at, node)| vec![at; node.outputs.len()]).collect();
    let mut used = |value: Value, by: usize| {
        if let Some(owner) = owner(value) {
            let last: &mut usize = &mut last[owner.node as usize][owner.output as usize];
            *last = by.max(*last);
        }
    };
    for (position, node) in graph.nodes().iter().enumerate() {
        node.inputs.iter().for_each(|&input| used(input, position));
    }
    region.results().iter().for_each(|&result| used(result, graph.len()));

    let mut freed = vec![0u64; graph.len() + 1];
    let (mut live, mut most) = (0u64, 0u64);
    for (position, (node, count)) in graph.nodes().iter().zip(counts).enumerate() {
        for (output, ty) in node.outputs.iter().enumerate() {
            if let Storage::Own = storages[position][output] {
                let bytes = ty.byte_size() as u64;
                live = live.saturating_add(bytes);
                let end = &mut freed[last[position][output]];
                *end = end.saturating_add(bytes);
            }
        }
        most = most.max(live.saturating_add(count.cost.inside));
        live = live.saturating_sub(freed[position]);
    }
    most
}
