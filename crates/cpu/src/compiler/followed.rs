//! Products of matrices, and convolutions, that element-wise ops follow: these are done to each block of a product by the
//! thread that has completed it, while the second cache holds the block. Where nobody else needs the product, it lies
//! where one of their results will.

use defn_core::backend::Poll;
use defn_core::graph::{Graph, Value, Values};
use defn_core::{Result, TensorType};
use smallvec::SmallVec;

use super::cluster::{Clusters, Role};
use super::group::{Group, group};
use super::strips::Piece;
use super::users::Uses;
use crate::backend::{run_with_epilogue, supports_epilogue};
use crate::kernels::StridedOperand;
use crate::kernels::epilogue::CompletedRows;
use crate::kernels::stream::StoreKind;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// The places of an op and of the cluster that follows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) op: usize,
    pub(super) place: usize,
}

/// Puts clusters to the ops that they follow at once. Nothing is moved past others, so that no value is kept for longer.
pub(super) fn with_followed(graph: &Graph, clusters: &Clusters, pieces: Vec<Piece>) -> Vec<Piece> {
    let mut placed: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let before = placed.last().and_then(Piece::alone);
        let found = before.zip(piece.alone()).map(|(op, place)| Found { op, place });
        match found.filter(|found| follows(graph, clusters, *found)) {
            Some(found) => {
                placed.pop();
                placed.push(Piece::Followed(found));
            }
            None => placed.push(piece),
        }
    }
    placed
}

/// The types of a node's operands.
fn operand_types(graph: &Graph, node: usize) -> SmallVec<[&TensorType; 4]> {
    graph.nodes()[node].inputs.iter().map(|&input| graph.ty(input)).collect()
}

/// Whether a cluster is done to each element of what an op gives as it lies, and the op tells of them one by one.
fn follows(graph: &Graph, clusters: &Clusters, found: Found) -> bool {
    let (op, cluster) = (&clusters.order[found.op].nodes, &clusters.order[found.place].nodes);
    let ([op], Role::Elementwise) = (&op[..], &clusters.roles[cluster[0]]) else { return false };
    let node = &graph.nodes()[*op];
    let elements = graph.nodes()[cluster[0]].outputs[0].size();
    let is_as_large = node.outputs.len() == 1 && node.outputs[0].size() == elements;
    let Role::Step = clusters.roles[*op] else { return false };
    if !is_as_large || !supports_epilogue(&node.op, &operand_types(graph, *op), &node.outputs) {
        return false;
    }
    let inputs = cluster.iter().flat_map(|&position| &graph.nodes()[position].inputs);
    let mut reads = inputs.filter(|&&input| clusters.base(input).node as usize == *op).peekable();
    let is_whole =
        |input: &Value| graph.ty(*input).size() == elements && clusters.seen(graph, *input).is_whole(graph);
    reads.peek().is_some() && reads.all(is_whole)
}

/// An op and the program that follows it, ready to run.
#[derive(Debug)]
pub(super) struct Followed {
    /// The op's node, and what it gives.
    pub(super) op: usize,
    product: Value,
    group: Group,
    /// Where each input of the program lies.
    sources: Vec<From>,
    home: Home,
    /// What the op reads, and behind it what else the program does.
    pub(super) inputs: Values,
    /// What the program gives, and behind it the product, where others need it.
    pub(super) results: Values,
}

/// Where an input of a program lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Product,
    Input(usize),
}

/// Where a product lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// In a result, or where one of the program's will.
    Result(usize),
    /// In memory of the step's own.
    Room,
}

impl Followed {
    pub(super) fn new(graph: &Graph, clusters: &Clusters, uses: &dyn Uses, found: &Found) -> Followed {
        let op = clusters.order[found.op].nodes[0];
        let product = Value { node: op as u32, output: 0 };
        let group = group(graph, clusters, &clusters.order[found.place], uses.of(found.place).clone());
        let mut inputs: Values = graph.nodes()[op].inputs.iter().copied().collect();
        let sources = group.inputs.iter().map(|&(value, _)| {
            if value == product {
                return From::Product;
            }
            inputs.push(value);
            From::Input(inputs.len() - 1)
        });
        let sources = sources.collect();
        let mut results = group.results.clone();
        let mut home = Home::Room;
        if uses.is_needed_beyond(product, &|place| place == found.place) {
            home = Home::Result(results.len());
            results.push(product);
        }
        Followed { op, product, group, sources, home, inputs, results }
    }

    /// The outputs that may lie in the memory of an input: pairs of both. What the op reads is read until its last
    /// element is made.
    pub(super) fn pairs(&self) -> SmallVec<[(usize, usize); 3]> {
        let mut pairs = SmallVec::new();
        for (from, (_, walk)) in self.sources.iter().zip(&self.group.inputs) {
            match from {
                From::Input(input) if walk.is_plain(self.group.elements) => {
                    pairs.extend((0..self.group.results.len()).map(|output| (output, *input)));
                }
                From::Input(_) | From::Product => {}
            }
        }
        pairs
    }

    /// Notes which outputs lie in the memory of which inputs, and chooses where the product lies.
    pub(super) fn settle(&mut self, graph: &Graph, over: &[(usize, usize)]) {
        let width = |value: Value| graph.ty(value).dtype.storage_bytes();
        let is_free = |output: &usize| {
            let is_over = over.iter().any(|(other, _)| other == output);
            !is_over && width(self.group.results[*output]) == width(self.product)
        };
        if self.home == Home::Room
            && let Some(output) = (0..self.group.results.len()).find(is_free)
        {
            self.home = Home::Result(output);
        }
        let lies_in_result = |from: &From| match from {
            From::Product => self.home != Home::Room && !self.gives_product(),
            From::Input(input) => over.iter().any(|(_, other)| other == input),
        };
        let first: SmallVec<[usize; 4]> =
            (0..self.sources.len()).filter(|&at| lies_in_result(&self.sources[at])).collect();
        self.group.read_first(&first);
    }

    /// Whether the product is a result.
    fn gives_product(&self) -> bool {
        self.results.len() > self.group.results.len()
    }

    /// The bytes that a run needs beside.
    pub(super) fn room(&self, graph: &Graph) -> usize {
        match self.home {
            Home::Room => graph.ty(self.product).byte_size(),
            Home::Result(_) => 0,
        }
    }

    /// Runs the op, and the program on all elements. `inputs` and `results` are as this lists them.
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
        let sources = self.sources.iter().zip(&self.group.inputs).map(|(from, (_, walk))| {
            let view = match from {
                From::Input(at) => inputs[*at],
                // SAFETY: the program reads what the op has written, and writes it itself after that.
                From::Product => unsafe { View::of_part(graph.ty(self.product), start) },
            };
            StridedOperand::with_strided_view(view, walk)
        });
        let sources: SmallVec<[StridedOperand<'_>; 8]> = sources.collect();
        let results = &results[..self.group.results.len()];
        let tail = |rows: CompletedRows| {
            let starts: SmallVec<[*mut u8; 4]> = results.iter().map(ViewMut::start).collect();
            self.group.program.start(&sources, rows.count * rows.len, StoreKind::Cached, |running| {
                for range in rows.ranges() {
                    // SAFETY: results have room for all elements, of each of which one thread is told.
                    unsafe { running.part(&starts, range) };
                }
            });
        };
        // SAFETY: there is room for the product, in a result or apart, which only the tail uses too, and that each
        // element after the op.
        let product = unsafe { ViewMut::new(graph.ty(self.product), start) };
        run_with_epilogue(&node.op, &inputs[..node.inputs.len()], &product, &tail, par, poll)
    }
}
