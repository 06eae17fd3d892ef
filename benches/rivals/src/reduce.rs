//! Reductions of all elements and of rows, and what is built from them.

use burn_tensor::activation::softmax;
use burn_tensor::module::layer_norm;
use candle_nn::ops;
use defn::{Axes, Expr, jit};
use ndarray::{ArrayD, Axis};

use crate::measure::Runner;
use crate::numbers::{Burn, CandleResult, Input, signed};

const FAMILY: &str = "reduction";

/// Rows and columns of f32 that fit the second-level cache, and that fit no cache.
const SIZES: [(&str, [usize; 2]); 2] = [("64 x 1024", [64, 1024]), ("4096 x 1024", [4096, 1024])];

pub fn run(runner: &Runner) {
    for (size, sizes) in SIZES {
        let x = signed(&sizes, 4.0);
        sums(runner, size, &x);
        logsumexp(runner, size, &x);
        softmaxes(runner, size, &x);
        layer_norms(runner, size, &x);
    }
}

fn sums(runner: &Runner, size: &str, x: &Input) {
    let vector = x.nalgebra_vector();
    // The error of a sum in order grows with the length, and the sum itself is small.
    runner
        .time(FAMILY, format!("sum of all, {size}"), || x.tensor.sum(Axes::All, false))
        .within(2e-2)
        .beside("Rust", || x.values.iter().sum::<f32>())
        .beside("ndarray", || x.array.sum())
        .beside("nalgebra", || vector.sum())
        .beside("candle", || x.candle.sum_all())
        .beside("burn", {
            let x: Burn<2> = x.burn();
            move || x.clone().sum()
        })
        .done();
    runner
        .time(FAMILY, format!("mean of rows, {size}"), || x.tensor.mean(1, false))
        .within(1e-4)
        .beside("ndarray", || x.array.mean_axis(Axis(1)).expect("rows are not empty"))
        .beside("candle", || x.candle.mean(1))
        .beside("burn", {
            let x: Burn<2> = x.burn();
            move || x.clone().mean_dim(1)
        })
        .done();
    runner
        .time(FAMILY, format!("sum of columns, {size}"), || x.tensor.sum(0, false))
        .within(1e-4)
        .beside("ndarray", || x.array.sum_axis(Axis(0)))
        .beside("candle", || x.candle.sum(0))
        .beside("burn", {
            let x: Burn<2> = x.burn();
            move || x.clone().sum_dim(0)
        })
        .done();
}

fn logsumexp(runner: &Runner, size: &str, x: &Input) {
    let ours = jit(|x: Expr| x.logsumexp(1, false));
    let by_row = || {
        x.matrix().map_axis(Axis(1), |row| {
            let greatest = row.fold(f32::NEG_INFINITY, |greatest, &x| greatest.max(x));
            row.fold(0f32, |sum, &x| sum + (x - greatest).exp()).ln() + greatest
        })
    };
    runner
        .time(FAMILY, format!("logsumexp of rows, {size}"), || ours.call(x.tensor.clone()))
        .within(1e-5)
        .beside("ndarray", by_row)
        .beside("candle", || x.candle.log_sum_exp(1))
        .beside("burn", {
            let x: Burn<2> = x.burn();
            move || {
                let greatest = x.clone().max_dim(1);
                (x.clone() - greatest.clone()).exp().sum_dim(1).log() + greatest
            }
        })
        .done();
}

fn softmaxes(runner: &Runner, size: &str, x: &Input) {
    let ours = jit(|x: Expr| {
        let e = (&x - x.reduce_max(1, true)).exp();
        &e / e.sum(1, true)
    });
    let by_row = || {
        let mut out = x.array.clone();
        for mut row in out.lanes_mut(Axis(1)) {
            let greatest = row.fold(f32::NEG_INFINITY, |greatest, &x| greatest.max(x));
            row.mapv_inplace(|x| (x - greatest).exp());
            let scale = 1.0 / row.sum();
            row.mapv_inplace(|x| x * scale);
        }
        out
    };
    runner
        .time(FAMILY, format!("softmax of rows, {size}"), || ours.call(x.tensor.clone()))
        .within(1e-5)
        .beside("ndarray", by_row)
        .beside("candle", || ops::softmax_last_dim(&x.candle))
        .beside("burn", {
            let x: Burn<2> = x.burn();
            move || softmax(x.clone(), 1)
        })
        .done();
}

fn layer_norms(runner: &Runner, size: &str, x: &Input) {
    let width = x.array.shape()[1];
    let (scale, offset) = (signed(&[width], 1.0), signed(&[width], 0.5));
    let ours = jit(|(x, scale, offset): (Expr, Expr, Expr)| {
        let spread = x.variance(-1, true, 0) + 1e-5;
        (&x - x.mean(-1, true)) / spread.sqrt() * scale + offset
    });
    let by_row = || -> ArrayD<f32> {
        let mut out = x.array.clone();
        for mut row in out.lanes_mut(Axis(1)) {
            let mean = row.sum() / width as f32;
            let squares = row.fold(0f32, |sum, &x| sum + (x - mean) * (x - mean));
            let inverse = 1.0 / (squares / width as f32 + 1e-5).sqrt();
            for ((x, scale), offset) in row.iter_mut().zip(&scale.values).zip(&offset.values) {
                *x = (*x - mean) * inverse * scale + offset;
            }
        }
        out
    };
    let candle = || -> CandleResult { ops::layer_norm(&x.candle, &scale.candle, &offset.candle, 1e-5) };
    let call = || ours.call((x.tensor.clone(), scale.tensor.clone(), offset.tensor.clone()));
    runner
        .time(FAMILY, format!("layer norm, {size}"), call)
        .within(1e-5)
        .beside("ndarray", by_row)
        .beside("candle", candle)
        .beside("burn", {
            let (x, scale, offset): (Burn<2>, Burn<1>, Burn<1>) = (x.burn(), scale.burn(), offset.burn());
            move || layer_norm(x.clone(), scale.clone(), Some(offset.clone()), 1e-5)
        })
        .done();
}
