//! Reads and writes at positions given by an integer tensor.
//!
//! Negative positions count from the end. Positions that are still out of range are clamped in reads, and skipped in
//! writes; [`check`] and [`OutOfRangeFlag`] report them if the caller needs it. Kernels depend only on the width of
//! elements, and move contiguous runs at once. Positions have 32 or
//! 64 bits; callers convert shorter ones.

mod range;

use std::mem::MaybeUninit;
use std::ops::Range;

use smallvec::SmallVec;

pub(crate) use range::{OutOfRangeFlag, check};

use super::shape::Layout;
use super::simd::vectorized;
use super::{Element, Integer, Plain, TILE, with_compute, with_position, with_width};
use crate::par::{Par, poll_within_chunk};
use crate::view::{View, ViewMut};

/// Elements of a chunk.
const INDEX_CHUNK: usize = 16 * TILE;

/// Writes of at least this number of elements are shared by threads.
const SHARED: usize = 1 << 16;

/// An index along an axis of `size`, counted from the front, as 64 bits. It is out of range unless these are below the
/// size.
#[inline(always)]
fn from_front<I: Integer>(index: I, size: u64) -> u64 {
    let bits = index.extended();
    // The sign, extended to all bits, selects without a branch.
    if I::SIGNED { bits.wrapping_add(((bits as i64) >> 63) as u64 & size) } else { bits }
}

/// The index clamped to an axis of `size`, which is not 0, and whether it was out of range.
#[inline(always)]
fn nearest<I: Integer>(index: I, size: usize) -> (usize, bool) {
    if I::SIGNED
        && size_of::<I>() <= size_of::<i32>()
        && let Ok(size) = i32::try_from(size)
    {
        // With 32 bits a vector holds twice as many.
        let index = index.extended() as i32;
        let position = index + (index >> 31 & size);
        let clamped = position.max(0).min(size - 1);
        return (clamped as usize, clamped != position);
    }
    let position = from_front(index, size as u64);
    let clamped = if I::SIGNED {
        (position as i64).clamp(0, size as i64 - 1) as usize
    } else {
        position.min(size as u64 - 1) as usize
    };
    (clamped, clamped as u64 != position)
}

/// The index clamped to an axis of `size`, which is not 0.
#[inline(always)]
fn clamped<I: Integer>(index: I, size: usize) -> usize {
    nearest(index, size).0
}

/// `x` seen as `[outer][size][inner]`; indices select entries of the middle axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisView {
    outer: usize,
    size: usize,
    inner: usize,
}

impl AxisView {
    /// The view of `sizes` around an axis.
    pub(crate) fn new(sizes: &[usize], axis: usize) -> AxisView {
        let count = |part: &[usize]| part.iter().product();
        AxisView { outer: count(&sizes[..axis]), size: sizes[axis], inner: count(&sizes[axis + 1..]) }
    }

    /// Reads all indices in each outer part: `[outer][indices][inner]`.
    pub(crate) fn take(
        self,
        x: View<'_>,
        indices: View<'_>,
        out: &mut ViewMut<'_>,
        watch: OutOfRangeFlag<'_>,
        par: Par,
    ) {
        if out.ty().size() == 0 {
            return;
        }
        let AxisView { outer, size, inner } = self;
        with_width!(out.ty().dtype, T => with_position!(indices.ty().dtype, I => {
            let (x, indices): (&[T], &[I]) = (x.slice(), indices.slice());
            let count = indices.len();
            debug_assert_eq!(out.ty().size(), outer * count * inner);
            let out = &*out;
            par.for_chunks(outer * count, INDEX_CHUNK.div_ceil(inner), |chunk| {
                // SAFETY: chunks are disjoint and in bounds, and the view is borrowed mutably meanwhile.
                let mut out = unsafe { out.part::<T>(chunk.start * inner, chunk.len() * inner) };
                let mut position = chunk.start;
                while position < chunk.end {
                    let (outer_index, first) = (position / count, position % count);
                    let len = (count - first).min(chunk.end - position);
                    let from = &x[outer_index * size * inner..][..size * inner];
                    let (now, rest) = out.split_at_mut(len * inner);
                    watch.note(pick(from, &indices[first..first + len], size, inner, now));
                    (out, position) = (rest, position + len);
                }
            });
        }));
    }

