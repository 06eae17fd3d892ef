//! The kinds of values at guarded places: plain values, containers, objects of Python's library, and functions.

use defn_core::Tensor;
use defn_core::vectorize::type_text;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyComplex, PyFloat, PyFrozenSet, PyFunction, PyInt, PyList, PyMemoryView,
    PyString, PyTuple, PyType,
};

use crate::containers::{self, Flat, Mode, Tree};
use crate::error::{Fallible, if_there};
use crate::jit::Jitted;
use crate::jit::leaf;
use crate::ops::FastFunction;

/// The number of values in a container that are compared. Of a larger container, the class and the length are
/// compared.
const VALUE_LIMIT: usize = 1_000;

/// The mutable contents of an object of Python's library, as a container or a plain value: the entries of a queue, or
/// the bytes of an array.
pub(super) fn library_contents<'py>(value: &Bound<'py, PyAny>) -> Fallible<Option<Bound<'py, PyAny>>> {
    let py = value.py();
    if value.is_instance_of::<PyByteArray>() {
        return Ok(Some(
            PyBytes::new(py, &value.cast::<PyByteArray>().map_err(PyErr::from)?.to_vec()).into_any(),
        ));
    }
    static PACKED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if value.is_instance_of::<PyMemoryView>() || value.is_instance(PACKED.import(py, "array", "array")?)? {
        return Ok(Some(value.call_method0(intern!(py, "tobytes"))?));
    }
    static QUEUE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if value.is_instance(QUEUE.import(py, "collections", "deque")?)? {
        return Ok(Some(PyList::new(py, value.try_iter()?.collect::<PyResult<Vec<_>>>()?)?.into_any()));
    }
    static KEPT: [PyOnceLock<Py<PyType>>; 2] = [const { PyOnceLock::new() }; 2];
    for (cell, name) in KEPT.iter().zip(["UserDict", "UserList"]) {
        if value.is_instance(cell.import(py, "collections", name)?)? {
            return Ok(Some(value.getattr(intern!(py, "data"))?));
        }
    }
    Ok(None)
}

/// The structure of a container, and the types of its tensors.
pub(in crate::jit) struct ContainerContents {
    pub(in crate::jit) tree: Tree,
    pub(in crate::jit) models: Vec<Tensor>,
}

impl ContainerContents {
    pub(super) fn into_retained(self, py: Python<'_>) -> PyResult<ContainerContents> {
        Ok(ContainerContents { tree: self.tree.into_retained(py)?, models: self.models })
    }
}

/// The contents of a container, unless it is too large to be compared at each call.
pub(super) fn container_contents(value: &Bound<'_, PyAny>) -> Fallible<Option<ContainerContents>> {
    let Some(Flat { tree, leaves, .. }) = flat(value)? else { return Ok(None) };
    let models = leaves.iter().map(|leaf| leaf::model("jit", leaf)).collect::<Fallible<_>>()?;
    Ok(Some(ContainerContents { tree, models }))
}

/// Flattens a container. None for a container that is too large or too deep, and for one whose class prevents it.
pub(super) fn flat<'py>(value: &Bound<'py, PyAny>) -> Fallible<Option<Flat<'py>>> {
    if_there(value.py(), containers::flatten_within("jit", Mode::Environment, value, VALUE_LIMIT))
}

/// A value as text: the type of a tensor, the name of a function or of code, and other values as they are.
pub(in crate::jit) fn describe_value(value: &Bound<'_, PyAny>) -> String {
    match leaf::captured_model(value) {
        Ok(Some(model)) => type_text(&model),
        Ok(None) | Err(_) => containers::any_text(value),
    }
}

/// The Python function behind a function or a definition.
pub(super) fn function_of<'py>(value: &Bound<'py, PyAny>) -> Fallible<Option<Bound<'py, PyAny>>> {
    let mut value = value.clone();
    while let Ok(jitted) = value.cast::<Jitted>() {
        let inner = jitted.get().fun(value.py()).clone();
        value = inner;
    }
    if let Ok(quick) = value.cast::<FastFunction>() {
        let inner = quick.get().fun(value.py()).clone();
        value = inner;
    }
    if value.is_exact_instance_of::<PyFunction>() {
        return Ok(Some(value));
    }
    let function = if_there(value.py(), value.getattr_opt(intern!(value.py(), "__func__")))?.flatten();
    Ok(function.filter(|function| function.is_exact_instance_of::<PyFunction>()))
}

/// Whether a value is immutable, so that the value itself is compared.
pub(super) fn is_plain(value: &Bound<'_, PyAny>) -> bool {
    is_plain_at(value, 0)
}

/// Values that are nested deeper than the limit are not plain. Flattening refuses them.
fn is_plain_at(value: &Bound<'_, PyAny>, depth: usize) -> bool {
    value.is_none()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyComplex>()
        || value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyBytes>()
        || value.is_exact_instance_of::<PyFrozenSet>() && all_plain(value, depth)
        || value.is_exact_instance_of::<PyTuple>() && all_plain(value, depth)
}

fn all_plain(values: &Bound<'_, PyAny>, depth: usize) -> bool {
    // Only exact tuples and sets reach this line. Their iterators run no code of the user's.
    let is_plain = |item: PyResult<Bound<'_, PyAny>>| item.is_ok_and(|item| is_plain_at(&item, depth + 1));
    depth < containers::DEPTH_LIMIT && values.try_iter().is_ok_and(|mut items| items.all(is_plain))
}

/// Whether a module is one of those that hold many objects but no tensors of the user's.
pub(super) fn is_library(module: &Bound<'_, PyAny>) -> bool {
    let Ok(name) = module.extract::<String>() else {
        return false;
    };
    let top = name.split('.').next().unwrap_or_default();
    ["defn", "numpy", "builtins", "typing", "functools", "dataclasses", "ml_dtypes"].contains(&top)
}
