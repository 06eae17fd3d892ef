//! Reduction of square matrices to bidiagonal form by reflections from both sides (Golub & Kahan, "Calculating the
//! singular values and pseudo-inverse of a matrix", J. SIAM Numer. Anal. 2, 1965).
//!
//! Each pair of reflections makes one pass over the matrix. While a few rows are in the L1 cache, the pass applies the
//! previous pair to them, multiplies them by the left vector, and adds them to the sum that the right vector needs, all
//! of whose elements but the first are known (Howell, Demmel, Fulton, Hammarling & Marmol, "Cache efficient
//! bidiagonalization using BLAS 2.5 operators", ACM Trans. Math. Softw. 34, 2008).

use super::passes::{Lookahead, Term, combine, inner, lane, reflector, update, update_ahead};
use super::{Field, RealField};
use crate::par::poll_within_chunk;

/// Workspace rows of [`reduce`].
pub(super) const ROWS: usize = 7;

/// Reflects a matrix, whose columns are the rows of `a`, until only its diagonal and superdiagonal are nonzero. The
/// largest elements are about 1, so elements up to [`negligible`] can be dropped.
///
/// The unit vectors of the reflections become the rows of `left` and `right`. Row k of `left` is zero before column k,
/// row k of `right` before column k + 1.
pub(super) fn reduce<T: Field>(
    a: &mut [T],
    (n, stride): (usize, usize),
    [left, right]: [&mut [T]; 2],
    diagonal: &mut [T],
    off_diagonal: &mut [T],
    work: &mut [T],
) {
    left.fill(T::ZERO);
    right.fill(T::ZERO);
    work.fill(T::ZERO);
    let mut rows = work.chunks_exact_mut(stride);
    let mut next = || rows.next().expect("there is room for all rows");
    // The vectors and factors of the previous pair, not yet applied to any row.
    let (before, across) = (next(), next());
    let (of_before, of_across) = (next(), next());
    let (products, sum, head) = (next(), next(), next());
    let (two, small) = (T::ONE + T::ONE, negligible::<T::Real>());
    for k in 0..n {
        poll_within_chunk();
        let from = lane(k);
        let (own, rest) = a[k * stride..].split_at_mut(stride);
        let terms = [
            Term { factors: &of_before[k..], vector: before },
            Term { factors: &of_across[k..], vector: across },
        ];
        update(own, stride, from, terms, before, &mut products[..1]);
        let vector = &mut left[k * stride..(k + 1) * stride];
        vector[k..].copy_from_slice(&own[k..]);
        if k + 1 == n {
            diagonal[k] = own[k];
            vector.fill(T::ZERO);
            break;
        }
        diagonal[k] = reflect_or_keep(&mut vector[k..n.next_multiple_of(super::passes::LANES)], small);
        let vector = &left[k * stride..(k + 1) * stride];

        let other = &mut right[k * stride..(k + 1) * stride];
        sum[from..].fill(T::ZERO);
        let terms = [
            Term { factors: &of_before[k + 1..], vector: before },
            Term { factors: &of_across[k + 1..], vector: across },
        ];
        let ahead = Lookahead { column: k, factor: -(two * vector[k]), elements: &mut other[k + 1..n], sum };
        update_ahead(rest, stride, from, terms, vector, &mut products[k + 1..n], ahead);

        // The matrix's row is reflected to its head, which is known only now.
        let zero = <T::Real as Field>::ZERO;
        let whole = other[k + 1..n].iter().fold(zero, |most, x| if x.abs() > most { x.abs() } else { most });
        head.copy_from_slice(&rest[..stride]);
        let reflected = if k + 2 == n || whole <= small {
            off_diagonal[k] = other[k + 1].conj();
            other.fill(T::ZERO);
            None
        } else {
            let reflected = reflector(&mut other[k + 1..]);
            off_diagonal[k] = reflected.head.conj();
            Some(reflected)
        };
        // `before` and `across`: the pair of reflections as a - u w' - x v'.
        for j in k + 1..n {
            of_before[j] = -(two * products[j]);
        }
        before.copy_from_slice(vector);
        match reflected {
            None => {
                across.fill(T::ZERO);
                of_across.fill(T::ZERO);
            }
            Some(reflected) => {
                products[..k + 1].fill(T::ZERO);
                products[n..].fill(T::ZERO);
                products[k + 1..n].iter_mut().for_each(|x| *x = x.conj());
                let coefficient = two * inner(products, other).conj();
                // a v = (a r - head a e) factor, followed by the left reflection.
                across.copy_from_slice(sum);
                let factor = T::from_real(reflected.factor);
                combine(across, head, vector, [factor, reflected.head, coefficient]);
                across[..k + 1].fill(T::ZERO);
                for j in k + 1..n {
                    of_across[j] = -(two * other[j].conj());
                }
            }
        }
    }
}

/// Elements up to this size are negligible beside elements of size 1. Their squares and quotients may be inexact.
fn negligible<R: RealField>() -> R {
    R::MIN_POSITIVE / (R::EPSILON * R::EPSILON)
}

/// Replaces a vector by its reflection's unit vector and returns the reflected head. If all other elements are
/// negligible, the vector becomes zero and its head is returned unchanged.
fn reflect_or_keep<T: Field>(vector: &mut [T], small: T::Real) -> T {
    if vector[1..].iter().all(|x| x.abs() <= small) {
        let head = vector[0];
        vector.fill(T::ZERO);
        return head;
    }
    reflector(vector).head
}
