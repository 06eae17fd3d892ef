//! Cholesky factorization in panels of columns (Golub & Van Loan, "Matrix Computations", 4th ed. 2013, 4.2.6): the
//! diagonal square is factored, the rows below it are solved for, and their products are subtracted from the columns
//! after them. A panel has its own buffer, groups of [`ROWS`] rows one after the other, each group stored by columns.
//! So operations on all rows run over contiguous memory.

use super::field::multiplying;
use super::passes::pieces;
use super::rows::transpose_into;
use super::{Field, Products, RealField, semidefinite};
use crate::kernels::linalg::gemm::Matrix;
use crate::par::Par;

/// Rows of a group in a panel: whole product tiles, for all instruction sets.
const ROWS: usize = 96;

/// Rows that are solved for at once, and complex ones. Their elements of one column stay in registers.
const STRIP: usize = 48;
const COMPLEX_STRIP: usize = 16;

/// Rows of a task that subtracts products: few enough to balance the load of the threads.
const TASK: usize = 48;

/// The most columns of a panel.
const MAX_PANEL_COLUMNS: usize = 64;

/// Elements of the diagonal square that are updated at once.
const LANES: usize = 16;

/// Columns of a panel.
fn panel_width(n: usize) -> usize {
    if n <= 512 { MAX_PANEL_COLUMNS / 2 } else { MAX_PANEL_COLUMNS }
}

/// Elements of a group of rows in a panel. Complex ones are stored twice, the second time as conjugates.
fn panel_size<T: Field>(width: usize) -> usize {
    if T::COMPLEX { 2 * width * ROWS } else { width * ROWS }
}

/// Elements of workspace to factor a matrix of `n` rows.
pub(super) fn workspace<T: Field>(n: usize) -> usize {
    let width = panel_width(n);
    width * width + n.saturating_sub(width).div_ceil(ROWS) * panel_size::<T>(width)
}

/// Replaces a matrix of `n` rows, of which only the lower triangle is read, by its lower factor; by NaN if an
/// eigenvalue is negative.
pub(super) fn factor<T: Field>(a: &mut [T], n: usize, work: &mut [T], par: Par) {
    let width = panel_width(n);
    let (square, panels) = work.split_at_mut(width * width);
    for first in (0..n).step_by(width) {
        let wide = width.min(n - first);
        transpose_into(&a[first * n + first..], n, (wide, wide), square, width);
        if !factor_square(square, wide, width) {
            restore(a, n, first);
            if !semidefinite::factor(a, n, work) {
                a.fill(T::from_real(T::Real::NAN));
            }
            return;
        }
        let (above, below) = a.split_at_mut((first + wide) * n);
        for (i, row) in above[first * n..].chunks_exact_mut(n).enumerate() {
            for (j, x) in row[first..=first + i].iter_mut().enumerate() {
                *x = square[j * width + i];
            }
            row[first + i + 1..].fill(T::ZERO);
        }
        if below.is_empty() {
            break;
        }
        let (square, size) = (&*square, panel_size::<T>(wide));
        let count = (n - first - wide).div_ceil(ROWS);
        let panels = &mut panels[..count * size];
        pieces(panels, size, par, |index, panel| {
            let rows = &below[index * ROWS * n..];
            let (panel, conjugates) = panel.split_at_mut(wide * ROWS);
            let count = ROWS.min(rows.len() / n);
            transpose_into(&rows[first..], n, (count, wide), panel, ROWS);
            solve(square, width, panel, count);
            conjugates.iter_mut().zip(panel).for_each(|(to, x)| *to = x.conj());
        });
        let panels = &*panels;
        pieces(below, TASK * n, par, |index, rows| subtract(rows, index * TASK, n, first, (panels, wide)));
    }
}

/// Restores the lower triangle of a matrix: `first` columns are already those of its factor, and the products of these
/// were subtracted from the rest.
fn restore<T: Field>(a: &mut [T], n: usize, first: usize) {
    for i in (0..n).rev() {
        for j in (0..=i).rev() {
            let solved = first.min(j + 1);
            let rest = if j < first { T::ZERO } else { a[i * n + j] };
            let pairs = a[i * n..][..solved].iter().zip(&a[j * n..][..solved]);
            a[i * n + j] = pairs.fold(rest, |sum, (&x, &y)| sum + x * y.conj());
        }
    }
}

