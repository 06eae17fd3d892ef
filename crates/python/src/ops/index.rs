//! Gather and scatter at positions in a tensor.

use defn_core::builder::{Arg, BuildIndex};
use defn_core::{Axes, AxisRef, Tensor};
use pyo3::prelude::*;

use super::functions;
use crate::error::Fallible;
use crate::tensor::PyTensor;

functions! {
    gather(tensor: Arg<Tensor>, indices: Arg<Tensor>, axes: Axes = None)
        => |ops| ops.gather(tensor, indices, axes);
    take(tensor: Arg<Tensor>, indices: Arg<Tensor>, axis: AxisRef)
        => |ops| ops.take(tensor, indices, axis);
    take_along_axis(tensor: Arg<Tensor>, indices: Arg<Tensor>, axis: AxisRef)
        => |ops| ops.take_along_axis(tensor, indices, axis);
    indexed_add(tensor: Arg<Tensor>, indices: Arg<Tensor>, updates: Arg<Tensor>, axes: Axes = None)
        => |ops| ops.indexed_add(tensor, indices, updates, axes);
    indexed_put(tensor: Arg<Tensor>, indices: Arg<Tensor>, updates: Arg<Tensor>, axes: Axes = None)
        => |ops| ops.indexed_put(tensor, indices, updates, axes);
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_declared(module)
}
