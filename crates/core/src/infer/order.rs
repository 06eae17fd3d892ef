//! Types of ops that sort.

use super::reduce::{require_index, require_real};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
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

/// The elements of `x` or their positions, on both sides of the one at a position of a sort.
pub(crate) fn partition(
    op: &'static str,
    x: &TensorType,
    axis: Axis,
    kth: usize,
    dtype: DType,
) -> Result<TensorType> {
    require_real(op, x)?;
    if kth < x.shape[axis] { x.with_dtype(dtype) } else { Err(no_position(op, x, axis, kth)) }
}

/// The error that an axis does not have the position of a partition.
pub(crate) fn no_position(op: &'static str, got: &TensorType, axis: Axis, at: impl ToString) -> Error {
    let (option, given) = ("kth", at.to_string());
    let required = format!("a position on axis {} of {got}", axis.index());
    ErrorKind::OptionValue { op, option, given, required }.into()
}

/// Whether each element of `x` is among those of a vector.
pub(super) fn isin(x: &TensorType, among: &TensorType) -> Result<TensorType> {
    require_real("isin", x)?;
    require_real("isin", among)?;
    if among.shape.rank() != 1 {
        let required = "a vector is required; flatten it";
        return Err(ErrorKind::Rank { op: "isin", got: among.clone(), required }.into());
    }
    x.with_dtype(DType::Bool)
}
