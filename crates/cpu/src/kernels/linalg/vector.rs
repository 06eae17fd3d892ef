//! Products with vectors, which are as fast as the matrix can be read.

use std::mem::MaybeUninit;

use super::{Matrices, partials};
use crate::kernels::reduce::{CHUNK, Cascade, RUN, Sum};
use crate::kernels::simd::vectorized;
use crate::kernels::{Element, TILE};
use crate::par::Par;
use crate::view::ViewMut;

/// Products that are added up side by side.
const LANES: usize = 64;

/// Results of [`columns`] that are added up side by side.
const WIDTH: usize = 256;

/// Rows of a matrix whose products are added up before their sum is joined with others.
const BLOCK: usize = 64;

/// The sum of products of at most a few tiles.
#[inline(always)]
fn dot_slice<C: Element>(a: &[C], b: &[C]) -> C {
    debug_assert_eq!(a.len(), b.len());
    if a.len() < 2 * LANES {
        return dot_short(a, b);
    }
    let ((a_lines, a_rest), (b_lines, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut total = [C::ZERO; LANES];
    for (a, b) in a_lines.chunks(RUN).zip(b_lines.chunks(RUN)) {
        let mut lanes = [C::ZERO; LANES];
        for (a, b) in a.iter().zip(b) {
            add_products(&mut lanes, a, b);
        }
        add_lanes(&mut total, &lanes);
    }
    finish(total, a_rest, b_rest)
}

/// The sums of two rows, each as [`dot_slice`] has it: two streams are read faster than one.
#[inline(always)]
fn dot_pair<C: Element>(first: &[C], second: &[C], b: &[C]) -> [C; 2] {
    if b.len() < 2 * LANES {
        return [dot_short(first, b), dot_short(second, b)];
    }
    let (b_lines, b_rest) = b.as_chunks::<LANES>();
    let ((lines, rest), (other_lines, other_rest)) =
        (first.as_chunks::<LANES>(), second.as_chunks::<LANES>());
    let (lines, other_lines) = (&lines[..b_lines.len()], &other_lines[..b_lines.len()]);
    let (mut total, mut other_total) = ([C::ZERO; LANES], [C::ZERO; LANES]);
    for from in (0..b_lines.len()).step_by(RUN) {
        let (mut lanes, mut other_lanes) = ([C::ZERO; LANES], [C::ZERO; LANES]);
        for at in from..b_lines.len().min(from + RUN) {
            add_products(&mut lanes, &lines[at], &b_lines[at]);
            add_products(&mut other_lanes, &other_lines[at], &b_lines[at]);
        }
        add_lanes(&mut total, &lanes);
        add_lanes(&mut other_total, &other_lanes);
    }
    [finish(total, rest, b_rest), finish(other_total, other_rest, b_rest)]
}

/// The sum of products of few elements.
#[inline(always)]
fn dot_short<C: Element>(a: &[C], b: &[C]) -> C {
    a.iter().zip(b).fold(C::ZERO, |sum, (&a, &b)| sum.plus(a.times(b)))
}

#[inline(always)]
fn add_products<C: Element>(lanes: &mut [C; LANES], a: &[C; LANES], b: &[C; LANES]) {
    for i in 0..LANES {
        lanes[i] = lanes[i].plus(a[i].times(b[i]));
    }
}

#[inline(always)]
fn add_lanes<C: Element>(total: &mut [C; LANES], lanes: &[C; LANES]) {
    total.iter_mut().zip(lanes).for_each(|(total, &lane)| *total = total.plus(lane));
}

/// The sum of the lanes, and of the products of what no line was full of.
#[inline(always)]
fn finish<C: Element>(mut total: [C; LANES], a_rest: &[C], b_rest: &[C]) -> C {
    for ((total, &a), &b) in total.iter_mut().zip(a_rest).zip(b_rest) {
        *total = total.plus(a.times(b));
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        let (low, high) = total.split_at_mut(width);
        low.iter_mut().zip(high).for_each(|(low, &mut high)| *low = low.plus(high));
    }
    total[0]
}

vectorized! {
    /// Adds to the cascade the sums of products of tiles.
    fn dot_tiles[C: Element] of [C] (a: &[C], b: &[C], cascade: &mut Cascade<C>) {
        for (a, b) in a.chunks(TILE).zip(b.chunks(TILE)) {
            cascade.push::<Sum<C>>(dot_slice(a, b));
        }
    }
}

/// The sum of products of any number of elements.
pub(super) fn dot_long<C: Element>(a: &[C], b: &[C]) -> C {
    let mut cascade = Cascade::new();
    dot_tiles(a, b, &mut cascade);
    cascade.finish::<Sum<C>>()
}

vectorized! {
    /// Writes the sums of products of short rows, a stride apart, with `b`.
    fn dot_rows[C: Element] of [C] (a: &[C], stride: usize, b: &[C], out: &mut [MaybeUninit<C>]) {
        let row = |place: usize| &a[place * stride..][..b.len()];
        let (pairs, rest) = out.as_chunks_mut::<2>();
        for (pair, out) in pairs.iter_mut().enumerate() {
            let sums = dot_pair(row(2 * pair), row(2 * pair + 1), b);
            *out = sums.map(MaybeUninit::new);
        }
        for (place, out) in (2 * pairs.len()..).zip(rest) {
            out.write(dot_slice(row(place), b));
        }
    }
}

/// Each row of `matrix` with the vector of its batch; the elements of both lie side by side.
pub(super) fn rows<C: Element>(
    matrix: Matrices<'_, C>,
    vector: Matrices<'_, C>,
    (batch, count, k): (usize, usize, usize),
    out: &ViewMut<'_>,
    scratch: &ViewMut<'_>,
    par: Par,
) {
    let pieces = k.div_ceil(CHUNK);
    let work = |place: usize| {
        let (piece, output) = (place % pieces, place / pieces);
        let (batch, row) = (output / count, output % count);
        let (from, to) = (piece * CHUNK, k.min((piece + 1) * CHUNK));
        dot_long(&matrix.row(batch, row, k)[from..to], &vector.row(batch, 0, k)[from..to])
    };
    let to = if pieces == 1 { out } else { scratch };
    par.for_chunks(batch * count * pieces, (CHUNK / k).max(1), |chunk| {
        // SAFETY: each chunk writes its own part.
        let mut part = unsafe { to.part::<C>(chunk.start, chunk.len()) };
        if k <= TILE {
            // Rows of one matrix at a time; each is one piece.
            let mut place = chunk.start;
            while !part.is_empty() {
                let (batch, row) = (place / count, place % count);
                let (now, rest) =
                    std::mem::take(&mut part).split_at_mut((count - row).min(chunk.end - place));
                let matrix = matrix.matrix(batch);
                dot_rows(&matrix.elements[row * matrix.free..], matrix.free, vector.row(batch, 0, k), now);
                place += now.len();
                part = rest;
            }
            return;
        }
        for (place, out) in chunk.zip(part) {
            out.write(work(place));
        }
    });
    if pieces > 1 {
        for output in 0..batch * count {
            // SAFETY: all pieces are written, by nobody any more, and nobody else writes the output.
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

/// The rows that one thread adds up at a time.
fn piece_rows(count: usize) -> usize {
    (CHUNK / count.min(WIDTH)).next_multiple_of(BLOCK)
}

/// How many partial results [`rows`] keeps, or [`columns`] if `across`.
pub(super) fn scratch(batch: usize, count: usize, k: usize, across: bool) -> usize {
    let pieces = k.div_ceil(if across { piece_rows(count) } else { CHUNK });
    if pieces > 1 { batch * count * pieces } else { 0 }
}

/// As [`rows`], where the elements of `matrix` lie side by side across its rows.
pub(super) fn columns<C: Element>(
    matrix: Matrices<'_, C>,
    vector: Matrices<'_, C>,
    (batch, count, k): (usize, usize, usize),
    out: &ViewMut<'_>,
    scratch: &ViewMut<'_>,
    par: Par,
) {
    let height = piece_rows(count);
    let (pieces, strips) = (k.div_ceil(height), count.div_ceil(WIDTH));
    let work = count.min(WIDTH) * k.min(height);
    let to = if pieces == 1 { out } else { scratch };
    par.for_chunks(batch * pieces * strips, (CHUNK / work).max(1), |chunk| {
        let mut total = [C::ZERO; WIDTH];
        for place in chunk {
            let (strip, piece, batch) = (place % strips, place / strips % pieces, place / strips / pieces);
            let column = strip * WIDTH;
            let total = &mut total[..WIDTH.min(count - column)];
            let (from, until) = (piece * height, k.min((piece + 1) * height));
            let vector = &vector.row(batch, 0, k)[from..until];
            let (first, stride) = (matrix.place(batch, column), matrix.side.along as usize);
            strip_sums(vector, &matrix.elements[first + from * stride..], stride, total);
            // SAFETY: each strip of each piece belongs to one chunk.
            let out = unsafe { to.part::<C>((batch * pieces + piece) * count + column, total.len()) };
            out.write_copy_of_slice(total);
        }
    });
    if pieces > 1 {
        for output in 0..batch * count {
            let first = output / count * pieces * count + output % count;
            let mut cascade = Cascade::new();
            for piece in 0..pieces {
                // SAFETY: all pieces are written, and by nobody any more.
                cascade.push::<Sum<C>>(unsafe { partials::<C>(scratch, first + piece * count, 1) }[0]);
            }
            // SAFETY: nobody else writes the output.
            unsafe { out.part::<C>(output, 1)[0].write(cascade.finish::<Sum<C>>()) };
        }
    }
}

vectorized! {
    /// Adds to `sums` rows, a stride apart, each times its factor.
    fn add_rows[C: Element] of [C] (factors: &[C], matrix: &[C], stride: usize, sums: &mut [C]) {
        let width = sums.len();
        let (fours, rest) = factors.as_chunks::<4>();
        for (index, &[f, g, h, i]) in fours.iter().enumerate() {
            let rows = &matrix[4 * index * stride..];
            let (a, b) = (&rows[..width], &rows[stride..][..width]);
            let (c, d) = (&rows[2 * stride..][..width], &rows[3 * stride..][..width]);
            for (place, sum) in sums.iter_mut().enumerate() {
                let two = sum.plus(a[place].times(f)).plus(b[place].times(g));
                *sum = two.plus(c[place].times(h)).plus(d[place].times(i));
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
fn strip_sums<C: Element>(vector: &[C], matrix: &[C], stride: usize, total: &mut [C]) {
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
