//! Products with an operand of a few rows or columns. Their time is that of reading the other operand once, so that it
//! is read as it lies, in blocks that are long in memory; sums that are not complete stay in a near cache. What several
//! tiles read is packed beforehand, a little at a time: it comes from memory while tiles are computed.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::direct::DirectStep;
use super::tile::{Accumulation, GemmElement, Kernels};
use super::{
    DEPTH, GemmOutput, Matrix, Operand, PARALLEL_WORK, block_range, blocks_of, part_depth, split_evenly,
};
use crate::par::Par;

/// Most rows of the thin operand.
const MAX_ROWS: usize = 64;

/// Rows of the largest tile.
const TILE_ROWS: usize = 12;

/// Most sums of a block of several tiles.
const MAX_SUMS: usize = 1 << 14;

/// Most elements of the other operand's free axis in a block, for one tile: of f32, rows of them are whole pages.
const FREE_BLOCK: usize = 1024;

/// The same for several tiles.
const PACKED_BLOCK: usize = 512;

/// Columns of the widest tile.
const TILE_COLUMNS: usize = 32;

/// Contracted elements of a block whose rows are read side by side.
const SIDE_BY_SIDE_DEPTH: usize = 16;

/// Contracted elements that are packed at a time.
const PACKED_DEPTH: usize = 64;

const PACKED: usize = PACKED_DEPTH * TILE_COLUMNS;

/// Most rows of the thin operand with which the other one, if its contracted axis is contiguous, is better packed
/// in parts although it lies in a cache.
const MAX_ROWS_OF_NEAR: usize = 32;

/// Bytes of the other operand from which on it is read once from memory, or from a cache that is far.
const FAR_BYTES: usize = 1 << 21;

/// A product of which one operand is thin.
pub(super) struct Thin<'a, C: GemmElement> {
    kernels: &'static Kernels<C>,
    /// The thin operand, and its size.
    few: &'a dyn Operand<C>,
    count: usize,
    /// The other one, its size, and whether its free axis is contiguous.
    many: &'a dyn Operand<C>,
    size: usize,
    is_free_contiguous: bool,
    depth: usize,
    /// Whether the thin operand is the left one.
    is_left: bool,
    out: &'a GemmOutput<'a, C>,
}

