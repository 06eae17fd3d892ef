//! Rows between two products, as the weights of attention: they are made from a product's, and are the left operand of
//! another. All is done for blocks of rows, so that neither the product nor the rows are written to memory.

use defn_core::graph::{Graph, Value, Values};
use defn_core::op::Op;

use super::cluster::{Clusters, Role};
use super::fuse;
use super::nest::BlockNest;
use super::strips::{Part, Piece, Strip};
use super::users::Uses;
use crate::backend::forces_epilogues;
use crate::kernels::linalg::{self, Dot, DotAxes};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// The least bytes of a product that is not written. The second caches hold smaller ones.
const LEAST_BYTES: usize = 1 << 20;

/// The most pieces between the two products. What the first one reads is kept as long.
const WINDOW: usize = 8;

/// Two products and the nest between them, ready to run.
#[derive(Debug)]
pub(super) struct Between {
    products: linalg::Between,
    nest: BlockNest,
    /// The place of the second product.
    pub(super) place: usize,
    /// The node of the second product.
    pub(super) node: usize,
    /// Where each input of the nest lies.
    sources: Vec<From>,
    /// What the products read, and behind it what else the nest does.
    pub(super) inputs: Values,
    width: usize,
    row: usize,
}

/// Where an input of the nest lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    /// It is the rows of the first product.
    Rows,
    Input(usize),
}

/// Joins products and the rows between them, where these are large and nobody else needs them.
pub(super) fn with_between(
    graph: &Graph,
    clusters: &Clusters,
    uses: &dyn Uses,
    mut pieces: Vec<Piece>,
) -> Vec<Piece> {
    let mut at = 0;
    while at < pieces.len() {
        let found = Between::at(graph, clusters, uses, &pieces, at);
        if let Some((before, after, made)) = found {
            pieces[after] = Piece::Between(Box::new(made));
            pieces.remove(at);
            pieces.remove(before);
            at = before;
        } else {
            at += 1;
        }
    }
    pieces
}

impl Between {
    /// The products around the nest that a piece is, and their pieces.
    fn at(
        graph: &Graph,
        clusters: &Clusters,
        uses: &dyn Uses,
        pieces: &[Piece],
        at: usize,
    ) -> Option<(usize, usize, Between)> {
        let Piece::Nest(_, _, Some(strip)) = &pieces[at] else { return None };
        let domain = &strip.domain;
        if domain.inner != 1 || domain.is_long() || !domain.is_in_order() {
            return None;
        }
        let (row, elements) = (domain.reduced, domain.elements());
        let mut results = results_of(uses, strip);
        let (Some(rows), None) = (results.next(), results.next()) else { return None };
        let ty = graph.ty(rows);
        let is_large = ty.byte_size() >= LEAST_BYTES || forces_epilogues();
        if ty.size() != elements || !is_large {
            return None;
        }
        let mut after = at + 1..pieces.len().min(at + 1 + WINDOW);
        let after = after.find(|&piece| {
            dot_at(graph, clusters, &pieces[piece]).is_some_and(|(_, node)| {
                let [a, b] = graph.nodes()[node].inputs[..] else { return false };
                let seen = clusters.seen(graph, a);
                seen.base == rows && seen.is_whole(graph) && clusters.base(b) != rows
            })
        })?;
        let (second_place, second) = dot_at(graph, clusters, &pieces[after])?;
        if uses.is_needed_beyond(rows, &|place| place == second_place || strip.has(place)) {
            return None;
        }
        let nodes = nodes_of(clusters, strip);
        let results: Values = [rows].into_iter().collect();
        let nest = BlockNest::new(graph, clusters, nodes, (elements, row), &results)?;
        let before = (at.saturating_sub(WINDOW)..at).rev().find(|&piece| {
            let first = dot_at(graph, clusters, &pieces[piece]);
            let product = first.map(|(_, node)| Value { node: node as u32, output: 0 });
            product.is_some_and(|product| {
                let mut reads = nest.inputs.iter().filter(|(value, _)| *value == product).peekable();
                graph.ty(product) == ty
                    && reads.peek().is_some()
                    && reads.all(|(_, view)| view.is_plain(elements))
                    && !uses.is_needed_beyond(product, &|place| strip.has(place))
            })
        })?;
        let (_, first) = dot_at(graph, clusters, &pieces[before])?;
        let products = linalg::Between::new(plan(graph, first)?, plan(graph, second)?, ty.dtype)?;
        let product = Value { node: first as u32, output: 0 };
        let mut inputs: Values = graph.nodes()[first].inputs.iter().copied().collect();
        inputs.push(graph.nodes()[second].inputs[1]);
        let sources = nest.inputs.iter().map(|&(value, _)| {
            if value == product {
                return From::Rows;
            }
            inputs.push(value);
            From::Input(inputs.len() - 1)
        });
        let sources = sources.collect();
        let width = ty.dtype.storage_bytes();
        let made = Between { products, nest, place: second_place, node: second, sources, inputs, width, row };
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
            let sources = self.sources.iter().map(|from| match from {
                From::Rows => start,
                From::Input(at) => inputs[*at].start().cast_mut(),
            });
            let nest = self.nest.with(sources.chain([start, beside]));
            // SAFETY: the block has these rows. The nest reads and writes no others, and each element before it writes
            // it: what it reads of rows lies as what it writes.
            unsafe { nest.rows(first, count) };
        };
        self.products.run((a, b, other), result, (&middle, self.nest.scratch), par);
    }
}

/// The place and the node of a product that is a step by itself.
fn dot_at(graph: &Graph, clusters: &Clusters, piece: &Piece) -> Option<(usize, usize)> {
    let place = piece.alone()?;
    let [node] = clusters.order[place].nodes[..] else { return None };
    let (Op::Dot { .. }, Role::Step) = (&graph.nodes()[node].op, &clusters.roles[node]) else { return None };
    Some((place, node))
}

/// What a strip gives to others.
pub(super) fn results_of<'u>(uses: &'u dyn Uses, strip: &'u Strip) -> impl Iterator<Item = Value> + 'u {
    let all = strip.parts.iter().flat_map(|(place, _)| uses.of(*place).iter().copied());
    all.filter(|&value| uses.is_needed_beyond(value, &|place| strip.has(place)))
}

/// The nodes of a strip, and what each is in a nest.
pub(super) fn nodes_of(clusters: &Clusters, strip: &Strip) -> Vec<(usize, fuse::Part)> {
    let parts = strip.parts.iter().flat_map(|(place, part)| {
        let part = match part {
            Part::Elements => fuse::Part::Elements,
            Part::Rows => fuse::Part::Rows,
            Part::Fold(op) => fuse::Part::Fold(*op),
        };
        clusters.order[*place].nodes.iter().map(move |&node| (node, part))
    });
    parts.collect()
}

/// A product as one of matrices.
fn plan(graph: &Graph, node: usize) -> Option<Dot> {
    let node = &graph.nodes()[node];
    let Op::Dot { contract_a, batch_a, contract_b, .. } = &node.op else { return None };
    let [a, b] = [(0, contract_a), (1, contract_b)].map(|(at, contract)| DotAxes {
        sizes: graph.ty(node.inputs[at]).shape.sizes(),
        contract,
        batch: batch_a.len(),
    });
    Some(Dot::new(a, b, true))
}
