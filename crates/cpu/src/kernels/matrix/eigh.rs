//! Eigenvalues of Hermitian matrices: Householder reflections to a tridiagonal matrix (Golub & Van Loan, "Matrix
//! Computations", 4th ed. 2013, 8.3), then implicit QR or QL steps, in the direction in which the elements become
//! smaller (Bowdler, Martin, Reinsch & Wilkinson, "The QR and QL algorithms for symmetric matrices", Numer. Math. 11,
//! 1968).

use smallvec::SmallVec;

use super::passes::{Term, accumulate, inner, lane, reflector, stride, update};
use super::rotations::{self, NoVectors, RotationLog, Rotations, rotation};
use super::{Field, RealField, scale_of, split_workspace};
use crate::par::{Par, poll_within_chunk};

/// Most sweeps for one eigenvalue before the iteration gives up; two or three are usual.
const MAX_SWEEPS: usize = 60;

/// Workspace rows of [`tridiagonal`].
const ROWS: usize = 6;

/// Workspace elements of the factors of a matrix: the matrix, the reflections, their product and its panels, the
/// diagonals and the logs of rotations.
pub(super) fn workspace<T: Field>(n: usize) -> usize {
    let square = n * stride(n);
    // Counted in real numbers; a complex element has two.
    let numbers = rotations::panels::<T::Real>(n, n * reals_per_element::<T>()) + rotations::notes(n);
    3 * square + (ROWS + 2) * stride(n) + numbers
}

/// Real numbers of an element.
pub(super) fn reals_per_element<T: Field>() -> usize {
    if T::COMPLEX { 2 } else { 1 }
}

/// The eigenvalues, ascending, and the eigenvectors in columns. Magnitudes of at most `eps` become 0. All results are
/// NaN if an element is not finite or the iteration does not converge.
pub(super) fn factors<T: Field>(
    a: &mut [T],
    n: usize,
    eps: f64,
    (w, v): (&mut [T], &mut [T]),
    mut work: &mut [T],
    par: Par,
) {
    let zero = <T::Real as Field>::ZERO;
    let nan = T::from_real(T::Real::NAN);
    if n == 0 {
        return;
    }
    let step = stride(n);
    let rows = split_workspace(&mut work, n * step);
    let Some(Reduced { scale, vectors, diagonal, off_diagonal }) = reduced(a, n, &mut work) else {
        w.fill(nan);
        v.fill(nan);
        return;
    };
    accumulate(vectors, (n.saturating_sub(2), 1), step, rows, par);
    // Makes the off-diagonal elements positive.
    let mut phase = T::ONE;
    for (row, off_diagonal) in rows.chunks_exact_mut(step).zip(&mut *off_diagonal) {
        if T::COMPLEX || phase.re() < zero {
            row.iter_mut().for_each(|x| *x = *x * phase);
        }
        let size = off_diagonal.abs();
        phase = if size > zero { phase * off_diagonal.over(T::from_real(size)) } else { T::ONE };
        *off_diagonal = T::from_real(size);
    }
    let (diagonal, off_diagonal) = (real_parts(diagonal, n), real_parts(off_diagonal, n));

    let (panels, notes) =
        T::parts(work).split_at_mut(rotations::panels::<T::Real>(n, n * reals_per_element::<T>()));
    let notes = &mut notes[..rotations::notes(n)];
    let (numbers, line) = (T::parts(rows), step * reals_per_element::<T>());
    let mut turned = RotationLog::new([&*numbers], (n, line), [panels], [notes], par);
    if !steps(diagonal, off_diagonal, &mut turned) {
        w.fill(nan);
        v.fill(nan);
        return;
    }
    turned.apply();
    let mut order: SmallVec<[usize; 64]> = (0..n).collect();
    order.sort_by(|&i, &j| diagonal[i].partial_cmp(&diagonal[j]).unwrap_or(std::cmp::Ordering::Equal));
    turned.write_columns(0, &order, reals_per_element::<T>(), T::parts(v), n);
    for (w, &column) in w.iter_mut().zip(&order) {
        *w = T::from_real(diagonal[column] * scale);
    }
    if eps > 0.0 {
        let eps = T::Real::from_f64(eps);
        for x in w.iter_mut().chain(v) {
            if x.abs() <= eps {
                *x = T::ZERO;
            }
        }
    }
}

/// Workspace elements of the eigenvalues of a matrix: the matrix, the reflections and the diagonals.
pub(super) fn values_workspace(n: usize) -> usize {
    (2 * n + ROWS + 2) * stride(n)
}

