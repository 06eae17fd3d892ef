//! Nests of several boxes, one after the other: concatenations and paddings, and what is done with them.

use defn_core::graph::{Graph, Values};
use smallvec::SmallVec;

use super::build::{Body, Fused, NestContext, NodeRole};
use super::domain::Domain;
use super::domain_box::DomainBox;
use super::passes::Passes;
use super::reads::Reads;
use crate::compiler::fusion_groups::FusionGroups;
use crate::compiler::ir::{Builder, Elem, Op, Val};

/// The nest that computes `results` box by box, if the IR has all that it needs. With each box come the nodes that are
/// computed in it.
pub(in super::super) fn fuse_boxes(
    graph: &Graph,
    fusion: &FusionGroups,
    boxes: &[(DomainBox, Vec<usize>)],
    results: &Values,
    is_streaming: bool,
) -> Option<Fused> {
    let mut inputs = Vec::new();
    let mut parts = Vec::new();
    for (domain_box, nodes) in boxes {
        let nodes = nodes.iter().map(|&node| (node, NodeRole::Elements)).collect();
        let passes = Passes::new(graph, fusion, nodes);
        let domain = Domain::of_elements(domain_box.sizes.iter().product());
        let reads = Reads::new(graph, fusion, &passes, &domain, &[], Some(domain_box), inputs)?;
        inputs = reads.inputs.clone();
        parts.push((domain_box, passes, domain, reads));
    }
    let context = NestContext { graph, fusion, results, inputs: inputs.len(), is_streaming };
    let mut b = Builder::new((inputs.len() + results.len()) as u16 + 1, 2, 0);
    let begin = b.param(0, Elem::Index);
    let count = b.param(1, Elem::Index);
    let end = b.add(begin, count);
    let (mut steps, mut least_steps, mut scratch, mut elements, mut cost) = (0usize, 1, 0, 0, 0);
    for (domain_box, passes, domain, reads) in &parts {
        let body = Body::new(&context, passes, reads, domain, Some(domain_box))?;
        // Parts of rows begin with whole lines in every box.
        let least = body.shape.least_steps();
        steps = steps.next_multiple_of(least);
        let part = part_of(&mut b, (begin, end), steps, body.shape.steps(&body.sizes));
        let before = b.len();
        let emitted = body.emit(b, part)?;
        b = emitted.b;
        cost = cost.max(b.len() - before);
        steps += body.shape.steps(&body.sizes);
        least_steps = least_steps.max(least);
        scratch = scratch.max(emitted.scratch);
        elements += domain.elements();
    }
    let function = b.finish();
    let results = results.clone();
    // No input is read in the order of all results, so none lends them its memory.
    let (unaliasable_inputs, unaliasable_results) = (SmallVec::new(), SmallVec::new());
    Some(Fused {
        function,
        inputs,
        unaliasable_inputs,
        unaliasable_results,
        results,
        scratch,
        partial: 0,
        combining: None,
        steps,
        least_steps,
        elements,
        cost,
    })
}

/// What a range of steps has of those of a box: where it begins in the box, and how many they are.
fn part_of(b: &mut Builder, (begin, end): (Val, Val), first: usize, count: usize) -> (Val, Val) {
    let (first, most, zero) = (b.index(first as i64), b.index(count as i64), b.index(0));
    let mut within = |at: Val| {
        let at = b.sub(at, first);
        let at = b.op(Op::Max, [at, zero]);
        b.op(Op::Min, [at, most])
    };
    let (begin, end) = (within(begin), within(end));
    (begin, b.sub(end, begin))
}
