//! Backends written in Python: `defn.Backend` behind the core's traits.
//!
//! The core's form of an op determines its callback: the name, and the operands and attributes in order.
//! While Python may run, we hold no lock and no trace is open, so that a callback may compute with tensors.

mod buffer;
pub(crate) mod call;
mod fallback;
mod functions;
mod user;

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use defn_core::backend::{Backend, Buffer, Buffers, HostMemory, Operand};
use defn_core::format::packed;
use defn_core::op::{Block, Op};
use defn_core::{Error, ErrorKind, Result, Tensor, TensorType, form, trace};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};
use smallvec::{SmallVec, smallvec};

pub(crate) use buffer::{PythonBuffer, from_pointer};
pub(crate) use user::native;

use crate::error::{Fallible, Fault, if_there_or_defer};
use crate::gil;
use call::Call;

/// The base class of `defn.Backend`.
#[pyclass(subclass, frozen, weakref, name = "Backend", module = "defn._core")]
pub(crate) struct PyBackend {
    name: String,
    /// Whether the class overrides the callback for blocks.
    has_blocks: OnceLock<bool>,
}

#[pymethods]
impl PyBackend {
    #[new]
    #[classmethod]
    #[pyo3(signature = (*_args, **_options))]
    fn new(
        class: &Bound<'_, PyType>,
        _args: &Bound<'_, PyTuple>,
        _options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyBackend> {
        Ok(PyBackend { name: class.name()?.to_string(), has_blocks: OnceLock::new() })
    }
}

/// The Python base class, which has the default callbacks.
fn base_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "defn.backends", "Backend")
}

/// The backend of a Python object, if the object is one.
pub(crate) fn from_object(value: &Bound<'_, PyAny>) -> Option<Arc<dyn Backend>> {
    let object = value.cast::<PyBackend>().ok()?;
    Some(adapter(object.as_unbound(), value.py()))
}

/// The adapter of a Python backend.
fn adapter(object: &Py<PyBackend>, py: Python<'_>) -> Arc<dyn Backend> {
    Arc::new(Adapter { object: object.clone_ref(py) })
}

/// The Python object of a backend, if it is a Python backend.
pub(crate) fn to_object<'py>(py: Python<'py>, backend: &dyn Backend) -> Option<Bound<'py, PyBackend>> {
    let adapter = backend.as_any().downcast_ref::<Adapter>()?;
    Some(adapter.object.bind(py).clone())
}

/// Whether a backend's class overrides a callback. A class that hides it from look-up does not.
fn defines(backend: &Bound<'_, PyBackend>, callback: &str) -> bool {
    let find = || -> PyResult<bool> {
        let own = backend.get_type().getattr(callback)?;
        Ok(!own.is(&base_class(backend.py())?.getattr(callback)?))
    };
    if_there_or_defer(backend.py(), find()).unwrap_or(false)
}

/// The data of a tensor on a Python backend; `None` for other backends.
///
/// # Errors
/// The data was freed.
pub(crate) fn data<'py>(py: Python<'py>, tensor: &Tensor) -> Option<Result<Bound<'py, PyAny>>> {
    let buffer = tensor.buffer()?.as_any().downcast_ref::<PythonBuffer>()?;
    Some(buffer.data("data").map(|data| data.into_bound(py)))
}

/// A Python exception as an error of the core. The error carries the exception, which is raised again later.
pub(crate) fn carry(fault: impl Into<Fault>) -> Error {
    match fault.into() {
        Fault::Core(error) => error,
        fault @ (Fault::Misuse(_) | Fault::Python(_)) => {
            ErrorKind::Host { error: Arc::new(PyErr::from(fault)) }.into()
        }
    }
}

/// Calls Python from within the core.
pub(crate) fn enter<T>(body: impl FnOnce(Python<'_>) -> Fallible<T>) -> Result<T> {
    trace::suspended(|| gil::attach(|py| body(py).map_err(carry)))
}

/// A Python object as a backend of the core.
struct Adapter {
    object: Py<PyBackend>,
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Adapter({})", self.name())
    }
}

