//! Losses of single elements, and of examples along an axis.

use defn_core::builder::BuildNn;
use defn_core::{AxisRef, Location};

use super::Values;
use crate::expr::Operand;

/// The negative logarithm of the probability that [`softmax`](super::softmax) of the logits gives to each label. Labels that are
/// integers are classes; floats are probabilities of all classes, by which the logarithms are weighted.
///
/// - Shape: that of the logits without the axis. Classes broadcast to this shape, probabilities to that of the
///   logits.
/// - Dtypes: any but complex for the logits, integers or floats for the labels; probabilities and logits are
///   promoted, and integers become f32.
/// - Gradient: `g * (softmax(logits) - p)`, where `p` are the probabilities, or 1 at the class.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn;
/// let logits = tensor![[1000.0, 0.0], [0.0, 0.0]]?;
/// let loss = nn::cross_entropy(&logits, tensor![0, 1]?, -1)?;
/// assert_eq!(loss.to_vec::<f32>()?, [0.0, std::f32::consts::LN_2]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Complex logits, and labels that are bools or complex (`DType`), labels that do not fit (`Shape`), an axis that
/// there is not (`Axis`), and a class out of range (`Bounds`); of expressions, such a class makes NaN.
#[track_caller]
pub fn cross_entropy<V: Values>(logits: &V, labels: impl Into<Operand>, axis: impl Into<AxisRef>) -> V::One {
    let (labels, axis) = (labels.into(), axis.into());
    logits.one(Location::caller(), |ops, logits| ops.cross_entropy(logits, labels.0?, axis))
}

/// The negative logarithm of the probability that `sigmoid` of a logit gives to a label of 0 or 1, or to a
/// probability in between.
///
/// - Shape: both operands broadcast together; axis names merge.
/// - Dtypes: any but complex; promoted, integers and bools to f32. A plain number takes the dtype of the tensor
///   that it meets.
/// - Gradient: `g * (sigmoid(logits) - labels)` to the logits.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn;
/// let loss = nn::binary_cross_entropy(&tensor![0.0, 1000.0]?, 1.0)?;
/// assert_eq!(loss.to_vec::<f32>()?, [std::f32::consts::LN_2, 0.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Complex operands (`DType`), and shapes that do not broadcast (`Shape`).
#[track_caller]
pub fn binary_cross_entropy<V: Values>(logits: &V, labels: impl Into<Operand>) -> V::One {
    let labels = labels.into();
    logits.one(Location::caller(), |ops, logits| ops.binary_cross_entropy(logits, labels.0?))
}

/// `(predictions - targets)^2`.
///
/// - Shape: both operands broadcast together; axis names merge.
/// - Dtypes: any but complex; promoted, integers and bools to f32. A plain number takes the dtype of the tensor
///   that it meets.
/// - Gradient: `2 * g * (predictions - targets)`, and the opposite.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn;
/// let loss = nn::squared_error(&tensor![1.0, 4.0]?, 1.0)?;
/// assert_eq!(loss.to_vec::<f32>()?, [0.0, 9.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Complex operands (`DType`), and shapes that do not broadcast (`Shape`).
#[track_caller]
pub fn squared_error<V: Values>(predictions: &V, targets: impl Into<Operand>) -> V::One {
    let targets = targets.into();
    predictions.one(Location::caller(), |ops, predictions| ops.squared_error(predictions, targets.0?))
}

/// `|predictions - targets|`.
///
/// - Shape: both operands broadcast together; axis names merge.
/// - Dtypes: any but complex; promoted, integers and bools to f32. A plain number takes the dtype of the tensor
///   that it meets.
/// - Gradient: `g` times the sign of the difference, and the opposite.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn;
/// let loss = nn::absolute_error(&tensor![1.0, -2.0]?, 1.0)?;
/// assert_eq!(loss.to_vec::<f32>()?, [0.0, 3.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Complex operands (`DType`), and shapes that do not broadcast (`Shape`).
#[track_caller]
pub fn absolute_error<V: Values>(predictions: &V, targets: impl Into<Operand>) -> V::One {
    let targets = targets.into();
    predictions.one(Location::caller(), |ops, predictions| ops.absolute_error(predictions, targets.0?))
}

