//! Least-significant-digit radix sort (Knuth, The Art of Computer Programming 3, 5.2.5). Each pass counts the digits
//! and moves the items to the start of their digit's range. It keeps the order of equal digits. Threads count and move
//! pieces of the row.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::SmallVec;

use super::merge;
use super::quicksort::{Finish, Key, Read};
use crate::kernels::SendPtr;
use crate::par::Par;

/// Rows up to this length are sorted by comparisons.
pub(super) const MAX_COMPARISON_SORT: usize = 512;

/// Least items of the pieces that threads share, and the most pieces of a row.
const MIN_PIECE: usize = 1 << 15;
const MAX_PIECES: usize = 64;

/// Bits of a digit. Larger digits would mean fewer passes, but more write positions than the near caches hold.
const BITS: u32 = 8;
const DIGITS: usize = 1 << BITS;

/// An element to sort.
pub(super) trait Item: Key {
    /// The most radix passes that are faster than sorting by comparisons.
    const PASSES: usize;

    /// The bits from `shift` on.
    fn shifted(self, shift: u32) -> u64;
}

macro_rules! item {
    ($($ty:ty: $passes:expr),*) => {$(
        impl Item for $ty {
            const PASSES: usize = $passes;

            #[inline(always)]
            fn shifted(self, shift: u32) -> u64 { u64::from(self >> shift) }
        }
    )*};
}
item!(u8: 1, u16: 2, u32: 4, u64: 4);

/// A key and its position.
impl Item for [u64; 2] {
    const PASSES: usize = 4;

    #[inline(always)]
    fn shifted(self, shift: u32) -> u64 {
        self[0] >> shift
    }
}

/// A key and its position.
pub(super) trait Pair: Item {
    fn of(key: u64, position: usize) -> Self;
}

/// The key is the high half.
impl Pair for u64 {
    #[inline(always)]
    fn of(key: u64, position: usize) -> u64 {
        key << 32 | position as u64
    }
}

impl Pair for [u64; 2] {
    #[inline(always)]
    fn of(key: u64, position: usize) -> [u64; 2] {
        [key, position as u64]
    }
}

/// The counters of digits.
#[expect(clippy::large_enum_variant, reason = "there is one for each thread, on its stack")]
pub(super) enum Counts<'a> {
    /// Counters of one piece, on the stack.
    Own([usize; DIGITS]),
    /// Counters of all pieces of a row that threads share.
    Shared(&'a mut [MaybeUninit<u64>]),
}

impl Counts<'_> {
    pub(super) fn own() -> Counts<'static> {
        Counts::Own([0; DIGITS])
    }
}

/// The number of counters of a row that threads share.
pub(super) fn counters(len: usize) -> usize {
    len.div_ceil(piece(len)) * DIGITS
}

/// The length of the pieces of a row.
fn piece(len: usize) -> usize {
    MIN_PIECE.max(len.div_ceil(MAX_PIECES))
}

/// The passes for a row.
#[derive(Debug)]
pub(super) struct Plan {
    len: usize,
    shifts: SmallVec<[u32; 8]>,
}

impl Plan {
    /// The plan for items whose keys are the `width` bits from `low` on. Digits that are equal in all keys need no
    /// pass. `bits` returns the bits that are set in any key of a range, and those that are not set in any.
    pub(super) fn new(
        len: usize,
        low: u32,
        width: u32,
        par: Par,
        bits: &(dyn Fn(Range<usize>) -> (u64, u64) + Sync),
    ) -> Plan {
        let (ones, zeros) = (AtomicU64::new(0), AtomicU64::new(0));
        par.for_chunks(len, piece(len), |chunk| {
            let (one, zero) = bits(chunk);
            ones.fetch_or(one, Ordering::Relaxed);
            zeros.fetch_or(zero, Ordering::Relaxed);
        });
        let vary = ones.into_inner() & zeros.into_inner();
        let mask = DIGITS as u64 - 1;
        let shifts = (0..width).step_by(BITS as usize).filter(|&shift| vary >> shift & mask != 0);
        Plan { len, shifts: shifts.map(|shift| low + shift).collect() }
    }

