//! Schur factors and eigenvalues of general complex matrices: a Hessenberg matrix, QR steps with Wilkinson's shift to a
//! triangular one (Golub & Van Loan, "Matrix Computations", 4th ed. 2013, 7.5; Francis, "The QR transformation", Computer
//! Journal 4, 1961), and back substitution for its eigenvectors (7.6). Matrices of real numbers stay real up to the last
//! rotations.
//!
//! A step rotates all rows first, then all columns, so that both run along contiguous rows.

use num_complex::Complex;

use super::field::multiplying;
use super::hessenberg::{self, reduce, scaled_rows};
use super::passes::{accumulate, stride, transpose};
use super::{Field, RealField, francis, split_workspace};
use crate::kernels::linalg::gemm::Matrix;
use crate::par::{Par, poll_within_chunk};

/// Most steps for one eigenvalue before the iteration gives up; two or three are usual.
const MAX_STEPS: usize = 30;

/// Steps without progress after which one step has another shift.
const PATIENCE: usize = 10;

/// Rows whose columns are rotated together.
const HEIGHT: usize = 4;

/// The results of [`factors`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The triangular and the unitary factor.
    Factors,
    /// The eigenvalues, and eigenvectors if there is memory for them.
    Eigenvalues,
}

/// Workspace elements of the factors of a matrix: the matrix, the reflections, their product, rotations, and the space of
/// a product of matrices.
pub(super) fn workspace<T: Field>(n: usize) -> usize {
    (3 * n + hessenberg::ROWS) * stride(n) + T::product_space([n, n, n])
}

/// The triangular factor and the unitary one, or the eigenvalues and the eigenvectors in columns. All are NaN if an
/// element of the matrix is not finite or the steps do not converge.
///
/// Eigenvectors have norm 1, and their element of the greatest magnitude is positive.
pub(super) fn factors<R: RealField>(
    a: &mut [Complex<R>],
    n: usize,
    wanted: Wanted,
    (first, second): (&mut [Complex<R>], Option<&mut [Complex<R>]>),
    mut work: &mut [Complex<R>],
    par: Par,
) where
    Complex<R>: Field<Real = R>,
{
    if n == 0 {
        return;
    }
    // Without vectors, those of real numbers take a quarter of the time.
    let is_real = || a.iter().all(|x| x.im == R::ZERO);
    if wanted == Wanted::Eigenvalues && second.is_none() && is_real() && francis::values(a, n, first, work) {
        return;
    }
    let step = stride(n);
    let rows = split_workspace(&mut work, n * step);
    let vectors = split_workspace(&mut work, n * step);
    let columns = split_workspace(&mut work, n * step);
    let scale = if second.is_some() && is_real() {
        let scratch = [&mut *vectors, &mut work[..hessenberg::ROWS * step]];
        francis::real_factors(a, (n, step), (&mut *rows, &mut *columns), scratch, par).inspect(|_| {
            separate(rows, columns, (n, step), &mut work[..2 * step]);
        })
    } else {
        None
    };
    let scale = scale.or_else(|| {
        let scale = scaled_rows(a, n, rows, step)?;
        let lines = &mut work[..hessenberg::ROWS * step];
        reduce(rows, (n, step), vectors, lines);
        let unitary = if second.is_some() {
            accumulate(vectors, (n.saturating_sub(2), 1), step, columns, par);
            Some(&mut *columns)
        } else {
            None
        };
        iterate(rows, unitary, (n, step), &mut lines[..2 * step]).then_some(scale)
    });
    let Some(scale) = scale else {
        let nan = Complex::from_real(R::NAN);
        first.fill(nan);
        if let Some(second) = second {
            second.fill(nan);
        }
        return;
    };
    match wanted {
        Wanted::Factors => {
            for i in 0..n {
                for j in i..n {
                    first[i * n + j] = rows[i * step + j].scaled(scale);
                }
            }
            if let Some(unitary) = second {
                transpose(columns, step, unitary, n, (n, n));
            }
        }
        Wanted::Eigenvalues => {
            for (i, value) in first.iter_mut().enumerate() {
                *value = rows[i * step + i].scaled(scale);
            }
            let Some(to) = second else { return };
            for k in 0..n {
                poll_within_chunk();
                back_substitute(rows, step, k, &mut vectors[k * step..(k + 1) * step]);
            }
            // Row k becomes minus the k-th vector.
            rows.fill(Complex::new(R::ZERO, R::ZERO));
            let own = Matrix { elements: &*vectors, free: step, along: 1 };
            let unitary = Matrix { elements: &*columns, free: 1, along: step };
            Field::subtract_product([n, n, n], (&own, &unitary), rows, step, work, par);
            for row in rows.chunks_exact_mut(step).take(n) {
                normalize(&mut row[..n]);
            }
            transpose(rows, step, to, n, (n, n));
        }
    }
}

