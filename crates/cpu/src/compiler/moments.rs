//! Variances of long rows: a sum, and the sum of the squares of what the elements differ from their mean, which would be
//! read from memory once more.

use defn_core::graph::{Graph, Value};
use defn_core::op::{BinaryOp, Op, ReduceOp};
use defn_core::{Number, TensorType};

use super::cluster::Clusters;
use super::folds::Found as Folded;
use super::strip::Uses;
use super::strips::Piece;
use crate::kernels::reduce::OnePassMoments;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// The places of a sum, of the squares of differences from the mean, and of their sum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) sum: usize,
    squares: usize,
    fold: usize,
}

/// Puts sums of squares to the sums that they begin with. They need nothing else, and so can be done that early.
pub(super) fn with_moments(
    graph: &Graph,
    clusters: &Clusters,
    uses: &dyn Uses,
    pieces: Vec<Piece>,
) -> Vec<Piece> {
    let of_piece = |piece: &Piece| match piece {
        Piece::Folds(folded) => found(graph, clusters, uses, folded),
        Piece::One(_)
        | Piece::Strip(_)
        | Piece::Nest(..)
        | Piece::Moments(_)
        | Piece::Followed(_)
        | Piece::Between(_) => None,
    };
    let all: Vec<Found> = pieces.iter().filter_map(of_piece).collect();
    if all.is_empty() {
        return pieces;
    }
    let alone: Vec<usize> = pieces.iter().filter_map(Piece::alone).collect();
    // A sum is done with the first of those that begin with it.
    let mut chosen: Vec<Found> = Vec::with_capacity(all.len());
    for found in all {
        if alone.contains(&found.sum) && chosen.iter().all(|other| other.sum != found.sum) {
            chosen.push(found);
        }
    }
    let placed = pieces.into_iter().filter_map(|piece| match piece {
        Piece::One(place) => Some(match chosen.iter().find(|found| found.sum == place) {
            Some(found) => Piece::Moments(*found),
            None => Piece::One(place),
        }),
        Piece::Folds(folded) if chosen.iter().any(|found| found.squares == folded.place) => None,
        other @ (Piece::Strip(_)
        | Piece::Nest(..)
        | Piece::Folds(_)
        | Piece::Moments(_)
        | Piece::Followed(_)
        | Piece::Between(_)) => Some(other),
    });
    placed.collect()
}

/// What a fold of squares begins with, if they are of differences from the mean of what is squared.
fn found(graph: &Graph, clusters: &Clusters, uses: &dyn Uses, folded: &Folded) -> Option<Found> {
    let ([fold], [apart, square]) = (&folded.folds[..], &clusters.order[folded.place].nodes[..]) else {
        return None;
    };
    let nodes = graph.nodes();
    let value = |node: usize| Value { node: node as u32, output: 0 };
    let (Op::Binary(first), Op::Binary(second)) = (&nodes[*apart].op, &nodes[*square].op) else {
        return None;
    };
    let is_square = (*first, *second) == (BinaryOp::SUBTRACT, BinaryOp::MULTIPLY)
        && nodes[*square].inputs.iter().all(|input| *input == value(*apart));
    let is_alone = uses.of(folded.place)[..] == [value(*square)]
        && !uses.is_needed_beyond(value(*square), &|place| place == *fold);
    if !is_square || !is_alone {
        return None;
    }
    let Op::Reduce { op: ReduceOp::Sum, axes, keep_axes: _ } = &nodes[clusters.order[*fold].nodes[0]].op
    else {
        return None;
    };
    let spread = OnePassMoments::new(graph.ty(value(*square)), axes)?;
    let (rows, length) = spread.rows();
    let (x, mean) = (nodes[*apart].inputs[0], nodes[*apart].inputs[1]);
    let sizes = graph.ty(value(*apart)).shape.sizes();
    let is_plain = graph.ty(x) == graph.ty(value(*square)) && clusters.seen(graph, x).is_whole(graph);
    let seen = clusters.seen(graph, mean);
    if !is_plain || !seen.walk(sizes).is_of_rows(rows, length) {
        return None;
    }
    let summed = mean_of(graph, clusters, seen.base, length)?;
    let sum = clusters.base(summed).node as usize;
    let Op::Reduce { op: ReduceOp::Sum, axes: same, keep_axes: _ } = &nodes[sum].op else { return None };
    let from = nodes[sum].inputs[0];
    let is_same = same == axes
        && graph.ty(from) == graph.ty(x)
        && clusters.base(from) == clusters.base(x)
        && clusters.seen(graph, from).is_whole(graph);
    let place = clusters.place[sum].filter(|_| is_same)?;
    Some(Found { sum: place, squares: folded.place, fold: *fold })
}

