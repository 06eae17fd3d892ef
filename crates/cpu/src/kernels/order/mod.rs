//! Sorting along rows: the last axis of an operand.
//!
//! Elements are compared as unsigned [`keys`] of their width. In this order NaN is above every number and -0.0 equals
//! 0.0. Keys of 32 and 64 bits are sorted by vector instructions ([`quicksort`]) where the processor has them.
//! Elsewhere short rows are sorted by comparisons, and long rows by radix sort ([`radix`]), or by merge sort
//! ([`merge`]) if that would take many passes. The vector argsort of long rows first makes one radix pass
//! ([`buckets`]). Equal elements keep their order.

/// Runs the body with `$T` bound to the unsigned integer of the elements' width, for a dtype that has an order.
macro_rules! with_bits {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype.storage_bytes() {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            _ => {
                type $T = u64;
                $body
            }
        }
    };
}

mod buckets;
mod keys;
mod member;
mod merge;
mod network;
mod partition;
mod quicksort;
mod radix;
mod select;
#[cfg(test)]
mod tests;
mod vector;

pub(crate) use member::{isin, table_scratch};
pub(crate) use partition::{argpartition, keys_scratch, partition};
pub(crate) use select::{candidates_scratch, first_of, selection_is_faster, top_k};

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use defn_core::op::Direction;
use defn_core::{DType, Shape, TensorType};

use super::{CastFrom, fill_tiles, with_compute};
use crate::par::Par;
use crate::view::{View, ViewMut};
use buckets::Sorts;
use keys::{Bits, Code, bits_of, decode, encode, loses};
use quicksort::{Key, Read};
use radix::{Counts, Pair, Plan};

/// Rows from this length on are shared among threads if there are few of them.
const MIN_SHARED_ROW: usize = 1 << 16;

/// Elements that one thread sorts at a time if rows are short.
const SHORT_ROWS_CHUNK: usize = 1 << 13;

/// The rows of an operand.
#[derive(Clone, Copy, Debug)]
struct Rows {
    count: usize,
    len: usize,
}

impl Rows {
    fn of(ty: &TensorType) -> Rows {
        let len = ty.shape.sizes().last().copied().unwrap_or(1);
        Rows { count: ty.size().checked_div(len).unwrap_or(0), len }
    }

    /// Whether threads share each row, one row after the other, instead of sharing the set of rows.
    fn is_long(self) -> bool {
        self.len >= MIN_SHARED_ROW && self.count < 16
    }
}

/// The counters of [`sort`] and [`argsort`].
pub(crate) fn counts_scratch(x: &TensorType) -> TensorType {
    let rows = Rows::of(x);
    let most = radix::counters(rows.len).max(buckets::counters(rows.len));
    let count = if rows.is_long() { most } else { 0 };
    TensorType { dtype: DType::U64, shape: Shape::new(&[count]) }
}

/// The buffer that [`argsort`] sorts, needed twice: a key and a position for each element.
pub(crate) fn pairs_scratch(x: &TensorType) -> TensorType {
    let narrow = is_narrow(x);
    TensorType { dtype: if narrow { DType::U64 } else { DType::C128 }, shape: Shape::new(&[x.size()]) }
}

/// Whether a key and a position together fit into 64 bits.
fn is_narrow(x: &TensorType) -> bool {
    x.dtype.storage_bytes() <= 4 && u32::try_from(Rows::of(x).len).is_ok()
}

