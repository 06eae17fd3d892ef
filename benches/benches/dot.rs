//! Products of matrices, and of a matrix with a vector.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use defn_benches::{Case, compare, uniform};
use ndarray::{Ix1, Ix2};

fn matrices(c: &mut Criterion) {
    for n in [4usize, 128, 1024] {
        let (a, b) = (uniform(&[n, n]), uniform(&[n, n]));
        let (x, y) = (a.array.into_dimensionality::<Ix2>(), b.array.into_dimensionality::<Ix2>());
        let (x, y) = (x.expect("a matrix"), y.expect("a matrix"));
        // A multiplication and an addition each.
        let throughput = Throughput::Elements(2 * (n * n * n) as u64);
        let case = Case { group: "dot/f32/matrices", size: n.to_string(), throughput };
        compare(c, case, 1e-5, || a.tensor.dot(&b.tensor), || x.dot(&y).into_dyn());
    }
}

fn vector(c: &mut Criterion) {
    for n in [4usize, 256, 4096] {
        let (a, b) = (uniform(&[n, n]), uniform(&[n]));
        let x = a.array.into_dimensionality::<Ix2>().expect("a matrix");
        let y = b.array.into_dimensionality::<Ix1>().expect("a vector");
        let throughput = Throughput::Bytes(4 * (n * n) as u64);
        let case = Case { group: "dot/f32/vector", size: n.to_string(), throughput };
        compare(c, case, 1e-4, || a.tensor.dot(&b.tensor), || x.dot(&y).into_dyn());
    }
}

criterion_group!(dot, matrices, vector);
criterion_main!(dot);
