//! LU with row pivoting (Golub & Van Loan, "Matrix Computations", 4th ed. 2013, 3.4): small matrices by rows, large
//! ones in panels of columns. A panel is factored column by column in a buffer where its columns are contiguous. The
//! update of the columns after it is a triangular solve and a matrix product.

use smallvec::SmallVec;

use super::rows::{greatest, greatest_of_few, subtract_rows, transpose_into};
use super::triangular::{self, System};
use super::{Field, two_rows};
use crate::kernels::linalg::gemm::Matrix;
use crate::kernels::simd::vectorized;
use crate::par::Par;

/// Most rows of a matrix that is factored by rows.
const MAX_UNBLOCKED_ROWS: usize = 32;

/// Indices of rows or columns. As pivots they are row exchanges, in order: row `i` is exchanged with row `pivots[i]`,
/// which is `i` or a later row.
pub(super) type Positions = SmallVec<[usize; 64]>;

/// Columns of a panel.
fn panel_width(n: usize) -> usize {
    if n <= 512 { 32 } else { 64 }
}

/// Stride between the columns of a panel. It is no power of two, so that columns fall into different cache sets.
fn panel_stride(n: usize) -> usize {
    n.next_multiple_of(32) + 16
}

/// Elements of workspace to factor a matrix of `n` rows.
pub(super) fn workspace<T: Field>(n: usize) -> usize {
    if n <= MAX_UNBLOCKED_ROWS {
        return 0;
    }
    let width = panel_width(n);
    width * panel_stride(n) + T::product_space([n - width.min(n), n - width.min(n), width])
}

/// Elements of workspace to solve a system of `n` unknowns with a right-hand side of `count` elements.
pub(super) fn solve_workspace<T: Field>(n: usize, count: usize) -> usize {
    workspace::<T>(n).max(triangular::space::<T>(n, count.checked_div(n).unwrap_or(0)))
}

/// Factors a matrix of `n` rows in place, and returns the row exchanges.
fn factor<T: Field>(a: &mut [T], n: usize, work: &mut [T], par: Par) -> Positions {
    let mut pivots = SmallVec::from_elem(0, n);
    if n <= MAX_UNBLOCKED_ROWS {
        by_rows(a, n, &mut pivots);
        return pivots;
    }
    let (width, stride) = (panel_width(n), panel_stride(n));
    let (panel, space) = work.split_at_mut(width * stride);
    for first in (0..n).step_by(width) {
        let (high, wide) = (n - first, width.min(n - first));
        transpose_into(&a[first * n + first..], n, (high, wide), panel, stride);
        let pivots = &mut pivots[first..first + wide];
        by_columns(panel, high, wide, stride, pivots);
        for (i, pivot) in (first..).zip(pivots) {
            *pivot += first;
            exchange(a, n, i, *pivot);
        }
        transpose_into(panel, stride, (wide, high), &mut a[first * n + first..], n);
        let behind = n - first - wide;
        if behind == 0 {
            break;
        }
        let (above, below) = a.split_at_mut((first + wide) * n);
        let top = &mut above[first * n + first + wide..];
        let system = System { elements: &*panel, row: 1, column: stride, forward: true, unit: true };
        system.solve(wide, top, (behind, n), space, par);
        let left = Matrix { elements: &panel[wide..], free: 1, along: stride };
        let right = Matrix { elements: &*top, free: 1, along: n };
        let sizes = [high - wide, behind, wide];
        T::subtract_product(sizes, (&left, &right), &mut below[first + wide..], n, space, par);
    }
    pivots
}

/// Exchanges two rows of a matrix, unless they are the same row.
pub(super) fn exchange<T>(a: &mut [T], columns: usize, first: usize, last: usize) {
    if first != last {
        let (first, last) = two_rows(a, columns, first, last);
        first.swap_with_slice(last);
    }
}

vectorized! {
    /// Factors a small matrix row by row.
    fn by_rows[T: Field] of [T] (a: &mut [T], n: usize, pivots: &mut [usize]) {
        let mut column = [T::ZERO; MAX_UNBLOCKED_ROWS];
        for j in 0..n {
            let column = &mut column[..n - j];
            for (i, x) in (j..n).zip(column.iter_mut()) {
                *x = a[i * n + j];
            }
            // If a NaN is the pivot, every later element is NaN whichever row is chosen.
            let pivot = j + greatest_of_few(column);
            pivots[j] = pivot;
            exchange(a, n, j, pivot);
            let pivot = a[j * n + j];
            let singular = pivot.size() == <T::Real as Field>::ZERO;
            let (top, below) = a.split_at_mut((j + 1) * n);
            let top = &top[j * n + j + 1..];
            for row in below.chunks_exact_mut(n) {
                // A column of zeros stays as it is.
                row[j] = if singular { T::ZERO } else { row[j].over(pivot) };
                if !singular {
                    let factor = row[j];
                    for (x, &top) in row[j + 1..].iter_mut().zip(top) {
                        *x = *x - factor * top;
                    }
                }
            }
        }
    }
}

