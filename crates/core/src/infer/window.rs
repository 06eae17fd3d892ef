//! Types of ops that slide a window.

use crate::error::Result;
use crate::op::{ConvOp, Window, WindowOp, WindowScatterOp};
use crate::shape::TensorType;

/// One element for each place of the window.
pub(super) fn window(op: WindowOp, x: &TensorType, window: &Window) -> Result<TensorType> {
    todo!("{op:?} {x} {window:?}")
}

/// The shape of `x` in the merged dtype of source and start.
pub(super) fn scatter(
    op: WindowScatterOp,
    x: &TensorType,
    source: &TensorType,
    init: &TensorType,
    window: &Window,
) -> Result<TensorType> {
    todo!("{op:?} {x} {source} {init} {window:?}")
}

/// Batch, output channels, and the places of the kernel, where the output's permutation puts them.
pub(super) fn conv(op: &ConvOp, x: &TensorType, kernel: &TensorType) -> Result<TensorType> {
    todo!("{op:?} {x} {kernel}")
}
