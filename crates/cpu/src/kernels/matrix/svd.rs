//! Singular values: a QR factorization if the matrix is not square (Chan, "An improved algorithm for computing the
//! singular value decomposition", ACM Trans. Math. Softw. 8, 1982), reflections to a bidiagonal matrix, and QR steps on
//! the latter.

use smallvec::SmallVec;

use super::eigh::{real_parts, reals_per_element};
use super::passes::{LANES, accumulate, stride, transpose};
use super::rotations::{self, NoVectors, RotationLog};
use super::{Field, RealField, bidiagonal, golub_kahan, qr, scale_of, split_workspace};
use crate::kernels::linalg::gemm;
use crate::par::Par;

/// Workspace elements of the factors of a matrix.
pub(super) fn workspace<T: Field>(long: usize, short: usize, full: bool) -> usize {
    let (square, line) = (room_for(short), stride(short));
    let count = 4 * square + (bidiagonal::ROWS + 2) * line + 2 * rotations::notes(short);
    if long == short {
        return count;
    }
    let width = if full { long } else { short };
    let product_scratch = T::product_space([long, short, short]).max(T::product_space([short, long, short]));
    count + (2 * short + width) * stride(long) + qr::reduce_workspace(short) + short * short + product_scratch
}

/// The elements of a square in any of the layouts that it has.
fn room_for(n: usize) -> usize {
    n * n.next_multiple_of(2 * LANES)
}

/// The values, descending, and the vectors; `full` asks for all vectors of the long side. All results are NaN if an
/// element of the matrix is not finite or the iteration does not converge.
pub(super) fn factors<T: Field>(
    a: &mut [T],
    (m, n): (usize, usize),
    full: bool,
    (u, s, vh): (&mut [T], &mut [T], &mut [T]),
    mut work: &mut [T],
    par: Par,
) {
    let (long, short) = (m.max(n), m.min(n));
    if short == 0 {
        for (side, count) in [(u, m), (vh, n)] {
            side.iter_mut().step_by(count + 1).for_each(|x| *x = T::ONE);
        }
        return;
    }
    let zero = <T::Real as Field>::ZERO;
    let (square, step, far, wide) = (room_for(short), stride(short), stride(long), m < n);
    let notes = [(); 2].map(|()| split_workspace(&mut work, rotations::notes(short)));
    let Some(reduced) = reduced(a, (m, n), 2, &mut work) else {
        return spoil([u, s, vh]);
    };
    let Reduced { scale, rows, vectors: [left, right], diagonal, off_diagonal, outer } = reduced;
    let (of_left, of_right) = rows.split_at_mut(square);
    let (of_left, of_right) = (&mut of_left[..short * step], &mut of_right[..short * step]);
    accumulate(&left[..short * step], (short - 1, 0), step, of_left, par);
    accumulate(&right[..short * step], (short.saturating_sub(2), 1), step, of_right, par);
    if T::COMPLEX {
        remove_phases((&mut *diagonal, &mut *off_diagonal), of_left, of_right, step);
    }
    let (diagonal, off_diagonal) = (real_parts(diagonal, short), real_parts(off_diagonal, short));
    let parts = reals_per_element::<T>();
    let size = rotations::panels::<T::Real>(short, short * parts);
    let panels = [&mut T::parts(left)[..size], &mut T::parts(right)[..size]];
    let sides = [&*T::parts(of_left), &*T::parts(of_right)];
    let notes = notes.map(|notes| {
        let length = notes.len();
        &mut T::parts(notes)[..length]
    });
    let mut turned = RotationLog::new(sides, (short, step * parts), panels, notes, par);
    if !golub_kahan::iterate(diagonal, off_diagonal, &mut turned) {
        return spoil([u, s, vh]);
    }
    turned.apply();
    let order = descending(diagonal);
    for (i, &column) in order.iter().enumerate() {
        s[i] = T::from_real(diagonal[column].abs() * scale);
        if diagonal[column] < zero {
            turned.negate(1, column);
        }
    }

    // The vectors of the matrix, or of its transpose if it is wide: those of the long side in columns, and those of the
    // short one, whose conjugates stand in rows or, for the transpose, in columns.
    let (near, far_side) = if wide { (u, vh) } else { (vh, u) };
    if wide {
        turned.write_columns(1, &order, parts, T::parts(near), short);
    } else {
        for (&column, row) in order.iter().zip(near.chunks_exact_mut(short)) {
            turned.read(1, column, T::parts(row));
        }
    }
    if T::COMPLEX {
        near.iter_mut().for_each(|x| *x = x.conj());
    }
    let Some(reflections) = outer else {
        turned.write_columns(0, &order, parts, T::parts(far_side), n);
        return;
    };
    let width = if full { long } else { short };
    let q = split_workspace(&mut work, width * far);
    let inner = split_workspace(&mut work, short * short);
    accumulate(reflections, (short, 0), far, q, par);
    // The product is subtracted from zeros.
    if wide {
        for (&column, row) in order.iter().zip(inner.chunks_exact_mut(short)) {
            turned.read(0, column, T::parts(row));
        }
    } else {
        turned.write_columns(0, &order, parts, T::parts(inner), short);
    }
    inner.iter_mut().for_each(|x| *x = -*x);
    let inner = gemm::Matrix {
        elements: &*inner,
        free: if wide { short } else { 1 },
        along: if wide { 1 } else { short },
    };
    if wide {
        let outer = gemm::Matrix { elements: &*q, free: 1, along: far };
        T::subtract_product([short, long, short], (&inner, &outer), far_side, long, work, par);
        for (row, q) in far_side.chunks_exact_mut(long).zip(q.chunks_exact(far)).skip(short) {
            row.copy_from_slice(&q[..long]);
        }
    } else {
        let outer = gemm::Matrix { elements: &*q, free: 1, along: far };
        T::subtract_product([long, short, short], (&outer, &inner), far_side, width, work, par);
        for (j, q) in q.chunks_exact(far).enumerate().skip(short) {
            for i in 0..long {
                far_side[i * width + j] = q[i];
            }
        }
    }
}

