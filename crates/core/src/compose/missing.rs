//! Reductions that leave out NaN.

use super::reduce::mean_axes;
use super::{accumulation_dtype, working_dtype};
use crate::builder::{BuildControl, BuildElementwise, BuildReduce, BuildShape, Builder};
use crate::dtype::DType;
use crate::error::Result;
use crate::infer::reduce::{index_dtype, require_elements, require_real};
use crate::op::TieBreak;
use crate::scalar::Number;
use crate::shape::{Axes, AxisRef};

/// `x` with a number in the place of NaN; `x` itself if its dtype has no NaN.
fn replaced<B: Builder>(b: &mut B, x: &B::V, number: impl Into<Number>) -> Result<B::V> {
    if !b.ty(x).dtype.is_inexact() {
        return Ok(x.clone());
    }
    let is_nan = b.is_nan(x)?;
    b.select(is_nan, number.into(), x)
}

/// See [`BuildMissing::nansum`](crate::builder::BuildMissing::nansum).
///
/// # Errors
/// As the method.
pub fn nansum<B: Builder>(b: &mut B, x: &B::V, axes: &Axes, keep_axes: bool) -> Result<B::V> {
    let axes = b.ty(x).shape.resolve_all("nansum", axes)?;
    let x = replaced(b, x, 0)?;
    b.sum(x, axes, keep_axes)
}

/// See [`BuildMissing::nanprod`](crate::builder::BuildMissing::nanprod).
///
/// # Errors
/// As the method.
pub fn nanprod<B: Builder>(b: &mut B, x: &B::V, axes: &Axes, keep_axes: bool) -> Result<B::V> {
    let axes = b.ty(x).shape.resolve_all("nanprod", axes)?;
    let x = replaced(b, x, 1)?;
    b.product(x, axes, keep_axes)
}

