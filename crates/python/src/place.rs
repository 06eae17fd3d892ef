//! Where tensors are made: the default backend, and those that a user names.

use std::sync::{Arc, OnceLock};

use defn_core::ErrorKind;
use defn_core::backend::Backend;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::convert;
use crate::error::Fallible;
use crate::pybackend;

/// The names that `backend=` takes.
const KNOWN: &str = "\"cpu\" or a backend object";

/// The backend of tensors that come from nowhere else.
pub(crate) fn default() -> Arc<dyn Backend> {
    static CPU: OnceLock<Arc<dyn Backend>> = OnceLock::new();
    CPU.get_or_init(defn_cpu::cpu_backend).clone()
}

/// A backend as Python has it: the object that a backend of Python's is, the name of any other.
pub(crate) fn object<'py>(py: Python<'py>, backend: &dyn Backend) -> Bound<'py, PyAny> {
    match pybackend::to_object(py, backend) {
        Some(object) => object.into_any(),
        None => PyString::new(py, backend.name()).into_any(),
    }
}

/// The backend that an option names; the default one for None.
///
/// # Errors
/// A name that is unknown.
pub(crate) fn parse(value: Option<&Bound<'_, PyAny>>) -> Fallible<Arc<dyn Backend>> {
    let Some(value) = value.filter(|value| !value.is_none()) else {
        return Ok(default());
    };
    if let Some(backend) = pybackend::from_object(value) {
        return Ok(backend);
    }
    let Ok(name) = value.cast::<PyString>() else {
        return Err(convert::bad("backend", "the backend", value, KNOWN)?);
    };
    match name.to_str()? {
        "cpu" => Ok(default()),
        other => Err(ErrorKind::UnknownBackend { name: other.to_owned(), known: KNOWN.to_owned() }.into()),
    }
}
