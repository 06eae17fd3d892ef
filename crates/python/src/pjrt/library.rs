//! Functions of JAX's packages for CUDA, by which programs call NVIDIA's libraries.

use std::ffi::c_void;
use std::path::Path;
use std::ptr::NonNull;

use defn_pjrt::CustomCall;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyDict};

use crate::error::Fallible;

/// The client of plugins for NVIDIA's GPUs.
const CUDA: &str = "cuda";

/// Gives a plugin for CUDA the functions that are installed beside it.
///
/// # Errors
/// Any error of the search for them.
pub(super) fn register(py: Python<'_>, plugin: &Path) -> Fallible<()> {
    if defn_pjrt::client_name(plugin) != CUDA {
        return Ok(());
    }
    let path = py.import("pathlib")?.getattr("Path")?.call1((plugin,))?;
    let found = py.import("defn.pjrt.discovery")?.call_method1("custom_calls", (path,))?;
    let found = found.cast_into::<PyDict>().map_err(PyErr::from)?;
    let mut calls = Vec::new();
    for name in defn_pjrt::library_calls() {
        if let Some(handler) = found.get_item(name)?.and_then(|capsule| address(&capsule)) {
            // SAFETY: capsules without a name in these modules hold functions of XLA's typed interface, and Python
            // never unloads the modules.
            calls.push(unsafe { CustomCall::new(*name, handler) });
        }
    }
    defn_pjrt::set_library(plugin, calls);
    Ok(())
}

/// The address in a capsule without a name. One with a name has a function of an older interface.
fn address(capsule: &Bound<'_, PyAny>) -> Option<NonNull<c_void>> {
    capsule.cast::<PyCapsule>().ok()?.pointer_checked(None).ok()
}
