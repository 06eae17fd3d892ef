//! Writes at positions.
//!
//! The offsets of positions are computed for a block of them at a time, by code that does not depend on the elements;
//! the code that writes does not depend on the dtype of positions.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::{INDEX_CHUNK, IndexedBlocks, each, from_front};
use crate::kernels::simd::vectorized;
use crate::kernels::{Element, Integer, Plain, SendPtr, with_position, with_unsigned, with_width};
use crate::par::{Par, poll_within_chunk};
use crate::view::{View, ViewMut};

/// Writes of at least this number of elements are shared by threads.
const SHARED: usize = 1 << 16;

/// Single elements of a result of at most this number of bytes are written by one thread: to choose those of a thread's
/// part takes each thread as long as to write all of them to the caches.
const MAX_SERIAL_BYTES: usize = 1 << 25;

/// Lines of a larger result are prefetched.
const MIN_PREFETCHED_BYTES: usize = 1 << 19;

/// Positions that are computed before the first of them is written.
const PENDING_WRITES: usize = 64;

/// Positions that are looked at together, whether they are sorted.
const SORTED: usize = 16 * PENDING_WRITES;

/// Parts of sorted positions that take turns: as many additions are under way at a time.
const PARTS: usize = 4;

/// Bytes of a cache line.
const LINE: usize = 64;

/// The offset of a position that is out of range.
const OUT_OF_RANGE: usize = usize::MAX;

/// Writes the offsets of consecutive positions, no more than there is room for, or [`OUT_OF_RANGE`].
type Offsets<'a> = dyn Fn(Range<usize>, &mut [usize; PENDING_WRITES]) + Sync + 'a;

impl IndexedBlocks {
    /// Writes the updates, `[positions][block]`, over existing elements, in the order of the positions.
    pub(crate) fn put(&self, indices: View<'_>, updates: View<'_>, out: &mut ViewMut<'_>, par: Par) {
        self.with_offsets(indices, |offsets| {
            with_width!(out.ty().dtype, T => {
                self.scatter::<T>(offsets, updates.slice(), out.slice(), par, |out, update| {
                    out.write_copy_of_slice(update);
                });
            });
        });
    }

    /// Adds the updates, `[positions][block]`, to existing elements, in the order of the positions. All have a dtype in
    /// which kernels compute.
    pub(crate) fn add(&self, indices: View<'_>, updates: View<'_>, out: &mut ViewMut<'_>, par: Par) {
        self.with_offsets(indices, |offsets| {
            with_unsigned!(out.ty().dtype, C => {
                if self.block == 1 && out.ty().byte_size() <= MAX_SERIAL_BYTES {
                    return add_each::<C>(offsets, updates.slice(), out.slice());
                }
                self.scatter::<C>(offsets, updates.slice(), out.slice(), par, |out, update| {
                    for (out, &update) in out.iter_mut().zip(update) {
                        // SAFETY: the caller guarantees initialised elements.
                        let before = unsafe { out.assume_init_read() };
                        out.write(before.plus(update));
                    }
                });
            });
        });
    }

    /// Who should write what is there before to a result of so many elements and bytes: one thread, if one thread writes
    /// the updates and these are many. It would wait for lines from the caches of the others.
    pub(crate) fn par_before(&self, updates: usize, elements: usize, bytes: usize, par: Par) -> Par {
        let is_serial = self.block == 1 && bytes <= MAX_SERIAL_BYTES;
        if is_serial && updates >= elements / 4 { Par::Serial } else { par }
    }

