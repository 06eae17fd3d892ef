//! Sorting one row, many rows, and along another axis.

use criterion::{Criterion, criterion_group, criterion_main};
use defn::Direction;
use defn_benches::{Case, MEMORY, TINY, time, uniform};
use ndarray::Axis;

fn rows(c: &mut Criterion) {
    for (group, axis) in [("sort/f32/rows", 1), ("sort/f32/columns", 0)] {
        for [m, n] in [[1, TINY], [1024, 16], [1024, 1024], [1, MEMORY], [MEMORY / 1024, 1024]] {
            let x = uniform(&[m, n]);
            let rival = || {
                let mut sorted = x.array.clone();
                for mut lane in sorted.lanes_mut(Axis(axis)) {
                    let mut row = lane.to_vec();
                    row.sort_unstable_by(f32::total_cmp);
                    lane.iter_mut().zip(row).for_each(|(to, from)| *to = from);
                }
                sorted
            };
            let case = Case::computes(group, format!("{m}x{n}"), m * n);
            time(c, case, || x.tensor.sort(axis as i64, Direction::Asc)).beside("std", rival).done();
        }
    }
}

criterion_group!(order, rows);
criterion_main!(order);
