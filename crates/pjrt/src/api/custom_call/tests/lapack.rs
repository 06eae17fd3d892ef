//! Factorizations as LAPACK defines them, in plain loops over complex numbers of two f64.

use std::ops::{Add, Index, IndexMut, Mul, Sub};

/// A complex number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Complex {
    pub re: f64,
    pub im: f64,
}

impl Complex {
    pub const ONE: Complex = Complex { re: 1.0, im: 0.0 };
    pub const NAN: Complex = Complex { re: f64::NAN, im: f64::NAN };

    pub fn new(re: f64, im: f64) -> Complex {
        Complex { re, im }
    }

    pub fn conjugate(self) -> Complex {
        Complex::new(self.re, -self.im)
    }

    pub fn abs(self) -> f64 {
        self.re.hypot(self.im)
    }

    fn square(self) -> f64 {
        self.re * self.re + self.im * self.im
    }

    fn inverse(self) -> Complex {
        self.conjugate() * (1.0 / self.square())
    }
}

impl From<f64> for Complex {
    fn from(re: f64) -> Complex {
        Complex::new(re, 0.0)
    }
}

impl Add for Complex {
    type Output = Complex;

    fn add(self, other: Complex) -> Complex {
        Complex::new(self.re + other.re, self.im + other.im)
    }
}

impl Sub for Complex {
    type Output = Complex;

    fn sub(self, other: Complex) -> Complex {
        Complex::new(self.re - other.re, self.im - other.im)
    }
}

impl Mul for Complex {
    type Output = Complex;

    fn mul(self, other: Complex) -> Complex {
        Complex::new(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)
    }
}

impl Mul<f64> for Complex {
    type Output = Complex;

    fn mul(self, factor: f64) -> Complex {
        Complex::new(self.re * factor, self.im * factor)
    }
}

/// A matrix, column by column.
#[derive(Clone, Debug)]
pub struct Matrix {
    pub rows: usize,
    pub columns: usize,
    pub values: Vec<Complex>,
}

impl Index<(usize, usize)> for Matrix {
    type Output = Complex;

    fn index(&self, (i, j): (usize, usize)) -> &Complex {
        &self.values[j * self.rows + i]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut Complex {
        &mut self.values[j * self.rows + i]
    }
}

impl Matrix {
    /// The matrix whose elements are those of a function of row and column.
    pub fn from_fn(rows: usize, columns: usize, element: impl Fn(usize, usize) -> Complex) -> Matrix {
        let positions = (0..columns).flat_map(|j| (0..rows).map(move |i| (i, j)));
        Matrix { rows, columns, values: positions.map(|(i, j)| element(i, j)).collect() }
    }

    pub fn identity(rows: usize, columns: usize) -> Matrix {
        Matrix::from_fn(rows, columns, |i, j| if i == j { Complex::ONE } else { Complex::default() })
    }

    pub fn adjoint(&self) -> Matrix {
        Matrix::from_fn(self.columns, self.rows, |i, j| self[(j, i)].conjugate())
    }

    pub fn column(&self, j: usize) -> &[Complex] {
        &self.values[j * self.rows..][..self.rows]
    }

    pub fn product(&self, other: &Matrix) -> Matrix {
        assert_eq!(self.columns, other.rows);
        let left = self.adjoint();
        Matrix::from_fn(self.rows, other.columns, |i, j| inner(left.column(i), other.column(j)))
    }

    fn swap_rows(&mut self, a: usize, b: usize) {
        for j in 0..self.columns {
            self.values.swap(j * self.rows + a, j * self.rows + b);
        }
    }

