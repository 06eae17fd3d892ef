//! Vectorised quicksort of plain keys (Bramas, A novel hybrid quicksort algorithm vectorized using AVX-512, 2017): one
//! operation splits a vector into its left and right elements. Parts move between two buffers, so all accesses are
//! sequential. Few keys are sorted by [`network`]s.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

use smallvec::SmallVec;

use super::network;
use super::vector::Vector;
#[cfg(target_arch = "x86_64")]
use super::vector::{Half32, Half64, Wide32, Wide64};
#[cfg(target_arch = "x86_64")]
use crate::kernels::simd::{Level, level};
use crate::kernels::{Plain, SendPtr};
use crate::par::{Par, poll_within_chunk};

/// Least keys of the pieces that threads share in one split, and the most pieces.
const MIN_PIECE: usize = 1 << 15;
const MAX_PIECES: usize = 64;

/// Keys of a part from which on a thread checks for interrupts before the split.
const PAUSE: usize = 1 << 17;

/// Keys that are sampled to choose the pivot of a shared split.
const SAMPLE: usize = 255;

/// A sortable element, with vector functions for some types.
pub(super) trait Key: Plain + Ord + Default {
    /// Whether there are vector functions for some processors.
    const HAS_FUNCTIONS: bool = false;

    /// The vector functions for this processor, if there are any.
    fn functions() -> Option<Functions<Self>> {
        None
    }
}

impl Key for u8 {}
impl Key for u16 {}
impl Key for [u64; 2] {}

/// Keys with vector instructions.
pub(super) trait Narrow: Key {
    /// The key minus 1, with wrap-around.
    fn before(self) -> Self;
}

/// Functions for one vector type, which the processor has.
#[derive(Clone, Copy)]
pub(super) struct Functions<T> {
    sort: unsafe fn(*mut T, *mut T, usize),
    split: unsafe fn(*const T, *mut T, usize, T) -> usize,
}

