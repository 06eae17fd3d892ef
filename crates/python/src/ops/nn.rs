//! Functions of neural networks.

use defn_core::builder::{Arg, BuildNn};
use defn_core::{Axes, AxisRef, DType, Tensor};
use pyo3::prelude::*;

use super::functions;
use crate::error::Fallible;
use crate::tensor::PyTensor;

functions! {
    relu(tensor: Arg<Tensor>) => |ops| ops.relu(tensor);
    relu6(tensor: Arg<Tensor>) => |ops| ops.relu6(tensor);
    leaky_relu(tensor: Arg<Tensor>, negative_slope: f64) => |ops| ops.leaky_relu(tensor, negative_slope);
    elu(tensor: Arg<Tensor>, alpha: f64) => |ops| ops.elu(tensor, alpha);
    selu(tensor: Arg<Tensor>) => |ops| ops.selu(tensor);
    celu(tensor: Arg<Tensor>, alpha: f64) => |ops| ops.celu(tensor, alpha);
    gelu(tensor: Arg<Tensor>, approximate: bool) => |ops| ops.gelu(tensor, approximate);
    silu(tensor: Arg<Tensor>) => |ops| ops.silu(tensor);
    softplus(tensor: Arg<Tensor>) => |ops| ops.softplus(tensor);
    softsign(tensor: Arg<Tensor>) => |ops| ops.softsign(tensor);
    hard_tanh(tensor: Arg<Tensor>) => |ops| ops.hard_tanh(tensor);
    hard_sigmoid(tensor: Arg<Tensor>) => |ops| ops.hard_sigmoid(tensor);
    hard_silu(tensor: Arg<Tensor>) => |ops| ops.hard_silu(tensor);
    log_sigmoid(tensor: Arg<Tensor>) => |ops| ops.log_sigmoid(tensor);
    mish(tensor: Arg<Tensor>) => |ops| ops.mish(tensor);
    glu(tensor: Arg<Tensor>, axis: AxisRef) => |ops| ops.glu(tensor, axis);
    softmax(tensor: Arg<Tensor>, axes: Axes = None, mask: Option<Arg<Tensor>> = None)
        => |ops| ops.softmax(tensor, axes, mask);
    log_softmax(tensor: Arg<Tensor>, axes: Axes = None, mask: Option<Arg<Tensor>> = None)
        => |ops| ops.log_softmax(tensor, axes, mask);
    standardize(tensor: Arg<Tensor>, axes: Axes, eps: f64)
        => |ops| ops.standardize(tensor, axes, eps);
    one_hot(labels: Arg<Tensor>, classes: usize, dtype: DType, axis: i64)
        => |ops| ops.one_hot(labels, classes, dtype, axis);
    cross_entropy(logits: Arg<Tensor>, labels: Arg<Tensor>, axis: AxisRef)
        => |ops| ops.cross_entropy(logits, labels, axis);
    binary_cross_entropy(logits: Arg<Tensor>, labels: Arg<Tensor>) => |ops| ops.binary_cross_entropy(logits, labels);
    squared_error(predictions: Arg<Tensor>, targets: Arg<Tensor>) => |ops| ops.squared_error(predictions, targets);
    absolute_error(predictions: Arg<Tensor>, targets: Arg<Tensor>) => |ops| ops.absolute_error(predictions, targets);
    huber(predictions: Arg<Tensor>, targets: Arg<Tensor>, delta: f64) => |ops| ops.huber(predictions, targets, delta);
    log_cosh(predictions: Arg<Tensor>, targets: Arg<Tensor>) => |ops| ops.log_cosh(predictions, targets);
    hinge(scores: Arg<Tensor>, labels: Arg<Tensor>) => |ops| ops.hinge(scores, labels);
    cosine_similarity(x: Arg<Tensor>, y: Arg<Tensor>, axis: AxisRef, eps: f64)
        => |ops| ops.cosine_similarity(x, y, axis, eps);
    kl_divergence(log_predictions: Arg<Tensor>, targets: Arg<Tensor>, axis: AxisRef)
        => |ops| ops.kl_divergence(log_predictions, targets, axis);
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_declared(module)
}