impl Adapter {
    /// The only result of a callback, as a buffer.
    fn adopt<'py>(
        &self,
        py: Python<'py>,
        callback: &str,
        ty: &TensorType,
        result: Bound<'py, PyAny>,
    ) -> Fallible<Arc<dyn Buffer>> {
        buffer::adopt(py, &self.object, callback, ty, result)
    }
}

impl Backend for Adapter {
    fn name(&self) -> &str {
        &self.object.get().name
    }

    fn device_name(&self) -> String {
        let text = Python::attach(|py| Some(if_there_or_defer(py, self.object.bind(py).repr())?.to_string()));
        text.unwrap_or_else(|| self.name().to_owned())
    }

    fn from_host(&self, ty: &TensorType, bytes: HostMemory) -> Result<Arc<dyn Buffer>> {
        enter(|py| {
            let elements = &bytes.bytes()[..ty.byte_size()];
            let data = PyBytes::new(py, &packed::pack(ty.dtype, elements));
            let out = call::template(py, ty)?;
            let result = self.object.bind(py).call_method1(intern!(py, "from_binary"), (out, data))?;
            self.adopt(py, "from_binary", ty, result)
        })
    }

    fn run(&self, op: &Op, operands: SmallVec<[Operand; 3]>, outputs: &[TensorType]) -> Result<Buffers> {
        if let Op::StopGrad | Op::Mark { .. } | Op::Transfer { .. } | Op::Barrier = op {
            return Ok(operands.into_iter().map(|operand| operand.buffer).collect());
        }
        if let Op::Literal(literal) = op {
            let bytes = HostMemory::new(Arc::new(literal.bytes().to_vec()));
            return Ok(smallvec![self.from_host(literal.ty(), bytes)?]);
        }
        enter(|py| {
            let object = self.object.bind(py);
            let fallback_operands = fallback::operands_of(object, &operands)?;
            let call = Call::new(py, &self.object, op, operands, outputs)?;
            let result = match (call.apply(object), fallback_operands) {
                (Ok(result), _) => result,
                (Err(fault), Some(fallback_operands)) if fallback::is_missing_callback(py, &fault)? => {
                    fallback::warn_once(object, call.name)?;
                    return fallback::run(self, op, fallback_operands, outputs);
                }
                (Err(fault), _) => return Err(fault),
            };
            if let [ty] = outputs {
                return Ok(smallvec![self.adopt(py, call.name, ty, result)?]);
            }
            let results = buffer::several(self.name(), call.name, outputs, &result)?;
            let pairs = results.into_iter().zip(outputs);
            pairs.map(|(result, ty)| self.adopt(py, call.name, ty, result)).collect()
        })
    }

    fn has_native(&self, _: &Block) -> bool {
        let object = self.object.get();
        if let Some(&has_blocks) = object.has_blocks.get() {
            return has_blocks;
        }
        // Computed outside of `get_or_init`: looking up an attribute may run Python code.
        let found = Python::attach(|py| defines(self.object.bind(py), "block"));
        *object.has_blocks.get_or_init(|| found)
    }

    fn has_native_fold(&self, fold: &Op) -> bool {
        Python::attach(|py| defines(self.object.bind(py), form::name(fold)))
    }

    fn is_same_device(&self, other: &dyn Backend) -> bool {
        let Some(other) = other.as_any().downcast_ref::<Adapter>() else {
            return false;
        };
        if self.object.is(&other.object) {
            return true;
        }
        // Backends whose comparison fails count as different.
        let compare = || {
            Python::attach(|py| {
                if_there_or_defer(py, self.object.bind(py).eq(&other.object)).unwrap_or(false)
            })
        };
        trace::suspended(compare)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyBackend>()?;
    module.add_class::<user::UserDefault>()?;
    functions::add(module)
}
