//! Epilogues: element-wise ops that consume a matrix product or a convolution. The thread that has completed a block of
//! the product runs the epilogue on it, while the L2 cache holds the block. An epilogue is a loop nest, which is called
//! with the address of the block. A product without other consumers is stored in the buffer of an epilogue's result.

use defn_core::backend::Poll;
use defn_core::graph::{Graph, Node, Value, Values};
use defn_core::op::Op;
use defn_core::{Result, TensorType};
use smallvec::SmallVec;

use super::fuse::NodeRole;
use super::fusion_groups::{FusionGroups, Role, random};
use super::nest::{BlockInput, BlockNest};
use super::row_blocks::FusedKernel;
use super::users::Uses;
use crate::backend::{run_with_epilogue, supports_epilogue};
use crate::kernels::epilogue::CompletedRows;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Fuses groups with the op just before them, of which they are epilogues. Nothing is reordered, so that no value
/// lives longer.
pub(super) fn fuse_epilogues(
    graph: &Graph,
    fusion: &FusionGroups,
    uses: &dyn Uses,
    kernels: Vec<FusedKernel>,
) -> Vec<FusedKernel> {
    let mut fused: Vec<FusedKernel> = Vec::with_capacity(kernels.len());
    for kernel in kernels {
        let before = fused.last().and_then(FusedKernel::single_group);
        let candidate =
            before.zip(kernel.single_group()).map(|(op, group_index)| EpilogueCandidate { op, group_index });
        match candidate.and_then(|candidate| OpWithEpilogue::new(graph, fusion, uses, candidate)) {
            Some(made) => {
                fused.pop();
                fused.push(FusedKernel::Epilogue(Box::new(made)));
            }
            None => fused.push(kernel),
        }
    }
    fused
}

/// The indices of an op and of the fusion group that may be its epilogue.
#[derive(Clone, Copy, Debug)]
struct EpilogueCandidate {
    op: usize,
    group_index: usize,
}

/// The types of a node's operands.
fn operand_types(graph: &Graph, node: usize) -> SmallVec<[&TensorType; 4]> {
    graph.nodes()[node].inputs.iter().map(|&input| graph.ty(input)).collect()
}

/// Whether a fusion group is done to each element of what an op gives as it lies, and the op tells of them one by one.
fn is_epilogue(graph: &Graph, fusion: &FusionGroups, candidate: EpilogueCandidate) -> bool {
    let (op, group) = (&fusion.order[candidate.op].nodes, &fusion.order[candidate.group_index].nodes);
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
fn row_length(op: &Op, out: &TensorType, b: &TensorType) -> usize {
    let sizes = out.shape.sizes();
    if let Op::Dot { contract_b, batch_b, .. } = op {
        let own = b.shape.rank() - contract_b.len() - batch_b.len();
        return sizes[sizes.len() - own..].iter().product();
    }
    // A convolution's is an image of one feature.
    sizes[2..].iter().product()
}

/// An op and its epilogue, ready to run.
#[derive(Debug)]
pub(super) struct OpWithEpilogue {
    /// The op's node, and what it gives.
    pub(super) op: usize,
    product: Value,
    /// The index of the epilogue's fusion group.
    pub(super) group_index: usize,
    nest: BlockNest,
    /// Where each input of the nest is; the product is completed.
    sources: Vec<BlockInput>,
    product_buffer: ProductBuffer,
    /// What the op reads, and behind it what else the nest does.
    pub(super) inputs: Values,
    /// What the nest gives, and behind it the product, where others need it.
    pub(super) results: Values,
    /// How many of the results the nest gives.
    epilogue_results: usize,
}

/// The buffer of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProductBuffer {
    /// In a result, or where one of the nest's will.
    Result(usize),
    /// In memory of the step's own.
    Scratch,
}

