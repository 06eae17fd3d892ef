//! Householder's QR by rows (Golub & Van Loan, "Matrix Computations", 4th ed. 2013, 5.2).

use defn_core::op::QrMode;

use super::{Field, RealField, add_scaled};

/// The elements that the factors of a matrix need beside their own: the reflections, and a row.
pub(super) fn workspace(rows: usize, columns: usize) -> usize {
    rows.min(columns) * rows + rows.max(columns)
}

/// The orthogonal factor, and the triangular one. Both hold zeros before; the matrix is overwritten.
pub(super) fn factors<T: Field>(
    a: &mut [T],
    (m, n): (usize, usize),
    mode: QrMode,
    q: &mut [T],
    r: &mut [T],
    work: &mut [T],
) {
    let k = m.min(n);
    let width = match mode {
        QrMode::Reduced => k,
        QrMode::Complete => m,
    };
    let (vectors, row) = work.split_at_mut(k * m);
    for j in 0..k {
        let vector = &mut vectors[j * m..(j + 1) * m];
        for (i, x) in vector.iter_mut().enumerate() {
            *x = if i < j { T::ZERO } else { a[i * n + j] };
        }
        reflector(&mut vector[j..]);
        reflect(&vector[j..], &mut a[j * n..], n, j, &mut row[..n]);
    }
    for i in 0..width.min(m) {
        if i < n {
            r[i * n + i..(i + 1) * n].copy_from_slice(&a[i * n + i..(i + 1) * n]);
        }
    }
    if width == 0 {
        return;
    }
    for i in 0..width {
        q[i * width + i] = T::ONE;
    }
    for j in (0..k).rev() {
        let vector = &vectors[j * m + j..(j + 1) * m];
        // Columns before j are still those of the identity, which this reflection does not reach.
        reflect(vector, &mut q[j * width..], width, j, &mut row[..width]);
    }
}

/// Makes a column the unit vector whose reflection leaves only its first element; zero where there is none.
pub(super) fn reflector<T: Field>(x: &mut [T]) -> T::Real {
    let zero = <T::Real as Field>::ZERO;
    let mut greatest = zero;
    for x in x.iter() {
        let size = x.abs();
        if size > greatest || size.partial_cmp(&size).is_none() {
            greatest = size;
        }
    }
    if greatest == zero {
        return zero;
    }
    // Scaled by the largest element, so that squares neither overflow nor vanish.
    for x in x.iter_mut() {
        *x = x.over(T::from_real(greatest));
    }
    let norm = length(x);
    let head = x[0];
    let size = head.abs();
    let sign = if size == zero { T::ONE } else { head.over(T::from_real(size)) };
    x[0] = head + sign.scaled(norm);
    let own = length(x);
    for x in x.iter_mut() {
        *x = x.over(T::from_real(own));
    }
    norm * greatest
}

fn length<T: Field>(x: &[T]) -> T::Real {
    x.iter().fold(<T::Real as Field>::ZERO, |sum, x| sum + x.square()).sqrt()
}

/// Reflects the rows of a matrix of so many columns along a unit vector, from a column on.
pub(super) fn reflect<T: Field>(vector: &[T], rows: &mut [T], columns: usize, from: usize, along: &mut [T]) {
    let along = &mut along[from..];
    along.fill(T::ZERO);
    for (row, v) in rows.chunks_exact(columns).zip(vector) {
        add_scaled(along, v.conj(), &row[from..]);
    }
    let two = T::ONE + T::ONE;
    for (row, &v) in rows.chunks_exact_mut(columns).zip(vector) {
        add_scaled(&mut row[from..], -(two * v), along);
    }
}
