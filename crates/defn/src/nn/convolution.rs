//! Convolutions and pools of tensors whose last axis has the channels.

use defn_core::Location;
use defn_core::builder::{Builder, PerAxis};
use defn_core::compose::nn::{self, SpatialOptions, SpatialPadding};

use super::{Values, optional};
use crate::expr::Operand;

/// The convolution of a tensor with a kernel that is not flipped, plus an offset for each channel.
///
/// [`Tensor::conv`](crate::Tensor::conv) has the channels first, all roles of axes, and no offset.
/// [`SpatialPadding::Same`] depends on the strides here, as in JAX.
///
/// - Shape: `x` is `[batch][spatial]..[channels]`, the kernel `[spatial]..[channels / groups][output channels]`, the
///   bias `[output channels]`, and the result `[batch][positions]..[output channels]`.
/// - Dtypes: any; promoted, integers and bools to f32. Floats of 8 and 16 bits accumulate in f32.
/// - Gradient: to all operands.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn::{self, SpatialOptions, SpatialPadding};
/// let x = tensor![[[1.0], [2.0], [3.0]]]?;
/// let kernel = tensor![[[1.0]], [[10.0]]]?;
/// let options = SpatialOptions { padding: SpatialPadding::Causal, ..SpatialOptions::default() };
/// let y = nn::conv(&x, kernel, None, 1, &options)?;
/// assert_eq!(y.to_vec::<f32>()?, [10.0, 21.0, 32.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Less than one spatial axis (`Axis`), options without an entry for each spatial axis and entries below 1 (`Option`),
/// channels or groups that do not match, a bias of another size, and a kernel that does not fit once (`Shape`).
#[track_caller]
pub fn conv<V: Values>(
    x: &V,
    kernel: impl Into<Operand>,
    bias: Option<Operand>,
    groups: i64,
    options: &SpatialOptions,
) -> V::One {
    let kernel = kernel.into();
    x.one(Location::caller(), |ops, x| {
        let kernel = ops.operand(kernel.0?)?;
        let bias = optional(bias)?.map(|bias| ops.operand(bias)).transpose()?;
        nn::conv(ops, x, &kernel, bias.as_ref(), groups, options)
    })
}

/// The convolution of a tensor with zeros between its elements, `strides` apart, so that the result is larger; plus an
/// offset for each channel. The kernel is not flipped, as in JAX and Flax.
///
/// - Shape: as of [`conv`]. With [`SpatialPadding::Same`] the sizes are multiplied by the strides.
/// - Dtypes: any; promoted, integers and bools to f32. Floats of 8 and 16 bits accumulate in f32.
/// - Gradient: to all operands.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn::{self, SpatialOptions};
/// let x = tensor![[[1.0], [2.0]]]?;
/// let kernel = tensor![[[10.0]], [[1.0]]]?;
/// let options = SpatialOptions { strides: 2.into(), ..SpatialOptions::default() };
/// let y = nn::conv_transpose(&x, kernel, None, &options)?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 10.0, 2.0, 20.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`conv`], and causal padding (`Option`).
#[track_caller]
pub fn conv_transpose<V: Values>(
    x: &V,
    kernel: impl Into<Operand>,
    bias: Option<Operand>,
    options: &SpatialOptions,
) -> V::One {
    let kernel = kernel.into();
    x.one(Location::caller(), |ops, x| {
        let kernel = ops.operand(kernel.0?)?;
        let bias = optional(bias)?.map(|bias| ops.operand(bias)).transpose()?;
        nn::conv_transpose(ops, x, &kernel, bias.as_ref(), options)
    })
}

/// The greatest element at each position of a window over the spatial axes, which slides by its own size unless
/// `strides` are given. Padding is never the greatest.
///
/// - Shape: `[batch][spatial]..[channels]` to `[batch][positions]..[channels]`.
/// - Dtypes: any but complex; unchanged.
/// - Gradient: to the greatest element of each window, the last of equal ones.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn::{self, SpatialPadding};
/// let x = tensor![[[1.0], [4.0], [3.0], [2.0]]]?;
/// let y = nn::max_pool(&x, 2, None, &SpatialPadding::Valid)?;
/// assert_eq!(y.to_vec::<f32>()?, [4.0, 3.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A complex operand (`DType`), less than one spatial axis (`Axis`), options without an entry for each spatial axis and
/// entries below 1 (`Option`), and a window that does not fit once (`Shape`).
#[track_caller]
pub fn max_pool<V: Values>(
    x: &V,
    window: impl Into<PerAxis>,
    strides: Option<PerAxis>,
    padding: &SpatialPadding,
) -> V::One {
    let window = window.into();
    x.one(Location::caller(), |ops, x| nn::max_pool(ops, x, &window, strides.as_ref(), padding))
}

/// The mean at each position of a window over the spatial axes, which slides by its own size unless `strides` are
/// given. Padding counts as zeros with `count_include_pad`, and else not at all.
///
/// - Shape: `[batch][spatial]..[channels]` to `[batch][positions]..[channels]`.
/// - Dtypes: any but complex; integers and bools become f32. Floats of 8 and 16 bits accumulate in f32.
/// - Gradient: the sum of `g / n` over the windows that hold the element.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn::{self, SpatialPadding};
/// let x = tensor![[[2.0], [4.0], [6.0]]]?;
/// let y = nn::avg_pool(&x, 2, None, &SpatialPadding::Same, false)?;
/// assert_eq!(y.to_vec::<f32>()?, [3.0, 6.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`max_pool`].
#[track_caller]
pub fn avg_pool<V: Values>(
    x: &V,
    window: impl Into<PerAxis>,
    strides: Option<PerAxis>,
    padding: &SpatialPadding,
    count_include_pad: bool,
) -> V::One {
    let window = window.into();
    x.one(Location::caller(), |ops, x| {
        nn::avg_pool(ops, x, &window, strides.as_ref(), padding, count_include_pad)
    })
}