vectorized! {
    /// Factors a panel with contiguous columns, a stride apart.
    fn by_columns[T: Field] of [T] (
        panel: &mut [T],
        high: usize,
        wide: usize,
        stride: usize,
        pivots: &mut [usize],
    ) {
        for j in 0..wide {
            let (before, column) = panel.split_at_mut(j * stride);
            let column = &mut column[..high];
            // Updates this column by the columns before it. A panel has few columns and possibly many rows.
            let (top, rest) = column.split_at_mut(j);
            for k in 0..j {
                let factor = top[k];
                for (x, &left) in top[k + 1..].iter_mut().zip(&before[k * stride + k + 1..]) {
                    *x = *x - factor * left;
                }
            }
            if j > 0 {
                subtract_rows(rest, top, &before[j..], stride);
            }
            let pivot = j + greatest(rest);
            pivots[j] = pivot;
            if pivot != j {
                for column in panel.chunks_mut(stride).take(wide) {
                    column.swap(j, pivot);
                }
            }
            let column = &mut panel[j * stride..][j..high];
            let (pivot, rest) = column.split_first_mut().expect("a row of the diagonal");
            // A column of zeros stays as it is.
            if pivot.size() == <T::Real as Field>::ZERO {
                rest.fill(T::ZERO);
            } else {
                rest.iter_mut().for_each(|x| *x = x.over(*pivot));
            }
        }
    }
}

/// The permutation, the unit lower and the upper factor. `p`, `l` and `u` must be zero-filled.
pub(super) fn factors<T: Field>(
    a: &mut [T],
    n: usize,
    (p, l, u): (&mut [T], &mut [T], &mut [T]),
    work: &mut [T],
    par: Par,
) {
    let pivots = factor(a, n, work, par);
    let mut order: SmallVec<[usize; 64]> = (0..n).collect();
    for (i, &pivot) in pivots.iter().enumerate() {
        order.swap(i, pivot);
    }
    for (i, &from) in order.iter().enumerate() {
        p[from * n + i] = T::ONE;
        let row = &a[i * n..(i + 1) * n];
        l[i * n..i * n + i].copy_from_slice(&row[..i]);
        l[i * n + i] = T::ONE;
        u[i * n + i..(i + 1) * n].copy_from_slice(&row[i..]);
    }
}

/// Solves a system of `n` unknowns in place of the right-hand side, which is one vector or a matrix.
pub(super) fn solve<T: Field>(a: &mut [T], n: usize, b: &mut [T], work: &mut [T], par: Par) {
    if n == 0 || b.is_empty() {
        return;
    }
    let columns = b.len() / n;
    let pivots = factor(a, n, work, par);
    for (i, &pivot) in pivots.iter().enumerate() {
        exchange(b, columns, i, pivot);
    }
    // The unit lower factor. Its diagonal is not stored; the memory holds that of the upper factor.
    let lower = System { elements: &*a, row: n, column: 1, forward: true, unit: true };
    lower.solve(n, b, (columns, columns), work, par);
    let upper = System { forward: false, unit: false, ..lower };
    upper.solve(n, b, (columns, columns), work, par);
}

/// The determinant, in closed form up to three rows.
pub(super) fn determinant<T: Field>(a: &mut [T], n: usize, work: &mut [T], par: Par) -> T {
    let minor = |rows: [usize; 2], columns: [usize; 2]| {
        let at = |i: usize, j: usize| a[rows[i] * n + columns[j]];
        at(0, 0) * at(1, 1) - at(0, 1) * at(1, 0)
    };
    match n {
        0 => T::ONE,
        1 => a[0],
        2 => minor([0, 1], [0, 1]),
        3 => {
            let rest = [1, 2];
            a[0] * minor(rest, [1, 2]) - a[1] * minor(rest, [0, 2]) + a[2] * minor(rest, [0, 1])
        }
        _ => {
            let pivots = factor(a, n, work, par);
            let size = a.iter().step_by(n + 1).fold(T::ONE, |product, &x| product * x);
            let exchanges = pivots.iter().enumerate().filter(|&(i, &pivot)| i != pivot).count();
            if exchanges % 2 == 0 { size } else { -size }
        }
    }
}
