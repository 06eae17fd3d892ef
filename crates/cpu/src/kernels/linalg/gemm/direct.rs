//! Small products, and batches of them: both operands are read in place where they lie in a near cache anyway, and the
//! last columns of a row are read and written through masks. Nothing is padded, and no tile goes through a buffer.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::first::FirstLanes;
use super::tile::{GemmElement, Kernels};
use super::{DEPTH, GemmOutput, MAX_STACK_DEPTH, Matrix, Operand, PARALLEL_WORK, blocks_of, split_evenly};
use crate::par::Par;

/// Most elements of a right operand that is read in place by any number of tiles: it lies in the L1 cache.
const MAX_L1_ELEMENTS: usize = 1 << 13;

/// Rows of tiles that justify packing a panel of a larger right operand.
const REUSED: usize = 5;

/// Most multiplications of one product.
pub(super) const MAX_DIRECT_WORK: usize = 2 * PARALLEL_WORK;

/// The inputs of a tile. Strides count elements.
pub(super) struct DirectStep<C> {
    /// The number of products that are summed in each element.
    pub(super) depth: usize,
    /// The first row of `a`, and the strides between its rows and its columns.
    pub(super) a: *const C,
    pub(super) a_row: usize,
    pub(super) a_step: usize,
    /// The first row of `b`. The elements of a row are contiguous.
    pub(super) b: *const C,
    pub(super) b_step: usize,
    /// The elements of the last vector of a row.
    pub(super) last: usize,
    /// Whether the sums go on from those in the tile, instead of from zero.
    pub(super) continues: bool,
    pub(super) out: *mut C,
    pub(super) out_row: usize,
}

/// Computes a tile.
///
/// # Safety
/// All memory that the step names can be read and written, for the tile's rows and for its vectors, of which the last
/// one has `last` elements. The processor has the instructions.
pub(super) type DirectTile<C> = unsafe fn(&DirectStep<C>);

/// # Safety
/// As for [`DirectTile`].
#[inline(always)]
pub(super) unsafe fn direct_tile<V: FirstLanes, const ROWS: usize, const VECTORS: usize>(
    step: &DirectStep<V::Element>,
) {
    let &DirectStep { depth, a, a_row, a_step, b, b_step, last, continues, out, out_row } = step;
    // SAFETY: the caller guarantees it: all positions are inside the operands and the tile.
    unsafe {
        let last = V::first(last);
        let mut sums = [[V::zero(); VECTORS]; ROWS];
        if continues {
            for i in 0..ROWS {
                for j in 0..VECTORS {
                    let from = out.add(i * out_row + j * V::LANES);
                    sums[i][j] = if j + 1 < VECTORS { V::load(from) } else { V::load_first(from, last) };
                }
            }
        }
        let (mut a, mut b) = (a, b);
        for _ in 0..depth {
            let mut row = [V::zero(); VECTORS];
            for j in 0..VECTORS {
                let from = b.add(j * V::LANES);
                row[j] = if j + 1 < VECTORS { V::load(from) } else { V::load_first(from, last) };
            }
            for i in 0..ROWS {
                let factor = V::repeat(a.add(i * a_row));
                for j in 0..VECTORS {
                    sums[i][j] = sums[i][j].plus_product(factor, row[j]);
                }
            }
            a = a.wrapping_add(a_step);
            b = b.wrapping_add(b_step);
        }
        for i in 0..ROWS {
            for j in 0..VECTORS {
                let (to, sum) = (out.add(i * out_row + j * V::LANES), sums[i][j]);
                if j + 1 < VECTORS { sum.store(to) } else { sum.store_first(to, last) }
            }
        }
    }
}

/// Rows of a tall product that are computed at a time: whole tiles of every instruction set.
const TALL_BLOCK: usize = 120;

/// Most panels of columns of such a product.
const TALL_PANELS: usize = 4;

/// Fewest contracted elements with which the left operand's rows are better transposed where the right operand does not
/// fill half a vector.
const MIN_TRANSPOSED_DEPTH: usize = 16;

