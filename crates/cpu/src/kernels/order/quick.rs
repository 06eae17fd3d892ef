//! Quicksort of keys that are nothing but their order, with vectors (Bramas, A novel hybrid quicksort algorithm
//! vectorized using AVX-512, 2017): a vector is split at once into what goes left and what goes right. Parts move
//! from one buffer to another, and so are read and written in sequence; few keys are sorted by [`network`]s.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

use smallvec::SmallVec;

use super::network;
use super::radix::Target;
use super::vector::Vector;
#[cfg(target_arch = "x86_64")]
use super::vector::{Half32, Half64, Wide32, Wide64};
use crate::kernels::Plain;
#[cfg(target_arch = "x86_64")]
use crate::kernels::simd::{Level, level};
use crate::par::{Par, breathe};

/// Keys of the pieces that threads share in one split, and the most pieces.
const PIECE: usize = 1 << 15;
const PIECES: usize = 64;

/// Keys of a part before whose split a thread asks whether to go on.
const PAUSE: usize = 1 << 17;

/// Keys that are looked at to choose where threads split.
const SAMPLE: usize = 255;

/// What is sorted, by vectors where there are some for it.
pub(super) trait Key: Plain + Ord + Default {
    /// How this processor's vectors sort, if they do.
    fn functions() -> Option<Functions<Self>> {
        None
    }
}

impl Key for u8 {}
impl Key for u16 {}
impl Key for [u64; 2] {}

/// Keys that vectors hold.
pub(super) trait Narrow: Key {
    /// The key that is less by one; wraps.
    fn before(self) -> Self;
}

/// Functions of one kind of vector, which the processor has.
#[derive(Clone, Copy)]
pub(super) struct Functions<T> {
    sort: unsafe fn(*mut T, *mut T, usize),
    split: unsafe fn(*const T, *mut T, usize, T) -> usize,
}

