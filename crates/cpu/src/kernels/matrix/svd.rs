//! Singular values: a QR factorization if the matrix is not square (Chan, "An improved algorithm for computing the
//! singular value decomposition", ACM Trans. Math. Softw. 8, 1982), reflections to a bidiagonal matrix, and QR steps on
//! the latter.

use smallvec::SmallVec;

use super::passes::{LANES, accumulate, stride, transpose};
use super::rotations::{self, RotationLog};
use super::{RealField, bidiagonal, golub_kahan, qr, split_workspace};
use crate::kernels::linalg::gemm::{self, Accumulation};
use crate::par::Par;

/// Workspace elements of the factors of a matrix.
pub(super) fn workspace<R: RealField>(long: usize, short: usize, full: bool) -> usize {
    let (square, line) = (room_for(short), stride(short));
    let count = 4 * square + (bidiagonal::ROWS + 2) * line + 2 * rotations::notes(short);
    if long == short {
        return count;
    }
    let width = if full { long } else { short };
    let product_scratch =
        gemm::scratch::<R>([long, short, short]).max(gemm::scratch::<R>([short, long, short]));
    count + (2 * short + width) * stride(long) + qr::reduce_workspace(short) + short * short + product_scratch
}

/// The elements of a square in any of the layouts that it has.
fn room_for(n: usize) -> usize {
    n * n.next_multiple_of(2 * LANES)
}

