//! Products of matrices, and convolutions, that element-wise ops follow: these are done to each block of a product by
//! the thread that has completed it, while the second cache holds the block. They are a loop nest, which is called with
//! where the block is. Where nobody else needs the product, it lies where one of their results will.

use defn_core::backend::Poll;
use defn_core::graph::{Graph, Node, Value, Values};
use defn_core::op::Op;
use defn_core::{Result, TensorType};
use smallvec::SmallVec;

use super::fuse::Part;
use super::fusion_groups::{FusionGroups, Role, random};
use super::nest::{BlockInput, BlockNest};
use super::strips::Piece;
use super::users::Uses;
use crate::backend::{run_with_epilogue, supports_epilogue};
use crate::kernels::epilogue::CompletedRows;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Puts fusion groups to the ops that they follow at once. Nothing is moved past others, so that no value is kept for
/// longer.
pub(super) fn with_followed(
    graph: &Graph,
    fusion: &FusionGroups,
    uses: &dyn Uses,
    pieces: Vec<Piece>,
) -> Vec<Piece> {
    let mut placed: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let before = placed.last().and_then(Piece::alone);
        let found = before.zip(piece.alone()).map(|(op, group_index)| Found { op, group_index });
        match found.and_then(|found| Followed::new(graph, fusion, uses, found)) {
            Some(made) => {
                placed.pop();
                placed.push(Piece::Followed(Box::new(made)));
            }
            None => placed.push(piece),
        }
    }
    placed
}

/// The places of an op and of the fusion group that follows it.
#[derive(Clone, Copy, Debug)]
struct Found {
    op: usize,
    group_index: usize,
}

/// The types of a node's operands.
fn operand_types(graph: &Graph, node: usize) -> SmallVec<[&TensorType; 4]> {
    graph.nodes()[node].inputs.iter().map(|&input| graph.ty(input)).collect()
}

/// Whether a fusion group is done to each element of what an op gives as it lies, and the op tells of them one by one.
fn follows(graph: &Graph, fusion: &FusionGroups, found: Found) -> bool {
    let (op, group) = (&fusion.order[found.op].nodes, &fusion.order[found.group_index].nodes);
    let ([op], Role::Elementwise) = (&op[..], &fusion.roles[group[0]]) else { return false };
    let node = &graph.nodes()[*op];
    let elements = graph.nodes()[group[0]].outputs[0].size();
    let is_as_large = node.outputs.len() == 1 && node.outputs[0].size() == elements;
    let Role::Step = fusion.roles[*op] else { return false };
    if !is_as_large || !supports_epilogue(&node.op, &operand_types(graph, *op), &node.outputs) {
        return false;
    }
    let nodes = group.iter().map(|&position| &graph.nodes()[position]);
    let inputs = nodes.flat_map(|node| node.inputs.iter().map(move |input| (node, *input)));
    let mut reads = inputs.filter(|(_, input)| fusion.base(*input).node as usize == *op).peekable();
    let is_whole = |(node, input): (&Node, Value)| {
        let is_whole = fusion.view(graph, input).is_identity(graph);
        random(&node.op).is_none() && graph.ty(input).size() == elements && is_whole
    };
    reads.peek().is_some() && reads.all(is_whole)
}

/// The elements of a row of what an op gives: blocks are parts of rows.
fn row_of(op: &Op, out: &TensorType, b: &TensorType) -> usize {
    let sizes = out.shape.sizes();
    if let Op::Dot { contract_b, batch_b, .. } = op {
        let own = b.shape.rank() - contract_b.len() - batch_b.len();
        return sizes[sizes.len() - own..].iter().product();
    }
    // A convolution's is an image of one feature.
    sizes[2..].iter().product()
}

/// An op and the nest that follows it, ready to run.
#[derive(Debug)]
pub(super) struct Followed {
    /// The op's node, and what it gives.
    pub(super) op: usize,
    product: Value,
    /// The place of the fusion group that follows.
    pub(super) group_index: usize,
    nest: BlockNest,
    /// Where each input of the nest is; the product is completed.
    sources: Vec<BlockInput>,
    home: Home,
    /// What the op reads, and behind it what else the nest does.
    pub(super) inputs: Values,
    /// What the nest gives, and behind it the product, where others need it.
    pub(super) results: Values,
    /// How many of the results the nest gives.
    nest_results: usize,
}

/// Where a product lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// In a result, or where one of the nest's will.
    Result(usize),
    /// In memory of the step's own.
    Room,
}

