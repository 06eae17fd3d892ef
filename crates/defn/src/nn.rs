//! Functions of neural networks: activations, normalizations and losses.
//!
//! They have no state: what a layer learns is an argument. Every function takes tensors, whose result is a `Result`,
//! and expressions, whose result is an expression: see [`Values`]. Floats keep their dtype, and those of 8 and 16 bits
//! are computed in f32. Derivatives are finite for all finite operands.
//!
//! ```
//! use defn::prelude::*;
//! use defn::nn;
//!
//! let hidden = jit(|(x, w): (Expr, Expr)| nn::gelu(&x.matmul(w), false));
//! let x = Tensor::from_slice(&[100f32, 0.0], &[1, 2])?;
//! let w = Tensor::from_slice(&[1f32, 2.0], &[2, 1])?;
//! assert_eq!(hidden.call((x, w))?.to_vec::<f32>()?, [100.0]);
//! # Ok::<(), defn::Error>(())
//! ```

use defn_core::builder::BuildNn;
use defn_core::{Axes, AxisRef, DType, Location};

use crate::expr::Operand;
pub use crate::values::Values;
use crate::values::functions;

functions! {
    /// `x` where it is positive, else 0: Nair & Hinton (2010). NaN stays NaN.
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any but complex; integers and bools become f32.
    /// - Gradient: `g` where `x > 0`, else 0, also at 0.
    ///
    /// ```
    /// # use defn::{Tensor, nn};
    /// let x = Tensor::from_slice(&[-1f32, 0.0, 2.0], &[3])?;
    /// assert_eq!(nn::relu(&x)?.to_vec::<f32>()?, [0.0, 0.0, 2.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A complex operand (`DType`).
    fn relu() -> One, one |ops, x| ops.relu(x);

    /// `x` between 0 and 6: Krizhevsky (2010).
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any but complex; integers and bools become f32.
    /// - Gradient: `g` where `0 < x < 6`, else 0.
    ///
    /// ```
    /// # use defn::{Tensor, nn};
    /// let x = Tensor::from_slice(&[-1f32, 2.0, 8.0], &[3])?;
    /// assert_eq!(nn::relu6(&x)?.to_vec::<f32>()?, [0.0, 2.0, 6.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A complex operand (`DType`).
    fn relu6() -> One, one |ops, x| ops.relu6(x);

    /// `x` where it is not negative, else `negative_slope * x`: Maas, Hannun & Ng (2013).
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any but complex; integers and bools become f32.
    /// - Gradient: `g` where `x >= 0`, else `negative_slope * g`.
    ///
    /// ```
    /// # use defn::{Tensor, nn};
    /// let x = Tensor::from_slice(&[-1f32, 0.0, 2.0], &[3])?;
    /// assert_eq!(nn::leaky_relu(&x, 0.5)?.to_vec::<f32>()?, [-0.5, 0.0, 2.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A complex operand (`DType`).
    fn leaky_relu(negative_slope: f64) -> One, one |ops, x| ops.leaky_relu(x, negative_slope);

    /// `x` where it is positive, else `alpha * (exp(x) - 1)`: Clevert, Unterthiner & Hochreiter (2015).
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any but complex; integers and bools become f32.
    /// - Gradient: `g` where `x > 0`, else `g * alpha * exp(x)`.
    ///
    /// ```
    /// # use defn::{Tensor, nn};
    /// let x = Tensor::from_slice(&[-100f32, 0.0, 2.0], &[3])?;
    /// assert_eq!(nn::elu(&x, 1.0)?.to_vec::<f32>()?, [-1.0, 0.0, 2.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A complex operand (`DType`).
    fn elu(alpha: f64) -> One, one |ops, x| ops.elu(x, alpha);

    /// [`elu`] with the scales that keep a mean of 0 and a variance of 1: Klambauer, Unterthiner, Mayr &
    /// Hochreiter (2017).
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any but complex; integers and bools become f32.
    /// - Gradient: that of `elu` with its scales.
    ///
    /// ```
    /// # use defn::{Tensor, nn};
    /// let x = Tensor::from_slice(&[0f32, 1.0], &[2])?;
    /// assert_eq!(nn::selu(&x)?.to_vec::<f32>()?, [0.0, 1.050701]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A complex operand (`DType`).
    fn selu() -> One, one |ops, x| ops.selu(x);

    /// `x` where it is positive, else `alpha * (exp(x / alpha) - 1)`: Barron (2017).
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any but complex; integers and bools become f32.
    /// - Gradient: `g` where `x > 0`, else `g * exp(x / alpha)`.
    ///
    /// ```
    /// # use defn::{Tensor, nn};
    /// let x = Tensor::from_slice(&[-100f32, 0.0, 2.0], &[3])?;
    /// assert_eq!(nn::celu(&x, 2.0)?.to_vec::<f32>()?, [-2.0, 0.0, 2.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A complex operand (`DType`), and an `alpha` of 0 (`Option`).
    fn celu(alpha: f64) -> One, one |ops, x| ops.celu(x, alpha);

    /// `x` times the distribution function of the standard normal distribution, or an approximation of it by a
    /// `tanh`: Hendrycks & Gimpel (2016).
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any but complex; integers and bools become f32.
    /// - Gradient: that of the product.
    ///
    /// ```
    /// # use defn::{Tensor, nn};
    /// let x = Tensor::from_slice(&[0f32, 100.0], &[2])?;
    /// assert_eq!(nn::gelu(&x, true)?.to_vec::<f32>()?, [0.0, 100.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A complex operand (`DType`).
    fn gelu(approximate: bool) -> One, one |ops, x| ops.gelu(x, approximate);

    /// `x * sigmoid(x)`, also called swish: Hendrycks & Gimpel (2016); Ramachandran, Zoph & Le (2017).
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any but complex; integers and bools become f32.
    /// - Gradient: that of the product.
    ///
    /// ```
    /// # use defn::{Tensor, nn};
    /// let x = Tensor::from_slice(&[0f32, 100.0], &[2])?;
    /// assert_eq!(nn::silu(&x)?.to_vec::<f32>()?, [0.0, 100.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A complex operand (`DType`).
    fn silu() -> One, one |ops, x| ops.silu(x);

    /// `log(1 + exp(x))` without overflow: Dugas, Bengio, Bélisle, Nadeau & Garcia (2001).
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any but complex; integers and bools become f32.
    /// - Gradient: `g * sigmoid(x)`.
    ///
    /// ```
    /// # use defn::{Tensor, nn};
    /// let x = Tensor::from_slice(&[-1000f32, 0.0, 1000.0], &[3])?;
    /// assert_eq!(nn::softplus(&x)?.to_vec::<f32>()?, [0.0, std::f32::consts::LN_2, 1000.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A complex operand (`DType`).
    fn softplus() -> One, one |ops, x| ops.softplus(x);

    /// `x / (1 + |x|)`: Turian, Bergstra & Bengio (2009).
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any but complex; integers and bools become f32.
    /// - Gradient: `g / (1 + |x|)^2`.
    ///
    /// ```
    /// # use defn::{Tensor, nn};
    /// let x = Tensor::from_slice(&[-1f32, 0.0, 3.0], &[3])?;
    /// assert_eq!(nn::softsign(&x)?.to_vec::<f32>()?, [-0.5, 0.0, 0.75]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A complex operand (`DType`).
    fn softsign() -> One, one |ops, x| ops.softsign(x);

    /// `x` between -1 and 1: Collobert (2004).
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any but complex; integers and bools become f32.
    /// - Gradient: `g` where `-1 <= x <= 1`, else 0.
    ///
    /// ```
    /// # use defn::{Tensor, nn};
    /// let x = Tensor::from_slice(&[-3f32, 0.5, 2.0], &[3])?;
    /// assert_eq!(nn::hard_tanh(&x)?.to_vec::<f32>()?, [-1.0, 0.5, 1.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A complex operand (`DType`).
    fn hard_tanh() -> One, one |ops, x| ops.hard_tanh(x);

    /// `relu6(x + 3) / 6`: Howard et al., "Searching for MobileNetV3" (2019).
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any but complex; integers and bools become f32.
    /// - Gradient: `g / 6` where `-3 < x < 3`, else 0.
    ///
    /// ```
    /// # use defn::{Tensor, nn};
    /// let x = Tensor::from_slice(&[-4f32, 0.0, 4.0], &[3])?;
    /// assert_eq!(nn::hard_sigmoid(&x)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A complex operand (`DType`).
    fn hard_sigmoid() -> One, one |ops, x| ops.hard_sigmoid(x);

    /// `x * hard_sigmoid(x)`, also called hard swish: Howard et al., "Searching for MobileNetV3" (2019).
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any but complex; integers and bools become f32.
    /// - Gradient: that of the product.
    ///
    /// ```
    /// # use defn::{Tensor, nn};
    /// let x = Tensor::from_slice(&[-4f32, 0.0, 4.0], &[3])?;
    /// assert_eq!(nn::hard_silu(&x)?.to_vec::<f32>()?, [0.0, 0.0, 4.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A complex operand (`DType`).
    fn hard_silu() -> One, one |ops, x| ops.hard_silu(x);

    /// `log(sigmoid(x))` without overflow.
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any but complex; integers and bools become f32.
    /// - Gradient: `g * sigmoid(-x)`.
    ///
    /// ```
    /// # use defn::{Tensor, nn};
    /// let x = Tensor::from_slice(&[-1000f32, 0.0, 1000.0], &[3])?;
    /// assert_eq!(nn::log_sigmoid(&x)?.to_vec::<f32>()?, [-1000.0, -std::f32::consts::LN_2, 0.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A complex operand (`DType`).
    fn log_sigmoid() -> One, one |ops, x| ops.log_sigmoid(x);

    /// `x * tanh(softplus(x))`: Misra (2019).
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any but complex; integers and bools become f32.
    /// - Gradient: that of the product.
    ///
    /// ```
    /// # use defn::{Tensor, nn};
    /// let x = Tensor::from_slice(&[0f32, 100.0], &[2])?;
    /// assert_eq!(nn::mish(&x)?.to_vec::<f32>()?, [0.0, 100.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A complex operand (`DType`).
    fn mish() -> One, one |ops, x| ops.mish(x);

    /// The first half along an axis times the sigmoid of the second: Dauphin, Fan, Auli & Grangier (2016).
    ///
    /// - Shape: half the size on the axis; axis names are kept.
    /// - Dtypes: any but complex; integers and bools become f32.
    /// - Gradient: that of the product.
    ///
    /// ```
    /// # use defn::{Tensor, nn};
    /// let x = Tensor::from_slice(&[1f32, 2.0, 0.0, 0.0], &[4])?;
    /// assert_eq!(nn::glu(&x, -1)?.to_vec::<f32>()?, [0.5, 1.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A complex operand (`DType`), an axis that `x` does not have (`Axis`), and an odd size (`Shape`).
    fn glu(axis: impl Into<AxisRef>) -> One, one |ops, x| ops.glu(x, axis);
}

