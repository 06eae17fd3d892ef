//! Types of reads and writes at positions held in a tensor.

use crate::error::Result;
use crate::op::ScatterOp;
use crate::shape::{Axis, TensorType};

/// The leading axes of the indices, then the axes of `x` that no entry of a position is along.
pub(super) fn gather(x: &TensorType, indices: &TensorType, axes: &[Axis]) -> Result<TensorType> {
    todo!("{x} {indices} {axes:?}")
}

/// The shape of `x` in the merged dtype.
pub(super) fn scatter(
    op: ScatterOp,
    x: &TensorType,
    indices: &TensorType,
    updates: &TensorType,
    axes: &[Axis],
) -> Result<TensorType> {
    todo!("{op:?} {x} {indices} {updates} {axes:?}")
}