    /// Reads with a separate index for each element of the result: `[outer][count][inner]`.
    pub(crate) fn take_along(
        self,
        x: View<'_>,
        indices: View<'_>,
        out: &mut ViewMut<'_>,
        watch: OutOfRangeFlag<'_>,
        par: Par,
    ) {
        let total = out.ty().size();
        if total == 0 {
            return;
        }
        let AxisView { outer, size, inner } = self;
        let count = total / (outer * inner);
        with_width!(out.ty().dtype, T => with_position!(indices.ty().dtype, I => {
            let (x, indices): (&[T], &[I]) = (x.slice(), indices.slice());
            out.fill::<T>(par, INDEX_CHUNK, |start, mut out| {
                let mut position = start;
                while !out.is_empty() {
                    // Rows of one entry of the axis; if these have one element, all rows of an outer part.
                    let row = if inner == 1 { count } else { inner };
                    let (outer_index, column) = (position / (count * inner), position % inner);
                    let len = (row - position % row).min(out.len());
                    let from = &x[outer_index * size * inner..][..size * inner];
                    let (now, rest) = out.split_at_mut(len);
                    let indices = &indices[position..position + len];
                    if inner == 1 {
                        watch.note(pick(from, indices, size, 1, now));
                    } else {
                        for (at, (out, &index)) in now.iter_mut().zip(indices).enumerate() {
                            let (position, is_beyond) = nearest(index, size);
                            watch.note(is_beyond);
                            out.write(from[position * inner + column + at]);
                        }
                    }
                    (out, position) = (rest, position + len);
                }
            });
        }));
    }
}

/// Copies the runs of `inner` elements at the indices below `size`; returns whether an index is out of range.
fn pick<T: Plain, I: Integer>(
    from: &[T],
    indices: &[I],
    size: usize,
    inner: usize,
    out: &mut [MaybeUninit<T>],
) -> bool {
    if inner == 1 {
        return pick_each(&from[..size], indices, out);
    }
    let mut is_any_beyond = false;
    for (out, &index) in out.chunks_exact_mut(inner).zip(indices) {
        let (position, is_beyond) = nearest(index, size);
        is_any_beyond |= is_beyond;
        out.write_copy_of_slice(&from[position * inner..][..inner]);
    }
    is_any_beyond
}

vectorized! {
    /// Copies the elements at the indices; returns whether an index is out of range.
    fn pick_each[T: Plain, I: Integer] of [T, I] (from: &[T], indices: &[I], out: &mut [MaybeUninit<T>]) -> bool {
        assert!(!from.is_empty());
        let mut is_any_beyond = false;
        for (out, &index) in out.iter_mut().zip(indices) {
            let (position, is_beyond) = nearest(index, from.len());
            is_any_beyond |= is_beyond;
            // SAFETY: a clamped index is in bounds of a slice that is not empty. A check would prevent vectorization.
            out.write(unsafe { *from.get_unchecked(position) });
        }
        is_any_beyond
    }
}

/// Copies the elements at rows of indices, along axes of these sizes and strides; returns whether an index is out of
/// range.
fn pick_rows<T: Plain, I: Integer, const N: usize>(
    from: &[T],
    indices: &[I],
    axes: [(usize, usize); N],
    out: &mut [MaybeUninit<T>],
) -> bool {
    let mut starts = [0; PICKED];
    let mut is_any_beyond = false;
    for (out, rows) in out.chunks_mut(PICKED).zip(indices.as_chunks::<N>().0.chunks(PICKED)) {
        is_any_beyond |= starts_of(rows, axes, &mut starts);
        for (out, &start) in out.iter_mut().zip(&starts) {
            out.write(from[start]);
        }
    }
    is_any_beyond
}

/// Positions that are computed before their elements are read: a processor has more reads in flight if there is less
/// work between them.
const PICKED: usize = 64;

vectorized! {
    /// Computes the positions of rows of indices; returns whether an index is out of range.
    fn starts_of[I: Integer, const N: usize] of [I, N] (
        rows: &[[I; N]],
        axes: [(usize, usize); N],
        starts: &mut [usize; PICKED],
    ) -> bool {
        let mut is_any_beyond = false;
        for (start, row) in starts.iter_mut().zip(rows) {
            let mut sum = 0;
            for (&index, (size, stride)) in row.iter().zip(axes) {
                let (position, is_beyond) = nearest(index, size);
                is_any_beyond |= is_beyond;
                sum += position * stride;
            }
            *start = sum;
        }
        is_any_beyond
    }
}

