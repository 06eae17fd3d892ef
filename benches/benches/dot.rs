//! Products of matrices, of many small ones, and of a matrix with a vector.

use criterion::{Criterion, criterion_group, criterion_main};
use defn::{DType, Tensor};
use defn_benches::{Case, SIDES, time, uniform};
use ndarray::{Array3, ArrayView1, Axis, Ix1, Ix3};

/// Sides of matrices: a few vectors; in the first-level caches; three matrices in the last cache; in no cache.
const MATRICES: [usize; 4] = [4, 128, 1024, 2048];

/// The product of row-major matrices by matrixmultiply.
fn multiplied(a: &[f32], b: &[f32], n: usize) -> Vec<f32> {
    let mut out = vec![0f32; n * n];
    let step = n as isize;
    // SAFETY: each of the three has `n` rows of `n` elements, and no other code uses the last.
    unsafe {
        let (a, b, out) = (a.as_ptr(), b.as_ptr(), out.as_mut_ptr());
        matrixmultiply::sgemm(n, n, n, 1.0, a, step, 1, b, step, 1, 0.0, out, step, 1);
    }
    out
}

fn matrices(c: &mut Criterion) {
    for n in MATRICES {
        let (a, b) = (uniform(&[n, n]), uniform(&[n, n]));
        let rows = |x: &defn_benches::Input| x.array.as_slice().expect("contiguous").to_vec();
        let (x, y) = (rows(&a), rows(&b));
        // One multiplication and one addition each.
        time(c, Case::computes("dot/f32/matrices", n, 2 * n * n * n), || a.tensor.dot(&b.tensor))
            .within(1e-5)
            .beside("matrixmultiply", || multiplied(&x, &y, n))
            .beside("faer", || a.faer() * b.faer())
            .done();
    }
}

fn doubles(c: &mut Criterion) {
    for n in MATRICES {
        let (a, b) = (uniform(&[n, n]), uniform(&[n, n]));
        let wide = |x: &Tensor| x.as_type(DType::F64).expect("there is memory for a benchmark");
        let (x, y) = (wide(&a.tensor), wide(&b.tensor));
        let (a, b) = (a.matrix().mapv(f64::from), b.matrix().mapv(f64::from));
        let seen = |x: &ndarray::Array2<f64>| {
            faer::Mat::from_fn(x.nrows(), x.ncols(), |row, column| x[(row, column)])
        };
        let (columns_a, columns_b) = (seen(&a), seen(&b));
        time(c, Case::computes("dot/f64/matrices", n, 2 * n * n * n), || x.dot(&y))
            .within(1e-13)
            .beside("ndarray", || a.dot(&b))
            .beside("faer", || &columns_a * &columns_b)
            .done();
    }
}

fn narrow(c: &mut Criterion) {
    for n in MATRICES {
        let (a, b) = (uniform(&[n, n]), uniform(&[n, n]));
        let round = |x: &Tensor| x.as_type(DType::BF16).expect("there is memory for a benchmark");
        let (x, y) = (round(&a.tensor), round(&b.tensor));
        // Both factors are rounded to 8 bits, and so is the result.
        time(c, Case::computes("dot/bf16/matrices", n, 2 * n * n * n), || x.dot(&y))
            .within(2e-2)
            .gives(&a.matrix().dot(&b.matrix()))
            .done();
    }
}

fn many(c: &mut Criterion) {
    for count in [1usize, 16, 4096] {
        let (a, b) = (uniform(&[count, 32, 32]), uniform(&[count, 32, 32]));
        let view =
            |x: &defn_benches::Input| x.array.clone().into_dimensionality::<Ix3>().expect("three axes");
        let (x, y) = (view(&a), view(&b));
        let rival = || {
            let mut out = Array3::<f32>::zeros((count, 32, 32));
            for ((mut out, x), y) in out.axis_iter_mut(Axis(0)).zip(x.outer_iter()).zip(y.outer_iter()) {
                ndarray::linalg::general_mat_mul(1.0, &x, &y, 0.0, &mut out);
            }
            out
        };
        let case = Case::computes("dot/f32/many", format!("{count}x32x32"), 2 * count * 32 * 32 * 32);
        time(c, case, || a.tensor.matmul(&b.tensor)).within(1e-5).beside("ndarray", rival).done();
    }
}

fn vector(c: &mut Criterion) {
    for n in SIDES {
        let (a, b) = (uniform(&[n, n]), uniform(&[n]));
        let y: ArrayView1<'_, f32> = b.array.view().into_dimensionality::<Ix1>().expect("a vector");
        time(c, Case::moves("dot/f32/vector", n, n * n), || a.tensor.dot(&b.tensor))
            .within(1e-4)
            .beside("ndarray", || a.matrix().dot(&y))
            .done();
    }
}

criterion_group!(dot, matrices, doubles, narrow, many, vector);
criterion_main!(dot);
