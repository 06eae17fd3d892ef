//! Argsort of long rows of short keys. One pass by the highest digit, as in [`radix`](super::radix) sort, leaves
//! buckets that fit in the L1 cache, and vector instructions sort these ([`quicksort`](super::quicksort)). All keys of
//! a bucket share the highest digit. The rest of a key and the index in the bucket often fit into 32 bits, which
//! doubles the elements of a vector.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use super::keys::{Bits, Code};
use super::quicksort::{Functions, Key};
use super::radix::Pair;
use crate::kernels::simd::vectorized;
use crate::kernels::{CastFrom, Plain, SendPtr};
use crate::par::Par;

/// Least keys of the pieces that threads share, and the most pieces.
const MIN_PIECE: usize = 1 << 15;
const MAX_PIECES: usize = 64;

/// log2 of the keys of an average bucket, and the most bits of the digit that selects the bucket.
const LOG2_BUCKET: u32 = 9;
const BITS: u32 = 11;

/// Keys of the buckets that a thread sorts at a time.
const BUCKET_CHUNK: usize = 1 << 14;

/// Keys that are read at a time where pairs are sorted as a whole.
const KEYS: usize = 256;

/// Writes the keys of a range of elements; returns the least and the greatest.
type ReadKeys<'a> = dyn Fn(Range<usize>, &mut [MaybeUninit<u32>]) -> (u32, u32) + Sync + 'a;

/// The largest number of buckets.
fn bucket_count(len: usize) -> usize {
    1 << (len | 1).ilog2().saturating_sub(LOG2_BUCKET).min(BITS)
}

fn piece(len: usize) -> usize {
    MIN_PIECE.max(len.div_ceil(MAX_PIECES))
}

/// The number of counters of a row.
pub(super) fn counters(len: usize) -> usize {
    len.div_ceil(piece(len)) * bucket_count(len)
}

/// The vector sorting functions.
#[derive(Clone, Copy)]
pub(super) struct Sorts {
    pairs: Functions<u64>,
    ranks: Functions<u32>,
}

impl Sorts {
    /// The functions for this processor, if it has the instructions.
    pub(super) fn find() -> Option<Sorts> {
        Some(Sorts { pairs: u64::functions()?, ranks: u32::functions()? })
    }

    /// Writes the positions that sort the rows of this length. `pairs` and `tmp` have the length of `out`.
    pub(super) fn argsort<P: Plain + CastFrom<u32>>(
        self,
        read: &ReadKeys<'_>,
        len: usize,
        out: &mut [MaybeUninit<P>],
        [pairs, tmp]: [&mut [MaybeUninit<u64>]; 2],
        counts: &mut [MaybeUninit<u64>],
        par: Par,
    ) {
        for start in (0..out.len()).step_by(len) {
            let row = start..start + len;
            let buffers = [&mut pairs[row.clone()], &mut tmp[row.clone()]];
            let read = |range: Range<usize>, keys: &mut [MaybeUninit<u32>]| {
                read(start + range.start..start + range.end, keys)
            };
            self.argsort_row(&read, &mut out[row], buffers, counts, par);
        }
    }

    fn argsort_row<P: Plain + CastFrom<u32>>(
        self,
        read: &ReadKeys<'_>,
        out: &mut [MaybeUninit<P>],
        [pairs, tmp]: [&mut [MaybeUninit<u64>]; 2],
        counts: &mut [MaybeUninit<u64>],
        par: Par,
    ) {
        if self.scatter_to_buckets(read, out, [&mut *pairs, &mut *tmp], counts, par) {
            return;
        }
        let read = |start: usize, pairs: &mut [MaybeUninit<u64>]| write_pairs(read, start, pairs);
        self.pairs.sort_shared(par, &read, &|_| {}, pairs, tmp);
        // SAFETY: `sort_shared` wrote and sorted all of them.
        let pairs: &[u64] = unsafe { pairs.assume_init_ref() };
        let out = SendPtr::of(out);
        par.for_chunks(pairs.len(), BUCKET_CHUNK, |chunk| {
            // SAFETY: chunks are disjoint and inside.
            let out = unsafe { out.part(chunk.start, chunk.len()) };
            positions(&pairs[chunk], out);
        });
    }