/// Half the square of an error up to `delta`, and beyond it the line that continues it: Huber (1964).
///
/// - Shape: both operands broadcast together; axis names merge.
/// - Dtypes: any but complex; promoted, integers and bools to f32. A plain number takes the dtype of the tensor
///   that it meets.
/// - Gradient: `g` times the difference, at most `delta`, and the opposite.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn;
/// let loss = nn::huber(&tensor![1.0, 4.0]?, 1.0, 1.0)?;
/// assert_eq!(loss.to_vec::<f32>()?, [0.0, 2.5]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Complex operands (`DType`), shapes that do not broadcast (`Shape`), and a `delta` that is not a finite number
/// above 0 (`Option`).
#[track_caller]
pub fn huber<V: Values>(predictions: &V, targets: impl Into<Operand>, delta: f64) -> V::One {
    let targets = targets.into();
    predictions.one(Location::caller(), |ops, predictions| ops.huber(predictions, targets.0?, delta))
}

/// `log(cosh(predictions - targets))` without overflow.
///
/// - Shape: both operands broadcast together; axis names merge.
/// - Dtypes: any but complex; promoted, integers and bools to f32. A plain number takes the dtype of the tensor
///   that it meets.
/// - Gradient: `g * tanh(predictions - targets)`, and the opposite.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn;
/// let loss = nn::log_cosh(&tensor![1.0, 1001.0]?, 1.0)?;
/// assert_eq!(loss.to_vec::<f32>()?, [0.0, 1000.0 - std::f32::consts::LN_2]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Complex operands (`DType`), and shapes that do not broadcast (`Shape`).
#[track_caller]
pub fn log_cosh<V: Values>(predictions: &V, targets: impl Into<Operand>) -> V::One {
    let targets = targets.into();
    predictions.one(Location::caller(), |ops, predictions| ops.log_cosh(predictions, targets.0?))
}

/// `1 - scores * labels` where it is positive, else 0, for labels of -1 and 1: Cortes & Vapnik (1995).
///
/// - Shape: both operands broadcast together; axis names merge.
/// - Dtypes: any but complex; promoted, integers and bools to f32. A plain number takes the dtype of the tensor
///   that it meets.
/// - Gradient: `-g * labels` to the scores where the loss is positive.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn;
/// let loss = nn::hinge(&tensor![0.5, 3.0]?, 1.0)?;
/// assert_eq!(loss.to_vec::<f32>()?, [0.5, 0.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Complex operands (`DType`), and shapes that do not broadcast (`Shape`).
#[track_caller]
pub fn hinge<V: Values>(scores: &V, labels: impl Into<Operand>) -> V::One {
    let labels = labels.into();
    scores.one(Location::caller(), |ops, scores| ops.hinge(scores, labels.0?))
}

/// The cosine of the angle between vectors along an axis, whose norms count as at least `eps`.
///
/// - Shape: that of the operands broadcast together, without the axis.
/// - Dtypes: any but complex; promoted, integers and bools to f32. A plain number takes the dtype of the tensor
///   that it meets.
/// - Gradient: through the unit vectors.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn;
/// let cosine = nn::cosine_similarity(&tensor![3.0, 0.0]?, tensor![2.0, 0.0]?, -1, 1e-8)?;
/// assert_eq!(cosine.item::<f32>()?, 1.0);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Complex operands (`DType`), shapes that do not broadcast (`Shape`), an axis that there is not (`Axis`), and an
/// `eps` that is not positive (`Option`).
#[track_caller]
pub fn cosine_similarity<V: Values>(
    x: &V,
    y: impl Into<Operand>,
    axis: impl Into<AxisRef>,
    eps: f64,
) -> V::One {
    let (y, axis) = (y.into(), axis.into());
    x.one(Location::caller(), |ops, x| ops.cosine_similarity(x, y.0?, axis, eps))
}

/// The divergence of predicted from target probabilities, the sum over an axis of `targets * (log(targets) -
/// log_predictions)`: Kullback & Leibler (1951).
///
/// - Shape: that of the operands broadcast together, without the axis.
/// - Dtypes: any but complex; promoted, integers and bools to f32. A plain number takes the dtype of the tensor
///   that it meets.
/// - Gradient: `-g * targets` to the predictions.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn;
/// let loss = nn::kl_divergence(&tensor![0.0, f32::NEG_INFINITY]?, tensor![1.0, 0.0]?, -1)?;
/// assert_eq!(loss.item::<f32>()?, 0.0);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Complex operands (`DType`), shapes that do not broadcast (`Shape`), and an axis that there is not (`Axis`).
#[track_caller]
pub fn kl_divergence<V: Values>(
    log_predictions: &V,
    targets: impl Into<Operand>,
    axis: impl Into<AxisRef>,
) -> V::One {
    let (targets, axis) = (targets.into(), axis.into());
    log_predictions.one(Location::caller(), |ops, x| ops.kl_divergence(x, targets.0?, axis))
}