/// Computes a product with many rows if the right operand lies in place in the L1 cache and has few columns, in blocks
/// of rows. None if it is another one, or other ways are faster.
///
/// # Safety
/// As for [`multiply`](super::multiply), and the operands have the sizes.
pub(super) unsafe fn multiply_tall<C: GemmElement>(
    kernels: &Kernels<C>,
    [m, n, k]: [usize; 3],
    (a, b): (&dyn Operand<C>, &dyn Operand<C>),
    out: &GemmOutput<'_, C>,
    par: Par,
) -> Option<()> {
    if !is_tall(kernels, [m, n, k]) || !out.is_plain() || out.stride() != n {
        return None;
    }
    let (a, b) = (a.in_place()?, b.in_place().filter(|b| b.free == 1)?);
    let blocks = m / TALL_BLOCK;
    par.for_chunks(blocks, PARALLEL_WORK.div_ceil(TALL_BLOCK * n * k), |chunk| {
        for block in chunk {
            let start = block * TALL_BLOCK;
            let rows = if block + 1 == blocks { m - start } else { TALL_BLOCK };
            let a = Matrix { elements: &a.elements[start * a.free..], ..a };
            let batch = Batch { sizes: [rows, n, k], a, b, strides: (0, 0) };
            // SAFETY: the caller guarantees it. Blocks are disjoint.
            unsafe { batch.multiply_by(kernels, 0..1, out.from(start * n)) };
        }
    });
    Some(())
}

/// Whether [`multiply_tall`] computes products of these sizes, if the operands allow it.
pub(super) fn is_tall<C: GemmElement>(kernels: &Kernels<C>, [m, n, k]: [usize; 3]) -> bool {
    let is_transposed = 2 * n < kernels.lanes && k >= MIN_TRANSPOSED_DEPTH;
    let fits = n <= TALL_PANELS * kernels.most_columns() && k <= DEPTH && n * k <= MAX_L1_ELEMENTS;
    m >= 2 * TALL_BLOCK && fits && !is_transposed
}

/// Products of an `m` by `k` and a `k` by `n` matrix each, which begin at fixed distances in both operands.
pub(crate) struct Batch<'a, C> {
    pub(crate) sizes: [usize; 3],
    pub(crate) a: Matrix<'a, C>,
    pub(crate) b: Matrix<'a, C>,
    /// The distance from one matrix to the next, in either operand.
    pub(crate) strides: (usize, usize),
}

