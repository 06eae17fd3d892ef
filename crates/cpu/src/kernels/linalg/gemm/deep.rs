//! Products with a long contracted axis and a small result, as those of tall matrices with themselves. Threads divide
//! the contracted axis: each part has a result of its own, and these are added in order.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::direct::{DirectStep, tile_heights};
use super::tile::{Accumulation, GemmElement, Kernels};
use super::{DEPTH, GemmOutput, Operand, PANEL, PARALLEL_WORK, blocks_of, part_depth};
use crate::kernels::SendPtr;
use crate::par::Par;

/// Most rows and columns of the result.
const MAX_SIDE: usize = 64;

/// Fewest contracted elements. Results of parts have no more than an eighth of the elements of an operand.
const MIN_DEPTH: usize = 4 * DEPTH;

/// Additions that a thread does at a time.
const ADDITIONS: usize = 1 << 15;

/// Whether [`Deep::multiply`] computes products of these sizes.
pub(super) fn is_deep([m, n, k]: [usize; 3]) -> bool {
    m.max(n) <= MAX_SIDE && k >= MIN_DEPTH
}

/// The elements that the results of all parts have.
pub(super) fn scratch<C>(kernels: &Kernels<C>, [m, n, k]: [usize; 3]) -> usize {
    k.div_ceil(part_depth(k)) * m.max(kernels.rows) * n
}

/// Such a product.
pub(super) struct Deep<'a, C: GemmElement> {
    pub(super) kernels: &'static Kernels<C>,
    pub(super) a: &'a dyn Operand<C>,
    pub(super) b: &'a dyn Operand<C>,
    pub(super) sizes: [usize; 3],
    pub(super) out: &'a GemmOutput<'a, C>,
}

impl<C: GemmElement> Deep<'_, C> {
    /// Writes the product, with as much scratch memory as [`scratch`] says. The order of additions is that of
    /// [`multiply`](super::multiply).
    ///
    /// # Safety
    /// As there, and the operands have the sizes.
    ///
    /// # Panics
    /// When there is less memory.
    pub(super) unsafe fn multiply(&self, accumulation: Accumulation, space: &mut [MaybeUninit<C>], par: Par) {
        let [m, n, k] = self.sizes;
        let (depth, each) = (part_depth(k), m.max(self.kernels.rows) * n);
        let parts = k.div_ceil(depth);
        let results = SendPtr::of(&mut space[..parts * each]);
        par.for_chunks(parts, PARALLEL_WORK.div_ceil(m * n * depth), |chunk| {
            for part in chunk {
                // SAFETY: each part has a result of its own in the memory.
                unsafe { self.part(part * depth..k.min((part + 1) * depth), results.at(part * each)) };
            }
        });
        par.for_chunks(m, ADDITIONS.div_ceil(n * parts), |chunk| {
            for row in chunk {
                let mut sums = [const { MaybeUninit::<C>::uninit() }; MAX_SIDE];
                for part in 0..parts {
                    // SAFETY: all results are written, and the row is inside the result, which is initialised if the
                    // product is added to it.
                    unsafe {
                        let of_part = std::slice::from_raw_parts(results.at(part * each + row * n), n);
                        for (column, (sum, &x)) in sums.iter_mut().zip(of_part).enumerate() {
                            let before = match (part, accumulation) {
                                (0, Accumulation::Nothing) => {
                                    sum.write(x);
                                    continue;
                                }
                                (0, _) => self.out.at(row, column).read(),
                                _ => sum.assume_init(),
                            };
                            sum.write(match accumulation {
                                Accumulation::Nothing | Accumulation::Plus => before.sum(x),
                                Accumulation::Minus => before.difference(x),
                            });
                        }
                    }
                }
                for (column, sum) in sums.iter().enumerate().take(n) {
                    // SAFETY: as above.
                    unsafe { self.out.at(row, column).write(sum.assume_init()) };
                }
            }
        });
        self.out.complete(&(0..m), &(0..n));
    }

    /// Writes the product over a part of the contracted axis, as rows of `n` elements.
    ///
    /// # Safety
    /// There is room for it, and for whole tiles of rows.
    unsafe fn part(&self, along: Range<usize>, to: *mut C) {
        let ([m, n, _], kernels, depth) = (self.sizes, self.kernels, along.len());
        let mut panel = [const { MaybeUninit::<C>::uninit() }; PANEL];
        let mut lines = [const { MaybeUninit::<C>::uninit() }; DEPTH * 12];
        let (a, b) =
            (self.a.in_place().filter(|_| m >= kernels.rows), self.b.in_place().filter(|b| b.free == 1));
        let (height, last_height) = tile_heights(kernels, m);
        for columns in blocks_of(0..n, kernels.most_columns()) {
            let vectors = columns.len().div_ceil(kernels.lanes);
            let (b, b_step) = match b {
                Some(b) => (b.elements[along.start * b.along + columns.start..].as_ptr(), b.along),
                None => {
                    let width = vectors * kernels.lanes;
                    self.b.pack(kernels, columns.clone(), along.clone(), width, &mut panel[..width * depth]);
                    (panel.as_ptr().cast(), width)
                }
            };
            for rows in blocks_of(0..m, height) {
                let high = if rows.len() == height { height } else { last_height };
                let first = rows.end.saturating_sub(high);
                let (a, a_row, a_step) = match a {
                    Some(a) => {
                        (a.elements[first * a.free + along.start * a.along..].as_ptr(), a.free, a.along)
                    }
                    None => {
                        let rows = first..rows.end;
                        self.a.pack(kernels, rows, along.clone(), high, &mut lines[..high * depth]);
                        (lines.as_ptr().cast(), 1, high)
                    }
                };
                let step = DirectStep {
                    depth,
                    a,
                    a_row,
                    a_step,
                    b,
                    b_step,
                    last: columns.len() - (vectors - 1) * kernels.lanes,
                    continues: false,
                    // SAFETY: the tile is inside the memory, which has room for whole tiles.
                    out: unsafe { to.add(first * n + columns.start) },
                    out_row: n,
                };
                // SAFETY: as above; its rows are inside the operands or the panels.
                unsafe { kernels.direct[high / kernels.rows - 1][vectors - 1](&step) };
            }
        }
    }
}
