//! Eigenvalues and Schur factors of real matrices: a Hessenberg matrix, and QR steps with two shifts at a time, both real or
//! conjugate, so that all numbers stay real (Francis, "The QR transformation", Computer Journal 4, 1961; Martin, Peters &
//! Wilkinson, "The QR algorithm for real Hessenberg matrices", Numer. Math. 14, 1970).
//!
//! A step reflects three rows at a time, and the same three columns. Only the next rows need the reflected columns at once. The
//! columns of the others are reflected afterwards, several rows together, along contiguous memory. Without vectors only the
//! block that is not yet decoupled changes.

use std::ops::Range;

use num_complex::Complex;

use super::field::multiplying;
use super::hessenberg::{self, reduce, scaled_rows};
use super::passes::{accumulate, stride};
use super::{Field, Products, RealField, split_workspace};
use crate::par::{Par, poll_within_chunk};

/// Most steps for one eigenvalue before the iteration gives up; two or three are usual for a pair.
const MAX_STEPS: usize = 30;

/// Steps without progress after which one step has other shifts.
const PATIENCE: usize = 10;

/// Rows whose columns are reflected together.
const HEIGHT: usize = 4;

/// The reflection `1 - (x, y, z) (1, q, r)` of three rows: `[q, r, x, y, z]`. The columns are reflected by its transpose.
type Reflection<R> = [R; 5];

/// Writes the eigenvalues of a matrix of real numbers, which the complex workspace of `schur` is large enough for. Returns
/// whether all elements are finite and the steps converged.
pub(super) fn values<R: RealField>(
    a: &[Complex<R>],
    n: usize,
    to: &mut [Complex<R>],
    work: &mut [Complex<R>],
) -> bool
where
    Complex<R>: Field<Real = R>,
{
    let step = stride(n);
    let mut work = <Complex<R> as Field>::parts(work);
    let rows = split_workspace(&mut work, n * step);
    let vectors = split_workspace(&mut work, n * step);
    let plain = &mut vectors[..n * n];
    for (to, x) in plain.iter_mut().zip(a) {
        *to = x.re;
    }
    let Some(scale) = scaled_rows(plain, n, rows, step) else { return false };
    reduce(rows, (n, step), vectors, &mut work[..hessenberg::ROWS * step]);
    let reflections = &mut work.as_chunks_mut().0[..n];
    if !iterate(rows, None, (n, step), reflections) {
        return false;
    }
    let mut k = 0;
    while k < n {
        if let Some(block) = block(rows, step, k, n) {
            [to[k], to[k + 1]] = pair(block);
            k += 2;
        } else {
            to[k] = Complex::from_real(rows[k * step + k]);
            k += 1;
        }
    }
    for value in to {
        *value = value.scaled(scale);
    }
    true
}

/// Decomposes a matrix of real numbers into real factors. `rows` becomes the factor that is triangular except for blocks of
/// two rows, divided by the scale that is returned; the rows of `columns` become the columns of the orthogonal factor.
/// Returns `None` if an element is not finite or the steps do not converge.
///
/// The results are stored as complex numbers, in rows with a stride of `step`.
pub(super) fn real_factors<R: RealField>(
    a: &[Complex<R>],
    (n, step): (usize, usize),
    (rows, columns): (&mut [Complex<R>], &mut [Complex<R>]),
    [vectors, lines]: [&mut [Complex<R>]; 2],
    par: Par,
) -> Option<R>
where
    Complex<R>: Field<Real = R>,
{
    // The real factors share the memory of the vectors. What has no use after them is kept where the results will be.
    let (h, unitary) = <Complex<R> as Field>::parts(vectors).split_at_mut(n * step);
    let plain = &mut <Complex<R> as Field>::parts(columns)[..n * n];
    for (to, x) in plain.iter_mut().zip(a) {
        *to = x.re;
    }
    let scale = scaled_rows(plain, n, h, step)?;
    let reflectors = &mut <Complex<R> as Field>::parts(rows)[..n * step];
    let work = <Complex<R> as Field>::parts(lines);
    reduce(h, (n, step), reflectors, &mut work[..hessenberg::ROWS * step]);
    accumulate(reflectors, (n.saturating_sub(2), 1), step, unitary, par);
    let reflections = &mut work.as_chunks_mut().0[..n];
    if !iterate(h, Some(unitary), (n, step), reflections) {
        return None;
    }
    for (to, from) in [(rows, h), (columns, unitary)] {
        for (to, &mut x) in to.iter_mut().zip(from) {
            *to = Complex::from_real(x);
        }
    }
    Some(scale)
}

/// The elements of the block of rows `k` and `k + 1`, if these are not decoupled.
pub(super) fn block<T: Field + PartialEq>(h: &[T], step: usize, k: usize, n: usize) -> Option<[T; 4]> {
    let own = k * step + k;
    (k + 1 < n && h[own + step] != T::ZERO).then(|| [h[own], h[own + 1], h[own + step], h[own + step + 1]])
}

