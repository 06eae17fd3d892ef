//! Positions of extreme elements.

use defn_core::op::{ArgOp, TieBreak};
use defn_core::{Axis, DType, Shape, TensorType};

use super::fold::{Greatest, Least, Reduction, fold_slice};
use super::layout::{CHUNK, ReductionLayout};
use super::{read, store, with_real, write};
use crate::kernels::simd::vectorized;
use crate::kernels::{CastFrom, Element, Real, StridedOperand, TILE, TileLoader, with_compute};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Columns that are searched together.
const WIDTH: usize = 256;

/// Results that are collected before they are written.
const BATCH: usize = 64;

fn folding(x: &TensorType, axis: Option<Axis>) -> ReductionLayout {
    match axis {
        Some(axis) => ReductionLayout::new(x.shape.sizes(), &[axis]),
        // The flat index: one axis with all elements.
        None => ReductionLayout::new(&[x.size()], &[Shape::new(&[1]).axis(0).expect("the rank is 1")]),
    }
}

/// The scratch memory of [`arg_reduce`]: the winners of pieces of long rows, possibly none.
pub(crate) fn arg_scratch(x: &TensorType, axis: Option<Axis>) -> TensorType {
    let folding = folding(x, axis);
    let long = folding.inner == 1 && folding.reduced > CHUNK;
    let count = if long { folding.outer * folding.reduced.div_ceil(CHUNK) } else { 0 };
    TensorType { dtype: DType::U64, shape: Shape::new(&[count]) }
}

/// The index of the extreme element along `axis`, or the flat index; NaN is more extreme than any number.
pub(crate) fn arg_reduce(
    (op, tie): (ArgOp, TieBreak),
    x: View<'_>,
    axis: Option<Axis>,
    out: &mut ViewMut<'_>,
    scratch: &mut ViewMut<'_>,
    par: Par,
) {
    let folding = folding(x.ty(), axis);
    debug_assert_eq!(folding.outputs(), out.ty().size(), "{} along {axis:?}", x.ty());
    if folding.outputs() == 0 {
        return;
    }
    assert!(folding.reduced > 0, "no element of {} is extreme along an empty axis", x.ty());
    let dtype = x.ty().dtype;
    let source = folding.source(x);
    with_real!(dtype, C => match (op, tie) {
        (ArgOp::Argmax, TieBreak::Low) => search::<Greatest<C>, false>(&source, dtype, &folding, out, scratch, par),
        (ArgOp::Argmax, TieBreak::High) => search::<Greatest<C>, true>(&source, dtype, &folding, out, scratch, par),
        (ArgOp::Argmin, TieBreak::Low) => search::<Least<C>, false>(&source, dtype, &folding, out, scratch, par),
        (ArgOp::Argmin, TieBreak::High) => search::<Least<C>, true>(&source, dtype, &folding, out, scratch, par),
    });
}

/// An element and its index.
#[derive(Clone, Copy)]
struct Candidate<C> {
    value: C,
    index: u64,
}

/// Whether `next`, which comes later, replaces `best`.
#[inline(always)]
fn beats<F: Extreme, const LAST: bool>(best: F::Item, next: F::Item) -> bool {
    let ties = LAST && next == best;
    (F::precedes(next, best) | ties | next.nan()) & (LAST & next.nan() | !best.nan())
}

/// A reduction that selects one of its elements.
trait Extreme: Reduction<Item: Real, Acc = <Self as Reduction>::Item> {
    /// Whether `a` is the more extreme number.
    fn precedes(a: Self::Item, b: Self::Item) -> bool;
}

impl<C: Real> Extreme for Greatest<C> {
    #[inline(always)]
    fn precedes(a: C, b: C) -> bool {
        a > b
    }
}

impl<C: Real> Extreme for Least<C> {
    #[inline(always)]
    fn precedes(a: C, b: C) -> bool {
        a < b
    }
}

fn search<F: Extreme, const LAST: bool>(
    source: &StridedOperand<'_>,
    dtype: DType,
    folding: &ReductionLayout,
    out: &ViewMut<'_>,
    scratch: &ViewMut<'_>,
    par: Par,
) {
    let length = folding.reduced;
    if folding.inner > 1 {
        search_columns::<F, LAST>(source, dtype, folding, out, par);
    } else if length <= CHUNK {
        par.for_chunks(folding.outer, CHUNK / length, |outputs| {
            let mut loader = TileLoader::new(source, dtype);
            let mut batch = [0; BATCH];
            for start in outputs.clone().step_by(BATCH) {
                let batch = &mut batch[..BATCH.min(outputs.end - start)];
                for (index, winner) in batch.iter_mut().enumerate() {
                    *winner = search_row::<F, LAST>(&mut loader, (start + index) * length, 0, length).index;
                }
                // SAFETY: each output belongs to one chunk.
                unsafe { store_indices(out, start, batch) };
            }
        });
    } else {
        let pieces = length.div_ceil(CHUNK);
        par.for_chunks(folding.outer * pieces, 1, |chunk| {
            let mut loader = TileLoader::new(source, dtype);
            for task in chunk {
                let from = task % pieces * CHUNK;
                let (start, to) = (task / pieces * length, length.min(from + CHUNK));
                let found = search_row::<F, LAST>(&mut loader, start, from, to);
                // SAFETY: each piece belongs to one chunk.
                unsafe { write(scratch, task, &[found.index]) };
            }
        });
        let mut loader = TileLoader::new(source, dtype);
        for output in 0..folding.outer {
            // SAFETY: all pieces are written, and no thread writes them any more.
            let winners: &[u64] = unsafe { read(scratch, output * pieces, pieces) };
            let found = winners.iter().map(|&index| {
                loader.seek(output * length + index as usize, 1);
                Candidate { value: loader.tile()[0], index }
            });
            let best =
                found.reduce(|best, next| if beats::<F, LAST>(best.value, next.value) { next } else { best });
            let best = best.expect("a long row has pieces");
            // SAFETY: no other thread writes the output.
            unsafe { store_indices(out, output, &[best.index]) };
        }
    }
}

