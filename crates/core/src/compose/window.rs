//! Means of windows.

use super::accumulation_dtype;
use crate::builder::{BuildElementwise, BuildWindow, Builder, WindowOptions};
use crate::error::Result;
use crate::infer;

/// See [`BuildWindow::window_mean`].
///
/// # Errors
/// As the method.
pub fn window_mean<B: Builder>(b: &mut B, x: &B::V, window: &[i64], options: &WindowOptions) -> Result<B::V> {
    let ty = b.ty(x);
    // An error about the window must name this op, not `window_sum`.
    infer::window::position_counts("window_mean", &ty, &options.resolve("window_mean", &ty, window)?)?;
    let x = b.as_type(x, accumulation_dtype(ty.dtype))?;
    let sum = b.window_sum(x, window, options)?;
    let cells: f64 = window.iter().map(|&size| size as f64).product();
    let mean = b.divide(sum, cells)?;
    b.as_type(mean, ty.dtype.to_float())
}
