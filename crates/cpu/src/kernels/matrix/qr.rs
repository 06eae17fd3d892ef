//! Householder QR (Golub & Van Loan, "Matrix Computations", 4th ed. 2013, 5.2) of matrices that are stored by columns.
//! Each reflection makes one pass over the columns, which also computes the products of the next one.

use super::passes::{Term, accumulate, lane, reflector, stride, transpose, update};
use super::{Field, split_workspace};
use crate::par::{Par, poll_within_chunk};

/// Workspace elements of the factors of a matrix: its columns, the reflections, the columns of the orthogonal factor,
/// and the workspace of [`reduce`].
pub(super) fn workspace((m, n): (usize, usize), width: usize) -> usize {
    (n + m.min(n) + width) * stride(m) + reduce_workspace(n)
}

/// Workspace elements of [`reduce`].
pub(super) fn reduce_workspace(n: usize) -> usize {
    2 * n
}

/// The orthogonal factor with `width` columns, and the triangular factor `r`, which must be zero-filled.
pub(super) fn factors<T: Field>(
    a: &[T],
    (m, n): (usize, usize),
    (q, width): (&mut [T], usize),
    r: &mut [T],
    mut work: &mut [T],
    par: Par,
) {
    let (k, step) = (m.min(n), stride(m));
    let columns = split_workspace(&mut work, n * step);
    let vectors = split_workspace(&mut work, k * step);
    transpose(a, n, columns, step, (m, n));
    reduce(columns, (m, n), step, vectors, work);
    for i in 0..width.min(m) {
        for j in i..n {
            r[i * n + j] = columns[j * step + i];
        }
    }
    let rows = split_workspace(&mut work, width * step);
    accumulate(vectors, (k, 0), step, rows, par);
    transpose(rows, step, q, width, (width, m));
}

/// Reflects a matrix, whose columns are rows of `step` elements padded with zeros, until it is triangular. Row k of
/// `vectors` becomes the unit vector of a reflection. It is zero before column k.
pub(super) fn reduce<T: Field>(
    columns: &mut [T],
    (m, n): (usize, usize),
    step: usize,
    vectors: &mut [T],
    work: &mut [T],
) {
    let (factors, products) = work[..2 * n].split_at_mut(n);
    let minus_two = -(T::ONE + T::ONE);
    vectors.fill(T::ZERO);
    factors.fill(T::ZERO);
    for k in 0..m.min(n) {
        poll_within_chunk();
        let (before, rest) =
            vectors[k.saturating_sub(1) * step..].split_at_mut(if k == 0 { 0 } else { step });
        let (own, _) = rest.split_at_mut(step);
        let (column, after) = columns[k * step..].split_at_mut(step);
        // The first reflection has no previous one: its factors are zero.
        if k > 0 {
            let terms = [Term { factors: &factors[k..], vector: before }];
            update(column, step, lane(k - 1), terms, before, &mut products[..1]);
        }
        own[k..].copy_from_slice(&column[k..]);
        column[k] = reflector(&mut own[k..]).head;
        let products = &mut products[k + 1..];
        if k == 0 {
            update(after, step, 0, [], own, products);
        } else {
            let terms = [Term { factors: &factors[k + 1..], vector: before }];
            update(after, step, lane(k - 1), terms, own, products);
        }
        for (factor, &product) in factors[k + 1..].iter_mut().zip(&*products) {
            *factor = minus_two * product;
        }
    }
    // The columns after the last reflection's column.
    if n > m && m > 0 {
        let last = &vectors[(m - 1) * step..m * step];
        let terms = [Term { factors: &factors[m..], vector: last }];
        update(&mut columns[m * step..], step, lane(m - 1), terms, last, &mut products[m..]);
    }
}
