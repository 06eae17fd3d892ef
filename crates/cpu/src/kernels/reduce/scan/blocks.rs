//! Long axes with few other elements: threads scan blocks, and hand the result at the end of a block to the next.
//!
//! A thread scans the blocks of a tile into memory of its own. When the tile before has handed over, it knows what its
//! own hands over, and does so; then it joins its blocks to what came before them, and stores them. So every element is
//! read and written once, and a thread waits for the chain of additions of others, one for each block, only.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::fold::Fold;
use super::{BLOCK, Lines, store, uninit, with_elements};
use crate::kernels::stream::StoreKind;
use crate::kernels::{Element, SendPtr};

/// The most elements of a row.
const WIDEST: usize = 64;

/// The most bytes of a row, so that a block fits in the second cache beside the results.
const WIDEST_BYTES: usize = 512;

/// Elements of a tile, which has whole blocks.
const TILE: usize = 16 * BLOCK;

/// Elements that are joined to those before them at a time.
const PATTERN: usize = 256;

/// Elements that are stored past the caches at a time.
const PIECE: usize = 1024;

/// Tests of whose turn it is before a thread lets others run, of which one may be waited for.
const SPINS: usize = 100;

/// What is handed from a tile to the next.
struct Baton<C> {
    /// The tile whose turn it is.
    turn: AtomicUsize,
    /// The last row of the tile before.
    last: UnsafeCell<[C; WIDEST]>,
}

// SAFETY: only the thread whose turn it is uses `last`.
unsafe impl<C: Send> Sync for Baton<C> {}

/// A tile that somebody scans. When it is dropped, it is the turn of the next, so that a panic keeps nobody waiting.
struct Tile<'a, C> {
    baton: &'a Baton<C>,
    number: usize,
}

impl<C> Tile<'_, C> {
    /// Waits for its turn.
    fn wait(&self) {
        let is_due = || self.baton.turn.load(Ordering::Acquire) == self.number;
        let mut spins = 0;
        while !is_due() {
            spins += 1;
            if spins % SPINS == 0 {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// The last row of the tile before.
    fn last(&mut self) -> &mut [C; WIDEST] {
        self.wait();
        // SAFETY: it is this tile's turn until it is dropped, and the tile is borrowed.
        unsafe { &mut *self.baton.last.get() }
    }
}

impl<C> Drop for Tile<'_, C> {
    fn drop(&mut self) {
        self.wait();
        self.baton.turn.store(self.number + 1, Ordering::Release);
    }
}

/// Repeats the first elements as often as whole copies fit; returns all copies.
fn repeated<C: Copy>(memory: &mut [C], count: usize) -> &[C] {
    let end = memory.len() / count * count;
    let mut done = count;
    while done < end {
        let more = done.min(end - done);
        memory.copy_within(..more, done);
        done += more;
    }
    &memory[..end]
}

impl Lines {
    /// Whether rows of adjacent columns are short enough for blocks of them, and blocks take less time than whole rows.
    pub(super) fn has_rows_for_blocks<C>(self) -> bool {
        let is_short = self.inner <= WIDEST && self.inner * size_of::<C>() <= WIDEST_BYTES;
        is_short && (self.has_narrow_rows::<C>() || self.outer < self.par.threads())
    }

    /// Scans blocks of a few columns.
    pub(super) fn by_blocks<C: Element>(self, x: &[C], out: &SendPtr<C>, fold: &dyn Fold<C>) {
        let Lines { outer, len, inner, stores, .. } = self;
        let places = (TILE / (BLOCK * inner)).max(1) * BLOCK;
        let tiles = len.div_ceil(places);
        let baton = Baton { turn: AtomicUsize::new(0), last: UnsafeCell::new([C::ZERO; WIDEST]) };
        let next = AtomicUsize::new(0);
        self.par.for_chunks(outer * tiles, 1, |_| {
            // A tile waits for those before it. So they are taken in order, whatever the order of chunks.
            let number = next.fetch_add(1, Ordering::Relaxed);
            let mut tile = Tile { baton: &baton, number };
            let (line, place) = (number / tiles, number % tiles * places);
            let count = places.min(len - place);
            let start = (line * len + self.first_row(place, count)) * inner;
            let x = &x[start..][..count * inner];
            with_elements(count * inner + PIECE, |memory| {
                let (scanned, piece) = memory.split_at_mut(count * inner);
                self.scan_blocks(x, scanned, fold);
                let is_first = |block: usize| place == 0 && block == 0;
                let mut before = [C::ZERO; PATTERN];
                let last = tile.last();
                before[..inner].copy_from_slice(&last[..inner]);
                for block in self.blocks(count) {
                    let end = &scanned[self.end_of(block, count)..][..inner];
                    if is_first(block) {
                        last[..inner].copy_from_slice(end);
                    } else {
                        fold.advance(&mut last[..inner], end);
                    }
                }
                drop(tile);
                for block in self.blocks(count) {
                    let (from, rows) = self.rows_of(block, count);
                    let (from, size) = (from * inner, rows * inner);
                    let part = &scanned[from..][..size];
                    let end = &part[self.end_of(block, count) - from..][..inner];
                    // SAFETY: each tile belongs to one chunk.
                    let to = unsafe { out.part(start + from, size) };
                    if is_first(block) {
                        store(part, to, stores);
                        before[..inner].copy_from_slice(end);
                    } else {
                        let pattern = repeated(&mut before, inner);
                        match stores {
                            StoreKind::Cached => fold.join(pattern, part, to),
                            StoreKind::NonTemporal => {
                                // Pieces begin where the pattern does.
                                let size = PIECE / inner * inner;
                                for (part, to) in part.chunks(size).zip(to.chunks_mut(size)) {
                                    let piece = &mut piece[..part.len()];
                                    fold.join(pattern, part, uninit(piece));
                                    store(piece, to, stores);
                                }
                            }
                        }
                        fold.advance(&mut before[..inner], end);
                    }
                }
                stores.finish();
            });
        });
    }

    /// The places at which blocks of `count` rows begin.
    fn blocks(self, count: usize) -> impl Iterator<Item = usize> {
        (0..count).step_by(BLOCK)
    }

    /// The first row of a block of `count` rows as they lie, and the number of its rows.
    fn rows_of(self, place: usize, count: usize) -> (usize, usize) {
        let rows = BLOCK.min(count - place);
        (if self.reverse { count - place - rows } else { place }, rows)
    }

    /// Where the last scanned row of a block begins.
    fn end_of(self, place: usize, count: usize) -> usize {
        let (from, rows) = self.rows_of(place, count);
        self.inner * if self.reverse { from } else { from + rows - 1 }
    }

    /// Scans each block of some rows.
    fn scan_blocks<C: Element>(self, x: &[C], to: &mut [C], fold: &dyn Fold<C>) {
        let rest = x.len() / self.inner % BLOCK * self.inner;
        // The last block of the scan may be smaller.
        let middle = if self.reverse { rest } else { x.len() - rest };
        let ((x, x_end), (to, to_end)) = (x.split_at(middle), to.split_at_mut(middle));
        for (x, to) in [(x, to), (x_end, to_end)] {
            let len = BLOCK.min(x.len() / self.inner);
            if len > 0 {
                self.matrices(x, uninit(to), len, fold);
            }
        }
    }
}