    /// Columns in another order, or some of them.
    fn columns_at(&self, at: &[usize]) -> Matrix {
        Matrix::from_fn(self.rows, at.len(), |i, j| self[(i, at[j])])
    }
}

/// The inner product, with the conjugates of the first vector.
fn inner(a: &[Complex], b: &[Complex]) -> Complex {
    a.iter().zip(b).fold(Complex::default(), |sum, (&a, &b)| sum + a.conjugate() * b)
}

/// Writes the lower factor to the lower triangle; returns the order of the first pivot that is not positive, or 0.
pub fn potrf(a: &mut Matrix) -> usize {
    let n = a.rows;
    for j in 0..n {
        let pivot = (0..j).fold(a[(j, j)].re, |rest, k| rest - a[(j, k)].square());
        // NaN is not positive either.
        if pivot.is_nan() || pivot <= 0.0 {
            return j + 1;
        }
        let root = pivot.sqrt();
        a[(j, j)] = root.into();
        for i in j + 1..n {
            let rest = (0..j).fold(a[(i, j)], |rest, k| rest - a[(i, k)] * a[(j, k)].conjugate());
            a[(i, j)] = rest * (1.0 / root);
        }
    }
    0
}

/// Writes both factors; returns the rows that were exchanged, counted from 0, and the order of the first pivot that is
/// zero, or 0.
pub fn getrf(a: &mut Matrix) -> (Vec<usize>, usize) {
    let (n, mut first_zero) = (a.rows, 0);
    let pivots = (0..n).map(|j| {
        let size = |a: &Matrix, i| a[(i, j)].re.abs() + a[(i, j)].im.abs();
        let pivot = (j + 1..n).fold(j, |best, i| if size(a, i) > size(a, best) { i } else { best });
        if size(a, pivot) == 0.0 {
            first_zero = if first_zero == 0 { j + 1 } else { first_zero };
            return pivot;
        }
        a.swap_rows(j, pivot);
        let inverse = a[(j, j)].inverse();
        for i in j + 1..n {
            let factor = a[(i, j)] * inverse;
            a[(i, j)] = factor;
            for k in j + 1..n {
                a[(i, k)] = a[(i, k)] - factor * a[(j, k)];
            }
        }
        pivot
    });
    let pivots = pivots.collect();
    (pivots, first_zero)
}

/// The rows in their order after exchanges.
pub fn permutation(pivots: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..pivots.len()).collect();
    pivots.iter().enumerate().for_each(|(row, &pivot)| order.swap(row, pivot));
    order
}

/// Multiplies columns by `1 - scale v v^H`, where `v` is 1 in row `j` and below it as column `j` of `vectors`.
fn reflect(vectors: &Matrix, j: usize, scale: Complex, a: &mut Matrix, columns: std::ops::Range<usize>) {
    let m = a.rows;
    for k in columns {
        let below = inner(&vectors.column(j)[j + 1..], &a.column(k)[j + 1..]);
        let factor = scale * (a[(j, k)] + below);
        a[(j, k)] = a[(j, k)] - factor;
        for i in j + 1..m {
            a[(i, k)] = a[(i, k)] - factor * vectors[(i, j)];
        }
    }
}

/// Writes the upper factor, and the reflections' vectors below it; returns the reflections' scales.
pub fn geqrf(a: &mut Matrix) -> Vec<Complex> {
    let (m, n) = (a.rows, a.columns);
    let reflection = |j: usize| {
        let head = a[(j, j)];
        let rest = a.column(j)[j + 1..].iter().map(|x| x.square()).sum::<f64>();
        if rest == 0.0 && head.im == 0.0 {
            return Complex::default();
        }
        let edge = -(head.square() + rest).sqrt().copysign(head.re);
        let scale = (Complex::from(edge) - head) * (1.0 / edge);
        let factor = (head - edge.into()).inverse();
        (j + 1..m).for_each(|i| a[(i, j)] = a[(i, j)] * factor);
        a[(j, j)] = edge.into();
        let vectors = a.clone();
        reflect(&vectors, j, scale.conjugate(), a, j + 1..n);
        scale
    };
    (0..m.min(n)).map(reflection).collect()
}

/// The first columns of the product of reflections, as many as `packed` has.
pub fn orgqr(packed: &Matrix, scales: &[Complex]) -> Matrix {
    let width = packed.columns;
    assert!(scales.len() <= width && width <= packed.rows);
    let mut q = Matrix::identity(packed.rows, width);
    for (j, &scale) in scales.iter().enumerate().rev() {
        reflect(packed, j, scale, &mut q, 0..width);
    }
    q
}

/// A unitary combination of two columns.
struct Rotation {
    cosine: f64,
    sine: Complex,
}

