//! Writes at positions.
//!
//! The offsets of positions are computed for a block of them at a time, by code that does not depend on the elements.
//! What chooses the elements that move depends on neither; only the loops over a block that write do ([`Writes`]).

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

use defn_core::DType;
use num_complex::Complex;

use super::{INDEX_CHUNK, IndexedBlocks, Moves, each, from_front};
use crate::kernels::simd::vectorized;
use crate::kernels::{Element, Integer, Plain, SendPtr, with_position, with_width};
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

/// How an update joins the element that is there before.
trait Update<T>: Sync {
    fn update(out: &mut MaybeUninit<T>, update: T);

    /// Joins a run of updates. As parameters the two slices are known not to overlap.
    fn run(out: &mut [MaybeUninit<T>], updates: &[T]);
}

/// The update replaces the element.
struct Replace;

impl<T: Plain> Update<T> for Replace {
    #[inline(always)]
    fn update(out: &mut MaybeUninit<T>, update: T) {
        out.write(update);
    }

    #[inline(always)]
    fn run(out: &mut [MaybeUninit<T>], updates: &[T]) {
        out.write_copy_of_slice(updates);
    }
}

/// The update is added to the element, which the caller of [`IndexedBlocks::add`] has initialised.
struct Add;

impl<C: Element> Update<C> for Add {
    #[inline(always)]
    fn update(out: &mut MaybeUninit<C>, update: C) {
        // SAFETY: the caller guarantees initialised elements.
        let before = unsafe { out.assume_init_read() };
        out.write(before.plus(update));
    }

    #[inline(always)]
    fn run(out: &mut [MaybeUninit<C>], updates: &[C]) {
        for (out, &update) in out.iter_mut().zip(updates) {
            Self::update(out, update);
        }
    }
}

/// The updates and the result: all that depends on the type of elements.
struct Target<'a, T, U> {
    updates: &'a [T],
    out: SendPtr<T>,
    /// The length of the result.
    len: usize,
    how: PhantomData<U>,
}

impl<'a, T: Plain, U> Target<'a, T, U> {
    fn new(updates: &'a [T], out: &'a mut [MaybeUninit<T>]) -> Self {
        Target { updates, len: out.len(), out: SendPtr::of(out), how: PhantomData }
    }
}

/// Writes updates to a result.
trait Writes: Sync {
    /// The elements of the result, and the bytes of each.
    fn sizes(&self) -> (usize, usize);

    /// The number of updates.
    fn updates(&self) -> usize;

    /// The address of a position, to prefetch it.
    fn address(&self, position: usize) -> *const u8;

    /// Writes single updates, from number `first` on, at these positions, unless they are out of range.
    ///
    /// # Safety
    /// No other thread uses the result during the call.
    unsafe fn elements(&self, positions: &[usize], first: usize);

    /// Writes runs of updates, each from its first update and to its first position on.
    ///
    /// # Safety
    /// No other thread uses these elements of the result during the call.
    unsafe fn runs(&self, moves: &[(usize, usize)], run: usize);
}

impl<T: Plain, U: Update<T>> Writes for Target<'_, T, U> {
    fn sizes(&self) -> (usize, usize) {
        (self.len, size_of::<T>())
    }

    fn updates(&self) -> usize {
        self.updates.len()
    }

    fn address(&self, position: usize) -> *const u8 {
        // SAFETY: the first position is inside the result, or at its end.
        unsafe { self.out.at(0) }.wrapping_add(position).cast()
    }

    unsafe fn elements(&self, positions: &[usize], first: usize) {
        // SAFETY: the caller guarantees it.
        let out = unsafe { self.out.part(0, self.len) };
        for (&position, &update) in positions.iter().zip(&self.updates[first..][..positions.len()]) {
            if let Some(out) = out.get_mut(position) {
                U::update(out, update);
            }
        }
    }

    unsafe fn runs(&self, moves: &[(usize, usize)], run: usize) {
        for &(update, position) in moves {
            assert!(position < self.len && run <= self.len - position, "a run inside the result");
            // SAFETY: it is in bounds, and the caller guarantees that it is not shared.
            let out = unsafe { self.out.part(position, run) };
            if let [out] = out {
                U::update(out, self.updates[update]);
                continue;
            }
            U::run(out, &self.updates[update..][..run]);
        }
    }
}

/// Adds to a result.
trait Adds: Writes {
    /// Adds single updates, from number `first` on, at these positions. Parts of them, which end here, take turns.
    ///
    /// # Safety
    /// As for [`Writes::elements`].
    unsafe fn in_turns(&self, positions: &[usize], first: usize, ends: [usize; PARTS + 1]);
}

