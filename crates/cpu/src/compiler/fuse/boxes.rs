//! Nests of several boxes, one after the other: concatenations and paddings, and what is done with them.

use defn_core::graph::{Graph, Value, Values};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::build::{Body, Fused, NestContext, NodeRole};
use super::domain::Domain;
use super::domain_box::DomainBox;
use super::passes::Passes;
use super::reads::Reads;
use super::shape::{NestKind, ThreadSplit};
use crate::compiler::fusion_groups::FusionGroups;
use crate::compiler::ir::{Builder, Elem, Function, Op, Val};
use crate::kernels::StridedView;

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
    let bodies = parts.iter().map(|(domain_box, passes, domain, reads)| {
        Body::new(&context, passes, reads, domain, Some(domain_box))
    });
    let mut bodies = bodies.collect::<Option<Vec<Body<'_>>>>()?;
    // Threads divide the rows of the domain, if every box can be divided like that: what a thread writes of each box is then
    // beside what it writes of the others.
    let splits = bodies.iter().zip(boxes).map(|(body, (domain_box, _))| row_split(body, domain_box));
    let splits = splits.collect::<Option<Vec<ThreadSplit>>>();
    let has_common_rows = splits.is_some();
    for (body, split) in bodies.iter_mut().zip(splits.into_iter().flatten()) {
        body.shape.split = split;
    }
    let (mut steps, mut least_steps, mut scratch, mut elements, mut cost) = (0usize, 1, 0, 0, 0);
    for (body, (domain_box, _, domain, _)) in bodies.iter().zip(&parts) {
        let own = body.shape.steps(&body.sizes);
        let first = if has_common_rows {
            domain_box.starts[0]
        } else {
            // Parts of rows begin with whole lines in every box.
            steps.next_multiple_of(body.shape.least_steps())
        };
        let part = part_of(&mut b, (begin, end), first, own);
        let before = b.len();
        // What is not divided is done by who has its only step.
        let is_whole = body.shape.split == ThreadSplit::None;
        if is_whole {
            b.begin_loop(Some(part.1), &[]);
        }
        let emitted = body.emit(b, part)?;
        b = emitted.b;
        if is_whole {
            b.end_loop(&[]);
        }
        cost = cost.max(b.len() - before);
        if has_common_rows {
            steps = domain_box.domain[0];
        } else {
            steps = first + own;
            least_steps = least_steps.max(body.shape.least_steps());
        }
        scratch = scratch.max(emitted.scratch);
        elements += domain.elements();
    }
    let mut function = b.finish();
    let inputs = one_of_each_value(&mut function, inputs);
    let results = results.clone();
    // No input is read in the order of all results, so none lends them its memory.
    let (unaliasable_inputs, unaliasable_results) = ((0..inputs.len()).collect(), SmallVec::new());
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

/// Reads all views of a value from one buffer, so that their accesses share pointers; gives the inputs that are left.
fn one_of_each_value(
    function: &mut Function,
    inputs: Vec<(Value, StridedView)>,
) -> Vec<(Value, StridedView)> {
    let mut known: FxHashMap<Value, u16> = FxHashMap::default();
    let mut left = Vec::new();
    let mut buffers: Vec<u16> = Vec::with_capacity(inputs.len());
    for (value, view) in inputs {
        buffers.push(*known.entry(value).or_insert_with(|| {
            left.push((value, view));
            left.len() as u16 - 1
        }));
    }
    let dropped = (buffers.len() - left.len()) as u16;
    for access in &mut function.accesses {
        access.buffer = match buffers.get(usize::from(access.buffer)) {
            Some(&buffer) => buffer,
            None => access.buffer - dropped,
        };
    }
    function.buffers -= dropped;
    left
}

/// The fewest rows of a domain that threads divide.
const MIN_ROWS: usize = 32;

/// The most elements of such rows: of longer ones each is divided.
const MAX_ROW: usize = 1 << 15;

/// How the rows of a domain divide a box, if they do: its own rows, or the elements of its column.
fn row_split(body: &Body<'_>, domain_box: &DomainBox) -> Option<ThreadSplit> {
    let own = &domain_box.sizes;
    let (rows, row) = domain_box.domain.split_first()?;
    let is_long = *rows >= MIN_ROWS && row.iter().product::<usize>() <= MAX_ROW;
    if row.is_empty() || !is_long || domain_box.block.is_some() {
        return None;
    }
    if own[0] == 1 {
        return Some(ThreadSplit::None);
    }
    if body.shape.kind != NestKind::Rows || body.shape.pieces > 1 || body.sizes[0] != own[0] {
        return None;
    }
    let is_column = body.sizes.len() == 1 && own[1..].iter().all(|&size| size == 1);
    let has_rows = body.sizes.len() > 1 && body.shape.lanes != 0;
    if is_column { Some(ThreadSplit::Lanes) } else { has_rows.then_some(ThreadSplit::Axis(0)) }
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
