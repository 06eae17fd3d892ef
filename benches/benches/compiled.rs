//! Compiled functions: chains of elementwise ops, row-block fusion, and loops.

use criterion::{Criterion, criterion_group, criterion_main};
use defn::{Expr, Tensor, jit, while_};
use defn_benches::{Case, MEMORY, SIZES, TINY, time, uniform};
use ndarray::Axis;

fn chains(c: &mut Criterion) {
    for n in SIZES {
        let x = uniform(&[n]);
        let horner = jit(|x: Expr| (0..16).fold(&x * 0.5, |sum, _| sum * &x + 0.25));
        let rival = || x.array.mapv(|x| (0..16).fold(x * 0.5, |sum, _| sum * x + 0.25));
        time(c, Case::computes("horner/f32", n, 2 * 16 * n), || horner.call(x.tensor.clone()))
            .within(1e-6)
            .beside("ndarray", rival)
            .done();
        let gelu = jit(|x: Expr| &x * 0.5 * ((&x * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0));
        let logistic = jit(|x: Expr| 1.0 / ((-&x).exp() + 1.0));
        time(c, Case::moves("gelu/f32", n, 2 * n), || gelu.call(x.tensor.clone())).done();
        time(c, Case::moves("logistic/f32", n, 2 * n), || logistic.call(x.tensor.clone()))
            .within(1e-6)
            .beside("ndarray", || x.array.mapv(|x| 1.0 / ((-x).exp() + 1.0)))
            .done();
    }
}

fn rows(c: &mut Criterion) {
    for [m, n] in [[1, TINY], [64, 1024], [MEMORY / 1024, 1024], [MEMORY / 16, 16]] {
        let x = uniform(&[m, n]);
        let softmax = jit(|x: Expr| {
            let e = (&x - x.reduce_max(-1, true)).exp();
            &e / e.sum(-1, true)
        });
        let rival = || {
            let mut out = x.array.clone();
            for mut row in out.lanes_mut(Axis(1)) {
                let greatest = row.fold(f32::NEG_INFINITY, |greatest, &x| greatest.max(x));
                row.mapv_inplace(|x| (x - greatest).exp());
                let sum = row.sum();
                row.mapv_inplace(|x| x / sum);
            }
            out
        };
        let case = Case::moves("softmax/f32", format!("{m}x{n}"), 2 * m * n);
        time(c, case, || softmax.call(x.tensor.clone())).within(1e-6).beside("ndarray", rival).done();
    }
}

/// Trips of a loop that adds a half and halves.
const TRIPS: i32 = 1000;

fn loops(c: &mut Criterion) {
    let zero = Tensor::scalar(0i32).expect("there is memory for a number");
    // A scalar, whose steps run in registers, and arrays that fit the first-level and the second-level cache.
    for n in [1, 1 << 10, 1 << 16] {
        let x = uniform(&[n]);
        let walk = jit(|(start, x): (Expr, Expr)| {
            let (_, x) = while_((start, x), |(i, _)| i.less(TRIPS), |(i, x)| (i + 1, x * 0.5 + 0.5));
            x
        });
        let rival = || {
            let mut x = x.array.clone();
            for _ in 0..TRIPS {
                x.mapv_inplace(|x| x * 0.5 + 0.5);
            }
            x
        };
        let case = Case::computes("while/f32", n, TRIPS as usize * n);
        time(c, case, || walk.call((zero.clone(), x.tensor.clone())))
            .within(1e-6)
            .beside("ndarray", rival)
            .done();
    }
}

criterion_group!(compiled, chains, rows, loops);
criterion_main!(compiled);
