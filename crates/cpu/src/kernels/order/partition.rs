//! Partitions of rows: the elements that a sort puts before a position, the one at the position, and the others.
//!
//! The key at the position is found first, by splits of all keys at quantiles of samples (Floyd and Rivest, "Expected
//! time bounds for selection", 1975). Then one pass over the elements moves each to its side. Elements of a side keep
//! their order, so that the result does not depend on how the key was found.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

use defn_core::op::Direction;
use defn_core::{DType, TensorType};

use super::keys::{Bits, Code, encode};
use super::{MIN_SHARED_ROW, Rows, SHORT_ROWS_CHUNK};
use crate::kernels::simd::vectorized;
use crate::kernels::{CastFrom, Plain, SendPtr};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// The least length of the pieces of a row that threads share, and the most pieces.
const MIN_PIECE: usize = 1 << 15;
const MAX_PIECES: usize = 64;

/// Elements that are moved at a time.
const TILE: usize = 512;

/// The keys that are sampled to choose a pivot, and the number of them by which it is beyond the position that is sought:
/// more than three standard deviations of the rank of a sampled key.
const SAMPLE: usize = 1024;
const MARGIN: usize = 56;

/// Keys from which on they are split at pivots before one is selected.
const MIN_SPLIT: usize = 16 * SAMPLE;

/// Splits before the fallback to `select_nth_unstable`.
const MAX_SPLITS: usize = 64;

/// The two buffers of keys of [`partition`] and [`argpartition`].
pub(crate) fn keys_scratch(x: &TensorType) -> TensorType {
    x.clone()
}

