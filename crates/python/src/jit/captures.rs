//! Tensors that a definition has from around it, found again at each call.

use defn_core::Tensor;
use pyo3::prelude::*;

use super::environment::{self, Place, Wanted};
use super::leaf::{self, Borrowed};
use super::signature::function_name;
use crate::containers::Tree;
use crate::error::{Fallible, if_there};
use crate::misuse::Misuse;
use crate::trace_allocations;

/// Where a captured value comes from at each call.
pub(super) enum Capture {
    /// Made while tracing: a constant of the program.
    Bound(Tensor),
    /// As [`Capture::Bound`], of an array or a scalar that NumPy computed meanwhile, of what may lie around the function.
    Computed(Tensor),
    /// Found again where the function found it.
    Found { place: Place, model: Tensor },
}

/// The values of captures, where they are there and of the types that were compiled.
///
/// # Errors
/// Elements that are gone.
pub(super) fn read_captures(
    captures: &[Capture],
    fun: &Bound<'_, PyAny>,
    arguments: &Tree,
    borrowed: &mut Borrowed,
) -> Fallible<Option<Vec<Tensor>>> {
    let mut tensors = Vec::with_capacity(captures.len());
    for capture in captures {
        match capture {
            Capture::Bound(tensor) | Capture::Computed(tensor) => tensors.push(tensor.clone()),
            Capture::Found { place, model } => {
                let Some(value) = if_there(fun.py(), place.read(fun, arguments))? else {
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
pub(super) fn locate(
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
            environment::find(fun, arguments, Wanted::Object(array))?
        }
        None => environment::find(fun, arguments, Wanted::Buffer(buffer))?,
    };
    match found {
        Some(place) => {
            // The same elements may be vectorized where they were found; what counts is how they are there.
            let model = leaf::model(op, &place.read(fun, arguments)?)?;
            Ok(Capture::Found { place, model })
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
