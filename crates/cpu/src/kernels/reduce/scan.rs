//! Scans: at each position of an axis, the reduction of the elements up to it.

use std::mem::MaybeUninit;

use defn_core::op::CumulativeOp;

use super::layout::CHUNK;
use crate::kernels::{Element, Real, SendPtr, with_compute, with_real};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Columns that are scanned together.
const COLUMN_BLOCK: usize = 512;

/// Elements below which a further thread does not pay.
const PER_THREAD: usize = 1 << 14;

/// Lines that are scanned together: as many as hide the latency of an addition.
const TOGETHER: usize = 8;

/// Scans `x`, whose dtype is one of computation, along an axis, from its first element on or from its last.
pub(crate) fn scan(
    op: CumulativeOp,
    x: View<'_>,
    axis: usize,
    reverse: bool,
    out: &mut ViewMut<'_>,
    par: Par,
) {
    let sizes = x.ty().shape.sizes();
    let shape = Lines {
        outer: sizes[..axis].iter().product(),
        len: sizes[axis],
        inner: sizes[axis + 1..].iter().product(),
        reverse,
    };
    if out.ty().size() == 0 {
        return;
    }
    let dtype = x.ty().dtype;
    match op {
        CumulativeOp::CumulativeSum => with_compute!(dtype, C => shape.scan::<C>(x, out, par, C::plus)),
        CumulativeOp::CumulativeProduct => {
            with_compute!(dtype, C => shape.scan::<C>(x, out, par, C::times))
        }
        CumulativeOp::CumulativeMax => with_real!(dtype, C => shape.scan::<C>(x, out, par, C::greater)),
        CumulativeOp::CumulativeMin => with_real!(dtype, C => shape.scan::<C>(x, out, par, C::lesser)),
    }
}

/// A tensor seen as `[outer][len][inner]`, scanned along the middle axis.
#[derive(Clone, Copy, Debug)]
struct Lines {
    outer: usize,
    len: usize,
    inner: usize,
    reverse: bool,
}

impl Lines {
    fn scan<C: Element>(
        self,
        x: View<'_>,
        out: &mut ViewMut<'_>,
        par: Par,
        fold: impl Fn(C, C) -> C + Copy + Sync,
    ) {
        let x: &[C] = x.slice();
        if self.inner > 1 {
            self.columns(x, out, par, fold);
        } else if self.len <= CHUNK {
            let (len, out) = (self.len, &*out);
            par.for_chunks(self.outer, (PER_THREAD / len).next_multiple_of(TOGETHER), |lines| {
                let (mut line, end) = (lines.start, lines.end);
                while line < end {
                    let count = if end - line < TOGETHER { 1 } else { TOGETHER };
                    // SAFETY: each line belongs to one chunk.
                    let out = unsafe { out.part(line * len, count * len) };
                    let x = &x[line * len..][..count * len];
                    match count {
                        1 => self.lines::<C, 1>(x, out, fold),
                        _ => self.lines::<C, TOGETHER>(x, out, fold),
                    }
                    line += count;
                }
            });
        } else {
            for line in 0..self.outer {
                let out = &mut out.slice()[line * self.len..][..self.len];
                self.long(&x[line * self.len..][..self.len], out, par, fold);
            }
        }
    }

    /// Scans `N` lines, or parts of them: with several the processor need not wait for one before it goes on with another.
    fn lines<C: Element, const N: usize>(
        self,
        x: &[C],
        out: &mut [MaybeUninit<C>],
        fold: impl Fn(C, C) -> C,
    ) {
        let len = x.len() / N;
        let (mut from, mut to) = (x.chunks_exact(len), out.chunks_exact_mut(len));
        let mut lines: [(&[C], &mut [MaybeUninit<C>]); N] =
            std::array::from_fn(|_| (from.next().expect("as many lines"), to.next().expect("as many lines")));
        let mut sums: Option<[C; N]> = None;
        for at in 0..len {
            let at = if self.reverse { len - 1 - at } else { at };
            let next: [C; N] = std::array::from_fn(|line| {
                let x = lines[line].0[at];
                sums.map_or(x, |before| fold(before[line], x))
            });
            for ((_, out), &sum) in lines.iter_mut().zip(&next) {
                out[at].write(sum);
            }
            sums = Some(next);
        }
    }

