//! Functions of neural networks.

use defn_core::builder::{Arg, BuildNn, Builder};
use defn_core::compose::nn::Attention;
use defn_core::compose::random;
use defn_core::{Axes, AxisRef, DType, Tensor};
use pyo3::prelude::*;

use super::{Operands, Parse, functions, run};
use crate::error::{Fallible, guard};
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
    embedding(table: Arg<Tensor>, indices: Arg<Tensor>) => |ops| ops.embedding(table, indices);
    dropout_split(tensor: Arg<Tensor>, key: Arg<Tensor>, rate: f64, shared_axes: Axes)
        => |ops| ops.dropout(tensor, key, rate, shared_axes);
    attention(query: Arg<Tensor>, key: Arg<Tensor>, value: Arg<Tensor>, mask: Option<Arg<Tensor>> = None,
        bias: Option<Arg<Tensor>> = None, causal: bool = None, scale: Option<f64> = None)
        => |ops| ops.attention(query, key, value, Attention { mask, bias, causal, scale });
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
    layer_norm(tensor: Arg<Tensor>, axes: Axes = None, scale: Option<Arg<Tensor>> = None,
        bias: Option<Arg<Tensor>> = None, eps: f64 = None)
        => |ops| ops.layer_norm(tensor, axes, scale, bias, eps);
    rms_norm(tensor: Arg<Tensor>, axes: Axes = None, scale: Option<Arg<Tensor>> = None, eps: f64 = None)
        => |ops| ops.rms_norm(tensor, axes, scale, eps);
    group_norm(tensor: Arg<Tensor>, groups: usize, axis: AxisRef, batch_axes: Axes, scale: Option<Arg<Tensor>> = None,
        bias: Option<Arg<Tensor>> = None, eps: f64 = None)
        => |ops| ops.group_norm(tensor, groups, axis, batch_axes, scale, bias, eps);
}

type OptionalArg<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// The result, the mean and the variance.
#[pyfunction]
#[pyo3(signature = (tensor, axis, mean = None, variance = None, scale = None, bias = None, eps = None))]
fn batch_norm(
    tensor: OptionalArg<'_, '_>,
    axis: OptionalArg<'_, '_>,
    mean: OptionalArg<'_, '_>,
    variance: OptionalArg<'_, '_>,
    scale: OptionalArg<'_, '_>,
    bias: OptionalArg<'_, '_>,
    eps: OptionalArg<'_, '_>,
) -> Fallible<(PyTensor, PyTensor, PyTensor)> {
    const OP: &str = "batch_norm";
    guard(|| {
        let tensor: Arg<Tensor> = Parse::parse(OP, "tensor", tensor)?;
        let axis: AxisRef = Parse::parse(OP, "axis", axis)?;
        let statistics = match (mean, variance) {
            (None, None) => None,
            (mean, variance) => {
                let mean: Arg<Tensor> = Parse::parse(OP, "mean", mean)?;
                let variance: Arg<Tensor> = Parse::parse(OP, "variance", variance)?;
                Some((mean, variance))
            }
        };
        let scale: Option<Arg<Tensor>> = Parse::parse(OP, "scale", scale)?;
        let bias: Option<Arg<Tensor>> = Parse::parse(OP, "bias", bias)?;
        let eps: f64 = Parse::parse(OP, "eps", eps)?;
        let mut operands = Operands::new();
        Parse::note(&tensor, "tensor", &mut operands);
        let bytes = Parse::bytes(&tensor);
        let results = run(bytes, move |ops| ops.batch_norm(tensor, axis, statistics, scale, bias, eps));
        let (result, mean, variance) = results.map_err(|fault| operands.blame(fault))?;
        Ok((PyTensor::new(result), PyTensor::new(mean), PyTensor::new(variance)))
    })
}

/// The result and the next key.
#[pyfunction]
#[pyo3(signature = (tensor, key, rate, shared_axes))]
fn dropout(
    tensor: OptionalArg<'_, '_>,
    key: OptionalArg<'_, '_>,
    rate: OptionalArg<'_, '_>,
    shared_axes: OptionalArg<'_, '_>,
) -> Fallible<(PyTensor, PyTensor)> {
    const OP: &str = "dropout";
    guard(|| {
        let tensor: Arg<Tensor> = Parse::parse(OP, "tensor", tensor)?;
        let key: Arg<Tensor> = Parse::parse(OP, "key", key)?;
        let rate: f64 = Parse::parse(OP, "rate", rate)?;
        let shared_axes: Axes = Parse::parse(OP, "shared_axes", shared_axes)?;
        let mut operands = Operands::new();
        Parse::note(&tensor, "tensor", &mut operands);
        let results = run(Parse::bytes(&tensor), move |ops| {
            let key = ops.operand(key)?;
            let (used, next) = random::fresh(ops, OP, &key)?;
            Ok((ops.dropout(tensor, used, rate, shared_axes)?, next))
        });
        let (result, next) = results.map_err(|fault| operands.blame(fault))?;
        Ok((PyTensor::new(result), PyTensor::new(next)))
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_declared(module)?;
    module.add_function(wrap_pyfunction!(batch_norm, module)?)?;
    module.add_function(wrap_pyfunction!(dropout, module)?)
}