/// Copies rows of a panel back to the matrix, from column `first` on, and subtracts their products with the panel's
/// rows up to them from the columns after the panel. The first of these rows is row `start` of the panel.
fn subtract<T: Field>(rows: &mut [T], start: usize, n: usize, first: usize, (panels, wide): (&[T], usize)) {
    let (count, size) = (rows.len() / n, panel_size::<T>(wide));
    let left = &panels[start / ROWS * size + start % ROWS..];
    transpose_into(left, ROWS, (wide, count), &mut rows[first..], n);
    let left = Matrix { elements: left, free: 1, along: ROWS };
    let mut space = [T::ZERO; TASK * MAX_PANEL_COLUMNS];
    let space = &mut space[..if T::COMPLEX { TASK * MAX_PANEL_COLUMNS } else { 0 }];
    let end = start + count;
    for (panel, column) in panels.chunks_exact(size).zip((0..end).step_by(ROWS)) {
        let right = Matrix { elements: &panel[size - wide * ROWS..], free: 1, along: ROWS };
        let sizes = [count, ROWS.min(end - column), wide];
        let behind = &mut rows[first + wide + column..];
        T::subtract_product(sizes, (&left, &right), behind, n, space, Par::Serial);
    }
}

multiplying! {
    /// Factors a small matrix, given and returned as its upper triangle, with row stride `step`. Returns whether all
    /// pivots are positive.
    fn factor_square[P; T: Field] of [T] (square: &mut [T], n: usize, step: usize) -> bool {
        for j in 0..n {
            let (above, below) = square.split_at_mut((j + 1) * step);
            let row = &mut above[j * step..];
            let pivot = row[j].re();
            // NaN is not positive, either.
            if pivot.partial_cmp(&<T::Real as Field>::ZERO) != Some(std::cmp::Ordering::Greater) {
                return false;
            }
            let root = pivot.sqrt();
            row[j] = T::from_real(root);
            T::parts(&mut row[j + 1..]).iter_mut().for_each(|x| *x = *x / root);
            for (k, other) in (j + 1..n).zip(below.chunks_exact_mut(step)) {
                // Elements below the diagonal are written but not read.
                let from = k / LANES * LANES;
                let factor = -row[k].conj();
                let (lines, _) = other[from..].as_chunks_mut::<LANES>();
                for (line, row) in lines.iter_mut().zip(row[from..].as_chunks::<LANES>().0) {
                    for (x, &y) in line.iter_mut().zip(row) {
                        *x = x.plus_product::<P>(factor, y);
                    }
                }
            }
        }
        true
    }
}

multiplying! {
    /// Solves X L* = B for a group of rows of a panel, where L* is the adjoint of the diagonal square's factor.
    /// `square` holds the transpose of L. Rows from `count` on are not needed.
    fn solve[P; T: Field] of [T] (square: &[T], step: usize, panel: &mut [T], count: usize) {
        if const { T::COMPLEX } {
            solve_strips::<P, T, COMPLEX_STRIP>(square, step, panel, count);
        } else {
            solve_strips::<P, T, STRIP>(square, step, panel, count);
        }
    }
}

/// As [`solve`], for strips of this number of rows.
#[inline(always)]
fn solve_strips<P: Products, T: Field, const HEIGHT: usize>(
    square: &[T],
    step: usize,
    panel: &mut [T],
    count: usize,
) {
    let mut factors = [T::ZERO; MAX_PANEL_COLUMNS];
    for j in 0..panel.len() / ROWS {
        for (k, factor) in factors[..j].iter_mut().enumerate() {
            *factor = -square[k * step + j].conj();
        }
        let (solved, open) = panel.split_at_mut(j * ROWS);
        let root = square[j * step + j].re();
        for first_row in (0..count).step_by(HEIGHT) {
            let open = open[first_row..].first_chunk_mut::<HEIGHT>().expect("a whole strip");
            let mut updated = *open;
            for (&factor, solved) in factors[..j].iter().zip(solved.chunks_exact(ROWS)) {
                let solved = solved[first_row..].first_chunk::<HEIGHT>().expect("a whole strip");
                for (x, &y) in updated.iter_mut().zip(solved) {
                    *x = x.plus_product::<P>(factor, y);
                }
            }
            *open = updated;
            T::parts(open).iter_mut().for_each(|x| *x = *x / root);
        }
    }
}
