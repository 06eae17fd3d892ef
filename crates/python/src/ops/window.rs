//! Sliding windows and convolutions.

use defn_core::builder::{Arg, BuildWindow, ConvOptions, PerAxis, WindowOptions, WindowPadding};
use defn_core::{Axes, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::{Parse, functions};
use crate::convert;
use crate::error::{Fallible, if_fits};
use crate::tensor::PyTensor;

/// An int for all axes, or a sequence with one int for each axis.
impl Parse for PerAxis {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else {
            return Ok(PerAxis::default());
        };
        if let Some(entry) = convert::index(value)? {
            return Ok(PerAxis::All(entry));
        }
        let required = "an int, or a sequence with an int for each axis";
        if value.is_instance_of::<PyTensor>() || value.is_instance_of::<PyString>() {
            return Err(convert::bad(op, what, value, required)?);
        }
        match if_fits(value.py(), value.extract())? {
            Some(entries) => Ok(PerAxis::Each(entries)),
            None => Err(convert::bad(op, what, value, required)?),
        }
    }
}

impl Parse for WindowPadding {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else {
            return Ok(WindowPadding::Valid);
        };
        if let Ok(text) = value.cast::<PyString>() {
            if text.to_str()? == "valid" {
                return Ok(WindowPadding::Valid);
            }
            if text.to_str()? == "same" {
                return Ok(WindowPadding::Same);
            }
        } else if let Some(entries) = convert::tuples(value)? {
            let entries = entries.into_iter().map(|[low, high]| (low, high));
            return Ok(WindowPadding::Each(entries.collect()));
        }
        let required = "\"valid\", \"same\", or one (low, high) for each axis";
        Err(convert::bad(op, what, value, required)?)
    }
}

functions! {
    window_sum(tensor: Arg<Tensor>, window: Vec<i64>, strides: PerAxis, padding: WindowPadding,
               window_dilations: PerAxis)
        => |ops| ops.window_sum(tensor, &window, &WindowOptions { strides, padding, dilations: window_dilations });
    window_product(tensor: Arg<Tensor>, window: Vec<i64>, strides: PerAxis, padding: WindowPadding,
                   window_dilations: PerAxis)
        => |ops| ops.window_product(tensor, &window, &WindowOptions { strides, padding, dilations: window_dilations });
    window_max(tensor: Arg<Tensor>, window: Vec<i64>, strides: PerAxis, padding: WindowPadding,
               window_dilations: PerAxis)
        => |ops| ops.window_max(tensor, &window, &WindowOptions { strides, padding, dilations: window_dilations });
    window_min(tensor: Arg<Tensor>, window: Vec<i64>, strides: PerAxis, padding: WindowPadding,
               window_dilations: PerAxis)
        => |ops| ops.window_min(tensor, &window, &WindowOptions { strides, padding, dilations: window_dilations });
    window_mean(tensor: Arg<Tensor>, window: Vec<i64>, strides: PerAxis, padding: WindowPadding,
                window_dilations: PerAxis)
        => |ops| ops.window_mean(tensor, &window, &WindowOptions { strides, padding, dilations: window_dilations });
    window_scatter_max(tensor: Arg<Tensor>, source: Arg<Tensor>, init: Arg<Tensor>, window: Vec<i64>,
                       strides: PerAxis, padding: WindowPadding)
        => |ops| ops.window_scatter_max(
            tensor, source, init, &window, &WindowOptions { strides, padding, ..WindowOptions::default() },
        );
    window_scatter_min(tensor: Arg<Tensor>, source: Arg<Tensor>, init: Arg<Tensor>, window: Vec<i64>,
                       strides: PerAxis, padding: WindowPadding)
        => |ops| ops.window_scatter_min(
            tensor, source, init, &window, &WindowOptions { strides, padding, ..WindowOptions::default() },
        );
    conv(tensor: Arg<Tensor>, kernel: Arg<Tensor>, strides: PerAxis, padding: WindowPadding,
         input_dilation: PerAxis, kernel_dilation: PerAxis, feature_group_size: i64, batch_group_size: i64,
         input_permutation: Axes, kernel_permutation: Axes, output_permutation: Axes)
        => |ops| ops.conv(tensor, kernel, &ConvOptions {
            strides,
            padding,
            input_dilation,
            kernel_dilation,
            feature_group_size,
            batch_group_size,
            input_permutation,
            kernel_permutation,
            output_permutation,
        });
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_declared(module)
}