/// The eigenvalues, ascending, equal to those of [`factors`]: without vectors the steps take a time proportional to the
/// square of the size. All are NaN if an element is not finite or the iteration does not converge.
pub(super) fn values<T: Field>(a: &[T], n: usize, w: &mut [T], mut work: &mut [T]) {
    if n == 0 {
        return;
    }
    let nan = T::from_real(T::Real::NAN);
    let Some(Reduced { scale, vectors: _, diagonal, off_diagonal }) = reduced(a, n, &mut work) else {
        return w.fill(nan);
    };
    for x in &mut *off_diagonal {
        *x = T::from_real(x.abs());
    }
    let (diagonal, off_diagonal) = (real_parts(diagonal, n), real_parts(off_diagonal, n));
    if !steps(diagonal, off_diagonal, &mut NoVectors) {
        return w.fill(nan);
    }
    diagonal.sort_unstable_by(|x, y| x.partial_cmp(y).unwrap_or(std::cmp::Ordering::Equal));
    for (w, &value) in w.iter_mut().zip(&*diagonal) {
        *w = T::from_real(value * scale);
    }
}

/// A Hermitian matrix, divided by a power of two near its greatest magnitude and reduced to a tridiagonal one.
struct Reduced<'a, T: Field> {
    scale: T::Real,
    /// The unit vectors of the reflections.
    vectors: &'a mut [T],
    diagonal: &'a mut [T],
    off_diagonal: &'a mut [T],
}

/// Reduces the Hermitian part of a matrix; `None` if an element is not finite.
fn reduced<'a, T: Field>(a: &[T], n: usize, work: &mut &'a mut [T]) -> Option<Reduced<'a, T>> {
    let scale = scale_of(a)?;
    let step = stride(n);
    let matrix = split_workspace(work, n * step);
    let vectors = split_workspace(work, n * step);
    symmetric(a, n, scale, matrix, step);
    let (diagonal, off_diagonal) = (split_workspace(work, step), split_workspace(work, step));
    tridiagonal(matrix, (n, step), vectors, (diagonal, off_diagonal), &mut work[..ROWS * step]);
    Some(Reduced { scale, vectors, diagonal, off_diagonal })
}

/// The real parts of elements, contiguous.
pub(super) fn real_parts<T: Field>(x: &mut [T], n: usize) -> &mut [T::Real] {
    for i in 0..n {
        let re = x[i].re();
        T::parts(x)[i] = re;
    }
    &mut T::parts(x)[..n]
}

/// Writes the Hermitian part of a matrix, divided by `scale`, in zero-padded rows.
fn symmetric<T: Field>(a: &[T], n: usize, scale: T::Real, matrix: &mut [T], step: usize) {
    let half = T::Real::from_f64(0.5);
    let over = T::from_real(scale);
    for i in 0..n {
        matrix[i * step + i] = T::from_real(a[i * n + i].over(over).re());
        for j in 0..i {
            let mean = (a[i * n + j].over(over) + a[j * n + i].over(over).conj()).scaled(half);
            matrix[i * step + j] = mean;
            matrix[j * step + i] = mean.conj();
        }
        matrix[i * step + n..(i + 1) * step].fill(T::ZERO);
    }
}

/// Reflects a Hermitian matrix from both sides until only its diagonal and subdiagonal are nonzero. Row k of `vectors`
/// becomes the unit vector of the reflection that clears column k. It is zero up to column k.
///
/// Each reflection makes one pass over the matrix: the pass applies the previous reflection to the rows and multiplies
/// them by the next vector.
fn tridiagonal<T: Field>(
    a: &mut [T],
    (n, step): (usize, usize),
    vectors: &mut [T],
    (diagonal, off_diagonal): (&mut [T], &mut [T]),
    work: &mut [T],
) {
    vectors.fill(T::ZERO);
    work.fill(T::ZERO);
    off_diagonal.fill(T::ZERO);
    let mut lines = work.chunks_exact_mut(step);
    let mut next = || lines.next().expect("there is room for all rows");
    // The previous reflection, not yet applied to any row: a - v p^H - p v^H with p = 2 (a v - (v^H a v) v).
    let (mut of_v, of_p) = (next(), next());
    let (minus_v, minus_p) = (next(), next());
    let (mut conjugates, products) = (next(), next());
    let two = T::ONE + T::ONE;
    for k in 0..n {
        poll_within_chunk();
        let from = lane(k);
        let (own, rest) = a[k * step..].split_at_mut(step);
        let terms = |row: usize| {
            [
                Term { factors: &minus_v[row..], vector: &*of_p },
                Term { factors: &minus_p[row..], vector: &*of_v },
            ]
        };
        update(own, step, from, terms(k), of_v, &mut products[..1]);
        diagonal[k] = own[k];
        if k + 1 == n {
            return;
        }
        let vector = &mut vectors[k * step..(k + 1) * step];
        for (x, own) in vector[k + 1..n].iter_mut().zip(&own[k + 1..n]) {
            *x = own.conj();
        }
        if k + 2 == n {
            off_diagonal[k] = vector[k + 1];
            vector.fill(T::ZERO);
            // The last row has no reflection; only the pending update is applied to it.
        } else {
            off_diagonal[k] = reflector(&mut vector[k + 1..]).head;
        }
        for (conjugate, x) in conjugates.iter_mut().zip(&*vector) {
            *conjugate = x.conj();
        }
        update(rest, step, from, terms(k + 1), conjugates, &mut products[k + 1..n]);
        products[..k + 1].fill(T::ZERO);
        let along = inner(products, vector);
        for i in 0..step {
            let p = two * (products[i] - along * vector[i]);
            (minus_v[i], minus_p[i], of_p[i]) = (-vector[i], -p, p.conj());
        }
        std::mem::swap(&mut of_v, &mut conjugates);
    }
}

