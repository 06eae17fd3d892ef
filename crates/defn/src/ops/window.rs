//! Windows and convolutions.

use defn_core as core;
use defn_core::builder::{Arg, BuildWindow, ConvOptions, WindowOptions};
use defn_core::{Location, Result};

use super::eager;
use crate::expr::Operand;
use crate::{Expr, Tensor};

with_operands! {
    /// The sum of the elements in each place of a window, which has a size for each axis.
    fn window_sum(; window: &[i64], options: &WindowOptions) |ops, x| ops.window_sum(x, window, options);
    /// The product of the elements in each place of a window.
    fn window_product(; window: &[i64], options: &WindowOptions)
        |ops, x| ops.window_product(x, window, options);
    /// The greatest element in each place of a window; NaN if any is.
    fn window_max(; window: &[i64], options: &WindowOptions) |ops, x| ops.window_max(x, window, options);
    /// The least element in each place of a window; NaN if any is.
    fn window_min(; window: &[i64], options: &WindowOptions) |ops, x| ops.window_min(x, window, options);
    /// The mean of each place of a window, padding counting as zeros.
    fn window_mean(; window: &[i64], options: &WindowOptions) |ops, x| ops.window_mean(x, window, options);
    /// `init` everywhere, plus each element of `source` where its window's greatest element is.
    fn window_scatter_max(source, init; window: &[i64], options: &WindowOptions)
        |ops, x| ops.window_scatter_max(x, source, init, window, options);
    /// `init` everywhere, plus each element of `source` where its window's least element is.
    fn window_scatter_min(source, init; window: &[i64], options: &WindowOptions)
        |ops, x| ops.window_scatter_min(x, source, init, window, options);
    /// Sums of products of a kernel and what it lies over, at each of its places.
    fn conv(kernel; options: &ConvOptions) |ops, x| ops.conv(x, kernel, options);
}
