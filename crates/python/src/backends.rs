//! The backends of tensors: the default backend, backends that users name, and copies between them.

use std::sync::{Arc, OnceLock};

use defn_core::backend::{Backend, Buffer};
use defn_core::{ErrorKind, Tensor};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use smallvec::SmallVec;

use crate::containers::{self, Flat, Mode};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::gil;
use crate::options;
use crate::pjrt;
use crate::pybackend;
use crate::tensor::PyTensor;

/// The names that `backend=` takes.
const KNOWN: &str = "\"cpu\", \"pjrt\" or a backend object";

/// The CPU backend. Constants are folded on it, whatever the default backend is.
pub(crate) fn host() -> Arc<dyn Backend> {
    static CPU: OnceLock<Arc<dyn Backend>> = OnceLock::new();
    CPU.get_or_init(defn_cpu::cpu_backend).clone()
}

/// A backend as a Python object: the object of a Python backend or a device, the name of any other backend.
pub(crate) fn object<'py>(py: Python<'py>, backend: &dyn Backend) -> PyResult<Bound<'py, PyAny>> {
    if let Some(object) = pybackend::to_object(py, backend) {
        return Ok(object.into_any());
    }
    match pjrt::to_object(py, backend) {
        Some(object) => object,
        None => Ok(PyString::new(py, backend.name()).into_any()),
    }
}

/// The default backend for new tensors: that of the context, else that of the process, else the CPU.
///
/// # Errors
/// A name in `DEFN_BACKEND` that is not a backend's.
pub(crate) fn default() -> Fallible<Arc<dyn Backend>> {
    if !options::is_any_set() {
        return Ok(host());
    }
    Python::attach(|py| match options::get(py, intern!(py, "backend"))? {
        Some(value) => find(&value),
        None => Ok(host()),
    })
}

/// The backend that an option names; the default one for None.
///
/// # Errors
/// An unknown name, or an object that is not a backend.
pub(crate) fn parse(value: Option<&Bound<'_, PyAny>>) -> Fallible<Arc<dyn Backend>> {
    match value.filter(|value| !value.is_none()) {
        Some(value) => find(value),
        None => default(),
    }
}

fn find(value: &Bound<'_, PyAny>) -> Fallible<Arc<dyn Backend>> {
    if let Some(backend) = pybackend::from_object(value).or_else(|| pjrt::from_object(value)) {
        return Ok(backend);
    }
    let Ok(name) = value.cast::<PyString>() else {
        return Err(convert::bad("backend", "the backend", value, KNOWN)?);
    };
    match name.to_str()? {
        "cpu" => Ok(host()),
        "pjrt" => Ok(pjrt::backend(value.py(), None, None)?),
        other => Err(ErrorKind::UnknownBackend { name: other.to_owned(), known: KNOWN.to_owned() }.into()),
    }
}

/// The default backend as it was named. An argument replaces that of the context.
#[pyfunction]
#[pyo3(signature = (backend = None))]
fn default_backend<'py>(py: Python<'py>, backend: Option<&Bound<'py, PyAny>>) -> Fallible<Bound<'py, PyAny>> {
    guard(|| {
        let name = intern!(py, "backend");
        let before = match options::get(py, name)? {
            Some(before) => before,
            None => PyString::intern(py, "cpu").into_any(),
        };
        if let Some(backend) = backend {
            find(backend)?;
            options::set(py, name, backend)?;
        }
        Ok(before)
    })
}

/// A container in which `move_tensor` has moved each tensor. Tensors with the same buffer are moved once.
fn each<'py>(
    op: &'static str,
    value: &Bound<'py, PyAny>,
    move_tensor: impl Fn(&Tensor) -> defn_core::Result<Tensor> + Sync,
) -> Fallible<Bound<'py, PyAny>> {
    let py = value.py();
    let Flat { leaves, tree, .. } = containers::flatten(op, Mode::State, value)?;
    let mut moved: SmallVec<[(Arc<dyn Buffer>, Tensor); 8]> = SmallVec::new();
    let mut placed = Vec::with_capacity(leaves.len());
    for leaf in &leaves {
        let tensor = convert::tensor(op, leaf)?;
        let buffer = tensor.require_buffer(op, "return it from the definition, and move it there")?;
        let before = moved.iter().find(|(source, _)| Arc::ptr_eq(source, buffer));
        let there = match before {
            // The same elements were moved before, perhaps under another type.
            Some((_, there)) => match there.buffer() {
                Some(moved) => Tensor::concrete(tensor.whole().clone(), moved.clone())
                    .with_vectorized(tensor.vectorized_axes()),
                None => there.clone(),
            },
            None => {
                let there = gil::detach(py, || move_tensor(&tensor))?;
                moved.push((buffer.clone(), there.clone()));
                there
            }
        };
        placed.push(Bound::new(py, PyTensor::new(there))?.into_any());
    }
    tree.unflatten(py, &mut placed.into_iter())
}

/// Copies of tensors on a backend.
#[pyfunction]
fn backend_copy<'py>(value: &Bound<'py, PyAny>, backend: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
    guard(|| {
        let backend = parse(Some(backend))?;
        each("backend_copy", value, |tensor| tensor.copy_to("backend_copy", &backend))
    })
}

/// Moves the elements to a backend. The source tensors are freed, unless they are on that backend already.
#[pyfunction]
fn backend_transfer<'py>(
    value: &Bound<'py, PyAny>,
    backend: &Bound<'py, PyAny>,
) -> Fallible<Bound<'py, PyAny>> {
    guard(|| {
        let backend = parse(Some(backend))?;
        each("backend_transfer", value, |tensor| tensor.transfer_to("backend_transfer", &backend))
    })
}

/// Frees the elements of tensors, and returns the outcome for each.
#[pyfunction]
fn backend_deallocate<'py>(value: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
    guard(|| {
        let (py, op) = (value.py(), "backend_deallocate");
        let Flat { leaves, tree, .. } = containers::flatten(op, Mode::State, value)?;
        let mut done = Vec::with_capacity(leaves.len());
        for leaf in &leaves {
            let freed = match leaf.cast::<PyTensor>() {
                Ok(tensor) => {
                    let tensor = &tensor.get().tensor;
                    tensor.require_buffer(op, "free it outside the definition")?.deallocate()?
                }
                // A number or an array has no buffer to free.
                Err(_) => true,
            };
            let text = if freed { "ok" } else { "already_deallocated" };
            done.push(PyString::intern(py, text).into_any());
        }
        tree.unflatten(py, &mut done.into_iter())
    })
}

/// Templates of tensors, numbers and arrays.
#[pyfunction]
fn to_template<'py>(value: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
    guard(|| {
        let (py, op) = (value.py(), "to_template");
        let Flat { leaves, tree, .. } = containers::flatten(op, Mode::State, value)?;
        let mut templates = Vec::with_capacity(leaves.len());
        for leaf in &leaves {
            let tensor = convert::tensor(op, leaf)?;
            let template = Tensor::template(tensor.whole().clone()).with_vectorized(tensor.vectorized_axes());
            templates.push(Bound::new(py, PyTensor::new(template))?.into_any());
        }
        tree.unflatten(py, &mut templates.into_iter())
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(default_backend, module)?)?;
    module.add_function(wrap_pyfunction!(backend_copy, module)?)?;
    module.add_function(wrap_pyfunction!(backend_transfer, module)?)?;
    module.add_function(wrap_pyfunction!(backend_deallocate, module)?)?;
    module.add_function(wrap_pyfunction!(to_template, module)?)
}
