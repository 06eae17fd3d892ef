//! Products with an operand of a few rows or columns. Their time is that of reading the other operand once, so that it
//! is read in place, in blocks that are long in memory; sums that are not complete stay in a near cache.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::direct::DirectStep;
use super::pack::pack_in_order;
use super::tile::{Accumulation, GemmElement, Kernels};
use super::{
    DEPTH, GemmOutput, Matrix, Operand, PARALLEL_WORK, blocks_of, pack_transposed, part_depth, split_evenly,
};
use crate::par::Par;

/// Most rows of the thin operand: those of the largest tile.
const MAX_THIN_ROWS: usize = 12;

/// Elements of the other operand's free axis in a block, where they are contiguous.
const FREE_BLOCK: usize = 512;

/// The same where the contracted axis is contiguous: the widest tile.
const PANEL: usize = 32;

/// Contracted elements of a block whose rows are read side by side.
const SIDE_BY_SIDE_DEPTH: usize = 16;

/// Contracted elements that are transposed at a time.
const TRANSPOSED_DEPTH: usize = 64;

/// A product of which one operand is thin.
pub(super) struct Thin<'a, C: GemmElement> {
    kernels: &'static Kernels<C>,
    /// The thin operand, and its size.
    few: Matrix<'a, C>,
    count: usize,
    /// The other one, and its size.
    many: Matrix<'a, C>,
    size: usize,
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
        if count > kernels.most_rows() || size < 4 * PANEL || k < SIDE_BY_SIDE_DEPTH || !out.is_plain() {
            return None;
        }
        let (a, b) = (a.in_place()?, b.in_place()?);
        let (few, many) = if is_left { (a, b) } else { (b, a) };
        let is_along = many.free == 1 || many.along == 1;
        is_along.then_some(Thin { kernels, few, count, many, size, depth: k, is_left, out })
    }

    /// Writes the product. The order of additions is that of [`multiply`](super::multiply).
    ///
    /// # Safety
    /// As there, and the operands have the sizes.
    pub(super) unsafe fn multiply(&self, accumulation: Accumulation, par: Par) {
        let (most, step) =
            if self.many.free == 1 { (FREE_BLOCK, self.kernels.most_columns()) } else { (PANEL, 1) };
        let (blocks, each) = split_evenly(self.size, most, step);
        let work = self.count * each * self.depth;
        par.for_chunks(blocks, (PARALLEL_WORK / 8).div_ceil(work), |chunk| {
            for index in chunk {
                let block = super::block_range(index, each, self.size);
                // SAFETY: the caller guarantees it. Blocks are disjoint.
                unsafe {
                    if self.many.free == 1 {
                        self.block::<{ MAX_THIN_ROWS * FREE_BLOCK }, 0>(block, accumulation);
                    } else {
                        self.block::<{ MAX_THIN_ROWS * PANEL }, { PANEL * TRANSPOSED_DEPTH }>(
                            block,
                            accumulation,
                        );
                    }
                }
            }
        });
    }

    /// One block of the result. It has room for `SUMS` sums, and for `TRANSPOSED_PANEL` elements of the other operand,
    /// which are transposed if there are any.
    ///
    /// # Safety
    /// The block is inside the result, and no other thread uses it.
    unsafe fn block<const SUMS: usize, const TRANSPOSED_PANEL: usize>(
        &self,
        block: Range<usize>,
        accumulation: Accumulation,
    ) {
        let kernels = self.kernels;
        let height = self.count.next_multiple_of(kernels.rows);
        let width = SUMS / MAX_THIN_ROWS;
        let mut sums = [const { MaybeUninit::<C>::uninit() }; SUMS];
        let mut panel = [const { MaybeUninit::<C>::uninit() }; TRANSPOSED_PANEL];
        let mut factors = [const { MaybeUninit::<C>::uninit() }; MAX_THIN_ROWS * DEPTH];
        for part in blocks_of(0..self.depth, part_depth(self.depth)) {
            let factors = &mut factors[..height * part.len()];
            let few = Matrix { elements: &self.few.elements[part.start * self.few.along..], ..self.few };
            pack_in_order(kernels, few, 0..self.count, height, factors);
            for along in blocks_of(
                part.clone(),
                if TRANSPOSED_PANEL == 0 { SIDE_BY_SIDE_DEPTH } else { TRANSPOSED_DEPTH },
            ) {
                for columns in blocks_of(block.clone(), kernels.most_columns()) {
                    let vectors = columns.len().div_ceil(kernels.lanes);
                    let from = columns.start * self.many.free + along.start * self.many.along;
                    let from = &self.many.elements[from..];
                    let (b, b_step) = if TRANSPOSED_PANEL == 0 {
                        (from.as_ptr(), self.many.along)
                    } else {
                        let wide = vectors * kernels.lanes;
                        let panel = &mut panel[..wide * along.len()];
                        pack_transposed(kernels, from, (self.many.free, columns.len()), wide, panel);
                        (panel.as_ptr().cast(), wide)
                    };
                    let tile = kernels.direct[height / kernels.rows - 1][vectors - 1];
                    let step = DirectStep {
                        depth: along.len(),
                        a: factors[(along.start - part.start) * height..].as_ptr().cast(),
                        a_row: 1,
                        a_step: height,
                        b,
                        b_step,
                        last: columns.len() - (vectors - 1) * kernels.lanes,
                        continues: along.start > part.start,
                        out: sums[columns.start - block.start..].as_mut_ptr().cast(),
                        out_row: width,
                    };
                    // SAFETY: the tile's rows are inside the operand or the panel, and the sums have room for it.
                    unsafe { tile(&step) };
                }
            }
            let accumulation = if part.start == 0 { accumulation } else { accumulation.then() };
            for (few, sums) in sums.chunks_exact(width).enumerate().take(self.count) {
                for (many, sum) in block.clone().zip(sums) {
                    let (row, column) = if self.is_left { (few, many) } else { (many, few) };
                    // SAFETY: the element is inside the result, which is initialised if there was a part before; and
                    // the tiles have written all sums of the block.
                    unsafe {
                        let (to, sum) = (self.out.at(row, column), sum.assume_init());
                        to.write(match accumulation {
                            Accumulation::Nothing => sum,
                            Accumulation::Plus => to.read().sum(sum),
                            Accumulation::Minus => to.read().difference(sum),
                        });
                    }
                }
            }
        }
        let few = 0..self.count;
        if self.is_left { self.out.complete(&few, &block) } else { self.out.complete(&block, &few) }
    }
}
