//! Types of reductions.

use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::op::{ArgOp, Domain, ReduceOp};
use crate::scalar::Number;
use crate::shape::{Axis, TensorType};

/// Axes are removed, or stay with size 1. Extremes need an element; the other reductions have an identity.
pub(super) fn reduce(op: ReduceOp, x: &TensorType, axes: &[Axis], keep_axes: bool) -> Result<TensorType> {
    let dtype = match op {
        ReduceOp::Sum | ReduceOp::Product => x.dtype.to_aggregate(),
        ReduceOp::ReduceMax | ReduceOp::ReduceMin => {
            require_real(op.name(), x)?;
            require_elements(op.name(), x, axes)?;
            x.dtype
        }
        ReduceOp::All | ReduceOp::Any => DType::Bool,
    };
    TensorType::new(dtype, x.shape.reduced(axes, keep_axes))
}

/// One integer for each position along the other axes.
pub(super) fn arg_reduce(
    op: ArgOp,
    x: &TensorType,
    axis: Option<Axis>,
    keep_axis: bool,
    dtype: DType,
) -> Result<TensorType> {
    require_real(op.name(), x)?;
    require_index(op.name(), x, axis, dtype)?;
    match axis {
        Some(axis) => {
            require_elements(op.name(), x, &[axis])?;
            TensorType::new(dtype, x.shape.reduced(&[axis], keep_axis))
        }
        None => {
            let all: Vec<Axis> = x.shape.axes().collect();
            require_elements(op.name(), x, &all)?;
            Ok(TensorType::scalar(dtype))
        }
    }
}

/// The default index dtype for an axis of `count` elements.
pub(crate) fn index_dtype(count: usize) -> DType {
    if i32::try_from(count.saturating_sub(1)).is_ok() { DType::S32 } else { DType::S64 }
}

/// Requires an integer dtype that holds the last index along an axis, or over all elements.
pub(super) fn require_index(
    op: &'static str,
    x: &TensorType,
    axis: Option<Axis>,
    dtype: DType,
) -> Result<()> {
    let refused = |required: String| {
        let (option, given) = ("dtype", dtype.to_string());
        Err(ErrorKind::OptionValue { op, option, given, required }.into())
    };
    if !dtype.is_integer() {
        return refused("an integer dtype".to_owned());
    }
    let last = axis.map_or(x.size(), |axis| x.shape[axis]).saturating_sub(1) as i128;
    match dtype.greatest_finite() {
        Number::Int(greatest) if greatest >= last => Ok(()),
        Number::Bool(_) | Number::Int(_) | Number::Huge(_) | Number::Float(_) | Number::Complex(_) => {
            let what =
                axis.map_or_else(|| "element".to_owned(), |axis| format!("index of axis {}", axis.index()));
            refused(format!("an integer dtype that holds {last}, the last {what} of {x}"))
        }
    }
}

/// Requires elements that can be ordered.
pub(crate) fn require_real(op: &'static str, x: &TensorType) -> Result<()> {
    if Domain::Real.has(x.dtype) {
        return Ok(());
    }
    let hint = "; take real, imag or abs first";
    Err(ErrorKind::OperandDType { op, got: x.clone(), required: Domain::Real.text(), hint }.into())
}

/// Requires a computation dtype whose elements can be added and subtracted, which excludes bool.
pub(crate) fn require_number(op: &'static str, x: &TensorType, dtype: DType) -> Result<()> {
    if Domain::Number.has(dtype) {
        return Ok(());
    }
    let (required, hint) = (Domain::Number.text(), "; convert with as_type");
    Err(ErrorKind::OperandDType { op, got: x.clone(), required, hint }.into())
}

/// Requires elements for a reduction without an identity, unless its result is empty.
pub(crate) fn require_elements(op: &'static str, x: &TensorType, axes: &[Axis]) -> Result<()> {
    let empty = axes.iter().find(|&&axis| x.shape[axis] == 0);
    let results = x.shape.reduced(axes, false).size();
    match empty {
        Some(axis) if results > 0 => {
            Err(ErrorKind::EmptyReduction { op, got: x.clone(), axis: axis.index() }.into())
        }
        Some(_) | None => Ok(()),
    }
}