macro_rules! functions {
    ($(#[$features:meta] $sort:ident, $split:ident: $vector:ty;)*) => {$(
        /// Sorts so many keys of the first buffer; the second is for meanwhile.
        ///
        /// # Safety
        /// The processor has the instructions; the buffers are as long and do not overlap.
        #[$features]
        unsafe fn $sort(keys: *mut <$vector as Vector>::Key, tmp: *mut <$vector as Vector>::Key, len: usize) {
            // SAFETY: the caller's promise.
            unsafe { sort_serially::<$vector>(keys, tmp, len) }
        }

        /// Moves so many keys to the second buffer, those up to a pivot first; returns how many are.
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
            // SAFETY: the caller's promise.
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

impl<T: Key> Functions<T> {
    /// Sorts keys; `tmp` is as long.
    pub(super) fn sort(self, keys: &mut [T], tmp: &mut [MaybeUninit<T>]) {
        assert_eq!(keys.len(), tmp.len(), "buffers of one length");
        // SAFETY: the processor has the instructions, and both buffers have the length.
        unsafe { (self.sort)(keys.as_mut_ptr(), tmp.as_mut_ptr().cast(), keys.len()) };
    }

    /// Sorts what `read` writes of the positions that it is given, and gives sorted parts of it to `finish`. Threads
    /// split everything until there are parts enough for each, and then sort those.
    pub(super) fn sort_shared(
        self,
        par: Par,
        read: impl Fn(usize, &mut [MaybeUninit<T>]) + Sync,
        finish: impl Fn(&mut [T]) + Sync,
        keys: &mut [MaybeUninit<T>],
        tmp: &mut [MaybeUninit<T>],
    ) {
        let len = keys.len();
        assert_eq!(len, tmp.len(), "buffers of one length");
        let (keys, tmp) = (Target::of(keys), Target::of(tmp));
        par.for_chunks(len, PIECE, |chunk| {
            // SAFETY: chunks are disjoint and inside.
            read(chunk.start, unsafe { std::slice::from_raw_parts_mut(keys.at(chunk.start), chunk.len()) });
        });
        let wanted = if par.threads() == 1 { 1 } else { (2 * par.threads()).min(len / PIECE) };
        let mut parts: SmallVec<[(usize, usize); 64]> = smallvec::smallvec![(0, len)];
        while parts.len() < wanted {
            parts = parts
                .iter()
                .flat_map(|&(start, len)| {
                    let low = self.split_shared(par, &keys, &tmp, start, len);
                    [(start, low), (start + low, len - low)]
                })
                .collect();
        }
        par.for_chunks(parts.len(), 1, |chunk| {
            for &(start, len) in &parts[chunk] {
                // SAFETY: parts are disjoint and inside, and every key was written.
                unsafe {
                    let (keys, tmp) = (keys.at(start).cast::<T>(), tmp.at(start).cast::<T>());
                    (self.sort)(keys, tmp, len);
                    finish(std::slice::from_raw_parts_mut(keys, len));
                }
            }
        });
    }

    /// Moves the lesser of `len` keys from `start` on before the others; returns how many they are.
    fn split_shared(self, par: Par, keys: &Target<T>, tmp: &Target<T>, start: usize, len: usize) -> usize {
        if len <= SAMPLE {
            return len;
        }
        let mut sample = [T::default(); SAMPLE];
        for (index, key) in sample.iter_mut().enumerate() {
            // SAFETY: the position is in the part, whose keys were written.
            *key = unsafe { keys.at(start + index * (len / SAMPLE)).cast::<T>().read() };
        }
        sample.sort_unstable();
        let pivot = sample[SAMPLE / 2];
        let piece = PIECE.max(len.div_ceil(PIECES));
        let lows = [const { AtomicUsize::new(0) }; PIECES];
        par.for_chunks(len, piece, |chunk| {
            let at = start + chunk.start;
            // SAFETY: chunks are disjoint and inside, and their keys were written.
            let low = unsafe { (self.split)(keys.at(at).cast(), tmp.at(at).cast(), chunk.len(), pivot) };
            lows[chunk.start / piece].store(low, Ordering::Relaxed);
        });
        let lows = lows.map(AtomicUsize::into_inner);
        let total = lows.iter().sum();
        par.for_chunks(len, piece, |chunk| {
            let index = chunk.start / piece;
            let (before, low) = (lows[..index].iter().sum::<usize>(), lows[index]);
            let from = start + chunk.start;
            // SAFETY: the pieces' lesser keys and their others go to disjoint places, which are as many as those.
            unsafe {
                tmp.at(from).copy_to_nonoverlapping(keys.at(start + before), low);
                let high = start + total + chunk.start - before;
                tmp.at(from + low).copy_to_nonoverlapping(keys.at(high), chunk.len() - low);
            }
        });
        total
    }
}

/// What a split found.
struct Split<T> {
    /// How many keys are up to the pivot.
    low: usize,
    least: T,
    greatest: T,
}

/// Moves `len` keys to `to`, those up to a pivot first.
///
/// # Safety
/// The processor has the vector's instructions; the buffers are as long and do not overlap. There is a key, and the
/// pivot is between the least and the greatest for these to be found.
#[inline(always)]
unsafe fn split<V: Vector>(from: *const V::Key, to: *mut V::Key, len: usize, pivot: V::Key) -> Split<V::Key> {
    // SAFETY: the caller's promise. What is not read yet is as long as the gap between both sides, and is two vectors
    // long where whole ones are written.
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
            let part = (len - done).min(V::LANES);
            let vector = V::load_part(from.add(done), part, keys);
            done += part;
            least = least.min(vector);
            greatest = greatest.max(vector);
            let count = vector.split_part(part, keys, to.add(low), to.add(high));
            low += count;
            high -= part - count;
        }
        Split { low, least: fold::<V>(least, V::Key::min), greatest: fold::<V>(greatest, V::Key::max) }
    }
}

/// Joins the lanes.
///
/// # Safety
/// The processor has the vector's instructions.
#[inline(always)]
unsafe fn fold<V: Vector>(vector: V, join: impl Fn(V::Key, V::Key) -> V::Key) -> V::Key {
    let mut lanes = [V::Key::default(); 16];
    // SAFETY: the caller's promise; there are no more than 16 lanes.
    unsafe { vector.store(lanes.as_mut_ptr()) };
    let mut result = lanes[0];
    for &lane in &lanes[1..V::LANES] {
        result = join(result, lane);
    }
    result
}

/// Keys that are to be sorted.
#[derive(Clone, Copy)]
struct Part {
    start: usize,
    len: usize,
    /// Whether they are in the second buffer.
    moved: bool,
    /// How many more splits may be as bad as they come.
    patience: u32,
}

/// Sorts `len` keys; `tmp` is for meanwhile.
///
/// # Safety
/// The processor has the vector's instructions; the buffers are as long and do not overlap.
#[inline(always)]
unsafe fn sort_serially<V: Vector>(keys: *mut V::Key, tmp: *mut V::Key, len: usize) {
    let whole = Part { start: 0, len, moved: false, patience: 2 * (len | 1).ilog2() };
    // The longer part waits, so that each is at most half as long as the one that waited before.
    let mut waiting = [whole; usize::BITS as usize];
    let mut count = 1;
    while count > 0 {
        count -= 1;
        let mut part = waiting[count];
        // SAFETY: the caller's promise; parts are inside and disjoint.
        unsafe {
            while part.len > network::ROWS * V::LANES && part.patience > 0 {
                // Keys are plain: nobody looks at a half sorted buffer.
                if part.len >= PAUSE {
                    breathe();
                }
                let (low, high) = divide::<V>(part, keys, tmp);
                let (longer, shorter) = if low.len > high.len { (low, high) } else { (high, low) };
                waiting[count] = longer;
                count += 1;
                part = shorter;
            }
            let (to, from) = (keys.add(part.start), tmp.add(part.start));
            let from = if part.moved { from } else { to };
            if part.len <= network::ROWS * V::LANES {
                network::sort::<V>(from, to, part.len);
            } else {
                if part.moved {
                    to.copy_from_nonoverlapping(from, part.len);
                }
                std::slice::from_raw_parts_mut(to, part.len).sort_unstable();
            }
        }
    }
}

/// Splits a part, which is longer than three vectors. What needs no more sorting is in its place, and is left out.
///
/// # Safety
/// As for `sort_serially`.
#[inline(always)]
unsafe fn divide<V: Vector>(part: Part, keys: *mut V::Key, tmp: *mut V::Key) -> (Part, Part) {
    let (here, there) = if part.moved { (tmp, keys) } else { (keys, tmp) };
    // SAFETY: the caller's promise; parts are inside.
    unsafe {
        let (here, there, sorted) = (here.add(part.start), there.add(part.start), keys.add(part.start));
        let pivot = choose_pivot::<V>(here, part.len);
        let Split { low, least, greatest } = split::<V>(here, there, part.len, pivot);
        let half = |start, len| Part { start, len, moved: !part.moved, patience: part.patience - 1 };
        if least == pivot {
            // All lesser ones are equal.
            fill(sorted, low, pivot);
            if greatest == pivot {
                return (half(part.start, 0), half(part.start, 0));
            }
            return (half(part.start, 0), half(part.start + low, part.len - low));
        }
        if greatest == pivot {
            // There are no others: those that are equal to the pivot go to the end, the rest back.
            let pivot_before = pivot.before();
            let low = split::<V>(there, here, part.len, pivot_before).low;
            fill(sorted.add(low), part.len - low, pivot);
            return (Part { moved: part.moved, ..half(part.start, low) }, half(part.start, 0));
        }
        if greatest.before() == pivot {
            // All others are equal.
            fill(sorted.add(low), part.len - low, greatest);
            return (half(part.start, low), half(part.start, 0));
        }
        (half(part.start, low), half(part.start + low, part.len - low))
    }
}

/// Writes one key to `len` places.
///
/// # Safety
/// They may be written.
#[inline(always)]
unsafe fn fill<T: Copy>(to: *mut T, len: usize, key: T) {
    for at in 0..len {
        // SAFETY: the caller's promise.
        unsafe { to.add(at).write(key) };
    }
}

/// One of `len` keys, with about as many above as below: the middle one of medians of medians of keys from nine
/// places (Tukey, The ninther, 1978), of three where there are few.
///
/// # Safety
/// As for `sort_serially`; there are more keys than three vectors hold.
#[inline(always)]
unsafe fn choose_pivot<V: Vector>(keys: *const V::Key, len: usize) -> V::Key {
    let mut lanes = [V::Key::default(); 16];
    // SAFETY: the caller's promise: each vector is inside.
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

/// The medians of the lanes.
///
/// # Safety
/// The processor has the vector's instructions.
#[inline(always)]
unsafe fn median<V: Vector>(a: V, b: V, c: V) -> V {
    // SAFETY: the caller's promise.
    unsafe { a.min(b).max(a.max(b).min(c)) }
}