    /// Scans a long line in pieces that depend only on its length: first each piece, then the carries of the pieces,
    /// then the carry is added to each piece.
    fn long<C: Element>(
        self,
        x: &[C],
        out: &mut [MaybeUninit<C>],
        par: Par,
        fold: impl Fn(C, C) -> C + Copy + Sync,
    ) {
        let pieces = self.len.div_ceil(CHUNK);
        let range = |piece: usize| piece * CHUNK..self.len.min((piece + 1) * CHUNK);
        // The last scanned element of a piece, and the piece that is scanned before it.
        let end = |piece: usize| if self.reverse { range(piece).start } else { range(piece).end - 1 };
        let before = |piece: usize| if self.reverse { piece + 1 } else { piece.wrapping_sub(1) };
        let target = SendPtr::of(out);
        par.for_chunks(self.len, CHUNK, |chunk| {
            // SAFETY: chunks are disjoint and within the line.
            let out = unsafe { target.part(chunk.start, chunk.len()) };
            self.lines::<C, 1>(&x[chunk], out, fold);
        });
        // SAFETY: every piece is written.
        let out = unsafe { out.assume_init_mut() };
        let join = |out: &mut [C], piece: usize| {
            if before(piece) < pieces {
                out[end(piece)] = fold(out[end(before(piece))], out[end(piece)]);
            }
        };
        if self.reverse {
            (0..pieces).rev().for_each(|piece| join(out, piece));
        } else {
            (0..pieces).for_each(|piece| join(out, piece));
        }
        let target = SendPtr::new(out.as_mut_ptr());
        par.for_chunks(pieces, 1, |chunk| {
            for piece in chunk {
                if before(piece) >= pieces {
                    continue;
                }
                let mut range = range(piece);
                if self.reverse {
                    range.start += 1
                } else {
                    range.end -= 1
                }
                // SAFETY: all elements are written. The ends of pieces are final already, and only read; the others
                // belong to one chunk each.
                unsafe {
                    let carry = target.at(end(before(piece))).read();
                    let part = std::slice::from_raw_parts_mut(target.at(range.start), range.len());
                    part.iter_mut().for_each(|x| *x = fold(carry, *x));
                }
            }
        });
    }

    /// Scans lines of adjacent columns together.
    fn columns<C: Element>(
        self,
        x: &[C],
        out: &mut ViewMut<'_>,
        par: Par,
        fold: impl Fn(C, C) -> C + Copy + Sync,
    ) {
        let Lines { outer, len, inner, reverse } = self;
        let column_blocks = inner.div_ceil(COLUMN_BLOCK);
        let out = &*out;
        par.for_chunks(outer * column_blocks, (CHUNK / (len * inner.min(COLUMN_BLOCK))).max(1), |chunk| {
            for task in chunk {
                let column = task % column_blocks * COLUMN_BLOCK;
                let width = COLUMN_BLOCK.min(inner - column);
                let start = |row: usize| {
                    let row = if reverse { len - 1 - row } else { row };
                    (task / column_blocks * len + row) * inner + column
                };
                for row in 0..len {
                    let from = &x[start(row)..][..width];
                    // SAFETY: each column block belongs to one chunk, and its rows are disjoint.
                    let to = unsafe { out.part::<C>(start(row), width) };
                    if row == 0 {
                        to.write_copy_of_slice(from);
                        continue;
                    }
                    // SAFETY: as above; the previous row is written.
                    let before = unsafe { out.part::<C>(start(row - 1), width).assume_init_ref() };
                    for ((to, &before), &x) in to.iter_mut().zip(before).zip(from) {
                        to.write(fold(before, x));
                    }
                }
            }
        });
    }
}