    /// Calls `work` with what computes the offsets of the positions.
    fn with_offsets(&self, indices: View<'_>, mut work: impl FnMut(&Offsets<'_>)) {
        with_position!(indices.ty().dtype, I => {
            let indices: &[I] = indices.slice();
            match self.entries[..] {
                [one] => work(&offsets_of(indices, [one])),
                [one, two] => work(&offsets_of(indices, [one, two])),
                [one, two, three] => work(&offsets_of(indices, [one, two, three])),
                _ => {
                    let width = self.entries.len();
                    work(&move |rows, offsets| {
                        for (offset, at) in offsets.iter_mut().zip(rows) {
                            *offset = offset_of(&indices[at * width..][..width], &self.entries);
                        }
                    });
                }
            }
        });
    }

    /// Whether every position begins at a multiple of the run.
    fn lies_in_rows(&self) -> bool {
        self.entries.iter().all(|&(_, stride)| stride % self.run == 0)
    }

    fn scatter<T: Plain>(
        &self,
        offsets: &Offsets<'_>,
        updates: &[T],
        out: &mut [MaybeUninit<T>],
        par: Par,
        write: impl Fn(&mut [MaybeUninit<T>], &[T]) + Sync,
    ) {
        if self.block == 0 || updates.is_empty() {
            return;
        }
        if self.block == 1 {
            return scatter_each(offsets, updates, out, par, write);
        }
        let rows = updates.len() / self.block;
        let target = SendPtr::of(out);
        let len = out.len();
        // Positions may repeat, so that threads divide the result and not the positions: into contiguous rows, or into
        // columns if rows are long.
        if self.dims.is_empty() && self.run <= INDEX_CHUNK && self.lies_in_rows() {
            by_parts(len / self.run, updates.len(), par, |mine| {
                let mut pending = PendingWrites::new();
                in_blocks(offsets, rows, |from, starts| {
                    pending.clear();
                    for (at, &start) in (from..).zip(starts) {
                        pending.push(at, start, mine.contains(&(start / self.run)));
                    }
                    for &(_, start) in pending.all() {
                        (start..start + self.run).step_by((LINE / size_of::<T>()).max(1)).for_each(|at| {
                            // SAFETY: the first position is inside the result, or at its end.
                            prefetch(unsafe { target.at(0) }.wrapping_add(at));
                        });
                    }
                    for &(at, start) in pending.all() {
                        assert!(start + self.run <= len, "a run inside the result");
                        // SAFETY: it is in bounds; each thread has its rows, and runs begin at multiples of their
                        // length.
                        let out = unsafe { target.part(start, self.run) };
                        write(out, &updates[at * self.run..][..self.run]);
                    }
                });
            });
            return;
        }
        let in_range = |starts: &[usize], work: &mut dyn FnMut(usize, usize)| {
            let all = starts.iter().enumerate();
            all.filter(|(_, start)| **start != OUT_OF_RANGE).for_each(|(at, &start)| work(at, start));
        };
        if !self.dims.is_empty() || self.run <= INDEX_CHUNK || rows * self.run < 4 * INDEX_CHUNK {
            in_blocks(offsets, rows, |from, starts| {
                in_range(starts, &mut |at, start| {
                    let update = &updates[(from + at) * self.block..][..self.block];
                    each(&self.dims, start, 0, &mut |whole, part| {
                        write(&mut out[whole..whole + self.run], &update[part..part + self.run]);
                    });
                });
            });
            return;
        }
        par.for_chunks(self.run, INDEX_CHUNK, |columns| {
            in_blocks(offsets, rows, |from, starts| {
                in_range(starts, &mut |at, start| {
                    let first = start + columns.start;
                    assert!(first + columns.len() <= len, "a run inside the result");
                    // SAFETY: it is in bounds; each thread has its columns of every position, and positions are
                    // multiples of the run.
                    let out = unsafe { target.part(first, columns.len()) };
                    write(out, &updates[(from + at) * self.run..][columns.clone()]);
                });
            });
        });
    }
}

/// What computes the offsets of rows of indices, along axes of these sizes and strides.
fn offsets_of<I: Integer, const N: usize>(
    indices: &[I],
    axes: [(usize, usize); N],
) -> impl Fn(Range<usize>, &mut [usize; PENDING_WRITES]) + Sync {
    move |rows, offsets| write_offsets(&indices.as_chunks::<N>().0[rows], axes, offsets)
}

