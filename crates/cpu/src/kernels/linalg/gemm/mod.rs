//! Products of float matrices, after Goto and van de Geijn (2008) and BLIS (Van Zee and van de Geijn, 2015): blocks of
//! both operands are packed for the caches, and tiles of the result stay in registers while they are summed.
//!
//! The contracted axis is cut into parts of at most [`DEPTH`], as equal as possible. The products of a part are summed
//! one after the other, and the parts' sums are added to the result in order. So an element's value does not depend on
//! how the result is cut into blocks and shared among threads.

pub(crate) mod complex;
mod deep;
mod direct;
mod first;
mod lines;
mod output;
mod pack;
mod pack_kernels;
mod panels;
mod portable;
#[cfg(test)]
mod tests;
mod thin;
mod tile;

use std::mem::MaybeUninit;
use std::ops::Range;

pub(crate) use direct::Batch;
pub(crate) use lines::Lines;
pub(crate) use output::GemmOutput;
pub(crate) use pack::{Load, Matrix, Operand, pack_transposed};
use panels::Panels;
pub(crate) use tile::{Accumulation, GemmElement, Kernels};
use tile::{LINE, Step, UNROLL};

use crate::par::Par;

/// Most products that are summed in registers before the sum is added to the result. A larger value means fewer reads
/// and writes of the result. At this value panels, of which a tile reads one of each operand, arrive from the L2 cache
/// as fast as they are used.
const DEPTH: usize = 512;

/// Most elements of a panel of [`DEPTH`]: the widest tile has 32 columns of f32.
const PANEL: usize = DEPTH * 32;

/// Most elements of a tile.
const TILE: usize = 12 * 32;

/// Most rows and columns of a block of the result, the unit of work of a thread. The block's rows of one operand stay
/// in the L2 cache while the thread goes through the columns.
const BLOCK: (usize, usize) = (348, 512);

/// Most blocks per thread if there is enough work. Small blocks keep the wait for the last one short.
const BLOCKS_PER_THREAD: usize = 32;

/// Rows, columns and contracted elements that are packed at once. They bound the memory of a product.
const PACKED: (usize, usize, usize) = (1536, 2048, 1024);

/// Multiplications below which a further thread does not pay.
const PARALLEL_WORK: usize = 1 << 19;

/// Most elements of a block with an epilogue. They stay in the L2 cache beside the block's operands.
const EPILOGUE_BLOCK: usize = 1 << 15;

/// Rows that justify packing a panel once more.
const MIN_REPACK_ROWS: usize = 128;

/// Elements of a row from which on the epilogue's cost per row is small.
const MIN_EPILOGUE_ROW: usize = 512;

/// Most elements of the left operand if it is read in place once for each panel of the right one.
const LEFT_IN_PLACE: usize = 1 << 16;

/// Most elements of a part of the right operand that all tiles read in place.
const RIGHT_IN_PLACE: usize = 1 << 11;

/// Most contracted elements of products that are like outer products.
const OUTER: usize = 8;

/// Most contracted elements of products that use small stack buffers.
const MAX_STACK_DEPTH: usize = 32;

/// Whether a product packs its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    /// Panels of the right operand are packed on demand. The left operand is read in place.
    InPlace,
    /// Both operands are packed beforehand.
    Packed,
}

impl Packing {
    fn of([m, n, k]: [usize; 3], columns: usize) -> Packing {
        // With few columns or few rows, packing costs as much as it saves.
        if n <= columns || m * k <= LEFT_IN_PLACE { Packing::InPlace } else { Packing::Packed }
    }
}

/// Whether products of these sizes are those of kernels that read both operands in place.
pub(crate) fn reads_in_place<C: GemmElement>(sizes: [usize; 3]) -> bool {
    let kernels = C::kernels()[0];
    direct::is_direct(kernels, sizes) || direct::is_tall(kernels, sizes)
}

/// Lanes of a vector.
pub(crate) fn lanes<C: GemmElement>() -> usize {
    C::kernels()[0].lanes
}

/// The length of the parts into which a contracted axis of length `k` is cut.
fn part_depth(k: usize) -> usize {
    k.div_ceil(k.div_ceil(DEPTH)).next_multiple_of(UNROLL)
}

/// The length of the contracted axis that is packed at once: whole parts.
fn packed_depth(k: usize) -> usize {
    k.min(PACKED.2 / part_depth(k) * part_depth(k))
}

/// The number of elements that [`multiply`] of these sizes needs for packing.
pub(crate) fn scratch<C: GemmElement>(sizes: [usize; 3]) -> usize {
    scratch_of(C::kernels()[0], sizes)
}

