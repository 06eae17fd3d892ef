//! Convolutions and pools of tensors whose last axis has the channels.

use crate::builder::{BuildCreate, BuildElementwise, BuildShape, BuildWindow, Builder, ConvOptions, PerAxis};
use crate::builder::{WindowOptions, WindowPadding};
use crate::compose::working_dtype;
use crate::error::{ErrorKind, Result};
use crate::infer;
use crate::infer::reduce::require_real;
use crate::shape::{Axes, AxisRef, Shape, Sizes};

/// The zeros around the spatial axes.
///
/// ```
/// use defn_core::compose::nn::SpatialPadding;
/// assert_eq!(SpatialPadding::default(), SpatialPadding::Valid);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SpatialPadding {
    /// None.
    #[default]
    Valid,
    /// As many as the result needs to have one position for each stride; the smaller half comes first.
    Same,
    /// As many before the first element that no position sees a later one.
    Causal,
    /// The number before and after, for each spatial axis; negative numbers crop.
    Each(Vec<(i64, i64)>),
}

/// How a kernel or a window slides over the spatial axes, which are all but the first and the last.
///
/// ```
/// use defn_core::compose::nn::SpatialOptions;
/// assert_eq!(SpatialOptions::default().strides, 1.into());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpatialOptions {
    /// The step; 1 by default.
    pub strides: PerAxis,
    /// The zeros around.
    pub padding: SpatialPadding,
    /// The distance of neighbours in the kernel; 1 by default.
    pub dilation: PerAxis,
}

/// The entries for the spatial axes.
fn entries(op: &'static str, option: &'static str, given: &PerAxis, count: usize) -> Result<Vec<i64>> {
    let entries = match given {
        PerAxis::All(entry) => vec![*entry; count],
        PerAxis::Each(entries) => entries.clone(),
    };
    if entries.len() == count && entries.iter().all(|&entry| entry >= 1) {
        return Ok(entries);
    }
    let given = format!("{entries:?}");
    let required =
        format!("one integer of at least 1, or one for each spatial axis, of which there are {count}");
    Err(ErrorKind::OptionValue { op, option, given, required }.into())
}

/// The zeros before and after each spatial axis, for windows of sizes and dilations.
fn zeros(
    op: &'static str,
    padding: &SpatialPadding,
    sizes: &[usize],
    extents: &[i64],
    strides: &[i64],
) -> Result<Vec<(i64, i64)>> {
    match padding {
        SpatialPadding::Valid => Ok(vec![(0, 0); sizes.len()]),
        SpatialPadding::Same => Ok(sizes
            .iter()
            .zip(extents)
            .zip(strides)
            .map(|((&size, &extent), &stride)| {
                let size = size as i64;
                let positions = (size + stride - 1) / stride;
                let total = ((positions - 1) * stride + extent - size).max(0);
                (total / 2, total - total / 2)
            })
            .collect()),
        SpatialPadding::Causal => Ok(extents.iter().map(|&extent| (extent - 1, 0)).collect()),
        SpatialPadding::Each(entries) if entries.len() == sizes.len() => Ok(entries.clone()),
        SpatialPadding::Each(entries) => {
            let (option, given) = ("padding", format!("{} entries", entries.len()));
            let required = format!("one for each spatial axis, of which there are {}", sizes.len());
            Err(ErrorKind::OptionValue { op, option, given, required }.into())
        }
    }
}

/// The extents of a dilated kernel; kernels without elements are refused by the op.
fn extents(sizes: &[usize], dilation: &[i64]) -> Vec<i64> {
    sizes
        .iter()
        .zip(dilation)
        .map(|(&size, &step)| (size as i64 - 1).saturating_mul(step).saturating_add(1))
        .collect()
}

/// The sizes of the spatial axes.
fn spatial<B: Builder>(b: &B, op: &'static str, x: &B::V) -> Result<Sizes> {
    let shape = b.ty(x).shape;
    if shape.rank() < 3 {
        shape.resolve(op, &AxisRef::Index(2))?;
    }
    Ok(shape.sizes()[1..shape.rank() - 1].iter().copied().collect())
}

