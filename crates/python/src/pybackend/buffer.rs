//! The data of a Python backend as a buffer of the core.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use defn_core::backend::{Backend, Buffer, BufferState, Gone, HostMemory};
use defn_core::format::packed;
use defn_core::{ErrorKind, Result, Tensor, TensorType, trace};
use pyo3::PyTraverseError;
use pyo3::buffer::PyBuffer;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::call::template;
use super::{Adapter, PyBackend, defines, enter};
use crate::backends;
use crate::convert;
use crate::dtype;
use crate::error::{Fallible, if_fits};
use crate::misuse::Misuse;
use crate::tensor::PyTensor;

/// The data of a backend, its type, and the backend, which the buffer keeps alive.
#[derive(Debug)]
pub(crate) struct PythonBuffer {
    ty: TensorType,
    backend: Py<PyBackend>,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Live(Py<PyAny>),
    Gone(Gone),
}

impl PythonBuffer {
    pub(super) fn new(ty: TensorType, backend: Py<PyBackend>, data: Py<PyAny>) -> PythonBuffer {
        PythonBuffer { ty, backend, state: Mutex::new(State::Live(data)) }
    }

    /// The data. `op` is for the message.
    ///
    /// # Errors
    /// The data was freed.
    pub(super) fn data(&self, op: &'static str) -> Result<Py<PyAny>> {
        Python::attach(|py| match &*self.lock() {
            State::Live(data) => Ok(data.clone_ref(py)),
            State::Gone(gone) => Err(ErrorKind::BufferGone { op, gone: gone.clone() }.into()),
        })
    }

    /// Reports the objects that the buffer holds to the garbage collector.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.backend)?;
        // The collector may run on the thread that holds the lock, so the lock is only tried. An object that
        // is not reported stays alive.
        match self.state.try_lock().as_deref() {
            Ok(State::Live(data)) => visit.call(data),
            Ok(State::Gone(_)) | Err(_) => Ok(()),
        }
    }

    /// No Python code runs while the lock is held.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the backend's class overrides a callback.
    fn defines(&self, callback: &str) -> bool {
        Python::attach(|py| defines(self.backend.bind(py), callback))
    }

    /// Sends the elements to another backend through a callback, if the backend overrides it.
    fn send(&self, callback: &'static str, target: &Arc<dyn Backend>) -> Result<Option<Arc<dyn Buffer>>> {
        if !self.defines(callback) {
            return Ok(None);
        }
        enter(|py| {
            let arguments = (self.tensor(py, callback)?, backends::object(py, &**target)?);
            let result = self.backend.bind(py).call_method1(callback, arguments)?;
            if let Ok(tensor) = result.cast::<PyTensor>() {
                let tensor = &tensor.get().tensor;
                let is_same = tensor.whole().dtype == self.ty.dtype
                    && tensor.whole().shape.sizes() == self.ty.shape.sizes()
                    && tensor.backend().is_some_and(|backend| backend.is_same_device(&**target));
                if let (true, Some(buffer)) = (is_same, tensor.buffer()) {
                    return Ok(Some(buffer.clone()));
                }
            }
            let got = convert::describe(&result)?;
            let (callback, backend) = (callback.to_owned(), self.backend.get().name.clone());
            let expected = format!("the tensor {} on {}", self.ty, target.device_name());
            Err(Misuse::CallbackResult { callback, backend, got, expected }.into())
        })
    }

    /// The address of the elements, from the backend's callback.
    pub(crate) fn address(&self, mode: &Bound<'_, PyAny>) -> Result<usize> {
        enter(|py| {
            let callback = "to_pointer";
            let options = PyDict::new(py);
            options.set_item("mode", mode)?;
            let arguments = (self.tensor(py, callback)?,);
            let result = self.backend.bind(py).call_method(callback, arguments, Some(&options))?;
            match if_fits(py, result.extract())? {
                Some(address) => Ok(address),
                None => {
                    let got = convert::describe(&result)?;
                    let (callback, backend) = (callback.to_owned(), self.backend.get().name.clone());
                    let expected = "an address".to_owned();
                    Err(Misuse::CallbackResult { callback, backend, got, expected }.into())
                }
            }
        })
    }

    /// The printed elements, if the backend overrides the callback for it.
    pub(crate) fn inspect(&self, limit: usize) -> Option<Result<String>> {
        if !self.defines("inspect") {
            return None;
        }
        Some(enter(|py| {
            let limit = (limit < usize::MAX).then_some(limit);
            let arguments = (self.tensor(py, "inspect")?, limit);
            let result = self.backend.bind(py).call_method1(intern!(py, "inspect"), arguments)?;
            match result.cast::<PyString>() {
                Ok(text) => Ok(text.to_str()?.to_owned()),
                Err(_) => {
                    let got = convert::describe(&result)?;
                    let (callback, backend) = ("inspect".to_owned(), self.backend.get().name.clone());
                    let expected = "a str".to_owned();
                    Err(Misuse::CallbackResult { callback, backend, got, expected }.into())
                }
            }
        }))
    }

    /// The batches of a type, if the backend overrides the callback for it.
    pub(crate) fn batches(&self, ty: &TensorType, leftover: &str) -> Option<Result<Vec<Tensor>>> {
        if !self.defines("to_batched") {
            return None;
        }
        Some(enter(|py| {
            let callback = "to_batched";
            let options = PyDict::new(py);
            options.set_item("leftover", leftover)?;
            let arguments = (template(py, ty)?, self.tensor(py, callback)?);
            let result = self.backend.bind(py).call_method(callback, arguments, Some(&options))?;
            let rows = (self.ty.shape.sizes()[0], ty.shape.sizes()[0]);
            let count = if leftover == "repeat" { rows.0.div_ceil(rows.1) } else { rows.0 / rows.1 };
            let types = vec![ty.clone(); count];
            let batches = several(&self.backend.get().name, callback, &types, &result)?;
            let adopted = batches.into_iter().map(|batch| {
                let buffer = adopt(py, &self.backend, callback, ty, batch)?;
                Ok(Tensor::concrete(ty.clone(), buffer))
            });
            adopted.collect()
        }))
    }

    /// A tensor over the same data, as an argument of a callback.
    fn tensor<'py>(&self, py: Python<'py>, op: &'static str) -> Fallible<Bound<'py, PyTensor>> {
        self.wrap(py, self.data(op)?)
    }

    fn wrap<'py>(&self, py: Python<'py>, data: Py<PyAny>) -> Fallible<Bound<'py, PyTensor>> {
        let buffer = PythonBuffer::new(self.ty.clone(), self.backend.clone_ref(py), data);
        Ok(Bound::new(py, PyTensor::new(Tensor::concrete(self.ty.clone(), Arc::new(buffer))))?)
    }
}

