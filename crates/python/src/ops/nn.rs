//! Functions of neural networks.

use defn_core::builder::{Arg, BuildNn};
use defn_core::{AxisRef, Tensor};
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
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_declared(module)
}
