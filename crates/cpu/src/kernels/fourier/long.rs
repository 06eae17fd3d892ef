//! Transforms of lines that exceed the caches: first the columns of a matrix, then its rows.
//!
//! A line of `n1 * n2` elements is viewed as a matrix of `n1` rows. Its columns are transformed, the results are
//! multiplied by roots of unity (twiddle factors), and then the rows are transformed (Bailey, "FFTs in external or
//! hierarchical memory", 1990). Threads share batches of columns, which are copied to a cache-sized workspace.

use std::mem::MaybeUninit;
use std::sync::Arc;

use defn_core::Result;
use defn_core::op::FftOp;
use num_complex::Complex;
use rustfft::Fft;

use super::plan::{FftFloat, RUN, Roots, is_smooth, plan};
use super::{SIDE, scale_line};
use crate::kernels::simd::vectorized;
use crate::kernels::{Element, SendPtr, scratch};
use crate::par::Par;

/// Lines of at least so many bytes are split: shorter ones fit in the second-level cache, and one pass takes less time.
const MIN_SPLIT_BYTES: usize = 1 << 20;

/// Gap between the columns of the workspace. It prevents equal rows of several columns from competing for the same
/// cache sets, which hold few addresses with equal low bits.
pub(super) const GAP: usize = 8;

/// The two-step transform of a long line.
pub(super) struct Split<T: FftFloat> {
    columns: Arc<dyn Fft<T>>,
    rows: Arc<dyn Fft<T>>,
    roots: Roots,
}

impl<T: FftFloat> Split<T>
where
    Complex<T>: Element,
{
    /// The split of lines of a length, if they are long and have only small prime factors.
    ///
    /// # Errors
    /// When there is no memory for the plan.
    pub(super) fn new(op: FftOp, length: usize) -> Result<Option<Split<T>>> {
        if length.saturating_mul(size_of::<Complex<T>>()) < MIN_SPLIT_BYTES || !is_smooth(length) {
            return Ok(None);
        }
        let n1 = (1..=length.isqrt()).rev().find(|&n1| length.is_multiple_of(n1)).unwrap_or(1);
        let n2 = length / n1;
        if n2 > 16 * n1 {
            return Ok(None);
        }
        let (columns, rows) = (plan(op, n1)?, plan(op, n2)?);
        Ok(Some(Split { columns, rows, roots: Roots::new(length, op) }))
    }

    /// The number of elements of a thread's workspace.
    fn scratch_len(&self) -> usize {
        let scratch_for = |plan: &Arc<dyn Fft<T>>| SIDE * (plan.len() + GAP) + plan.get_inplace_scratch_len();
        scratch_for(&self.columns).max(scratch_for(&self.rows))
    }

    /// The number of elements that [`run`](Split::run) needs.
    pub(super) fn scratch(&self, par: Par) -> usize {
        let (scratch_len, width) = (self.scratch_len(), size_of::<Complex<T>>());
        let (columns, rows) = (self.columns.len(), self.rows.len());
        let tasks = columns.max(rows).div_ceil(4 * SIDE);
        scratch_len * scratch::count(tasks, scratch_len * width, columns * rows * width, par)
    }

    /// Transforms a line and writes it, scaled, to `out`. `read` provides the elements from a position on. `memory` has
    /// the size that [`scratch`](Split::scratch) returns.
    pub(super) fn run(
        &self,
        read: impl Fn(usize, &mut [Complex<T>]) + Sync,
        scale: Option<T>,
        out: &mut [MaybeUninit<Complex<T>>],
        memory: &mut [MaybeUninit<Complex<T>>],
        par: Par,
    ) {
        let (n1, n2) = (self.columns.len(), self.rows.len());
        assert_eq!(out.len(), n1 * n2);
        let target = &SendPtr::of(out);
        self.line_batches(&self.columns, n2, memory, par, |first, block, scratch| {
            let width = block.len() / (n1 + GAP);
            gather(block, n1 + GAP, n1, width, |row, elements| read(row * n2 + first, elements));
            for (column, line) in block.chunks_exact_mut(n1 + GAP).enumerate() {
                let line = &mut line[..n1];
                self.columns.process_with_scratch(line, scratch);
                multiply_twiddles(&self.roots, first + column, line);
                // SAFETY: each column belongs to one batch, and so does the row of the result that it is written to.
                unsafe { target.part((first + column) * n1, n1) }.write_copy_of_slice(line);
            }
        });
        self.line_batches(&self.rows, n1, memory, par, |first, block, scratch| {
            let width = block.len() / (n2 + GAP);
            // SAFETY: each column belongs to one batch.
            let row_of = |row: usize| unsafe { target.part(row * n1 + first, width) };
            gather(block, n2 + GAP, n2, width, |row, elements| {
                // SAFETY: the first pass wrote all of it.
                elements.copy_from_slice(unsafe { row_of(row).assume_init_ref() });
            });
            for line in block.chunks_exact_mut(n2 + GAP) {
                self.rows.process_with_scratch(&mut line[..n2], scratch);
                if let Some(scale) = scale {
                    scale_line(&mut line[..n2], scale);
                }
            }
            scatter(block, n2 + GAP, n2, width, |row, elements| {
                row_of(row).write_copy_of_slice(elements);
            });
        });
    }

    /// Calls `work(first, block, scratch)` for batches of the `count` columns, from column `first` on. `block` has room
    /// for the columns, `scratch` for the plan.
    fn line_batches(
        &self,
        plan: &Arc<dyn Fft<T>>,
        count: usize,
        memory: &mut [MaybeUninit<Complex<T>>],
        par: Par,
        work: impl Fn(usize, &mut [Complex<T>], &mut [Complex<T>]) + Sync,
    ) {
        let line = plan.len() + GAP;
        let zero = Complex::new(T::zero(), T::zero());
        // A task consists of several adjacent batches.
        let run = 4 * SIDE;
        scratch::share(par, count.div_ceil(run), (memory, self.scratch_len()), |own, tasks| {
            let own = &mut own[..SIDE * line + plan.get_inplace_scratch_len()];
            let (block, scratch) = scratch::filled(own, zero).split_at_mut(SIDE * line);
            for task in tasks {
                let columns = task * run..count.min((task + 1) * run);
                for first in columns.clone().step_by(SIDE) {
                    let width = SIDE.min(columns.end - first);
                    work(first, &mut block[..width * line], scratch);
                }
            }
        });
    }
}