/// The extreme element in `from..to` of the row that begins at `start`.
fn search_row<F: Extreme, const LAST: bool>(
    loader: &mut TileLoader<'_, F::Item>,
    start: usize,
    from: usize,
    to: usize,
) -> Candidate<F::Item> {
    let mut best: Option<Candidate<F::Item>> = None;
    for first in (from..to).step_by(TILE) {
        loader.seek(start + first, TILE.min(to - first));
        let tile = loader.tile();
        // A vectorized reduction finds the extreme value; its position is searched only in tiles with a new extreme.
        let value = fold_slice::<F>(tile);
        if best.is_some_and(|best| !beats::<F, LAST>(best.value, value)) {
            continue;
        }
        let position = find::<F::Item, LAST>(tile, value);
        best = Some(Candidate { value, index: (first + position) as u64 });
    }
    best.expect("the row is not empty")
}

/// Elements that are tested together.
const BLOCK: usize = 64;

vectorized! {
    /// The index of the first or last element that equals `value`, or that is NaN if `value` is. The value is one of
    /// the elements; if another thread writes them meanwhile it may be gone, and any index is allowed.
    fn find[C: Real, const LAST: bool] of [C, LAST] (items: &[C], value: C) -> usize {
        let is_it = |&item: &C| (item == value) | (value.nan() & item.nan());
        let (blocks, rest) = items.as_chunks::<BLOCK>();
        let end = blocks.len() * BLOCK;
        if LAST && let Some(position) = rest.iter().rposition(is_it) {
            return end + position;
        }
        // A block without the value is skipped without a branch for each element.
        for step in 0..blocks.len() {
            let index = if LAST { blocks.len() - 1 - step } else { step };
            let block = &blocks[index];
            let mut has = false;
            for item in block {
                has |= is_it(item);
            }
            if has {
                let position = if LAST { block.iter().rposition(is_it) } else { block.iter().position(is_it) };
                return index * BLOCK + position.unwrap_or(0);
            }
        }
        rest.iter().position(is_it).map_or(0, |position| end + position)
    }
}

fn search_columns<F: Extreme, const LAST: bool>(
    source: &StridedOperand<'_>,
    dtype: DType,
    folding: &ReductionLayout,
    out: &ViewMut<'_>,
    par: Par,
) {
    let &ReductionLayout { outer, reduced, inner, .. } = folding;
    let column_blocks = inner.div_ceil(WIDTH);
    let work = inner.min(WIDTH) * reduced;
    par.for_chunks(outer * column_blocks, (CHUNK / work).max(1), |chunk| {
        let mut loader = TileLoader::<F::Item>::new(source, dtype);
        let (mut best, mut winners) = ([F::start(); WIDTH], [0u64; WIDTH]);
        for task in chunk {
            let (outer, column) = (task / column_blocks, task % column_blocks * WIDTH);
            let width = WIDTH.min(inner - column);
            let (best, winners) = (&mut best[..width], &mut winners[..width]);
            for row in 0..reduced {
                loader.seek((outer * reduced + row) * inner + column, width);
                if row == 0 {
                    best.copy_from_slice(loader.tile());
                    winners.fill(0);
                    continue;
                }
                for ((best, winner), &next) in best.iter_mut().zip(&mut *winners).zip(loader.tile()) {
                    let wins = beats::<F, LAST>(*best, next);
                    *best = if wins { next } else { *best };
                    *winner = if wins { row as u64 } else { *winner };
                }
            }
            // SAFETY: each column block belongs to one chunk.
            unsafe { store_indices(out, outer * inner + column, winners) };
        }
    });
}

/// Writes indices as elements of the result's dtype.
///
/// # Safety
/// No other code uses these elements of the result.
unsafe fn store_indices(out: &ViewMut<'_>, start: usize, indices: &[u64]) {
    let dtype = out.ty().dtype;
    let small = dtype.is_float() && dtype.bits() < 32;
    with_compute!(dtype, C => {
        for (start, part) in (start..).step_by(BATCH).zip(indices.chunks(BATCH)) {
            let mut values = [C::default(); BATCH];
            for (value, &index) in values.iter_mut().zip(part) {
                // Without this the small floats would be rounded twice, because of the f32 in between.
                *value = if small { CastFrom::cast_odd(index) } else { CastFrom::cast_from(index) };
            }
            // SAFETY: the caller's promise.
            unsafe { store(out, start, &values[..part.len()]) };
        }
    });
}