/// Workspace elements of the values of a matrix.
pub(super) fn values_workspace(long: usize, short: usize) -> usize {
    let count = 3 * room_for(short) + (bidiagonal::ROWS + 2) * stride(short);
    if long == short {
        return count;
    }
    count + 2 * short * stride(long) + qr::reduce_workspace(short)
}

/// The values, descending, equal to those of [`factors`]: without vectors the steps take a time proportional to the square
/// of the size. All are NaN if an element of the matrix is not finite or the iteration does not converge.
pub(super) fn values<T: Field>(a: &mut [T], (m, n): (usize, usize), s: &mut [T], mut work: &mut [T]) {
    let short = m.min(n);
    if short == 0 {
        return;
    }
    let nan = T::from_real(T::Real::NAN);
    let Some(reduced) = reduced(a, (m, n), 1, &mut work) else {
        return s.fill(nan);
    };
    let Reduced { scale, rows: _, vectors: _, diagonal, off_diagonal, outer: _ } = reduced;
    if T::COMPLEX {
        diagonal.iter_mut().chain(&mut *off_diagonal).for_each(|x| *x = T::from_real(x.abs()));
    }
    let (diagonal, off_diagonal) = (real_parts(diagonal, short), real_parts(off_diagonal, short));
    if !golub_kahan::iterate(diagonal, off_diagonal, &mut NoVectors) {
        return s.fill(nan);
    }
    for (s, column) in s.iter_mut().zip(descending(diagonal)) {
        *s = T::from_real(diagonal[column].abs() * scale);
    }
}

/// A matrix, divided by a power of two near its greatest magnitude and reduced to a bidiagonal one.
struct Reduced<'a, T: Field> {
    scale: T::Real,
    /// The memory of the matrix, which is free.
    rows: &'a mut [T],
    /// The unit vectors of the reflections from the left and from the right.
    vectors: [&'a mut [T]; 2],
    diagonal: &'a mut [T],
    off_diagonal: &'a mut [T],
    /// The unit vectors of the reflections that made the matrix square, if it was not.
    outer: Option<&'a mut [T]>,
}

