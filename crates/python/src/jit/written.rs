//! What arguments are called in errors: as the author of the function writes them.

use pyo3::prelude::*;

use super::cache::Entry;
use super::captures::Capture;
use super::signature::Signature;
use crate::containers::Tree;
use crate::error::Fault;

/// Names the argument that an error is about, where it has only the position of a leaf, or of a capture after them;
/// `name` names the positional arguments.
#[cold]
pub(super) fn written(
    py: Python<'_>,
    fault: Fault,
    arguments: &Tree,
    (captures, further): (&[Capture], &[usize]),
    name: &dyn Fn(usize) -> String,
) -> Fault {
    let Fault::Core(error) = fault else { return fault };
    let text = |position: usize| {
        // A class that has lost its fields since is not what went wrong.
        let places = arguments.argument_places(py, name).ok()?;
        // Numbers in further dtypes stand between the arguments and the captures.
        let own = position.checked_sub(places.len()).map_or(Some(&position), |behind| further.get(behind));
        if let Some(place) = own.and_then(|&position| places.get(position)) {
            return Some(format!("argument {place}"));
        }
        match captures.get(position - places.len() - further.len())? {
            Capture::Found { place, .. } => Some(place.text(py)),
            Capture::Bound(_) | Capture::Computed(_) => None,
        }
    };
    error.with_argument(text).into()
}

/// As [`written`] for a call of a compiled version.
#[cold]
pub(super) fn written_of(py: Python<'_>, fault: Fault, entry: &Entry, signature: &Signature) -> Fault {
    let name = |position| signature.name(py, position);
    let program = &entry.program;
    written(py, fault, &entry.known.arguments, (&program.captures, program.further()), &name)
}

/// As [`written`] by the names of a function's parameters.
#[cold]
pub(super) fn written_by(
    fun: &Bound<'_, PyAny>,
    fault: Fault,
    arguments: &Tree,
    (captures, further): (&[Capture], &[usize]),
) -> Fault {
    match Signature::new(fun, &[]) {
        Ok(signature) => {
            let name = |position| signature.name(fun.py(), position);
            written(fun.py(), fault, arguments, (captures, further), &name)
        }
        Err(_) => fault,
    }
}
