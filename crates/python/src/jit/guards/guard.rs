//! One guard: the recorded value of a place that a traced function read, and the check that the value is unchanged.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;
use rustc_hash::FxHashSet;

use super::array_elements::ArrayElements;
use super::read_path::ReadPath;
use super::values::{ContainerContents, container_contents, describe_value, flat, function_of, is_plain};
use crate::containers::{self, Aspect, Mode};
use crate::error::{Fallible, if_there};

/// What was recorded of the value at a place.
pub(super) enum RecordedValue {
    /// A plain value.
    Plain(Py<PyAny>),
    /// The code of a function.
    Code(Py<PyAny>),
    Container(Box<ContainerContents>),
    /// The elements of an array, the variable or attribute by which code reads the array, the number of items that
    /// follow this name, and whether code takes items or attributes of the array.
    Elements {
        elements: ArrayElements,
        name: (String, usize),
        is_accessed: bool,
    },
    /// The class and the length of a container that is too large to be compared.
    Large(Py<PyAny>, usize),
    /// The class of an object. The attributes of the object have guards of their own.
    Object(Py<PyAny>),
    Class(Py<PyAny>),
    /// There was no value at the place.
    Absent,
}

impl RecordedValue {
    /// The elements of an array that code reads by a name. None for another object.
    pub(super) fn elements(
        value: &Bound<'_, PyAny>,
        name: (String, usize),
    ) -> Fallible<Option<RecordedValue>> {
        let elements = ArrayElements::of(value)?;
        Ok(elements.map(|elements| RecordedValue::Elements { elements, name, is_accessed: false }))
    }
}

/// A place and what was recorded of it.
pub(in crate::jit) struct Guard {
    path: ReadPath,
    recorded: RecordedValue,
    /// Whether the check is switched off, because a run changes the place itself.
    is_off: AtomicBool,
}

/// How a value changed.
pub(in crate::jit) enum Change<'a> {
    /// The aspect that changed, and the old and the new value as text.
    Meaning(Aspect, String, String),
    /// The old and the new contents of a container.
    Inside(&'a ContainerContents, Box<ContainerContents>),
}

impl Guard {
    pub(super) fn new(path: ReadPath, recorded: RecordedValue) -> Guard {
        Guard { path, recorded, is_off: AtomicBool::new(false) }
    }

    /// A text that identifies the place while guards are collected.
    pub(super) fn key(&self, py: Python<'_>) -> String {
        self.path.key(py)
    }

