//! Types of ops that put elements in order.

use super::reduce::require_real;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::shape::{Axis, TensorType};

/// The operand's type.
pub(super) fn sort(x: &TensorType, _axis: Axis) -> Result<TensorType> {
    require_real("sort", x)?;
    Ok(x.clone())
}

/// Integers in the operand's shape.
pub(super) fn argsort(x: &TensorType, _axis: Axis, dtype: DType) -> Result<TensorType> {
    require_real("argsort", x)?;
    if !dtype.is_integer() {
        return Err(ErrorKind::OptionValue {
            op: "argsort",
            option: "dtype",
            given: dtype.to_string(),
            required: "an integer dtype".to_owned(),
        }
        .into());
    }
    x.with_dtype(dtype)
}