/// The sum of the magnitudes of the parts.
#[inline(always)]
fn size<R: RealField>(x: Complex<R>) -> R {
    x.re.abs() + x.im.abs()
}

/// The principal square root.
fn root<R: RealField>(x: Complex<R>) -> Complex<R>
where
    Complex<R>: Field<Real = R>,
{
    let length = Field::abs(x);
    if length == R::ZERO {
        return Complex::new(R::ZERO, R::ZERO);
    }
    let half = R::from_f64(0.5);
    let most = ((length + x.re.abs()) * half).sqrt();
    let least = x.im * half / most;
    if x.re >= R::ZERO {
        Complex::new(most, least)
    } else if x.im < R::ZERO {
        Complex::new(least.abs(), -most)
    } else {
        Complex::new(least.abs(), most)
    }
}

/// The eigenvalue of `((a, b), (c, d))` that is closer to `d`.
fn wilkinson<R: RealField>([a, b, c, d]: [Complex<R>; 4]) -> Complex<R>
where
    Complex<R>: Field<Real = R>,
{
    let half = (a - d).scaled(R::from_f64(0.5));
    let cross = b * c;
    let root = root(half * half + cross);
    let (plus, minus) = (half + root, half - root);
    let divisor = if size(plus) >= size(minus) { plus } else { minus };
    if size(divisor) == R::ZERO { d } else { d - cross.over(divisor) }
}

/// The real `c` and the `s` of the rotation `((c, s), (-conj(s), c))` that maps `(a, b)` to `(r, 0)`, and `r`.
#[inline(always)]
fn rotation<R: RealField>(a: Complex<R>, b: Complex<R>) -> (R, Complex<R>, Complex<R>)
where
    Complex<R>: Field<Real = R>,
{
    let squares = a.square() + b.square();
    // Squares near the smallest normal number would be inexact.
    if squares >= R::MIN_POSITIVE / R::EPSILON {
        return rotation_of_scaled(a, b, squares.sqrt());
    }
    let (size_a, size_b) = (size(a), size(b));
    let greatest = if size_a > size_b { size_a } else { size_b };
    if greatest == R::ZERO {
        return (R::ONE, Complex::new(R::ZERO, R::ZERO), Complex::new(R::ZERO, R::ZERO));
    }
    let over = Complex::from_real(greatest);
    let (a, b) = (a.over(over), b.over(over));
    let (c, s, r) = rotation_of_scaled(a, b, (a.square() + b.square()).sqrt());
    (c, s, r.scaled(greatest))
}

#[inline(always)]
fn rotation_of_scaled<R: RealField>(a: Complex<R>, b: Complex<R>, length: R) -> (R, Complex<R>, Complex<R>)
where
    Complex<R>: Field<Real = R>,
{
    let size = Field::abs(a);
    let phase =
        if size > R::ZERO { Complex::new(a.re / size, a.im / size) } else { Complex::new(R::ONE, R::ZERO) };
    let over = R::ONE / length;
    (size * over, (phase * Field::conj(b)).scaled(over), phase.scaled(length))
}

multiplying! {
    /// Replaces `x` by `c x + s y` and `y` by `c y - conj(s) x`.
    fn rotate_rows[P; R: RealField] of [R] (x: &mut [Complex<R>], y: &mut [Complex<R>], c: R, s: Complex<R>) {
        for (x, y) in x.iter_mut().zip(y) {
            let (a, b) = (*x, *y);
            *x = Complex::new(
                (a.re * c).plus_product::<P>(b.re, s.re).plus_product::<P>(-b.im, s.im),
                (a.im * c).plus_product::<P>(b.re, s.im).plus_product::<P>(b.im, s.re),
            );
            *y = Complex::new(
                (b.re * c).plus_product::<P>(-a.re, s.re).plus_product::<P>(-a.im, s.im),
                (b.im * c).plus_product::<P>(a.re, s.im).plus_product::<P>(-a.im, s.re),
            );
        }
    }
}

