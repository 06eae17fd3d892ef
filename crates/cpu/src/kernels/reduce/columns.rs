//! Reductions along axes that are not contiguous: many adjacent columns together.

use defn_core::DType;

use super::fold::{RUN, Reduction, fold_down, join_before, join_row, join_rows};
use super::layout::{CHUNK, ReductionLayout};
use super::{store, write};
use crate::kernels::{Element, StridedOperand, TILE, TileLoader};
use crate::par::Par;
use crate::view::ViewMut;

/// Columns that are reduced together. A row of 1024 f32 is a page, which is read to its end before the next row, as
/// hardware prefetchers expect.
pub(super) const WIDTH: usize = 1024;

/// Levels of a cascade of columns: it takes `2^DEPTH - 1` runs.
pub(super) const DEPTH: usize = 11;

/// Levels that suffice for most pieces, which have many columns and few runs. All levels of a piece are cleared before
/// it, so that fewer levels save time.
const SHALLOW: usize = 4;

/// The rows of one piece: a power of two of runs, so that the division into pieces does not change the order of the
/// joins.
pub(super) fn piece_rows(folding: &ReductionLayout) -> usize {
    (CHUNK / folding.inner.min(WIDTH)).max(RUN).next_power_of_two().min(RUN << (DEPTH - 1))
}

/// The number of partial results of [`columns`].
pub(super) fn columns_scratch(folding: &ReductionLayout) -> usize {
    let pieces = folding.reduced.div_ceil(piece_rows(folding));
    if pieces > 1 { folding.outputs() * pieces } else { 0 }
}

/// Reduces a folding whose inner size is greater than 1.
pub(super) fn columns<F: Reduction>(
    source: &StridedOperand<'_>,
    dtype: DType,
    folding: &ReductionLayout,
    out: &ViewMut<'_>,
    scratch: &ViewMut<'_>,
    par: Par,
) {
    let &ReductionLayout { outer, reduced, inner, .. } = folding;
    let height = piece_rows(folding);
    let (pieces, column_blocks) = (reduced.div_ceil(height), inner.div_ceil(WIDTH));
    let work = inner.min(WIDTH) * reduced.min(height);
    par.for_chunks(outer * column_blocks * pieces, (CHUNK / work).max(1), |chunk| {
        let mut loader = TileLoader::new(source, dtype);
        let mut total = [F::Acc::ZERO; WIDTH];
        for task in chunk {
            let (piece, column_block, outer) =
                (task % pieces, task / pieces % column_blocks, task / pieces / column_blocks);
            let (row, column) = (piece * height, column_block * WIDTH);
            let total = &mut total[..WIDTH.min(inner - column)];
            let start = (outer * reduced + row) * inner + column;
            reduce_column_block::<F>(&mut loader, start, inner, height.min(reduced - row), total);
            // SAFETY: each column block of each piece belongs to one chunk.
            unsafe {
                if pieces == 1 {
                    store(out, outer * inner + column, total);
                } else {
                    write(scratch, (outer * pieces + piece) * inner + column, total);
                }
            }
        }
    });
    if pieces > 1 {
        join_pieces::<F>(folding, out, scratch, par);
    }
}

/// Joins the partial results, if there is more than one piece.
pub(super) fn join_pieces<F: Reduction>(
    folding: &ReductionLayout,
    out: &ViewMut<'_>,
    scratch: &ViewMut<'_>,
    par: Par,
) {
    let &ReductionLayout { outer, reduced, inner, .. } = folding;
    let (pieces, column_blocks) = (reduced.div_ceil(piece_rows(folding)), inner.div_ceil(WIDTH));
    let work = inner.min(WIDTH) * pieces;
    par.for_chunks(outer * column_blocks, (CHUNK / work).max(1), |chunk| {
        for task in chunk {
            let (outer, column) = (task / column_blocks, task % column_blocks * WIDTH);
            let width = WIDTH.min(inner - column);
            // SAFETY: all pieces are written; column blocks are disjoint and belong to one chunk each, and so do their
            // outputs.
            unsafe {
                let piece = |index: usize| {
                    let start = (outer * pieces + index) * inner + column;
                    scratch.part::<F::Acc>(start, width).assume_init_mut()
                };
                // Pairwise: pairs, pairs of pairs and so on, each stored in place of its first piece.
                let mut distance = 1;
                while distance < pieces {
                    for first in (0..pieces - distance).step_by(2 * distance) {
                        join_rows::<F>(piece(first), piece(first + distance));
                    }
                    distance *= 2;
                }
                store(out, outer * inner + column, piece(0));
            }
        }
    });
}

