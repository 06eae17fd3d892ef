//! Public functions whose calls on small tensors run without a Python frame.
//!
//! They try the core's fast path first. A call that it rejects takes the general path.

use defn_core::op::{BinaryOp, UnaryOp};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::elementwise::{BinaryFunction, UnaryFunction};
use crate::error::Fallible;
use crate::fields::Fields;

/// A wrapper of a Python function that applies an op, or several that are compiled where they recur. A call with
/// only the operands tries the fast path first, and the function runs only if that does not apply. The wrapper looks like the function, as
/// with `functools.wraps`.
#[pyclass(frozen, dict, weakref, name = "Function", module = "defn._core")]
pub(crate) struct FastFunction(Fields<Function>);

struct Function {
    path: FastPath,
    fun: Py<PyAny>,
}

enum FastPath {
    Unary(UnaryFunction),
    Binary(BinaryFunction),
    /// A function of several ops: its name, and the number of its operands.
    Composite(String, usize),
}

impl FastFunction {
    /// The wrapped Python function.
    pub(crate) fn fun<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.0.fun.bind(py)
    }
}

#[pymethods]
impl FastFunction {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let py = args.py();
        if kwargs.is_none() {
            let result = match (&self.0.path, args.len()) {
                (FastPath::Unary(op), 1) => op.fast_path(&*args.get_borrowed_item(0)?)?,
                (FastPath::Binary(op), 2) => {
                    op.fast_path(&*args.get_borrowed_item(0)?, &*args.get_borrowed_item(1)?)?
                }
                (FastPath::Composite(name, count), passed) if passed == *count => {
                    super::composite_fast_path(name, args)?
                }
                (FastPath::Unary(_) | FastPath::Binary(_) | FastPath::Composite(..), _) => None,
            };
            if let Some(result) = result {
                return Ok(result.into_any());
            }
        }
        Ok(self.0.fun.bind(py).call(args, kwargs)?)
    }

    /// Binds to an instance as a method, as functions do.
    fn __get__<'py>(
        slf: Bound<'py, Self>,
        instance: &Bound<'py, PyAny>,
        owner: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static METHOD: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let _ = owner;
        if instance.is_none() {
            return Ok(slf.into_any());
        }
        METHOD.import(slf.py(), "types", "MethodType")?.call1((&slf, instance))
    }

    /// Pickled by its qualified name.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.fun.bind(py).getattr(intern!(py, "__qualname__"))
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.0.fun.bind(py).repr()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.get().map_or(Ok(()), |function| visit.call(&function.fun))
    }
}

/// Wraps the function of an element-wise op, or of several ops without options, so that its fast path is tried first.
#[pyfunction]
fn quick<'py>(function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    let name = function.getattr(intern!(py, "__name__"))?.cast_into::<PyString>()?;
    let name = name.to_str()?;
    let unary = UnaryOp::ALL.iter().find(|op| op.name() == name);
    let binary = BinaryOp::ALL.iter().find(|op| op.name() == name);
    let path = match (unary, binary) {
        (Some(&op), _) => FastPath::Unary(UnaryFunction { op }),
        (None, Some(&op)) => FastPath::Binary(BinaryFunction { op }),
        (None, None) => {
            let code = function.getattr(intern!(py, "__code__"))?;
            FastPath::Composite(name.to_owned(), code.getattr(intern!(py, "co_argcount"))?.extract()?)
        }
    };
    let result = Bound::new(py, FastFunction(Function { path, fun: function.clone().unbind() }.into()))?;
    py.import("functools")?.call_method1("update_wrapper", (result, function))
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(quick, module)?)
}