impl Buffer for PythonBuffer {
    fn backend(&self) -> Arc<dyn Backend> {
        Python::attach(|py| Arc::new(Adapter { object: self.backend.clone_ref(py) }))
    }

    fn read(&self, out: &mut [u8]) -> Result<()> {
        enter(|py| {
            let dtype = self.ty.dtype;
            let limit = out.len() / dtype.storage_bytes();
            let tensor = self.tensor(py, "to_binary")?;
            let backend = self.backend.bind(py);
            let result = backend.call_method1(intern!(py, "to_binary"), (tensor, limit))?;
            let expected = packed::len(dtype, limit);
            let bytes = PyBuffer::<u8>::get(&result).and_then(|buffer| buffer.to_vec(py));
            let bytes = if_fits(py, bytes)?;
            let got = match &bytes {
                Some(bytes) if bytes.len() == expected => None,
                Some(bytes) => Some(format!("{} bytes", bytes.len())),
                None => Some(convert::describe(&result)?),
            };
            let (Some(bytes), None) = (bytes, &got) else {
                let backend = self.backend.get().name.clone();
                let got = got.unwrap_or_default();
                let expected = format!("the {expected} bytes of {limit} elements of {dtype}");
                return Err(Misuse::CallbackResult {
                    callback: "to_binary".to_owned(),
                    backend,
                    got,
                    expected,
                }
                .into());
            };
            out.copy_from_slice(&packed::unpack(dtype, &bytes)[..out.len()]);
            Ok(())
        })
    }

    fn copy_to(&self, backend: &Arc<dyn Backend>) -> Result<Option<Arc<dyn Buffer>>> {
        self.send("backend_copy", backend)
    }

    fn transfer_to(&self, backend: &Arc<dyn Backend>) -> Result<Option<Arc<dyn Buffer>>> {
        match self.send("backend_transfer", backend)? {
            Some(buffer) => Ok(Some(buffer)),
            None => self.copy_to(backend),
        }
    }

    fn host(&self) -> Result<Option<HostMemory>> {
        Ok(None)
    }

    fn state(&self) -> BufferState {
        match &*self.lock() {
            State::Live(_) => BufferState::Live,
            State::Gone(gone) => BufferState::Gone(gone.clone()),
        }
    }

