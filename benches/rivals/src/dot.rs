//! Products of matrices, of many small ones, and of a matrix and a vector.

use defn::{DType, Tensor};
use faer::Mat;
use nalgebra::{DMatrix, DVector};
use ndarray::{Array2, Array3, Axis};

use crate::measure::Runner;
use crate::numbers::{Burn, Input, signed};

const FAMILY: &str = "dot";

pub fn run(runner: &Runner) {
    for n in [64, 256, 1024] {
        singles(runner, n);
    }
    for n in [64, 256, 1024] {
        doubles(runner, n);
    }
    batched(runner, 64, 64);
    batched(runner, 1024, 16);
    vector(runner, 256);
    vector(runner, 2048);
}

fn singles(runner: &Runner, n: usize) {
    let (a, b) = (signed(&[n, n], 1.0), signed(&[n, n], 1.0));
    let (faer_a, faer_b, nal_a, nal_b) = (a.faer(), b.faer(), a.nalgebra(), b.nalgebra());
    let multiplied = || {
        let mut out = vec![0f32; n * n];
        let step = n as isize;
        // SAFETY: each of the three has `n` rows of `n` elements, and no other code uses the last.
        unsafe {
            let (a, b, out) = (a.values.as_ptr(), b.values.as_ptr(), out.as_mut_ptr());
            matrixmultiply::sgemm(n, n, n, 1.0, a, step, 1, b, step, 1, 0.0, out, step, 1);
        }
        out
    };
    runner
        .time(FAMILY, format!("matmul {n}, f32"), || a.tensor.matmul(&b.tensor))
        .within(1e-5)
        .beside("matrixmultiply", multiplied)
        .beside("ndarray", || a.matrix().dot(&b.matrix()))
        .beside("nalgebra", || &nal_a * &nal_b)
        .beside("faer", || &faer_a * &faer_b)
        .beside("candle", || a.candle.matmul(&b.candle))
        .beside("burn", {
            let (a, b): (Burn<2>, Burn<2>) = (a.burn(), b.burn());
            move || a.clone().matmul(b.clone())
        })
        .done();
}

/// The matrix in f64, for defn and for each library by its own order of elements.
pub struct Wide {
    pub tensor: Tensor,
    pub array: Array2<f64>,
    pub faer: Mat<f64>,
    pub nalgebra: DMatrix<f64>,
    pub candle: candle_core::Tensor,
}

impl Wide {
    pub fn of(x: &Input) -> Wide {
        let array = x.matrix().mapv(f64::from);
        let (rows, columns) = array.dim();
        Wide {
            tensor: x.tensor.as_type(DType::F64).expect("there is memory for a benchmark"),
            faer: Mat::from_fn(rows, columns, |i, j| array[(i, j)]),
            nalgebra: DMatrix::from_fn(rows, columns, |i, j| array[(i, j)]),
            candle: x.candle.to_dtype(candle_core::DType::F64).expect("there is memory for a benchmark"),
            array,
        }
    }
}

fn doubles(runner: &Runner, n: usize) {
    let (a, b) = (Wide::of(&signed(&[n, n], 1.0)), Wide::of(&signed(&[n, n], 1.0)));
    runner
        .time(FAMILY, format!("matmul {n}, f64"), || a.tensor.matmul(&b.tensor))
        .within(1e-13)
        .beside("ndarray", || a.array.dot(&b.array))
        .beside("nalgebra", || &a.nalgebra * &b.nalgebra)
        .beside("faer", || &a.faer * &b.faer)
        .beside("candle", || a.candle.matmul(&b.candle))
        .done();
}

fn batched(runner: &Runner, count: usize, n: usize) {
    let (a, b) = (signed(&[count, n, n], 1.0), signed(&[count, n, n], 1.0));
    let by_matrix = || {
        let mut out = Array3::<f32>::zeros((count, n, n));
        let (a, b) = (a.matrices(), b.matrices());
        for ((mut out, a), b) in out.axis_iter_mut(Axis(0)).zip(a.outer_iter()).zip(b.outer_iter()) {
            ndarray::linalg::general_mat_mul(1.0, &a, &b, 0.0, &mut out);
        }
        out
    };
    runner
        .time(FAMILY, format!("{count} matmuls of {n}, f32"), || a.tensor.matmul(&b.tensor))
        .within(1e-5)
        .beside("ndarray", by_matrix)
        .beside("candle", || a.candle.matmul(&b.candle))
        .beside("burn", {
            let (a, b): (Burn<3>, Burn<3>) = (a.burn(), b.burn());
            move || a.clone().matmul(b.clone())
        })
        .done();
}

fn vector(runner: &Runner, n: usize) {
    let (a, b) = (signed(&[n, n], 1.0), signed(&[n], 1.0));
    let (faer_a, faer_b) = (a.faer(), faer::Col::from_fn(n, |i| b.values[i]));
    let (nal_a, nal_b) = (a.nalgebra(), DVector::from_column_slice(&b.values));
    let column = b.candle.reshape((n, 1)).expect("as many elements");
    let wide = |x: f32| f64::from(x);
    runner
        .time(FAMILY, format!("matrix x vector {n}, f32"), || a.tensor.dot(&b.tensor))
        .within(1e-5)
        .beside("ndarray", || a.matrix().dot(&b.vector()))
        .beside_by("nalgebra", || &nal_a * &nal_b, |y| y.iter().map(|&x| wide(x)).collect())
        .beside_by("faer", || &faer_a * &faer_b, |y| y.iter().map(|&x| wide(x)).collect())
        .beside("candle", || a.candle.matmul(&column))
        .beside("burn", {
            let (a, b): (Burn<2>, Burn<1>) = (a.burn(), b.burn());
            let b: Burn<2> = b.unsqueeze_dim(1);
            move || a.clone().matmul(b.clone())
        })
        .done();
}
