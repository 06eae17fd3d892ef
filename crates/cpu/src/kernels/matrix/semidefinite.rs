//! The lower factor of a singular positive semidefinite matrix. Such factors are not unique: this is the one whose
//! columns begin where a row is linearly independent of the rows above it.
//!
//! Without pivoting, Cholesky's method takes roots of rounding errors. With diagonal pivoting (Higham, "Analysis of the
//! Cholesky Decomposition of a Semi-definite Matrix", 1990) it ends at the rank, with a root B, B B* = A, that is not
//! triangular. Householder reflections of its rows make it triangular.

use super::lu::{Positions, exchange};
use super::passes::reflector;
use super::{Field, RealField};
use crate::par::poll_within_chunk;

/// Replaces a matrix of `n` rows, of which only the lower triangle is read, by its factor; needs `2 n` elements of
/// workspace. Returns whether there is one: no eigenvalue is negative beyond rounding.
pub(super) fn factor<T: Field>(a: &mut [T], n: usize, work: &mut [T]) -> bool {
    let (sizes, space) = work[..2 * n].split_at_mut(n);
    for i in 0..n {
        sizes[i] = T::from_real(a[i * n + i].re());
        a[i * n + i] = sizes[i];
        for k in 0..i {
            a[k * n + i] = a[i * n + k].conj();
        }
    }
    let zero = <T::Real as Field>::ZERO;
    if !sizes.iter().all(|size| size.re() >= zero) {
        return false;
    }
    // The rounding error that may remain of a zero, relative to the value that it was subtracted from.
    let tolerance = T::Real::EPSILON * T::Real::from_f64(4.0 * n as f64);
    let Some(pivots) = root(a, n, sizes, space, tolerance) else { return false };
    let rank = pivots.len();
    for (i, row) in a.chunks_exact_mut(n).enumerate() {
        row[rank.min(i + 1)..].fill(T::ZERO);
    }
    for (j, &k) in pivots.iter().enumerate().rev() {
        sizes.swap(j, k);
        exchange(a, n, j, k);
    }
    let columns = triangular(a, n, rank, sizes, space, tolerance);
    scatter_columns(a, n, &columns, space);
    true
}

/// The root of a matrix by diagonal pivoting, in its first columns. Returns which rows and columns were exchanged with
/// later ones, or `None` if the remainder is larger than rounding errors.
fn root<T: Field>(
    a: &mut [T],
    n: usize,
    sizes: &mut [T],
    space: &mut [T],
    tolerance: T::Real,
) -> Option<Positions> {
    let zero = <T::Real as Field>::ZERO;
    let mut pivots = Positions::new();
    for j in 0..n {
        poll_within_chunk();
        let left = |i: usize| if sizes[i].re() > zero { a[i * n + i].re() / sizes[i].re() } else { zero };
        let best = (j..n).fold(j, |best, i| if left(i) > left(best) { i } else { best });
        let is_pivot = left(best) > tolerance;
        if !is_pivot {
            break;
        }
        pivots.push(best);
        sizes.swap(j, best);
        exchange(a, n, j, best);
        for row in a[j * n..].chunks_exact_mut(n) {
            row.swap(j, best);
        }
        let root = T::from_real(a[j * n + j].re().sqrt());
        for (row, conjugate) in a[j * n..].chunks_exact_mut(n).zip(&mut space[j..]) {
            row[j] = row[j].over(root);
            *conjugate = row[j].conj();
        }
        for row in a[(j + 1) * n..].chunks_exact_mut(n) {
            let factor = row[j];
            for (x, &conjugate) in row[j + 1..].iter_mut().zip(&space[j + 1..]) {
                *x = *x - factor * conjugate;
            }
        }
    }
    let rank = pivots.len();
    let is_rest = (rank..n).all(|i| {
        let bound = tolerance * sizes[i].re().sqrt();
        (rank..n).all(|k| a[i * n + k].abs() <= bound * sizes[k].re().sqrt())
    });
    is_rest.then_some(pivots)
}

/// Reflects the rows of a matrix, which have `rank` elements, from the right until each ends at the row's own column or
/// before. The matrix then holds the conjugates of the result. Returns the rows in which a new column begins.
fn triangular<T: Field>(
    a: &mut [T],
    n: usize,
    rank: usize,
    sizes: &[T],
    space: &mut [T],
    tolerance: T::Real,
) -> Positions {
    for row in a.chunks_exact_mut(n) {
        row[..rank].iter_mut().for_each(|x| *x = x.conj());
    }
    let mut columns = Positions::new();
    for i in 0..n {
        poll_within_chunk();
        let first = columns.len();
        let (row, below) = a[i * n..].split_at_mut(n);
        let own = &mut row[first..rank];
        let bound = tolerance * sizes[i].re().sqrt();
        if own.iter().all(|x| x.abs() <= bound) {
            own.fill(T::ZERO);
            continue;
        }
        let vector = &mut space[..rank - first];
        vector.copy_from_slice(own);
        own.fill(T::ZERO);
        own[0] = reflector(vector).head;
        for row in below.chunks_exact_mut(n) {
            let pairs = row[first..rank].iter().zip(&*vector);
            let along = pairs.fold(T::ZERO, |sum, (&x, y)| sum + y.conj() * x);
            let twice = along + along;
            for (x, &y) in row[first..rank].iter_mut().zip(&*vector) {
                *x = *x - twice * y;
            }
        }
        columns.push(i);
    }
    columns
}

/// Moves the columns to the rows' positions at which they begin, and makes the factor's diagonal positive there.
fn scatter_columns<T: Field>(a: &mut [T], n: usize, columns: &[usize], space: &mut [T]) {
    for (at, &column) in columns.iter().enumerate() {
        let head = a[column * n + at];
        space[at] = head.over(T::from_real(head.abs()));
    }
    for row in a.chunks_exact_mut(n) {
        // From the last to the first, because a column never moves to the left.
        for (at, &column) in columns.iter().enumerate().rev() {
            let x = row[at].conj() * space[at];
            row[at] = T::ZERO;
            row[column] = x;
        }
    }
    for &column in columns {
        a[column * n + column] = T::from_real(a[column * n + column].abs());
    }
}
