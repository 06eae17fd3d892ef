//! Losses of single elements, and of examples along an axis.

use std::f64::consts::LN_2;

use super::activation::log_of_one_and_exp;
use super::softmax::{classes_like, exponentials};
use crate::builder::{BuildControl, BuildElementwise, BuildReduce, BuildShape, Builder};
use crate::compose::{of_reals, working_dtype};
use crate::dtype::Kind;
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::require_real;
use crate::scalar::Number;
use crate::shape::{Axes, Axis, Shape, TensorType};

/// See [`BuildNn::cross_entropy`](crate::builder::BuildNn::cross_entropy).
///
/// # Errors
/// As the method.
pub fn cross_entropy<B: Builder>(b: &mut B, logits: &B::V, labels: &B::V, axis: Axis) -> Result<B::V> {
    let (ty, got) = (b.ty(logits), b.ty(labels));
    require_real("cross_entropy", &ty)?;
    match got.dtype.kind() {
        Kind::Unsigned | Kind::Signed => of_classes(b, logits, labels, axis),
        Kind::Float => of_probabilities(b, logits, labels, axis),
        Kind::Bool | Kind::Complex => {
            let required = "integers for classes, or floats for probabilities";
            let (op, what) = ("cross_entropy", "the dtype of labels");
            Err(ErrorKind::ParameterDType { op, what, got, required }.into())
        }
    }
}

/// The shape of labels that are classes: that of the logits without the axis.
pub(crate) fn classes_shape(logits: &TensorType, labels: &TensorType, axis: Axis) -> Result<Shape> {
    let (op, shape) = ("cross_entropy", logits.shape.reduced(&[axis], false));
    let broadcast = labels.shape.broadcast_with(op, &shape)?;
    if broadcast.sizes() != shape.sizes() {
        let (what, got) = ("the tensor of labels", labels.clone());
        return Err(ErrorKind::ParameterShape { op, what, got, shape }.into());
    }
    Ok(broadcast)
}

fn of_classes<B: Builder>(b: &mut B, logits: &B::V, labels: &B::V, axis: Axis) -> Result<B::V> {
    let ty = b.ty(logits);
    let shape = classes_shape(&ty, &b.ty(labels), axis)?;
    let (dtype, classes) = (ty.dtype.to_float(), ty.shape[axis]);
    let labels = b.broadcast(labels, shape.clone(), Axes::All)?;
    let logits = b.as_type(logits, working_dtype(dtype))?;
    let Some((_, sum, shifted)) = exponentials(b, "cross_entropy", &logits, &[axis], None)? else {
        let required = "at least one class is required";
        return Err(ErrorKind::Rank { op: "cross_entropy", got: ty, required }.into());
    };
    let kept = b.reshape_to(&labels, ty.shape.without_names().reduced(&[axis], true))?;
    let is_label = classes_like(b, &kept, axis.index(), classes)?;
    // A product with zeros would be NaN beside infinite logits.
    let own = b.select(is_label, shifted, 0)?;
    let own = b.sum(own, axis, false)?;
    let log = b.log(sum)?;
    let log = b.squeeze(log, axis)?;
    let loss = b.subtract(log, own)?;
    let (least, greatest) = (b.greater_equal(&labels, 0)?, b.less(&labels, Number::from(classes))?);
    let is_class = b.logical_and(least, greatest)?;
    // NaN only where a label is out of range: under checks a constant would be an error for all labels.
    let one = b.as_type(&is_class, working_dtype(dtype))?;
    let otherwise = b.divide(&one, &one)?;
    let loss = b.select(is_class, loss, otherwise)?;
    b.as_type(loss, dtype)
}

