//! Convolutions of images.

use burn_tensor::module::conv2d;
use burn_tensor::ops::ConvOptions as BurnOptions;
use defn::{ConvOptions, WindowPadding};
use ndarray::{Array2, Array4, Axis, Ix4, s};

use crate::measure::Runner;
use crate::numbers::{Burn, Input, signed};

const FAMILY: &str = "convolution";

pub fn run(runner: &Runner) {
    conv(runner, 8, 3, 32, 64, 3);
    conv(runner, 4, 64, 64, 28, 3);
    conv(runner, 4, 128, 128, 28, 1);
}

/// By im2col: the elements under the kernel as rows of a matrix, times the kernel.
fn by_columns(x: &Input, kernel: &Input) -> Array4<f32> {
    let x = x.array.view().into_dimensionality::<Ix4>().expect("four axes");
    let (count, channels, n, _) = x.dim();
    let (features, side) = (kernel.array.shape()[0], kernel.array.shape()[2]);
    let depth = channels * side * side;
    let margin = side / 2;
    let weights = kernel.array.view().into_shape_with_order((features, depth)).expect("contiguous");
    let mut out = Array4::zeros((count, features, n, n));
    let mut under = Array2::<f32>::zeros((depth, n * n));
    let mut padded = ndarray::Array3::<f32>::zeros((channels, n + 2 * margin, n + 2 * margin));
    for (image, mut out) in x.outer_iter().zip(out.outer_iter_mut()) {
        padded.slice_mut(s![.., margin..margin + n, margin..margin + n]).assign(&image);
        let mut row = 0;
        for plane in padded.axis_iter(Axis(0)) {
            for (i, j) in (0..side).flat_map(|i| (0..side).map(move |j| (i, j))) {
                let mut to = under.row_mut(row).into_shape_with_order((n, n)).expect("contiguous");
                to.assign(&plane.slice(s![i..i + n, j..j + n]));
                row += 1;
            }
        }
        let mut out = out.view_mut().into_shape_with_order((features, n * n)).expect("contiguous");
        ndarray::linalg::general_mat_mul(1.0, &weights, &under, 0.0, &mut out);
    }
    out
}

fn conv(runner: &Runner, count: usize, channels: usize, features: usize, n: usize, side: usize) {
    let x = signed(&[count, channels, n, n], 1.0);
    let kernel = signed(&[features, channels, side, side], 1.0);
    let options = ConvOptions { padding: WindowPadding::Same, ..ConvOptions::default() };
    let name = format!("conv {side} x {side}, {count} x {channels} x {n} x {n} to {features}");
    let margin = side / 2;
    runner
        .time(FAMILY, name, || x.tensor.conv(&kernel.tensor, &options))
        .within(1e-4)
        .beside("ndarray", || by_columns(&x, &kernel))
        .beside("candle", || x.candle.conv2d(&kernel.candle, margin, 1, 1, 1))
        .beside("burn", {
            let (x, kernel): (Burn<4>, Burn<4>) = (x.burn(), kernel.burn());
            move || {
                let options = BurnOptions::new([1, 1], [margin, margin], [1, 1], 1);
                conv2d(x.clone(), kernel.clone(), None, options)
            }
        })
        .done();
}