/// Implicit QR or QL steps on a real tridiagonal matrix, with Wilkinson's shifts. Logs the rotations of the vectors.
/// Returns whether all off-diagonal elements became negligible.
fn steps<R: RealField>(diagonal: &mut [R], off_diagonal: &mut [R], notes: &mut impl Rotations<R, 1>) -> bool {
    let n = diagonal.len();
    let mut last = n - 1;
    let mut ascends = true;
    let mut last_block = (n, n);
    let mut sweeps = 0;
    while last > 0 {
        let mut first = last;
        while first > 0 {
            let around = diagonal[first - 1].abs() + diagonal[first].abs();
            let off = off_diagonal[first - 1].abs();
            // After scaling the largest elements are about 1, so elements as small as `MIN_POSITIVE` are negligible.
            if off <= R::EPSILON * around || off <= R::MIN_POSITIVE {
                off_diagonal[first - 1] = R::ZERO;
                break;
            }
            first -= 1;
        }
        if first == last {
            last -= 1;
            continue;
        }
        if sweeps == MAX_SWEEPS * n {
            return false;
        }
        sweeps += 1;
        poll_within_chunk();
        // Sweeps run towards the small values, which makes them converge. A block keeps its direction while it shrinks.
        if first > last_block.1 || last < last_block.0 {
            ascends = diagonal[first].abs() >= diagonal[last].abs();
        }
        last_block = (first, last);
        notes.begin(if ascends { first } else { last }, ascends, last - first);
        sweep(&mut diagonal[first..=last], &mut off_diagonal[first..last], ascends, notes);
    }
    true
}

/// One sweep along a block, from its first row to its last or back.
fn sweep<R: RealField>(
    diagonal: &mut [R],
    off_diagonal: &mut [R],
    ascends: bool,
    notes: &mut impl Rotations<R, 1>,
) {
    let end = off_diagonal.len();
    // The index of a row, and of the element between it and the next, counted from the start of the sweep.
    let row = |i: usize| if ascends { i } else { end - i };
    let off_diagonal_index = |i: usize| if ascends { i } else { end - 1 - i };
    let two = R::ONE + R::ONE;
    let goal = diagonal[row(end)];
    let off = off_diagonal[off_diagonal_index(end - 1)];
    let tau = (diagonal[row(end - 1)] - goal) / (two * off);
    let root = (tau * tau + R::ONE).sqrt();
    let signed = if tau < R::ZERO { -root } else { root };
    let mut g = diagonal[row(0)] - goal + off / (tau + signed);
    let (mut cosine, mut sine, mut p) = (R::ONE, R::ONE, R::ZERO);
    for i in 0..end {
        let f = sine * off_diagonal[off_diagonal_index(i)];
        let b = cosine * off_diagonal[off_diagonal_index(i)];
        let r;
        (cosine, sine, r) = rotation(g, f);
        if i > 0 {
            off_diagonal[off_diagonal_index(i - 1)] = r;
        }
        let own = diagonal[row(i)] - p;
        if r == R::ZERO {
            // The block splits here. The rotations so far may have changed the sign of the off-diagonal element.
            diagonal[row(i)] = own;
            off_diagonal[off_diagonal_index(i)] = b;
            return;
        }
        let turned = (diagonal[row(i + 1)] - own) * sine + two * cosine * b;
        p = sine * turned;
        diagonal[row(i)] = own + p;
        g = cosine * turned - b;
        notes.rotate([[cosine, sine]]);
    }
    diagonal[row(end)] = diagonal[row(end)] - p;
    off_diagonal[off_diagonal_index(end - 1)] = g;
}
