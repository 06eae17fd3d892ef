//! Elements that are scaled to a mean and a variance, and then by what is learnt.

use crate::builder::{BuildElementwise, BuildReduce, BuildShape, Builder};
use crate::compose::{of_real, working_dtype};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::require_real;
use crate::shape::{Axes, Axis, AxisList, AxisRef, Shape};

/// See [`BuildNn::standardize`](crate::builder::BuildNn::standardize). The axes are resolved.
///
/// # Errors
/// As the method.
pub fn standardize<B: Builder>(b: &mut B, x: &B::V, axes: &[Axis], eps: f64) -> Result<B::V> {
    of_real(b, "standardize", x, |b, x| {
        let mean = mean_over(b, x, axes)?;
        let deviation = b.subtract(x, mean)?;
        over_root_mean_square(b, &deviation, axes, eps)
    })
}

/// The mean over axes, which keep the size 1, in the dtype of a float.
fn mean_over<B: Builder>(b: &mut B, x: &B::V, axes: &[Axis]) -> Result<B::V> {
    let shape = b.ty(x).shape;
    let count: usize = axes.iter().map(|&axis| shape[axis]).product();
    let sum = b.sum(x, AxisList::from(axes), true)?;
    b.divide(sum, count as f64)
}

/// `x / sqrt(mean(x^2) + eps)`, with the mean over axes.
fn over_root_mean_square<B: Builder>(b: &mut B, x: &B::V, axes: &[Axis], eps: f64) -> Result<B::V> {
    let square = b.multiply(x, x)?;
    let mean = mean_over(b, &square, axes)?;
    let mean = b.add(mean, eps)?;
    let scale = b.rsqrt(mean)?;
    b.multiply(x, scale)
}

/// What is learnt: a factor and an offset.
pub struct Learnt<'a, V> {
    /// The factor.
    pub scale: Option<&'a V>,
    /// The offset.
    pub bias: Option<&'a V>,
}

impl<V: Clone> Learnt<'_, V> {
    /// The float dtype in which an operand and the parameters merge, after a check that all are real.
    fn dtype<B: Builder<V = V>>(&self, b: &B, op: &'static str, x: &V) -> Result<DType> {
        let ty = b.ty(x);
        require_real(op, &ty)?;
        let mut dtype = ty.dtype;
        for parameter in [self.scale, self.bias].into_iter().flatten() {
            let ty = b.ty(parameter);
            require_real(op, &ty)?;
            dtype = dtype.merge(ty.dtype);
        }
        Ok(dtype.to_float())
    }

    /// `x * scale + bias`, with one axis of the parameters for each of the axes.
    fn apply<B: Builder<V = V>>(&self, b: &mut B, op: &'static str, x: V, axes: &[Axis]) -> Result<V> {
        let mut x = x;
        if let Some(scale) = self.scale {
            let scale = along(b, op, "the tensor of scales", scale, &x, axes)?;
            x = b.multiply(&x, &scale)?;
        }
        if let Some(bias) = self.bias {
            let bias = along(b, op, "the tensor of offsets", bias, &x, axes)?;
            x = b.add(&x, &bias)?;
        }
        Ok(x)
    }
}

/// A parameter with one axis for each of the axes of `x`, as a tensor that broadcasts to it.
fn along<B: Builder>(
    b: &mut B,
    op: &'static str,
    what: &'static str,
    parameter: &B::V,
    x: &B::V,
    axes: &[Axis],
) -> Result<B::V> {
    let (got, ty) = (b.ty(parameter), b.ty(x));
    let shape = Shape::new(&axes.iter().map(|&axis| ty.shape[axis]).collect::<Vec<_>>());
    if got.shape.rank() != 0 && got.shape.sizes() != shape.sizes() {
        return Err(ErrorKind::ParameterShape { op, what, got, shape }.into());
    }
    let parameter = b.as_type(parameter, ty.dtype)?;
    if got.shape.rank() == 0 {
        return Ok(parameter);
    }
    // The axes in the order of `x`.
    let mut order: Vec<usize> = (0..axes.len()).collect();
    order.sort_unstable_by_key(|&at| axes[at].index());
    let order: Vec<AxisRef> = order.into_iter().map(|at| AxisRef::Index(at as i64)).collect();
    let parameter = b.transpose(parameter, Axes::List(order))?;
    let mut sizes = vec![1; ty.shape.rank()];
    for &axis in axes {
        sizes[axis.index()] = ty.shape[axis];
    }
    b.reshape_to(parameter, Shape::new(&sizes))
}

/// See [`BuildNn::layer_norm`](crate::builder::BuildNn::layer_norm). The axes are resolved.
///
/// # Errors
/// As the method.
pub fn layer_norm<B: Builder>(
    b: &mut B,
    x: &B::V,
    axes: &[Axis],
    learnt: Learnt<'_, B::V>,
    eps: f64,
) -> Result<B::V> {
    let dtype = learnt.dtype(b, "layer_norm", x)?;
    let x = b.as_type(x, working_dtype(dtype))?;
    let mean = mean_over(b, &x, axes)?;
    let deviation = b.subtract(x, mean)?;
    let scaled = over_root_mean_square(b, &deviation, axes, eps)?;
    let result = learnt.apply(b, "layer_norm", scaled, axes)?;
    b.as_type(result, dtype)
}