vectorized! {
    /// Multiplies each frequency of a column by the root to the power of the column's number times the frequency's.
    fn multiply_twiddles[T: FftFloat] of [T] (roots: &Roots, column: usize, line: &mut [Complex<T>]) {
        let (mut re, mut im) = ([0.0; RUN], [0.0; RUN]);
        for (at, (re, im)) in re.iter_mut().zip(&mut im).enumerate() {
            Complex { re: *re, im: *im } = roots.at(column * at.min(line.len() - 1));
        }
        let turned = |x: Complex<T>, first: Complex<f64>, at: usize| {
            let turn_re = T::nearest(first.re * re[at] - first.im * im[at]);
            let turn_im = T::nearest(first.re * im[at] + first.im * re[at]);
            Complex::new(x.re * turn_re - x.im * turn_im, x.re * turn_im + x.im * turn_re)
        };
        let (runs, rest) = line.as_chunks_mut::<RUN>();
        let done = runs.len() * RUN;
        for (at, run) in runs.iter_mut().enumerate() {
            let first = roots.at(column * at * RUN);
            for (at, x) in run.iter_mut().enumerate() {
                *x = turned(*x, first, at);
            }
        }
        for (at, x) in rest.iter_mut().enumerate() {
            *x = turned(*x, roots.at(column * done), at);
        }
    }
}

/// Rows that are moved together: a column then gets neighbouring elements, and its cache line is touched once.
const TOGETHER: usize = 8;

/// The most rows that are moved so. Those of longer columns come from memory: one at a time, more of them are on their
/// way while others are stored.
const MOST_TOGETHER: usize = 1 << 10;

/// Fills columns, `stride` elements apart, with rows of `width` elements.
pub(super) fn gather<T: FftFloat>(
    block: &mut [Complex<T>],
    stride: usize,
    rows: usize,
    width: usize,
    read: impl Fn(usize, &mut [Complex<T>]),
) {
    if rows <= MOST_TOGETHER {
        gather_by::<T, TOGETHER>(block, stride, rows, width, read);
    } else {
        gather_by::<T, 1>(block, stride, rows, width, read);
    }
}

fn gather_by<T: FftFloat, const N: usize>(
    block: &mut [Complex<T>],
    stride: usize,
    rows: usize,
    width: usize,
    read: impl Fn(usize, &mut [Complex<T>]),
) {
    let mut tile = [[Complex::new(T::zero(), T::zero()); SIDE]; N];
    for first in (0..rows).step_by(N) {
        let count = N.min(rows - first);
        for (row, elements) in tile[..count].iter_mut().enumerate() {
            read(first + row, &mut elements[..width]);
        }
        for column in 0..width {
            let line = &mut block[column * stride + first..][..count];
            if let Some(line) = line.first_chunk_mut::<N>() {
                for row in 0..N {
                    line[row] = tile[row][column];
                }
            } else {
                for (element, row) in line.iter_mut().zip(&tile) {
                    *element = row[column];
                }
            }
        }
    }
}

/// Passes rows of `width` elements to `write`, from columns `stride` elements apart.
pub(super) fn scatter<T: FftFloat>(
    block: &[Complex<T>],
    stride: usize,
    rows: usize,
    width: usize,
    write: impl Fn(usize, &[Complex<T>]),
) {
    if rows <= MOST_TOGETHER {
        scatter_by::<T, TOGETHER>(block, stride, rows, width, write);
    } else {
        scatter_by::<T, 1>(block, stride, rows, width, write);
    }
}

fn scatter_by<T: FftFloat, const N: usize>(
    block: &[Complex<T>],
    stride: usize,
    rows: usize,
    width: usize,
    write: impl Fn(usize, &[Complex<T>]),
) {
    let mut tile = [[Complex::new(T::zero(), T::zero()); SIDE]; N];
    for first in (0..rows).step_by(N) {
        let count = N.min(rows - first);
        for column in 0..width {
            let line = &block[column * stride + first..][..count];
            if let Some(line) = line.first_chunk::<N>() {
                for row in 0..N {
                    tile[row][column] = line[row];
                }
            } else {
                for (&element, row) in line.iter().zip(&mut tile) {
                    row[column] = element;
                }
            }
        }
        for (row, elements) in tile[..count].iter().enumerate() {
            write(first + row, &elements[..width]);
        }
    }
}
