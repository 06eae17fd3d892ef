//! Convolutions and pools of tensors whose last axis has the channels.

use defn_core::Tensor;
use defn_core::builder::{Arg, Builder, PerAxis};
use defn_core::compose::nn::{self, SpatialOptions, SpatialPadding};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::{Operands, Parse, functions, run};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::tensor::PyTensor;

type OptionalArg<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

impl Parse for SpatialPadding {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else { return Ok(SpatialPadding::Valid) };
        if let Ok(text) = value.cast::<PyString>() {
            match text.to_str()? {
                "valid" => return Ok(SpatialPadding::Valid),
                "same" => return Ok(SpatialPadding::Same),
                "causal" => return Ok(SpatialPadding::Causal),
                _ => {}
            }
        } else if let Some(entries) = convert::tuples(value)? {
            return Ok(SpatialPadding::Each(entries.into_iter().map(|[low, high]| (low, high)).collect()));
        }
        let required = "\"valid\", \"same\", \"causal\", or one (low, high) for each spatial axis";
        Err(convert::bad(op, what, value, required)?)
    }
}

/// A step that may be missing.
struct Steps(Option<PerAxis>);

impl Parse for Steps {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        value.map(|value| Parse::parse(op, what, Some(value))).transpose().map(Steps)
    }
}

functions! {
    conv_transpose(tensor: Arg<Tensor>, kernel: Arg<Tensor>, bias: Option<Arg<Tensor>> = None, strides: PerAxis = None,
        padding: SpatialPadding = None, dilation: PerAxis = None)
        => |ops| {
            let (tensor, kernel) = (ops.operand(tensor)?, ops.operand(kernel)?);
            let bias = bias.map(|bias| ops.operand(bias)).transpose()?;
            let options = SpatialOptions { strides, padding, dilation };
            nn::conv_transpose(ops, &tensor, &kernel, bias.as_ref(), &options)
        };
    max_pool(tensor: Arg<Tensor>, window: PerAxis, strides: Steps = None, padding: SpatialPadding = None)
        => |ops| {
            let tensor = ops.operand(tensor)?;
            nn::max_pool(ops, &tensor, &window, strides.0.as_ref(), &padding)
        };
    avg_pool(tensor: Arg<Tensor>, window: PerAxis, strides: Steps = None, padding: SpatialPadding = None,
        count_include_pad: bool = None)
        => |ops| {
            let tensor = ops.operand(tensor)?;
            nn::avg_pool(ops, &tensor, &window, strides.0.as_ref(), &padding, count_include_pad)
        };
}

/// The convolution of `dn.nn`; that of `dn` has another layout.
#[pyfunction]
#[pyo3(signature = (tensor, kernel, bias, strides, padding, dilation, groups))]
fn channels_last_conv(
    tensor: OptionalArg<'_, '_>,
    kernel: OptionalArg<'_, '_>,
    bias: OptionalArg<'_, '_>,
    strides: OptionalArg<'_, '_>,
    padding: OptionalArg<'_, '_>,
    dilation: OptionalArg<'_, '_>,
    groups: OptionalArg<'_, '_>,
) -> Fallible<PyTensor> {
    const OP: &str = "conv";
    guard(|| {
        let tensor: Arg<Tensor> = Parse::parse(OP, "tensor", tensor)?;
        let kernel: Arg<Tensor> = Parse::parse(OP, "kernel", kernel)?;
        let bias: Option<Arg<Tensor>> = Parse::parse(OP, "bias", bias)?;
        let strides: PerAxis = Parse::parse(OP, "strides", strides)?;
        let padding: SpatialPadding = Parse::parse(OP, "padding", padding)?;
        let dilation: PerAxis = Parse::parse(OP, "dilation", dilation)?;
        let groups: i64 = Parse::parse(OP, "groups", groups)?;
        let mut operands = Operands::new();
        Parse::note(&tensor, "tensor", &mut operands);
        Parse::note(&kernel, "kernel", &mut operands);
        Parse::note(&bias, "bias", &mut operands);
        let bytes = Parse::bytes(&tensor) + Parse::bytes(&kernel);
        let result = run(bytes, move |ops| {
            let (tensor, kernel) = (ops.operand(tensor)?, ops.operand(kernel)?);
            let bias = bias.map(|bias| ops.operand(bias)).transpose()?;
            let options = SpatialOptions { strides, padding, dilation };
            nn::conv(ops, &tensor, &kernel, bias.as_ref(), groups, &options)
        });
        result.map(PyTensor::new).map_err(|fault| operands.blame(fault))
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_declared(module)?;
    module.add_function(wrap_pyfunction!(channels_last_conv, module)?)
}
