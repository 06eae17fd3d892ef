//! Tensors that a definition has from around it, found again at each call.

use defn_core::Tensor;
use defn_core::vectorize::type_text;
use pyo3::prelude::*;
use rustc_hash::FxHashSet;

use super::capture_path::{CapturePath, CaptureTarget, find_capture};
use super::values::describe_value;
use crate::containers::Tree;
use crate::error::{Fallible, Fault, if_there};
use crate::jit::leaf::{self, Borrowed};
use crate::jit::signature::function_name;
use crate::misuse::Misuse;
use crate::trace_allocations;

/// Where a captured value comes from at each call.
pub(in crate::jit) enum Capture {
    /// Made while tracing: a constant of the program.
    Bound(Tensor),
    /// As [`Capture::Bound`], of an array or a scalar that NumPy computed meanwhile, of what may lie around the function.
    Computed(Tensor),
    /// Found again where the function found it.
    Found { path: CapturePath, model: Tensor },
}

/// The values of captures, where they are there and of the types that were compiled.
///
/// # Errors
/// Elements that are gone.
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

/// Where a tensor is found that a function captured.
///
/// # Errors
/// One that cannot be found again, and one of another trace.
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
    let found = match &origin {
        Some(trace_allocations::Origin::Constant) => return Ok(Capture::Bound(capture.clone())),
        Some(trace_allocations::Origin::Array(array)) => {
            find_capture(fun, arguments, CaptureTarget::Object(array))?
        }
        None => find_capture(fun, arguments, CaptureTarget::Buffer(buffer))?,
    };
    match found {
        Some(path) => {
            // The same elements may be vectorized where they were found; what counts is how they are there.
            let model = leaf::model(op, &path.read(fun, arguments)?)?;
            Ok(Capture::Found { path, model })
        }
        None if origin.is_some() => Ok(Capture::Computed(capture.clone())),
        // What the function made itself is a constant.
        None if trace_allocations::is_new(capture) => Ok(Capture::Bound(capture.clone())),
        None => {
            let fun = function_name(fun);
            Err(Misuse::UnknownCapture { fun, got: capture.ty().clone() }.into())
        }
    }
}

/// The addresses of the arrays whose elements are inputs of the program and nothing else: none where NumPy computed
/// something meanwhile, which may be of any.
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

/// What is to say where a captured tensor is gone right after tracing: the function replaced it.
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
            let (fun, got, place) = (function_name(fun), model.ty().clone(), path.text(py));
            return Misuse::CaptureGone { fun, got, place, now }.into();
        }
    }
    Misuse::Internal { text: "a captured tensor cannot be read".to_owned() }.into()
}
