//! Where a traced function reads a value: a global or an object, and the attributes and items that lead from it to
//! the value.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyWeakrefMethods, PyWeakrefReference};

use super::values::{function_of, library_contents};
use crate::containers;
use crate::error::{Fallible, if_there};

/// Where a value is read.
#[derive(Clone)]
pub(super) struct ReadPath {
    root: ReadRoot,
    steps: Vec<ReadStep>,
}

enum ReadRoot {
    Global(Py<PyDict>, Py<PyString>),
    /// An object that the key of the call compares by identity, and its name in messages.
    Object(Py<PyAny>, String),
    /// As `Object`, for an object that supports weak references.
    Weak(Py<PyWeakrefReference>, String),
}

impl Clone for ReadRoot {
    fn clone(&self) -> ReadRoot {
        Python::attach(|py| match self {
            ReadRoot::Global(globals, name) => ReadRoot::Global(globals.clone_ref(py), name.clone_ref(py)),
            ReadRoot::Object(object, label) => ReadRoot::Object(object.clone_ref(py), label.clone()),
            ReadRoot::Weak(reference, label) => ReadRoot::Weak(reference.clone_ref(py), label.clone()),
        })
    }
}

/// One step on the way to a value.
pub(super) enum ReadStep {
    Attribute(Py<PyString>),
    Item(Py<PyAny>),
    /// The content of a cell of a function, and the name of the variable.
    Cell(usize, String),
    /// An attribute of the function behind a definition or a method.
    OfFunction(Py<PyString>),
    /// The contents of an object of Python's library, as [`library_contents`] returns them.
    Contents,
}

impl Clone for ReadStep {
    fn clone(&self) -> ReadStep {
        Python::attach(|py| match self {
            ReadStep::Attribute(name) => ReadStep::Attribute(name.clone_ref(py)),
            ReadStep::Item(key) => ReadStep::Item(key.clone_ref(py)),
            ReadStep::Cell(cell, name) => ReadStep::Cell(*cell, name.clone()),
            ReadStep::OfFunction(name) => ReadStep::OfFunction(name.clone_ref(py)),
            ReadStep::Contents => ReadStep::Contents,
        })
    }
}

impl ReadPath {
    pub(super) fn global(globals: &Bound<'_, PyDict>, name: &Bound<'_, PyString>) -> ReadPath {
        let root = ReadRoot::Global(globals.clone().unbind(), name.clone().unbind());
        ReadPath { root, steps: Vec::new() }
    }

    pub(super) fn object(object: &Bound<'_, PyAny>, label: &str) -> Fallible<ReadPath> {
        let root = match PyWeakrefReference::new(object) {
            Ok(reference) => ReadRoot::Weak(reference.unbind(), label.to_owned()),
            Err(_) => ReadRoot::Object(object.clone().unbind(), label.to_owned()),
        };
        Ok(ReadPath { root, steps: Vec::new() })
    }

    pub(super) fn then(&self, step: ReadStep) -> ReadPath {
        let mut source = self.clone();
        source.steps.push(step);
        source
    }

    /// The value that is there now, if there is one.
    pub(super) fn read<'py>(&self, py: Python<'py>) -> Fallible<Option<Bound<'py, PyAny>>> {
        let root = match &self.root {
            ReadRoot::Global(globals, name) => globals.bind(py).get_item(name)?,
            ReadRoot::Object(object, _) => Some(object.bind(py).clone()),
            ReadRoot::Weak(reference, _) => reference.bind(py).upgrade(),
        };
        let Some(mut at) = root else { return Ok(None) };
        for step in &self.steps {
            let next = match step {
                ReadStep::Attribute(name) => at.getattr(name),
                ReadStep::Item(key) => at.get_item(key),
                ReadStep::Cell(cell, _) => match function_of(&at)? {
                    Some(function) => function
                        .getattr(intern!(py, "__closure__"))
                        .and_then(|closure| closure.get_item(*cell))
                        .and_then(|cell| cell.getattr(intern!(py, "cell_contents"))),
                    None => return Ok(None),
                },
                ReadStep::OfFunction(name) => match function_of(&at)? {
                    Some(function) => function.getattr(name),
                    None => return Ok(None),
                },
                ReadStep::Contents => match library_contents(&at)? {
                    Some(inside) => Ok(inside),
                    None => return Ok(None),
                },
            };
            let Some(next) = if_there(py, next)? else { return Ok(None) };
            at = next;
        }
        Ok(Some(at))
    }

    /// The path as text: `the global CONFIG["rate"]`, `self.scale`, `the closure's n of scale`.
    pub(super) fn text(&self, py: Python<'_>) -> String {
        let mut text = match &self.root {
            ReadRoot::Global(_, name) => format!("the global {}", name.bind(py)),
            ReadRoot::Object(_, label) | ReadRoot::Weak(_, label) => label.clone(),
        };
        for step in &self.steps {
            text = match step {
                ReadStep::Attribute(name) => format!("{text}.{}", name.bind(py)),
                ReadStep::Item(key) => format!("{text}[{}]", containers::value_text(key.bind(py))),
                ReadStep::Cell(_, name) => {
                    format!("the closure's {name} of {}", text.trim_start_matches("the global "))
                }
                ReadStep::OfFunction(_) => {
                    format!("the defaults of {}", text.trim_start_matches("the global "))
                }
                ReadStep::Contents => text,
            };
        }
        text
    }

    /// The variable or attribute that is read, and the number of items that follow it.
    pub(super) fn name(&self, py: Python<'_>) -> (String, usize) {
        let mut items = 0;
        for step in self.steps.iter().rev() {
            match step {
                ReadStep::Attribute(name) | ReadStep::OfFunction(name) => {
                    return (name.bind(py).to_string(), items);
                }
                ReadStep::Cell(_, name) => return (name.clone(), items),
                ReadStep::Item(_) => items += 1,
                ReadStep::Contents => {}
            }
        }
        let name = match &self.root {
            ReadRoot::Global(_, name) => name.bind(py).to_string(),
            ReadRoot::Object(..) | ReadRoot::Weak(..) => String::new(),
        };
        (name, items)
    }

    /// A text that identifies the path while guards are collected.
    pub(super) fn key(&self, py: Python<'_>) -> String {
        let root = match &self.root {
            ReadRoot::Global(globals, _) => globals.as_ptr() as usize,
            ReadRoot::Object(object, _) => object.as_ptr() as usize,
            ReadRoot::Weak(reference, _) => reference.as_ptr() as usize,
        };
        format!("{root} {}", self.text(py))
    }
}