impl<C: Element> Adds for Target<'_, C, Add> {
    unsafe fn in_turns(&self, positions: &[usize], first: usize, ends: [usize; PARTS + 1]) {
        // SAFETY: the caller guarantees it.
        let out = unsafe { self.out.part(0, self.len) };
        let updates = &self.updates[first..][..positions.len()];
        let mut parts: [(&[usize], &[C]); PARTS] = [(&[], &[]); PARTS];
        let mut shared = usize::MAX;
        for part in 0..PARTS {
            let range = ends[part]..ends[part + 1];
            shared = shared.min(range.len());
            parts[part] = (&positions[range.clone()], &updates[range]);
        }
        let mut together = parts;
        for (positions, updates) in &mut together {
            (*positions, *updates) = (&positions[..shared], &updates[..shared]);
        }
        for at in 0..shared {
            for (positions, updates) in together {
                if let Some(out) = out.get_mut(positions[at]) {
                    Add::update(out, updates[at]);
                }
            }
        }
        for (positions, updates) in parts {
            for (&position, &update) in positions[shared..].iter().zip(&updates[shared..]) {
                if let Some(out) = out.get_mut(position) {
                    Add::update(out, update);
                }
            }
        }
    }
}

impl IndexedBlocks {
    /// Writes the updates, `[positions][block]`, over existing elements, in the order of the positions.
    pub(crate) fn put(&self, indices: View<'_>, updates: View<'_>, out: &mut ViewMut<'_>, par: Par) {
        with_width!(out.ty().dtype, T => {
            let target = Target::<T, Replace>::new(updates.slice(), out.slice());
            self.with_offsets(indices, &mut |offsets| self.scatter(offsets, &target, par));
        });
    }

    /// Adds the updates, `[positions][block]`, to existing elements, in the order of the positions. All have a dtype in
    /// which kernels compute.
    pub(crate) fn add(&self, indices: View<'_>, updates: View<'_>, out: &mut ViewMut<'_>, par: Par) {
        // Sums of integers of either sign have the same bits.
        match out.ty().dtype {
            DType::Bool | DType::U2 | DType::U4 | DType::U8 | DType::S2 | DType::S4 | DType::S8 => {
                self.add_as::<u8>(indices, updates, out, par);
            }
            DType::U16 | DType::S16 => self.add_as::<u16>(indices, updates, out, par),
            DType::U32 | DType::S32 => self.add_as::<u32>(indices, updates, out, par),
            DType::U64 | DType::S64 => self.add_as::<u64>(indices, updates, out, par),
            DType::F32 => self.add_as::<f32>(indices, updates, out, par),
            DType::F64 => self.add_as::<f64>(indices, updates, out, par),
            DType::C64 => self.add_as::<Complex<f32>>(indices, updates, out, par),
            DType::C128 => self.add_as::<Complex<f64>>(indices, updates, out, par),
            DType::F8E5M2 | DType::F8E4M3FN | DType::F16 | DType::BF16 => {
                unreachable!("{} is computed in f32", out.ty())
            }
        }
    }

    fn add_as<C: Element>(&self, indices: View<'_>, updates: View<'_>, out: &mut ViewMut<'_>, par: Par) {
        let bytes = out.ty().byte_size();
        let target = Target::<C, Add>::new(updates.slice(), out.slice());
        self.with_offsets(indices, &mut |offsets| {
            if self.block == 1 && bytes <= MAX_SERIAL_BYTES {
                add_each(offsets, &target);
            } else {
                self.scatter(offsets, &target, par);
            }
        });
    }

    /// Who should write what is there before to a result of so many elements and bytes: one thread, if one thread writes
    /// the updates and these are many. It would wait for lines from the caches of the others.
    pub(crate) fn par_before(&self, updates: usize, elements: usize, bytes: usize, par: Par) -> Par {
        let is_serial = self.block == 1 && bytes <= MAX_SERIAL_BYTES;
        if is_serial && updates >= elements / 4 { Par::Serial } else { par }
    }

