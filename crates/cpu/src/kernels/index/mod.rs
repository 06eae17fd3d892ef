//! Reads and writes at positions given by an integer tensor.
//!
//! Negative positions count from the end. Positions that are still out of range are clamped in reads, and skipped in
//! writes; [`check`] and [`OutOfRangeFlag`] report them if the caller needs it. Kernels depend only on the width of
//! elements, and move contiguous runs at once. Positions are signed and have 32 or 64 bits; callers convert others.

mod count;
mod range;
mod scatter;

use std::mem::MaybeUninit;

use smallvec::SmallVec;

pub(crate) use count::{count, tables_scratch};
pub(crate) use range::{OutOfRangeFlag, check};

use super::shape::Layout;
use super::simd::vectorized;
use super::{Integer, Plain, TILE, with_position, with_width};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Elements of a chunk.
const INDEX_CHUNK: usize = 16 * TILE;

/// Makes positions that were unsigned, of 64 bits, too large to be in range where they have become negative.
pub(crate) fn saturate(positions: &mut ViewMut<'_>, par: Par) {
    let positions = &*positions;
    par.for_chunks(positions.ty().size(), INDEX_CHUNK, |chunk| {
        // SAFETY: chunks are disjoint and in bounds, and the view is borrowed mutably meanwhile.
        for position in unsafe { positions.part::<i64>(chunk.start, chunk.len()) } {
            // SAFETY: the caller has written each.
            let before = unsafe { position.assume_init_read() };
            position.write(if before < 0 { i64::MAX } else { before });
        }
    });
}

/// An index along an axis of `size`, counted from the front, as 64 bits. It is out of range unless these are below the
/// size.
#[inline(always)]
fn from_front<I: Integer>(index: I, size: u64) -> u64 {
    let bits = index.extended();
    // The sign, extended to all bits, selects without a branch.
    if I::SIGNED { bits.wrapping_add(((bits as i64) >> 63) as u64 & size) } else { bits }
}

/// The signed index clamped to an axis of `size`, which is not 0, and whether it was out of range.
#[inline(always)]
fn nearest<I: Integer>(index: I, size: usize) -> (usize, bool) {
    const { assert!(I::SIGNED) };
    if size_of::<I>() <= size_of::<i32>()
        && let Ok(size) = i32::try_from(size)
    {
        // With 32 bits a vector holds twice as many.
        let index = index.extended() as i32;
        let position = index + (index >> 31 & size);
        let clamped = position.max(0).min(size - 1);
        return (clamped as usize, clamped != position);
    }
    let position = from_front(index, size as u64);
    let clamped = (position as i64).clamp(0, size as i64 - 1) as usize;
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