/// Reduces a matrix, whose memory takes so many squares; `None` if an element is not finite.
fn reduced<'a, T: Field>(
    a: &mut [T],
    (m, n): (usize, usize),
    squares: usize,
    work: &mut &'a mut [T],
) -> Option<Reduced<'a, T>> {
    let scale = scale_of(a)?;
    let (long, short) = (m.max(n), m.min(n));
    let over = T::from_real(scale);
    for x in a.iter_mut() {
        *x = x.over(over);
    }

    let (square, step, far) = (room_for(short), stride(short), stride(long));
    let rows = split_workspace(work, squares * square);
    let (left, right) = (split_workspace(work, square), split_workspace(work, square));
    let diagonal = &mut split_workspace(work, step)[..short];
    let off_diagonal = &mut split_workspace(work, step)[..short];
    // The columns of the matrix, or of its transpose if it is wide, as rows.
    let mut outer = None;
    if long > short {
        let columns = split_workspace(work, short * far);
        let reflections = split_workspace(work, short * far);
        if m < n {
            copy_rows(a, columns, (short, long, far));
        } else {
            transpose(a, n, columns, far, (m, n));
        }
        qr::reduce(columns, (long, short), far, reflections, work);
        for j in 0..short {
            let row = &mut rows[j * step..(j + 1) * step];
            row.fill(T::ZERO);
            row[..j + 1].copy_from_slice(&columns[j * far..j * far + j + 1]);
        }
        outer = Some(reflections);
    } else {
        transpose(a, n, rows, step, (m, n));
    }
    bidiagonal::reduce(
        &mut rows[..short * step],
        (short, step),
        [&mut left[..short * step], &mut right[..short * step]],
        diagonal,
        off_diagonal,
        &mut work[..bidiagonal::ROWS * step],
    );
    Some(Reduced { scale, rows, vectors: [left, right], diagonal, off_diagonal, outer })
}

/// Makes the elements of a bidiagonal matrix real and not negative. `left` and `right` hold the columns of its factors in
/// rows, which take the phases.
fn remove_phases<T: Field>(
    (diagonal, off_diagonal): (&mut [T], &mut [T]),
    left: &mut [T],
    right: &mut [T],
    step: usize,
) {
    let split = |x: &mut T| {
        let size = x.abs();
        let phase = if size > <T::Real as Field>::ZERO { x.over(T::from_real(size)) } else { T::ONE };
        *x = T::from_real(size);
        phase
    };
    let count = diagonal.len();
    let mut phase = T::ONE;
    for k in 0..count {
        right[k * step..(k + 1) * step].iter_mut().for_each(|x| *x = *x * phase);
        phase = phase * split(&mut diagonal[k]);
        left[k * step..(k + 1) * step].iter_mut().for_each(|x| *x = *x * phase);
        if k + 1 < count {
            phase = phase * split(&mut off_diagonal[k]).conj();
        }
    }
}

/// Fills all results with NaN.
fn spoil<T: Field>(out: [&mut [T]; 3]) {
    for out in out {
        out.fill(T::from_real(T::Real::NAN));
    }
}

/// Copies `short` rows of `long` elements to rows with stride `step`, padded with zeros.
fn copy_rows<T: Field>(from: &[T], to: &mut [T], (short, long, step): (usize, usize, usize)) {
    for (from, to) in from.chunks_exact(long).zip(to.chunks_exact_mut(step)).take(short) {
        to[..long].copy_from_slice(from);
        to[long..].fill(T::ZERO);
    }
}

/// The indices of values by their magnitude, the greatest first.
fn descending<R: RealField>(values: &[R]) -> SmallVec<[usize; 64]> {
    let mut order: SmallVec<[usize; 64]> = (0..values.len()).collect();
    order
        .sort_by(|&i, &j| values[j].abs().partial_cmp(&values[i].abs()).unwrap_or(std::cmp::Ordering::Equal));
    order
}