/// QR steps on a Hessenberg matrix of magnitude 1 until it is triangular except for blocks of two rows. The rows of `unitary`
/// are the columns of the orthogonal factor; without it only the blocks on the diagonal are valid. Returns whether the steps
/// converged.
fn iterate<R: RealField>(
    h: &mut [R],
    mut unitary: Option<&mut [R]>,
    (n, step): (usize, usize),
    reflections: &mut [Reflection<R>],
) -> bool {
    let least = R::EPSILON * R::EPSILON;
    let (mut open, mut waited, mut steps) = (n, 0, 0);
    while open > 0 {
        let high = open - 1;
        let mut low = high;
        while low > 0 {
            let around = h[low * step + low].abs() + h[(low - 1) * step + low - 1].abs();
            let off = &mut h[low * step + low - 1];
            if off.abs() <= R::EPSILON * around || off.abs() <= least {
                *off = R::ZERO;
                break;
            }
            low -= 1;
        }
        if low + 1 >= high {
            (open, waited) = (low, 0);
            continue;
        }
        let before = (high - 1) * step + high - 1;
        let [a, b, c, d] = [h[before], h[before + 1], h[before + step], h[before + step + 1]];
        if steps == MAX_STEPS * n {
            return false;
        }
        (steps, waited) = (steps + 1, waited + 1);
        poll_within_chunk();
        // The diagonal and the product of the other elements of a matrix whose eigenvalues are the shifts.
        let shifts = if waited % PATIENCE == 0 {
            let size = c.abs() + h[before - 1].abs();
            let other = d + size * R::from_f64(0.75);
            [other, other, -(size * size * R::from_f64(0.4375))]
        } else {
            [d, a, b * c]
        };
        sweep(h, unitary.as_deref_mut(), (n, step), (low, high), shifts, reflections);
    }
    true
}

/// The eigenvalues of `((a, b), (c, d))`. Of conjugate ones the first has a positive imaginary part.
pub(super) fn pair<R: RealField>([a, b, c, d]: [R; 4]) -> [Complex<R>; 2] {
    let half = (a - d) * R::from_f64(0.5);
    let cross = b * c;
    let discriminant = half * half + cross;
    let root = discriminant.abs().sqrt();
    if discriminant < R::ZERO {
        return [Complex::new(d + half, root), Complex::new(d + half, -root)];
    }
    // Of the same sign, so that nothing cancels; the other value follows from the product of both.
    let far = half + if half < R::ZERO { -root } else { root };
    let near = if far == R::ZERO { d } else { d - cross / far };
    [Complex::new(d + far, R::ZERO), Complex::new(near, R::ZERO)]
}

/// One step on rows `low..=high`, at least three.
fn sweep<R: RealField>(
    h: &mut [R],
    mut unitary: Option<&mut [R]>,
    (n, step): (usize, usize),
    (low, high): (usize, usize),
    [x, y, cross]: [R; 3],
    reflections: &mut [Reflection<R>],
) {
    // The first column of the product of both shifted matrices. It begins at a lower row if two small elements follow each
    // other, so that their product is negligible.
    let mut first = high - 2;
    let (mut p, mut q, mut r);
    loop {
        let own = first * step + first;
        let below = own + step;
        let (to_x, to_y) = (x - h[own], y - h[own]);
        p = (to_x * to_y - cross) / h[below] + h[own + 1];
        q = h[below + 1] - h[own] - to_x - to_y;
        r = h[below + step + 1];
        let size = p.abs() + q.abs() + r.abs();
        (p, q, r) = (p / size, q / size, r / size);
        if first == low {
            break;
        }
        let off = h[own - 1].abs() * (q.abs() + r.abs());
        let around = h[own - step - 1].abs() + h[own].abs() + h[below + 1].abs();
        if off <= R::EPSILON * p.abs() * around {
            break;
        }
        first -= 1;
    }
    let (start, end) = if unitary.is_some() { (0, n) } else { (low, high + 1) };
    for k in first..high {
        let own = k * step + k;
        let is_last = k + 1 == high;
        let mut size = R::ONE;
        if k > first {
            p = h[own - 1];
            q = h[own + step - 1];
            r = if is_last { R::ZERO } else { h[own + 2 * step - 1] };
            size = p.abs() + q.abs() + r.abs();
            if size == R::ZERO {
                reflections[k] = [R::ZERO; 5];
                continue;
            }
            (p, q, r) = (p / size, q / size, r / size);
        }
        let norm = (p * p + q * q + r * r).sqrt();
        let norm = if p < R::ZERO { -norm } else { norm };
        if k > first {
            h[own - 1] = -(norm * size);
            h[own + step - 1] = R::ZERO;
            if !is_last {
                h[own + 2 * step - 1] = R::ZERO;
            }
        } else if first > low {
            h[own - 1] = -h[own - 1];
        }
        p = p + norm;
        let reflection = [q / p, r / p, p / norm, q / norm, r / norm];
        reflections[k] = reflection;
        reflect(&mut h[k * step..], step, k..end, is_last, reflection);
        if let Some(unitary) = &mut unitary {
            reflect(&mut unitary[k * step..], step, 0..n, is_last, reflection);
        }
        for i in k + 1..=high.min(k + 3) {
            let row = &mut h[i * step..(i + 1) * step];
            reflect_columns_of::<super::field::TwoRoundings, R, 1>(row, step, (k, k + 1), high, reflections);
        }
    }
    reflect_columns(h, step, start, first, high, reflections);
}

