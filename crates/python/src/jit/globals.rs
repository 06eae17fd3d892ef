//! Plain values that a traced function read from its module: a compiled version holds while they are the same.
//!
//! A global number, text or function is frozen into the program that was traced with it. Each version therefore
//! remembers what the names in the function's code meant, and is passed over once one of them means something
//! else. Tensors are no part of this: they are hidden inputs.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyComplex, PyDict, PyFloat, PyFrozenSet, PyFunction, PyInt, PyString, PyTuple,
};
use rustc_hash::FxHashSet;

use defn_core::vectorize::type_text;

use super::Jitted;
use super::environment::{code_names, is_library};
use super::leaf;
use crate::containers::{self, Aspect, Mode};
use crate::error::Fallible;

/// Functions whose names are looked at.
const FUNCTION_LIMIT: usize = 1_000;

/// A name and what it meant.
pub(super) struct Guard {
    globals: Py<PyDict>,
    name: Py<PyString>,
    /// The plain value, or the code of the function.
    meant: Py<PyAny>,
}

impl Guard {
    /// What changed, where the name means something else now: the place, the aspect, and both meanings.
    pub(super) fn change(&self, py: Python<'_>) -> Fallible<Option<(String, Aspect, String, String)>> {
        if self.holds(py)? {
            return Ok(None);
        }
        let place = format!("the global {}", self.name.bind(py));
        let before = self.meant.bind(py);
        let old = text(before);
        let Some(now) = self.globals.bind(py).get_item(&self.name)? else {
            return Ok(Some((place, Aspect::Kind, old, "not defined".to_owned())));
        };
        let (mut old, mut new) = (old, text(&function_of(&now)?.unwrap_or_else(|| now.clone())));
        let aspect = match (is_plain(before), is_plain(&now)) {
            (true, true) if before.is_none() || now.is_none() => Aspect::Kind,
            (true, true) if before.get_type().is(now.get_type()) => Aspect::Value,
            (true, true) => {
                old = format!("{} {old}", before.get_type().name()?);
                new = format!("{} {new}", now.get_type().name()?);
                Aspect::Class
            }
            (false, false) => Aspect::Function,
            (true, false) | (false, true) => Aspect::Kind,
        };
        if old == new {
            new = format!("another {}", new.trim_start_matches("the function "));
        }
        Ok(Some((place, aspect, old, new)))
    }

    /// Whether the name still means the same.
    fn holds(&self, py: Python<'_>) -> Fallible<bool> {
        let Some(now) = self.globals.bind(py).get_item(&self.name)? else { return Ok(false) };
        if now.is(&self.meant) {
            return Ok(true);
        }
        let Some(now) = meaning(&now)? else { return Ok(false) };
        if now.is(&self.meant) {
            return Ok(true);
        }
        let before = self.meant.bind(py);
        if !is_plain(&now) || !is_plain(before) {
            return Ok(false);
        }
        let before = containers::flatten("jit", Mode::Static, before)?;
        Ok(before.tree.equals(py, &containers::flatten("jit", Mode::Static, &now)?.tree)?)
    }
}

/// What the names of a function's code mean, and those of the functions that it names.
pub(super) fn guards<'py>(functions: impl IntoIterator<Item = Bound<'py, PyAny>>) -> Fallible<Vec<Guard>> {
    let mut guards = Vec::new();
    let mut seen = FxHashSet::default();
    let mut queue: Vec<Bound<'py, PyAny>> = functions.into_iter().collect();
    let mut at = 0;
    while at < queue.len() && at < FUNCTION_LIMIT {
        let value = queue[at].clone();
        at += 1;
        let Some(function) = function_of(&value)? else { continue };
        let py = function.py();
        let code = function.getattr(intern!(py, "__code__"))?;
        if !seen.insert(code.as_ptr() as usize) || is_library(&function.getattr(intern!(py, "__module__"))?) {
            continue;
        }
        let globals =
            function.getattr(intern!(py, "__globals__"))?.cast_into::<PyDict>().map_err(PyErr::from)?;
        for name in code_names(&code)? {
            let Some(value) = globals.get_item(&name)? else { continue };
            let Some(meant) = meaning(&value)? else { continue };
            queue.push(value);
            guards.push(Guard {
                globals: globals.clone().unbind(),
                name: name.unbind(),
                meant: meant.unbind(),
            });
        }
    }
    Ok(guards)
}

/// The guards that hold still: a name that tracing gave another meaning is what the function changes, and
/// not what it depends on.
pub(super) fn stable(py: Python<'_>, guards: Vec<Guard>) -> Fallible<Vec<Guard>> {
    let mut kept = Vec::with_capacity(guards.len());
    for guard in guards {
        if guard.holds(py)? {
            kept.push(guard);
        }
    }
    Ok(kept)
}

/// The name of the first that means something else now.
pub(super) fn first_broken(py: Python<'_>, guards: &[Guard]) -> Fallible<Option<String>> {
    for guard in guards {
        if !guard.holds(py)? {
            return Ok(Some(guard.name.bind(py).to_string()));
        }
    }
    Ok(None)
}

/// What a name means, as text: the type of a tensor, a function or its code by name, another value as it is.
pub(super) fn text(value: &Bound<'_, PyAny>) -> String {
    match leaf::captured_model(value) {
        Ok(Some(model)) => type_text(&model),
        Ok(None) | Err(_) => containers::any_text(value),
    }
}

/// What of a value a program depends on: a plain value itself, of a function its code.
fn meaning<'py>(value: &Bound<'py, PyAny>) -> Fallible<Option<Bound<'py, PyAny>>> {
    if is_plain(value) {
        return Ok(Some(value.clone()));
    }
    match function_of(value)? {
        Some(function) => Ok(Some(function.getattr(intern!(value.py(), "__code__"))?)),
        None => Ok(None),
    }
}

/// The Python function behind a function or a definition.
fn function_of<'py>(value: &Bound<'py, PyAny>) -> Fallible<Option<Bound<'py, PyAny>>> {
    let mut value = value.clone();
    while let Ok(jitted) = value.cast::<Jitted>() {
        let inner = jitted.get().fun(value.py()).clone();
        value = inner;
    }
    if value.is_exact_instance_of::<PyFunction>() {
        return Ok(Some(value));
    }
    match value.getattr_opt(intern!(value.py(), "__func__")) {
        Ok(Some(function)) if function.is_exact_instance_of::<PyFunction>() => Ok(Some(function)),
        Ok(_) | Err(_) => Ok(None),
    }
}

/// Whether a value cannot change, so that it is compared where it stands.
pub(super) fn is_plain(value: &Bound<'_, PyAny>) -> bool {
    value.is_none()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyComplex>()
        || value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyBytes>()
        || value.is_exact_instance_of::<PyFrozenSet>() && all_plain(value)
        || value.is_exact_instance_of::<PyTuple>() && all_plain(value)
}

fn all_plain(values: &Bound<'_, PyAny>) -> bool {
    values.try_iter().is_ok_and(|mut items| items.all(|item| item.is_ok_and(|item| is_plain(&item))))
}
