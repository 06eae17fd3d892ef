//! LU with row pivoting, by rows (Golub & Van Loan, "Matrix Computations", 4th ed. 2013, 3.4).

use defn_core::op::Transform;

use super::{Field, Triangular, add_scaled, two_rows};

/// Factors a matrix of `n` rows in its place, and says which rows it exchanges.
fn factor<T: Field>(a: &mut [T], n: usize, mut exchange: impl FnMut(usize, usize)) {
    for j in 0..n {
        let mut best = j;
        let mut greatest = a[j * n + j].abs();
        for i in j + 1..n {
            let size = a[i * n + j].abs();
            // A NaN stays the pivot: everything after it is NaN whichever row is chosen.
            if size > greatest
                || (size.partial_cmp(&size).is_none() && greatest.partial_cmp(&greatest).is_some())
            {
                (best, greatest) = (i, size);
            }
        }
        if best != j {
            let (first, last) = two_rows(a, n, j, best);
            first.swap_with_slice(last);
            exchange(j, best);
        }
        let pivot = a[j * n + j];
        let singular = pivot.abs() == <T::Real as Field>::ZERO;
        for i in j + 1..n {
            let (top, row) = two_rows(a, n, j, i);
            // A column of zeros is left as it is.
            let factor = if singular { T::ZERO } else { row[j].over(pivot) };
            row[j] = factor;
            if !singular {
                add_scaled(&mut row[j + 1..], -factor, &top[j + 1..]);
            }
        }
    }
}

/// The permutation, the unit lower and the upper factor; `p`, `l` and `u` hold zeros before.
pub(super) fn factors<T: Field>(a: &mut [T], n: usize, p: &mut [T], l: &mut [T], u: &mut [T]) {
    for i in 0..n {
        p[i * n + i] = T::ONE;
    }
    // An exchange of rows of the matrix is one of columns of the permutation that undoes it.
    factor(a, n, |i, j| {
        for row in p.chunks_exact_mut(n) {
            row.swap(i, j);
        }
    });
    for i in 0..n {
        let row = &a[i * n..(i + 1) * n];
        l[i * n..i * n + i].copy_from_slice(&row[..i]);
        l[i * n + i] = T::ONE;
        u[i * n + i..(i + 1) * n].copy_from_slice(&row[i..]);
    }
}

/// Solves a system of `n` unknowns in the place of the right-hand side, which is one vector or a matrix.
pub(super) fn solve<T: Field>(a: &mut [T], n: usize, b: &mut [T], vector: bool) {
    if n == 0 || b.is_empty() {
        return;
    }
    let columns = b.len() / n;
    factor(a, n, |i, j| {
        let (first, last) = two_rows(b, columns, i, j);
        first.swap_with_slice(last);
    });
    // The unit lower factor, whose diagonal is that of the upper one in memory.
    for i in 0..n {
        for j in i + 1..n {
            let factor = a[j * n + i];
            let (known, open) = two_rows(b, columns, i, j);
            add_scaled(open, -factor, known);
        }
    }
    let upper = Triangular { lower: false, left_side: true, transform: Transform::None };
    upper.solve(a, n, b, vector);
}
