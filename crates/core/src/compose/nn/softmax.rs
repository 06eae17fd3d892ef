//! Softmax, and classes as rows.

use crate::builder::shape::insertion_index;
use crate::builder::{BuildControl, BuildCreate, BuildElementwise, BuildReduce, BuildShape, Builder};
use crate::compose::of_real;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::index_dtype;
use crate::op::Domain;
use crate::shape::{Axis, AxisList, AxisRef, Shape};

/// See [`BuildNn::softmax`](crate::builder::BuildNn::softmax). The axes are resolved.
///
/// # Errors
/// As the method.
pub fn softmax<B: Builder>(b: &mut B, x: &B::V, axes: &[Axis], mask: Option<&B::V>) -> Result<B::V> {
    of_real(b, "softmax", x, |b, x| {
        let Some((exponentials, sum, _)) = exponentials(b, "softmax", x, axes, mask)? else {
            return Ok(x.clone());
        };
        b.divide(exponentials, sum)
    })
}

/// See [`BuildNn::log_softmax`](crate::builder::BuildNn::log_softmax). The axes are resolved.
///
/// # Errors
/// As the method.
pub fn log_softmax<B: Builder>(b: &mut B, x: &B::V, axes: &[Axis], mask: Option<&B::V>) -> Result<B::V> {
    of_real(b, "log_softmax", x, |b, x| {
        let Some((_, sum, shifted)) = exponentials(b, "log_softmax", x, axes, mask)? else {
            return Ok(x.clone());
        };
        let log = b.log(sum)?;
        b.subtract(shifted, log)
    })
}

/// `exp(x - greatest)`, its sum over axes, and the differences; `None` if there is nothing to add up. Where nothing is
/// selected by a mask, the sum is 1, so that neither the quotient nor its derivative is NaN.
pub(super) fn exponentials<B: Builder>(
    b: &mut B,
    op: &'static str,
    x: &B::V,
    axes: &[Axis],
    mask: Option<&B::V>,
) -> Result<Option<(B::V, B::V, B::V)>> {
    let got = b.ty(x);
    if let Some(mask) = mask {
        let mask = b.ty(mask);
        let broadcast = mask.shape.without_names().broadcast_with(op, &got.shape.without_names())?;
        if broadcast.sizes() != got.shape.sizes() {
            return Err(
                ErrorKind::ParameterShape { op, what: "the mask", got: mask, shape: got.shape }.into()
            );
        }
    }
    if axes.iter().any(|&axis| got.shape[axis] == 0) {
        return Ok(None);
    }
    let list = AxisList::from(axes);
    let x = match mask {
        Some(mask) => b.select(mask, x, f64::NEG_INFINITY)?,
        None => x.clone(),
    };
    let greatest = b.reduce_max(&x, list.clone(), true)?;
    let mut greatest = b.stop_grad(greatest)?;
    if mask.is_some() {
        let is_empty = b.equal(&greatest, f64::NEG_INFINITY)?;
        greatest = b.select(is_empty, 0, greatest)?;
    }
    let shifted = b.subtract(x, greatest)?;
    let exponentials = b.exp(&shifted)?;
    let mut sum = b.sum(&exponentials, list, true)?;
    if mask.is_some() {
        let is_empty = b.equal(&sum, 0)?;
        sum = b.select(is_empty, 1, sum)?;
    }
    Ok(Some((exponentials, sum, shifted)))
}

/// See [`BuildNn::one_hot`](crate::builder::BuildNn::one_hot).
///
/// # Errors
/// As the method.
pub fn one_hot<B: Builder>(
    b: &mut B,
    labels: &B::V,
    classes: usize,
    dtype: DType,
    axis: i64,
) -> Result<B::V> {
    let got = b.ty(labels);
    if !Domain::Integer.has(got.dtype) {
        let (required, hint) = (Domain::Integer.text(), "; convert with as_type");
        return Err(ErrorKind::OperandDType { op: "one_hot", got, required, hint }.into());
    }
    let at = insertion_index("one_hot", axis, &got.shape)?;
    let labels = b.new_axis(labels, at as i64, None)?;
    let is_label = classes_like(b, &labels, at, classes)?;
    b.as_type(is_label, dtype)
}

/// Whether each class along an axis, on which labels have the size 1, is the label.
pub(super) fn classes_like<B: Builder>(
    b: &mut B,
    labels: &B::V,
    axis: usize,
    classes: usize,
) -> Result<B::V> {
    let mut sizes = vec![1; b.ty(labels).shape.rank()];
    sizes[axis] = classes;
    let counts = b.iota(Shape::new(&sizes), index_dtype(classes), Some(AxisRef::Index(axis as i64)))?;
    b.equal(labels, counts)
}
