//! Discrete Fourier transforms.

use defn_core::builder::{Arg, BuildFourier, FftLength};
use defn_core::{Axes, AxisRef, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::{Parse, functions};
use crate::convert;
use crate::error::{Fallible, if_fits};
use crate::tensor::PyTensor;

/// The requirement on a length, for messages.
const LENGTH: &str = "an int, \"power_of_two\" or None";

impl Parse for FftLength {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value.filter(|value| !value.is_none()) else {
            return Ok(FftLength::Axis);
        };
        if let Some(length) = convert::index(value)? {
            return Ok(FftLength::Explicit(length));
        }
        match value.cast::<PyString>() {
            Ok(text) if text.to_str()? == "power_of_two" => Ok(FftLength::PowerOfTwo),
            Ok(_) | Err(_) => Err(convert::bad(op, what, value, LENGTH)?),
        }
    }
}

/// The length of a result, without the option of rounding up to a power of two.
struct Length(FftLength);

impl Parse for Length {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else { return Ok(Length(FftLength::Axis)) };
        match convert::index(value)? {
            Some(length) => Ok(Length(FftLength::Explicit(length))),
            None => Err(convert::bad(op, what, value, "an int or None")?),
        }
    }
}

/// Two lengths.
struct Lengths([FftLength; 2]);

impl Parse for Lengths {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else {
            return Ok(Lengths([FftLength::Axis; 2]));
        };
        let is_text = value.is_instance_of::<PyString>();
        let pair =
            if is_text { None } else { if_fits(value.py(), value.extract::<Vec<Bound<'_, PyAny>>>())? };
        match pair.as_deref() {
            Some([first, second]) => {
                Ok(Lengths([Parse::parse(op, what, Some(first))?, Parse::parse(op, what, Some(second))?]))
            }
            Some(_) | None => Err(convert::bad(op, what, value, "two of: an int, \"power_of_two\", None")?),
        }
    }
}

functions! {
    fft(tensor: Arg<Tensor>, axis: AxisRef, length: FftLength, eps: f64)
        => |ops| ops.fft(tensor, axis, length, eps);
    ifft(tensor: Arg<Tensor>, axis: AxisRef, length: FftLength, eps: f64)
        => |ops| ops.ifft(tensor, axis, length, eps);
    fft2(tensor: Arg<Tensor>, axes: Axes, lengths: Lengths, eps: f64)
        => |ops| ops.fft2(tensor, axes, lengths.0, eps);
    ifft2(tensor: Arg<Tensor>, axes: Axes, lengths: Lengths, eps: f64)
        => |ops| ops.ifft2(tensor, axes, lengths.0, eps);
    rfft(tensor: Arg<Tensor>, axis: AxisRef, length: FftLength, eps: f64)
        => |ops| ops.rfft(tensor, axis, length, eps);
    irfft(tensor: Arg<Tensor>, axis: AxisRef, length: Length, eps: f64)
        => |ops| ops.irfft(tensor, axis, length.0, eps);
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_declared(module)
}