/// Sorts the rows of `x`. `tmp` has the size of `out`.
pub(crate) fn sort(
    x: View<'_>,
    direction: Direction,
    out: &mut ViewMut<'_>,
    tmp: &mut ViewMut<'_>,
    counts: &mut ViewMut<'_>,
    par: Par,
) {
    let rows = Rows::of(x.ty());
    if rows.count == 0 {
        return;
    }
    with_bits!(x.ty().dtype, T => {
        let code = Code::<T>::new(x.ty().dtype, direction);
        let x: &[T] = x.slice();
        if rows.is_long() {
            for row in 0..rows.count {
                let range = row * rows.len..(row + 1) * rows.len;
                let (out, tmp) = (&mut out.slice()[range.clone()], &mut tmp.slice()[range.clone()]);
                sort_row(code, &x[range], out, tmp, &mut Counts::Shared(counts.slice()), par);
            }
            return;
        }
        let (out, tmp) = (&*out, &*tmp);
        par.for_chunks(rows.count, (SHORT_ROWS_CHUNK / rows.len).max(1), |chunk| {
            let mut counts = Counts::own();
            // All rows of a chunk use one row of `tmp`, so it stays in the caches. SAFETY: each row belongs to one
            // chunk, and the view is mutably borrowed during the call.
            let tmp = unsafe { tmp.part(chunk.start * rows.len, rows.len) };
            for row in chunk {
                let start = row * rows.len;
                // SAFETY: as above.
                let out = unsafe { out.part(start, rows.len) };
                let row = &x[start..start + rows.len];
                sort_row(code, row, out, tmp, &mut counts, Par::Serial);
            }
        });
    });
}

fn sort_row<T: Bits>(
    code: Code<T>,
    x: &[T],
    out: &mut [MaybeUninit<T>],
    tmp: &mut [MaybeUninit<T>],
    counts: &mut Counts<'_>,
    par: Par,
) {
    let is_shared = match counts {
        Counts::Own(_) => false,
        Counts::Shared(_) => true,
    };
    let loses = if const { T::WIDTH == 8 } && x.len() > 64 {
        count_bytes(code, x, out);
        loses(code, x)
    } else if const { T::WIDTH <= 16 } && x.len() <= radix::MAX_COMPARISON_SORT {
        sort_widened(code, x, out);
        loses(code, x)
    } else if const { T::HAS_FUNCTIONS }
        && let Some(functions) = T::functions()
    {
        if is_shared {
            let lost = AtomicBool::new(false);
            let read = |start: usize, keys: &mut [MaybeUninit<T>]| {
                if encode(code, &x[start..start + keys.len()], keys) {
                    lost.store(true, Ordering::Relaxed);
                }
            };
            functions.sort_shared(par, &read, &|keys| decode(code, keys), out, tmp);
            lost.into_inner()
        } else {
            let lost = encode(code, x, out);
            // SAFETY: `encode` wrote all of them.
            let keys = unsafe { out.assume_init_mut() };
            functions.sort(keys, tmp);
            decode(code, keys);
            lost
        }
    } else if const { T::WIDTH > 16 } && x.len() <= radix::MAX_COMPARISON_SORT {
        let lost = encode(code, x, out);
        // SAFETY: `encode` wrote all of them.
        let keys = unsafe { out.assume_init_mut() };
        keys.sort_unstable();
        decode(code, keys);
        lost
    } else if const { T::WIDTH > 8 } {
        let plan = Plan::new(x.len(), 0, T::WIDTH, par, &|range| bits_of(code, &x[range]));
        let read = |start: usize, keys: &mut [MaybeUninit<T>]| {
            encode(code, &x[start..start + keys.len()], keys);
        };
        plan.run(counts, par, &read, &|keys| decode(code, keys), out, tmp);
        loses(code, x)
    } else {
        unreachable!("bytes are counted")
    };
    if loses {
        // SAFETY: every branch above writes every element.
        restore(code, x, unsafe { out.assume_init_mut() });
    }
}

/// Sorts few keys of at most 16 bits as keys of 32 bits.
fn sort_widened<T: Bits>(code: Code<T>, x: &[T], out: &mut [MaybeUninit<T>]) {
    let (mut keys, mut tmp) =
        ([0; radix::MAX_COMPARISON_SORT], [MaybeUninit::uninit(); radix::MAX_COMPARISON_SORT]);
    let keys = &mut keys[..x.len()];
    for (key, &bits) in keys.iter_mut().zip(x) {
        *key = code.key(bits).wide() as u32;
    }
    match u32::functions() {
        Some(functions) => functions.sort(keys, &mut tmp[..x.len()]),
        None => keys.sort_unstable(),
    }
    for (out, &key) in out.iter_mut().zip(&*keys) {
        out.write(code.bits(T::truncate(u64::from(key))));
    }
}