/// One axis that moves as a whole: its size, and its stride on either side.
#[derive(Clone, Copy, Debug)]
struct Dim {
    size: usize,
    whole: usize,
    part: usize,
}

/// The positions that indices select in a tensor, and the elements moved at each.
#[derive(Clone, Debug)]
pub(crate) struct IndexedBlocks {
    /// Size and stride of the axis of each entry of a position.
    entries: SmallVec<[(usize, usize); 6]>,
    /// The axes without entry, except the last ones, which are part of `run`.
    dims: SmallVec<[Dim; 6]>,
    /// The number of elements that are contiguous both in the tensor and in the moved block.
    run: usize,
    /// The number of elements moved at a position.
    block: usize,
}

impl IndexedBlocks {
    /// Positions in a tensor of `sizes` with entries along `axes`; at each of them the first `lengths` elements of the
    /// other axes move.
    pub(crate) fn new(sizes: &[usize], axes: &[usize], lengths: &[usize]) -> IndexedBlocks {
        let strides = Layout::contiguous(sizes).strides;
        let entries = axes.iter().map(|&axis| (sizes[axis], strides[axis] as usize)).collect();
        let others = (0..sizes.len()).filter(|axis| !axes.contains(axis));
        let mut dims: SmallVec<[Dim; 6]> = SmallVec::new();
        for (axis, &size) in others.zip(lengths) {
            dims.push(Dim { size, whole: strides[axis] as usize, part: 0 });
        }
        let mut step = 1usize;
        for dim in dims.iter_mut().rev() {
            dim.part = step;
            step = step.wrapping_mul(dim.size);
        }
        let block = lengths.iter().product();
        let mut run = 1;
        while let Some(last) = dims.last()
            && (last.whole == run && last.part == run || last.size == 1)
        {
            run *= last.size;
            dims.pop();
        }
        IndexedBlocks { entries, dims, run, block }
    }

    /// The offset of the position of a row of indices, clamped into range.
    #[inline(always)]
    fn nearest<I: Integer>(&self, row: &[I]) -> usize {
        row.iter().zip(&self.entries).map(|(&index, &(size, stride))| clamped(index, size) * stride).sum()
    }

    /// The offset of the position, if it is in range.
    #[inline(always)]
    fn exact<I: Integer>(&self, row: &[I]) -> Option<usize> {
        let mut start = 0;
        for (index, &(size, stride)) in row.iter().zip(&self.entries) {
            let bits = from_front(*index, size as u64);
            if bits >= size as u64 {
                return None;
            }
            start += bits as usize * stride;
        }
        Some(start)
    }

    /// Reads the elements at each position: `[positions][block]`.
    pub(crate) fn gather(
        &self,
        x: View<'_>,
        indices: View<'_>,
        out: &mut ViewMut<'_>,
        watch: OutOfRangeFlag<'_>,
        par: Par,
    ) {
        if out.ty().size() == 0 {
            return;
        }
        let (count, width) = (out.ty().size() / self.block, self.entries.len());
        let sizes: SmallVec<[usize; 6]> = self.entries.iter().map(|&(size, _)| size).collect();
        with_width!(out.ty().dtype, T => with_position!(indices.ty().dtype, I => {
            let (x, indices): (&[T], &[I]) = (x.slice(), indices.slice());
            let out = &*out;
            par.for_chunks(count, INDEX_CHUNK.div_ceil(self.block), |chunk| {
                // SAFETY: chunks are disjoint and in bounds, and the view is borrowed mutably meanwhile.
                let out = unsafe { out.part::<T>(chunk.start * self.block, chunk.len() * self.block) };
                let rows = &indices[chunk.start * width..chunk.end * width];
                match (&self.entries[..], self.block) {
                    (&[(size, 1)], 1) => return watch.note(pick(x, rows, size, 1, out)),
                    (&[one, two], 1) => return watch.note(pick_rows(x, rows, [one, two], out)),
                    (&[one, two, three], 1) => return watch.note(pick_rows(x, rows, [one, two, three], out)),
                    (_, _) => watch.look(rows, &sizes),
                }
                for (at, out) in out.chunks_exact_mut(self.block).enumerate() {
                    let start = self.nearest(&rows[at * width..][..width]);
                    if self.block == 1 {
                        out[0].write(x[start]);
                        continue;
                    }
                    each(&self.dims, start, 0, &mut |whole, part| {
                        out[part..part + self.run].write_copy_of_slice(&x[whole..whole + self.run]);
                    });
                }
            });
        }));
    }

