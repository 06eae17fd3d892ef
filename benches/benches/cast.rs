//! Conversions between element types.

use criterion::{Criterion, criterion_group, criterion_main};
use defn::{DType, Tensor};
use defn_benches::{Case, SIZES, time, uniform};
use ndarray::Array1;

fn from_integers(c: &mut Criterion) {
    for n in SIZES {
        let numbers: Vec<i32> = (0..n as i32).collect();
        let tensor = Tensor::from_slice(&numbers, &[n]).expect("there is memory for a benchmark");
        let array = Array1::from_vec(numbers);
        time(c, Case::moves("as_type/s32 to f32", n, 2 * n), || tensor.as_type(DType::F32))
            .beside("ndarray", || array.mapv(|x| x as f32))
            .done();
    }
}

fn there_and_back(c: &mut Criterion) {
    for n in SIZES {
        let x = uniform(&[n]);
        let ours = || x.tensor.as_type(DType::F64)?.as_type(DType::F32);
        time(c, Case::moves("as_type/f32 to f64 to f32", n, 2 * (1 + 2) * n), ours)
            .beside("ndarray", || x.array.mapv(f64::from).mapv(|x| x as f32))
            .done();
    }
}

criterion_group!(cast, from_integers, there_and_back);
criterion_main!(cast);
