//! Reductions that leave out NaN, quantiles and averages.

use defn_core::builder::{Arg, BuildMissing, BuildQuantile, QuantileMethod};
use defn_core::{Axes, AxisRef, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::{Parse, functions, shared};
use crate::convert;
use crate::error::Fallible;
use crate::tensor::PyTensor;

impl Parse for QuantileMethod {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else { return Ok(QuantileMethod::Linear) };
        let name = value.cast::<PyString>().ok().map(|name| name.to_string());
        let found = QuantileMethod::ALL.iter().find(|known| name.as_deref() == Some(known.name()));
        match found {
            Some(&found) => Ok(found),
            None => {
                let required = "\"linear\", \"lower\", \"higher\", \"nearest\" or \"midpoint\"";
                Err(convert::bad(op, what, value, required)?)
            }
        }
    }
}

defn_core::missing_functions!(shared);

functions! {
    average(tensor: Arg<Tensor>, axes: Axes = None, weights: Option<Arg<Tensor>> = None, keep_axes: bool = None)
        => |ops| ops.average(tensor, axes, weights, keep_axes);
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_shared(module)?;
    add_declared(module)
}