/// See [`BuildMissing::nanmax`](crate::builder::BuildMissing::nanmax) and
/// [`BuildMissing::nanmin`](crate::builder::BuildMissing::nanmin).
///
/// # Errors
/// As the methods.
pub fn extreme<B: Builder>(
    b: &mut B,
    (op, greatest): (&'static str, bool),
    x: &B::V,
    axes: &Axes,
    keep_axes: bool,
) -> Result<B::V> {
    let got = b.ty(x);
    let axes = got.shape.resolve_all(op, axes)?;
    require_real(op, &got)?;
    require_elements(op, &got, &axes)?;
    let replacement = if greatest { got.dtype.lowest() } else { got.dtype.highest() };
    let numbers = replaced(b, x, replacement)?;
    let found = if greatest {
        b.reduce_max(numbers, axes.clone(), keep_axes)?
    } else {
        b.reduce_min(numbers, axes.clone(), keep_axes)?
    };
    if !got.dtype.is_float() {
        return Ok(found);
    }
    // Whether there is a number, in the dtype of the other maximum: one loop has lanes of one width for both.
    let is_number = b.equal(x, x)?;
    let numbers = b.as_type(is_number, got.dtype)?;
    let any = b.reduce_max(numbers, axes, keep_axes)?;
    let is_missing = b.equal(any, 0)?;
    b.select(is_missing, f64::NAN, found)
}

/// The number of elements over axes that are not NaN, in a dtype.
fn numbers<B: Builder>(b: &mut B, x: &B::V, axes: &Axes, keep_axes: bool, dtype: DType) -> Result<B::V> {
    let counted = index_dtype(b.ty(x).shape.size().saturating_add(1));
    let is_number = b.equal(x, x)?;
    let ones = b.as_type(is_number, counted)?;
    let count = b.sum(ones, axes.clone(), keep_axes)?;
    b.as_type(count, dtype)
}

/// See [`BuildMissing::nanmean`](crate::builder::BuildMissing::nanmean).
///
/// # Errors
/// As the method.
pub fn nanmean<B: Builder>(b: &mut B, x: &B::V, axes: &Axes, keep_axes: bool) -> Result<B::V> {
    let got = b.ty(x);
    let (axes, _) = mean_axes("nanmean", &got, axes)?;
    let axes = Axes::from(axes);
    if !got.dtype.is_inexact() {
        return b.mean(x, axes, keep_axes);
    }
    let working = accumulation_dtype(got.dtype);
    let terms = replaced(b, x, 0)?;
    let terms = b.as_type(terms, working)?;
    let sum = b.sum(terms, axes.clone(), keep_axes)?;
    let count = numbers(b, x, &axes, keep_axes, working)?;
    let mean = b.divide(sum, count)?;
    b.as_type(mean, got.dtype)
}

/// See [`BuildMissing::nanvar`](crate::builder::BuildMissing::nanvar).
///
/// # Errors
/// As the method.
pub fn nanvar<B: Builder>(b: &mut B, x: &B::V, axes: &Axes, keep_axes: bool, ddof: i64) -> Result<B::V> {
    let dtype = b.ty(x).dtype.to_float();
    let variance = working_variance(b, "nanvar", x, axes, keep_axes, ddof)?;
    b.as_type(variance, dtype)
}

/// See [`BuildMissing::nanstd`](crate::builder::BuildMissing::nanstd).
///
/// # Errors
/// As the method.
pub fn nanstd<B: Builder>(b: &mut B, x: &B::V, axes: &Axes, keep_axes: bool, ddof: i64) -> Result<B::V> {
    let dtype = b.ty(x).dtype.to_float();
    let variance = working_variance(b, "nanstd", x, axes, keep_axes, ddof)?;
    let deviation = b.sqrt(variance)?;
    b.as_type(deviation, dtype)
}

/// The variance before it is rounded to its final dtype.
fn working_variance<B: Builder>(
    b: &mut B,
    op: &'static str,
    x: &B::V,
    axes: &Axes,
    keep_axes: bool,
    ddof: i64,
) -> Result<B::V> {
    let got = b.ty(x);
    let (axes, _) = mean_axes(op, &got, axes)?;
    let axes = Axes::from(axes);
    // As in `variance`, a wider dtype would not help the squares of floats.
    let working = if got.dtype.is_inexact() { working_dtype(got.dtype) } else { DType::F64 };
    let terms = replaced(b, x, 0)?;
    let terms = b.as_type(terms, working)?;
    let sum = b.sum(&terms, axes.clone(), true)?;
    let count = numbers(b, x, &axes, true, DType::F64)?;
    let number = b.as_type(&count, working)?;
    let mean = b.divide(sum, number)?;
    let mut deviation = b.subtract(terms, mean)?;
    if got.dtype.is_inexact() {
        let is_nan = b.is_nan(x)?;
        deviation = b.select(is_nan, 0, deviation)?;
    }
    let square = b.multiply(&deviation, &deviation)?;
    let sum = b.sum(square, axes.clone(), true)?;
    // Where there are too few elements for a variance it is NaN.
    let divisor = b.subtract(count, ddof as f64)?;
    let is_enough = b.greater(&divisor, 0)?;
    let divisor = b.select(is_enough, divisor, f64::NAN)?;
    let divisor = b.as_type(divisor, working)?;
    let variance = b.divide(sum, divisor)?;
    if keep_axes { Ok(variance) } else { b.squeeze(variance, axes) }
}

/// See [`BuildMissing::nanargmax`](crate::builder::BuildMissing::nanargmax) and
/// [`BuildMissing::nanargmin`](crate::builder::BuildMissing::nanargmin).
///
/// The greatest element is found by comparing all elements with it, because a replacement for NaN could not be told
/// from an infinite element.
///
/// # Errors
/// As the methods.
pub fn position<B: Builder>(
    b: &mut B,
    (op, greatest): (&'static str, bool),
    x: &B::V,
    axis: Option<&AxisRef>,
    keep_axis: bool,
) -> Result<B::V> {
    let got = b.ty(x);
    let axes = match axis {
        Some(axis) => Axes::from(got.shape.resolve(op, axis)?),
        None => Axes::All,
    };
    require_real(op, &got)?;
    let resolved = got.shape.resolve_all(op, &axes)?;
    require_elements(op, &got, &resolved)?;
    let dtype = index_dtype(resolved.iter().map(|&axis| got.shape[axis]).product());
    let axis = axis.cloned();
    if !got.dtype.is_float() {
        return if greatest {
            b.argmax(x, axis, keep_axis, TieBreak::Low, dtype)
        } else {
            b.argmin(x, axis, keep_axis, TieBreak::Low, dtype)
        };
    }
    let x = b.stop_grad(x)?;
    let found = extreme(b, (op, greatest), &x, &axes, true)?;
    let is_found = b.equal(x, found)?;
    let marked = b.as_type(&is_found, DType::U8)?;
    let place = b.argmax(marked, axis, keep_axis, TieBreak::Low, dtype)?;
    let exists = b.any(is_found, axes, keep_axis)?;
    b.select(exists, place, -1)
}
