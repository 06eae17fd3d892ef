//! The names of arguments in errors: an error names an argument as the author of the function writes it.

use pyo3::prelude::*;

use super::cache::Entry;
use super::guards::Capture;
use super::signature::Signature;
use crate::containers::Tree;
use crate::error::Fault;

/// Adds the name of the argument to an error that has only its position.
///
/// The position counts the leaves of the arguments, then the inputs for numbers in further dtypes, then the captures.
/// `further` holds the leaf of each of those numbers. `name` names the positional arguments.
#[cold]
pub(super) fn name_argument(
    py: Python<'_>,
    fault: Fault,
    arguments: &Tree,
    (captures, further): (&[Capture], &[usize]),
    name: &dyn Fn(usize) -> String,
) -> Fault {
    let Fault::Core(error) = fault else { return fault };
    let text = |position: usize| {
        // This fails where a class has lost its fields since tracing. The error to report is still the given one.
        let paths = arguments.argument_leaf_paths(py, name).ok()?;
        // The inputs for numbers in further dtypes stand between the arguments and the captures.
        let leaf = position.checked_sub(paths.len()).map_or(Some(&position), |behind| further.get(behind));
        if let Some(path) = leaf.and_then(|&position| paths.get(position)) {
            return Some(format!("argument {path}"));
        }
        match captures.get(position - paths.len() - further.len())? {
            Capture::Found { path, .. } => Some(path.text(py)),
            Capture::Bound(_) | Capture::Computed(_) => None,
        }
    };
    error.with_argument(text).into()
}

/// As [`name_argument`], for a call of a compiled version.
#[cold]
pub(super) fn name_entry_argument(
    py: Python<'_>,
    fault: Fault,
    entry: &Entry,
    signature: &Signature,
) -> Fault {
    let name = |position| signature.name(py, position);
    let program = &entry.program;
    name_argument(py, fault, &entry.key.arguments, (&program.captures, program.further()), &name)
}

/// As [`name_argument`], with the names of a function's parameters.
#[cold]
pub(super) fn name_argument_by_signature(
    fun: &Bound<'_, PyAny>,
    fault: Fault,
    arguments: &Tree,
    (captures, further): (&[Capture], &[usize]),
) -> Fault {
    match Signature::new(fun, &[]) {
        Ok(signature) => {
            let name = |position| signature.name(fun.py(), position);
            name_argument(fun.py(), fault, arguments, (captures, further), &name)
        }
        Err(_) => fault,
    }
}
