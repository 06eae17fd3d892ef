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

use defn_core::builder::{Arg, BuildNn};
use defn_core::{Axes, AxisRef, DType, Location, Result};

use crate::expr::Operand;
pub use crate::values::Values;
use crate::values::functions;

mod attention;
mod cell;
mod convolution;
mod initial;
mod layer;
mod loss;
mod normalize;

pub use attention::{Attention, attention};
pub use cell::{
    gru_cell, gru_parameters, gru_parameters_split, lstm_cell, lstm_parameters, lstm_parameters_split,
};
pub use convolution::{avg_pool, conv, conv_transpose, max_pool};
pub use defn_core::compose::nn::{Distribution, FanAxes, FanMode, SpatialOptions, SpatialPadding};
pub use initial::{
    glorot, glorot_split, he, he_split, lecun, lecun_split, orthogonal, orthogonal_split, variance_scaling,
    variance_scaling_split,
};
pub use layer::{dropout, dropout_split, embedding};
pub use loss::{
    absolute_error, binary_cross_entropy, cosine_similarity, cross_entropy, hinge, huber, kl_divergence,
    log_cosh, squared_error,
};
pub use normalize::{batch_norm, group_norm, layer_norm, rms_norm, standardize};

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
    x.one(Location::caller(), |ops, x| ops.softmax(x, axes, optional(mask)?))
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
    x.one(Location::caller(), |ops, x| ops.log_softmax(x, axes, optional(mask)?))
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

/// The values of optional operands.
fn optional(operand: Option<Operand>) -> Result<Option<Arg<defn_core::Tensor>>> {
    operand.map(|operand| operand.0).transpose()
}