    /// As `argsort`, for one row. Returns `false` if so many keys are close together that one bucket would be large.
    fn scatter_to_buckets<P: Plain + CastFrom<u32>>(
        self,
        read: &ReadKeys<'_>,
        out: &mut [MaybeUninit<P>],
        [pairs, tmp]: [&mut [MaybeUninit<u64>]; 2],
        counts: &mut [MaybeUninit<u64>],
        par: Par,
    ) -> bool {
        let len = out.len();
        assert!([pairs.len(), tmp.len()] == [len; 2], "buffers as long as the row");
        let piece = piece(len);
        // The keys are read once, so that the keys counted are the keys moved: another thread may write the elements
        // during the call. SAFETY: a pair has room for a key, and every bit pattern is a key. No pair is used while the
        // buffer holds keys.
        let keys = unsafe { std::slice::from_raw_parts_mut(pairs.as_mut_ptr().cast(), len) };
        let (least, greatest) = read_shared(read, keys, piece, par);
        // SAFETY: `read_shared` wrote all of them.
        let keys: &[u32] = unsafe { keys.assume_init_ref() };
        let shift =
            (u32::BITS - (greatest - least).leading_zeros()).saturating_sub(bucket_count(len).ilog2());
        let bucket_count = (u64::from(greatest - least) >> shift) as usize + 1;
        let counts = &mut counts[..len.div_ceil(piece) * bucket_count];
        let counters = SendPtr::of(counts);
        // SAFETY: each piece has its own counters.
        let own = |start: usize| unsafe { counters.part(start / piece * bucket_count, bucket_count) };
        par.for_chunks(len, piece, |chunk| {
            let counts = own(chunk.start);
            counts.fill(MaybeUninit::new(0));
            // SAFETY: they were filled with zeros.
            count(&keys[chunk], least, shift, unsafe { counts.assume_init_mut() });
        });
        // SAFETY: every piece has written its counters.
        let counts: &mut [u64] = unsafe { counts.assume_init_mut() };
        if !prefix_sums(counts, bucket_count, len) && shift > 0 {
            return false;
        }

        let target = SendPtr::of(tmp);
        par.for_chunks(len, piece, |chunk| {
            // SAFETY: the counters are as above, and were written. A piece has one position for each of its keys, and
            // all positions are a permutation of the row. So each is inside and is written once.
            unsafe {
                scatter(&keys[chunk.clone()], chunk.start, least, shift, own(chunk.start), target.at(0))
            };
        });

        // The positions of the last piece have advanced to the ends of the buckets. SAFETY: as above.
        let ends: &[u64] = unsafe { own(len - 1).assume_init_ref() };
        let (out, spare) = (SendPtr::of(out), SendPtr::of(pairs));
        par.for_chunks(bucket_count, (bucket_count * BUCKET_CHUNK / len).max(1), |chunk| {
            for bucket in chunk {
                let start = if bucket == 0 { 0 } else { ends[bucket - 1] as usize };
                let len = ends[bucket] as usize - start;
                // SAFETY: buckets are disjoint and inside, and all pairs were written.
                let (pairs, spare, out) = unsafe {
                    (
                        std::slice::from_raw_parts_mut(target.at(start), len),
                        spare.part(start, len),
                        out.part(start, len),
                    )
                };
                self.sort_part(pairs, shift, spare, out);
            }
        });
        true
    }

    /// Writes the positions of pairs, sorted by the low `bits` bits of their keys; all higher bits are equal. Equal
    /// keys keep their order. `pairs` is also used as scratch.
    fn sort_part<P: Plain + CastFrom<u32>>(
        self,
        pairs: &mut [u64],
        bits: u32,
        spare: &mut [MaybeUninit<u64>],
        out: &mut [MaybeUninit<P>],
    ) {
        let len = pairs.len();
        // The number of bits of an index in the bucket.
        let low = usize::BITS - len.saturating_sub(1).leading_zeros();
        if bits == 0 || len < 2 {
            positions(pairs, out);
        } else if bits + low <= u32::BITS {
            // SAFETY: one 64-bit number has room for two of 32 bits, and every bit pattern is a number.
            let spare = unsafe { std::slice::from_raw_parts_mut(spare.as_mut_ptr().cast(), 2 * len) };
            let (ranks, spare) = spare.split_at_mut(len);
            rank(pairs, low, ranks);
            // SAFETY: `rank` wrote all of them.
            let ranks: &mut [u32] = unsafe { ranks.assume_init_mut() };
            self.ranks.sort(ranks, spare);
            let mask = (1 << low) - 1;
            for (out, &rank) in out.iter_mut().zip(&*ranks) {
                out.write(P::cast_from(pairs[rank as usize & mask] as u32));
            }
        } else {
            self.pairs.sort(pairs, spare);
            positions(pairs, out);
        }
    }
}

/// Counts the digits of keys: the difference to the least key without its `shift` low bits. All arguments are passed by
/// value: the processor would mistake a value that is loaded again after each count for the count if their addresses
/// end alike (4K aliasing).
fn count(keys: &[u32], least: u32, shift: u32, counts: &mut [u64]) {
    for &key in keys {
        counts[(u64::from(key - least) >> shift) as usize] += 1;
    }
}

