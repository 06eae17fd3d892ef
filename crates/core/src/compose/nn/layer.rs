//! Rows of a table, and elements dropped at random.

use crate::builder::{Arg, BuildElementwise, BuildIndex, BuildShape, Builder};
use crate::compose::random::{Sample, bernoulli};
use crate::compose::working_dtype;
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::require_real;
use crate::op::Domain;
use crate::scalar::Number;
use crate::shape::{Axis, AxisRef, Shape};

/// See [`BuildNn::embedding`](crate::builder::BuildNn::embedding).
///
/// # Errors
/// As the method.
pub fn embedding<B: Builder>(b: &mut B, table: &B::V, indices: &B::V) -> Result<B::V> {
    let op = "embedding";
    let (ty, got) = (b.ty(table), b.ty(indices));
    require_real(op, &ty)?;
    if !Domain::Integer.has(got.dtype) {
        let (what, required) = ("the dtype of indices", Domain::Integer.text());
        return Err(ErrorKind::ParameterDType { op, what, got, required }.into());
    }
    let rows = ty.shape.sizes()[0];
    let table = b.as_type(table, ty.dtype.to_float())?;
    // The name of the rows is not merged with that of the indices.
    let rest = ty.shape.entries().skip(1);
    let table = b.reshape_to(&table, Shape::from_axes(std::iter::once((rows, None)).chain(rest)))?;
    let taken = b.take(table, indices, AxisRef::Index(0))?;
    let (least, greatest) = (b.greater_equal(indices, 0)?, b.less(indices, Number::from(rows))?);
    let is_row = b.logical_and(least, greatest)?;
    let working = working_dtype(ty.dtype.to_float());
    // NaN only where an index is out of range: under checks a constant would be an error for all indices.
    let one = b.as_type(&is_row, working)?;
    let otherwise = b.divide(&one, &one)?;
    let otherwise = b.as_type(otherwise, ty.dtype.to_float())?;
    let shape = got.shape.without_names();
    let kept = shape.sizes().iter().copied().chain(std::iter::repeat_n(1, ty.shape.rank() - 1));
    let kept = Shape::new(&kept.collect::<Vec<_>>());
    let (is_row, otherwise) = (b.reshape_to(&is_row, kept.clone())?, b.reshape_to(&otherwise, kept)?);
    b.select(is_row, taken, otherwise)
}

/// See [`BuildNn::dropout`](crate::builder::BuildNn::dropout).
///
/// # Errors
/// As the method.
pub fn dropout<B: Builder>(b: &mut B, x: &B::V, key: &B::V, rate: f64, shared_axes: &[Axis]) -> Result<B::V> {
    let ty = b.ty(x);
    require_real("dropout", &ty)?;
    let dtype = ty.dtype.to_float();
    let shape = ty.shape.axes().map(|axis| if shared_axes.contains(&axis) { 1 } else { ty.shape[axis] });
    let sample = Sample::of(Shape::new(&shape.collect::<Vec<_>>()));
    let is_kept = bernoulli(b, key, &Arg::Number(Number::Float(1.0 - rate)), &sample)?;
    let x = b.as_type(x, working_dtype(dtype))?;
    // Where nothing is kept, an infinite factor would make the derivatives NaN.
    let factor = if rate < 1.0 { 1.0 / (1.0 - rate) } else { 0.0 };
    let scaled = b.multiply(x, factor)?;
    let value = b.select(is_kept, scaled, 0)?;
    b.as_type(value, dtype)
}
