//! Singular values by rotations of columns (Hestenes, "Inversion of matrices by biorthogonalization", J. SIAM 6,
//! 1958) after a QR factorization, which makes the columns few and short (Drmac & Veselic, "New fast and accurate
//! Jacobi SVD algorithm", SIAM J. Matrix Anal. Appl. 29, 2008).

use std::cmp::Ordering;

use defn_core::op::QrMode;

use super::{RealField, dot, qr, two_rows};

/// More sweeps than any matrix needs.
const MOST_SWEEPS: usize = 60;

/// The elements that the factors of a matrix need beside their own.
pub(super) fn workspace(long: usize, short: usize, full: bool) -> usize {
    // The matrix, its orthogonal factor, five squares, the values, and what the factorizations need.
    let width = if full { long } else { short };
    long * short + long * width + 5 * short * short + short + qr::workspace(long, short)
}

/// Splits room for so many elements off the front.
fn room<'a, T>(work: &mut &'a mut [T], count: usize) -> &'a mut [T] {
    let (part, rest) = std::mem::take(work).split_at_mut(count);
    *work = rest;
    part
}

/// The vectors on the left in columns, the values, descending, and the vectors on the right in rows. NaN where an
/// element of the matrix is not finite.
pub(super) fn factors<T: RealField>(
    a: &mut [T],
    (m, n): (usize, usize),
    (sweeps, full): (usize, bool),
    (u, s, vh): (&mut [T], &mut [T], &mut [T]),
    mut work: &mut [T],
) {
    if !a.iter().all(|x| x.is_finite()) {
        for out in [u, s, vh] {
            out.fill(T::NAN);
        }
        return;
    }
    let (long, short) = (m.max(n), m.min(n));
    let wide = m < n;
    let mode = if full { QrMode::Complete } else { QrMode::Reduced };
    let width = if full { long } else { short };
    let tall = room(&mut work, long * short);
    let outer = room(&mut work, long * width);
    outer.fill(T::ZERO);
    let greatest = a.iter().fold(T::ZERO, |most, x| if x.abs() > most { x.abs() } else { most });
    // A power of two changes no digit.
    let scale = if greatest > T::ZERO { greatest.power_of_two() } else { T::ONE };
    for i in 0..long {
        for j in 0..short {
            tall[i * short + j] = if wide { a[j * n + i] } else { a[i * n + j] } / scale;
        }
    }
    let mut squares = [(); 5].map(|()| room(&mut work, short * short));
    for square in &mut squares {
        square.fill(T::ZERO);
    }
    let [rows, turns, columns, inner, triangle] = squares;
    let values = room(&mut work, short);
    // `a` is free by now, and as large as the factor that a complete factorization gives.
    let upper = &mut a[..width.min(long) * short];
    upper.fill(T::ZERO);
    qr::factors(tall, (long, short), mode, outer, upper, work);
    rows.copy_from_slice(&upper[..short * short]);
    for i in 0..short {
        turns[i * short + i] = T::ONE;
    }
    rotate(rows, turns, short, sweeps.min(MOST_SWEEPS));

    // Rows are the columns of the triangle's transpose: their lengths are the values.
    for (row, value) in rows.chunks_exact(short.max(1)).zip(values.iter_mut()) {
        *value = dot(row, row).sqrt();
    }
    sort(rows, turns, values, short);
    for i in 0..short {
        s[i] = values[i] * scale;
        for j in 0..short {
            columns[j * short + i] = rows[i * short + j];
        }
    }
    // Dividing by the lengths would leave rows of length zero without a direction; the orthogonal factor has one
    // for each, up to a sign.
    qr::factors(columns, (short, short), QrMode::Reduced, inner, triangle, work);
    for i in 0..short {
        if triangle[i * short + i] < T::ZERO {
            for j in 0..short {
                inner[j * short + i] = -inner[j * short + i];
            }
        }
    }
    // The long side's vectors are those of the outer factor, turned; the short side's are the inner ones.
    let side = if full { long } else { short };
    for i in 0..long {
        for j in 0..side {
            let value = if j < short {
                dot(&outer[i * width..i * width + short], &turns[j * short..(j + 1) * short])
            } else {
                outer[i * width + j]
            };
            if wide {
                vh[j * n + i] = value;
            } else {
                u[i * side + j] = value;
            }
        }
    }
    for i in 0..short {
        for j in 0..short {
            if wide {
                u[i * short + j] = inner[i * short + j];
            } else {
                vh[j * n + i] = inner[i * short + j];
            }
        }
    }
}

/// Rotates rows until all are orthogonal, and the rows of `turns` with them.
fn rotate<T: RealField>(rows: &mut [T], turns: &mut [T], n: usize, sweeps: usize) {
    let small = T::EPSILON * T::from_f64((n as f64).sqrt().max(4.0));
    let two = T::ONE + T::ONE;
    for _ in 0..sweeps {
        let mut turned = false;
        for i in 0..n {
            for j in i + 1..n {
                let (x, y) = two_rows(rows, n, i, j);
                let (first, last, off) = (dot(x, x), dot(y, y), dot(x, y));
                let bound = first.sqrt() * last.sqrt();
                // Rows of nothing are orthogonal to all.
                if off.abs() <= small * bound || bound == T::ZERO {
                    continue;
                }
                turned = true;
                let tau = (last - first) / (two * off);
                let size = T::ONE / (tau.abs() + (T::ONE + tau * tau).sqrt());
                let tangent = if tau < T::ZERO { -size } else { size };
                let cosine = T::ONE / (T::ONE + tangent * tangent).sqrt();
                let sine = tangent * cosine;
                turn(x, y, cosine, sine);
                let (x, y) = two_rows(turns, n, i, j);
                turn(x, y, cosine, sine);
            }
        }
        if !turned {
            return;
        }
    }
}

/// `(x c - y s, x s + y c)`.
fn turn<T: RealField>(x: &mut [T], y: &mut [T], cosine: T, sine: T) {
    for (x, y) in x.iter_mut().zip(y) {
        (*x, *y) = (*x * cosine - *y * sine, *x * sine + *y * cosine);
    }
}

/// Brings values into descending order, and the rows of two matrices with them.
fn sort<T: RealField>(rows: &mut [T], turns: &mut [T], values: &mut [T], n: usize) {
    for i in 0..n {
        let best = (i..n).fold(i, |best, j| {
            if values[j].partial_cmp(&values[best]) == Some(Ordering::Greater) { j } else { best }
        });
        if best != i {
            values.swap(i, best);
            for matrix in [&mut *rows, &mut *turns] {
                let (x, y) = two_rows(matrix, n, i, best);
                x.swap_with_slice(y);
            }
        }
    }
}
