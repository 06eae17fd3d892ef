//! Conversions between element types.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use defn::{DType, Tensor};
use defn_benches::{Case, compare, uniform};
use ndarray::ArrayD;

fn from_integers(c: &mut Criterion) {
    for n in [8, 1 << 16, 1 << 22] {
        let numbers: Vec<i32> = (0..n as i32).collect();
        let tensor = Tensor::from_slice(&numbers, &[n]).expect("there is memory for a benchmark");
        let array = ArrayD::from_shape_vec(vec![n], numbers).expect("as many numbers as the shape has");
        let throughput = Throughput::Bytes(2 * 4 * n as u64);
        let case = Case { group: "as_type/s32 to f32", size: n.to_string(), throughput };
        compare(c, case, 0.0, || tensor.as_type(DType::F32), || array.mapv(|x| x as f32));
    }
}

fn there_and_back(c: &mut Criterion) {
    for n in [8, 1 << 16, 1 << 22] {
        let x = uniform(&[n]);
        let throughput = Throughput::Bytes(2 * (4 + 8) * n as u64);
        let case = Case { group: "as_type/f32 to f64 to f32", size: n.to_string(), throughput };
        let ours = || x.tensor.as_type(DType::F64)?.as_type(DType::F32);
        compare(c, case, 0.0, ours, || x.array.mapv(f64::from).mapv(|x| x as f32));
    }
}

criterion_group!(cast, from_integers, there_and_back);
criterion_main!(cast);
