//! Reductions over axes.

use defn_core::builder::{Arg, BuildReduce};
use defn_core::op::TieBreak;
use defn_core::{Axes, AxisRef, DType, Tensor};
use pyo3::prelude::*;

use super::functions;
use crate::error::Fallible;
use crate::tensor::PyTensor;

functions! {
    sum(tensor: Arg<Tensor>, axes: Axes = None, keep_axes: bool = None)
        => |ops| ops.sum(tensor, axes, keep_axes);
    product(tensor: Arg<Tensor>, axes: Axes = None, keep_axes: bool = None)
        => |ops| ops.product(tensor, axes, keep_axes);
    reduce_max(tensor: Arg<Tensor>, axes: Axes = None, keep_axes: bool = None)
        => |ops| ops.reduce_max(tensor, axes, keep_axes);
    reduce_min(tensor: Arg<Tensor>, axes: Axes = None, keep_axes: bool = None)
        => |ops| ops.reduce_min(tensor, axes, keep_axes);
    all(tensor: Arg<Tensor>, axes: Axes = None, keep_axes: bool = None)
        => |ops| ops.all(tensor, axes, keep_axes);
    any(tensor: Arg<Tensor>, axes: Axes = None, keep_axes: bool = None)
        => |ops| ops.any(tensor, axes, keep_axes);
    mean(tensor: Arg<Tensor>, axes: Axes = None, keep_axes: bool = None)
        => |ops| ops.mean(tensor, axes, keep_axes);
    variance(tensor: Arg<Tensor>, axes: Axes, keep_axes: bool, ddof: i64)
        => |ops| ops.variance(tensor, axes, keep_axes, ddof);
    standard_deviation(tensor: Arg<Tensor>, axes: Axes, keep_axes: bool, ddof: i64)
        => |ops| ops.standard_deviation(tensor, axes, keep_axes, ddof);
    covariance(tensor: Arg<Tensor>, mean: Option<Arg<Tensor>>, ddof: i64)
        => |ops| ops.covariance(tensor, mean, ddof);
    weighted_mean(tensor: Arg<Tensor>, weights: Arg<Tensor>, axes: Axes = None, keep_axes: bool = None)
        => |ops| ops.weighted_mean(tensor, weights, axes, keep_axes);
    logsumexp(tensor: Arg<Tensor>, axes: Axes = None, keep_axes: bool = None,
              exp_scaling_factor: Option<Arg<Tensor>> = None)
        => |ops| ops.logsumexp(tensor, axes, keep_axes, exp_scaling_factor);
    median(tensor: Arg<Tensor>, axis: Option<AxisRef> = None, keep_axis: bool = None)
        => |ops| ops.median(tensor, axis, keep_axis);
    mode(tensor: Arg<Tensor>, axis: Option<AxisRef> = None, keep_axis: bool = None)
        => |ops| ops.mode(tensor, axis, keep_axis);
    diff(tensor: Arg<Tensor>, order: i64, axis: AxisRef) => |ops| ops.diff(tensor, order, axis);
    cumulative_sum(tensor: Arg<Tensor>, axis: AxisRef, reverse: bool = None)
        => |ops| ops.cumulative_sum(tensor, axis, reverse);
    cumulative_product(tensor: Arg<Tensor>, axis: AxisRef, reverse: bool = None)
        => |ops| ops.cumulative_product(tensor, axis, reverse);
    cumulative_max(tensor: Arg<Tensor>, axis: AxisRef, reverse: bool = None)
        => |ops| ops.cumulative_max(tensor, axis, reverse);
    cumulative_min(tensor: Arg<Tensor>, axis: AxisRef, reverse: bool = None)
        => |ops| ops.cumulative_min(tensor, axis, reverse);
    argmax(tensor: Arg<Tensor>, axis: Option<AxisRef> = None, keep_axis: bool = None,
           tie_break: TieBreak = None, dtype: Option<DType> = None)
        => |ops| ops.argmax(tensor, axis, keep_axis, tie_break, dtype);
    argmin(tensor: Arg<Tensor>, axis: Option<AxisRef> = None, keep_axis: bool = None,
           tie_break: TieBreak = None, dtype: Option<DType> = None)
        => |ops| ops.argmin(tensor, axis, keep_axis, tie_break, dtype);
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_declared(module)
}
