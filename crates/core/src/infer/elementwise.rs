//! Types of element-wise ops.

use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::op::{BinaryOp, BinaryRule, Domain, Op, UnaryOp, UnaryRule};
use crate::shape::{Shape, TensorType};

/// The operand's shape; the dtype follows the op's rule.
pub(super) fn unary(op: UnaryOp, x: &TensorType) -> Result<TensorType> {
    if !op.domain().has(x.dtype) {
        let (got, required) = (x.clone(), op.domain().text());
        let hint = if op == UnaryOp::NEGATE {
            "; use logical_not, or convert with as_type"
        } else {
            hint(op.domain(), x.dtype)
        };
        return Err(ErrorKind::OperandDType { op: op.name(), got, required, hint }.into());
    }
    x.with_dtype(unary_dtype(op, x.dtype))
}

/// The result dtype by the op's rule.
#[inline]
fn unary_dtype(op: UnaryOp, x: DType) -> DType {
    match op.rule() {
        UnaryRule::Same => x,
        UnaryRule::Float => x.to_float(),
        UnaryRule::Magnitude if x.is_complex() => x.to_real(),
        UnaryRule::Magnitude => x,
        UnaryRule::Real => x.to_real(),
        UnaryRule::Complex => x.to_complex(),
        UnaryRule::Predicate => DType::Bool,
    }
}

/// The result dtype by the op's rule, from the merged dtype of the operands.
#[inline]
fn binary_dtype(op: BinaryOp, merged: DType) -> DType {
    match op.rule() {
        BinaryRule::Merge => merged,
        BinaryRule::Float => merged.to_float(),
        BinaryRule::Complex => merged.to_complex(),
        BinaryRule::Predicate => DType::Bool,
    }
}

/// The result dtype of an element-wise op on same-dtype operands that computes in their dtype: that dtype, or
/// that of predicates. None for other ops, and for dtypes that the op does not allow.
#[inline]
pub fn same_dtype_result(op: &Op, ty: &TensorType) -> Option<DType> {
    let (is_predicate, result_dtype, domain) = if let Op::Unary(op) = op {
        let is_predicate = match op.rule() {
            UnaryRule::Same | UnaryRule::Float | UnaryRule::Magnitude => false,
            UnaryRule::Predicate => true,
            // Real and imaginary parts.
            UnaryRule::Real | UnaryRule::Complex => return None,
        };
        (is_predicate, unary_dtype(*op, ty.dtype), op.domain())
    } else if let Op::Binary(op) = op {
        let is_predicate = match op.rule() {
            BinaryRule::Merge | BinaryRule::Float => false,
            BinaryRule::Predicate => true,
            BinaryRule::Complex => return None,
        };
        (is_predicate, binary_dtype(*op, ty.dtype), op.domain())
    } else {
        return None;
    };
    ((is_predicate || result_dtype == ty.dtype) && domain.has(ty.dtype)).then_some(result_dtype)
}

/// Shapes and names broadcast; the dtype follows the op's rule from the merged one.
pub(super) fn binary(op: BinaryOp, a: &TensorType, b: &TensorType) -> Result<TensorType> {
    let merged = a.dtype.merge(b.dtype);
    if !op.domain().has(merged) {
        let hint = if merged.is_bool() && op == BinaryOp::SUBTRACT {
            "; use logical_xor, or convert with as_type"
        } else {
            hint(op.domain(), merged)
        };
        return Err(ErrorKind::OperandsDType {
            op: op.name(),
            left: a.clone(),
            right: b.clone(),
            required: op.domain().text(),
            hint,
        }
        .into());
    }
    let dtype = binary_dtype(op, merged);
    TensorType::new(dtype, a.shape.broadcast_with(op.name(), &b.shape)?)
}

/// A hint for elements of the wrong dtype.
fn hint(domain: Domain, dtype: DType) -> &'static str {
    match domain {
        Domain::Integer => "; convert with as_type",
        Domain::Real | Domain::RealNumber | Domain::Any | Domain::Number if dtype.is_complex() => {
            "; take real, imag or abs first"
        }
        Domain::Real | Domain::RealNumber | Domain::Any | Domain::Number => "; convert with as_type",
    }
}

/// Only bools convert to bool: other types need a comparison with zero.
pub(super) fn as_type(x: &TensorType, dtype: DType) -> Result<TensorType> {
    if dtype.is_bool() && !x.dtype.is_bool() {
        let required = "bool, to stay bool; use not_equal with 0";
        return Err(ErrorKind::OperandDType { op: "as_type", got: x.clone(), required, hint: "" }.into());
    }
    x.with_dtype(dtype)
}

/// Widths must be equal, and neither side complex.
pub(super) fn bitcast(x: &TensorType, dtype: DType) -> Result<TensorType> {
    if x.dtype.bits() != dtype.bits() || x.dtype.is_complex() || dtype.is_complex() {
        return Err(ErrorKind::BitcastWidth { got: x.clone(), dtype }.into());
    }
    x.with_dtype(dtype)
}

/// The predicate and the branches broadcast together, including names.
pub(super) fn select(pred: &TensorType, on_true: &TensorType, on_false: &TensorType) -> Result<TensorType> {
    let together = |[pred, on_true, on_false]: [&Shape; 3]| {
        pred.broadcast_with("select", &on_true.broadcast_with("select", on_false)?)
    };
    let plain = [pred, on_true, on_false].map(|ty| ty.shape.without_names());
    if together(plain.each_ref()).is_err() {
        return Err(ErrorKind::SelectShapes {
            pred: pred.clone(),
            on_true: on_true.clone(),
            on_false: on_false.clone(),
        }
        .into());
    }
    let shape = together([&pred.shape, &on_true.shape, &on_false.shape])?;
    TensorType::new(on_true.dtype.merge(on_false.dtype), shape)
}

/// The bounds are scalars; their dtypes are merged with that of `x`.
pub(super) fn clip(x: &TensorType, lo: &TensorType, hi: &TensorType) -> Result<TensorType> {
    for (what, bound) in [("the lower bound", lo), ("the upper bound", hi)] {
        if bound.shape.rank() != 0 {
            return Err(ErrorKind::NotScalar { op: "clip", what, got: bound.clone() }.into());
        }
    }
    let dtype = x.dtype.merge(lo.dtype.merge(hi.dtype));
    if dtype.is_complex() {
        let got = [x, lo, hi].into_iter().find(|ty| ty.dtype.is_complex()).unwrap_or(x).clone();
        let required = Domain::Real.text();
        return Err(ErrorKind::OperandDType { op: "clip", got, required, hint: "" }.into());
    }
    x.with_dtype(dtype)
}
