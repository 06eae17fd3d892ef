//! Definitions as they are traced: for a version, and for sharded functions, which take calls apart and trace on other
//! types than those of a call.

use std::sync::Arc;

use defn_core::Tensor;
use defn_core::region::Region;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyFunction, PyString, PyTuple, PyType};

use super::Jitted;
use super::program::{Source, Traced};
use crate::containers::{Flat, Tree};
use crate::error::Fallible;
use crate::trace_allocations;

impl Jitted {
    /// The arguments of a call taken apart.
    pub(crate) fn take_apart<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Flat<'py>> {
        self.signature.flatten(self.fun.bind(py), args, kwargs)
    }

    /// The name of a positional argument.
    pub(crate) fn argument_name(&self, py: Python<'_>, position: usize) -> String {
        self.signature.name(py, position)
    }

    /// What is traced.
    pub(super) fn source(slf: &Bound<'_, Jitted>) -> Source {
        let (this, definition) = (slf.get(), slf.clone().unbind());
        let call = move |args: &Bound<'_, PyTuple>, kwargs: &Bound<'_, PyDict>| {
            Ok(definition.get().apply(args, Some(kwargs))?.unbind())
        };
        Source::new(this.op(), this.fun.bind(slf.py()), Arc::new(call))
    }

    /// The graph of the function on arguments of a structure and types; nothing is compiled.
    pub(crate) fn region(slf: &Bound<'_, Jitted>, tree: &Tree, models: &[Tensor]) -> Fallible<Arc<Region>> {
        let py = slf.py();
        let traced = Traced::of(py, &Jitted::source(slf), tree, models, &slf.get().chosen(py)?);
        trace_allocations::forget();
        Ok(traced?.region)
    }
}

/// The class of bound methods.
pub(super) fn method_class(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    Ok(CLASS.import(py, "types", "MethodType")?.clone())
}

/// What a definition has of the function that it wraps.
pub(super) fn attribute<'py>(
    fun: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
    text: &str,
) -> PyResult<Bound<'py, PyAny>> {
    match text {
        "__wrapped__" => Ok(fun.clone()),
        "__annotations__" | "__type_params__" => fun.getattr(name),
        _ if !text.starts_with("__") && fun.is_exact_instance_of::<PyFunction>() => fun.getattr(name),
        _ => Err(PyAttributeError::new_err(format!("a definition has no attribute '{text}'"))),
    }
}