    /// Writes the updates, `[positions][block]`, over existing elements, in the order of the positions.
    pub(crate) fn put(&self, indices: View<'_>, updates: View<'_>, out: &mut ViewMut<'_>, par: Par) {
        with_width!(out.ty().dtype, T => {
            let updates: &[T] = updates.slice();
            with_position!(indices.ty().dtype, I => {
                self.scatter::<I, T>(indices.slice(), updates, out.slice(), par, |out, update| {
                    out.write_copy_of_slice(update);
                });
            });
        });
    }

    /// Adds the updates, `[positions][block]`, to existing elements, in the order of the positions. All have a dtype in
    /// which kernels compute.
    pub(crate) fn add(&self, indices: View<'_>, updates: View<'_>, out: &mut ViewMut<'_>, par: Par) {
        with_compute!(out.ty().dtype, C => {
            let updates: &[C] = updates.slice();
            with_position!(indices.ty().dtype, I => {
                self.scatter::<I, C>(indices.slice(), updates, out.slice(), par, |out, update| {
                    for (out, &update) in out.iter_mut().zip(update) {
                        // SAFETY: the caller guarantees initialised elements.
                        let before = unsafe { out.assume_init_read() };
                        out.write(before.plus(update));
                    }
                });
            });
        });
    }

    /// Whether every position begins at a multiple of the run.
    fn lies_in_rows(&self) -> bool {
        self.entries.iter().all(|&(_, stride)| stride % self.run == 0)
    }

    fn scatter<I: Integer, T: Plain>(
        &self,
        indices: &[I],
        updates: &[T],
        out: &mut [MaybeUninit<T>],
        par: Par,
        write: impl Fn(&mut [MaybeUninit<T>], &[T]) + Sync,
    ) {
        if self.block == 0 || updates.is_empty() {
            return;
        }
        if self.block == 1 {
            match self.entries[..] {
                [one] => return scatter_each(indices, updates, [one], out, par, write),
                [one, two] => return scatter_each(indices, updates, [one, two], out, par, write),
                [one, two, three] => {
                    return scatter_each(indices, updates, [one, two, three], out, par, write);
                }
                _ => {}
            }
        }
        let width = self.entries.len();
        let rows = updates.len() / self.block;
        let row = |at: usize| self.exact(&indices[at * width..][..width]);
        let target = SendPtr(out.as_mut_ptr());
        let len = out.len();
        // Positions may repeat, so that threads divide the result and not the positions: into contiguous rows, or into
        // columns if rows are long.
        if self.dims.is_empty() && self.run <= INDEX_CHUNK && self.lies_in_rows() {
            by_parts(len / self.run, updates.len(), par, |mine| {
                let mut pending = PendingWrites::new();
                for from in (0..rows).step_by(PENDING_WRITES) {
                    poll_at_position(from);
                    pending.clear();
                    for at in from..rows.min(from + PENDING_WRITES) {
                        let start = row(at).unwrap_or(len);
                        pending.push(at, start, mine.contains(&(start / self.run)));
                    }
                    for &(_, start) in pending.all() {
                        (start..start + self.run).step_by((LINE / size_of::<T>()).max(1)).for_each(|at| {
                            prefetch(target.pointer(at));
                        });
                    }
                    for &(at, start) in pending.all() {
                        assert!(start + self.run <= len, "a run inside the result");
                        // SAFETY: it is in bounds; each thread has its rows, and runs begin at multiples of their
                        // length.
                        let out = unsafe { std::slice::from_raw_parts_mut(target.at(start), self.run) };
                        write(out, &updates[at * self.run..][..self.run]);
                    }
                }
            });
            return;
        }
        if !self.dims.is_empty() || self.run <= INDEX_CHUNK || rows * self.run < 4 * INDEX_CHUNK {
            for (at, update) in updates.chunks_exact(self.block).enumerate() {
                poll_at_position(at);
                let Some(start) = row(at) else { continue };
                each(&self.dims, start, 0, &mut |whole, part| {
                    write(&mut out[whole..whole + self.run], &update[part..part + self.run]);
                });
            }
            return;
        }
        par.for_chunks(self.run, INDEX_CHUNK, |columns| {
            for at in 0..rows {
                poll_at_position(at);
                let Some(start) = row(at) else { continue };
                let first = start + columns.start;
                assert!(first + columns.len() <= len, "a run inside the result");
                // SAFETY: it is in bounds; each thread has its columns of every position, and positions are multiples
                // of the run.
                let out = unsafe { std::slice::from_raw_parts_mut(target.at(first), columns.len()) };
                write(out, &updates[at * self.run..][columns.clone()]);
            }
        });
    }
}

