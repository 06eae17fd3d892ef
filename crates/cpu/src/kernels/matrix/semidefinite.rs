//! The lower factor of a singular matrix without negative eigenvalues, of which there are many: the one whose columns
//! begin where a row is independent of the rows above it.
//!
//! Without an order of its pivots, Cholesky's method takes roots of what rounding leaves of zeros. With diagonal
//! pivoting (Higham, "Analysis of the Cholesky Decomposition of a Semi-definite Matrix", 1990) it ends at the rank, with
//! a root B, B B* = A, that is not triangular. Householder's reflections of its rows make it so.

use super::lu::{Positions, exchange};
use super::passes::reflector;
use super::{Field, RealField};
use crate::par::breathe;

/// The factor in the place of a matrix of `n` rows, whose lower triangle is read; needs `2 n` elements of workspace.
/// Says whether there is one: whether no eigenvalue is negative by more than rounding.
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
    // What rounding leaves of a zero, as a share of what it was subtracted from.
    let share = T::Real::EPSILON * T::Real::from_f64(4.0 * n as f64);
    let Some(pivots) = root(a, n, sizes, space, share) else { return false };
    let rank = pivots.len();
    for (i, row) in a.chunks_exact_mut(n).enumerate() {
        row[rank.min(i + 1)..].fill(T::ZERO);
    }
    for (j, &k) in pivots.iter().enumerate().rev() {
        sizes.swap(j, k);
        exchange(a, n, j, k);
    }
    let columns = triangular(a, n, rank, sizes, space, share);
    spread(a, n, &columns, space);
    true
}

/// The root of a matrix with diagonal pivoting, in its first columns, and which rows and columns were exchanged with
/// those behind them; None where something is left that is not rounding.
fn root<T: Field>(
    a: &mut [T],
    n: usize,
    sizes: &mut [T],
    space: &mut [T],
    share: T::Real,
) -> Option<Positions> {
    let zero = <T::Real as Field>::ZERO;
    let mut pivots = Positions::new();
    for j in 0..n {
        breathe();
        let left = |i: usize| if sizes[i].re() > zero { a[i * n + i].re() / sizes[i].re() } else { zero };
        let best = (j..n).fold(j, |best, i| if left(i) > left(best) { i } else { best });
        let is_pivot = left(best) > share;
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
        let bound = share * sizes[i].re().sqrt();
        (rank..n).all(|k| a[i * n + k].abs() <= bound * sizes[k].re().sqrt())
    });
    is_rest.then_some(pivots)
}

/// Reflects the rows of a matrix, which have `rank` elements, from the right until each ends at the row's own column or
/// before; the conjugates of what is left stand in its place. Gives the rows in which a new column begins.
fn triangular<T: Field>(
    a: &mut [T],
    n: usize,
    rank: usize,
    sizes: &[T],
    space: &mut [T],
    share: T::Real,
) -> Positions {
    for row in a.chunks_exact_mut(n) {
        row[..rank].iter_mut().for_each(|x| *x = x.conj());
    }
    let mut columns = Positions::new();
    for i in 0..n {
        breathe();
        let first = columns.len();
        let (row, below) = a[i * n..].split_at_mut(n);
        let own = &mut row[first..rank];
        let bound = share * sizes[i].re().sqrt();
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

/// Puts the columns where they begin, as those of the factor, whose diagonal is positive there.
fn spread<T: Field>(a: &mut [T], n: usize, columns: &[usize], space: &mut [T]) {
    for (at, &column) in columns.iter().enumerate() {
        let head = a[column * n + at];
        space[at] = head.over(T::from_real(head.abs()));
    }
    for row in a.chunks_exact_mut(n) {
        // A column never moves to the left.
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
