//! Reductions of all elements, of rows and of columns.

use criterion::{Criterion, criterion_group, criterion_main};
use defn::Axes;
use defn_benches::{Case, SIDES, SIZES, time, uniform};
use ndarray::{Axis, arr0};

fn whole(c: &mut Criterion) {
    for n in SIZES {
        let x = uniform(&[n]);
        // The rival's error grows with the length.
        time(c, Case::moves("sum/f32", n, n), || x.tensor.sum(Axes::All, false))
            .within(1e-3)
            .beside("ndarray", || arr0(x.array.sum()))
            .done();
        let greatest = || arr0(x.array.fold(f32::NEG_INFINITY, |greatest, &x| greatest.max(x)));
        time(c, Case::moves("reduce_max/f32", n, n), || x.tensor.reduce_max(Axes::All, false))
            .beside("ndarray", greatest)
            .done();
    }
}

fn axes(c: &mut Criterion) {
    for (group, axis) in [("sum/f32/columns", 0), ("sum/f32/rows", 1)] {
        for n in SIDES {
            let x = uniform(&[n, n]);
            time(c, Case::moves(group, format!("{n}x{n}"), n * n), || x.tensor.sum(axis, false))
                .within(1e-4)
                .beside("ndarray", || x.array.sum_axis(Axis(axis as usize)))
                .done();
        }
    }
}

criterion_group!(reduce, whole, axes);
criterion_main!(reduce);