/// Reduces `rows` rows at distance `step` to the columns of `total`, with runs joined pairwise.
fn reduce_column_block<F: Reduction>(
    loader: &mut TileLoader<'_, F::Item>,
    start: usize,
    step: usize,
    rows: usize,
    total: &mut [F::Acc],
) {
    if rows <= RUN {
        fold_run::<F>(loader, start, step, rows, total);
        return;
    }
    if rows.div_ceil(RUN) < 1 << SHALLOW {
        fold_runs::<F, SHALLOW>(loader, start, step, rows, total);
    } else {
        fold_runs::<F, DEPTH>(loader, start, step, rows, total);
    }
}

/// As [`reduce_column_block`], for several runs, fewer than `2^LEVELS`.
fn fold_runs<F: Reduction, const LEVELS: usize>(
    loader: &mut TileLoader<'_, F::Item>,
    start: usize,
    step: usize,
    rows: usize,
    total: &mut [F::Acc],
) {
    let mut levels = [[F::Acc::ZERO; WIDTH]; LEVELS];
    let mut runs = PairwiseColumns::<F> { levels: &mut levels, count: 0 };
    for first in (0..rows).step_by(RUN) {
        fold_run::<F>(loader, start + first * step, step, RUN.min(rows - first), total);
        runs.push(total);
    }
    runs.finish(total);
}

/// Joins rows of results pairwise: pairs, pairs of pairs and so on.
pub(super) struct PairwiseColumns<'l, F: Reduction> {
    /// Level i holds the join of `2^i` rows if bit i of `count` is set.
    pub(super) levels: &'l mut [[F::Acc; WIDTH]],
    pub(super) count: usize,
}

impl<F: Reduction> PairwiseColumns<'_, F> {
    /// Takes the next row of results, and overwrites it.
    pub(super) fn push(&mut self, total: &mut [F::Acc]) {
        let mut level = 0;
        while self.count >> level & 1 == 1 {
            join_before::<F>(&self.levels[level][..total.len()], total);
            level += 1;
        }
        self.levels[level][..total.len()].copy_from_slice(total);
        self.count += 1;
    }

    /// The join of all rows; there must be at least one.
    pub(super) fn finish(self, total: &mut [F::Acc]) {
        let mut set = (0..DEPTH).filter(|level| self.count >> level & 1 == 1);
        let lowest = set.next().expect("at least one run was folded");
        total.copy_from_slice(&self.levels[lowest][..total.len()]);
        for level in set {
            join_before::<F>(&self.levels[level][..total.len()], total);
        }
    }
}

/// Reduces at most `RUN` rows sequentially.
pub(super) fn fold_run<F: Reduction>(
    loader: &mut TileLoader<'_, F::Item>,
    start: usize,
    step: usize,
    rows: usize,
    total: &mut [F::Acc],
) {
    let width = total.len();
    if let Some(items) = loader.lend(start, (rows - 1) * step + width) {
        total.iter_mut().zip(items).for_each(|(total, &item)| *total = F::lift(item));
        fold_down::<F>(total, items, step, rows);
        return;
    }
    // Rows without gaps between them are read several at once.
    let together = if width == step { (TILE / width).min(rows) } else { 1 };
    for first in (0..rows).step_by(together) {
        loader.seek(start + first * step, together.min(rows - first) * width);
        for (index, row) in loader.tile().chunks_exact(width).enumerate() {
            if first + index == 0 {
                total.iter_mut().zip(row).for_each(|(total, &item)| *total = F::lift(item));
            } else {
                join_row::<F>(total, row);
            }
        }
    }
}