    fn deallocate(&self) -> Result<bool> {
        // The data is taken before the callback runs, so that only one of two concurrent calls frees it.
        let gone = Gone::freed();
        let data = match &mut *self.lock() {
            State::Gone(_) => return Ok(false),
            state @ State::Live(_) => match std::mem::replace(state, State::Gone(gone)) {
                State::Live(data) => data,
                State::Gone(_) => unreachable!("it was live"),
            },
        };
        let result = enter(|py| {
            let tensor = self.wrap(py, data.clone_ref(py))?;
            self.backend.bind(py).call_method1(intern!(py, "backend_deallocate"), (tensor,))?;
            Ok(())
        });
        if let Err(error) = result {
            // The backend failed to free the data, so it is restored.
            *self.lock() = State::Live(data);
            return Err(error);
        }
        Ok(true)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// A tensor over memory at an address, from the backend's callback.
pub(crate) fn from_pointer(
    backend: &Bound<'_, PyBackend>,
    address: &Bound<'_, PyAny>,
    ty: &TensorType,
) -> Fallible<Tensor> {
    let (py, callback) = (backend.py(), "from_pointer");
    let shape = PyTuple::new(py, ty.shape.sizes())?;
    let arguments = (address, dtype::object(py, ty.dtype)?, shape);
    let result = trace::suspended(|| backend.call_method1(callback, arguments))?;
    let buffer = adopt(py, backend.as_unbound(), callback, ty, result)?;
    Ok(Tensor::concrete(ty.clone(), buffer))
}

/// The result of a callback as a buffer, checked against the required type. A tensor is replaced by its data.
pub(super) fn adopt<'py>(
    py: Python<'py>,
    backend: &Py<PyBackend>,
    callback: &str,
    ty: &TensorType,
    result: Bound<'py, PyAny>,
) -> Fallible<Arc<dyn Buffer>> {
    let refuse = |got: String| -> Misuse {
        let (callback, backend) = (callback.to_owned(), backend.get().name.clone());
        Misuse::CallbackResult { callback, backend, got, expected: ty.to_string() }
    };
    let data = if let Ok(tensor) = result.cast::<PyTensor>() {
        let tensor = &tensor.get().tensor;
        let got = tensor.whole();
        if got.dtype != ty.dtype || got.shape.sizes() != ty.shape.sizes() {
            return Err(refuse(format!("the tensor {got}")).into());
        }
        let buffer = tensor.require_buffer("backend", "a callback computes with values")?;
        match buffer.as_any().downcast_ref::<PythonBuffer>() {
            Some(own) if own.backend.is(backend) || own.backend.bind(py).eq(backend)? => {
                own.data("backend")?
            }
            Some(_) | None if callback == "from_binary" => {
                return Err(refuse("a tensor of another backend".to_owned()).into());
            }
            // A tensor of another backend is copied to this one.
            Some(_) | None => {
                let here = Adapter { object: backend.clone_ref(py) };
                return Ok(here.from_host(ty, tensor.host_bytes("backend")?)?);
            }
        }
    } else {
        if result.is_none() {
            return Err(refuse("None".to_owned()).into());
        }
        if let Some(got) = mismatch(&result, ty)? {
            return Err(refuse(got).into());
        }
        result.unbind()
    };
    Ok(Arc::new(PythonBuffer::new(ty.clone(), backend.clone_ref(py), data)))
}

/// How the shape or dtype of an array-like object differs from the type. Other data is not checked.
fn mismatch(data: &Bound<'_, PyAny>, ty: &TensorType) -> Fallible<Option<String>> {
    let py = data.py();
    let (shape, kind) = (data.getattr_opt(intern!(py, "shape"))?, data.getattr_opt(intern!(py, "dtype"))?);
    let (Some(shape), Some(kind)) = (shape, kind) else {
        return Ok(None);
    };
    let Some(sizes) = if_fits(py, shape.extract::<Vec<usize>>())? else {
        return Ok(None);
    };
    let known = dtype::from_python(&kind)?;
    if sizes == ty.shape.sizes() && known.is_none_or(|known| known == ty.dtype) {
        return Ok(None);
    }
    Ok(Some(format!("data of shape {} and dtype {}", shape.repr()?, kind.str()?)))
}

/// The results of a callback with several results.
pub(super) fn several<'py>(
    backend: &str,
    callback: &str,
    outputs: &[TensorType],
    result: &Bound<'py, PyAny>,
) -> Fallible<Vec<Bound<'py, PyAny>>> {
    let is_list = result.is_instance_of::<PyTuple>() || result.is_instance_of::<PyList>();
    if is_list && result.len()? == outputs.len() {
        return Ok(result.try_iter()?.collect::<PyResult<_>>()?);
    }
    let got = if is_list { format!("{} results", result.len()?) } else { convert::describe(result)? };
    let types: Vec<String> = outputs.iter().map(ToString::to_string).collect();
    let (callback, backend) = (callback.to_owned(), backend.to_owned());
    let expected = format!("a tuple of {}", types.join(", "));
    Err(Misuse::CallbackResult { callback, backend, got, expected }.into())
}
