//! Products of matrices of integers, in blocks of rows or of columns of the result: along the longer of both axes.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::{Dot, Matrices, PARALLEL_WORK};
use crate::kernels::simd::vectorized;
use crate::kernels::{Element, SendPtr};
use crate::par::{Par, poll_within_chunk};
use crate::view::ViewMut;

/// Writes the products of batches of matrices, which are contiguous along the contracted axis.
pub(super) fn products<C: Element>(
    plan: &Dot,
    a: Matrices<'_, C>,
    b: Matrices<'_, C>,
    out: &mut ViewMut<'_>,
    par: Par,
) {
    let &Dot { batch, m, n, k, .. } = plan;
    // Each block packs all of the other operand again. This cost is small beside the multiplications of a block this
    // large.
    let side = |size: usize| (size / 8).next_multiple_of(16).clamp(128, 512);
    let (height, width) = if m >= n { (side(m), n) } else { (m, side(n)) };
    let (down, across) = (m.div_ceil(height), n.div_ceil(width));
    let work = height.min(m) * width.min(n) * k;
    let out = SendPtr::of(out.slice::<C>());
    par.for_chunks(batch * down * across, PARALLEL_WORK.div_ceil(work), |chunk| {
        for task in chunk {
            let (batch, block) = (task / (down * across), task % (down * across));
            let (row, column) = (block / across * height, block % across * width);
            let block = Block {
                batch,
                rows: row..m.min(row + height),
                columns: column..n.min(column + width),
                k,
                stride: n,
            };
            // SAFETY: the block is inside the result, which has `batch * m * n` elements, and blocks are disjoint.
            unsafe { multiply(a, b, &block, out.at((batch * m + row) * n + column)) };
        }
    });
}

/// A block of a product.
struct Block {
    batch: usize,
    rows: Range<usize>,
    columns: Range<usize>,
    k: usize,
    /// Distance between consecutive rows of the result.
    stride: usize,
}

/// Columns whose elements stay in the L1 cache while the rows are read.
const STAY: usize = 16;

/// The multiplications between two looks whether the work is interrupted: a block has billions.
const POLL_WORK: usize = 1 << 18;

/// One block.
///
/// # Safety
/// The block's rows, which begin at `out` and are a stride apart, are writable, and no other thread uses them.
unsafe fn multiply<C: Element>(a: Matrices<'_, C>, b: Matrices<'_, C>, block: &Block, out: *mut C) {
    let Block { batch, rows, columns, k, stride } = block;
    let mut done = 0;
    for first in columns.clone().step_by(STAY) {
        for row in rows.clone() {
            done += STAY * k;
            if done >= POLL_WORK {
                done = 0;
                poll_within_chunk();
            }
            let factors = a.row(*batch, row, *k);
            for column in first..columns.end.min(first + STAY) {
                let mut sum = [MaybeUninit::uninit()];
                dot(factors, b.row(*batch, column, *k), &mut sum);
                let offset = (row - rows.start) * stride + (column - columns.start);
                // SAFETY: row and column are inside the block.
                unsafe { out.add(offset).cast::<MaybeUninit<C>>().write(sum[0]) };
            }
        }
    }
}

vectorized! {
    /// Writes the sum of products, in the only element of `out`.
    fn dot[C: Element] of [C] (a: &[C], b: &[C], out: &mut [MaybeUninit<C>]) {
        out[0].write(a.iter().zip(b).fold(C::ZERO, |sum, (&a, &b)| sum.plus(a.times(b))));
    }
}
