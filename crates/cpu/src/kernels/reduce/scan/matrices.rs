//! Matrices with few columns: each is scanned by one thread.

use std::mem::MaybeUninit;

use super::fold::{Fold, Rows};
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
    pub(super) fn by_matrices<C: Element>(self, x: &[C], out: &SendPtr<C>, fold: &dyn Fold<C>) {
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
        fold: &dyn Fold<C>,
    ) {
        if self.inner == 1 {
            let whole = x.len() - x.len() % (TOGETHER * len);
            let ((x, rest), (to, to_rest)) = (x.split_at(whole), to.split_at_mut(whole));
            for (x, to) in x.chunks_exact(TOGETHER * len).zip(to.chunks_exact_mut(TOGETHER * len)) {
                fold.rows(Rows::Several, x, to, self.reverse);
            }
            for (x, to) in rest.chunks_exact(len).zip(to_rest.chunks_exact_mut(len)) {
                fold.rows(Rows::One, x, to, self.reverse);
            }
            return;
        }
        let matrix = len * self.inner;
        for (x, to) in x.chunks_exact(matrix).zip(to.chunks_exact_mut(matrix)) {
            fold.columns(self.inner, x, to, self.reverse);
        }
    }
}