/// Multiplies columns `from..=to` of `ROWS` rows, a stride apart, with the adjoints of rotations: `c x + conj(s) y` replaces
/// column `j`, and `c y - s x` column `j + 1`.
#[inline(always)]
fn rotate_columns_of<P: super::Products, R: RealField, const ROWS: usize>(
    rows: &mut [Complex<R>],
    step: usize,
    (from, to): (usize, usize),
    rotations: &[Complex<R>],
) {
    let mut carried: [Complex<R>; ROWS] = std::array::from_fn(|row| rows[row * step + from]);
    for j in from..to {
        let (c, s) = (rotations[2 * j].re, rotations[2 * j + 1]);
        for (row, carried) in carried.iter_mut().enumerate() {
            let x = *carried;
            let y = rows[row * step + j + 1];
            rows[row * step + j] = Complex::new(
                (x.re * c).plus_product::<P>(y.re, s.re).plus_product::<P>(y.im, s.im),
                (x.im * c).plus_product::<P>(y.im, s.re).plus_product::<P>(-y.re, s.im),
            );
            *carried = Complex::new(
                (y.re * c).plus_product::<P>(-x.re, s.re).plus_product::<P>(x.im, s.im),
                (y.im * c).plus_product::<P>(-x.re, s.im).plus_product::<P>(-x.im, s.re),
            );
        }
    }
    for (row, carried) in carried.into_iter().enumerate() {
        rows[row * step + to] = carried;
    }
}

multiplying! {
    /// Multiplies rows `first..=high` with the adjoints of the rotations of rows `low..=high`. Below the diagonal the
    /// rows of these are zero.
    fn rotate_columns[P; R: RealField] of [R] (
        h: &mut [Complex<R>],
        step: usize,
        first: usize,
        low: usize,
        high: usize,
        rotations: &[Complex<R>],
    ) {
        let mut row = first;
        while row <= high {
            let from = low.max(row.saturating_sub(1));
            let rows = &mut h[row * step..];
            if row + HEIGHT <= high + 1 {
                rotate_columns_of::<P, R, HEIGHT>(rows, step, (from, high), rotations);
                row += HEIGHT;
            } else {
                rotate_columns_of::<P, R, 1>(rows, step, (from, high), rotations);
                row += 1;
            }
        }
    }
}

/// QR steps on a Hessenberg matrix of magnitude 1 until it is triangular. The rows of `unitary` are the columns of the
/// unitary factor; without it only the eigenvalues, on the diagonal, are valid. Returns whether the steps converged.
fn iterate<R: RealField>(
    h: &mut [Complex<R>],
    mut unitary: Option<&mut [Complex<R>]>,
    (n, step): (usize, usize),
    rotations: &mut [Complex<R>],
) -> bool
where
    Complex<R>: Field<Real = R>,
{
    let (mut high, mut waited, mut steps) = (n - 1, 0, 0);
    let least = R::EPSILON * R::EPSILON;
    while high > 0 {
        let mut low = high;
        while low > 0 {
            let sum = size(h[low * step + low]) + size(h[(low - 1) * step + low - 1]);
            let off = &mut h[low * step + low - 1];
            if size(*off) <= R::EPSILON * sum || size(*off) <= least {
                *off = Complex::new(R::ZERO, R::ZERO);
                break;
            }
            low -= 1;
        }
        if low == high {
            (high, waited) = (high - 1, 0);
            continue;
        }
        if steps == MAX_STEPS * n {
            return false;
        }
        (steps, waited) = (steps + 1, waited + 1);
        poll_within_chunk();
        let last = [(high - 1, high - 1), (high - 1, high), (high, high - 1), (high, high)];
        let last = last.map(|(i, j)| h[i * step + j]);
        let shift = if waited % PATIENCE == 0 {
            let other = Field::abs(last[2]) * R::from_f64(0.75);
            last[3] + Complex::new(other, R::ZERO)
        } else {
            wilkinson(last)
        };
        for i in low..=high {
            h[i * step + i] = h[i * step + i] - shift;
        }
        let (first, end) = if unitary.is_some() { (0, n) } else { (low, high + 1) };
        for j in low..high {
            let (c, s, r) = rotation(h[j * step + j], h[(j + 1) * step + j]);
            (rotations[2 * j], rotations[2 * j + 1]) = (Complex::new(c, R::ZERO), s);
            h[j * step + j] = r;
            h[(j + 1) * step + j] = Complex::new(R::ZERO, R::ZERO);
            let (above, below) = h[j * step..].split_at_mut(step);
            rotate_rows(&mut above[j + 1..end], &mut below[j + 1..end], c, s);
            if let Some(unitary) = &mut unitary {
                let (left, right) = unitary[j * step..].split_at_mut(step);
                rotate_rows(&mut left[..n], &mut right[..n], c, Field::conj(s));
            }
        }
        rotate_columns(h, step, first, low, high, rotations);
        for i in low..=high {
            h[i * step + i] = h[i * step + i] + shift;
        }
    }
    true
}

