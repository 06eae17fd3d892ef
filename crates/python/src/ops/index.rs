//! Gather and scatter at positions in a tensor.

use defn_core::builder::{Arg, BuildIndex};
use defn_core::{Axes, AxisRef, Tensor};
use pyo3::prelude::*;

use super::shared;
use crate::error::Fallible;
use crate::tensor::PyTensor;

defn_core::index_functions!(shared);

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_shared(module)
}
