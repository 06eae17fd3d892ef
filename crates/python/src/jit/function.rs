//! The Python function of a definition.

use std::sync::OnceLock;

use pyo3::PyTraverseError;
use pyo3::exceptions::PyAttributeError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyFunction, PyString, PyType};

use super::guards;
use super::signature::function_name;

/// The function that a definition wraps.
pub(crate) struct WrappedFunction {
    fun: Py<PyAny>,
    /// Whether the control flow of the function is rewritten before the function is traced.
    pub(super) converts: bool,
    /// The rewritten function, after it was needed for the first time.
    converted: OnceLock<Py<PyAny>>,
    /// Whether the function has cells or defaults. They are part of the key of each call.
    pub(super) has_closed_values: bool,
}

impl WrappedFunction {
    pub(super) fn new(fun: &Bound<'_, PyAny>, converts: bool) -> PyResult<WrappedFunction> {
        let has_closed_values = guards::has_closed_values(fun)?;
        Ok(WrappedFunction {
            fun: fun.clone().unbind(),
            converts,
            converted: OnceLock::new(),
            has_closed_values,
        })
    }

    pub(super) fn bind<'a, 'py>(&'a self, py: Python<'py>) -> &'a Bound<'py, PyAny> {
        self.fun.bind(py)
    }

    /// The name of the function, for messages.
    pub(super) fn name(&self, py: Python<'_>) -> String {
        function_name(self.fun.bind(py))
    }

    /// The function that a call runs: the rewritten one where the definition asks for that.
    pub(super) fn called<'a, 'py>(&'a self, py: Python<'py>) -> PyResult<&'a Bound<'py, PyAny>> {
        if !self.converts {
            return Ok(self.fun.bind(py));
        }
        if let Some(converted) = self.converted.get() {
            return Ok(converted.bind(py));
        }
        let syntax = py.import("defn._syntax")?;
        let converted = syntax.call_method1(intern!(py, "converted"), (&self.fun,))?.unbind();
        // Two threads may convert the function at the same time. The first result is kept.
        Ok(self.converted.get_or_init(|| converted).bind(py))
    }

    /// An attribute of the function that a definition shows as its own.
    pub(super) fn attribute<'py>(&self, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        let text = name.to_str()?;
        let fun = self.fun.bind(name.py());
        match text {
            "__wrapped__" => Ok(fun.clone()),
            "__annotations__" | "__type_params__" => fun.getattr(name),
            _ if !text.starts_with("__") && fun.is_exact_instance_of::<PyFunction>() => fun.getattr(name),
            _ => Err(PyAttributeError::new_err(format!("a definition has no attribute '{text}'"))),
        }
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.fun)?;
        self.converted.get().map_or(Ok(()), |converted| visit.call(converted))
    }
}

/// The class of bound methods.
pub(super) fn method_class(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    Ok(CLASS.import(py, "types", "MethodType")?.clone())
}