fn of_probabilities<B: Builder>(b: &mut B, logits: &B::V, labels: &B::V, axis: Axis) -> Result<B::V> {
    let op = "cross_entropy";
    let (ty, got) = (b.ty(logits), b.ty(labels));
    let dtype = ty.dtype.merge(got.dtype).to_float();
    let shape = ty.shape.broadcast_with(op, &got.shape)?;
    if shape.sizes() != ty.shape.sizes() {
        let (what, shape) = ("the tensor of labels", ty.shape);
        return Err(ErrorKind::ParameterShape { op, what, got, shape }.into());
    }
    let (logits, labels) =
        (b.as_type(logits, working_dtype(dtype))?, b.as_type(labels, working_dtype(dtype))?);
    let Some((_, sum, shifted)) = exponentials(b, op, &logits, &[axis], None)? else {
        let required = "at least one class is required";
        return Err(ErrorKind::Rank { op, got: ty, required }.into());
    };
    let log = b.log(sum)?;
    let logs = b.subtract(shifted, log)?;
    let terms = times_log(b, &labels, &logs)?;
    let sum = b.sum(terms, axis, false)?;
    let loss = b.negate(sum)?;
    b.as_type(loss, dtype)
}

/// A weight times a logarithm, which is 0 where the weight is 0 and the logarithm infinite.
fn times_log<B: Builder>(b: &mut B, weight: &B::V, log: &B::V) -> Result<B::V> {
    let (is_zero, is_infinite) = (b.equal(weight, 0)?, b.is_infinity(log)?);
    let is_nothing = b.logical_and(is_zero, is_infinite)?;
    let log = b.select(is_nothing, 0, log)?;
    b.multiply(weight, log)
}

/// See [`BuildNn::binary_cross_entropy`](crate::builder::BuildNn::binary_cross_entropy).
///
/// # Errors
/// As the method.
pub fn binary_cross_entropy<B: Builder>(b: &mut B, logits: &B::V, labels: &B::V) -> Result<B::V> {
    of_reals(b, "binary_cross_entropy", logits, labels, |b, logits, labels| {
        // The difference `softplus(x) - labels * x` would cancel.
        let opposite = b.negate(logits)?;
        let (if_true, if_false) = (log_of_one_and_exp(b, &opposite)?, log_of_one_and_exp(b, logits)?);
        let rest = b.subtract(1, labels)?;
        let (left, right) = (times_log(b, labels, &if_true)?, times_log(b, &rest, &if_false)?);
        b.add(left, right)
    })
}

/// See [`BuildNn::squared_error`](crate::builder::BuildNn::squared_error).
///
/// # Errors
/// As the method.
pub fn squared_error<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    of_reals(b, "squared_error", x, y, |b, x, y| {
        let error = b.subtract(x, y)?;
        b.multiply(&error, &error)
    })
}

/// See [`BuildNn::absolute_error`](crate::builder::BuildNn::absolute_error).
///
/// # Errors
/// As the method.
pub fn absolute_error<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    of_reals(b, "absolute_error", x, y, |b, x, y| {
        let error = b.subtract(x, y)?;
        b.abs(error)
    })
}

/// See [`BuildNn::huber`](crate::builder::BuildNn::huber).
///
/// # Errors
/// As the method.
pub fn huber<B: Builder>(b: &mut B, x: &B::V, y: &B::V, delta: f64) -> Result<B::V> {
    if delta.is_nan() || delta <= 0.0 || delta.is_infinite() {
        let (option, given, required) = ("delta", delta.to_string(), "a finite number above 0".to_owned());
        return Err(ErrorKind::OptionValue { op: "huber", option, given, required }.into());
    }
    of_reals(b, "huber", x, y, |b, x, y| {
        let error = b.subtract(x, y)?;
        let size = b.abs(&error)?;
        let is_near = b.less_equal(&size, delta)?;
        // The square of what is far may overflow. The second derivative of the size is 0 at 0.
        let near = b.select(&is_near, error, 0)?;
        let square = b.multiply(&near, &near)?;
        let square = b.multiply(square, 0.5)?;
        let beyond = b.subtract(size, 0.5 * delta)?;
        let line = b.multiply(beyond, delta)?;
        b.select(is_near, square, line)
    })
}