/// Rotates the blocks of two rows of real factors until the first factor is triangular.
fn separate<R: RealField>(
    h: &mut [Complex<R>],
    unitary: &mut [Complex<R>],
    (n, step): (usize, usize),
    rotations: &mut [Complex<R>],
) where
    Complex<R>: Field<Real = R>,
{
    for k in 0..n {
        let Some(block) = francis::block(h, step, k, n) else { continue };
        let block = block.map(|x| x.re);
        let values = francis::pair(block);
        // The vector of the first eigenvalue is rotated to the first axis.
        let [_, _, below, own] = block;
        let (c, s, _) = rotation(values[0] - Complex::from_real(own), Complex::from_real(below));
        (rotations[2 * k], rotations[2 * k + 1]) = (Complex::from_real(c), s);
        let (above, rest) = h[k * step..].split_at_mut(step);
        rotate_rows(&mut above[k..n], &mut rest[k..n], c, s);
        rotate_columns(h, step, 0, k, k + 1, rotations);
        let (left, right) = unitary[k * step..].split_at_mut(step);
        rotate_rows(&mut left[..n], &mut right[..n], c, Field::conj(s));
        // As computed from the block, so that the values of a pair are exact conjugates.
        h[k * step + k] = values[0];
        h[(k + 1) * step + k] = Complex::new(R::ZERO, R::ZERO);
        h[(k + 1) * step + k + 1] = values[1];
    }
}

/// The sum of the products of two vectors.
#[inline(always)]
fn dot<P: super::Products, R: RealField>(x: &[Complex<R>], y: &[Complex<R>]) -> Complex<R> {
    const LANES: usize = 8;
    let mut re = [R::ZERO; LANES];
    let mut im = [R::ZERO; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    let (others, other_rest) = y.as_chunks::<LANES>();
    for (x, y) in chunks.iter().zip(others) {
        for i in 0..LANES {
            re[i] = re[i].plus_product::<P>(x[i].re, y[i].re).plus_product::<P>(-x[i].im, y[i].im);
            im[i] = im[i].plus_product::<P>(x[i].re, y[i].im).plus_product::<P>(x[i].im, y[i].re);
        }
    }
    for (i, (x, y)) in rest.iter().zip(other_rest).enumerate() {
        re[i] = re[i].plus_product::<P>(x.re, y.re).plus_product::<P>(-x.im, y.im);
        im[i] = im[i].plus_product::<P>(x.re, y.im).plus_product::<P>(x.im, y.re);
    }
    let total = |x: [R; LANES]| x.into_iter().fold(R::ZERO, |sum, x| sum + x);
    Complex::new(total(re), total(im))
}

multiplying! {
    /// The eigenvector of an upper triangular matrix of magnitude 1 for its `k`-th diagonal element. Differences of
    /// eigenvalues below their rounding errors are replaced by these.
    fn substitute[P; R: RealField] of [R] (
        t: &[Complex<R>],
        step: usize,
        k: usize,
        x: &mut [Complex<R>],
        quotient: fn(Complex<R>, Complex<R>) -> Complex<R>,
    ) {
        let large = R::from_f64(1024.0);
        let value = t[k * step + k];
        let (error, least) = (R::EPSILON * size(value), R::MIN_POSITIVE / R::EPSILON * large);
        let error = if error > least { error } else { least };
        x.fill(Complex::new(R::ZERO, R::ZERO));
        x[k] = Complex::new(R::ONE, R::ZERO);
        for i in (0..k).rev() {
            let row = &t[i * step..(i + 1) * step];
            let sum = dot::<P, R>(&row[i + 1..k + 1], &x[i + 1..k + 1]);
            let difference = Complex::new(value.re - row[i].re, value.im - row[i].im);
            let difference =
                if size(difference) < error { Complex::new(error, R::ZERO) } else { difference };
            let element = quotient(sum, difference);
            x[i] = element;
            // Elements that grow without bound would overflow.
            let most = size(element);
            if most > large {
                for x in &mut x[i..k + 1] {
                    *x = Complex::new(x.re / most, x.im / most);
                }
            }
        }
    }
}

fn back_substitute<R: RealField>(t: &[Complex<R>], step: usize, k: usize, x: &mut [Complex<R>])
where
    Complex<R>: Field<Real = R>,
{
    substitute(t, step, k, x, |x, y| x.over(y));
}

/// Divides a vector by its norm and turns its greatest element to the positive axis.
fn normalize<R: RealField>(x: &mut [Complex<R>])
where
    Complex<R>: Field<Real = R>,
{
    let mut greatest = Complex::new(R::ZERO, R::ZERO);
    let (mut sum, mut most) = (R::ZERO, R::ZERO);
    for &x in &*x {
        let square = x.square();
        sum = sum + square;
        if square > most {
            (most, greatest) = (square, x);
        }
    }
    if most == R::ZERO {
        return;
    }
    let turn = Field::conj(greatest).scaled(R::ONE / (most.sqrt() * sum.sqrt()));
    for x in x {
        *x = *x * turn;
    }
}
