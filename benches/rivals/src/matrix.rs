//! Factorizations of f64 matrices beside faer and nalgebra.
//!
//! The factors are timed. Where signs are not unique, the product of the factors is compared.

use defn::linalg::{self, QrMode};
use defn::{DType, Result, Tensor};
use faer::Side;
use faer::linalg::solvers::Solve;
use nalgebra::DVector;

use crate::dot::Wide;
use crate::measure::Runner;
use crate::numbers::{Input, Numbers, signed};

const FAMILY: &str = "linear algebra";

pub fn run(runner: &Runner) {
    for n in [64, 256] {
        let general = Wide::of(&signed(&[n, n], 1.0));
        let definite = Wide::of(&definite(n));
        cholesky(runner, n, &definite);
        solve(runner, n, &general);
        qr(runner, n, &general);
        svd(runner, n, &general);
        eigh(runner, n, &definite);
    }
}

/// A symmetric positive definite matrix with different eigenvalues.
fn definite(n: usize) -> Input {
    let mut array = signed(&[n, n], 1.0).matrix().to_owned();
    array = &array + &array.t();
    array.diag_mut().iter_mut().for_each(|x| *x += 2.0 * n as f32);
    Input::of(array.iter().copied().collect(), &[n, n])
}

fn cholesky(runner: &Runner, n: usize, x: &Wide) {
    runner
        .time(FAMILY, format!("Cholesky {n}, f64"), || linalg::cholesky(&x.tensor))
        .within(1e-12)
        .beside_by(
            "faer",
            || x.faer.llt(Side::Lower).expect("positive definite"),
            |factor| factor.L().to_owned().numbers(),
        )
        .beside_by(
            "nalgebra",
            || x.nalgebra.clone().cholesky().expect("positive definite"),
            |factor| factor.l().numbers(),
        )
        .done();
}

fn solve(runner: &Runner, n: usize, x: &Wide) {
    let b = signed(&[n], 1.0);
    let wide: Vec<f64> = b.values.iter().map(|&x| f64::from(x)).collect();
    let ours = b.tensor.as_type(DType::F64).expect("there is memory for a benchmark");
    let (faer_b, nal_b) = (faer::Col::from_fn(n, |i| wide[i]), DVector::from_column_slice(&wide));
    runner
        .time(FAMILY, format!("solve {n}, f64"), || linalg::solve(&x.tensor, &ours))
        .within(1e-9)
        .beside_by("faer", || x.faer.partial_piv_lu().solve(&faer_b), |y| y.iter().copied().collect())
        .beside_by(
            "nalgebra",
            || x.nalgebra.clone().lu().solve(&nal_b).expect("not singular"),
            |y| y.iter().copied().collect(),
        )
        .done();
}

fn qr(runner: &Runner, n: usize, x: &Wide) {
    let product = |factors: &Result<(Tensor, Tensor)>| {
        let (q, r) = factors.as_ref().expect("the operation succeeds");
        q.matmul(r).numbers()
    };
    runner
        .time_by(FAMILY, format!("QR {n}, f64"), || linalg::qr(&x.tensor, QrMode::Reduced, 0.0), product)
        .within(1e-12)
        .beside_by(
            "faer",
            || {
                let factors = x.faer.qr();
                let r = factors.thin_R().to_owned();
                (factors.compute_thin_Q(), r)
            },
            |(q, r)| (q * r).numbers(),
        )
        .beside_by(
            "nalgebra",
            || {
                let factors = x.nalgebra.clone().qr();
                (factors.q(), factors.r())
            },
            |(q, r)| (q * r).numbers(),
        )
        .done();
}

fn svd(runner: &Runner, n: usize, x: &Wide) {
    let product = |factors: &Result<(Tensor, Tensor, Tensor)>| {
        let (u, s, vh) = factors.as_ref().expect("the operation succeeds");
        s.new_axis(-2).and_then(|s| u.multiply(s)?.matmul(vh)).numbers()
    };
    runner
        .time_by(FAMILY, format!("SVD {n}, f64"), || linalg::svd(&x.tensor, 100, false), product)
        .within(1e-12)
        .beside_by(
            "faer",
            || x.faer.thin_svd().expect("it converges"),
            |factors| (factors.U() * factors.S() * factors.V().transpose()).numbers(),
        )
        .beside_by(
            "nalgebra",
            || x.nalgebra.clone().svd(true, true),
            |factors| factors.clone().recompose().expect("with both factors").numbers(),
        )
        .done();
}

fn eigh(runner: &Runner, n: usize, x: &Wide) {
    let product = |factors: &Result<(Tensor, Tensor)>| {
        let (w, v) = factors.as_ref().expect("the operation succeeds");
        w.new_axis(-2).and_then(|w| v.multiply(w)?.matmul(linalg::adjoint(v)?)).numbers()
    };
    runner
        .time_by(FAMILY, format!("eigh {n}, f64"), || linalg::eigh(&x.tensor, 1000, 0.0), product)
        .within(1e-12)
        .beside_by(
            "faer",
            || x.faer.self_adjoint_eigen(Side::Lower).expect("it converges"),
            |factors| (factors.U() * factors.S() * factors.U().transpose()).numbers(),
        )
        .beside_by(
            "nalgebra",
            || x.nalgebra.clone().symmetric_eigen(),
            |factors| factors.recompose().numbers(),
        )
        .done();
}
