//! Reads and writes at positions that look random, and scans.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use defn::{Axes, Tensor};
use defn_benches::{Case, compare, uniform};
use ndarray::{Axis, Ix1};

/// As many positions below `size`, for either side.
fn positions(count: usize, size: usize) -> (Tensor, Vec<usize>) {
    let places: Vec<usize> =
        uniform(&[count]).array.iter().map(|x| ((x * size as f32) as usize).min(size - 1)).collect();
    let narrow: Vec<i32> = places.iter().map(|&place| place as i32).collect();
    (Tensor::from_slice(&narrow, &[count]).expect("there is memory for a benchmark"), places)
}

fn reads(c: &mut Criterion) {
    for (group, width) in [("take/f32/elements", 1), ("take/f32/rows", 64)] {
        for n in [8usize, 1 << 10, 1 << 18] {
            let x = uniform(&[n, width]);
            let (indices, places) = positions(n, n);
            let throughput = Throughput::Elements((n * width) as u64);
            let case = Case { group, size: n.to_string(), throughput };
            compare(c, case, 0.0, || x.tensor.take(&indices, 0), || x.array.select(Axis(0), &places));
        }
    }
}

fn writes(c: &mut Criterion) {
    for n in [8usize, 1 << 14, 1 << 20] {
        let (x, updates) = (uniform(&[n]), uniform(&[n]));
        let (indices, places) = positions(n, n);
        let rows = indices.new_axis(-1).expect("positions have one entry");
        let throughput = Throughput::Elements(n as u64);
        let case = Case { group: "indexed_add/f32", size: n.to_string(), throughput };
        let rival = || {
            let mut sum = x.array.clone();
            for (&place, update) in places.iter().zip(&updates.array) {
                sum[[place].as_slice()] += update;
            }
            sum
        };
        compare(c, case, 1e-6, || x.tensor.indexed_add(&rows, &updates.tensor, Axes::All), rival);
    }
}

fn scans(c: &mut Criterion) {
    for n in [8usize, 1 << 14, 1 << 20] {
        let x = uniform(&[n]);
        let throughput = Throughput::Elements(n as u64);
        let case = Case { group: "cumulative_sum/f32", size: n.to_string(), throughput };
        let rival = || {
            let mut sums = x.array.clone().into_dimensionality::<Ix1>().expect("the rank is 1");
            sums.accumulate_axis_inplace(Axis(0), |&before, now| *now += before);
            sums.into_dyn()
        };
        // The rival's error grows with the length.
        compare(c, case, 1e-3, || x.tensor.cumulative_sum(0, false), rival);
    }
}

criterion_group!(index, reads, writes, scans);
criterion_main!(index);