/// Writes pairs of keys and positions, counted from `start`, to the positions in the digits' counters.
///
/// # Safety
/// The counters are initialised and stay below the length of `to`. No other thread accesses these positions of `to`
/// during the call.
unsafe fn scatter(
    keys: &[u32],
    start: usize,
    least: u32,
    shift: u32,
    next: &mut [MaybeUninit<u64>],
    to: *mut u64,
) {
    for (index, &key) in keys.iter().enumerate() {
        let key = u64::from(key - least);
        // SAFETY: the caller guarantees it.
        unsafe {
            let next = next[(key >> shift) as usize].assume_init_mut();
            to.add(*next as usize).write(key << 32 | (start + index) as u64);
            *next += 1;
        }
    }
}

/// Turns each piece's digit counts into the positions at which those keys begin. Returns whether no digit has more than
/// 1/16 of the keys.
fn prefix_sums(counts: &mut [u64], bucket_count: usize, len: usize) -> bool {
    let mut next = [0; 1 << BITS];
    let next = &mut next[..bucket_count];
    for counts in counts.chunks_exact(bucket_count) {
        next.iter_mut().zip(counts).for_each(|(next, &count)| *next += count);
    }
    let most = next.iter().copied().max();
    let mut start = 0;
    next.iter_mut().for_each(|next| start += std::mem::replace(next, start));
    for counts in counts.chunks_exact_mut(bucket_count) {
        for (next, count) in next.iter_mut().zip(counts) {
            let start = *next;
            *next += std::mem::replace(count, start);
        }
    }
    most.is_none_or(|most| most <= len as u64 / 16)
}

/// Writes all keys; returns the least and the greatest.
fn read_shared(read: &ReadKeys<'_>, keys: &mut [MaybeUninit<u32>], piece: usize, par: Par) -> (u32, u32) {
    let (least, greatest) = (AtomicU32::new(u32::MAX), AtomicU32::new(0));
    let len = keys.len();
    let keys = SendPtr::of(keys);
    par.for_chunks(len, piece, |chunk| {
        // SAFETY: chunks are disjoint and inside.
        let keys = unsafe { keys.part(chunk.start, chunk.len()) };
        let (low, high) = read(chunk, keys);
        least.fetch_min(low, Ordering::Relaxed);
        greatest.fetch_max(high, Ordering::Relaxed);
    });
    (least.into_inner(), greatest.into_inner())
}

/// Writes pairs of keys and positions, from a position on.
fn write_pairs(read: &ReadKeys<'_>, start: usize, pairs: &mut [MaybeUninit<u64>]) {
    let mut keys = [MaybeUninit::uninit(); KEYS];
    for (part, pairs) in pairs.chunks_mut(KEYS).enumerate() {
        let first = start + part * KEYS;
        let keys = &mut keys[..pairs.len()];
        read(first..first + keys.len(), keys);
        // SAFETY: `read` wrote all of them.
        let keys: &[u32] = unsafe { keys.assume_init_ref() };
        for (at, (pair, &key)) in pairs.iter_mut().zip(keys).enumerate() {
            pair.write(Pair::of(u64::from(key), first + at));
        }
    }
}

vectorized! {
    /// Writes the keys of elements, of at most 32 bits; returns the least and the greatest.
    pub(super) fn read[T: Bits] of [T] (code: Code<T>, x: &[T], keys: &mut [MaybeUninit<u32>]) -> (u32, u32) {
        let (mut least, mut greatest) = (u32::MAX, 0);
        for (to, &bits) in keys.iter_mut().zip(x) {
            let key = code.key(bits).wide() as u32;
            (least, greatest) = (least.min(key), greatest.max(key));
            to.write(key);
        }
        (least, greatest)
    }
}

vectorized! {
    /// Writes the low bits of keys, and below them `low` bits of indices. The high bits that the keys of a bucket share
    /// may be shifted out.
    fn rank[] of [] (pairs: &[u64], low: u32, ranks: &mut [MaybeUninit<u32>]) {
        for (position, (rank, &pair)) in ranks.iter_mut().zip(pairs).enumerate() {
            rank.write(((pair >> 32) as u32) << low | position as u32);
        }
    }
}

vectorized! {
    /// Writes the positions of pairs.
    fn positions[P: CastFrom<u32>] of [P] (pairs: &[u64], out: &mut [MaybeUninit<P>]) {
        for (out, &pair) in out.iter_mut().zip(pairs) {
            out.write(P::cast_from(pair as u32));
        }
    }
}