impl<'a, C: GemmElement> Thin<'a, C> {
    /// A product that [`Thin::multiply`] computes faster.
    pub(super) fn of(
        kernels: &'static Kernels<C>,
        [m, n, k]: [usize; 3],
        (a, b): (&'a dyn Operand<C>, &'a dyn Operand<C>),
        out: &'a GemmOutput<'a, C>,
    ) -> Option<Thin<'a, C>> {
        let is_left = m <= n;
        let (count, size) = if is_left { (m, n) } else { (n, m) };
        if count > MAX_ROWS || size < 4 * TILE_COLUMNS || k < SIDE_BY_SIDE_DEPTH || !out.is_plain() {
            return None;
        }
        let (few, many) = if is_left { (a, b) } else { (b, a) };
        let strides = many.strides()?;
        let is_free_contiguous = strides.0 == 1;
        let is_faster = count <= TILE_ROWS.min(kernels.most_rows())
            || is_left && size * k * size_of::<C>() >= FAR_BYTES
            || is_left && !is_free_contiguous && count <= MAX_ROWS_OF_NEAR;
        let is_contiguous = is_free_contiguous || strides.1 == 1;
        (is_contiguous && is_faster).then_some(Thin {
            kernels,
            few,
            count,
            many,
            size,
            is_free_contiguous,
            depth: k,
            is_left,
            out,
        })
    }

    /// Writes the product. The order of additions is that of [`multiply`](super::multiply).
    ///
    /// # Safety
    /// As there, and the operands have the sizes.
    pub(super) unsafe fn multiply(&self, accumulation: Accumulation, par: Par) {
        let is_one_tile = self.count <= TILE_ROWS;
        let height = self.count.next_multiple_of(self.kernels.rows);
        let most = if is_one_tile { FREE_BLOCK } else { PACKED_BLOCK.min(MAX_SUMS / height) };
        // Each thread has as many blocks as another.
        let blocks = par.threads() * self.size.div_ceil(par.threads() * most);
        let most = self.size.div_ceil(blocks);
        let (blocks, each) = split_evenly(self.size, most, self.kernels.most_columns());
        let work = self.count * each * self.depth;
        let in_place = self.many.in_place().filter(|_| self.is_free_contiguous);
        par.for_chunks(blocks, (PARALLEL_WORK / 8).div_ceil(work), |chunk| {
            for index in chunk {
                let block = block_range(index, each, self.size);
                // SAFETY: the caller guarantees it. Blocks are disjoint.
                unsafe {
                    match (in_place, is_one_tile) {
                        (Some(_), true) => self.block::<TILE_ROWS, { TILE_ROWS * FREE_BLOCK }, 0>(
                            block,
                            in_place,
                            accumulation,
                        ),
                        (None, true) => self.block::<TILE_ROWS, { TILE_ROWS * FREE_BLOCK }, PACKED>(
                            block,
                            None,
                            accumulation,
                        ),
                        (_, false) => self.block::<MAX_ROWS, MAX_SUMS, PACKED>(block, None, accumulation),
                    }
                }
            }
        });
    }

    /// One block of the result. It has room for `ROWS` rows of the thin operand, for `SUMS` sums, and for `PANEL`
    /// elements of the other operand, if these are not read in place.
    ///
    /// # Safety
    /// The block is inside the result, and no other thread uses it.
    #[inline(never)]
    unsafe fn block<const ROWS: usize, const SUMS: usize, const PANEL: usize>(
        &self,
        block: Range<usize>,
        in_place: Option<Matrix<'_, C>>,
        accumulation: Accumulation,
    ) {
        let mut sums = [const { MaybeUninit::<C>::uninit() }; SUMS];
        let mut panel = [const { MaybeUninit::<C>::uninit() }; PANEL];
        let mut factors = [const { [const { MaybeUninit::<C>::uninit() }; DEPTH] }; ROWS];
        // SAFETY: the caller guarantees it.
        unsafe {
            self.block_in(block, in_place, accumulation, &mut sums, &mut panel, factors.as_flattened_mut())
        }
    }

    /// As [`Thin::block`], with this room.
    ///
    /// # Safety
    /// As there.
    unsafe fn block_in(
        &self,
        block: Range<usize>,
        in_place: Option<Matrix<'_, C>>,
        accumulation: Accumulation,
        sums: &mut [MaybeUninit<C>],
        panel: &mut [MaybeUninit<C>],
        factors: &mut [MaybeUninit<C>],
    ) {
        let kernels = self.kernels;
        let height = self.count.next_multiple_of(kernels.rows);
        let (_, tile_height) = split_evenly(height, kernels.most_rows(), kernels.rows);
        let width = block.len().next_multiple_of(kernels.lanes);
        let depth = if panel.is_empty() { SIDE_BY_SIDE_DEPTH } else { PACKED_DEPTH };
        for part in blocks_of(0..self.depth, part_depth(self.depth)) {
            let factors = &mut factors[..height * part.len()];
            self.few.pack(kernels, 0..self.count, part.clone(), height, factors);
            let (parts, panels) = (part.len().div_ceil(depth), block.len().div_ceil(kernels.most_columns()));
            for index in 0..parts * panels {
                // The other operand's contiguous axis is the inner one.
                let (i, j) = if self.is_free_contiguous {
                    (index / panels, index % panels)
                } else {
                    (index % parts, index / parts)
                };
                let along = block_range(i, depth, part.len());
                let columns = block_range(j, kernels.most_columns(), block.len());
                let vectors = columns.len().div_ceil(kernels.lanes);
                let first = (block.start + columns.start, part.start + along.start);
                let (b, b_step) = match in_place {
                    Some(many) => (many.elements[first.0 + first.1 * many.along..].as_ptr(), many.along),
                    None => {
                        let wide = vectors * kernels.lanes;
                        let panel = &mut panel[..wide * along.len()];
                        let (free, deep) = (first.0..first.0 + columns.len(), first.1..first.1 + along.len());
                        self.many.pack(kernels, free, deep, wide, panel);
                        (panel.as_ptr().cast(), wide)
                    }
                };
                for rows in blocks_of(0..height, tile_height) {
                    let tile = kernels.direct[rows.len() / kernels.rows - 1][vectors - 1];
                    let step = DirectStep {
                        depth: along.len(),
                        a: factors[along.start * height + rows.start..].as_ptr().cast(),
                        a_row: 1,
                        a_step: height,
                        b,
                        b_step,
                        last: columns.len() - (vectors - 1) * kernels.lanes,
                        continues: along.start > 0,
                        out: sums[rows.start * width + columns.start..].as_mut_ptr().cast(),
                        out_row: width,
                    };
                    // SAFETY: the tile's rows are inside the operand or the panel, and the sums have room for it.
                    unsafe { tile(&step) };
                }
            }
            let accumulation = if part.start == 0 { accumulation } else { accumulation.then() };
            for (few, sums) in sums.chunks_exact(width).enumerate().take(self.count) {
                // SAFETY: the elements are inside the result, which is initialised if there was a part before; and the
                // tiles have written all sums of the block.
                unsafe { self.add(few, block.clone(), sums, accumulation) };
            }
        }
        let few = 0..self.count;
        if self.is_left { self.out.complete(&few, &block) } else { self.out.complete(&block, &few) }
    }

    /// Adds sums to the result: those of a row of the thin operand, and of a block of the other one.
    ///
    /// # Safety
    /// They are initialised, and the elements are inside the result. It is initialised too, unless they replace it.
    unsafe fn add(
        &self,
        few: usize,
        block: Range<usize>,
        sums: &[MaybeUninit<C>],
        accumulation: Accumulation,
    ) {
        let sums = &sums[..block.len()];
        // SAFETY: the caller guarantees it.
        unsafe {
            let (first, step) = if self.is_left {
                (self.out.at(few, block.start), 1)
            } else {
                (self.out.at(block.start, few), self.out.stride())
            };
            match (accumulation, step) {
                // The sums of a row, in vectors.
                (Accumulation::Nothing, 1) => {
                    first.cast::<MaybeUninit<C>>().copy_from_nonoverlapping(sums.as_ptr(), sums.len())
                }
                (Accumulation::Plus, 1) => join(first, 1, sums, |to, sum| to.read().sum(sum)),
                (Accumulation::Nothing, _) => join(first, step, sums, |_, sum| sum),
                (Accumulation::Plus, _) => join(first, step, sums, |to, sum| to.read().sum(sum)),
                (Accumulation::Minus, _) => join(first, step, sums, |to, sum| to.read().difference(sum)),
            }
        }
    }
}

/// Joins sums with elements that are a distance apart.
///
/// # Safety
/// The elements can be written, and the sums are initialised. `how` may read an element if it is initialised.
#[inline(always)]
unsafe fn join<C: GemmElement>(
    first: *mut C,
    step: usize,
    sums: &[MaybeUninit<C>],
    how: impl Fn(*mut C, C) -> C,
) {
    for (i, sum) in sums.iter().enumerate() {
        // SAFETY: the caller guarantees it.
        unsafe {
            let to = first.add(i * step);
            to.write(how(to, sum.assume_init()));
        }
    }
}
