//! Sums over all elements, over rows and over columns.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use defn::Axes;
use defn_benches::{Case, compare, uniform};
use ndarray::{Axis, arr0};

fn whole(c: &mut Criterion) {
    for n in [8, 1 << 16, 1 << 24] {
        let x = uniform(&[n]);
        let case =
            Case { group: "sum/f32", size: n.to_string(), throughput: Throughput::Bytes(4 * n as u64) };
        // The rival's error grows with the length.
        compare(c, case, 1e-3, || x.tensor.sum(Axes::All, false), || arr0(x.array.sum()).into_dyn());
    }
}

fn axes(c: &mut Criterion) {
    for (group, axis) in [("sum/f32/columns", 0), ("sum/f32/rows", 1)] {
        for n in [4usize, 256, 4096] {
            let x = uniform(&[n, n]);
            let throughput = Throughput::Bytes(4 * (n * n) as u64);
            let case = Case { group, size: format!("{n}x{n}"), throughput };
            let ours = || x.tensor.sum(axis, false);
            compare(c, case, 1e-4, ours, || x.array.sum_axis(Axis(axis as usize)));
        }
    }
}

criterion_group!(reduce, whole, axes);
criterion_main!(reduce);