fn scratch_of<C>(kernels: &Kernels<C>, sizes: [usize; 3]) -> usize {
    if deep::is_deep(sizes) { deep::scratch(kernels, sizes) } else { panels_scratch(kernels, sizes) }
}

fn panels_scratch<C>(kernels: &Kernels<C>, sizes: [usize; 3]) -> usize {
    match Packing::of(sizes, kernels.most_columns()) {
        Packing::InPlace => 0,
        Packing::Packed => {
            let [m, n, k] = sizes;
            let (rows, columns, depth) = (PACKED.0.min(m), PACKED.1.min(n), packed_depth(k));
            (rows.next_multiple_of(kernels.rows) + columns.next_multiple_of(kernels.lanes)) * depth
        }
    }
}

/// Writes the product of an `m` by `k` and a `k` by `n` matrix. The free axis is the rows of `a` and the columns of
/// `b`. `accumulation` says whether the product replaces the result, or is added to it or subtracted from it; in the
/// last two cases the result is initialised.
///
/// The epilogue runs on each block after its last part of the sums, while the block is still in a cache.
///
/// # Safety
/// The result has room for `m` rows of `n` elements.
///
/// # Panics
/// When an operand is smaller than its size, or `space` is smaller than [`scratch`] says.
pub(crate) unsafe fn multiply<C: GemmElement>(
    sizes: [usize; 3],
    a: &dyn Operand<C>,
    b: &dyn Operand<C>,
    out: GemmOutput<'_, C>,
    accumulation: Accumulation,
    space: &mut [MaybeUninit<C>],
    par: Par,
) {
    // SAFETY: the caller guarantees it.
    unsafe { multiply_by(C::kernels()[0], sizes, (a, b), out, accumulation, space, par) }
}

/// As [`multiply`], with the kernels of one instruction set.
///
/// # Safety
/// As for [`multiply`]; the processor has the instructions.
unsafe fn multiply_by<C: GemmElement>(
    kernels: &'static Kernels<C>,
    sizes: [usize; 3],
    (a, b): (&dyn Operand<C>, &dyn Operand<C>),
    out: GemmOutput<'_, C>,
    accumulation: Accumulation,
    space: &mut [MaybeUninit<C>],
    par: Par,
) {
    let [m, n, k] = sizes;
    debug_assert!(m > 0 && n > 0 && k > 0);
    assert!(a.holds(m, k) && b.holds(n, k), "{sizes:?} of operands that are smaller");
    if deep::is_deep(sizes) {
        let deep = deep::Deep { kernels, a, b, sizes, out: &out };
        // SAFETY: the caller guarantees it. The operands have these sizes by the assertion.
        return unsafe { deep.multiply(accumulation, space, par) };
    }
    let is_new = accumulation == Accumulation::Nothing;
    // SAFETY: as above.
    if is_new && unsafe { direct::multiply_tall(kernels, sizes, (a, b), &out, par).is_some() } {
        return;
    }
    if let Some(thin) = thin::Thin::of(kernels, sizes, (a, b), &out) {
        // SAFETY: the caller guarantees it. The operands have these sizes by the assertion.
        unsafe { thin.multiply(accumulation, par) };
        return;
    }
    let product = Product { kernels, a, b, out, accumulation, part_depth: part_depth(k) };
    match Packing::of(sizes, product.kernels.most_columns()) {
        // SAFETY: the caller guarantees it. The operands have these sizes by the assertion.
        Packing::InPlace => unsafe { product.in_place(sizes, par) },
        // SAFETY: as above.
        Packing::Packed => unsafe { product.packed(sizes, space, par) },
    }
}

/// The data that all blocks share.
struct Product<'a, C: GemmElement> {
    kernels: &'static Kernels<C>,
    a: &'a dyn Operand<C>,
    b: &'a dyn Operand<C>,
    out: GemmOutput<'a, C>,
    accumulation: Accumulation,
    /// Most products that are summed before the sum is added to the result.
    part_depth: usize,
}

/// The number of pieces of `size` and their length. Pieces have at most `most` elements, are as equal as possible and
/// are multiples of `step`.
fn split_evenly(size: usize, most: usize, step: usize) -> (usize, usize) {
    let steps = size.div_ceil(step);
    let each = steps.div_ceil(steps.div_ceil((most / step).max(1))) * step;
    (size.div_ceil(each), each)
}

/// The consecutive parts of a range, each `step` long except the last.
fn blocks_of(range: Range<usize>, step: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(step).map(move |start| start..end.min(start + step))
}

