//! Back-to-back GEMM fusion, as in attention: a nest computes rows from a product, and they are the left operand of
//! another product. All three run block of rows by block of rows, so that neither the first product nor the rows are
//! written to memory.

use defn_core::graph::{Graph, Value, Values};
use defn_core::op::Op;

use super::fusion_groups::{FusionGroups, Role};
use super::nest::{BlockInput, BlockNest};
use super::row_blocks::FusedKernel;
use super::users::Uses;
use crate::backend::{forces_epilogues, product_of};
use crate::kernels::linalg::{self, Dot};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// The least bytes of a product that is not written. The second caches hold smaller ones.
const MIN_PRODUCT_BYTES: usize = 1 << 20;

/// The most kernels between the two products. What the first one reads is kept as long.
const SEARCH_WINDOW: usize = 8;

/// Two products and the nest between them, ready to run.
#[derive(Debug)]
pub(super) struct BackToBackGemm {
    products: linalg::BackToBackProducts,
    nest: BlockNest,
    /// The index of the second product's fusion group.
    pub(super) group_index: usize,
    /// The node of the second product.
    pub(super) node: usize,
    /// Where each input of the nest is; the rows of the first product are completed.
    sources: Vec<BlockInput>,
    /// What the products read, and behind it what else the nest does.
    pub(super) inputs: Values,
    width: usize,
    row: usize,
}

/// Fuses products and the rows between them, where these are large and nobody else needs them.
pub(super) fn fuse_back_to_back_gemms(
    graph: &Graph,
    fusion: &FusionGroups,
    uses: &dyn Uses,
    mut kernels: Vec<FusedKernel>,
) -> Vec<FusedKernel> {
    let mut at = 0;
    while at < kernels.len() {
        let found = BackToBackGemm::at(graph, fusion, uses, &kernels, at);
        if let Some((before, after, made)) = found {
            kernels[after] = FusedKernel::BackToBackGemm(Box::new(made));
            kernels.remove(at);
            kernels.remove(before);
            at = before;
        } else {
            at += 1;
        }
    }
    kernels
}

impl BackToBackGemm {
    /// The products around the nest that a piece is, and their kernels.
    fn at(
        graph: &Graph,
        fusion: &FusionGroups,
        uses: &dyn Uses,
        kernels: &[FusedKernel],
        at: usize,
    ) -> Option<(usize, usize, BackToBackGemm)> {
        let FusedKernel::Nest(_, _, Some(row_blocks)) = &kernels[at] else { return None };
        let domain = &row_blocks.domain;
        if domain.inner != 1 || domain.is_long() || !domain.is_in_order() {
            return None;
        }
        let (row, elements) = (domain.reduced, domain.elements());
        let results = row_blocks.results(uses);
        let &[rows] = &results[..] else { return None };
        let ty = graph.ty(rows);
        let is_large = ty.byte_size() >= MIN_PRODUCT_BYTES || forces_epilogues();
        if ty.size() != elements || !is_large {
            return None;
        }
        let mut after = at + 1..kernels.len().min(at + 1 + SEARCH_WINDOW);
        let after = after.find(|&kernel| {
            single_dot(graph, fusion, &kernels[kernel]).is_some_and(|(_, node)| {
                let [a, b] = graph.nodes()[node].inputs[..] else { return false };
                let value_view = fusion.view(graph, a);
                value_view.base == rows && value_view.is_identity(graph) && fusion.base(b) != rows
            })
        })?;
        let (second_group, second) = single_dot(graph, fusion, &kernels[after])?;
        if uses
            .is_live_outside(rows, &|group_index| group_index == second_group || row_blocks.has(group_index))
        {
            return None;
        }
        let nest = BlockNest::new(graph, fusion, row_blocks.nodes(fusion), (elements, row), &results)?;
        let before = (at.saturating_sub(SEARCH_WINDOW)..at).rev().find(|&kernel| {
            let first = single_dot(graph, fusion, &kernels[kernel]);
            let product = first.map(|(_, node)| Value { node: node as u32, output: 0 });
            product.is_some_and(|product| {
                let mut reads = nest.inputs.iter().filter(|(value, _)| *value == product).peekable();
                graph.ty(product) == ty
                    && reads.peek().is_some()
                    && reads.all(|(_, view)| view.is_plain(elements))
                    && !uses.is_live_outside(product, &|group_index| row_blocks.has(group_index))
            })
        })?;
        let (_, first) = single_dot(graph, fusion, &kernels[before])?;
        let products = linalg::BackToBackProducts::new(plan(graph, first)?, plan(graph, second)?, ty.dtype)?;
        let product = Value { node: first as u32, output: 0 };
        let mut inputs: Values = graph.nodes()[first].inputs.iter().copied().collect();
        inputs.push(graph.nodes()[second].inputs[1]);
        let sources = nest.locate_inputs(product, &mut inputs);
        let width = ty.dtype.storage_bytes();
        let made = BackToBackGemm {
            products,
            nest,
            group_index: second_group,
            node: second,
            sources,
            inputs,
            width,
            row,
        };
        Some((before, after, made))
    }

    /// What is done to the rows.
    pub(super) fn nest(&self) -> &BlockNest {
        &self.nest
    }

    /// Runs all. `inputs` are as this lists them.
    pub(super) fn run(&self, inputs: &[View<'_>], result: &mut ViewMut<'_>, par: Par) {
        let [a, b, other] = [inputs[0], inputs[1], inputs[2]];
        let middle = |(first, count): (usize, usize), rows: *mut u8, beside: *mut u8| {
            // The nest counts rows of the whole product.
            let start = rows.wrapping_sub(first * self.row * self.width);
            let sources = self.sources.iter().map(|source| source.start(start, inputs));
            let nest = self.nest.with(sources.chain([start, beside]));
            // SAFETY: the block has these rows. The nest reads and writes no others, and each element before it writes
            // it: what it reads of rows lies as what it writes.
            unsafe { nest.rows(first, count) };
        };
        self.products.run((a, b, other), result, (&middle, self.nest.scratch), par);
    }
}

/// The fusion group and the node of a product that is a step by itself.
fn single_dot(graph: &Graph, fusion: &FusionGroups, kernel: &FusedKernel) -> Option<(usize, usize)> {
    let group_index = kernel.single_group()?;
    let [node] = fusion.order[group_index].nodes[..] else { return None };
    let (Op::Dot { .. }, Role::Step) = (&graph.nodes()[node].op, &fusion.roles[node]) else { return None };
    Some((group_index, node))
}

/// A product as one of matrices.
fn plan(graph: &Graph, node: usize) -> Option<Dot> {
    let node = &graph.nodes()[node];
    let operands = [0, 1].map(|at| graph.ty(node.inputs[at]));
    product_of(&node.op, &operands)
}