/// The options of the op for axes whose last is that of the channels.
fn channels_last(rank: usize) -> ConvOptions {
    let order = |axes: &mut dyn Iterator<Item = usize>| {
        Axes::List(axes.map(|at| AxisRef::Index(at as i64)).collect())
    };
    let tensor = order(&mut [0, rank - 1].into_iter().chain(1..rank - 1));
    let kernel = order(&mut [rank - 1, rank - 2].into_iter().chain(0..rank - 2));
    ConvOptions {
        input_permutation: tensor.clone(),
        kernel_permutation: kernel,
        output_permutation: tensor,
        ..ConvOptions::default()
    }
}

/// The sizes of a kernel's spatial axes.
fn kernel_sizes<B: Builder>(b: &B, op: &'static str, x: &B::V, kernel: &B::V) -> Result<Sizes> {
    let (left, right) = (b.ty(x), b.ty(kernel));
    if left.shape.rank() != right.shape.rank() {
        let what = "the number of the kernel's axes";
        let (given, required) =
            (right.shape.rank().to_string(), format!("{}, as of the tensor", left.shape.rank()));
        return Err(ErrorKind::OptionValue { op, option: what, given, required }.into());
    }
    Ok(right.shape.sizes()[..right.shape.rank() - 2].iter().copied().collect())
}

/// `x` plus an offset for each channel.
fn with_bias<B: Builder>(b: &mut B, op: &'static str, x: B::V, bias: Option<&B::V>) -> Result<B::V> {
    let Some(bias) = bias else { return Ok(x) };
    let (ty, got) = (b.ty(&x), b.ty(bias));
    let shape = Shape::new(&ty.shape.sizes()[ty.shape.rank() - 1..]);
    if got.shape.rank() != 0 && got.shape.sizes() != shape.sizes() {
        return Err(ErrorKind::ParameterShape { op, what: "the bias", got, shape }.into());
    }
    let dtype = ty.dtype.merge(got.dtype);
    let bias = b.reshape_to(bias, got.shape.without_names())?;
    let working = if dtype.is_complex() { dtype } else { working_dtype(dtype) };
    let (x, bias) = (b.as_type(x, working)?, b.as_type(bias, working)?);
    let sum = b.add(x, bias)?;
    b.as_type(sum, dtype)
}

/// A convolution of `[batch][spatial]..[channels]` with a kernel `[spatial]..[channels of a group][output channels]`.
///
/// # Errors
/// Less than one spatial axis, other ranks, options without an entry for each spatial axis, and what the op refuses.
pub fn conv<B: Builder>(
    b: &mut B,
    x: &B::V,
    kernel: &B::V,
    bias: Option<&B::V>,
    groups: i64,
    options: &SpatialOptions,
) -> Result<B::V> {
    let op = "conv";
    let sizes = spatial(b, op, x)?;
    let kernels = kernel_sizes(b, op, x, kernel)?;
    let strides = entries(op, "strides", &options.strides, sizes.len())?;
    let dilation = entries(op, "dilation", &options.dilation, sizes.len())?;
    let padding = zeros(op, &options.padding, &sizes, &extents(&kernels, &dilation), &strides)?;
    let options = ConvOptions {
        strides: strides.into(),
        padding: WindowPadding::Each(padding),
        kernel_dilation: dilation.into(),
        feature_group_size: groups,
        ..channels_last(sizes.len() + 2)
    };
    let result = b.conv(x, kernel, &options)?;
    with_bias(b, op, result, bias)
}

