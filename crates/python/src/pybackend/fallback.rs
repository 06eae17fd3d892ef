//! Host execution of operations that a Python backend lacks, enabled by `fallback = "host"`.
//!
//! This is the only place where an op leaves its backend. A warning announces it, once for each callback.

use std::sync::Arc;

use defn_core::backend::{Backend, Buffers, Operand};
use defn_core::op::Op;
use defn_core::{Tensor, TensorType};
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PySet, PyString};
use smallvec::SmallVec;

use super::{Adapter, PyBackend};
use crate::convert;
use crate::error::{Fallible, Fault};
use crate::jit::warn_of;
use crate::misuse::Misuse;

/// The operands, if the backend has enabled the fallback to the host.
pub(super) fn operands_of(
    backend: &Bound<'_, PyBackend>,
    operands: &SmallVec<[Operand; 3]>,
) -> Fallible<Option<SmallVec<[Operand; 3]>>> {
    let Some(option) = backend.getattr_opt(intern!(backend.py(), "fallback"))? else { return Ok(None) };
    if option.is_none() {
        return Ok(None);
    }
    let is_host = option.cast::<PyString>().is_ok_and(|text| text == "host");
    if !is_host {
        let what = format!("fallback of {}", backend.get().name);
        return Err(convert::bad("backend", &what, &option, "\"host\" or None")?);
    }
    Ok(Some(operands.clone()))
}

/// Whether a callback failed because it or a nested callback is missing.
pub(super) fn is_missing_callback(py: Python<'_>, fault: &Fault) -> PyResult<bool> {
    match fault {
        Fault::Misuse(misuse) => Ok(matches!(**misuse, Misuse::CallbackMissing { .. })),
        Fault::Python(error) => {
            let named = error.value(py).getattr_opt(intern!(py, "lacking"))?;
            Ok(named.is_some_and(|named| !named.is_none()))
        }
        Fault::Core(_) => Ok(false),
    }
}

/// Warns once for each backend and callback that the host runs the operation.
pub(super) fn warn_once(backend: &Bound<'_, PyBackend>, callback: &'static str) -> Fallible<()> {
    let py = backend.py();
    let announced = intern!(py, "_announced");
    let warned = match backend.getattr_opt(announced)? {
        Some(warned) => warned.cast_into::<PySet>().map_err(PyErr::from)?,
        None => {
            let warned = PySet::empty(py)?;
            backend.setattr(announced, &warned)?;
            warned
        }
    };
    if warned.contains(callback)? {
        return Ok(());
    }
    warned.add(callback)?;
    let name = &backend.get().name;
    let text = format!(
        "{callback}: the backend {name} has no such callback, and so the host computes it, to and from which elements are copied; define it, or leave out fallback=\"host\" to have an error"
    );
    warn_of(py, &py.get_type::<PyRuntimeWarning>(), &text)
}

/// Runs an op on host copies of its operands, and copies its results to the backend.
pub(super) fn run(
    backend: &Adapter,
    op: &Op,
    operands: SmallVec<[Operand; 3]>,
    outputs: &[TensorType],
) -> Fallible<Buffers> {
    let host: Arc<dyn Backend> = defn_cpu::cpu_backend();
    let copied = operands.into_iter().map(|Operand { ty, buffer }| {
        let tensor = Tensor::concrete(ty, buffer);
        let buffer = host.from_host(tensor.ty(), tensor.host_bytes("fallback")?)?;
        Ok(Operand { ty: tensor.ty().clone(), buffer })
    });
    let copied = copied.collect::<Fallible<SmallVec<[Operand; 3]>>>()?;
    let results = host.run(op, copied, outputs)?;
    let pairs = results.into_iter().zip(outputs);
    pairs
        .map(|(buffer, ty)| {
            let tensor = Tensor::concrete(ty.clone(), buffer);
            Ok(backend.from_host(ty, tensor.host_bytes("fallback")?)?)
        })
        .collect()
}
