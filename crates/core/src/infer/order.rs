//! Types of ops that sort.

use super::reduce::{require_index, require_real};
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::{Axis, TensorType};

/// The operand's type.
pub(super) fn sort(x: &TensorType, _axis: Axis) -> Result<TensorType> {
    require_real("sort", x)?;
    Ok(x.clone())
}

/// Integers in the operand's shape.
pub(super) fn argsort(x: &TensorType, axis: Axis, dtype: DType) -> Result<TensorType> {
    require_real("argsort", x)?;
    require_index("argsort", x, Some(axis), dtype)?;
    x.with_dtype(dtype)
}