/// What a value is the quotient of and a number of elements.
fn mean_of(graph: &Graph, clusters: &Clusters, mean: Value, length: usize) -> Option<Value> {
    let node = &graph.nodes()[mean.node as usize];
    let Op::Binary(op) = &node.op else { return None };
    let Op::Constant(by) = &graph.nodes()[clusters.base(node.inputs[1]).node as usize].op else {
        return None;
    };
    let by = match by.value() {
        Number::Int(by) => by as f64,
        Number::Huge(by) | Number::Float(by) => by,
        Number::Bool(_) | Number::Complex(_) => return None,
    };
    // One number in the type of the elements, which need not have all digits of the length.
    let near = |share: f64| (share - 1.0).abs() < 1e-6;
    let is_mean = (*op == BinaryOp::DIVIDE && near(by / length as f64))
        || (*op == BinaryOp::MULTIPLY && near(by * length as f64));
    let whole = clusters.seen(graph, node.inputs[0]).is_whole(graph);
    (is_mean && whole).then_some(node.inputs[0])
}

/// Both sums, ready to run.
#[derive(Debug)]
pub(super) struct Moments {
    spread: OnePassMoments,
    partial: [TensorType; 2],
    /// What is read.
    pub(super) input: Value,
    /// The sum, and that of squares.
    pub(super) results: [Value; 2],
}

/// What begins at a line of the cache.
fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(64)
}

impl Moments {
    pub(super) fn new(graph: &Graph, clusters: &Clusters, found: &Found) -> Moments {
        let [sum, fold] = [found.sum, found.fold].map(|place| clusters.order[place].nodes[0]);
        let node = &graph.nodes()[sum];
        let Op::Reduce { axes, .. } = &node.op else { unreachable!("a sum was found") };
        let spread = OnePassMoments::new(graph.ty(node.inputs[0]), axes).expect("rows were found so");
        let results = [sum, fold].map(|node| Value { node: node as u32, output: 0 });
        Moments { partial: spread.partial(), spread, input: clusters.base(node.inputs[0]), results }
    }

    /// The bytes that a run needs beside.
    pub(super) fn room(&self) -> usize {
        self.partial.iter().map(|ty| aligned(ty.byte_size())).sum()
    }

    /// Writes both sums.
    ///
    /// # Safety
    /// At `room` is as much memory as [`Moments::room`] says, aligned to a line of the cache, which nobody else uses.
    pub(super) unsafe fn run(&self, x: View<'_>, results: [&ViewMut<'_>; 2], room: *mut u8, par: Par) {
        let [sums, known] = &self.partial;
        // SAFETY: the memory has room for the partial sums and what else is known of pieces, one after the other.
        let (sums, known) = unsafe {
            (ViewMut::new(sums, room), ViewMut::new(known, room.wrapping_add(aligned(sums.byte_size()))))
        };
        self.spread.run(x, results, [&sums, &known], par);
    }
}

#[cfg(test)]
mod tests {
    use defn_core::region::Region;

    use super::super::strips::pieces;
    use super::super::users::Users;
    use super::*;

    /// How many sums are done with those of squares.
    fn moments_of(text: &str) -> usize {
        let region = Region::from_text(text).unwrap();
        let clusters = Clusters::new(&region);
        let users = Users::new(&region, &clusters);
        let all = with_moments(region.graph(), &clusters, &users, pieces(region.graph(), &clusters, &users));
        let of_piece = |piece: &Piece| match piece {
            Piece::Moments(_) => 1,
            Piece::One(_)
            | Piece::Strip(_)
            | Piece::Nest(..)
            | Piece::Folds(_)
            | Piece::Followed(_)
            | Piece::Between(_) => 0,
        };
        all.iter().map(of_piece).sum()
    }

    const LONG: &str = "defn-ir 1
        (f32[512][512]) {
            %0 = parameter {index: 0} : f32[512][512]
            %1 = constant {value: 262144.0} : f32
            %2 = sum %0 {axes: [0, 1], keep_axes: false} : f32
            %3 = divide %2 %1 : f32
            %4 = subtract %0 %3 : f32[512][512]
            %5 = multiply %4 %4 : f32[512][512]
            %6 = sum %5 {axes: [0, 1], keep_axes: false} : f32
            return %6
        }";

    #[test]
    fn a_variance_is_one_pass() {
        assert_eq!(moments_of(LONG), 1);
        // Of something else than the mean, and where the differences or squares are needed themselves.
        assert_eq!(moments_of(&LONG.replace("262144.0", "262143.0")), 0);
        assert_eq!(moments_of(&LONG.replace("%5 = multiply %4 %4", "%5 = multiply %4 %0")), 0);
        assert_eq!(moments_of(&LONG.replace("return %6", "return %6 %4")), 0);
        assert_eq!(moments_of(&LONG.replace("return %6", "return %6 %5")), 0);
        // Both sums can be needed.
        assert_eq!(moments_of(&LONG.replace("return %6", "return %6 %3 %2")), 1);
    }
}