/// Writes the elements of each row with the one at the position `kth` of a sort there, those before it in the order of
/// a sort before it, and the others behind it. `keys` are two buffers of [`keys_scratch`].
pub(crate) fn partition(
    x: View<'_>,
    kth: usize,
    out: &mut ViewMut<'_>,
    keys: [&mut ViewMut<'_>; 2],
    par: Par,
) {
    with_bits!(x.ty().dtype, T => {
        let elements: &[T] = x.slice();
        let out = SendPtr::of(out.slice::<T>());
        partition_rows(x, kth, keys, par, &|start, row: &[T], split: &Split<T>, par| {
            // SAFETY: rows are disjoint and inside.
            let out = SendPtr::new(unsafe { out.at(start) });
            split.apply(row, &out, par, |at| elements[start + at]);
        });
    });
}

/// As [`partition`], the positions of the elements, as s32 or s64.
pub(crate) fn argpartition(
    x: View<'_>,
    kth: usize,
    out: &mut ViewMut<'_>,
    keys: [&mut ViewMut<'_>; 2],
    par: Par,
) {
    if out.ty().dtype == DType::S32 {
        positions::<i32>(x, kth, &SendPtr::of(out.slice()), keys, par);
    } else {
        positions::<i64>(x, kth, &SendPtr::of(out.slice()), keys, par);
    }
}

fn positions<P: Plain + Default + CastFrom<u64>>(
    x: View<'_>,
    kth: usize,
    out: &SendPtr<P>,
    keys: [&mut ViewMut<'_>; 2],
    par: Par,
) {
    with_bits!(x.ty().dtype, T => {
        partition_rows(x, kth, keys, par, &|start, row: &[T], split: &Split<T>, par| {
            // SAFETY: rows are disjoint and inside.
            let out = SendPtr::new(unsafe { out.at(start) });
            split.apply(row, &out, par, |at| P::cast_from(at as u64));
        });
    });
}

/// Finds where to split each row, and passes it on with the position of its first element.
fn partition_rows<T: Bits>(
    x: View<'_>,
    kth: usize,
    [keys, tmp]: [&mut ViewMut<'_>; 2],
    par: Par,
    apply: &(dyn Fn(usize, &[T], &Split<T>, Par) + Sync),
) {
    let rows = Rows::of(x.ty());
    if x.ty().size() == 0 {
        return;
    }
    let code = Code::<T>::new(x.ty().dtype, Direction::Asc);
    let x: &[T] = x.slice();
    let (keys, tmp) = (SendPtr::of(keys.slice::<T>()), SendPtr::of(tmp.slice::<T>()));
    let row = |index: usize, scratch: usize, par: Par| {
        let start = index * rows.len;
        let row = &x[start..start + rows.len];
        // SAFETY: the caller keeps the parts of threads disjoint.
        let (keys, tmp) = unsafe { (keys.part(scratch, rows.len), tmp.part(scratch, rows.len)) };
        let split = Split::find(code, row, kth, [keys, tmp], par);
        apply(start, row, &split, par);
    };
    if rows.len >= MIN_SHARED_ROW && rows.count < 16 {
        (0..rows.count).for_each(|index| row(index, 0, par));
        return;
    }
    par.for_chunks(rows.count, (SHORT_ROWS_CHUNK / rows.len).max(1), |chunk| {
        // All rows of a chunk use one row of the buffers, so it stays in the caches.
        let scratch = chunk.start * rows.len;
        chunk.for_each(|index| row(index, scratch, Par::Serial));
    });
}

/// Where a row is split.
struct Split<T> {
    code: Code<T>,
    /// The position of a sort.
    kth: usize,
    /// The element there: its key and its position in the row. Equal elements are on its sides as they are in the row.
    key: T,
    at: usize,
    /// The length of the pieces of the row, and the elements of each that come before the one at the position.
    piece: usize,
    lows: [usize; MAX_PIECES],
}

impl<T: Bits> Split<T> {
    fn find(
        code: Code<T>,
        x: &[T],
        kth: usize,
        [keys, tmp]: [&mut [MaybeUninit<T>]; 2],
        par: Par,
    ) -> Split<T> {
        let piece = MIN_PIECE.max(x.len().div_ceil(MAX_PIECES));
        let key = match near(code, x, kth, keys, piece, par) {
            Some((keys, kth)) => {
                let len = keys.len();
                select(keys, &mut tmp[..len], kth)
            }
            None => {
                let shared = SendPtr::of(keys);
                par.for_chunks(x.len(), piece, |chunk| {
                    // SAFETY: chunks are disjoint and inside.
                    let keys = unsafe { shared.part(chunk.start, chunk.len()) };
                    encode(code, &x[chunk], keys);
                });
                // SAFETY: `encode` wrote all of them.
                select(unsafe { keys.assume_init_mut() }, tmp, kth)
            }
        };

        let [lows, ties] = [(); 2].map(|()| [const { AtomicUsize::new(0) }; MAX_PIECES]);
        par.for_chunks(x.len(), piece, |chunk| {
            let index = chunk.start / piece;
            let (low, tie) = count(code, &x[chunk], key);
            lows[index].store(low, Ordering::Relaxed);
            ties[index].store(tie, Ordering::Relaxed);
        });
        let [mut lows, ties] = [lows, ties].map(|counts| counts.map(AtomicUsize::into_inner));
        // The elements with the key come before the one at the position until there are as many as are missing.
        let missing = kth.checked_sub(lows.iter().sum());
        let found = missing.and_then(|missing| place(code, x, key, piece, missing, &mut lows, ties));
        let at = found.unwrap_or_else(|| {
            // Another thread has written elements during the call. Any position will do.
            for (index, low) in lows.iter_mut().enumerate() {
                *low = kth.saturating_sub(index * piece).min(piece);
            }
            kth
        });
        Split { code, kth, key, at, piece, lows }
    }

    /// Writes an item for each element, which `item` makes of its position.
    fn apply<I: Plain + Default>(
        &self,
        x: &[T],
        out: &SendPtr<I>,
        par: Par,
        item: impl Fn(usize) -> I + Sync,
    ) {
        par.for_chunks(x.len(), self.piece, |chunk| {
            let index = chunk.start / self.piece;
            let mut low = self.lows[..index].iter().sum::<usize>();
            // What is not on the left side of the pieces before is on the right one, but for the element in the middle.
            let mut high = self.kth + 1 + chunk.start - low - usize::from(self.at < chunk.start);
            let count = chunk.len() - self.lows[index] - usize::from(chunk.contains(&self.at));
            let ends = [low + self.lows[index], high + count];
            let mut start = chunk.start;
            while start < chunk.end {
                let is_middle = start == self.at;
                let end = match start.cmp(&self.at) {
                    _ if is_middle => start + 1,
                    std::cmp::Ordering::Less => chunk.end.min(start + TILE).min(self.at),
                    std::cmp::Ordering::Equal | std::cmp::Ordering::Greater => chunk.end.min(start + TILE),
                };
                if is_middle {
                    // SAFETY: no side has this position, which is inside.
                    unsafe { out.at(self.kth).write(item(start)) };
                } else {
                    let mut sides = [[I::default(); TILE]; 2];
                    let mut is_low = [false; TILE];
                    lower(self.code, &x[start..end], self.key, start < self.at, &mut is_low);
                    let mut count = 0;
                    for (place, &is_low) in is_low[..end - start].iter().enumerate() {
                        let item = item(start + place);
                        sides[0][count % TILE] = item;
                        sides[1][(place - count) % TILE] = item;
                        count += usize::from(is_low);
                    }
                    // Another thread may write the elements during the call. What has no room then is dropped, and what is
                    // missing is filled.
                    let lows = count.min(ends[0] - low);
                    let highs = (end - start - count).min(ends[1] - high);
                    // SAFETY: the sides of the pieces are disjoint, and inside.
                    unsafe {
                        out.part(low, lows).write_copy_of_slice(&sides[0][..lows]);
                        out.part(high, highs).write_copy_of_slice(&sides[1][..highs]);
                    }
                    (low, high) = (low + lows, high + highs);
                }
                start = end;
            }
            // SAFETY: as above.
            unsafe {
                out.part(low, ends[0] - low).fill(MaybeUninit::new(I::default()));
                out.part(high, ends[1] - high).fill(MaybeUninit::new(I::default()));
            }
        });
    }
}

/// The position of an element with a key, `missing` of which come before it. `lows` are the lower elements of each piece
/// and get those that come before it, `ties` are the elements with the key.
fn place<T: Bits>(
    code: Code<T>,
    x: &[T],
    key: T,
    piece: usize,
    mut missing: usize,
    lows: &mut [usize; MAX_PIECES],
    ties: [usize; MAX_PIECES],
) -> Option<usize> {
    for (index, (low, tie)) in lows.iter_mut().zip(ties).enumerate() {
        if missing < tie {
            *low += missing;
            let start = index * piece;
            let own = &x[start..x.len().min(start + piece)];
            let mut equal = own.iter().enumerate().filter(|&(_, &bits)| code.key(bits) == key);
            return Some(start + equal.nth(missing).map_or(0, |(at, _)| at));
        }
        *low += tie;
        missing -= tie;
    }
    None
}

/// Keys among which the one at the position is, and its position among them: those between two sampled keys, about a
/// ninth of all. None if that does not pay, or if the sample was misleading.
fn near<'a, T: Bits>(
    code: Code<T>,
    x: &[T],
    kth: usize,
    keys: &'a mut [MaybeUninit<T>],
    piece: usize,
    par: Par,
) -> Option<(&'a mut [T], usize)> {
    if T::WIDTH <= 16 || x.len() <= MIN_SPLIT {
        return None;
    }
    let (sample, rank) = sample(kth, x.len(), |at| code.key(x[at]));
    let least = rank.checked_sub(MARGIN).map_or(T::default(), |at| sample[at]);
    let greatest = sample.get(rank + MARGIN).copied().unwrap_or(T::truncate(u64::MAX));

    let [lows, counts] = [(); 2].map(|()| [const { AtomicUsize::new(0) }; MAX_PIECES]);
    let shared = SendPtr::of(keys);
    par.for_chunks(x.len(), piece, |chunk| {
        let index = chunk.start / piece;
        // SAFETY: chunks are disjoint and inside.
        let keys = unsafe { shared.part(chunk.start, chunk.len()) };
        let (low, count) = between(code, &x[chunk], [least, greatest], keys);
        lows[index].store(low, Ordering::Relaxed);
        counts[index].store(count, Ordering::Relaxed);
    });
    let low: usize = lows.into_iter().map(AtomicUsize::into_inner).sum();
    let mut count = 0;
    for (index, own) in counts.into_iter().map(AtomicUsize::into_inner).enumerate() {
        if own != 0 {
            keys.copy_within(index * piece..index * piece + own, count);
            count += own;
        }
    }
    let kth = kth.checked_sub(low).filter(|&kth| kth < count)?;
    // SAFETY: `between` wrote them.
    Some((unsafe { keys[..count].assume_init_mut() }, kth))
}

/// Sorted keys from all parts of a row, and the rank among them of the one at a position.
fn sample<T: Bits>(kth: usize, len: usize, key: impl Fn(usize) -> T) -> ([T; SAMPLE], usize) {
    let mut sample = [T::default(); SAMPLE];
    for (index, sampled) in sample.iter_mut().enumerate() {
        *sampled = key(index * (len / SAMPLE));
    }
    sample.sort_unstable();
    (sample, (kth as u128 * SAMPLE as u128 / len as u128) as usize)
}

/// Writes the keys that are not outside of the ends. Returns how many are below them, and how many it wrote.
fn between<T: Bits>(code: Code<T>, x: &[T], ends: [T; 2], out: &mut [MaybeUninit<T>]) -> (usize, usize) {
    let (mut low, mut count) = (0, 0);
    for x in x.chunks(TILE) {
        let (mut keys, mut is_inside) = ([T::default(); TILE], [false; TILE]);
        low += inside(code, x, ends, &mut keys, &mut is_inside) as usize;
        let mut found = 0;
        for at in 0..x.len() {
            keys[found % TILE] = keys[at];
            found += usize::from(is_inside[at]);
        }
        out[count..count + found].write_copy_of_slice(&keys[..found]);
        count += found;
    }
    (low, count)
}

/// The key at a position of the sorted keys. Both buffers are scratch.
fn select<T: Bits>(keys: &mut [T], tmp: &mut [MaybeUninit<T>], mut kth: usize) -> T {
    if const { T::WIDTH <= 16 } && keys.len() > MIN_SPLIT {
        return select_by_digits(keys, kth);
    }
    let Some(functions) = T::functions() else { return *keys.select_nth_unstable(kth).1 };
    // SAFETY: `Plain` elements have no invalid bits, and what is read of this buffer was written by a split.
    let tmp = unsafe { std::slice::from_raw_parts_mut(tmp.as_mut_ptr().cast::<T>(), tmp.len()) };
    let (mut here, mut there) = (keys, tmp);
    for _ in 0..MAX_SPLITS {
        let len = here.len();
        if len <= MIN_SPLIT {
            break;
        }
        // The pivot leaves most keys on the side that is dropped.
        let (sample, rank) = sample(kth, len, |at| here[at]);
        let drops_low = kth >= len / 2;
        let place = if drops_low { rank.saturating_sub(MARGIN) } else { (rank + MARGIN).min(SAMPLE - 1) };
        let mut pivot = sample[place];
        let mut low = functions.split(here, there, pivot);
        if low == len {
            // No key is above the pivot: those equal to it are split off.
            if pivot == T::default() {
                return pivot;
            }
            let greatest = pivot;
            pivot = T::truncate(pivot.wide() - 1);
            low = functions.split(here, there, pivot);
            if kth >= low {
                return greatest;
            }
        }
        let (left, right) = there[..len].split_at_mut(low);
        let (kept, dropped) = if kth < low { (left, 0) } else { (right, low) };
        kth -= dropped;
        let spare = &mut here[..kept.len()];
        (here, there) = (kept, spare);
    }
    *here.select_nth_unstable(kth).1
}

/// The key at a position of the sorted keys of few bits, a byte after the other, the upper one first.
fn select_by_digits<T: Bits>(keys: &[T], mut kth: usize) -> T {
    let mut found = 0;
    for shift in (0..T::WIDTH).step_by(8).rev() {
        let mut counts = [0usize; 256];
        for key in keys {
            let key = key.wide();
            if key >> shift >> 8 == found {
                counts[(key >> shift) as usize % 256] += 1;
            }
        }
        let mut digit = 0;
        while digit < 255 && kth >= counts[digit] {
            kth -= counts[digit];
            digit += 1;
        }
        found = found << 8 | digit as u64;
    }
    T::truncate(found)
}

vectorized! {
    /// The number of elements with lower keys, and with this key.
    fn count[T: Bits] of [T] (code: Code<T>, x: &[T], key: T) -> (usize, usize) {
        let (mut low, mut tie) = (0, 0);
        // Numbers of 32 bits are added in the lanes of the keys.
        for part in x.chunks(1 << 20) {
            let (mut lows, mut ties) = (0_u32, 0_u32);
            for &bits in part {
                let own = code.key(bits);
                lows += u32::from(own < key);
                ties += u32::from(own == key);
            }
            (low, tie) = (low + lows as usize, tie + ties as usize);
        }
        (low, tie)
    }
}

vectorized! {
    /// Writes keys, and which of them are not outside of the ends. Returns how many are below.
    fn inside[T: Bits] of [T] (
        code: Code<T>,
        x: &[T],
        ends: [T; 2],
        keys: &mut [T; TILE],
        is_inside: &mut [bool; TILE],
    ) -> u32 {
        let mut low = 0;
        for ((key, is_inside), &bits) in keys.iter_mut().zip(is_inside).zip(x) {
            *key = code.key(bits);
            *is_inside = (*key >= ends[0]) & (*key <= ends[1]);
            low += u32::from(*key < ends[0]);
        }
        low
    }
}

vectorized! {
    /// Whether elements have lower keys, or this key if it counts.
    fn lower[T: Bits] of [T] (code: Code<T>, x: &[T], key: T, counts: bool, out: &mut [bool; TILE]) {
        for (out, &bits) in out.iter_mut().zip(x) {
            let own = code.key(bits);
            *out = own < key || counts & (own == key);
        }
    }
}