vectorized! {
    /// Writes the offsets of rows of indices.
    fn write_offsets[I: Integer, const N: usize] of [I, N] (
        rows: &[[I; N]],
        axes: [(usize, usize); N],
        offsets: &mut [usize; PENDING_WRITES],
    ) {
        for (offset, row) in offsets.iter_mut().zip(rows) {
            *offset = offset_of(row, &axes);
        }
    }
}

/// The offset of a row of indices, computed without a branch, which would be unpredictable.
#[inline(always)]
fn offset_of<I: Integer>(row: &[I], axes: &[(usize, usize)]) -> usize {
    let (mut start, mut is_inside) = (0usize, true);
    for (&index, (size, stride)) in row.iter().zip(axes) {
        let bits = from_front(index, *size as u64);
        is_inside &= bits < *size as u64;
        start = (bits as usize).wrapping_mul(*stride).wrapping_add(start);
    }
    if is_inside { start } else { OUT_OF_RANGE }
}

/// Calls `work` with the offsets of all positions, a block of them at a time, and the first one's number. It polls from
/// time to time: each thread goes through all positions.
fn in_blocks(offsets: &Offsets<'_>, count: usize, mut work: impl FnMut(usize, &[usize])) {
    let mut starts = [0; PENDING_WRITES];
    for from in (0..count).step_by(PENDING_WRITES) {
        if from.is_multiple_of(1 << 12) {
            poll_within_chunk();
        }
        let len = PENDING_WRITES.min(count - from);
        offsets(from..from + len, &mut starts);
        work(from, &starts[..len]);
    }
}

/// Writes single elements at their offsets.
fn scatter_each<T: Plain>(
    offsets: &Offsets<'_>,
    updates: &[T],
    out: &mut [MaybeUninit<T>],
    par: Par,
    write: impl Fn(&mut [MaybeUninit<T>], &[T]) + Sync,
) {
    if size_of_val(out) <= MAX_SERIAL_BYTES {
        let is_far = size_of_val(out) > MIN_PREFETCHED_BYTES;
        in_blocks(offsets, updates.len(), |from, starts| {
            if is_far {
                starts.iter().for_each(|&start| prefetch(out.as_ptr().wrapping_add(start)));
            }
            for (&start, update) in starts.iter().zip(&updates[from..from + starts.len()]) {
                if let Some(out) = out.get_mut(start) {
                    write(std::slice::from_mut(out), std::slice::from_ref(update));
                }
            }
        });
        return;
    }
    let len = out.len();
    let target = SendPtr::of(out);
    by_parts(len, updates.len(), par, |mine| {
        // SAFETY: each thread writes its own part.
        let out = unsafe { target.part(mine.start, mine.len()) };
        let mut pending = PendingWrites::new();
        in_blocks(offsets, updates.len(), |from, starts| {
            pending.clear();
            for (at, &start) in (from..).zip(starts) {
                let position = start.wrapping_sub(mine.start);
                pending.push(at, position, position < out.len());
            }
            for &(at, position) in pending.all() {
                write(&mut out[position..=position], &updates[at..=at]);
            }
        });
    });
}