impl Followed {
    fn new(graph: &Graph, fusion: &FusionGroups, uses: &dyn Uses, found: Found) -> Option<Followed> {
        if !follows(graph, fusion, found) {
            return None;
        }
        let op = fusion.order[found.op].nodes[0];
        let (node, product) = (&graph.nodes()[op], Value { node: op as u32, output: 0 });
        let row = row_of(&node.op, &node.outputs[0], graph.ty(node.inputs[1]));
        let results = uses.live_outs(found.group_index);
        let nodes =
            fusion.order[found.group_index].nodes.iter().map(|&node| (node, Part::Elements)).collect();
        let nest = BlockNest::new(graph, fusion, nodes, (node.outputs[0].size(), row), results)?;
        let mut inputs: Values = node.inputs.iter().copied().collect();
        let sources = nest.locate_inputs(product, &mut inputs);
        let (mut results, nest_results) = (results.clone(), results.len());
        let mut home = Home::Room;
        if uses.is_live_outside(product, &|group_index| group_index == found.group_index) {
            home = Home::Result(results.len());
            results.push(product);
        }
        Some(Followed {
            op,
            product,
            group_index: found.group_index,
            nest,
            sources,
            home,
            inputs,
            results,
            nest_results,
        })
    }

    /// What follows.
    pub(super) fn nest(&self) -> &BlockNest {
        &self.nest
    }

    /// The outputs that may lie in the memory of an input: pairs of both. What the op reads is read until its last
    /// element is made.
    pub(super) fn pairs(&self) -> SmallVec<[(usize, usize); 3]> {
        let mut pairs = SmallVec::new();
        for (source, (_, view)) in self.sources.iter().zip(&self.nest.inputs) {
            match source {
                BlockInput::Other(input) if view.is_plain(self.nest.elements()) => {
                    pairs.extend((0..self.nest_results).map(|output| (output, *input)));
                }
                BlockInput::Other(_) | BlockInput::Completed => {}
            }
        }
        pairs
    }

    /// Notes which outputs lie in the memory of which inputs, and chooses where the product lies.
    pub(super) fn settle(&mut self, graph: &Graph, over: &[(usize, usize)]) {
        let width = |value: Value| graph.ty(value).dtype.storage_bytes();
        let is_free = |output: &usize| {
            let is_over = over.iter().any(|(other, _)| other == output);
            !is_over && width(self.results[*output]) == width(self.product)
        };
        if self.home == Home::Room
            && let Some(output) = (0..self.nest_results).find(is_free)
        {
            self.home = Home::Result(output);
        }
    }

    /// The bytes that a run needs beside.
    pub(super) fn room(&self, graph: &Graph) -> usize {
        match self.home {
            Home::Room => graph.ty(self.product).byte_size(),
            Home::Result(_) => 0,
        }
    }

    /// Runs the op, and the nest on all elements. `inputs` and `results` are as this lists them.
    ///
    /// # Errors
    /// As the op.
    ///
    /// # Safety
    /// At `room` is as much memory as [`Followed::room`] says, aligned to a line of the cache, which nobody else uses.
    pub(super) unsafe fn run(
        &self,
        graph: &Graph,
        inputs: &[View<'_>],
        results: &[ViewMut<'_>],
        room: *mut u8,
        par: Par,
        poll: Poll<'_>,
    ) -> Result<()> {
        let node = &graph.nodes()[self.op];
        let start = match self.home {
            Home::Result(at) => results[at].start(),
            Home::Room => room,
        };
        let sources = self.sources.iter().map(|source| source.start(start, inputs));
        let starts = results[..self.nest_results].iter().map(ViewMut::start);
        // Nothing is kept from one pass for another: there is one.
        debug_assert_eq!(self.nest.scratch, 0);
        let nest = self.nest.with(sources.chain(starts).chain([std::ptr::null_mut()]));
        let tail = |rows: CompletedRows| {
            // SAFETY: results have room for all elements, of each of which one thread is told. The nest reads what the
            // op has written, and writes an element only after it has read what lies there.
            unsafe { nest.block(rows) };
        };
        // SAFETY: there is room for the product, in a result or apart, which only the tail uses too, and that each
        // element after the op.
        let product = unsafe { ViewMut::new(graph.ty(self.product), start) };
        run_with_epilogue(&node.op, &inputs[..node.inputs.len()], &product, &tail, par, poll)
    }
}