/// `exp(x)` divided by its sum over axes, without overflow: Bridle (1990). Elements that the mask does not select
/// are 0, and so is everything where none is selected.
///
/// - Shape: unchanged; the mask broadcasts to it.
/// - Dtypes: any but complex; integers and bools become f32.
/// - Gradient: `y * (g - sum(g * y))`.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn;
/// let x = tensor![1000.0, 1000.0, 0.0]?;
/// assert_eq!(nn::softmax(&x, -1, None)?.to_vec::<f32>()?, [0.5, 0.5, 0.0]);
/// let mask = tensor![true, false, false]?;
/// assert_eq!(nn::softmax(&x, -1, Some((&mask).into()))?.to_vec::<f32>()?, [1.0, 0.0, 0.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A complex operand (`DType`), axes that `x` does not have or that are repeated (`Axis`), and a mask that does
/// not broadcast to `x` (`Shape`).
#[track_caller]
pub fn softmax<V: Values>(x: &V, axes: impl Into<Axes>, mask: Option<Operand>) -> V::One {
    let axes = axes.into();
    x.one(Location::caller(), |ops, x| ops.softmax(x, axes, mask.map(|mask| mask.0).transpose()?))
}

/// The logarithm of [`softmax`], without its rounding to 0. It is -inf where the mask does not select.
///
/// - Shape: unchanged; the mask broadcasts to it.
/// - Dtypes: any but complex; integers and bools become f32.
/// - Gradient: `g - softmax(x) * sum(g)`.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn;
/// let x = tensor![1000.0, 1000.0, 0.0]?;
/// let y = nn::log_softmax(&x, -1, None)?.to_vec::<f32>()?;
/// assert_eq!(y, [-std::f32::consts::LN_2, -std::f32::consts::LN_2, -1000.0 - std::f32::consts::LN_2]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A complex operand (`DType`), axes that `x` does not have or that are repeated (`Axis`), and a mask that does
/// not broadcast to `x` (`Shape`).
#[track_caller]
pub fn log_softmax<V: Values>(x: &V, axes: impl Into<Axes>, mask: Option<Operand>) -> V::One {
    let axes = axes.into();
    x.one(Location::caller(), |ops, x| ops.log_softmax(x, axes, mask.map(|mask| mask.0).transpose()?))
}

