//! Folds of what element-wise ops give, of everything, of long rows or of columns: each block of elements is folded
//! while the first cache holds it, and comes to memory only if others need it.

use defn_core::graph::{Graph, Value, Values};
use defn_core::op::Op;
use defn_core::{DType, Shape, TensorType};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::cluster::{Clusters, Role};
use super::group::{Group, group};
use super::strip::Uses;
use super::strips::Piece;
use crate::kernels::StridedOperand;
use crate::kernels::reduce::{ElementBlock, PiecePartition, PieceReducer, PiecewiseReduction};
use crate::kernels::stream::StoreKind;
use crate::kernels::tiles::{Running, with_memory_between};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Cheap instructions on elements that one thread does at a time.
const GRAIN: usize = 64 << 10;

/// A cluster of element-wise ops by its place, and the places of folds of what it gives, all by the same pieces.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) place: usize,
    pub(super) folds: Vec<usize>,
}

/// Puts folds to what they fold. They need nothing else, and so can be done that early.
pub(super) fn with_folds(graph: &Graph, clusters: &Clusters, pieces: Vec<Piece>) -> Vec<Piece> {
    // By their places, the clusters that stand alone and are element-wise.
    let mut alone: FxHashMap<usize, Option<(PiecePartition, Vec<usize>)>> = FxHashMap::default();
    let mut moved = vec![false; clusters.order.len()];
    for piece in &pieces {
        let Piece::One(place) = piece else { continue };
        let cluster = &clusters.order[*place];
        match clusters.roles[cluster.nodes[0]] {
            Role::Elementwise => {
                alone.insert(*place, None);
            }
            Role::Step => {
                if let Some((of, cut)) = fold(graph, clusters, *place)
                    && let Some(found) = alone.get_mut(&of)
                {
                    let (known, folds) = found.get_or_insert_with(|| (cut, Vec::new()));
                    if *known == cut {
                        folds.push(*place);
                        moved[*place] = true;
                    }
                }
            }
            Role::Given | Role::View | Role::Generated => {}
        }
    }
    let placed = pieces.into_iter().filter_map(|piece| match piece {
        Piece::One(place) if moved[place] => None,
        Piece::One(place) => Some(match alone.remove(&place).flatten() {
            Some((_, folds)) => Piece::Folds(Found { place, folds }),
            None => Piece::One(place),
        }),
        other @ (Piece::Strip(_)
        | Piece::Nest(..)
        | Piece::Folds(_)
        | Piece::Moments(_)
        | Piece::Followed(_)
        | Piece::Between(_)) => Some(other),
    });
    placed.collect()
}

/// The place of the cluster that gives what a cluster folds as it is made, and by which pieces.
fn fold(graph: &Graph, clusters: &Clusters, place: usize) -> Option<(usize, PiecePartition)> {
    let [position] = clusters.order[place].nodes[..] else { return None };
    let node = &graph.nodes()[position];
    let Op::Reduce { op, axes, keep_axes: _ } = &node.op else { return None };
    let seen = clusters.seen(graph, node.inputs[0]);
    if !seen.is_whole(graph) {
        return None;
    }
    let pieces = PiecewiseReduction::new(*op, graph.ty(node.inputs[0]), axes, &node.outputs[0])?;
    Some((clusters.place[seen.base.node as usize]?, pieces.cut()))
}

/// A program and folds of its results, ready to run.
#[derive(Debug)]
pub(super) struct Folds {
    group: Group,
    cut: PiecePartition,
    /// Where each value of the program lies.
    homes: Vec<Home>,
    folds: Vec<Fold>,
    /// How many pieces a thread does at a time.
    grain: usize,
    /// The values that are read from before.
    pub(super) inputs: Values,
    /// The values that are given.
    pub(super) results: Values,
    /// The bytes of the values of a block that nobody else reads.
    between: usize,
    /// The bytes of the partial results of all folds.
    partial: usize,
}

#[derive(Clone, Copy, Debug)]
enum Home {
    /// In a result.
    Result(usize),
    /// In memory between from an offset on.
    Between(usize),
}

#[derive(Debug)]
struct Fold {
    pieces: PiecewiseReduction,
    /// Which value of the program is folded, and its type in a block of so many elements.
    of: usize,
    dtype: DType,
    /// Where blocks are put together that lie apart in a result.
    together: Option<usize>,
    /// Which result is given.
    result: usize,
    /// Where the partial results lie, and their type.
    offset: usize,
    partial: TensorType,
}

/// What begins at a line of the cache.
fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(64)
}

