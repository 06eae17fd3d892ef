//! Lazy leaves: functions without parameters that return tensors, called when the tensor is needed.
//!
//! Containers treat them as leaves. Only code that needs the elements calls the function, so that an
//! argument that nothing uses is never computed.

use std::sync::OnceLock;

use defn_core::Tensor;
use defn_core::vectorize::type_text;
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyFunction;

use crate::convert;
use crate::error::{Fallible, guard};
use crate::jit;
use crate::misuse::Misuse;
use crate::tensor::PyTensor;

/// The bit of `co_flags` for `*args` (`inspect.CO_VARARGS`).
const VARARGS: u32 = 0x04;

/// The bit for `**kwargs`.
const VARKEYWORDS: u32 = 0x08;

/// A tensor that a function computes when it is needed.
#[pyclass(frozen, weakref, name = "Lazy", module = "defn")]
pub(crate) struct PyLazy {
    /// Its type, if known before the tensor.
    template: Option<Tensor>,
    fun: Py<PyAny>,
    /// The cached tensor, if only the tensor itself determines the type.
    cached: OnceLock<Tensor>,
}

impl PyLazy {
    /// A leaf of a function whose type is that of the tensor it returns.
    pub(crate) fn of(fun: &Bound<'_, PyAny>) -> PyLazy {
        PyLazy { template: None, fun: fun.clone().unbind(), cached: OnceLock::new() }
    }

    /// The type and the vectorized axes, as a template.
    ///
    /// # Errors
    /// Any error that the function raises, if it must be called.
    pub(crate) fn model(&self, py: Python<'_>) -> Fallible<Tensor> {
        let tensor = match &self.template {
            Some(template) => template.clone(),
            None => self.read(py)?,
        };
        Ok(Tensor::template(tensor.whole().clone()).with_vectorized(tensor.vectorized_axes()))
    }

    /// The tensor.
    ///
    /// # Errors
    /// Any error that the function raises, and a tensor of another type than the template's.
    pub(crate) fn read(&self, py: Python<'_>) -> Fallible<Tensor> {
        if let Some(cached) = self.cached.get() {
            return Ok(cached.clone());
        }
        let tensor = convert::tensor("lazy", &self.fun.bind(py).call0()?)?;
        let Some(template) = &self.template else {
            return Ok(self.cached.get_or_init(|| tensor).clone());
        };
        if tensor.ty() != template.ty() || tensor.vectorized_axes() != template.vectorized_axes() {
            let (got, expected) = (type_text(&tensor), type_text(template));
            return Err(Misuse::LazyType { got, expected }.into());
        }
        Ok(tensor)
    }
}

#[pymethods]
impl PyLazy {
    fn __call__(&self, py: Python<'_>) -> Fallible<PyTensor> {
        guard(|| Ok(PyTensor::new(self.read(py)?)))
    }

    fn __repr__(&self) -> String {
        match &self.template {
            Some(template) => format!("<lazy {}>", type_text(template)),
            None => "<lazy>".to_owned(),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.fun)
    }
}

/// The object as a lazy leaf, if it is one.
pub(crate) fn of<'a, 'py>(value: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, PyLazy>> {
    value.cast_exact::<PyLazy>().ok()
}

/// Whether an object is a Python function without parameters.
pub(crate) fn takes_nothing(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    let Ok(function) = value.cast_exact::<PyFunction>() else { return Ok(false) };
    let code = function.getattr(intern!(py, "__code__"))?;
    let count = |name: &str| -> PyResult<u32> { code.getattr(name)?.extract() };
    Ok(count("co_argcount")? == 0
        && count("co_kwonlyargcount")? == 0
        && count("co_flags")? & (VARARGS | VARKEYWORDS) == 0)
}

/// A lazy leaf whose type is known before the tensor.
#[pyfunction]
fn lazy(template: &Bound<'_, PyAny>, fun: &Bound<'_, PyAny>) -> Fallible<PyLazy> {
    guard(|| {
        if !fun.is_callable() {
            return Err(convert::bad("lazy", "fun", fun, "a function of no argument")?);
        }
        let template = jit::leaf_model("lazy", template)?;
        Ok(PyLazy { template: Some(template), fun: fun.clone().unbind(), cached: OnceLock::new() })
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLazy>()?;
    module.add_function(wrap_pyfunction!(lazy, module)?)
}