    /// Sorts the items that `read` writes, and passes parts of `out` to `finish`. `tmp` has the same length.
    pub(super) fn run<T: Item>(
        &self,
        counts: &mut Counts<'_>,
        par: Par,
        read: &Read<'_, T>,
        finish: &Finish<'_, T>,
        out: &mut [MaybeUninit<T>],
        tmp: &mut [MaybeUninit<T>],
    ) {
        assert!(out.len() == self.len && tmp.len() == self.len, "buffers as long as the row");
        if const { T::PASSES < size_of::<T>() } && self.shifts.len() > T::PASSES {
            merge::sort(par, read, finish, out, tmp);
            return;
        }
        // The buffers swap after each pass, and the last one writes to `out`.
        let (mut from, mut to) = if self.shifts.len().is_multiple_of(2) { (out, tmp) } else { (tmp, out) };
        // The items are read once, so that the items counted are the items moved: another thread may write the elements
        // during the call.
        let target = SendPtr::of(from);
        par.for_chunks(self.len, piece(self.len), |chunk| {
            // SAFETY: chunks are disjoint and inside.
            read(chunk.start, unsafe { target.part(chunk.start, chunk.len()) });
        });
        for &shift in &self.shifts {
            // SAFETY: every item was written, above or by the previous pass.
            let items = unsafe { from.assume_init_ref() };
            self.pass(shift, counts, par, items, to);
            (from, to) = (to, from);
        }
        let target = SendPtr::of(from);
        par.for_chunks(self.len, piece(self.len), |chunk| {
            // SAFETY: as above; chunks are disjoint and inside.
            finish(unsafe { target.part(chunk.start, chunk.len()).assume_init_mut() });
        });
    }

    /// Sorts by the digit at `shift`. It writes every item of `to`.
    fn pass<T: Item>(
        &self,
        shift: u32,
        counts: &mut Counts<'_>,
        par: Par,
        items: &[T],
        to: &mut [MaybeUninit<T>],
    ) {
        let digit = |item: T| item.shifted(shift) as usize & (DIGITS - 1);
        assert_eq!([items.len(), to.len()], [self.len; 2], "buffers as long as the row");
        let target = SendPtr::of(to);
        // Moves a piece's items to the positions at which its counters say that their digits begin.
        let scatter = |piece: Range<usize>, mut next: [usize; DIGITS]| {
            for &item in &items[piece] {
                let next_position = &mut next[digit(item)];
                // SAFETY: a piece has as many consecutive positions for a digit as it has items with this digit.
                // Together the positions are a permutation of the row. So each is inside and is written once.
                unsafe { target.at(*next_position).write(item) };
                *next_position += 1;
            }
        };
        match counts {
            Counts::Own(counts) => {
                counts.fill(0);
                items.iter().for_each(|&item| counts[digit(item)] += 1);
                let mut start = 0;
                for count in &mut *counts {
                    start += std::mem::replace(count, start);
                }
                scatter(0..self.len, *counts);
            }
            Counts::Shared(counts) => {
                let piece = piece(self.len);
                let pieces = self.len.div_ceil(piece);
                let counts = &mut counts[..pieces * DIGITS];
                let counters = SendPtr::of(counts);
                par.for_chunks(self.len, piece, |chunk| {
                    let first = chunk.start / piece * DIGITS;
                    let mut counts = [0u64; DIGITS];
                    items[chunk].iter().for_each(|&item| counts[digit(item)] += 1);
                    for (at, &count) in counts.iter().enumerate() {
                        // SAFETY: each piece has its own counters.
                        unsafe { counters.at(first + at).write(count) };
                    }
                });
                // SAFETY: every piece has written its counters.
                let counts: &mut [u64] = unsafe { counts.assume_init_mut() };
                let mut start = 0;
                for at in 0..DIGITS {
                    for piece in 0..pieces {
                        start += std::mem::replace(&mut counts[piece * DIGITS + at], start);
                    }
                }
                let counts = &*counts;
                par.for_chunks(self.len, piece, |chunk| {
                    let first = chunk.start / piece * DIGITS;
                    let mut next = [0; DIGITS];
                    for (next, &start) in next.iter_mut().zip(&counts[first..first + DIGITS]) {
                        *next = start as usize;
                    }
                    scatter(chunk, next);
                });
            }
        }
    }
}
