//! Products with vectors. Their speed is the speed at which the matrix is read.

use std::mem::MaybeUninit;

use super::rows::Rows;
use super::{Matrices, partials};
use crate::kernels::reduce::{CHUNK, Cascade, Sum};
use crate::kernels::simd::vectorized;
use crate::kernels::{Element, TILE};
use crate::par::Par;
use crate::view::ViewMut;

/// Results of [`columns`] that are summed in parallel.
const WIDTH: usize = 256;

/// Rows of a matrix whose products are summed before this sum is added to the total.
const BLOCK: usize = 64;

/// Rows that are summed in parallel.
const GROUP: usize = 4;

/// The dot products of `N` rows, a stride apart, with `b`.
fn group<C: Rows, const N: usize>(a: &[C], stride: usize, b: &[C]) -> [MaybeUninit<C>; N] {
    let mut sums = [MaybeUninit::uninit(); N];
    let mut cascades: [Cascade<C>; N] = std::array::from_fn(|_| Cascade::new());
    for (tile, b) in b.chunks(TILE).enumerate() {
        C::dots(&a[tile * TILE..], stride, b, &mut sums);
        for (cascade, sum) in cascades.iter_mut().zip(sums) {
            // SAFETY: `dots` wrote all of them.
            cascade.push::<Sum<C>>(unsafe { sum.assume_init() });
        }
    }
    cascades.map(|cascade| MaybeUninit::new(cascade.finish::<Sum<C>>()))
}

/// The dot product of vectors of any length.
pub(super) fn dot_long<C: Rows>(a: &[C], b: &[C]) -> C {
    let [sum] = group::<C, 1>(a, a.len(), b);
    // SAFETY: `group` wrote it.
    unsafe { sum.assume_init() }
}

/// Writes the dot products of rows, a stride apart, with `b`.
fn dot_rows<C: Rows>(a: &[C], stride: usize, b: &[C], out: &mut [MaybeUninit<C>]) {
    if b.len() <= TILE {
        return C::dots(a, stride, b, out);
    }
    let (groups, rest) = out.as_chunks_mut::<GROUP>();
    let left = GROUP * groups.len();
    for (index, out) in groups.iter_mut().enumerate() {
        *out = group(&a[index * GROUP * stride..], stride, b);
    }
    for (row, out) in (left..).zip(rest) {
        [*out] = group(&a[row * stride..], stride, b);
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
                partials::<C>(scratch, output * pieces, pieces)
                    .iter()
                    .for_each(|&x| cascade.push::<Sum<C>>(x));
                out.part::<C>(output, 1)[0].write(cascade.finish::<Sum<C>>());
            }
        }
    }
}

/// The number of rows that one thread sums at a time.
fn piece_rows(count: usize) -> usize {
    (CHUNK / count.min(WIDTH)).next_multiple_of(BLOCK)
}

/// The number of partial results that [`rows`] keeps, or [`columns`] if `across`.
pub(super) fn scratch(batch: usize, count: usize, k: usize, across: bool) -> usize {
    let pieces = k.div_ceil(if across { piece_rows(count) } else { CHUNK });
    if pieces > 1 { batch * count * pieces } else { 0 }
}

/// As [`rows`], for matrices that are contiguous along the free axis.
pub(super) fn columns<C: Element>(
    matrix: Matrices<'_, C>,
    vector: Matrices<'_, C>,
    (batch, count, k): (usize, usize, usize),
    out: &ViewMut<'_>,
    scratch: &ViewMut<'_>,
    par: Par,
) {
    let height = piece_rows(count);
    let (pieces, column_blocks) = (k.div_ceil(height), count.div_ceil(WIDTH));
    let work = count.min(WIDTH) * k.min(height);
    let to = if pieces == 1 { out } else { scratch };
    par.for_chunks(batch * pieces * column_blocks, (CHUNK / work).max(1), |chunk| {
        let mut total = [C::ZERO; WIDTH];
        for task in chunk {
            let (column_block, piece, batch) =
                (task % column_blocks, task / column_blocks % pieces, task / column_blocks / pieces);
            let column = column_block * WIDTH;
            let total = &mut total[..WIDTH.min(count - column)];
            let (from, until) = (piece * height, k.min((piece + 1) * height));
            let vector = &vector.row(batch, 0, k)[from..until];
            let (first, stride) = (matrix.element_offset(batch, column), matrix.side.along as usize);
            column_block_sums(vector, &matrix.elements[first + from * stride..], stride, total);
            // SAFETY: each column block of each piece belongs to one chunk.
            let out = unsafe { to.part::<C>((batch * pieces + piece) * count + column, total.len()) };
            out.write_copy_of_slice(total);
        }
    });
    if pieces > 1 {
        for output in 0..batch * count {
            let first = output / count * pieces * count + output % count;
            let mut cascade = Cascade::new();
            for piece in 0..pieces {
                // SAFETY: all pieces are written and no longer change.
                cascade.push::<Sum<C>>(unsafe { partials::<C>(scratch, first + piece * count, 1) }[0]);
            }
            // SAFETY: only this thread writes the output.
            unsafe { out.part::<C>(output, 1)[0].write(cascade.finish::<Sum<C>>()) };
        }
    }
}

vectorized! {
    /// Adds rows, a stride apart, each times its factor, to `sums`.
    fn add_rows[C: Element] of [C] (factors: &[C], matrix: &[C], stride: usize, sums: &mut [C]) {
        let width = sums.len();
        let (fours, rest) = factors.as_chunks::<4>();
        for (index, &[f, g, h, i]) in fours.iter().enumerate() {
            let rows = &matrix[4 * index * stride..];
            let (a, b) = (&rows[..width], &rows[stride..][..width]);
            let (c, d) = (&rows[2 * stride..][..width], &rows[3 * stride..][..width]);
            for (lane, sum) in sums.iter_mut().enumerate() {
                let two = sum.plus(a[lane].times(f)).plus(b[lane].times(g));
                *sum = two.plus(c[lane].times(h)).plus(d[lane].times(i));
            }
        }
        for (index, &factor) in (4 * fours.len()..).zip(rest) {
            for (sum, &x) in sums.iter_mut().zip(&matrix[index * stride..][..width]) {
                *sum = sum.plus(x.times(factor));
            }
        }
    }
}

/// The sum of rows of `matrix`, a stride apart, each times an element of `vector`.
fn column_block_sums<C: Element>(vector: &[C], matrix: &[C], stride: usize, total: &mut [C]) {
    let mut block = [C::ZERO; WIDTH];
    let block = &mut block[..total.len()];
    for (index, factors) in vector.chunks(BLOCK).enumerate() {
        block.fill(C::ZERO);
        add_rows(factors, &matrix[index * BLOCK * stride..], stride, block);
        if index == 0 {
            total.copy_from_slice(block);
        } else {
            total.iter_mut().zip(&*block).for_each(|(total, &sum)| *total = total.plus(sum));
        }
    }
}
