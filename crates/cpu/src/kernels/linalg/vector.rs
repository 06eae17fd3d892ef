//! Products with vectors. Their speed is the speed at which the matrix is read.

use std::mem::MaybeUninit;

use super::columns::BLOCK;
use super::rows::Rows;
use super::{Matrices, partials};
use crate::kernels::TILE;
use crate::kernels::reduce::{CHUNK, Cascade};
use crate::par::Par;
use crate::view::ViewMut;

/// Columns from which on a piece of a column has no fewer rows.
const WIDTH: usize = 256;

/// The dot product of vectors of any length.
pub(super) fn dot_long<C: Rows>(a: &[C], b: &[C]) -> C {
    let mut cascade = Cascade::new();
    for (tile, b) in a.chunks(TILE).zip(b.chunks(TILE)) {
        let mut sum = [MaybeUninit::uninit()];
        C::dots(tile, a.len(), b, &mut sum);
        // SAFETY: `dots` wrote it.
        cascade.push(unsafe { sum[0].assume_init() });
    }
    cascade.finish()
}

/// Writes the dot products of rows, a stride apart, with `b`.
fn dot_rows<C: Rows>(a: &[C], stride: usize, b: &[C], out: &mut [MaybeUninit<C>]) {
    if b.len() <= TILE {
        return C::dots(a, stride, b, out);
    }
    for (row, out) in out.iter_mut().enumerate() {
        out.write(dot_long(&a[row * stride..][..b.len()], b));
    }
}

/// Multiplies each row of `matrix` by the vector of its batch. Both are contiguous along the contracted axis.
pub(super) fn rows<C: Rows>(
    matrix: Matrices<'_, C>,
    vector: Matrices<'_, C>,
    (batch, count, k): (usize, usize, usize),
    out: &ViewMut<'_>,
    scratch: &ViewMut<'_>,
    par: Par,
) {
    let pieces = k.div_ceil(CHUNK);
    let work = |task: usize| {
        let (piece, output) = (task % pieces, task / pieces);
        let (batch, row) = (output / count, output % count);
        let (from, to) = (piece * CHUNK, k.min((piece + 1) * CHUNK));
        dot_long(&matrix.row(batch, row, k)[from..to], &vector.row(batch, 0, k)[from..to])
    };
    let to = if pieces == 1 { out } else { scratch };
    par.for_chunks(batch * count * pieces, (CHUNK / k).max(1), |chunk| {
        // SAFETY: each chunk writes its own part.
        let mut part = unsafe { to.part::<C>(chunk.start, chunk.len()) };
        if pieces == 1 {
            // Each iteration takes rows of one matrix.
            let mut task = chunk.start;
            while !part.is_empty() {
                let (batch, row) = (task / count, task % count);
                let (now, rest) = std::mem::take(&mut part).split_at_mut((count - row).min(chunk.end - task));
                let matrix = matrix.matrix(batch);
                dot_rows(&matrix.elements[row * matrix.free..], matrix.free, vector.row(batch, 0, k), now);
                task += now.len();
                part = rest;
            }
            return;
        }
        for (task, out) in chunk.zip(part) {
            out.write(work(task));
        }
    });
    if pieces > 1 {
        for output in 0..batch * count {
            // SAFETY: all pieces are written and no longer change. Only this thread writes the output.
            unsafe {
                let mut cascade = Cascade::new();
                partials::<C>(scratch, output * pieces, pieces).iter().for_each(|&x| cascade.push(x));
                out.part::<C>(output, 1)[0].write(cascade.finish());
            }
        }
    }
}

/// The number of rows of a piece of a column, which one thread sums.
pub(super) fn piece_rows(count: usize) -> usize {
    (CHUNK / count.min(WIDTH)).next_multiple_of(BLOCK)
}

/// The number of partial results that [`rows`] keeps, or [`columns`](super::columns::columns) if `across`.
pub(super) fn scratch(batch: usize, count: usize, k: usize, across: bool) -> usize {
    let pieces = k.div_ceil(if across { piece_rows(count) } else { CHUNK });
    if pieces > 1 { batch * count * pieces } else { 0 }
}