/// Calls `work` with one part of `0..count` for each thread, or with the whole if `size` elements are not worth
/// several.
fn by_parts(count: usize, size: usize, par: Par, work: impl Fn(Range<usize>) + Sync) {
    let parts = if size < SHARED { 1 } else { par.threads() };
    par.for_chunks(count, count.div_ceil(parts), work);
}

/// Polls from time to time: each thread goes through all positions.
#[inline(always)]
fn poll_at_position(position: usize) {
    if position.is_multiple_of(1 << 12) {
        poll_within_chunk();
    }
}

/// Positions that are computed before the first of them is written.
const PENDING_WRITES: usize = 64;

/// Bytes of a cache line.
const LINE: usize = 64;

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

/// Writes single elements at rows of indices, along axes of these sizes and strides.
fn scatter_each<T: Plain, I: Integer, const N: usize>(
    indices: &[I],
    updates: &[T],
    axes: [(usize, usize); N],
    out: &mut [MaybeUninit<T>],
    par: Par,
    write: impl Fn(&mut [MaybeUninit<T>], &[T]) + Sync,
) {
    let len = out.len();
    let target = SendPtr(out.as_mut_ptr());
    by_parts(len, updates.len(), par, |mine| {
        // SAFETY: each thread writes its own part.
        let out = unsafe { std::slice::from_raw_parts_mut(target.at(mine.start), mine.len()) };
        let rows = indices.as_chunks::<N>().0;
        let mut pending = PendingWrites::new();
        for (from, (rows, updates)) in
            rows.chunks(PENDING_WRITES).zip(updates.chunks(PENDING_WRITES)).enumerate()
        {
            poll_at_position(from * PENDING_WRITES);
            pending.clear();
            for (at, row) in rows.iter().enumerate() {
                let (mut start, mut inside) = (0, true);
                for (&index, (size, stride)) in row.iter().zip(axes) {
                    let bits = from_front(index, size as u64);
                    inside &= bits < size as u64;
                    start = (bits as usize).wrapping_mul(stride).wrapping_add(start);
                }
                let position = start.wrapping_sub(mine.start);
                pending.push(at, position, inside & (position < out.len()));
            }
            for &(at, position) in pending.all() {
                write(&mut out[position..=position], &updates[at..=at]);
            }
        }
    });
}

/// Calls `visit` with the offset on either side of each run.
fn each(dims: &[Dim], whole: usize, part: usize, visit: &mut impl FnMut(usize, usize)) {
    match dims {
        [] => visit(whole, part),
        [dim, rest @ ..] => {
            for index in 0..dim.size {
                each(rest, whole + index * dim.whole, part + index * dim.part, visit);
            }
        }
    }
}

/// The result, shared by threads.
struct SendPtr<T>(*mut MaybeUninit<T>);

// SAFETY: threads write disjoint elements behind the pointer, which the result's exclusive borrow outlives.
unsafe impl<T: Plain> Sync for SendPtr<T> {}

impl<T> SendPtr<T> {
    /// The address of a position, which may be out of bounds.
    fn pointer(&self, position: usize) -> *const MaybeUninit<T> {
        self.0.wrapping_add(position).cast_const()
    }

    /// # Safety
    /// The position is in bounds of the result.
    unsafe fn at(&self, position: usize) -> *mut MaybeUninit<T> {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(position) }
    }
}
