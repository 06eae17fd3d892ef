//! Types of tensors without operands.

use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::shape::{Axis, AxisRef, Shape, TensorType};

/// The axis must exist, if given, and the dtype must be numeric.
pub(super) fn iota(shape: &Shape, dtype: DType, axis: Option<Axis>) -> Result<TensorType> {
    if let Some(axis) = axis {
        shape.resolve("iota", &AxisRef::from(axis))?;
    }
    if dtype.is_bool() {
        return Err(ErrorKind::ConstantDType { op: "iota", dtype, required: "the dtype of a number" }.into());
    }
    TensorType::new(dtype, shape.clone())
}

/// The diagonal of the last two axes.
pub(super) fn eye(shape: &Shape, dtype: DType) -> Result<TensorType> {
    let ty = TensorType::new(dtype, shape.clone())?;
    if shape.rank() < 2 {
        return Err(ErrorKind::Rank { op: "eye", got: ty, required: "at least two axes are required" }.into());
    }
    Ok(ty)
}
