//! Matrices with many columns: rows of them are scanned as vectors.

use super::fold::Fold;
use super::{BLOCK, Lines, MIN_NON_TEMPORAL, store, uninit, with_elements};
use crate::kernels::stream::StoreKind;
use crate::kernels::{Element, SendPtr};
use crate::par::poll_within_chunk;

/// The least bytes of a part of a row that a thread scans.
const MIN_PART_BYTES: usize = 2048;

/// The most bytes of such a part: a few of them stay in the second cache.
const MAX_PART_BYTES: usize = 128 << 10;

/// Threads among which dividing rows does not pay, since parts of rows are read at half the speed of whole ones: on one
/// thread 4096 x 2048 f32 elements took 1.9 ms in whole rows, and 4.8 ms in halves of rows.
const FEW_THREADS: usize = 2;

/// The least bytes of whole rows that take less time one after the other than in strips.
const MIN_ROW_BYTES: usize = 128;

/// Elements of a chunk, and between two polls.
const CHUNK: usize = 1 << 16;

/// Bytes of a cache line.
const LINE: usize = 64;

impl Lines {
    /// Whether rows of adjacent columns are too short for vectors.
    pub(super) fn has_narrow_rows<C>(self) -> bool {
        self.inner * size_of::<C>() < MIN_ROW_BYTES
    }

    /// Scans rows of adjacent columns.
    pub(super) fn by_columns<C: Element>(self, x: &[C], out: &SendPtr<C>, fold: &dyn Fold<C>) {
        let Lines { outer, len, inner, par, .. } = self;
        let (least, most) = (MIN_PART_BYTES / size_of::<C>(), MAX_PART_BYTES / size_of::<C>());
        // Where rows are divided makes no difference for the result.
        let parts = par.threads().div_ceil(outer);
        let parts = if parts <= FEW_THREADS { 1 } else { parts };
        let width = inner.div_ceil(parts).next_multiple_of(LINE / size_of::<C>()).clamp(least, most);
        let tasks = inner.div_ceil(width);
        par.for_chunks(outer * tasks, (CHUNK / (len * inner.min(width))).max(1), |chunk| {
            for task in chunk {
                let (matrix, column) = (task / tasks, task % tasks * width);
                let width = width.min(inner - column);
                self.part(x, out, (matrix * len * inner + column, width), fold);
            }
            self.stores.finish();
        });
    }

    /// Scans some columns of a matrix, whose first row begins at an element.
    fn part<C: Element>(self, x: &[C], out: &SendPtr<C>, (start, width): (usize, usize), fold: &dyn Fold<C>) {
        let is_short = width * size_of::<C>() < MIN_NON_TEMPORAL;
        let stores = if is_short { StoreKind::Cached } else { self.stores };
        with_elements(3 * width, |memory: &mut [C]| {
            // The sums of a block, those up to its beginning, and both joined.
            let (now, rest) = memory.split_at_mut(width);
            let (before, joined) = rest.split_at_mut(width);
            let mut since_poll = 0;
            for place in 0..self.len {
                since_poll += width;
                if since_poll >= CHUNK {
                    poll_within_chunk();
                    since_poll = 0;
                }
                let is_first_block = place < BLOCK || !self.has_blocks();
                let at = start + self.row(place) * self.inner;
                let x = &x[at..][..width];
                // SAFETY: each part of a row belongs to one task.
                let to = unsafe { out.part(at, width) };
                if place == 0 || place % BLOCK == 0 && !is_first_block {
                    if place == BLOCK {
                        before.copy_from_slice(now);
                    } else if place > BLOCK {
                        fold.advance(before, now);
                    }
                    now.copy_from_slice(x);
                } else {
                    fold.advance(now, x);
                }
                if is_first_block {
                    store(now, to, stores);
                } else {
                    fold.join(before, now, uninit(joined));
                    store(joined, to, stores);
                }
            }
        });
    }
}