impl<C: GemmElement> Batch<'_, C> {
    /// Whether [`Batch::multiply`] computes the products.
    pub(crate) fn is_direct(&self) -> bool {
        is_direct(C::kernels()[0], self.sizes)
    }

    /// Writes some products, one after the other, and runs the epilogue on each. The order of additions is that of
    /// [`multiply`](super::multiply).
    ///
    /// # Safety
    /// [`Batch::is_direct`]. The product has rows of `n` elements, no runs, and room for all of the batch.
    ///
    /// # Panics
    /// When an operand is smaller than its size.
    pub(crate) unsafe fn multiply(&self, batch: Range<usize>, out: GemmOutput<'_, C>) {
        // SAFETY: the caller guarantees it.
        unsafe { self.multiply_by(C::kernels()[0], batch, out) }
    }

    /// As [`Batch::multiply`], with the kernels of one instruction set.
    ///
    /// # Safety
    /// As there; the processor has the instructions.
    pub(super) unsafe fn multiply_by(
        &self,
        kernels: &Kernels<C>,
        batch: Range<usize>,
        out: GemmOutput<'_, C>,
    ) {
        let [m, n, k] = self.sizes;
        if batch.is_empty() {
            return;
        }
        for index in [batch.start, batch.end - 1] {
            let holds = |matrix: Matrix<'_, C>, start: usize, free: usize| {
                Matrix { elements: matrix.elements.get(start..).unwrap_or(&[]), ..matrix }.holds(free, k)
            };
            let (a, b) = (index * self.strides.0, index * self.strides.1);
            assert!(
                holds(self.a, a, m) && holds(self.b, b, n),
                "{:?} of operands that are smaller",
                self.sizes
            );
        }
        let is_packed = self.b.free != 1 || m > REUSED * kernels.most_rows() && n * k > MAX_L1_ELEMENTS;
        // SAFETY: the caller guarantees it, and the assertion that the matrices are inside the operands.
        unsafe {
            match (is_packed, k <= MAX_STACK_DEPTH) {
                (false, _) => self.with_panel::<0>(kernels, batch, out),
                (true, true) => self.with_panel::<{ MAX_STACK_DEPTH * 32 }>(kernels, batch, out),
                (true, false) => self.with_panel::<{ DEPTH * 32 }>(kernels, batch, out),
            }
        }
    }

    /// With room for a panel of the right operand; it is packed if there is any.
    ///
    /// # Safety
    /// As for [`Batch::multiply_by`], and the matrices are inside the operands.
    #[inline(never)]
    unsafe fn with_panel<const PANEL_ELEMENTS: usize>(
        &self,
        kernels: &Kernels<C>,
        batch: Range<usize>,
        out: GemmOutput<'_, C>,
    ) {
        let mut panel = [const { MaybeUninit::<C>::uninit() }; PANEL_ELEMENTS];
        // SAFETY: the caller guarantees it.
        unsafe { self.multiply_in(kernels, batch, out, &mut panel) }
    }

    /// As [`Batch::with_panel`], with this room for it.
    ///
    /// # Safety
    /// As there.
    unsafe fn multiply_in(
        &self,
        kernels: &Kernels<C>,
        batch: Range<usize>,
        out: GemmOutput<'_, C>,
        panel: &mut [MaybeUninit<C>],
    ) {
        let [m, n, k] = self.sizes;
        let (height, last_height) = tile_heights(kernels, m);
        for index in batch {
            let (a, b) =
                (&self.a.elements[index * self.strides.0..], &self.b.elements[index * self.strides.1..]);
            for columns in blocks_of(0..n, kernels.most_columns()) {
                let vectors = columns.len().div_ceil(kernels.lanes);
                let (b, b_step) = if panel.is_empty() {
                    (b[columns.start..].as_ptr(), self.b.along)
                } else {
                    let width = vectors * kernels.lanes;
                    let panel = &mut panel[..width * k];
                    let b = Matrix { elements: b, ..self.b };
                    b.pack(kernels, columns.clone(), 0..k, width, panel);
                    (panel.as_ptr().cast(), width)
                };
                let mut step = DirectStep {
                    depth: k,
                    a: a.as_ptr(),
                    a_row: self.a.free,
                    a_step: self.a.along,
                    b,
                    b_step,
                    last: columns.len() - (vectors - 1) * kernels.lanes,
                    continues: false,
                    out: std::ptr::null_mut(),
                    out_row: n,
                };
                for rows in blocks_of(0..m, height) {
                    let high = if rows.len() == height { height } else { last_height };
                    let row = rows.end - high;
                    let tile = kernels.direct[high / kernels.rows - 1][vectors - 1];
                    // SAFETY: the row is inside the left operand and the result, and so are those of the tile.
                    unsafe {
                        step.a = a.as_ptr().add(row * self.a.free);
                        step.out = out.at(index * m + row, columns.start);
                        tile(&step);
                    }
                }
            }
            out.complete(&(index * m..(index + 1) * m), &(0..n));
        }
    }
}

/// The height of the tiles of so many rows, and of the last one: it begins earlier where rows are left over, and computes
/// some anew.
pub(super) fn tile_heights<C>(kernels: &Kernels<C>, rows: usize) -> (usize, usize) {
    let (_, height) = split_evenly(rows, kernels.most_rows(), kernels.rows);
    let height = height.min((rows / kernels.rows).max(1) * kernels.rows);
    (height, (rows - (rows - 1) / height * height).next_multiple_of(kernels.rows))
}

/// Whether [`Batch::multiply`] computes products of these sizes. Their sums have one part, and their rows fill a tile.
pub(super) fn is_direct<C>(kernels: &Kernels<C>, [m, n, k]: [usize; 3]) -> bool {
    m >= kernels.rows && k <= DEPTH && m * n * k <= MAX_DIRECT_WORK
}
