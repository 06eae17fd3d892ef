//! Captured tensors: tensors that a traced function uses without receiving them as arguments.

use defn_core::Tensor;
use defn_core::vectorize::type_text;
use pyo3::prelude::*;
use rustc_hash::FxHashSet;

use super::capture_path::{CapturePath, CaptureTarget, Scope, find_capture};
use super::values::describe_value;
use crate::containers::Tree;
use crate::error::{Fallible, Fault, if_there};
use crate::jit::leaf::{self, Borrowed};
use crate::jit::signature::function_name;
use crate::misuse::Misuse;
use crate::trace_allocations;

/// Where a captured value comes from at each call.
pub(in crate::jit) enum Capture {
    /// The tensor was made while tracing. It is a constant of the program.
    Bound(Tensor),
    /// As [`Capture::Bound`], but NumPy computed the array or scalar while tracing. It may have used arrays from
    /// outside the function.
    Computed(Tensor),
    /// The tensor is read from this path at each call. It must have the type of the model.
    Found { path: CapturePath, model: Tensor },
}

impl Capture {
    /// The tensor that the capture is at each call, if it is always the same.
    pub(in crate::jit) fn constant(&self) -> Option<&Tensor> {
        match self {
            Capture::Bound(tensor) | Capture::Computed(tensor) => Some(tensor),
            Capture::Found { .. } => None,
        }
    }
}

/// The values of the captures. None where one is missing or no longer has the type that was compiled.
///
/// # Errors
/// A tensor whose elements are gone.
pub(in crate::jit) fn read_captures(
    captures: &[Capture],
    fun: &Bound<'_, PyAny>,
    arguments: &Tree,
    borrowed: &mut Borrowed,
) -> Fallible<Option<Vec<Tensor>>> {
    let mut tensors = Vec::with_capacity(captures.len());
    for capture in captures {
        match capture {
            Capture::Bound(tensor) | Capture::Computed(tensor) => tensors.push(tensor.clone()),
            Capture::Found { path, model } => {
                let Some(value) = if_there(fun.py(), path.read(fun, arguments))? else {
                    return Ok(None);
                };
                match if_there(fun.py(), leaf::captured_model(&value))?.flatten() {
                    Some(found) if leaf::same_model(&found, model) => tensors.push(borrowed.tensor(&value)?),
                    Some(_) | None => return Ok(None),
                }
            }
        }
    }
    Ok(Some(tensors))
}

/// Searches for the path of a tensor that a function captured.
///
/// # Errors
/// A tensor that cannot be found again, and a tensor of another trace.
pub(in crate::jit) fn locate(
    op: &'static str,
    fun: &Bound<'_, PyAny>,
    arguments: &Tree,
    capture: &Tensor,
) -> Fallible<Capture> {
    let Some(buffer) = capture.buffer() else {
        let fun = function_name(fun);
        return Err(Misuse::ForcedTraced { op, fun }.into());
    };
    let origin = trace_allocations::origin(fun.py(), capture);
    // What was made while tracing is rarely anywhere.
    let is_new = origin.is_some() || trace_allocations::is_new(capture);
    let scope = if is_new { Scope::OwnCode } else { Scope::Everywhere };
    let target = match &origin {
        Some(trace_allocations::Origin::Constant) => return Ok(Capture::Bound(capture.clone())),
        Some(trace_allocations::Origin::Array(array)) => CaptureTarget::Object(array),
        None => CaptureTarget::Buffer(buffer),
    };
    let found = find_capture(fun, arguments, target, scope)?;
    match found {
        Some(path) => {
            // The same elements may have other vectorized axes where they are found. The axes at that path count.
            let model = leaf::model(op, &path.read(fun, arguments)?)?;
            Ok(Capture::Found { path, model })
        }
        None if origin.is_some() => Ok(Capture::Computed(capture.clone())),
        // A tensor that the function made itself is a constant.
        None if is_new => Ok(Capture::Bound(capture.clone())),
        None => {
            let fun = function_name(fun);
            Err(Misuse::UnknownCapture { fun, got: capture.ty().clone() }.into())
        }
    }
}

/// The addresses of the arrays whose elements are only inputs of the program. There are none where NumPy computed
/// something while tracing, because it may have used any array.
pub(in crate::jit) fn input_arrays(
    captures: &[Capture],
    fun: &Bound<'_, PyAny>,
    arguments: &Tree,
) -> FxHashSet<usize> {
    let mut inputs = FxHashSet::default();
    for capture in captures {
        match capture {
            Capture::Computed(_) => return FxHashSet::default(),
            Capture::Found { path, .. } => {
                inputs.extend(path.read(fun, arguments).map(|found| found.as_ptr() as usize));
            }
            Capture::Bound(_) => {}
        }
    }
    inputs
}

/// The error for a captured tensor that is gone immediately after tracing, because the function replaced it.
pub(in crate::jit) fn missing_capture(
    captures: &[Capture],
    fun: &Bound<'_, PyAny>,
    arguments: &Tree,
) -> Fault {
    let py = fun.py();
    for capture in captures {
        if let Capture::Found { path, model } = capture {
            let now = match path.read(fun, arguments) {
                Ok(value) => match leaf::captured_model(&value) {
                    Ok(Some(found)) if leaf::same_model(&found, model) => continue,
                    Ok(Some(found)) => type_text(&found),
                    Ok(None) | Err(_) => describe_value(&value),
                },
                Err(_) => "missing".to_owned(),
            };
            let (fun, got, path) = (function_name(fun), model.ty().clone(), path.text(py));
            return Misuse::CaptureGone { fun, got, path, now }.into();
        }
    }
    Misuse::Internal { text: "a captured tensor cannot be read".to_owned() }.into()
}
