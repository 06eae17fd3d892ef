//! Types of ops that put elements in order.

use crate::dtype::DType;
use crate::error::Result;
use crate::shape::{Axis, TensorType};

/// The operand's type.
pub(super) fn sort(x: &TensorType, axis: Axis) -> Result<TensorType> {
    todo!("{x} {axis:?}")
}

/// Integers in the operand's shape.
pub(super) fn argsort(x: &TensorType, axis: Axis, dtype: DType) -> Result<TensorType> {
    todo!("{x} {axis:?} {dtype}")
}
