//! Reductions of contiguous rows.

use std::ops::Range;

use defn_core::DType;

use super::fold::{Cascade, Reduction, fold_slice};
use super::layout::{CHUNK, ReductionLayout};
use super::{read, short, store, write};
use crate::kernels::{Element, StridedOperand, TILE, TileLoader};
use crate::par::Par;
use crate::view::ViewMut;

/// Results that are collected before they are written.
const BATCH: usize = 64;

/// The number of partial results of [`rows`].
pub(super) fn rows_scratch(folding: &ReductionLayout) -> usize {
    if folding.reduced > CHUNK { folding.outer * folding.reduced.div_ceil(CHUNK) } else { 0 }
}

/// Reduces a folding whose inner size is 1.
pub(super) fn rows<F: Reduction>(
    source: &StridedOperand<'_>,
    dtype: DType,
    folding: &ReductionLayout,
    out: &ViewMut<'_>,
    scratch: &ViewMut<'_>,
    par: Par,
) {
    let length = folding.reduced;
    if length <= CHUNK {
        par.for_chunks(folding.outer, CHUNK / length, |outputs| {
            fold_each::<F>(source, dtype, length, outputs, out);
        });
        return;
    }
    // Long rows: partial results of pieces, which are then joined.
    let pieces = length.div_ceil(CHUNK);
    par.for_chunks(folding.outer * pieces, 1, |chunk| {
        let mut loader = TileLoader::new(source, dtype);
        for task in chunk {
            let (output, piece) = (task / pieces, task % pieces);
            let from = piece * CHUNK;
            let value = fold_row::<F>(&mut loader, output * length + from, CHUNK.min(length - from));
            // SAFETY: each piece belongs to one chunk.
            unsafe { write(scratch, task, &[value]) };
        }
    });
    join_pieces::<F>(folding, out, scratch);
}

/// Joins the partial results of long rows.
pub(super) fn join_pieces<F: Reduction>(folding: &ReductionLayout, out: &ViewMut<'_>, scratch: &ViewMut<'_>) {
    let pieces = folding.reduced.div_ceil(CHUNK);
    for output in 0..folding.outer {
        // SAFETY: all pieces are written, and no thread writes them any more.
        let partial: &[F::Acc] = unsafe { read(scratch, output * pieces, pieces) };
        let mut cascade = Cascade::new();
        partial.iter().for_each(|&value| cascade.push::<F>(value));
        // SAFETY: no other thread writes the output.
        unsafe { store(out, output, &[cascade.finish::<F>()]) };
    }
}

/// Reduces rows of `length` elements, at most a chunk, one for each output.
pub(super) fn fold_each<F: Reduction>(
    source: &StridedOperand<'_>,
    dtype: DType,
    length: usize,
    outputs: Range<usize>,
    out: &ViewMut<'_>,
) {
    let mut loader = TileLoader::new(source, dtype);
    let mut results = [F::Acc::ZERO; BATCH];
    for start in outputs.clone().step_by(BATCH) {
        let results = &mut results[..BATCH.min(outputs.end - start)];
        fold_rows::<F>(&mut loader, start, length, results);
        // SAFETY: each output belongs to one chunk.
        unsafe { store(out, start, results) };
    }
}

/// Reduces rows of `length` elements from the row `first` on, one for each result.
fn fold_rows<F: Reduction>(
    loader: &mut TileLoader<'_, F::Item>,
    first: usize,
    length: usize,
    results: &mut [F::Acc],
) {
    if 2 * length > TILE {
        for (row, result) in (first..).zip(results) {
            *result = fold_row::<F>(loader, row * length, length);
        }
        return;
    }
    // Several short rows are read at once.
    let together = TILE / length;
    for (index, results) in results.chunks_mut(together).enumerate() {
        let rows = results.len();
        loader.seek((first + index * together) * length, rows * length);
        let tile = loader.tile();
        if short::fold_rows::<F>(tile, length, results) {
            continue;
        }
        for (row, result) in tile.chunks_exact(length).zip(results) {
            *result = fold_slice::<F>(row);
        }
    }
}

/// Reduces one row, or a piece of it.
fn fold_row<F: Reduction>(loader: &mut TileLoader<'_, F::Item>, start: usize, length: usize) -> F::Acc {
    if length <= TILE {
        loader.seek(start, length);
        return fold_slice::<F>(loader.tile());
    }
    let mut cascade = Cascade::new();
    for from in (0..length).step_by(TILE) {
        loader.seek(start + from, TILE.min(length - from));
        cascade.push::<F>(fold_slice::<F>(loader.tile()));
    }
    cascade.finish::<F>()
}