impl OpWithEpilogue {
    fn new(
        graph: &Graph,
        fusion: &FusionGroups,
        uses: &dyn Uses,
        candidate: EpilogueCandidate,
    ) -> Option<OpWithEpilogue> {
        if !is_epilogue(graph, fusion, candidate) {
            return None;
        }
        let op = fusion.order[candidate.op].nodes[0];
        let (node, product) = (&graph.nodes()[op], Value { node: op as u32, output: 0 });
        let row = row_length(&node.op, &node.outputs[0], graph.ty(node.inputs[1]));
        let results = uses.live_outs(candidate.group_index);
        let nodes = fusion.order[candidate.group_index]
            .nodes
            .iter()
            .map(|&node| (node, NodeRole::Elements))
            .collect();
        let nest = BlockNest::new(graph, fusion, nodes, (node.outputs[0].size(), row), results)?;
        let mut inputs: Values = node.inputs.iter().copied().collect();
        let sources = nest.locate_inputs(product, &mut inputs);
        let (mut results, epilogue_results) = (results.clone(), results.len());
        let mut product_buffer = ProductBuffer::Scratch;
        if uses.is_live_outside(product, &|group_index| group_index == candidate.group_index) {
            product_buffer = ProductBuffer::Result(results.len());
            results.push(product);
        }
        Some(OpWithEpilogue {
            op,
            product,
            group_index: candidate.group_index,
            nest,
            sources,
            product_buffer,
            inputs,
            results,
            epilogue_results,
        })
    }

    /// The nest of the epilogue.
    pub(super) fn nest(&self) -> &BlockNest {
        &self.nest
    }

    /// The outputs that may lie in the memory of an input: pairs of both. What the op reads is read until its last
    /// element is made.
    pub(super) fn alias_candidates(&self) -> SmallVec<[(usize, usize); 4]> {
        let mut alias_candidates = SmallVec::new();
        for (source, (_, view)) in self.sources.iter().zip(&self.nest.inputs) {
            match source {
                BlockInput::Other(input) if view.is_plain(self.nest.elements()) => {
                    alias_candidates.extend((0..self.epilogue_results).map(|output| (output, *input)));
                }
                BlockInput::Other(_) | BlockInput::Completed => {}
            }
        }
        alias_candidates
    }

    /// Notes which outputs lie in the memory of which inputs, and chooses where the product lies.
    pub(super) fn finalize_aliasing(&mut self, graph: &Graph, aliased: &[(usize, usize)]) {
        let width = |value: Value| graph.ty(value).dtype.storage_bytes();
        let is_free = |output: &usize| {
            let is_aliased = aliased.iter().any(|(other, _)| other == output);
            !is_aliased && width(self.results[*output]) == width(self.product)
        };
        if self.product_buffer == ProductBuffer::Scratch
            && let Some(output) = (0..self.epilogue_results).find(is_free)
        {
            self.product_buffer = ProductBuffer::Result(output);
        }
    }

    /// The bytes that a run needs beside.
    pub(super) fn scratch_bytes(&self, graph: &Graph) -> usize {
        match self.product_buffer {
            ProductBuffer::Scratch => graph.ty(self.product).byte_size(),
            ProductBuffer::Result(_) => 0,
        }
    }

    /// Runs the op, and the nest on all elements. `inputs` and `results` are as this lists them.
    ///
    /// # Errors
    /// As the op.
    ///
    /// # Safety
    /// At `scratch` are the bytes of [`OpWithEpilogue::scratch_bytes`], aligned to a line of the cache, which nobody
    /// else uses.
    pub(super) unsafe fn run(
        &self,
        graph: &Graph,
        inputs: &[View<'_>],
        results: &[ViewMut<'_>],
        scratch: *mut u8,
        par: Par,
        poll: Poll<'_>,
    ) -> Result<()> {
        let node = &graph.nodes()[self.op];
        let start = match self.product_buffer {
            ProductBuffer::Result(at) => results[at].start(),
            ProductBuffer::Scratch => scratch,
        };
        let sources = self.sources.iter().map(|source| source.start(start, inputs));
        let starts = results[..self.epilogue_results].iter().map(ViewMut::start);
        // Nothing is kept from one pass for another: there is one.
        debug_assert_eq!(self.nest.scratch, 0);
        let nest = self.nest.with(sources.chain(starts).chain([std::ptr::null_mut()]));
        let epilogue = |rows: CompletedRows| {
            // SAFETY: results have room for all elements, of each of which one thread is told. The nest reads what the
            // op has written, and writes an element only after it has read what lies there.
            unsafe { nest.block(rows) };
        };
        // SAFETY: there is room for the product, in a result or apart, which only the epilogue uses too, and that each
        // element after the op.
        let product = unsafe { ViewMut::new(graph.ty(self.product), start) };
        run_with_epilogue(&node.op, &inputs[..node.inputs.len()], &product, &epilogue, par, poll)
    }
}