impl Rotation {
    /// The one that makes the Hermitian matrix of two diagonal elements and the one above them diagonal.
    fn new(first: f64, last: f64, off: Complex) -> Rotation {
        let size = off.abs();
        let ratio = (last - first) / (2.0 * size);
        let tangent = 1.0f64.copysign(ratio) / (ratio.abs() + ratio.hypot(1.0));
        let cosine = 1.0 / tangent.hypot(1.0);
        Rotation { cosine, sine: off * (tangent * cosine / size) }
    }

    fn apply(&self, a: &mut Matrix, p: usize, q: usize) {
        for i in 0..a.rows {
            let (first, last) = (a[(i, p)], a[(i, q)]);
            a[(i, p)] = first * self.cosine - self.sine.conjugate() * last;
            a[(i, q)] = self.sine * first + last * self.cosine;
        }
    }
}

/// The pairs of columns in the order of a sweep.
fn pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |p| (p + 1..n).map(move |q| (p, q)))
}

/// More sweeps than Jacobi's method needs.
const SWEEPS: usize = 60;

/// The eigenvalues, ascending, and the eigenvectors of the Hermitian matrix of this lower triangle.
pub fn syevd(a: &Matrix) -> (Vec<f64>, Matrix) {
    let n = a.rows;
    let mut a = Matrix::from_fn(n, n, |i, j| if i > j { a[(i, j)] } else { a[(j, i)].conjugate() });
    (0..n).for_each(|i| a[(i, i)].im = 0.0);
    let mut vectors = Matrix::identity(n, n);
    for _ in 0..SWEEPS {
        for (p, q) in pairs(n) {
            if a[(p, q)].abs() > f64::EPSILON * 1e-3 * (a[(p, p)].abs() + a[(q, q)].abs()) {
                let rotation = Rotation::new(a[(p, p)].re, a[(q, q)].re, a[(p, q)]);
                rotation.apply(&mut a, p, q);
                a = a.adjoint();
                rotation.apply(&mut a, p, q);
                rotation.apply(&mut vectors, p, q);
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| a[(i, i)].re.total_cmp(&a[(j, j)].re));
    (order.iter().map(|&i| a[(i, i)].re).collect(), vectors.columns_at(&order))
}

/// The first `width` left vectors in columns, the singular values, descending, and the first `height` right vectors in
/// columns.
pub fn svd(a: &Matrix, width: usize, height: usize) -> (Matrix, Vec<f64>, Matrix) {
    let n = a.columns;
    if a.rows < n {
        let (right, values, left) = svd(&a.adjoint(), height, width);
        return (left, values, right);
    }
    let (mut columns, mut right) = (a.clone(), Matrix::identity(n, n));
    for _ in 0..SWEEPS {
        let mut has_turned = false;
        for (p, q) in pairs(n) {
            let product = |p: usize, q: usize| inner(columns.column(p), columns.column(q));
            let (first, last, off) = (product(p, p).re, product(q, q).re, product(p, q));
            if off.abs() > 1e-15 * (first * last).sqrt() {
                has_turned = true;
                let rotation = Rotation::new(first, last, off);
                rotation.apply(&mut columns, p, q);
                rotation.apply(&mut right, p, q);
            }
        }
        if !has_turned {
            break;
        }
    }
    let length = |j: usize| inner(columns.column(j), columns.column(j)).re.sqrt();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| length(j).total_cmp(&length(i)));
    let values = order.iter().map(|&j| length(j)).collect();
    // The orthogonal factor has a direction for columns of zeros too, and completes the basis.
    let mut packed = columns.columns_at(&order);
    let scales = geqrf(&mut packed);
    let padded =
        Matrix::from_fn(packed.rows, width, |i, j| if j < n { packed[(i, j)] } else { Complex::NAN });
    let mut left = orgqr(&padded, &scales);
    for j in (0..n).filter(|&j| packed[(j, j)].re < 0.0) {
        (0..left.rows).for_each(|i| left[(i, j)] = left[(i, j)] * -1.0);
    }
    let first: Vec<usize> = (0..height).collect();
    (left, values, right.columns_at(&order).columns_at(&first))
}
