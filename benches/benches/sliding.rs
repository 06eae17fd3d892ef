//! Windows, convolutions, and folds by a function.

use criterion::{Criterion, criterion_group, criterion_main};
use defn::{Axes, ConvOptions, Expr, WindowOptions};
use defn_benches::{Case, SIZES, time, uniform};
use ndarray::{Array1, Array2, ArrayD, Axis, arr0};

fn windows(c: &mut Criterion) {
    let options = WindowOptions::default();
    for (group, size) in [("window_max/f32/3x3", 3usize), ("window_max/f32/64x64", 64)] {
        for n in [64usize, 256, 4096] {
            let x = uniform(&[n, n]);
            let window = [size as i64, size as i64];
            let rival = || {
                let matrix = x.matrix();
                let folds = matrix.windows((size, size)).into_iter();
                folds.map(|w| w.fold(f32::NEG_INFINITY, |a, &b| a.max(b))).collect::<Vec<f32>>()
            };
            let case = Case::moves(group, format!("{n}x{n}"), n * n);
            let timed = time(c, case, || x.tensor.window_max(&window, &options));
            // The rival reads each element of each window.
            if n * n * size * size <= 1 << 28 {
                timed.beside("ndarray", rival).done();
            } else {
                timed.done();
            }
        }
    }
}

/// Convolution by im2col: rows of the elements under the kernel, times the kernel.
fn convolve(x: &ArrayD<f32>, kernel: &ArrayD<f32>) -> Array2<f32> {
    let (sizes, extents) = (x.shape(), kernel.shape());
    let (rows, columns) = (sizes[2] - extents[2] + 1, sizes[3] - extents[3] + 1);
    let depth: usize = extents[1..].iter().product();
    let mut under = Array2::<f32>::zeros((depth, rows * columns));
    for (channel, plane) in x.index_axis(Axis(0), 0).outer_iter().enumerate() {
        for (i, j) in (0..extents[2]).flat_map(|i| (0..extents[3]).map(move |j| (i, j))) {
            let part = plane.slice(ndarray::s![i..i + rows, j..j + columns]);
            let row = (channel * extents[2] + i) * extents[3] + j;
            under.row_mut(row).assign(&part.iter().copied().collect::<Array1<f32>>());
        }
    }
    let weights = kernel.view().into_shape_with_order((extents[0], depth)).expect("contiguous");
    weights.dot(&under)
}

fn convolutions(c: &mut Criterion) {
    let options = ConvOptions::default();
    let sizes = [(1usize, 1usize, 8usize), (1, 8, 64), (32, 32, 64), (64, 128, 128), (16, 16, 1024)];
    for (channels, features, n) in sizes {
        let (x, kernel) = (uniform(&[1, channels, n, n]), uniform(&[features, channels, 3, 3]));
        let products = features * channels * 9 * (n - 2) * (n - 2);
        let case = Case::computes("conv/f32/3x3", format!("{channels}x{n}x{n} to {features}"), products);
        time(c, case, || x.tensor.conv(&kernel.tensor, &options))
            .within(1e-4)
            .beside("ndarray", || convolve(&x.array, &kernel.array))
            .done();
    }
}

fn folds(c: &mut Criterion) {
    let fade = |x: Expr, acc: Expr| acc * 0.9 + x;
    for n in SIZES {
        let x = uniform(&[n]);
        let ours = || x.tensor.reduce(0.0, Axes::All, false, fade);
        time(c, Case::computes("reduce/f32", n, n), ours)
            .within(1e-4)
            .beside("loop", || arr0(x.array.fold(0.0, |acc, x| acc * 0.9 + x)))
            .done();
    }
}

criterion_group!(sliding, windows, convolutions, folds);
criterion_main!(sliding);