/// Counting sort of bytes.
fn count_bytes<T: Bits>(code: Code<T>, x: &[T], out: &mut [MaybeUninit<T>]) {
    let mut counts = [0usize; 256];
    for &bits in x {
        counts[code.key(bits).wide() as usize] += 1;
    }
    let mut rest = out;
    for (key, &count) in counts.iter().enumerate() {
        let (now, later) = rest.split_at_mut(count);
        let bits = code.bits(T::truncate(key as u64));
        now.iter_mut().for_each(|out| {
            out.write(bits);
        });
        rest = later;
    }
}

/// Restores the elements whose keys do not distinguish them, in their original order: zeros of both signs, and NaNs. If
/// another thread writes `x` during the call, `x` may have more of them than were sorted; the excess is dropped.
fn restore<T: Bits>(code: Code<T>, x: &[T], out: &mut [T]) {
    let (zero, nan) = (code.key(T::truncate(0)), code.nan());
    let mut zeros = out.partition_point(|&bits| code.key(bits) < zero);
    let mut nans = out.partition_point(|&bits| code.key(bits) < nan);
    for &bits in x {
        let key = code.key(bits);
        let next = match key {
            _ if key == zero => &mut zeros,
            _ if key == nan => &mut nans,
            _ => continue,
        };
        if let Some(out) = out.get_mut(*next) {
            *out = bits;
        }
        *next += 1;
    }
}