impl Folds {
    pub(super) fn new(graph: &Graph, clusters: &Clusters, uses: &dyn Uses, found: &Found) -> Folds {
        let group = group(graph, clusters, &clusters.order[found.place], uses.of(found.place).clone());
        let of_fold = |&place: &usize| {
            let position = clusters.order[place].nodes[0];
            let node = &graph.nodes()[position];
            let Op::Reduce { op, axes, keep_axes: _ } = &node.op else {
                unreachable!("folds are reductions")
            };
            let pieces = PiecewiseReduction::new(*op, graph.ty(node.inputs[0]), axes, &node.outputs[0]);
            let out = Value { node: position as u32, output: 0 };
            (clusters.base(node.inputs[0]), out, pieces.expect("folds were found so"))
        };
        let found_folds: Vec<(Value, Value, PiecewiseReduction)> = found.folds.iter().map(of_fold).collect();
        let cut = found_folds[0].2.cut();
        let is_within = |place: usize| found.folds.contains(&place);
        let (mut results, mut between) = (Values::new(), 0);
        let mut homes = Vec::with_capacity(group.results.len());
        for &value in &group.results {
            homes.push(if uses.is_needed_beyond(value, &is_within) {
                results.push(value);
                Home::Result(results.len() - 1)
            } else {
                between += aligned(cut.block() * graph.ty(value).dtype.storage_bytes());
                Home::Between(between - aligned(cut.block() * graph.ty(value).dtype.storage_bytes()))
            });
        }
        let mut partial = 0;
        let mut folds = Vec::with_capacity(found_folds.len());
        for (value, out, pieces) in found_folds {
            let of = group.results.iter().position(|&given| given == value);
            let of = of.expect("what is folded is needed");
            let own = graph.ty(value).dtype;
            let together = match homes[of] {
                Home::Result(_) if !cut.is_side_by_side() => {
                    between += aligned(cut.block() * own.storage_bytes());
                    Some(between - aligned(cut.block() * own.storage_bytes()))
                }
                Home::Result(_) | Home::Between(_) => None,
            };
            let (dtype, count) = pieces.partial();
            results.push(out);
            folds.push(Fold {
                pieces,
                of,
                dtype: own,
                together,
                result: results.len() - 1,
                offset: partial,
                partial: TensorType { dtype, shape: Shape::new(&[count]) },
            });
            partial += aligned(count * dtype.storage_bytes());
        }
        let weight = group.program.weight() + folds.len();
        let grain = (GRAIN / (weight * cut.piece())).max(1);
        let inputs = group.inputs.iter().map(|(value, _)| *value).collect();
        Folds { group, cut, homes, folds, grain, inputs, results, between, partial }
    }

    /// The bytes that a run needs beside.
    pub(super) fn room(&self) -> usize {
        self.partial
    }

