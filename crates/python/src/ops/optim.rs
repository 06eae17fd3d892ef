//! What optimizers compute of one parameter.

use defn_core::Tensor;
use defn_core::builder::{Arg, BuildOptim};
use pyo3::prelude::*;

use super::functions;
use crate::error::Fallible;
use crate::tensor::PyTensor;

functions! {
    moving_mean(tensor: Arg<Tensor>, mean: Arg<Tensor>, decay: f64) => |ops| ops.moving_mean(tensor, mean, decay);
    moving_square(tensor: Arg<Tensor>, square: Arg<Tensor>, decay: f64)
        => |ops| ops.moving_square(tensor, square, decay);
    adam_direction(mean: Arg<Tensor>, square: Arg<Tensor>, count: Arg<Tensor>, b1: f64, b2: f64, eps: f64,
        eps_root: f64) => |ops| ops.adam_direction(mean, square, count, b1, b2, eps, eps_root);
    adam_ahead(tensor: Arg<Tensor>, mean: Arg<Tensor>, count: Arg<Tensor>, b1: f64)
        => |ops| ops.adam_ahead(tensor, mean, count, b1);
    rms_direction(tensor: Arg<Tensor>, square: Arg<Tensor>, eps: f64, eps_in_sqrt: bool)
        => |ops| ops.rms_direction(tensor, square, eps, eps_in_sqrt);
    momentum(tensor: Arg<Tensor>, trace: Arg<Tensor>, decay: f64) => |ops| ops.momentum(tensor, trace, decay);
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_declared(module)
}
