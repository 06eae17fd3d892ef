//! What a scan does with elements. The rest of a scan moves them, and is compiled once for each type instead of once for
//! each op of it.

use std::mem::MaybeUninit;

use crate::kernels::Element;
use crate::kernels::simd::vectorized;

/// The op of a scan, on many elements at a time.
pub(super) trait Fold<C>: Sync {
    /// Joins each element of `x` to what came before it.
    fn advance(&self, now: &mut [C], x: &[C]);

    /// Joins each element of `x` to one of `before`, which is repeated.
    fn join(&self, before: &[C], x: &[C], to: &mut [MaybeUninit<C>]);

    /// Scans `count` rows, which follow each other in memory.
    fn rows(&self, count: Rows, x: &[C], to: &mut [MaybeUninit<C>], reverse: bool);

    /// Scans a matrix of `inner` columns along them.
    fn columns(&self, inner: usize, x: &[C], to: &mut [MaybeUninit<C>], reverse: bool);
}

/// How many rows are scanned together.
#[derive(Clone, Copy)]
pub(super) enum Rows {
    One,
    /// [`TOGETHER`](super::matrices::TOGETHER).
    Several,
}

/// The scan with a function of what came before and an element.
pub(super) struct ByOp<F>(pub(super) F);

impl<C: Element, F: Fn(C, C) -> C + Copy + Sync> Fold<C> for ByOp<F> {
    fn advance(&self, now: &mut [C], x: &[C]) {
        for (now, &x) in now.iter_mut().zip(x) {
            *now = (self.0)(*now, x);
        }
    }

    fn join(&self, before: &[C], x: &[C], to: &mut [MaybeUninit<C>]) {
        join(before, x, to, self.0);
    }

    fn rows(&self, count: Rows, x: &[C], to: &mut [MaybeUninit<C>], reverse: bool) {
        match count {
            Rows::One => rows::<C, 1>(x, to, reverse, self.0),
            Rows::Several => rows::<C, { super::matrices::TOGETHER }>(x, to, reverse, self.0),
        }
    }

    fn columns(&self, inner: usize, x: &[C], to: &mut [MaybeUninit<C>], reverse: bool) {
        let together = match inner {
            ..3 => columns::<C, 2>,
            3 => columns::<C, 3>,
            4..8 => columns::<C, 4>,
            8..16 => columns::<C, 8>,
            16.. => columns::<C, 16>,
        };
        together(x, to, (inner, reverse), self.0);
    }
}

vectorized! {
    /// Joins each element to one of `before`, which is repeated.
    fn join[C: Element, F: Fn(C, C) -> C] of [C, F] (before: &[C], x: &[C], to: &mut [MaybeUninit<C>], fold: F) {
        for (x, to) in x.chunks(before.len()).zip(to.chunks_mut(before.len())) {
            for ((to, &x), &before) in to.iter_mut().zip(x).zip(before) {
                to.write(fold(before, x));
            }
        }
    }
}

/// Scans `N` rows, one after the other in memory.
fn rows<C: Element, const N: usize>(
    x: &[C],
    to: &mut [MaybeUninit<C>],
    reverse: bool,
    fold: impl Fn(C, C) -> C,
) {
    let len = x.len() / N;
    let at = |place: usize| if reverse { len - 1 - place } else { place };
    let to = &mut to[..len * N];
    let mut now = [C::ZERO; N];
    for row in 0..N {
        now[row] = x[row * len + at(0)];
        to[row * len + at(0)].write(now[row]);
    }
    for at in (1..len).map(at) {
        // Reads come first: one that has the low bits of a write's address waits for it.
        let mut next = [C::ZERO; N];
        for row in 0..N {
            next[row] = x[row * len + at];
        }
        for row in 0..N {
            now[row] = fold(now[row], next[row]);
            to[row * len + at].write(now[row]);
        }
    }
}

/// Scans the columns of a matrix, `W` at a time; the last ones may be scanned twice.
fn columns<C: Element, const W: usize>(
    x: &[C],
    to: &mut [MaybeUninit<C>],
    (inner, reverse): (usize, bool),
    fold: impl Fn(C, C) -> C,
) {
    let rows = x.len() / inner;
    let mut column = 0;
    while column < inner {
        let first = column.min(inner - W);
        let at = |place: usize| (if reverse { rows - 1 - place } else { place }) * inner + first;
        let mut now = [C::ZERO; W];
        now.copy_from_slice(&x[at(0)..at(0) + W]);
        to[at(0)..at(0) + W].write_copy_of_slice(&now);
        for place in 1..rows {
            let x = &x[at(place)..at(place) + W];
            for i in 0..W {
                now[i] = fold(now[i], x[i]);
            }
            to[at(place)..at(place) + W].write_copy_of_slice(&now);
        }
        column += W;
    }
}