    /// Makes and folds all elements. `inputs` and `results` are as this lists them.
    ///
    /// # Safety
    /// At `room` is as much memory as [`Folds::room`] says, aligned to a line of the cache, which nobody else uses.
    pub(super) unsafe fn run(
        &self,
        graph: &Graph,
        inputs: &[View<'_>],
        results: &[ViewMut<'_>],
        room: *mut u8,
        par: Par,
    ) {
        let pairs = inputs.iter().zip(&self.group.inputs);
        let sources = pairs.map(|(view, (_, walk))| StridedOperand::with_strided_view(*view, walk));
        let sources: SmallVec<[StridedOperand<'_>; 8]> = sources.collect();
        let partials = self.folds.iter().map(|fold| {
            // SAFETY: the memory has room for the partial results of all folds, one after the other.
            unsafe { ViewMut::new(&fold.partial, room.wrapping_add(fold.offset)) }
        });
        let partials: SmallVec<[ViewMut<'_>; 2]> = partials.collect();
        par.for_chunks(self.cut.pieces(), self.grain, |chunk| {
            with_memory_between(self.between, |between| {
                let mut folders: SmallVec<[Box<dyn PieceReducer + '_>; 2]> =
                    self.folds.iter().map(|fold| fold.pieces.folder()).collect();
                // What is folded is read again at once.
                self.group.program.start(&sources, self.cut.block(), StoreKind::Cached, |running| {
                    for piece in chunk {
                        self.cut.blocks(piece, |block| {
                            self.make(graph, running, block, results, between);
                            for (fold, folder) in self.folds.iter().zip(&mut folders) {
                                self.fold(fold, &mut **folder, block, results, between);
                            }
                        });
                        for ((fold, folder), partial) in self.folds.iter().zip(&mut folders).zip(&partials) {
                            // SAFETY: a piece is one chunk's.
                            unsafe { folder.finish(piece, &results[fold.result], partial) };
                        }
                    }
                });
            });
        });
        for (fold, partial) in self.folds.iter().zip(&partials) {
            fold.pieces.join(&results[fold.result], partial, par);
        }
    }

    /// Makes the elements of a block.
    fn make(
        &self,
        graph: &Graph,
        running: &mut Running<'_, '_>,
        block: ElementBlock,
        results: &[ViewMut<'_>],
        between: *mut u8,
    ) {
        let rows = if block.step == block.width { 1 } else { block.rows };
        let len = block.rows * block.width / rows;
        for row in 0..rows {
            let first = block.start + row * block.step;
            let homes = self.homes.iter().zip(&self.group.results);
            let starts = homes.map(|(home, value)| match home {
                Home::Result(at) => results[*at].start(),
                Home::Between(offset) => {
                    let width = graph.ty(*value).dtype.storage_bytes();
                    let row = between.wrapping_add(offset + row * len * width);
                    row.wrapping_sub(first * width)
                }
            });
            let starts: SmallVec<[*mut u8; 4]> = starts.collect();
            // SAFETY: results have room for all elements and memory between has it for those of a block; blocks are
            // disjoint, as threads' memory between is.
            unsafe { running.part(&starts, first..first + len) };
        }
    }

    /// Gives a block to a fold.
    fn fold(
        &self,
        fold: &Fold,
        folder: &mut dyn PieceReducer,
        block: ElementBlock,
        results: &[ViewMut<'_>],
        between: *mut u8,
    ) {
        let width = fold.dtype.storage_bytes();
        let start = match (self.homes[fold.of], fold.together) {
            (Home::Result(at), None) => results[at].start().wrapping_add(block.start * width),
            (Home::Result(at), Some(offset)) => {
                let row = block.width * width;
                for index in 0..block.rows {
                    let from = (block.start + index * block.step) * width;
                    // SAFETY: the row was written, by this thread, and memory between has room for all of them.
                    unsafe {
                        let from = results[at].start().add(from);
                        from.copy_to_nonoverlapping(between.add(offset + index * row), row);
                    }
                }
                between.wrapping_add(offset)
            }
            (Home::Between(offset), _) => between.wrapping_add(offset),
        };
        let ty = TensorType { dtype: fold.dtype, shape: Shape::new(&[block.rows * block.width]) };
        // SAFETY: the elements of the block were written and are aligned, and nobody writes them meanwhile.
        let x = unsafe { View::of_part(&ty, start) };
        folder.take(x, block);
    }
}

#[cfg(test)]
mod tests {
    use defn_core::region::Region;

    use super::super::strips::pieces;
    use super::super::users::Users;
    use super::*;

    /// How many folds are done with each cluster.
    fn folds_of(text: &str) -> Vec<usize> {
        let region = Region::from_text(text).unwrap();
        let clusters = Clusters::new(&region);
        let of_piece = |piece: Piece| match piece {
            Piece::One(_) | Piece::Moments(_) | Piece::Followed(_) | Piece::Between(_) => 0,
            Piece::Strip(strip) => panic!("{strip:?}"),
            Piece::Nest(..) => 0,
            Piece::Folds(found) => found.folds.len(),
        };
        let users = Users::new(&region, &clusters);
        pieces(region.graph(), &clusters, &users).into_iter().map(of_piece).collect()
    }

    #[test]
    fn a_variance_is_folded_as_it_is_made() {
        let found = folds_of(
            "defn-ir 1
            (f32[512][512]) {
                %0 = parameter {index: 0} : f32[512][512]
                %1 = constant {value: 3.0} : f32
                %2 = sum %0 {axes: [0, 1], keep_axes: false} : f32
                %3 = divide %2 %1 : f32
                %4 = subtract %0 %3 : f32[512][512]
                %5 = multiply %4 %4 : f32[512][512]
                %6 = sum %5 {axes: [0, 1], keep_axes: false} : f32
                %7 = reduce_max %4 {axes: [0, 1], keep_axes: false} : f32
                return %6 %7
            }",
        );
        assert_eq!(found, [0, 0, 2]);
    }

    /// Of numbers that nests do not reduce.
    #[test]
    fn columns_are_folded_as_they_are_made() {
        let found = folds_of(
            "defn-ir 1
            (c64[64][16], c64[64][16]) {
                %0 = parameter {index: 0} : c64[64][16]
                %1 = parameter {index: 1} : c64[64][16]
                %2 = multiply %0 %1 : c64[64][16]
                %3 = sum %2 {axes: [0], keep_axes: false} : c64[16]
                %4 = reverse %3 {axes: [0]} : c64[16]
                %5 = sum %0 {axes: [0], keep_axes: false} : c64[16]
                return %4 %2 %5
            }",
        );
        assert_eq!(found.iter().sum::<usize>(), 1);
        assert_eq!(found.len(), 3);
    }
}