/// Part `index` of `0..size`.
fn block_range(index: usize, each: usize, size: usize) -> Range<usize> {
    index * each..size.min((index + 1) * each)
}

impl<C: GemmElement> Product<'_, C> {
    /// # Safety
    /// As for [`multiply`], whose assertion holds.
    unsafe fn in_place(&self, [m, n, k]: [usize; 3], par: Par) {
        let kernels = self.kernels;
        let work = m * n * k;
        let runs_epilogue = self.out.has_epilogue();
        // Writing takes most of the time, and is faster along the rows.
        let is_outer = k <= OUTER && self.b.in_place().is_some_and(|b| b.free == 1);
        let block = |rows: Range<usize>, columns: Range<usize>| {
            // The epilogue of a block finds the block in the L2 cache.
            let tall = if runs_epilogue {
                (EPILOGUE_BLOCK / columns.len()).max(MIN_REPACK_ROWS)
            } else if is_outer {
                kernels.most_rows()
            } else {
                m
            };
            for rows in blocks_of(rows, tall) {
                // SAFETY: blocks are disjoint and inside the result.
                unsafe {
                    let (rows, columns) = (rows.clone(), columns.clone());
                    // Large arrays on the stack cost as much as a small product.
                    if k <= MAX_STACK_DEPTH {
                        self.in_place_block::<{ MAX_STACK_DEPTH * 32 }, { MAX_STACK_DEPTH * 12 }>(
                            rows, columns, k,
                        );
                    } else {
                        self.in_place_block::<PANEL, { DEPTH * 12 }>(rows, columns, k);
                    }
                }
                self.out.complete(&rows, &columns);
            }
        };
        if work <= PARALLEL_WORK {
            block(0..m, 0..n);
            return;
        }
        // The overhead of a block is the packing of its panels. A panel is packed once if the rows are not cut.
        let most = (work / PARALLEL_WORK).clamp(1, 4 * par.threads());
        // The epilogue is faster on whole rows, which are contiguous, or on long parts of rows.
        let is_whole = runs_epilogue && n < most * MIN_EPILOGUE_ROW && m >= MIN_REPACK_ROWS * most;
        let is_cut_across = n > 2 * kernels.most_columns() && !is_whole && !is_outer;
        let (most_rows, most_columns) =
            if is_cut_across { (m, n.div_ceil(most)) } else { (m.div_ceil(most).max(64), n) };
        let (down, height) = split_evenly(m, most_rows, kernels.most_rows());
        let (across, width) = split_evenly(n, most_columns, kernels.most_columns());
        par.for_chunks(down * across, 1, |chunk| {
            for task in chunk {
                block(block_range(task / across, height, m), block_range(task % across, width, n));
            }
        });
    }

    /// One block. A panel and a line buffer hold the parts that cannot be read in place. Both have room for a depth of
    /// `k`, or of [`DEPTH`] if that is less.
    ///
    /// # Safety
    /// The block is inside the result, and no other thread uses it.
    unsafe fn in_place_block<const PANEL: usize, const LINES: usize>(
        &self,
        rows: Range<usize>,
        columns: Range<usize>,
        k: usize,
    ) {
        let mut panel = [const { MaybeUninit::<C>::uninit() }; PANEL];
        let mut lines = [const { MaybeUninit::<C>::uninit() }; LINES];
        // SAFETY: the caller guarantees it.
        unsafe { self.in_place_block_in(rows, columns, k, &mut panel, &mut lines) }
    }

    /// As [`Product::in_place_block`], with this room.
    ///
    /// # Safety
    /// As there.
    unsafe fn in_place_block_in(
        &self,
        rows: Range<usize>,
        columns: Range<usize>,
        k: usize,
        panel: &mut [MaybeUninit<C>],
        lines: &mut [MaybeUninit<C>],
    ) {
        let kernels = self.kernels;
        let (high, wide) = (kernels.most_rows(), kernels.most_columns());
        let (a, b) = (self.a.in_place(), self.b.in_place().filter(|b| b.free == 1));
        // Packing a panel pays if several tiles use it and it would not stay in the L1 cache without packing.
        let reads = b.filter(|b| rows.len() <= high || k * b.along <= RIGHT_IN_PLACE);
        for columns in blocks_of(columns, wide) {
            for along in blocks_of(0..k, self.part_depth) {
                let depth = along.len();
                let (_, _, width) = kernels.tile(1, columns.len());
                let (b, b_step) = match reads.filter(|_| columns.len() == width) {
                    Some(b) => {
                        let start = along.start * b.along + columns.start;
                        // SAFETY: the element is inside the operand.
                        (unsafe { b.elements.as_ptr().add(start) }, b.along)
                    }
                    None => {
                        self.b.pack(
                            kernels,
                            columns.clone(),
                            along.clone(),
                            width,
                            &mut panel[..width * depth],
                        );
                        (panel.as_ptr().cast(), width)
                    }
                };
                for rows in blocks_of(rows.clone(), high) {
                    let (_, height, _) = kernels.tile(rows.len(), 1);
                    let (a, a_row, a_step) = match a.filter(|_| rows.len() == height) {
                        Some(a) => {
                            let start = rows.start * a.free + along.start * a.along;
                            // SAFETY: the element is inside the operand.
                            (unsafe { a.elements.as_ptr().add(start) }, a.free, a.along)
                        }
                        None => {
                            self.a.pack(
                                kernels,
                                rows.clone(),
                                along.clone(),
                                height,
                                &mut lines[..height * depth],
                            );
                            (lines.as_ptr().cast(), 1, height)
                        }
                    };
                    let accumulation =
                        if along.start > 0 { self.accumulation.then() } else { self.accumulation };
                    let out = self.out.start();
                    let step = Step {
                        depth,
                        a,
                        a_row,
                        a_step,
                        b,
                        b_step,
                        row_offsets: std::ptr::null(),
                        rows_per_step: 0,
                        next: b,
                        out,
                        out_row: self.out.stride(),
                        accumulation,
                    };
                    // SAFETY: the tile is inside the block, and all elements that it reads are inside the operands or
                    // panels.
                    unsafe { tile(kernels, &self.out, step, rows, columns.clone()) };
                }
            }
        }
    }

    /// # Safety
    /// As for [`multiply`], whose assertion holds.
    unsafe fn packed(&self, [m, n, k]: [usize; 3], space: &mut [MaybeUninit<C>], par: Par) {
        let kernels = self.kernels;
        let (high, wide) = (kernels.most_rows(), kernels.most_columns());
        let (most_m, most_n, most_k) = (PACKED.0.min(m), PACKED.1.min(n), packed_depth(k));
        let (for_b, for_a) = space.split_at_mut(most_n.next_multiple_of(kernels.lanes) * most_k);
        for columns in blocks_of(0..n, most_n) {
            for along in blocks_of(0..k, most_k) {
                let b = Panels::new(
                    for_b,
                    (columns.clone(), along.clone()),
                    (kernels.lanes, wide),
                    self.part_depth,
                );
                for rows in blocks_of(0..m, most_m) {
                    let a = Panels::new(
                        for_a,
                        (rows.clone(), along.clone()),
                        (kernels.rows, high),
                        self.part_depth,
                    );
                    let of_a = a.count().1;
                    let of_b = if rows.start == 0 { b.count().1 } else { 0 };
                    par.for_chunks(of_a + of_b, 2, |chunk| {
                        for index in chunk {
                            // SAFETY: each panel is written once, before any is read.
                            unsafe {
                                match index.checked_sub(of_a) {
                                    None => a.write(kernels, self.a, index),
                                    Some(index) => b.write(kernels, self.b, index),
                                }
                            }
                        }
                    });
                    let work = rows.len() * columns.len() * along.len();
                    let blocks = (work / PARALLEL_WORK).clamp(1, BLOCKS_PER_THREAD * par.threads());
                    // With fewer rows in a block, a panel of columns is used less often after it has entered the cache.
                    // So columns are cut further, and rows only for many threads.
                    let least = blocks.div_ceil(4 * columns.len().div_ceil(wide));
                    let most = BLOCK.0.min(rows.len().div_ceil(least).next_multiple_of(high));
                    let (mut down, mut height) = split_evenly(rows.len(), most, high);
                    let most = columns.len().div_ceil(blocks.div_ceil(down)).next_multiple_of(wide);
                    let (mut across, mut width) = split_evenly(columns.len(), BLOCK.1.min(most), wide);
                    // The epilogue takes few long rows, so that it finds them in the L2 cache.
                    let runs_epilogue = self.out.has_epilogue() && along.end == k;
                    if runs_epilogue {
                        (across, width) = split_evenly(columns.len(), BLOCK.1, wide);
                        let least = blocks.div_ceil(across);
                        let most = rows
                            .len()
                            .div_ceil(least)
                            .clamp(4 * high, (EPILOGUE_BLOCK / width).clamp(4 * high, BLOCK.0));
                        (down, height) = split_evenly(rows.len(), most.next_multiple_of(high), high);
                    }
                    par.for_chunks(down * across, 1, |chunk| {
                        for task in chunk {
                            let (row, column) = (task / across * height, task % across * width);
                            let block = (
                                row..rows.len().min(row + height),
                                column..columns.len().min(column + width),
                            );
                            let of = |from: &Range<usize>, part: &Range<usize>| {
                                from.start + part.start..from.start + part.end
                            };
                            let (block_rows, block_columns) = (of(&rows, &block.0), of(&columns, &block.1));
                            // SAFETY: blocks are disjoint and inside the result, and all panels are written.
                            unsafe { self.packed_block(&a, &b, block) };
                            if runs_epilogue {
                                self.out.complete(&block_rows, &block_columns);
                            }
                        }
                    });
                }
            }
        }
    }

    /// # Safety
    /// The block, counted from the panels' first row and column, is inside them, and no other thread uses it in the
    /// result.
    unsafe fn packed_block(
        &self,
        a: &Panels<'_, C>,
        b: &Panels<'_, C>,
        (rows, columns): (Range<usize>, Range<usize>),
    ) {
        for part in 0..a.along.len().div_ceil(self.part_depth) {
            let first = part == 0 && a.along.start == 0;
            let accumulation = if first { self.accumulation } else { self.accumulation.then() };
            for columns in blocks_of(columns.clone(), b.width) {
                let (b_start, b_step, _) = b.panel(part, columns.start / b.width);
                for (index, rows) in blocks_of(rows.clone(), a.width).enumerate() {
                    let (a_start, a_step, depth) = a.panel(part, rows.start / a.width);
                    let step = Step {
                        depth,
                        a: a_start.cast(),
                        a_row: 1,
                        a_step,
                        b: b_start.cast(),
                        b_step,
                        row_offsets: std::ptr::null(),
                        rows_per_step: 0,
                        // Each tile prefetches its share of the next panel.
                        next: b_start
                            .wrapping_add(b_step * depth)
                            .wrapping_byte_add(index * (depth / UNROLL) * LINE)
                            .cast(),
                        out: self.out.start(),
                        out_row: self.out.stride(),
                        accumulation,
                    };
                    let of = |start: usize, range: Range<usize>| start + range.start..start + range.end;
                    // SAFETY: the tile is inside the block, and the panels are as wide as it.
                    unsafe {
                        let (rows, columns) = (of(a.free.start, rows), of(b.free.start, columns.clone()));
                        tile(self.kernels, &self.out, step, rows, columns);
                    }
                }
            }
        }
    }
}

