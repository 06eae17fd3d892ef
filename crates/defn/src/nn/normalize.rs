//! Elements scaled to a mean and a variance, and then by what is learnt.

use defn_core::builder::BuildNn;
use defn_core::{Axes, AxisRef, Location};

use super::{Values, optional};
use crate::expr::Operand;

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

/// [`standardize`] over axes, times `scale`, plus `bias`: Ba, Kiros & Hinton (2016). The parameters have one axis
/// for each of `axes`, in their order, or are scalars.
///
/// - Shape: unchanged; axis names are kept.
/// - Dtypes: any but complex; promoted, integers and bools to f32. The statistics are computed in f32, for f64 in
///   f64.
/// - Gradient: through the mean and the variance, and to the parameters.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn;
/// let x = tensor![[1.0, 3.0], [5.0, 9.0]]?;
/// let y = nn::layer_norm(&x, -1, Some(tensor![1.0, 10.0]?.into()), None, 0.0)?;
/// assert_eq!(y.to_vec::<f32>()?, [-1.0, 10.0, -1.0, 10.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Complex operands (`DType`), axes that `x` does not have or that are repeated (`Axis`), and parameters of
/// another shape (`Shape`).
#[track_caller]
pub fn layer_norm<V: Values>(
    x: &V,
    axes: impl Into<Axes>,
    scale: Option<Operand>,
    bias: Option<Operand>,
    eps: f64,
) -> V::One {
    let axes = axes.into();
    x.one(Location::caller(), |ops, x| ops.layer_norm(x, axes, optional(scale)?, optional(bias)?, eps))
}

/// `x / sqrt(mean(x^2) + eps)`, with the mean over axes, times `scale`: Zhang & Sennrich (2019). The scale has one
/// axis for each of `axes`, in their order, or is a scalar.
///
/// - Shape: unchanged; axis names are kept.
/// - Dtypes: any but complex; promoted, integers and bools to f32. The statistics are computed in f32, for f64 in
///   f64.
/// - Gradient: through the mean, and to the scale.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn;
/// let y = nn::rms_norm(&tensor![2.0, -2.0]?, -1, None, 0.0)?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, -1.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Complex operands (`DType`), axes that `x` does not have or that are repeated (`Axis`), and a scale of another
/// shape (`Shape`).
#[track_caller]
pub fn rms_norm<V: Values>(x: &V, axes: impl Into<Axes>, scale: Option<Operand>, eps: f64) -> V::One {
    let axes = axes.into();
    x.one(Location::caller(), |ops, x| ops.rms_norm(x, axes, optional(scale)?, eps))
}

/// [`standardize`] over groups of neighbouring channels on `axis`, and over all other axes but `batch_axes`, times
/// `scale`, plus `bias`: Wu & He (2018). The parameters have one element for each channel, or are scalars.
///
/// - Shape: unchanged; axis names are kept.
/// - Dtypes: any but complex; promoted, integers and bools to f32. The statistics are computed in f32, for f64 in
///   f64.
/// - Gradient: through the mean and the variance, and to the parameters.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn;
/// let x = tensor![[1.0, 3.0, 4.0, 8.0]]?;
/// let y = nn::group_norm(&x, 2, 1, 0, None, None, 0.0)?;
/// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Complex operands (`DType`), axes that `x` does not have or that are repeated (`Axis`), a number of groups that
/// does not divide the channels (`Option`), and parameters of another shape (`Shape`).
#[track_caller]
pub fn group_norm<V: Values>(
    x: &V,
    groups: usize,
    axis: impl Into<AxisRef>,
    batch_axes: impl Into<Axes>,
    scale: Option<Operand>,
    bias: Option<Operand>,
    eps: f64,
) -> V::One {
    let (axis, batch) = (axis.into(), batch_axes.into());
    x.one(Location::caller(), |ops, x| {
        ops.group_norm(x, groups, axis, batch, optional(scale)?, optional(bias)?, eps)
    })
}

/// `(x - mean) / sqrt(variance + eps)` for each channel on `axis`, times `scale`, plus `bias`: Ioffe & Szegedy
/// (2015). The result, the mean and the variance, which are those of `x` over the other axes, or the given
/// `statistics`. The parameters have one element for each channel, or are scalars.
///
/// - Shape: unchanged, and twice the size of the axis; axis names are kept.
/// - Dtypes: any but complex; `x` and the parameters are promoted, integers and bools to f32. The mean and the
///   variance are f32, for f64 f64.
/// - Gradient: through the mean and the variance, and to the parameters.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn;
/// let x = tensor![[1.0, 0.0], [3.0, 8.0]]?;
/// let (y, mean, variance) = nn::batch_norm(&x, 1, None, None, None, 0.0)?;
/// assert_eq!(y.to_vec::<f32>()?, [-1.0, -1.0, 1.0, 1.0]);
/// assert_eq!((mean.to_vec::<f32>()?, variance.to_vec::<f32>()?), (vec![2.0, 4.0], vec![1.0, 16.0]));
/// // Later with these statistics, of which a program keeps a running mean.
/// let statistics = Some((mean.into(), variance.into()));
/// let (y, ..) = nn::batch_norm(&tensor![[2.0, 0.0]]?, 1, statistics, None, None, 0.0)?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, -1.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Complex operands (`DType`), an axis that `x` does not have (`Axis`), and parameters that do not have one
/// element for each channel (`Shape`).
#[track_caller]
pub fn batch_norm<V: Values>(
    x: &V,
    axis: impl Into<AxisRef>,
    statistics: Option<(Operand, Operand)>,
    scale: Option<Operand>,
    bias: Option<Operand>,
    eps: f64,
) -> V::Three {
    let axis = axis.into();
    x.three(Location::caller(), |ops, x| {
        let statistics = match statistics {
            Some((mean, variance)) => Some((mean.0?, variance.0?)),
            None => None,
        };
        ops.batch_norm(x, axis, statistics, optional(scale)?, optional(bias)?, eps)
    })
}