/// Adds to single elements at their offsets.
///
/// Where positions repeat, an addition waits for the sum before, which is on its way to memory. So sorted positions are
/// divided into parts that have none in common, and these take turns. Each element gets its updates in their order.
fn add_each<C: Element>(offsets: &Offsets<'_>, updates: &[C], out: &mut [MaybeUninit<C>]) {
    let is_far = size_of_val(out) > MIN_PREFETCHED_BYTES;
    let mut starts = [[0; PENDING_WRITES]; SORTED / PENDING_WRITES];
    for from in (0..updates.len()).step_by(SORTED) {
        if from.is_multiple_of(1 << 12) {
            poll_within_chunk();
        }
        let updates = &updates[from..updates.len().min(from + SORTED)];
        let end = from + updates.len();
        for (at, starts) in (from..end).step_by(PENDING_WRITES).zip(&mut starts) {
            offsets(at..end.min(at + PENDING_WRITES), starts);
        }
        let starts = &starts.as_flattened()[..updates.len()];
        if repeats(starts) < starts.len() / 4 {
            for (starts, updates) in starts.chunks(PENDING_WRITES).zip(updates.chunks(PENDING_WRITES)) {
                if is_far {
                    starts.iter().for_each(|&start| prefetch(out.as_ptr().wrapping_add(start)));
                }
                starts.iter().zip(updates).for_each(|(&start, &update)| add_one(out, start, update));
            }
            continue;
        }
        let mut ends = [0; PARTS + 1];
        for part in 1..=PARTS {
            let mut end = (part * starts.len() / PARTS).max(ends[part - 1]);
            while end > 0 && end < starts.len() && starts[end] == starts[end - 1] {
                end += 1;
            }
            ends[part] = end;
        }
        let parts: [_; PARTS] = std::array::from_fn(|part| {
            let range = ends[part]..ends[part + 1];
            (&starts[range.clone()], &updates[range])
        });
        let shared = parts.iter().map(|(starts, _)| starts.len()).min().unwrap_or(0);
        let together = parts.map(|(starts, updates)| (&starts[..shared], &updates[..shared]));
        for at in 0..shared {
            for (starts, updates) in together {
                add_one(out, starts[at], updates[at]);
            }
        }
        for (starts, updates) in parts {
            let rest = starts[shared..].iter().zip(&updates[shared..]);
            rest.for_each(|(&start, &update)| add_one(out, start, update));
        }
    }
}

/// Adds to an element, unless its position is out of range.
#[inline(always)]
fn add_one<C: Element>(out: &mut [MaybeUninit<C>], start: usize, update: C) {
    if let Some(out) = out.get_mut(start) {
        // SAFETY: the caller of `add` guarantees initialised elements.
        let before = unsafe { out.assume_init_read() };
        out.write(before.plus(update));
    }
}

/// How many positions are those before them, or 0 if the positions are not sorted.
fn repeats(starts: &[usize]) -> usize {
    let Some((_, following)) = starts.split_first() else { return 0 };
    let mut repeats = 0;
    for (starts, following) in starts.chunks(PENDING_WRITES).zip(following.chunks(PENDING_WRITES)) {
        let (descents, equal) = compared(starts, following);
        if descents > 0 {
            return 0;
        }
        repeats += equal;
    }
    repeats
}

vectorized! {
    /// How many positions are above those at the same place of a list, and how many equal to them.
    fn compared[] of [] (starts: &[usize], following: &[usize]) -> (usize, usize) {
        let (mut above, mut equal) = (0, 0);
        for (start, next) in starts.iter().zip(following) {
            above += usize::from(start > next);
            equal += usize::from(start == next);
        }
        (above, equal)
    }
}

/// Calls `work` with one part of `0..count` for each thread, or with the whole if `size` elements are not worth
/// several.
fn by_parts(count: usize, size: usize, par: Par, work: impl Fn(Range<usize>) + Sync) {
    let parts = if size < SHARED { 1 } else { par.threads() };
    par.for_chunks(count, count.div_ceil(parts), work);
}

/// The updates to write, with their positions. They are collected without a branch, which would be unpredictable.
struct PendingWrites {
    entries: [(usize, usize); PENDING_WRITES],
    count: usize,
}

impl PendingWrites {
    fn new() -> PendingWrites {
        PendingWrites { entries: [(0, 0); PENDING_WRITES], count: 0 }
    }

    fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds an update and its position if `is_written`; at most [`PENDING_WRITES`] are added.
    #[inline(always)]
    fn push(&mut self, update: usize, position: usize, is_written: bool) {
        self.entries[self.count % PENDING_WRITES] = (update, position);
        self.count += usize::from(is_written);
    }

    fn all(&self) -> &[(usize, usize)] {
        &self.entries[..self.count]
    }
}

/// Prefetches the cache line of an element that is written soon.
#[inline(always)]
fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the processor has the instruction, and any address is valid for it.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