/// Writes the positions that sort the rows. `pairs` are two buffers of [`pairs_scratch`].
pub(crate) fn argsort(
    x: View<'_>,
    direction: Direction,
    out: &mut ViewMut<'_>,
    pairs: [&mut ViewMut<'_>; 2],
    counts: &mut ViewMut<'_>,
    par: Par,
) {
    let (ty, rows) = (x.ty(), Rows::of(x.ty()));
    if rows.count == 0 {
        return;
    }
    let [pairs, tmp] = pairs;
    let sorts = Sorts::find().filter(|_| is_narrow(ty) && rows.is_long());
    let (to, bits) = (out.ty().dtype, ty.dtype.storage_bytes() as u32 * 8);
    with_bits!(ty.dtype, T => {
        let code = Code::<T>::new(ty.dtype, direction);
        let x: &[T] = x.slice();
        if const { T::WIDTH <= 32 }
            && let Some(sorts) = sorts
            && [DType::S32, DType::S64].contains(&to)
        {
            let read = |range: Range<usize>, keys: &mut [MaybeUninit<u32>]| buckets::read(code, &x[range], keys);
            let pairs = [pairs.slice(), tmp.slice()];
            if to == DType::S32 {
                sorts.argsort(&read, rows.len, out.slice::<i32>(), pairs, counts.slice(), par);
            } else {
                sorts.argsort(&read, rows.len, out.slice::<i64>(), pairs, counts.slice(), par);
            }
            return;
        }
        let bits_of = |range: Range<usize>| bits_of(code, &x[range]);
        if const { T::WIDTH <= 32 } && is_narrow(ty) {
            let read = |start: usize, pairs: &mut [MaybeUninit<u64>]| write_pairs(code, x, rows.len, start, pairs);
            argsort_rows::<u64>(rows, &read, &bits_of, (32, bits), [&mut *pairs, tmp], counts, par);
        } else {
            let read =
                |start: usize, pairs: &mut [MaybeUninit<[u64; 2]>]| write_pairs(code, x, rows.len, start, pairs);
            argsort_rows::<[u64; 2]>(rows, &read, &bits_of, (0, bits), [&mut *pairs, tmp], counts, par);
        }
    });
    // SAFETY: the rows cover all pairs, and each row was sorted.
    unsafe {
        if is_narrow(ty) {
            write_positions::<1>(pairs.slice::<u64>().assume_init_ref(), out, par);
        } else {
            write_positions::<2>(pairs.slice::<[u64; 2]>().assume_init_ref().as_flattened(), out, par);
        }
    }
}

/// Writes pairs of keys and positions for the elements from `start` on, which are in one row.
fn write_pairs<T: Bits, P: Pair>(
    code: Code<T>,
    x: &[T],
    row_len: usize,
    start: usize,
    pairs: &mut [MaybeUninit<P>],
) {
    for (at, (pair, &bits)) in pairs.iter_mut().zip(&x[start..]).enumerate() {
        pair.write(P::of(code.key(bits).wide(), start % row_len + at));
    }
}

/// Sorts pairs, row by row. `read` writes those of the elements from one on, and `bits_of` returns what
/// [`Plan::new`] needs for a range of elements, whose keys are the bits in `key`: the lowest one, and their number.
fn argsort_rows<P: Pair>(
    rows: Rows,
    read: &Read<'_, P>,
    bits_of: &(dyn Fn(Range<usize>) -> (u64, u64) + Sync),
    key: (u32, u32),
    [pairs, tmp]: [&mut ViewMut<'_>; 2],
    counts: &mut ViewMut<'_>,
    par: Par,
) {
    let sort_row = |start: usize,
                    pairs: &mut [MaybeUninit<P>],
                    tmp: &mut [MaybeUninit<P>],
                    counts: &mut Counts<'_>,
                    par: Par| {
        let read = |first: usize, pairs: &mut [MaybeUninit<P>]| read(start + first, pairs);
        // Positions make all pairs different, so every sort is stable.
        if const { P::HAS_FUNCTIONS }
            && let Some(functions) = P::functions()
        {
            match counts {
                Counts::Shared(_) => functions.sort_shared(par, &read, &|_| {}, pairs, tmp),
                Counts::Own(_) => {
                    read(0, pairs);
                    // SAFETY: `read` wrote all of them.
                    functions.sort(unsafe { pairs.assume_init_mut() }, tmp);
                }
            }
        } else if pairs.len() <= radix::MAX_COMPARISON_SORT {
            read(0, pairs);
            // SAFETY: as above.
            unsafe { pairs.assume_init_mut() }.sort_unstable();
        } else {
            let bits_of = |range: Range<usize>| bits_of(start + range.start..start + range.end);
            let plan = Plan::new(pairs.len(), key.0, key.1, par, &bits_of);
            plan.run(counts, par, &read, &|_| {}, pairs, tmp);
        }
    };
    if rows.is_long() {
        for row in 0..rows.count {
            let range = row * rows.len..(row + 1) * rows.len;
            let (pairs, tmp) = (&mut pairs.slice()[range.clone()], &mut tmp.slice()[range.clone()]);
            sort_row(range.start, pairs, tmp, &mut Counts::Shared(counts.slice()), par);
        }
        return;
    }
    let (pairs, tmp) = (&*pairs, &*tmp);
    par.for_chunks(rows.count, (SHORT_ROWS_CHUNK / rows.len).max(1), |chunk| {
        let mut counts = Counts::own();
        // SAFETY: each row belongs to one chunk, and the view is mutably borrowed during the call.
        let tmp = unsafe { tmp.part(chunk.start * rows.len, rows.len) };
        for row in chunk {
            let start = row * rows.len;
            // SAFETY: as above.
            let pairs = unsafe { pairs.part(start, rows.len) };
            sort_row(start, pairs, tmp, &mut counts, Par::Serial);
        }
    });
}

/// Writes the positions of sorted pairs in the result's dtype, with wrap-around. A pair is one number, whose low half is
/// the position, or two, of which the position is the last one.
fn write_positions<const NUMBERS: usize>(pairs: &[u64], out: &mut ViewMut<'_>, par: Par) {
    let mask = if NUMBERS == 1 { u64::from(u32::MAX) } else { u64::MAX };
    let pairs = pairs.as_chunks::<NUMBERS>().0;
    with_compute!(out.ty().dtype, C => fill_tiles::<C>(out, par, SHORT_ROWS_CHUNK, |start, tile| {
        for (out, pair) in tile.iter_mut().zip(&pairs[start..]) {
            out.write(C::cast_from(pair[NUMBERS - 1] & mask));
        }
    }));
}