/// A convolution of a tensor with zeros between its elements, so that strides make the result larger. The kernel is
/// not flipped.
///
/// # Errors
/// As [`conv`], and causal padding.
pub fn conv_transpose<B: Builder>(
    b: &mut B,
    x: &B::V,
    kernel: &B::V,
    bias: Option<&B::V>,
    options: &SpatialOptions,
) -> Result<B::V> {
    let op = "conv_transpose";
    let sizes = spatial(b, op, x)?;
    let kernels = kernel_sizes(b, op, x, kernel)?;
    let strides = entries(op, "strides", &options.strides, sizes.len())?;
    let dilation = entries(op, "dilation", &options.dilation, sizes.len())?;
    let reach = extents(&kernels, &dilation);
    let sides = |per_axis: fn(i64, i64) -> (i64, i64)| {
        reach.iter().zip(&strides).map(|(&extent, &stride)| per_axis(extent, stride)).collect()
    };
    let padding = match &options.padding {
        // Every stride of the result belongs to an element.
        SpatialPadding::Same => sides(|extent, stride| {
            let total = extent + stride - 2;
            let first = if stride > extent - 1 { extent - 1 } else { (total + 1) / 2 };
            (first, total - first)
        }),
        // Every element meets the whole kernel.
        SpatialPadding::Valid => sides(|extent, stride| (extent - 1, extent - 1 + (stride - extent).max(0))),
        SpatialPadding::Each(_) => zeros(op, &options.padding, &sizes, &reach, &strides)?,
        SpatialPadding::Causal => {
            let (given, required) = ("causal".to_owned(), "\"same\", \"valid\" or numbers".to_owned());
            return Err(ErrorKind::OptionValue { op, option: "padding", given, required }.into());
        }
    };
    let options = ConvOptions {
        input_dilation: strides.into(),
        padding: WindowPadding::Each(padding),
        kernel_dilation: dilation.into(),
        ..channels_last(sizes.len() + 2)
    };
    let result = b.conv(x, kernel, &options)?;
    with_bias(b, op, result, bias)
}

/// A window over the spatial axes as one over all axes, which slides by its own size unless strides are given.
fn window<B: Builder>(
    b: &B,
    op: &'static str,
    x: &B::V,
    window: &PerAxis,
    strides: Option<&PerAxis>,
    padding: &SpatialPadding,
) -> Result<(Vec<i64>, WindowOptions)> {
    require_real(op, &b.ty(x))?;
    let sizes = spatial(b, op, x)?;
    let extent = entries(op, "window", window, sizes.len())?;
    let strides = match strides {
        Some(strides) => entries(op, "strides", strides, sizes.len())?,
        None => extent.clone(),
    };
    let padding = zeros(op, padding, &sizes, &extent, &strides)?;
    let around = |inner: Vec<i64>| -> Vec<i64> { [vec![1], inner, vec![1]].concat() };
    let options = WindowOptions {
        strides: around(strides).into(),
        padding: WindowPadding::Each([vec![(0, 0)], padding, vec![(0, 0)]].concat()),
        ..WindowOptions::default()
    };
    let extent = around(extent);
    // An error about the window must name the pool.
    let ty = b.ty(x);
    infer::window::position_counts(op, &ty, &options.resolve(op, &ty, &extent)?)?;
    Ok((extent, options))
}

/// The greatest element at each position of a window over the spatial axes.
///
/// # Errors
/// A complex operand, less than one spatial axis, and options without an entry for each spatial axis.
pub fn max_pool<B: Builder>(
    b: &mut B,
    x: &B::V,
    extent: &PerAxis,
    strides: Option<&PerAxis>,
    padding: &SpatialPadding,
) -> Result<B::V> {
    let (sizes, options) = window(b, "max_pool", x, extent, strides, padding)?;
    b.window_max(x, &sizes, &options)
}

/// The mean at each position of a window over the spatial axes, of all its places or only of those in the tensor.
///
/// # Errors
/// As [`max_pool`].
pub fn avg_pool<B: Builder>(
    b: &mut B,
    x: &B::V,
    extent: &PerAxis,
    strides: Option<&PerAxis>,
    padding: &SpatialPadding,
    count_include_pad: bool,
) -> Result<B::V> {
    let (sizes, options) = window(b, "avg_pool", x, extent, strides, padding)?;
    let ty = b.ty(x);
    let dtype = ty.dtype.to_float();
    let x = b.as_type(x, working_dtype(dtype))?;
    let sum = b.window_sum(&x, &sizes, &options)?;
    let mean = if count_include_pad {
        b.divide(sum, sizes.iter().map(|&size| size as f64).product::<f64>())?
    } else {
        // The same for all examples and channels.
        let mut places = ty.shape.sizes().to_vec();
        (places[0], places[ty.shape.rank() - 1]) = (1, 1);
        let one = b.constant(working_dtype(dtype), 1)?;
        let ones = b.broadcast(one, Shape::new(&places), Axes::All)?;
        let count = b.window_sum(ones, &sizes, &options)?;
        // A window of padding alone has the mean 0.
        let count = b.max(count, 1)?;
        b.divide(sum, count)?
    };
    b.as_type(mean, dtype)
}
