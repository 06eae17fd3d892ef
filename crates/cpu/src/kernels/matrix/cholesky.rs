//! Cholesky's factor by rows (Golub & Van Loan, "Matrix Computations", 4th ed. 2013, 4.2).

use super::{Field, RealField, inner};

/// The lower factor in the place of a matrix of `n` rows, whose lower triangle is read; NaN all over where a
/// pivot is not positive.
pub(super) fn factor<T: Field>(a: &mut [T], n: usize) {
    for i in 0..n {
        let (above, row) = a.split_at_mut(i * n);
        let row = &mut row[..n];
        for j in 0..i {
            let other = &above[j * n..j * n + j + 1];
            let rest = row[j] - inner(&row[..j], &other[..j]);
            row[j] = rest.over(other[j]);
        }
        let before: T = inner(&row[..i], &row[..i]);
        let pivot = row[i].re() - before.re();
        if pivot > <T::Real as Field>::ZERO {
            row[i] = T::from_real(pivot.sqrt());
        } else {
            // NaN is no positive number either.
            a.fill(T::from_real(T::Real::NAN));
            return;
        }
        row[i + 1..].fill(T::ZERO);
    }
}
