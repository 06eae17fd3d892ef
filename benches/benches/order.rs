//! Sorting one row, and many, as they lie and across.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use defn::Direction;
use defn_benches::{Case, compare, uniform};
use ndarray::Axis;

fn rows(c: &mut Criterion) {
    for (group, axis) in [("sort/f32/rows", 1), ("sort/f32/columns", 0)] {
        for sizes in [[1usize, 8], [1024, 16], [1024, 1024], [1, 1 << 20]] {
            let x = uniform(&sizes);
            let throughput = Throughput::Elements((sizes[0] * sizes[1]) as u64);
            let case = Case { group, size: format!("{}x{}", sizes[0], sizes[1]), throughput };
            let rival = || {
                let mut sorted = x.array.clone();
                for mut lane in sorted.lanes_mut(Axis(axis)) {
                    let mut row = lane.to_vec();
                    row.sort_unstable_by(f32::total_cmp);
                    lane.iter_mut().zip(row).for_each(|(to, from)| *to = from);
                }
                sorted
            };
            compare(c, case, 0.0, || x.tensor.sort(axis as i64, Direction::Asc), rival);
        }
    }
}

criterion_group!(order, rows);
criterion_main!(order);
