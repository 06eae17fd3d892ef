//! Factorizations of one matrix, and of many small ones.
//!
//! ndarray has no factorizations: the rival is the textbook's loop over the same numbers, and where signs are free
//! what is compared is the product of the factors.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use defn::linalg::{self, QrMode, Transform};
use defn::{Result, Tensor};
use defn_benches::{Case, compare, uniform};
use ndarray::{Array2, ArrayD, ArrayView2, Axis, Ix3};

/// Symmetric positive definite matrices.
fn definite(count: usize, n: usize) -> (Tensor, ArrayD<f32>) {
    let mut array = uniform(&[count, n, n]).array.into_dimensionality::<Ix3>().expect("three axes");
    for mut matrix in array.axis_iter_mut(Axis(0)) {
        let turned = matrix.t().to_owned();
        matrix += &turned;
        matrix.diag_mut().mapv_inplace(|x| x + 2.0 * n as f32);
    }
    let numbers: Vec<f32> = array.iter().copied().collect();
    let tensor = Tensor::from_slice(&numbers, &[count, n, n]).expect("there is memory for a benchmark");
    (tensor, array.into_dyn())
}

/// Every matrix by itself.
fn each(array: &ArrayD<f32>, factor: impl Fn(ArrayView2<'_, f32>) -> Array2<f32>) -> ArrayD<f32> {
    let mut out = array.clone();
    for (mut out, matrix) in out.outer_iter_mut().zip(array.outer_iter()) {
        let matrix = matrix.into_dimensionality().expect("two axes are left");
        out.assign(&factor(matrix).into_dyn());
    }
    out
}

fn textbook_cholesky(a: ArrayView2<'_, f32>) -> Array2<f32> {
    let n = a.nrows();
    let mut l = Array2::zeros((n, n));
    for i in 0..n {
        for j in 0..=i {
            let sum: f32 = (0..j).map(|k| l[(i, k)] * l[(j, k)]).sum();
            l[(i, j)] = if i == j { (a[(i, i)] - sum).sqrt() } else { (a[(i, j)] - sum) / l[(j, j)] };
        }
    }
    l
}

fn factors(c: &mut Criterion) {
    for (count, n) in [(1, 8), (1, 64), (1, 256), (4096, 8)] {
        let (tensor, array) = definite(count, n);
        let case = |group| {
            let throughput = Throughput::Elements((count * n * n) as u64);
            Case { group, size: format!("{count}x{n}x{n}"), throughput }
        };
        compare(
            c,
            case("cholesky/f32"),
            1e-4,
            || linalg::cholesky(&tensor),
            || each(&array, textbook_cholesky),
        );
        type Factor = fn(&Tensor) -> Result<Tensor>;
        let back: [(&str, Factor); 7] = [
            ("lu/f32", |x| {
                let (p, l, u) = linalg::lu(x)?;
                p.matmul(l)?.matmul(u)
            }),
            ("solve/f32", |x| x.matmul(linalg::solve(x, x)?)),
            ("invert/f32", |x| linalg::invert(&linalg::invert(x)?)),
            ("triangular_solve/f32", |x| {
                let l = linalg::cholesky(x)?;
                let y = linalg::triangular_solve(&l, x, true, true, Transform::None)?;
                l.matmul(y)
            }),
            ("qr/f32", |x| {
                let (q, r) = linalg::qr(x, QrMode::Reduced, 0.0)?;
                q.matmul(r)
            }),
            ("eigh/f32", |x| {
                let (w, v) = linalg::eigh(x, 1000, 0.0)?;
                v.multiply(w.new_axis(-2)?)?.matmul(linalg::adjoint(&v)?)
            }),
            ("svd/f32", |x| {
                let (u, s, vh) = linalg::svd(x, 100, false)?;
                u.multiply(s.new_axis(-2)?)?.matmul(vh)
            }),
        ];
        for (group, factor) in back {
            // The time of a copy says what the elements alone cost.
            compare(c, case(group), 1e-4, || factor(&tensor), || array.clone());
        }
    }
}

criterion_group!(matrix, factors);
criterion_main!(matrix);
