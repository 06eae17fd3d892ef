//! Gathers and scatters at pseudo-random positions, and scans.

use criterion::{Criterion, criterion_group, criterion_main};
use defn::{Axes, Tensor};
use defn_benches::{CACHED, Case, MEMORY, SIZES, TINY, time, uniform};
use ndarray::{Axis, Ix1};

/// `count` positions below `size`, for defn and for the rival.
fn positions(count: usize, size: usize) -> (Tensor, Vec<usize>) {
    let places: Vec<usize> =
        uniform(&[count]).array.iter().map(|x| ((x * size as f32) as usize).min(size - 1)).collect();
    let narrow: Vec<i32> = places.iter().map(|&place| place as i32).collect();
    (Tensor::from_slice(&narrow, &[count]).expect("there is memory for a benchmark"), places)
}

fn reads(c: &mut Criterion) {
    for (group, width) in [("take/f32/elements", 1), ("take/f32/rows", 64)] {
        for n in [TINY, CACHED / width, MEMORY / width] {
            let x = uniform(&[n, width]);
            let (indices, places) = positions(n, n);
            time(c, Case::computes(group, n, n * width), || x.tensor.take(&indices, 0))
                .beside("ndarray", || x.array.select(Axis(0), &places))
                .done();
        }
    }
}

fn writes(c: &mut Criterion) {
    for n in SIZES {
        let (x, updates) = (uniform(&[n]), uniform(&[n]));
        let (indices, places) = positions(n, n);
        let rows = indices.new_axis(-1).expect("positions have one entry");
        let rival = || {
            let mut sum = x.array.clone();
            for (&place, update) in places.iter().zip(&updates.array) {
                sum[[place].as_slice()] += update;
            }
            sum
        };
        let ours = || x.tensor.indexed_add(&rows, &updates.tensor, Axes::All);
        time(c, Case::computes("indexed_add/f32", n, n), ours).within(1e-6).beside("loop", rival).done();
    }
}

fn scans(c: &mut Criterion) {
    for n in SIZES {
        let x = uniform(&[n]);
        let rival = || {
            let mut sums = x.array.clone().into_dimensionality::<Ix1>().expect("the rank is 1");
            sums.accumulate_axis_inplace(Axis(0), |&before, now| *now += before);
            sums.into_dyn()
        };
        // The rival's error grows with the length.
        time(c, Case::computes("cumulative_sum/f32", n, n), || x.tensor.cumulative_sum(0, false))
            .within(1e-3)
            .beside("ndarray", rival)
            .done();
    }
}

criterion_group!(index, reads, writes, scans);
criterion_main!(index);