/// See [`BuildNn::log_cosh`](crate::builder::BuildNn::log_cosh).
///
/// # Errors
/// As the method.
pub fn log_cosh<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    of_reals(b, "log_cosh", x, y, |b, x, y| {
        let error = b.subtract(x, y)?;
        let size = b.abs(&error)?;
        let is_near = b.less(&size, 1)?;
        // cosh(e) = 1 + 2 sinh(e / 2)^2, whose logarithm keeps its digits near 0.
        let near = b.select(&is_near, error, 0)?;
        let half = b.multiply(near, 0.5)?;
        let sinh = b.sinh(half)?;
        let square = b.multiply(&sinh, &sinh)?;
        let twice = b.multiply(square, 2)?;
        let near = b.log1p(twice)?;
        let far = b.select(&is_near, 1, size)?;
        let decay = b.multiply(&far, -2)?;
        let decay = b.exp(decay)?;
        let rest = b.log1p(decay)?;
        let far = b.subtract(far, LN_2)?;
        let far = b.add(far, rest)?;
        b.select(is_near, near, far)
    })
}

/// See [`BuildNn::hinge`](crate::builder::BuildNn::hinge).
///
/// # Errors
/// As the method.
pub fn hinge<B: Builder>(b: &mut B, scores: &B::V, labels: &B::V) -> Result<B::V> {
    of_reals(b, "hinge", scores, labels, |b, scores, labels| {
        let product = b.multiply(scores, labels)?;
        let margin = b.subtract(1, product)?;
        let is_beyond = b.less_equal(&margin, 0)?;
        b.select(is_beyond, 0, margin)
    })
}

/// See [`BuildNn::cosine_similarity`](crate::builder::BuildNn::cosine_similarity). The axis is one of the operands
/// broadcast together.
///
/// # Errors
/// As the method.
pub fn cosine_similarity<B: Builder>(b: &mut B, x: &B::V, y: &B::V, axis: Axis, eps: f64) -> Result<B::V> {
    of_reals(b, "cosine_similarity", x, y, |b, x, y| {
        let (x, y) = (unit(b, x, axis, eps)?, unit(b, y, axis, eps)?);
        let products = b.multiply(x, y)?;
        b.sum(products, axis, false)
    })
}

/// `x / max(norm(x), eps)` along an axis. The elements are divided by the greatest first, whose square may overflow.
fn unit<B: Builder>(b: &mut B, x: &B::V, axis: Axis, eps: f64) -> Result<B::V> {
    if b.ty(x).shape[axis] == 0 {
        return Ok(x.clone());
    }
    let sizes = b.abs(x)?;
    let greatest = b.reduce_max(sizes, axis, true)?;
    let greatest = b.stop_grad(greatest)?;
    let is_small = b.less(&greatest, eps)?;
    let divisor = b.select(is_small, eps, greatest)?;
    let x = b.divide(x, divisor)?;
    let squares = b.multiply(&x, &x)?;
    let sum = b.sum(squares, axis, true)?;
    // Below 1 the norm is less than `eps`.
    let is_norm = b.greater_equal(&sum, 1)?;
    let sum = b.select(is_norm, sum, 1)?;
    let scale = b.rsqrt(sum)?;
    b.multiply(x, scale)
}

/// See [`BuildNn::kl_divergence`](crate::builder::BuildNn::kl_divergence). The axis is one of the operands broadcast
/// together.
///
/// # Errors
/// As the method.
pub fn kl_divergence<B: Builder>(b: &mut B, logs: &B::V, targets: &B::V, axis: Axis) -> Result<B::V> {
    of_reals(b, "kl_divergence", logs, targets, |b, logs, targets| {
        // 0 log(0) is 0.
        let is_zero = b.equal(targets, 0)?;
        let inside = b.select(is_zero, 1, targets)?;
        let log = b.log(inside)?;
        let difference = b.subtract(log, logs)?;
        let terms = times_log(b, targets, &difference)?;
        b.sum(terms, axis, false)
    })
}
