//! Windows, convolutions, transforms, and folds by a function.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use defn::{Axes, ConvOptions, Expr, FftLength, WindowOptions};
use defn_benches::{Case, compare, uniform};
use ndarray::{Array1, Array2, ArrayD, Axis, IxDyn, arr0};

fn windows(c: &mut Criterion) {
    let options = WindowOptions::default();
    for (group, size) in [("window_max/f32/3x3", 3usize), ("window_max/f32/64x64", 64)] {
        for n in [64usize, 256, 2048] {
            let x = uniform(&[n, n]);
            let case =
                Case { group, size: format!("{n}x{n}"), throughput: Throughput::Bytes(4 * (n * n) as u64) };
            let window = [size as i64, size as i64];
            let rival = || {
                let count = n - size + 1;
                let flat = x.array.view().into_shape_with_order((n, n)).expect("a matrix");
                let folds = flat.windows((size, size)).into_iter();
                let greatest = folds.map(|w| w.fold(f32::NEG_INFINITY, |a, &b| a.max(b))).collect();
                ArrayD::from_shape_vec(IxDyn(&[count, count]), greatest).expect("one for each place")
            };
            // The rival looks at each element of each window.
            if n * size <= 1 << 14 {
                compare(c, case, 0.0, || x.tensor.window_max(&window, &options), rival);
            } else {
                let mut group = c.benchmark_group(case.group);
                group.throughput(case.throughput);
                group.bench_function(format!("defn/{}", case.size), |b| {
                    b.iter(|| x.tensor.window_max(&window, &options));
                });
                group.finish();
            }
        }
    }
}

/// Rows of what lies under the kernel, times the kernel.
fn convolve(x: &ArrayD<f32>, kernel: &ArrayD<f32>) -> ArrayD<f32> {
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
    let shape = IxDyn(&[1, extents[0], rows, columns]);
    weights.dot(&under).into_shape_with_order(shape).expect("contiguous")
}

fn convolutions(c: &mut Criterion) {
    let options = ConvOptions::default();
    for (channels, features, n) in [(1usize, 1usize, 8usize), (1, 8, 64), (32, 32, 64), (64, 128, 128)] {
        let (x, kernel) = (uniform(&[1, channels, n, n]), uniform(&[features, channels, 3, 3]));
        let products = features * channels * 9 * (n - 2) * (n - 2);
        let case = Case {
            group: "conv/f32/3x3",
            size: format!("{channels}x{n}x{n} to {features}"),
            throughput: Throughput::Elements(products as u64),
        };
        let ours = || x.tensor.conv(&kernel.tensor, &options);
        compare(c, case, 1e-4, ours, || convolve(&x.array, &kernel.array));
    }
}

fn transforms(c: &mut Criterion) {
    for n in [8usize, 256, 1024] {
        let x = uniform(&[n, n]);
        let case = Case {
            group: "fft/c64",
            size: format!("{n}x{n}"),
            throughput: Throughput::Elements((n * n) as u64),
        };
        let turn = |i: usize, j: usize| (std::f64::consts::TAU * (i * j % n) as f64 / n as f64).cos() as f32;
        let cosines = Array2::from_shape_fn((n, n), |(i, j)| turn(i, j));
        let ours = || x.tensor.fft(-1, FftLength::Axis)?.real();
        // A rival without a transform multiplies with its matrix.
        let rival = || {
            let matrix = x.array.view().into_shape_with_order((n, n)).expect("a matrix");
            matrix.dot(&cosines).into_dyn()
        };
        compare(c, case, 1e-3, ours, rival);
    }
    let x = uniform(&[1 << 20]);
    let mut group = c.benchmark_group("fft/c64/long");
    group.throughput(Throughput::Elements(1 << 20));
    group.bench_function("defn", |b| b.iter(|| x.tensor.fft(-1, FftLength::Axis)));
    group.finish();
}

fn folds(c: &mut Criterion) {
    let fade = |x: Expr, acc: Expr| acc * 0.9 + x;
    for n in [8usize, 1 << 10, 1 << 20] {
        let x = uniform(&[n]);
        let case =
            Case { group: "reduce/f32", size: n.to_string(), throughput: Throughput::Elements(n as u64) };
        let ours = || x.tensor.reduce(0.0, Axes::All, false, fade);
        compare(c, case, 1e-4, ours, || arr0(x.array.fold(0.0, |acc, x| acc * 0.9 + x)).into_dyn());
    }
}

criterion_group!(sliding, windows, convolutions, transforms, folds);
criterion_main!(sliding);
