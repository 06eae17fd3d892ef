//! Whose code a module has: the user's, or that of an installed package.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use rustc_hash::{FxHashMap, FxHashSet};

use super::values::is_library;
use crate::error::{Fallible, if_there};

/// The packages that were seen. A package is known by the first part of its name.
#[derive(Default)]
pub(super) struct Packages {
    /// Those that count as the user's own, whether they are installed or not.
    own: FxHashSet<String>,
    installed: FxHashMap<String, bool>,
}

impl Packages {
    /// Counts the package of a definition's function as the user's own.
    pub(super) fn add_own(&mut self, function: &Bound<'_, PyAny>) {
        let module = function.getattr(intern!(function.py(), "__module__"));
        self.own.extend(module.ok().and_then(|module| top_level(&module)));
    }

    pub(super) fn is_own(&self, module: &Bound<'_, PyAny>) -> bool {
        top_level(module).is_some_and(|top| self.own.contains(&top))
    }

    /// Whether the module with a name is this library's, Python's or an installed package's, and not the user's own.
    pub(super) fn is_installed(&mut self, module: &Bound<'_, PyAny>) -> Fallible<bool> {
        let Some(top) = top_level(module).filter(|top| !self.own.contains(top)) else { return Ok(false) };
        if let Some(&known) = self.installed.get(&top) {
            return Ok(known);
        }
        let found = is_library(module) || is_package_installed(module.py(), &top)?;
        self.installed.insert(top, found);
        Ok(found)
    }
}

/// The first part of a module's name.
fn top_level(module: &Bound<'_, PyAny>) -> Option<String> {
    module.extract::<String>().ok()?.split('.').next().map(str::to_owned)
}

/// Whether the module with a name is this library's or Python's.
pub(super) fn is_foreign(module: &Bound<'_, PyAny>) -> Fallible<bool> {
    Ok(is_library(module) || top_level(module).map_or(Ok(false), |top| is_standard(module.py(), &top))?)
}

/// Whether the standard library has a module of this name.
fn is_standard(py: Python<'_>, top: &str) -> PyResult<bool> {
    py.import("sys")?.getattr(intern!(py, "stdlib_module_names"))?.contains(top)
}

fn is_package_installed(py: Python<'_>, top: &str) -> Fallible<bool> {
    if is_standard(py, top)? {
        return Ok(true);
    }
    let modules =
        py.import("sys")?.getattr(intern!(py, "modules"))?.cast_into::<PyDict>().map_err(PyErr::from)?;
    let Some(package) = modules.get_item(top)? else { return Ok(false) };
    match if_there(py, package.getattr_opt(intern!(py, "__file__")))?.flatten() {
        Some(file) if file.is_instance_of::<PyString>() => is_file_installed(&file),
        Some(_) | None => Ok(false),
    }
}

/// Whether a file is in a folder of installed packages.
pub(super) fn is_file_installed(file: &Bound<'_, PyAny>) -> Fallible<bool> {
    let py = file.py();
    Ok(py.import("defn._reads")?.call_method1(intern!(py, "is_installed"), (file,))?.is_truthy()?)
}