/// Reflects a range of columns of three rows, or of two where these are the last ones.
fn reflect<R: RealField>(
    rows: &mut [R],
    step: usize,
    range: Range<usize>,
    is_last: bool,
    reflection: Reflection<R>,
) {
    let (above, rest) = rows.split_at_mut(step);
    let (middle, below) = rest.split_at_mut(step);
    let (above, middle) = (&mut above[range.clone()], &mut middle[range.clone()]);
    if is_last {
        let [q, _, x, y, _] = reflection;
        for (a, b) in above.iter_mut().zip(middle) {
            let sum = *a + q * *b;
            (*a, *b) = (*a - sum * x, *b - sum * y);
        }
    } else {
        reflect_rows(above, middle, &mut below[range], reflection);
    }
}

multiplying! {
    /// Reflects three rows.
    fn reflect_rows[P; R: RealField] of [R] (
        above: &mut [R],
        middle: &mut [R],
        below: &mut [R],
        reflection: Reflection<R>,
    ) {
        let [q, r, x, y, z] = reflection;
        for ((a, b), c) in above.iter_mut().zip(middle).zip(below) {
            let sum = a.plus_product::<P>(q, *b).plus_product::<P>(r, *c);
            *a = a.plus_product::<P>(-sum, x);
            *b = b.plus_product::<P>(-sum, y);
            *c = c.plus_product::<P>(-sum, z);
        }
    }
}

/// Multiplies `ROWS` rows, a stride apart, by reflections `from..to`, whose last column is `high` at most.
#[inline(always)]
fn reflect_columns_of<P: Products, R: RealField, const ROWS: usize>(
    rows: &mut [R],
    step: usize,
    (from, to): (usize, usize),
    high: usize,
    reflections: &[Reflection<R>],
) {
    let mut first: [R; ROWS] = std::array::from_fn(|row| rows[row * step + from]);
    let mut second: [R; ROWS] = std::array::from_fn(|row| rows[row * step + from + 1]);
    for k in from..to.min(high - 1) {
        let [q, r, x, y, z] = reflections[k];
        for row in 0..ROWS {
            let (a, b, c) = (first[row], second[row], rows[row * step + k + 2]);
            let sum = (a * x).plus_product::<P>(b, y).plus_product::<P>(c, z);
            rows[row * step + k] = a - sum;
            first[row] = b.plus_product::<P>(-sum, q);
            second[row] = c.plus_product::<P>(-sum, r);
        }
    }
    let mut end = to;
    if to == high {
        // The last reflection has two columns.
        let [q, _, x, y, _] = reflections[high - 1];
        for row in 0..ROWS {
            let (a, b) = (first[row], second[row]);
            let sum = (a * x).plus_product::<P>(b, y);
            first[row] = a - sum;
            second[row] = b.plus_product::<P>(-sum, q);
        }
        end = high - 1;
    }
    for row in 0..ROWS {
        rows[row * step + end] = first[row];
        rows[row * step + end + 1] = second[row];
    }
}

multiplying! {
    /// Multiplies rows `start..=high` by the reflections from `first` on that begin at their diagonal or after it.
    fn reflect_columns[P; R: RealField] of [R] (
        h: &mut [R],
        step: usize,
        start: usize,
        first: usize,
        high: usize,
        reflections: &[Reflection<R>],
    ) {
        let mut row = start;
        while row < high {
            let height = if row + HEIGHT <= high { HEIGHT } else { 1 };
            // From here on all of the rows are reflected.
            let together = first.max(row + height - 1);
            let rows = &mut h[row * step..];
            for i in 0..height {
                let from = first.max(row + i);
                if from < together {
                    let own = &mut rows[i * step..];
                    reflect_columns_of::<P, R, 1>(own, step, (from, together), high, reflections);
                }
            }
            if height == HEIGHT {
                reflect_columns_of::<P, R, HEIGHT>(rows, step, (together, high), high, reflections);
            } else {
                reflect_columns_of::<P, R, 1>(rows, step, (together, high), high, reflections);
            }
            row += height;
        }
    }
}
