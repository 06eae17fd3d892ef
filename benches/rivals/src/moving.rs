//! Sorts, scans, transposition, and reads at positions.

use burn_tensor::{Device, Int, TensorData};
use candle_core::Device::Cpu;
use defn::{Axes, Direction, Tensor};
use ndarray::{Axis, Ix1};
use rayon::slice::ParallelSliceMut;

use crate::measure::Runner;
use crate::numbers::{Burn, Candle, CandleResult, Input, Numbers, signed, uniform};

const FAMILY: &str = "order and index";

pub fn run(runner: &Runner) {
    for (size, sizes) in [("256 K", [1, 1 << 18]), ("1024 rows of 256", [1024, 256])] {
        let x = signed(&sizes, 1.0);
        sort(runner, size, &x);
        argsort(runner, size, &x);
    }
    for (size, sizes) in [("1 M", [1, 1 << 20]), ("256 rows of 1024", [256, 1024])] {
        cumulative_sum(runner, size, &signed(&sizes, 1.0));
    }
    for n in [256, 2048] {
        transpose(runner, n);
    }
    take(runner, "64 K rows of 64", 1 << 16, 64);
    take(runner, "1 M elements", 1 << 20, 1);
}

fn sort(runner: &Runner, size: &str, x: &Input) {
    let columns = x.array.shape()[1];
    let sorted = || {
        let mut out = x.values.clone();
        out.chunks_exact_mut(columns).for_each(|row| row.sort_unstable_by(f32::total_cmp));
        out
    };
    let in_parallel = || {
        let mut out = x.values.clone();
        out.chunks_exact_mut(columns).for_each(|row| row.par_sort_unstable_by(f32::total_cmp));
        out
    };
    let mut workload = runner
        .time(FAMILY, format!("sort {size}"), || x.tensor.sort(1, Direction::Asc))
        .beside("Rust", sorted);
    if runner.threads > 1 {
        workload = workload.beside("rayon", in_parallel);
    }
    workload = workload.beside("candle", || x.candle.sort_last_dim(true).map(|(values, _)| values));
    workload
        .beside("burn", {
            let x: Burn<2> = x.burn();
            move || x.clone().sort(1)
        })
        .done();
}

/// The elements at the positions that a sort returns: positions of equal elements may differ.
fn at_positions(x: &Input, positions: Vec<f64>) -> Vec<f64> {
    let columns = x.array.shape()[1];
    let rows = positions.chunks_exact(columns).enumerate();
    rows.flat_map(|(row, at)| at.iter().map(move |&at| row * columns + at as usize))
        .map(|at| f64::from(x.values[at]))
        .collect()
}

fn argsort(runner: &Runner, size: &str, x: &Input) {
    let columns = x.array.shape()[1];
    let sorted = || {
        let mut out = vec![0u32; x.values.len()];
        for (row, values) in out.chunks_exact_mut(columns).zip(x.values.chunks_exact(columns)) {
            (0..).zip(row.iter_mut()).for_each(|(at, to)| *to = at);
            row.sort_unstable_by(|&a, &b| values[a as usize].total_cmp(&values[b as usize]));
        }
        out
    };
    runner
        .time_by(
            FAMILY,
            format!("argsort {size}"),
            || x.tensor.argsort(1, Direction::Asc),
            |y| at_positions(x, y.numbers()),
        )
        .beside_by("Rust", sorted, |y| at_positions(x, y.numbers()))
        .beside_by("candle", || x.candle.arg_sort_last_dim(true), |y| at_positions(x, y.numbers()))
        .beside_by(
            "burn",
            {
                let x: Burn<2> = x.burn();
                move || x.clone().argsort(1)
            },
            |y: &burn_tensor::Tensor<2, Int>| {
                at_positions(x, y.try_to_vec_as().expect("there is memory for a benchmark"))
            },
        )
        .done();
}

fn cumulative_sum(runner: &Runner, size: &str, x: &Input) {
    let columns = x.array.shape()[1];
    let rust = || {
        let mut out = Vec::with_capacity(x.values.len());
        for row in x.values.chunks_exact(columns) {
            let mut sum = 0f32;
            out.extend(row.iter().map(|x| {
                sum += x;
                sum
            }));
        }
        out
    };
    let ndarray = || {
        let mut sums = x.array.clone();
        sums.accumulate_axis_inplace(Axis(1), |&before, now| *now += before);
        sums
    };
    // The error of a sum in order grows with the length.
    let mut workload = runner
        .time(FAMILY, format!("cumulative sum, {size}"), || x.tensor.cumulative_sum(1, false))
        .within(1e-3)
        .beside("Rust", rust)
        .beside("ndarray", ndarray);
    // candle's is a product with a triangular matrix of ones, which would have 4 TB for the longest row.
    if columns <= 1 << 12 {
        workload = workload.beside("candle", || x.candle.cumsum(1));
    }
    workload
        .beside("burn", {
            let x: Burn<2> = x.burn();
            move || x.clone().cumsum(1)
        })
        .done();
}

fn transpose(runner: &Runner, n: usize) {
    let x = signed(&[n, n], 1.0);
    let (faer, nalgebra) = (x.faer(), x.nalgebra());
    let candle = || -> CandleResult { x.candle.t()?.contiguous() };
    // burn's transpose is a view, which cannot be copied as one operation.
    runner
        .time(FAMILY, format!("transpose {n} x {n}, f32"), || x.tensor.transpose(Axes::All))
        .beside("ndarray", || x.matrix().t().as_standard_layout().into_owned())
        .beside("nalgebra", || nalgebra.transpose())
        .beside("faer", || faer.transpose().to_owned())
        .beside("candle", candle)
        .done();
}

fn take(runner: &Runner, size: &str, rows: usize, width: usize) {
    let x = signed(&[rows, width], 1.0);
    let places: Vec<usize> =
        uniform(&[rows]).values.iter().map(|x| ((x * rows as f32) as usize).min(rows - 1)).collect();
    let narrow: Vec<i32> = places.iter().map(|&place| place as i32).collect();
    let unsigned: Vec<u32> = places.iter().map(|&place| place as u32).collect();
    let indices = Tensor::from_slice(&narrow, &[rows]).expect("there is memory for a benchmark");
    let candle = Candle::from_slice(&unsigned, rows, &Cpu).expect("there is memory for a benchmark");
    let rust = || {
        let mut out = Vec::with_capacity(rows * width);
        for &place in &places {
            out.extend_from_slice(&x.values[place * width..(place + 1) * width]);
        }
        out
    };
    let vector = x.array.view().into_shape_with_order(rows * width).expect("contiguous");
    let vector = vector.into_dimensionality::<Ix1>().expect("one axis");
    let mut workload =
        runner.time(FAMILY, format!("take {size}"), || x.tensor.take(&indices, 0)).beside("Rust", rust);
    workload = if width == 1 {
        workload.beside("ndarray", || vector.select(Axis(0), &places))
    } else {
        workload.beside("ndarray", || x.array.select(Axis(0), &places))
    };
    workload = workload.beside("candle", || x.candle.index_select(&candle, 0));
    workload
        .beside("burn", {
            let x: Burn<2> = x.burn();
            let at = burn_tensor::Tensor::<1, Int>::from_data(
                TensorData::from(narrow.as_slice()),
                &Device::flex(),
            );
            move || x.clone().select(0, at.clone())
        })
        .done();
}