    /// Switches the check off if the first run changed the place.
    pub(super) fn disable_if_changed(&self, py: Python<'_>) -> Fallible<()> {
        if !self.holds(py)? {
            self.is_off.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The place and how its value changed, if it changed.
    pub(in crate::jit) fn change(&self, py: Python<'_>) -> Fallible<Option<(String, Change<'_>)>> {
        if self.holds(py)? {
            return Ok(None);
        }
        let location = self.path.text(py);
        let old = match &self.recorded {
            RecordedValue::Plain(value) | RecordedValue::Code(value) => describe_value(value.bind(py)),
            RecordedValue::Container(recorded) => recorded.tree.whole(py, &recorded.models)?,
            RecordedValue::Elements { elements, .. } => elements.text(py)?,
            RecordedValue::Large(_, length) => length.to_string(),
            RecordedValue::Object(class) => containers::with_article(&class_name(class.bind(py))),
            RecordedValue::Class(class) => containers::value_text(class.bind(py)),
            RecordedValue::Absent => "not defined".to_owned(),
        };
        let Some(now) = self.path.read(py)? else {
            let change = Change::Meaning(Aspect::Kind, old, "not defined".to_owned());
            return Ok(Some((location, change)));
        };
        let function = function_of(&now)?;
        let mut new = describe_value(function.as_ref().unwrap_or(&now));
        let (mut old, mut aspect) = (old, Aspect::Kind);
        match &self.recorded {
            RecordedValue::Plain(before) => {
                let before = before.bind(py);
                if is_plain(before) && is_plain(&now) && !before.is_none() && !now.is_none() {
                    aspect = Aspect::Value;
                    if !before.get_type().is(now.get_type()) {
                        aspect = Aspect::Class;
                        old = format!("{} {old}", before.get_type().name()?);
                        new = format!("{} {new}", now.get_type().name()?);
                    }
                }
            }
            RecordedValue::Code(_) => {
                if function.is_some() {
                    aspect = Aspect::Function;
                }
            }
            RecordedValue::Container(recorded) => {
                if let Some(contents) = container_contents(&now)? {
                    return Ok(Some((location, Change::Inside(recorded, Box::new(contents)))));
                }
            }
            RecordedValue::Large(class, _) => {
                if now.get_type().is(class) {
                    (aspect, new) = (Aspect::Length, now.len()?.to_string());
                }
            }
            RecordedValue::Elements { .. } => {
                if let Some(now) = ArrayElements::of(&now)? {
                    (aspect, new) = (Aspect::Value, now.text(py)?);
                }
            }
            RecordedValue::Object(_) | RecordedValue::Class(_) | RecordedValue::Absent => {}
        }
        if old == new {
            let prefixes = ["the function ", "the class ", "a ", "an "];
            let name = prefixes.iter().find_map(|lead| new.strip_prefix(lead)).unwrap_or(&new);
            new = format!("another {name}");
        }
        Ok(Some((location, Change::Meaning(aspect, old, new))))
    }

    /// Notes whether code takes items or attributes of the array at the place.
    pub(super) fn note_accessed(&mut self, accessed: &FxHashSet<(String, usize)>) {
        if let RecordedValue::Elements { name, is_accessed, .. } = &mut self.recorded {
            *is_accessed = accessed.contains(name);
        }
    }

    /// Whether there is an array at the place whose elements are only an input of the program.
    pub(super) fn is_input(&self, py: Python<'_>, inputs: &FxHashSet<usize>) -> Fallible<bool> {
        let RecordedValue::Elements { is_accessed: false, .. } = &self.recorded else { return Ok(false) };
        Ok(self.path.read(py)?.is_some_and(|now| inputs.contains(&(now.as_ptr() as usize))))
    }

    /// Whether the value at the place is unchanged.
    pub(super) fn holds(&self, py: Python<'_>) -> Fallible<bool> {
        if self.is_off.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let Some(now) = self.path.read(py)? else {
            return Ok(matches!(self.recorded, RecordedValue::Absent));
        };
        match &self.recorded {
            RecordedValue::Plain(before) => {
                let before = before.bind(py);
                if now.is(before) {
                    return Ok(true);
                }
                if !now.get_type().is(before.get_type()) {
                    return Ok(false);
                }
                let before = containers::flatten("jit", Mode::Static, before)?;
                Ok(before.tree.equals(py, &containers::flatten("jit", Mode::Static, &now)?.tree)?)
            }
            RecordedValue::Code(code) => match function_of(&now)? {
                Some(function) => Ok(function.getattr(intern!(py, "__code__"))?.is(code)),
                None => Ok(false),
            },
            RecordedValue::Container(recorded) => match flat(&now)? {
                Some(flat) => Ok(recorded.tree.equals(py, &flat.tree)?),
                None => Ok(false),
            },
            RecordedValue::Elements { elements, .. } => elements.are_in(&now),
            RecordedValue::Large(class, length) => {
                Ok(now.get_type().is(class) && if_there(py, now.len())? == Some(*length))
            }
            RecordedValue::Object(class) => Ok(now.get_type().is(class)),
            RecordedValue::Class(class) => Ok(now.is(class)),
            RecordedValue::Absent => Ok(false),
        }
    }
}

fn class_name(class: &Bound<'_, PyAny>) -> String {
    class
        .cast::<PyType>()
        .ok()
        .and_then(|class| class.name().ok())
        .map(|name| name.to_string())
        .unwrap_or_default()
}
