//! Discrete Fourier transforms.

use defn_core::builder::{Arg, BuildFourier, FftLength, FftNorm};
use defn_core::{Axes, AxisRef, DType, Name, Tensor};
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

/// One length for each axis.
struct AllLengths(Option<Vec<FftLength>>);

impl Parse for AllLengths {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else { return Ok(AllLengths(None)) };
        let is_text = value.is_instance_of::<PyString>();
        let list =
            if is_text { None } else { if_fits(value.py(), value.extract::<Vec<Bound<'_, PyAny>>>())? };
        let Some(list) = list else {
            return Err(convert::bad(op, what, value, "a sequence of: an int, \"power_of_two\", None")?);
        };
        let lengths = list.iter().map(|length| Parse::parse(op, what, Some(length)));
        Ok(AllLengths(Some(lengths.collect::<Fallible<_>>()?)))
    }
}

impl Parse for FftNorm {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else { return Ok(FftNorm::Backward) };
        let name = value.cast::<PyString>().ok().map(|name| name.to_string());
        match name.as_deref() {
            Some("backward") => Ok(FftNorm::Backward),
            Some("ortho") => Ok(FftNorm::Ortho),
            Some("forward") => Ok(FftNorm::Forward),
            Some(_) | None => Err(convert::bad(op, what, value, "\"backward\", \"ortho\" or \"forward\"")?),
        }
    }
}

functions! {
    fft(tensor: Arg<Tensor>, axis: AxisRef, length: FftLength, norm: FftNorm, eps: f64)
        => |ops| ops.fft(tensor, axis, length, norm, eps);
    ifft(tensor: Arg<Tensor>, axis: AxisRef, length: FftLength, norm: FftNorm, eps: f64)
        => |ops| ops.ifft(tensor, axis, length, norm, eps);
    fft2(tensor: Arg<Tensor>, axes: Axes, lengths: Lengths, norm: FftNorm, eps: f64)
        => |ops| ops.fft2(tensor, axes, lengths.0, norm, eps);
    ifft2(tensor: Arg<Tensor>, axes: Axes, lengths: Lengths, norm: FftNorm, eps: f64)
        => |ops| ops.ifft2(tensor, axes, lengths.0, norm, eps);
    fftn(tensor: Arg<Tensor>, axes: Axes, lengths: AllLengths, norm: FftNorm, eps: f64)
        => |ops| ops.fftn(tensor, axes, lengths.0.as_deref(), norm, eps);
    ifftn(tensor: Arg<Tensor>, axes: Axes, lengths: AllLengths, norm: FftNorm, eps: f64)
        => |ops| ops.ifftn(tensor, axes, lengths.0.as_deref(), norm, eps);
    rfft(tensor: Arg<Tensor>, axis: AxisRef, length: FftLength, norm: FftNorm, eps: f64)
        => |ops| ops.rfft(tensor, axis, length, norm, eps);
    irfft(tensor: Arg<Tensor>, axis: AxisRef, length: Length, norm: FftNorm, eps: f64)
        => |ops| ops.irfft(tensor, axis, length.0, norm, eps);
    rfft2(tensor: Arg<Tensor>, axes: Axes, lengths: Lengths, norm: FftNorm, eps: f64)
        => |ops| ops.rfft2(tensor, axes, lengths.0, norm, eps);
    irfft2(tensor: Arg<Tensor>, axes: Axes, lengths: Lengths, norm: FftNorm, eps: f64)
        => |ops| ops.irfft2(tensor, axes, lengths.0, norm, eps);
    rfftn(tensor: Arg<Tensor>, axes: Axes, lengths: AllLengths, norm: FftNorm, eps: f64)
        => |ops| ops.rfftn(tensor, axes, lengths.0.as_deref(), norm, eps);
    irfftn(tensor: Arg<Tensor>, axes: Axes, lengths: AllLengths, norm: FftNorm, eps: f64)
        => |ops| ops.irfftn(tensor, axes, lengths.0.as_deref(), norm, eps);
    hfft(tensor: Arg<Tensor>, axis: AxisRef, length: Length, norm: FftNorm, eps: f64)
        => |ops| ops.hfft(tensor, axis, length.0, norm, eps);
    ihfft(tensor: Arg<Tensor>, axis: AxisRef, length: FftLength, norm: FftNorm, eps: f64)
        => |ops| ops.ihfft(tensor, axis, length, norm, eps);
    fftshift(tensor: Arg<Tensor>, axes: Axes) => |ops| ops.fftshift(tensor, axes);
    ifftshift(tensor: Arg<Tensor>, axes: Axes) => |ops| ops.ifftshift(tensor, axes);
    fftfreq(n: i64, d: Arg<Tensor>, name: Option<Name> = None, dtype: Option<DType> = None)
        => |ops| ops.fftfreq(n, d, name, dtype.unwrap_or(DType::F32));
    rfftfreq(n: i64, d: Arg<Tensor>, name: Option<Name> = None, dtype: Option<DType> = None)
        => |ops| ops.rfftfreq(n, d, name, dtype.unwrap_or(DType::F32));
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_declared(module)
}
