//! Factorizations of one matrix, and of many small ones, compared with faer.
//!
//! If signs are not unique, the product of the factors is compared, which both compute.

use criterion::{Criterion, criterion_group, criterion_main};
use defn::Tensor;
use defn::linalg::{self, QrMode, Transform};
use defn_benches::{Case, Input, time, uniform};
use faer::linalg::solvers::Solve;
use faer::{Mat, MatRef, Side};
use ndarray::{Array3, Axis, Ix3};

/// The number of matrices, and the number of rows of each.
type Sizes = (usize, usize);

/// A few vectors, in the first-level caches, in the second, many small ones; a larger one if the work permits.
const SIZES: [Sizes; 5] = [(1, 8), (1, 64), (1, 256), (4096, 8), (1, 1024)];

/// Symmetric positive definite matrices.
fn definite((count, n): Sizes) -> Input {
    let mut array = uniform(&[count, n, n]).array.into_dimensionality::<Ix3>().expect("three axes");
    for mut matrix in array.axis_iter_mut(Axis(0)) {
        let turned = matrix.t().to_owned();
        matrix += &turned;
        matrix.diag_mut().mapv_inplace(|x| x + 2.0 * n as f32);
    }
    let numbers: Vec<f32> = array.iter().copied().collect();
    let tensor = Tensor::from_slice(&numbers, &[count, n, n]).expect("there is memory for a benchmark");
    Input { tensor, array: array.into_dyn() }
}

/// Factorizes each matrix.
fn each(x: &Input, factor: impl Fn(MatRef<'_, f32>) -> Mat<f32>) -> Array3<f32> {
    let [count, n, _] = x.array.shape() else { panic!("not matrices") };
    let mut out = Array3::zeros((*count, *n, *n));
    let matrices = x.array.as_slice().expect("contiguous").chunks_exact(n * n);
    for (mut out, matrix) in out.outer_iter_mut().zip(matrices) {
        let factor = factor(MatRef::from_row_major_slice(matrix, *n, *n));
        out.indexed_iter_mut().for_each(|(place, out)| *out = factor[place]);
    }
    out
}

fn compare(
    c: &mut Criterion,
    group: &'static str,
    sizes: Sizes,
    ours: impl Fn(&Tensor) -> defn::Result<Tensor>,
    theirs: impl Fn(MatRef<'_, f32>) -> Mat<f32>,
) {
    let (count, n) = sizes;
    let x = definite(sizes);
    let case = Case::computes(group, format!("{count}x{n}x{n}"), count * n * n);
    time(c, case, || ours(&x.tensor)).within(1e-4).beside("faer", || each(&x, &theirs)).done();
}

fn triangles(c: &mut Criterion) {
    for sizes in SIZES {
        compare(c, "cholesky/f32", sizes, linalg::cholesky, |x| {
            x.llt(Side::Lower).expect("positive definite").L().to_owned()
        });
        let ours = |x: &Tensor| {
            let l = linalg::cholesky(x)?;
            linalg::triangular_solve(&l, x, true, true, Transform::None)
        };
        compare(c, "triangular_solve(cholesky)/f32", sizes, ours, |x| {
            let factor = x.llt(Side::Lower).expect("positive definite");
            let mut y = x.to_owned();
            factor.L().solve_lower_triangular_in_place(&mut y);
            y
        });
    }
}

fn systems(c: &mut Criterion) {
    for sizes in SIZES {
        let back = |x: &Tensor| {
            let (p, l, u) = linalg::lu(x)?;
            p.matmul(l)?.matmul(u)
        };
        compare(c, "p * l * u/f32", sizes, back, |x| {
            let factors = x.partial_piv_lu();
            factors.P().inverse() * (factors.L() * factors.U())
        });
        let solve = |x: &Tensor| linalg::solve(x, x.matmul(x)?);
        compare(c, "solve(x, x * x)/f32", sizes, solve, |x| x.partial_piv_lu().solve(x * x));
    }
}

fn orthogonal(c: &mut Criterion) {
    for sizes in SIZES {
        let back = |x: &Tensor| {
            let (q, r) = linalg::qr(x, QrMode::Reduced, 0.0)?;
            q.matmul(r)
        };
        compare(c, "q * r/f32", sizes, back, |x| {
            let factors = x.qr();
            factors.compute_thin_Q() * factors.thin_R()
        });
    }
}

fn spectra(c: &mut Criterion) {
    for sizes in &SIZES[..4] {
        let back = |x: &Tensor| {
            let (w, v) = linalg::eigh(x, 1000, 0.0)?;
            v.multiply(w.new_axis(-2)?)?.matmul(linalg::adjoint(&v)?)
        };
        compare(c, "v * w * v'/f32", *sizes, back, |x| {
            let factors = x.self_adjoint_eigen(Side::Lower).expect("it converges");
            factors.U() * factors.S() * factors.U().transpose()
        });
        let back = |x: &Tensor| {
            let (u, s, vh) = linalg::svd(x, 100, false)?;
            u.multiply(s.new_axis(-2)?)?.matmul(vh)
        };
        compare(c, "u * s * v'/f32", *sizes, back, |x| {
            let factors = x.thin_svd().expect("it converges");
            factors.U() * factors.S() * factors.V().transpose()
        });
    }
}

criterion_group!(matrix, triangles, systems, orthogonal, spectra);
criterion_main!(matrix);