/// The values, descending, and the vectors; `full` asks for all vectors of the long side. All results are NaN if an
/// element of the matrix is not finite or the iteration does not converge.
pub(super) fn factors<R: RealField>(
    a: &mut [R],
    (m, n): (usize, usize),
    full: bool,
    (u, s, vh): (&mut [R], &mut [R], &mut [R]),
    mut work: &mut [R],
    par: Par,
) {
    let (long, short) = (m.max(n), m.min(n));
    if short == 0 {
        for (side, count) in [(u, m), (vh, n)] {
            side.iter_mut().step_by(count + 1).for_each(|x| *x = R::ONE);
        }
        return;
    }
    if !a.iter().all(|x| x.is_finite()) {
        return spoil([u, s, vh]);
    }
    let greatest = a.iter().fold(R::ZERO, |most, x| if x.abs() > most { x.abs() } else { most });
    // Scaling by a power of two is exact.
    let scale = if greatest > R::ZERO { greatest.power_of_two() } else { R::ONE };
    for x in a.iter_mut() {
        *x = *x / scale;
    }

    let (square, step, far) = (room_for(short), stride(short), stride(long));
    let rows = split_workspace(&mut work, 2 * square);
    let vectors = split_workspace(&mut work, 2 * square);
    let diagonal = &mut split_workspace(&mut work, step)[..short];
    let off_diagonal = &mut split_workspace(&mut work, step)[..short];
    let notes = [(); 2].map(|()| split_workspace(&mut work, rotations::notes(short)));
    let wide = m < n;
    // The columns of the matrix, or of its transpose if it is wide, as rows.
    let mut outer = None;
    if long > short {
        let columns = split_workspace(&mut work, short * far);
        let reflections = split_workspace(&mut work, short * far);
        if wide {
            copy_rows(a, columns, (short, long, far));
        } else {
            transpose(a, n, columns, far, (m, n));
        }
        qr::reduce(columns, (long, short), far, reflections, work);
        for j in 0..short {
            let row = &mut rows[j * step..(j + 1) * step];
            row.fill(R::ZERO);
            row[..j + 1].copy_from_slice(&columns[j * far..j * far + j + 1]);
        }
        outer = Some(reflections);
    } else {
        transpose(a, n, rows, step, (m, n));
    }
    let (left, right) = vectors.split_at_mut(square);
    let reduced = bidiagonal::ROWS * step;
    bidiagonal::reduce(
        &mut rows[..short * step],
        (short, step),
        [&mut left[..short * step], &mut right[..short * step]],
        diagonal,
        off_diagonal,
        &mut work[..reduced],
    );

    let (of_left, of_right) = rows.split_at_mut(square);
    let (of_left, of_right) = (&mut of_left[..short * step], &mut of_right[..short * step]);
    accumulate(&left[..short * step], (short - 1, 0), step, of_left, par);
    accumulate(&right[..short * step], (short.saturating_sub(2), 1), step, of_right, par);
    let size = rotations::panels::<R>(short, short);
    let panels = [&mut left[..size], &mut right[..size]];
    let mut turned = RotationLog::new([of_left, of_right], (short, step), panels, notes, par);
    if !golub_kahan::iterate(diagonal, off_diagonal, &mut turned) {
        return spoil([u, s, vh]);
    }
    turned.apply();
    let order = descending(diagonal);
    for (i, &column) in order.iter().enumerate() {
        s[i] = diagonal[column].abs() * scale;
        if diagonal[column] < R::ZERO {
            turned.negate(1, column);
        }
    }

    // The vectors of the matrix, or of its transpose if it is wide: those of the long side in columns, and those of the
    // short one.
    let (near, far_side) = if wide { (u, vh) } else { (vh, u) };
    let Some(reflections) = outer else {
        turned.write_columns(0, &order, 1, far_side, n);
        for (&column, row) in order.iter().zip(near.chunks_exact_mut(n)) {
            turned.read(1, column, row);
        }
        return;
    };
    if wide {
        turned.write_columns(1, &order, 1, near, short);
    } else {
        for (&column, row) in order.iter().zip(near.chunks_exact_mut(short)) {
            turned.read(1, column, row);
        }
    }
    let width = if full { long } else { short };
    let q = split_workspace(&mut work, width * far);
    let inner = split_workspace(&mut work, short * short);
    accumulate(reflections, (short, 0), far, q, par);
    for (&column, row) in order.iter().zip(inner.chunks_exact_mut(short)) {
        turned.read(0, column, row);
    }
    let outer = gemm::Matrix { elements: &*q, free: 1, along: far };
    let inner = gemm::Matrix { elements: &*inner, free: short, along: 1 };
    // SAFETY: initialised numbers are valid as `MaybeUninit`, and the callee writes only numbers.
    let space = unsafe { &mut *(std::ptr::from_mut(work) as *mut [std::mem::MaybeUninit<R>]) };
    if wide {
        assert!(far_side.len() >= width * long, "room for the vectors");
        // SAFETY: there are `width` rows of `long` elements.
        let to = unsafe { gemm::GemmOutput::new(far_side.as_mut_ptr(), long) };
        // SAFETY: as above; the first `short` of them are written.
        unsafe {
            gemm::multiply([short, long, short], &inner, &outer, to, Accumulation::Nothing, space, par)
        };
        for (row, q) in far_side.chunks_exact_mut(long).zip(q.chunks_exact(far)).skip(short) {
            row.copy_from_slice(&q[..long]);
        }
    } else {
        assert!(far_side.len() >= long * width, "room for the vectors");
        // SAFETY: there are `long` rows of `width` elements.
        let to = unsafe { gemm::GemmOutput::new(far_side.as_mut_ptr(), width) };
        // SAFETY: as above; the first `short` elements of each are written.
        unsafe {
            gemm::multiply([long, short, short], &outer, &inner, to, Accumulation::Nothing, space, par)
        };
        for (j, q) in q.chunks_exact(far).enumerate().skip(short) {
            for i in 0..long {
                far_side[i * width + j] = q[i];
            }
        }
    }
}

/// Fills all results with NaN.
fn spoil<R: RealField>(out: [&mut [R]; 3]) {
    for out in out {
        out.fill(R::NAN);
    }
}

/// Copies `short` rows of `long` elements to rows with stride `step`, padded with zeros.
fn copy_rows<R: RealField>(from: &[R], to: &mut [R], (short, long, step): (usize, usize, usize)) {
    for (from, to) in from.chunks_exact(long).zip(to.chunks_exact_mut(step)).take(short) {
        to[..long].copy_from_slice(from);
        to[long..].fill(R::ZERO);
    }
}

/// The indices of values by their magnitude, the greatest first.
fn descending<R: RealField>(values: &[R]) -> SmallVec<[usize; 64]> {
    let mut order: SmallVec<[usize; 64]> = (0..values.len()).collect();
    order
        .sort_by(|&i, &j| values[j].abs().partial_cmp(&values[i].abs()).unwrap_or(std::cmp::Ordering::Equal));
    order
}