macro_rules! functions {
    ($(#[$features:meta] $sort:ident, $split:ident: $vector:ty;)*) => {$(
        /// Sorts `len` keys of the first buffer. The second is scratch.
        ///
        /// # Safety
        /// The processor has the instructions. Both buffers have `len` keys and do not overlap.
        #[$features]
        unsafe fn $sort(keys: *mut <$vector as Vector>::Key, tmp: *mut <$vector as Vector>::Key, len: usize) {
            // SAFETY: the caller guarantees it.
            unsafe { sort_serially::<$vector>(keys, tmp, len) }
        }

        /// Moves `len` keys to the second buffer, those up to the pivot first, and returns their number.
        ///
        /// # Safety
        /// As above.
        #[$features]
        unsafe fn $split(
            from: *const <$vector as Vector>::Key,
            to: *mut <$vector as Vector>::Key,
            len: usize,
            pivot: <$vector as Vector>::Key,
        ) -> usize {
            // SAFETY: the caller guarantees it.
            unsafe { split::<$vector>(from, to, len, pivot) }.low
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
functions! {
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi2,popcnt")]
    sort_wide_32, split_wide_32: Wide32;
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi2,popcnt")]
    sort_wide_64, split_wide_64: Wide64;
    #[target_feature(enable = "avx2,bmi2,popcnt")]
    sort_half_32, split_half_32: Half32;
    #[target_feature(enable = "avx2,bmi2,popcnt")]
    sort_half_64, split_half_64: Half64;
}

macro_rules! key {
    ($($key:ty: $sort_wide:ident, $split_wide:ident, $sort_half:ident, $split_half:ident;)*) => {$(
        impl Key for $key {
            const HAS_FUNCTIONS: bool = cfg!(target_arch = "x86_64");

            #[cfg(target_arch = "x86_64")]
            fn functions() -> Option<Functions<$key>> {
                match level() {
                    Level::Avx512 => Some(Functions { sort: $sort_wide, split: $split_wide }),
                    Level::Avx2 => Some(Functions { sort: $sort_half, split: $split_half }),
                    Level::Portable => None,
                }
            }
        }

        impl Narrow for $key {
            #[inline(always)]
            fn before(self) -> $key {
                self.wrapping_sub(1)
            }
        }
    )*};
}
key! {
    u32: sort_wide_32, split_wide_32, sort_half_32, split_half_32;
    u64: sort_wide_64, split_wide_64, sort_half_64, split_half_64;
}

/// Writes the items of a row from a position on.
pub(super) type Read<'a, T> = dyn Fn(usize, &mut [MaybeUninit<T>]) + Sync + 'a;

/// Turns sorted items into those of the result.
pub(super) type Finish<'a, T> = dyn Fn(&mut [T]) + Sync + 'a;

impl<T: Key> Functions<T> {
    /// Sorts keys. `tmp` has the same length.
    pub(super) fn sort(self, keys: &mut [T], tmp: &mut [MaybeUninit<T>]) {
        assert_eq!(keys.len(), tmp.len(), "buffers of one length");
        // SAFETY: the processor has the instructions, and both buffers have this length.
        unsafe { (self.sort)(keys.as_mut_ptr(), tmp.as_mut_ptr().cast(), keys.len()) };
    }

    /// Moves keys to a buffer of the same length, those up to the pivot first, and returns their number.
    pub(super) fn split(self, keys: &[T], to: &mut [T], pivot: T) -> usize {
        assert_eq!(keys.len(), to.len(), "buffers of one length");
        // SAFETY: the processor has the instructions, and both buffers have this length.
        unsafe { (self.split)(keys.as_ptr(), to.as_mut_ptr(), keys.len(), pivot) }
    }

    /// Sorts the keys that `read` writes for a range of positions, and passes sorted parts to `finish`. Threads split
    /// the row together until there are enough parts for all of them, then they sort the parts.
    pub(super) fn sort_shared(
        self,
        par: Par,
        read: &Read<'_, T>,
        finish: &Finish<'_, T>,
        keys: &mut [MaybeUninit<T>],
        tmp: &mut [MaybeUninit<T>],
    ) {
        let len = keys.len();
        assert_eq!(len, tmp.len(), "buffers of one length");
        let (keys, tmp) = (SendPtr::of(keys), SendPtr::of(tmp));
        par.for_chunks(len, MIN_PIECE, |chunk| {
            // SAFETY: chunks are disjoint and inside.
            read(chunk.start, unsafe { keys.part(chunk.start, chunk.len()) });
        });
        let wanted = if par.threads() == 1 { 1 } else { (2 * par.threads()).min(len / MIN_PIECE) };
        let mut ranges: SmallVec<[(usize, usize); 64]> = smallvec::smallvec![(0, len)];
        while ranges.len() < wanted {
            ranges = ranges
                .iter()
                .flat_map(|&(start, len)| {
                    let low = self.split_shared(par, &keys, &tmp, start, len);
                    [(start, low), (start + low, len - low)]
                })
                .collect();
        }
        par.for_chunks(ranges.len(), 1, |chunk| {
            for &(start, len) in &ranges[chunk] {
                // SAFETY: parts are disjoint and inside, and every key was written.
                unsafe {
                    let (keys, tmp) = (keys.at(start), tmp.at(start));
                    (self.sort)(keys, tmp, len);
                    finish(std::slice::from_raw_parts_mut(keys, len));
                }
            }
        });
    }

    /// Partitions the `len` keys from `start` on by a pivot, the smaller ones first; returns the number of these.
    fn split_shared(self, par: Par, keys: &SendPtr<T>, tmp: &SendPtr<T>, start: usize, len: usize) -> usize {
        if len <= SAMPLE {
            return len;
        }
        let mut sample = [T::default(); SAMPLE];
        for (index, key) in sample.iter_mut().enumerate() {
            // SAFETY: the position is in the part, whose keys were written.
            *key = unsafe { keys.at(start + index * (len / SAMPLE)).read() };
        }
        sample.sort_unstable();
        let pivot = sample[SAMPLE / 2];
        let piece = MIN_PIECE.max(len.div_ceil(MAX_PIECES));
        let lows = [const { AtomicUsize::new(0) }; MAX_PIECES];
        par.for_chunks(len, piece, |chunk| {
            let at = start + chunk.start;
            // SAFETY: chunks are disjoint and inside, and their keys were written.
            let low = unsafe { (self.split)(keys.at(at), tmp.at(at), chunk.len(), pivot) };
            lows[chunk.start / piece].store(low, Ordering::Relaxed);
        });
        let lows = lows.map(AtomicUsize::into_inner);
        let total = lows.iter().sum();
        par.for_chunks(len, piece, |chunk| {
            let index = chunk.start / piece;
            let (before, low) = (lows[..index].iter().sum::<usize>(), lows[index]);
            let from = start + chunk.start;
            // SAFETY: the pieces' smaller keys and their other keys go to disjoint ranges of the same sizes.
            unsafe {
                tmp.at(from).copy_to_nonoverlapping(keys.at(start + before), low);
                let high = start + total + chunk.start - before;
                tmp.at(from + low).copy_to_nonoverlapping(keys.at(high), chunk.len() - low);
            }
        });
        total
    }
}

/// The result of a split.
struct Split<T> {
    /// The number of keys up to the pivot.
    low: usize,
    least: T,
    greatest: T,
}

/// Moves `len` keys to `to`, those up to the pivot first.
///
/// # Safety
/// The processor has the vector's instructions. Both buffers have `len` keys and do not overlap. There is at least one
/// key. The returned least and greatest keys include the pivot, so they are those of the keys only if the pivot is
/// between them.
#[inline(always)]
unsafe fn split<V: Vector>(from: *const V::Key, to: *mut V::Key, len: usize, pivot: V::Key) -> Split<V::Key> {
    // SAFETY: the caller guarantees it. The unread keys are as many as the gap between both sides holds; it is at least
    // two vectors long where whole vectors are written.
    unsafe {
        let keys = V::splat(pivot);
        let (mut least, mut greatest) = (keys, keys);
        let (mut low, mut high, mut done) = (0, len, 0);
        while len - done >= 2 * V::LANES {
            let vector = V::load(from.add(done));
            done += V::LANES;
            least = least.min(vector);
            greatest = greatest.max(vector);
            let count = vector.split(keys, to.add(low), to.add(high));
            low += count;
            high -= V::LANES - count;
        }
        while done < len {
            let active = (len - done).min(V::LANES);
            let vector = V::load_part(from.add(done), active, keys);
            done += active;
            least = least.min(vector);
            greatest = greatest.max(vector);
            let count = vector.split_part(active, keys, to.add(low), to.add(high));
            low += count;
            high -= active - count;
        }
        Split { low, least: fold::<V>(least, V::Key::min), greatest: fold::<V>(greatest, V::Key::max) }
    }
}

/// Reduces the lanes to one key.
///
/// # Safety
/// The processor has the vector's instructions.
#[inline(always)]
unsafe fn fold<V: Vector>(vector: V, join: impl Fn(V::Key, V::Key) -> V::Key) -> V::Key {
    let mut lanes = [V::Key::default(); 16];
    // SAFETY: the caller guarantees it. There are at most 16 lanes.
    unsafe { vector.store(lanes.as_mut_ptr()) };
    let mut result = lanes[0];
    for &lane in &lanes[1..V::LANES] {
        result = join(result, lane);
    }
    result
}

/// A range of keys to sort.
#[derive(Clone, Copy)]
struct KeyRange {
    start: usize,
    len: usize,
    /// Whether the keys are in the second buffer.
    in_tmp: bool,
    /// The number of further splits before the fallback to `sort_unstable`.
    splits_left: u32,
}

/// Sorts `len` keys. `tmp` is scratch.
///
/// # Safety
/// The processor has the vector's instructions. Both buffers have `len` keys and do not overlap.
#[inline(always)]
unsafe fn sort_serially<V: Vector>(keys: *mut V::Key, tmp: *mut V::Key, len: usize) {
    let whole = KeyRange { start: 0, len, in_tmp: false, splits_left: 2 * (len | 1).ilog2() };
    // The longer part waits and the shorter one is split further. So the part that is split at least halves each time,
    // and at most log2(`len`) parts wait.
    let mut waiting = [whole; usize::BITS as usize];
    let mut count = 1;
    while count > 0 {
        count -= 1;
        let mut range = waiting[count];
        // SAFETY: the caller guarantees it. Parts are inside and disjoint.
        unsafe {
            while range.len > network::ROWS * V::LANES && range.splits_left > 0 {
                // An interrupt may leave the buffer half sorted: keys need no drop, and no code reads the buffer
                // afterwards.
                if range.len >= PAUSE {
                    poll_within_chunk();
                }
                let (low, high) = divide::<V>(range, keys, tmp);
                let (longer, shorter) = if low.len > high.len { (low, high) } else { (high, low) };
                waiting[count] = longer;
                count += 1;
                range = shorter;
            }
            let (to, from) = (keys.add(range.start), tmp.add(range.start));
            let from = if range.in_tmp { from } else { to };
            if range.len <= network::ROWS * V::LANES {
                network::sort::<V>(from, to, range.len);
            } else {
                if range.in_tmp {
                    to.copy_from_nonoverlapping(from, range.len);
                }
                std::slice::from_raw_parts_mut(to, range.len).sort_unstable();
            }
        }
    }
}

/// Splits a range that is longer than three vectors. Keys that need no further sorting are written to their final
/// position and left out.
///
/// # Safety
/// As for `sort_serially`.
#[inline(always)]
unsafe fn divide<V: Vector>(range: KeyRange, keys: *mut V::Key, tmp: *mut V::Key) -> (KeyRange, KeyRange) {
    let (here, there) = if range.in_tmp { (tmp, keys) } else { (keys, tmp) };
    // SAFETY: the caller guarantees it. Parts are inside.
    unsafe {
        let (here, there, sorted) = (here.add(range.start), there.add(range.start), keys.add(range.start));
        let pivot = choose_pivot::<V>(here, range.len);
        let Split { low, least, greatest } = split::<V>(here, there, range.len, pivot);
        let half =
            |start, len| KeyRange { start, len, in_tmp: !range.in_tmp, splits_left: range.splits_left - 1 };
        if least == pivot {
            // All keys up to the pivot are equal.
            fill(sorted, low, pivot);
            if greatest == pivot {
                return (half(range.start, 0), half(range.start, 0));
            }
            return (half(range.start, 0), half(range.start + low, range.len - low));
        }
        if greatest == pivot {
            // No key is above the pivot. Keys equal to the pivot go to the end, and the rest back to this buffer.
            let pivot_before = pivot.before();
            let low = split::<V>(there, here, range.len, pivot_before).low;
            fill(sorted.add(low), range.len - low, pivot);
            return (KeyRange { in_tmp: range.in_tmp, ..half(range.start, low) }, half(range.start, 0));
        }
        if greatest.before() == pivot {
            // All keys above the pivot are equal.
            fill(sorted.add(low), range.len - low, greatest);
            return (half(range.start, low), half(range.start, 0));
        }
        (half(range.start, low), half(range.start + low, range.len - low))
    }
}

/// Writes one key to `len` positions.
///
/// # Safety
/// The positions are writable.
#[inline(always)]
unsafe fn fill<T: Copy>(to: *mut T, len: usize, key: T) {
    for at in 0..len {
        // SAFETY: the caller guarantees it.
        unsafe { to.add(at).write(key) };
    }
}

/// A key near the median of `len` keys: the middle lane of medians of medians of nine vectors (Tukey, The ninther,
/// 1978), or of medians of three if there are few keys.
///
/// # Safety
/// As for `sort_serially`, and there are more keys than three vectors hold.
#[inline(always)]
unsafe fn choose_pivot<V: Vector>(keys: *const V::Key, len: usize) -> V::Key {
    let mut lanes = [V::Key::default(); 16];
    // SAFETY: the caller guarantees it: each vector is inside.
    unsafe {
        let last = len - V::LANES;
        let middle = if len < 64 * V::LANES {
            median(V::load(keys), V::load(keys.add(last / 2)), V::load(keys.add(last)))
        } else {
            let place = |index: usize| keys.add(last / 8 * index);
            median(
                median(V::load(place(0)), V::load(place(1)), V::load(place(2))),
                median(V::load(place(3)), V::load(place(4)), V::load(place(5))),
                median(V::load(place(6)), V::load(place(7)), V::load(place(8))),
            )
        };
        middle.store(lanes.as_mut_ptr());
        network::sort_row::<V>(&mut lanes);
    }
    lanes[(V::LANES - 1) / 2]
}

/// The median of each lane.
///
/// # Safety
/// The processor has the vector's instructions.
#[inline(always)]
unsafe fn median<V: Vector>(a: V, b: V, c: V) -> V {
    // SAFETY: the caller guarantees it.
    unsafe { a.min(b).max(a.max(b).min(c)) }
}
