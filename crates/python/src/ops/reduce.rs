//! Reductions over axes.

use defn_core::builder::{Arg, BuildReduce};
use defn_core::op::TieBreak;
use defn_core::{Axes, AxisRef, DType, Tensor};
use pyo3::prelude::*;

use super::{functions, shared};
use crate::error::Fallible;
use crate::tensor::PyTensor;

defn_core::reduce_functions!(shared);

functions! {
    covariance(tensor: Arg<Tensor>, mean: Option<Arg<Tensor>>, ddof: i64)
        => |ops| ops.covariance(tensor, mean, ddof);
    weighted_mean(tensor: Arg<Tensor>, weights: Arg<Tensor>, axes: Axes = None, keep_axes: bool = None)
        => |ops| ops.weighted_mean(tensor, weights, axes, keep_axes);
    logsumexp(tensor: Arg<Tensor>, axes: Axes = None, keep_axes: bool = None,
              exp_scaling_factor: Option<Arg<Tensor>> = None)
        => |ops| ops.logsumexp(tensor, axes, keep_axes, exp_scaling_factor);
    argmax(tensor: Arg<Tensor>, axis: Option<AxisRef> = None, keep_axis: bool = None,
           tie_break: TieBreak = None, dtype: Option<DType> = None)
        => |ops| ops.argmax(tensor, axis, keep_axis, tie_break, dtype);
    argmin(tensor: Arg<Tensor>, axis: Option<AxisRef> = None, keep_axis: bool = None,
           tie_break: TieBreak = None, dtype: Option<DType> = None)
        => |ops| ops.argmin(tensor, axis, keep_axis, tie_break, dtype);
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_shared(module)?;
    add_declared(module)
}