/// `(x - mean) / sqrt(variance + eps)`, with both over axes.
///
/// - Shape: unchanged; axis names are kept.
/// - Dtypes: any but complex; integers and bools become f32.
/// - Gradient: through the mean and the variance.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn;
/// let y = nn::standardize(&tensor![1.0, 3.0]?, -1, 0.0)?;
/// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A complex operand (`DType`), and axes that `x` does not have or that are repeated (`Axis`).
#[track_caller]
pub fn standardize<V: Values>(x: &V, axes: impl Into<Axes>, eps: f64) -> V::One {
    let axes = axes.into();
    x.one(Location::caller(), |ops, x| ops.standardize(x, axes, eps))
}

/// 1 at the position of each label along a new axis, else 0. A label out of range has no 1.
///
/// - Shape: that of the labels, with a new axis of `classes`.
/// - Dtypes: the labels are integers.
/// - Gradient: none.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn;
/// let y = nn::one_hot(&tensor![1, 5]?, 3, DType::F32, -1)?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Labels that are not integers (`DType`), and a position that the new axis cannot have (`Axis`).
#[track_caller]
pub fn one_hot<V: Values>(labels: &V, classes: usize, dtype: DType, axis: i64) -> V::One {
    labels.one(Location::caller(), |ops, labels| ops.one_hot(labels, classes, dtype, axis))
}

/// The negative logarithm of the probability that [`softmax`] of the logits gives to each label. Labels that are
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