/// See [`BuildNn::rms_norm`](crate::builder::BuildNn::rms_norm). The axes are resolved.
///
/// # Errors
/// As the method.
pub fn rms_norm<B: Builder>(
    b: &mut B,
    x: &B::V,
    axes: &[Axis],
    scale: Option<&B::V>,
    eps: f64,
) -> Result<B::V> {
    let learnt = Learnt { scale, bias: None };
    let dtype = learnt.dtype(b, "rms_norm", x)?;
    let x = b.as_type(x, working_dtype(dtype))?;
    let scaled = over_root_mean_square(b, &x, axes, eps)?;
    let result = learnt.apply(b, "rms_norm", scaled, axes)?;
    b.as_type(result, dtype)
}

/// See [`BuildNn::group_norm`](crate::builder::BuildNn::group_norm). The axes are resolved.
///
/// # Errors
/// As the method.
pub fn group_norm<B: Builder>(
    b: &mut B,
    x: &B::V,
    groups: usize,
    (channels, axes): (Axis, &[Axis]),
    learnt: Learnt<'_, B::V>,
    eps: f64,
) -> Result<B::V> {
    let op = "group_norm";
    let shape = b.ty(x).shape;
    if groups == 0 || !shape[channels].is_multiple_of(groups) {
        let (option, given) = ("groups", groups.to_string());
        let required = format!("a divisor of {}, the size of the axis of channels", shape[channels]);
        return Err(ErrorKind::OptionValue { op, option, given, required }.into());
    }
    let dtype = learnt.dtype(b, op, x)?;
    let x = b.as_type(x, working_dtype(dtype))?;
    // The axis of channels becomes one of groups, and one of the channels of a group.
    let mut sizes = shape.sizes().to_vec();
    let at = channels.index();
    sizes.splice(at..=at, [groups, shape[channels] / groups]);
    let grouped = Shape::new(&sizes);
    let mut reduced = vec![at + 1];
    reduced.extend(axes.iter().map(|axis| axis.index() + usize::from(axis.index() > at)));
    let reduced: AxisList = reduced.into_iter().map(Axis).collect();
    let x = b.reshape_to(x, grouped)?;
    let mean = mean_over(b, &x, &reduced)?;
    let deviation = b.subtract(x, mean)?;
    let scaled = over_root_mean_square(b, &deviation, &reduced, eps)?;
    let scaled = b.reshape_to(scaled, shape)?;
    let result = learnt.apply(b, op, scaled, &[channels])?;
    b.as_type(result, dtype)
}

/// See [`BuildNn::batch_norm`](crate::builder::BuildNn::batch_norm): the result, the mean and the variance.
///
/// # Errors
/// As the method.
pub fn batch_norm<B: Builder>(
    b: &mut B,
    x: &B::V,
    channels: Axis,
    statistics: Option<(&B::V, &B::V)>,
    learnt: Learnt<'_, B::V>,
    eps: f64,
) -> Result<[B::V; 3]> {
    let op = "batch_norm";
    let dtype = learnt.dtype(b, op, x)?;
    let working = working_dtype(dtype);
    let x = b.as_type(x, working)?;
    let shape = b.ty(&x).shape;
    let others: AxisList = shape.axes().filter(|&axis| axis != channels).collect();
    let vector = |b: &mut B, kept: &B::V| {
        let named = shape.reduced(&others, false);
        b.reshape_to(kept, named)
    };
    let (mean, variance, kept_mean, kept_variance) = match statistics {
        Some((mean, variance)) => {
            require_real(op, &b.ty(mean))?;
            require_real(op, &b.ty(variance))?;
            let kept_mean = along(b, op, "the mean", mean, &x, &[channels])?;
            let kept_variance = along(b, op, "the variance", variance, &x, &[channels])?;
            (mean.clone(), variance.clone(), kept_mean, kept_variance)
        }
        None => {
            let kept_mean = mean_over(b, &x, &others)?;
            let deviation = b.subtract(&x, &kept_mean)?;
            let square = b.multiply(&deviation, &deviation)?;
            let kept_variance = mean_over(b, &square, &others)?;
            (vector(b, &kept_mean)?, vector(b, &kept_variance)?, kept_mean, kept_variance)
        }
    };
    let deviation = b.subtract(x, kept_mean)?;
    let sum = b.add(kept_variance, eps)?;
    let scale = b.rsqrt(sum)?;
    let scaled = b.multiply(deviation, scale)?;
    let result = learnt.apply(b, op, scaled, &[channels])?;
    Ok([b.as_type(result, dtype)?, mean, variance])
}
