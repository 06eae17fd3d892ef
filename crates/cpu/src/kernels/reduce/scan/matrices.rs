//! Matrices with few columns: each is scanned by one thread.

use std::mem::MaybeUninit;

use super::{Lines, MIN_NON_TEMPORAL, PER_THREAD, store, uninit, with_elements};
use crate::kernels::stream::StoreKind;
use crate::kernels::{Element, SendPtr};

/// Rows that are scanned together, so that one sum need not wait for itself. Where rows are a multiple of 4 KiB apart,
/// the lines of eight would not stay in the first cache together: 1024 elements each took six times as long.
pub(super) const TOGETHER: usize = 4;

/// The most bytes that are collected before they are stored past the caches.
const MAX_COLLECTED: usize = 1 << 19;

impl Lines {
    /// Scans matrices, a few at a time.
    pub(super) fn by_matrices<C: Element>(
        self,
        x: &[C],
        out: &SendPtr<C>,
        fold: impl Fn(C, C) -> C + Copy + Sync,
    ) {
        let Lines { outer, len, inner, stores, par, .. } = self;
        let matrix = len * inner;
        let several = if inner == 1 { TOGETHER } else { 1 };
        let collects = stores == StoreKind::NonTemporal && matrix * size_of::<C>() >= MIN_NON_TEMPORAL;
        let grain = (PER_THREAD / matrix).max(1).next_multiple_of(several);
        par.for_chunks(outer, grain, |chunk| {
            let x = &x[chunk.start * matrix..chunk.end * matrix];
            // SAFETY: each matrix belongs to one chunk.
            let out = unsafe { out.part(chunk.start * matrix, x.len()) };
            if collects && size_of_val(x) <= MAX_COLLECTED {
                with_elements(x.len(), |scanned| {
                    self.matrices(x, uninit(scanned), len, fold);
                    store(scanned, out, stores);
                });
                stores.finish();
            } else {
                self.matrices(x, out, len, fold);
            }
        });
    }

    /// Scans each of the matrices of `len` rows.
    pub(super) fn matrices<C: Element>(
        self,
        x: &[C],
        to: &mut [MaybeUninit<C>],
        len: usize,
        fold: impl Fn(C, C) -> C + Copy,
    ) {
        if self.inner == 1 {
            let whole = x.len() - x.len() % (TOGETHER * len);
            let ((x, rest), (to, to_rest)) = (x.split_at(whole), to.split_at_mut(whole));
            for (x, to) in x.chunks_exact(TOGETHER * len).zip(to.chunks_exact_mut(TOGETHER * len)) {
                self.rows::<C, TOGETHER>(x, to, fold);
            }
            for (x, to) in rest.chunks_exact(len).zip(to_rest.chunks_exact_mut(len)) {
                self.rows::<C, 1>(x, to, fold);
            }
            return;
        }
        let matrix = len * self.inner;
        for (x, to) in x.chunks_exact(matrix).zip(to.chunks_exact_mut(matrix)) {
            match self.inner {
                ..3 => self.columns::<C, 2>(x, to, fold),
                3 => self.columns::<C, 3>(x, to, fold),
                4..8 => self.columns::<C, 4>(x, to, fold),
                8..16 => self.columns::<C, 8>(x, to, fold),
                16.. => self.columns::<C, 16>(x, to, fold),
            }
        }
    }

    /// Scans `N` rows, one after the other in memory.
    fn rows<C: Element, const N: usize>(self, x: &[C], to: &mut [MaybeUninit<C>], fold: impl Fn(C, C) -> C) {
        let len = x.len() / N;
        let (mut x, mut to) = (x.chunks_exact(len), to.chunks_exact_mut(len));
        // Slices whose length the compiler knows to be `len` need no checks below.
        let x: [&[C]; N] = std::array::from_fn(|_| &x.next().expect("as many rows")[..len]);
        let mut to: [&mut [_]; N] = std::array::from_fn(|_| &mut to.next().expect("as many rows")[..len]);
        let at = |place: usize| if self.reverse { len - 1 - place } else { place };
        let mut now = x.map(|x| x[at(0)]);
        for (to, &now) in to.iter_mut().zip(&now) {
            to[at(0)].write(now);
        }
        for at in (1..len).map(at) {
            // Reads come first: one that has the low bits of a write's address waits for it.
            let x = x.map(|x| x[at]);
            for ((now, to), x) in now.iter_mut().zip(&mut to).zip(x) {
                *now = fold(*now, x);
                to[at].write(*now);
            }
        }
    }

    /// Scans the columns of a matrix, `W` at a time; the last ones may be scanned twice.
    fn columns<C: Element, const W: usize>(
        self,
        x: &[C],
        to: &mut [MaybeUninit<C>],
        fold: impl Fn(C, C) -> C,
    ) {
        let inner = self.inner;
        let len = x.len() / inner;
        for column in (0..inner).step_by(W).map(|column| column.min(inner - W)) {
            let at = |place: usize| (if self.reverse { len - 1 - place } else { place }) * inner + column;
            let row = |at: usize| -> &[C; W] { x[at..].first_chunk().expect("a row is as wide") };
            let mut now = *row(at(0));
            to[at(0)..][..W].write_copy_of_slice(&now);
            for at in (1..len).map(at) {
                for (now, &x) in now.iter_mut().zip(row(at)) {
                    *now = fold(*now, x);
                }
                to[at..][..W].write_copy_of_slice(&now);
            }
        }
    }
}