    /// Calls `work` with what computes the offsets of the positions.
    fn with_offsets(&self, indices: View<'_>, work: &mut dyn FnMut(&Offsets<'_>)) {
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

    fn scatter(&self, offsets: &Offsets<'_>, target: &dyn Writes, par: Par) {
        let updates = target.updates();
        if self.block == 0 || updates == 0 {
            return;
        }
        if self.block == 1 {
            return scatter_each(offsets, target, par);
        }
        let rows = updates / self.block;
        let (len, size) = target.sizes();
        // Positions may repeat, so that threads divide the result and not the positions: into contiguous rows, or into
        // columns if rows are long.
        if self.dims.is_empty() && self.run <= INDEX_CHUNK && self.lies_in_rows() {
            by_parts(len / self.run, updates, par, &|mine| {
                let mut pending = PendingWrites::new();
                in_blocks(offsets, rows, &mut |from, starts| {
                    pending.clear();
                    for (at, &start) in (from..).zip(starts) {
                        pending.push(at * self.run, start, mine.contains(&(start / self.run)));
                    }
                    for &(_, start) in pending.all() {
                        let lines = (start..start + self.run).step_by((LINE / size).max(1));
                        lines.for_each(|at| prefetch(target.address(0).wrapping_add(at * size)));
                    }
                    // SAFETY: each thread has its rows, and runs begin at multiples of their length.
                    unsafe { target.runs(pending.all(), self.run) };
                });
            });
            return;
        }
        if !self.dims.is_empty() || self.run <= INDEX_CHUNK || rows * self.run < 4 * INDEX_CHUNK {
            // SAFETY: this is the only thread.
            let mut write = |moves: &[_]| unsafe { target.runs(moves, self.run) };
            let mut moves = Moves::new(&mut write);
            in_blocks(offsets, rows, &mut |from, starts| {
                for (at, &start) in (from..).zip(starts).filter(|(_, start)| **start != OUT_OF_RANGE) {
                    each(&self.dims, at * self.block, start, &mut moves);
                }
            });
            moves.finish();
            return;
        }
        par.for_chunks(self.run, INDEX_CHUNK, |columns| {
            in_blocks(offsets, rows, &mut |from, starts| {
                let mut pending = PendingWrites::new();
                for (at, &start) in (from..).zip(starts) {
                    let update = at * self.run + columns.start;
                    pending.push(update, start.wrapping_add(columns.start), start != OUT_OF_RANGE);
                }
                // SAFETY: each thread has its columns of every position, and positions are multiples of the run.
                unsafe { target.runs(pending.all(), columns.len()) };
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
fn in_blocks(offsets: &Offsets<'_>, count: usize, work: &mut dyn FnMut(usize, &[usize])) {
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
fn scatter_each(offsets: &Offsets<'_>, target: &dyn Writes, par: Par) {
    let (len, size) = target.sizes();
    if len * size <= MAX_SERIAL_BYTES {
        let is_far = len * size > MIN_PREFETCHED_BYTES;
        in_blocks(offsets, target.updates(), &mut |from, starts| {
            if is_far {
                prefetch_all(target, starts);
            }
            // SAFETY: this is the only thread.
            unsafe { target.elements(starts, from) };
        });
        return;
    }
    by_parts(len, target.updates(), par, &|mine| {
        let mut pending = PendingWrites::new();
        in_blocks(offsets, target.updates(), &mut |from, starts| {
            pending.clear();
            for (at, &start) in (from..).zip(starts) {
                pending.push(at, start, start.wrapping_sub(mine.start) < mine.len());
            }
            // SAFETY: each thread writes its own part.
            unsafe { target.runs(pending.all(), 1) };
        });
    });
}

/// Prefetches the elements at these positions.
fn prefetch_all(target: &dyn Writes, positions: &[usize]) {
    let (start, size) = (target.address(0), target.sizes().1);
    positions.iter().for_each(|position| prefetch(start.wrapping_add(position.wrapping_mul(size))));
}

/// Adds to single elements at their offsets.
///
/// Where positions repeat, an addition waits for the sum before, which is on its way to memory. So sorted positions are
/// divided into parts that have none in common, and these take turns. Each element gets its updates in their order.
fn add_each(offsets: &Offsets<'_>, target: &dyn Adds) {
    let (len, size) = target.sizes();
    let is_far = len * size > MIN_PREFETCHED_BYTES;
    let mut starts = [[0; PENDING_WRITES]; SORTED / PENDING_WRITES];
    for from in (0..target.updates()).step_by(SORTED) {
        if from.is_multiple_of(1 << 12) {
            poll_within_chunk();
        }
        let end = target.updates().min(from + SORTED);
        for (at, starts) in (from..end).step_by(PENDING_WRITES).zip(&mut starts) {
            offsets(at..end.min(at + PENDING_WRITES), starts);
        }
        let starts = &starts.as_flattened()[..end - from];
        if repeats(starts) < starts.len() / 4 {
            let at_once = if is_far { PENDING_WRITES } else { SORTED };
            for (starts, first) in starts.chunks(at_once).zip((from..).step_by(at_once)) {
                if is_far {
                    prefetch_all(target, starts);
                }
                // SAFETY: this is the only thread.
                unsafe { target.elements(starts, first) };
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
        // SAFETY: as above.
        unsafe { target.in_turns(starts, from, ends) };
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
fn by_parts(count: usize, size: usize, par: Par, work: &(dyn Fn(Range<usize>) + Sync)) {
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
fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the processor has the instruction, and any address is valid for it.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
