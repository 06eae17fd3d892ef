//! Reduction of square matrices to Hessenberg form by Householder reflections (Golub & Van Loan, "Matrix Computations",
//! 4th ed. 2013, 7.4.3).

use super::passes::{Term, accumulate, add_rows, lane, reflector, stride, transpose, update};
use super::{Field, RealField, scale_of, split_workspace};
use crate::par::{Par, poll_within_chunk};

/// Workspace rows of [`reduce`].
pub(super) const ROWS: usize = 4;

/// Workspace elements of the factors of a matrix: the matrix, the reflections and their product.
pub(super) fn workspace(n: usize) -> usize {
    (3 * n + ROWS) * stride(n)
}

/// The factor that is zero below its first subdiagonal, and the unitary factor. Both are NaN if an element of the matrix
/// is not finite.
pub(super) fn factors<T: Field>(
    a: &[T],
    n: usize,
    (h, q): (&mut [T], &mut [T]),
    mut work: &mut [T],
    par: Par,
) {
    if n == 0 {
        return;
    }
    let step = stride(n);
    let rows = split_workspace(&mut work, n * step);
    let vectors = split_workspace(&mut work, n * step);
    let columns = split_workspace(&mut work, n * step);
    let Some(scale) = scaled_rows(a, n, rows, step) else {
        let nan = T::from_real(T::Real::NAN);
        h.fill(nan);
        q.fill(nan);
        return;
    };
    reduce(rows, (n, step), vectors, &mut work[..ROWS * step]);
    accumulate(vectors, (n.saturating_sub(2), 1), step, columns, par);
    for i in 0..n {
        let from = i.saturating_sub(1);
        for j in from..n {
            h[i * n + j] = rows[i * step + j].scaled(scale);
        }
    }
    transpose(columns, step, q, n, (n, n));
}

/// Writes a matrix, divided by a power of two near its greatest magnitude, in zero-padded rows. Returns the divisor, or
/// `None` if an element is not finite.
pub(super) fn scaled_rows<T: Field>(a: &[T], n: usize, rows: &mut [T], step: usize) -> Option<T::Real> {
    let scale = scale_of(a)?;
    let over = T::from_real(scale);
    for i in 0..n {
        let (own, rest) = rows[i * step..(i + 1) * step].split_at_mut(n);
        for (to, x) in own.iter_mut().zip(&a[i * n..]) {
            *to = x.over(over);
        }
        rest.fill(T::ZERO);
    }
    Some(scale)
}

/// Reflects a matrix from both sides until it is zero below its first subdiagonal. Row k of `vectors` becomes the unit
/// vector of the reflection that clears column k. It is zero up to column k.
pub(super) fn reduce<T: Field>(a: &mut [T], (n, step): (usize, usize), vectors: &mut [T], work: &mut [T]) {
    vectors.fill(T::ZERO);
    let mut lines = work.chunks_exact_mut(step);
    let mut next = || lines.next().expect("there is room for all rows");
    let (sum, conjugates, products, factors) = (next(), next(), next(), next());
    let minus_two = -(T::ONE + T::ONE);
    for k in 0..n.saturating_sub(2) {
        poll_within_chunk();
        let vector = &mut vectors[k * step..(k + 1) * step];
        for i in k + 1..n {
            vector[i] = a[i * step + k];
        }
        let head = reflector(&mut vector[k + 1..]).head;
        for (conjugate, x) in conjugates.iter_mut().zip(&*vector) {
            *conjugate = x.conj();
        }
        let from = lane(k + 1);
        let (above, below) = a.split_at_mut((k + 1) * step);
        // From the left: a - 2 v (v^H a). Then the products with v from the right.
        sum.fill(T::ZERO);
        add_rows(below, step, from, &conjugates[k + 1..n], sum);
        for i in 0..n {
            factors[i] = minus_two * vector[i];
        }
        update(above, step, from, [], conjugates, &mut products[..k + 1]);
        let terms = [Term { factors: &factors[k + 1..], vector: &*sum }];
        update(below, step, from, terms, conjugates, &mut products[k + 1..n]);
        // From the right: a - 2 (a v) v^H.
        for i in 0..n {
            factors[i] = minus_two * products[i];
        }
        let terms = [Term { factors: &factors[..], vector: &*conjugates }];
        update(a, step, from, terms, conjugates, &mut products[..n]);
        a[(k + 1) * step + k] = head;
        for i in k + 2..n {
            a[i * step + k] = T::ZERO;
        }
    }
}