/// Writes one tile. A tile that does not fit the result's edge goes through a buffer.
///
/// # Safety
/// The tile is inside the result and no other thread uses it. The operands and panels of `step` cover the smallest
/// kernel tile that holds it.
unsafe fn tile<C: GemmElement>(
    kernels: &Kernels<C>,
    out: &GemmOutput<'_, C>,
    mut step: Step<C>,
    rows: Range<usize>,
    columns: Range<usize>,
) {
    let (run, height, width) = kernels.tile(rows.len(), columns.len());
    // SAFETY: the caller guarantees it.
    let corner = unsafe { out.at(rows.start, columns.start) };
    let contiguous_columns = out.side_by_side(&columns);
    if rows.len() == height && columns.len() == width && contiguous_columns == width {
        step.out = corner;
        // SAFETY: as above.
        unsafe { run(&step) };
        return;
    }
    let mut tile_result = [const { MaybeUninit::<C>::uninit() }; TILE];
    let accumulation = std::mem::replace(&mut step.accumulation, Accumulation::Nothing);
    (step.out, step.out_row) = (tile_result.as_mut_ptr().cast(), width);
    // SAFETY: the buffer has room for the largest tile. The call initialises this tile in it.
    unsafe { run(&step) };
    let mut done = 0;
    while done < columns.len() {
        let left = columns.start + done..columns.end;
        let count = out.side_by_side(&left);
        // SAFETY: the tile is inside the result.
        let first = unsafe { out.at(rows.start, left.start) };
        for (row, line) in tile_result.chunks_exact(width).enumerate().take(rows.len()) {
            // SAFETY: `count` elements are contiguous inside the result, and the tile was written.
            unsafe {
                let to = first.add(row * out.stride());
                let line = line[done..done + count].assume_init_ref();
                if accumulation == Accumulation::Nothing {
                    to.copy_from_nonoverlapping(line.as_ptr(), count);
                    continue;
                }
                for (to, &value) in std::slice::from_raw_parts_mut(to, count).iter_mut().zip(line) {
                    *to = if accumulation == Accumulation::Minus {
                        to.difference(value)
                    } else {
                        to.sum(value)
                    };
                }
            }
        }
        done += count;
    }
}
