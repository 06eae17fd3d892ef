//! What a traced function read from around it: a compiled version holds while it is the same.
//!
//! A number, a text or a function that is read from a global, from what a global holds or from an attribute of a
//! module, a class or an object is frozen into the program that was traced with it. Each version therefore
//! remembers what these places meant, and is passed over once one of them means something else. Tensors are no
//! part of this: they are hidden inputs.

mod elements;

use std::sync::atomic::{AtomicBool, Ordering};

use defn_core::Tensor;
use defn_core::vectorize::type_text;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyComplex, PyDict, PyFloat, PyFrozenSet, PyFunction, PyInt, PyList,
    PyMemoryView, PyString, PyTuple, PyType, PyWeakrefMethods, PyWeakrefReference,
};
use rustc_hash::FxHashSet;

pub(super) use elements::Elements;

use super::Jitted;
use super::cache::Key;
use super::environment::{self, Label};
use super::leaf;
use super::reads::{Reading, Without};
use crate::containers::{self, Aspect, Flat, Mode, Tree};
use crate::error::{Fallible, if_there};
use crate::ops::Quick;

/// Values in a container that are compared with what they were; of a larger one, its class and length are.
const VALUE_LIMIT: usize = 1_000;

/// Where something is read.
#[derive(Clone)]
pub(super) struct Source {
    root: Root,
    steps: Vec<Step>,
}

enum Root {
    Global(Py<PyDict>, Py<PyString>),
    /// An object that is told apart by identity elsewhere, and what it is called.
    Object(Py<PyAny>, String),
    /// The same for one that may be referred to weakly.
    Weak(Py<PyWeakrefReference>, String),
}

impl Clone for Root {
    fn clone(&self) -> Root {
        Python::attach(|py| match self {
            Root::Global(globals, name) => Root::Global(globals.clone_ref(py), name.clone_ref(py)),
            Root::Object(object, label) => Root::Object(object.clone_ref(py), label.clone()),
            Root::Weak(reference, label) => Root::Weak(reference.clone_ref(py), label.clone()),
        })
    }
}

/// One step on the way to a value.
pub(super) enum Step {
    Attribute(Py<PyString>),
    Item(Py<PyAny>),
    /// The content of a function's cell, and the variable's name.
    Cell(usize, String),
    /// An attribute of the function behind a definition or a method.
    OfFunction(Py<PyString>),
    /// What an object that is no container of ours holds, as [`viewed`] gives it.
    Inside,
}

impl Clone for Step {
    fn clone(&self) -> Step {
        Python::attach(|py| match self {
            Step::Attribute(name) => Step::Attribute(name.clone_ref(py)),
            Step::Item(key) => Step::Item(key.clone_ref(py)),
            Step::Cell(cell, name) => Step::Cell(*cell, name.clone()),
            Step::OfFunction(name) => Step::OfFunction(name.clone_ref(py)),
            Step::Inside => Step::Inside,
        })
    }
}

impl Source {
    pub(super) fn global(globals: &Bound<'_, PyDict>, name: &Bound<'_, PyString>) -> Source {
        let root = Root::Global(globals.clone().unbind(), name.clone().unbind());
        Source { root, steps: Vec::new() }
    }

    pub(super) fn object(object: &Bound<'_, PyAny>, label: &str) -> Fallible<Source> {
        let root = match PyWeakrefReference::new(object) {
            Ok(reference) => Root::Weak(reference.unbind(), label.to_owned()),
            Err(_) => Root::Object(object.clone().unbind(), label.to_owned()),
        };
        Ok(Source { root, steps: Vec::new() })
    }

    pub(super) fn then(&self, step: Step) -> Source {
        let mut source = self.clone();
        source.steps.push(step);
        source
    }

    /// What is there now, if anything.
    fn read<'py>(&self, py: Python<'py>) -> Fallible<Option<Bound<'py, PyAny>>> {
        let root = match &self.root {
            Root::Global(globals, name) => globals.bind(py).get_item(name)?,
            Root::Object(object, _) => Some(object.bind(py).clone()),
            Root::Weak(reference, _) => reference.bind(py).upgrade(),
        };
        let Some(mut at) = root else { return Ok(None) };
        for step in &self.steps {
            let next = match step {
                Step::Attribute(name) => at.getattr(name),
                Step::Item(key) => at.get_item(key),
                Step::Cell(cell, _) => match function_of(&at)? {
                    Some(function) => function
                        .getattr(intern!(py, "__closure__"))
                        .and_then(|closure| closure.get_item(*cell))
                        .and_then(|cell| cell.getattr(intern!(py, "cell_contents"))),
                    None => return Ok(None),
                },
                Step::OfFunction(name) => match function_of(&at)? {
                    Some(function) => function.getattr(name),
                    None => return Ok(None),
                },
                Step::Inside => match viewed(&at)? {
                    Some(inside) => Ok(inside),
                    None => return Ok(None),
                },
            };
            let Some(next) = if_there(py, next)? else { return Ok(None) };
            at = next;
        }
        Ok(Some(at))
    }

    /// The place as text: `the global CONFIG["rate"]`, `self.scale`, `the closure's n of scale`.
    pub(super) fn text(&self, py: Python<'_>) -> String {
        let mut text = match &self.root {
            Root::Global(_, name) => format!("the global {}", name.bind(py)),
            Root::Object(_, label) | Root::Weak(_, label) => label.clone(),
        };
        for step in &self.steps {
            text = match step {
                Step::Attribute(name) => format!("{text}.{}", name.bind(py)),
                Step::Item(key) => format!("{text}[{}]", containers::value_text(key.bind(py))),
                Step::Cell(_, name) => {
                    format!("the closure's {name} of {}", text.trim_start_matches("the global "))
                }
                Step::OfFunction(_) => format!("the defaults of {}", text.trim_start_matches("the global ")),
                Step::Inside => text,
            };
        }
        text
    }

    /// The variable or attribute that is read, and how many items further the place is.
    pub(super) fn name(&self, py: Python<'_>) -> (String, usize) {
        let mut items = 0;
        for step in self.steps.iter().rev() {
            match step {
                Step::Attribute(name) | Step::OfFunction(name) => return (name.bind(py).to_string(), items),
                Step::Cell(_, name) => return (name.clone(), items),
                Step::Item(_) => items += 1,
                Step::Inside => {}
            }
        }
        let name = match &self.root {
            Root::Global(_, name) => name.bind(py).to_string(),
            Root::Object(..) | Root::Weak(..) => String::new(),
        };
        (name, items)
    }

    /// What tells the place from others while they are collected.
    pub(super) fn key(&self, py: Python<'_>) -> String {
        let root = match &self.root {
            Root::Global(globals, _) => globals.as_ptr() as usize,
            Root::Object(object, _) => object.as_ptr() as usize,
            Root::Weak(reference, _) => reference.as_ptr() as usize,
        };
        format!("{root} {}", self.text(py))
    }
}

/// What an object of Python's library holds that may change, as a container or a plain value: the entries of a queue, the
/// bytes of an array of them.
pub(super) fn viewed<'py>(value: &Bound<'py, PyAny>) -> Fallible<Option<Bound<'py, PyAny>>> {
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

/// A container as it was, and the types of its tensors.
pub(super) struct Opened {
    pub(super) tree: Tree,
    pub(super) models: Vec<Tensor>,
}

impl Opened {
    pub(super) fn kept(self, py: Python<'_>) -> PyResult<Opened> {
        Ok(Opened { tree: self.tree.kept(py)?, models: self.models })
    }
}

/// A container taken apart, unless it is too large to be compared at each call.
pub(super) fn opened(value: &Bound<'_, PyAny>) -> Fallible<Option<Opened>> {
    let Some(Flat { tree, leaves, .. }) = flat(value)? else { return Ok(None) };
    let models = leaves.iter().map(|leaf| leaf::model("jit", leaf)).collect::<Fallible<_>>()?;
    Ok(Some(Opened { tree, models }))
}

/// One that is too large, too deep, or whose class does not let it be taken apart has no structure to compare.
fn flat<'py>(value: &Bound<'py, PyAny>) -> Fallible<Option<Flat<'py>>> {
    if_there(value.py(), containers::flatten_within("jit", Mode::Environment, value, VALUE_LIMIT))
}

/// What a place meant.
pub(super) enum Meant {
    /// A plain value.
    Plain(Py<PyAny>),
    /// The code of a function.
    Code(Py<PyAny>),
    Container(Box<Opened>),
    /// The elements of an array, the variable or attribute by which code reads it, how many items further it is, and
    /// whether code takes items or attributes of it.
    Elements {
        elements: Elements,
        name: (String, usize),
        is_accessed: bool,
    },
    /// The class and the length of a container that is too large.
    Large(Py<PyAny>, usize),
    /// An object of a class, whose attributes have places of their own.
    Object(Py<PyAny>),
    Class(Py<PyAny>),
    /// Nothing was there.
    Absent,
}

impl Meant {
    /// The elements of an array that code reads by a name; None for another object.
    pub(super) fn elements(value: &Bound<'_, PyAny>, name: (String, usize)) -> Fallible<Option<Meant>> {
        let elements = Elements::of(value)?;
        Ok(elements.map(|elements| Meant::Elements { elements, name, is_accessed: false }))
    }
}

/// A place and what it meant.
pub(super) struct Guard {
    source: Source,
    meant: Meant,
    /// Whether a run changes the place itself.
    is_off: AtomicBool,
}

/// What changed.
pub(super) enum Change<'a> {
    /// The aspect, and both meanings.
    Meaning(Aspect, String, String),
    /// What is inside a container.
    Inside(&'a Opened, Box<Opened>),
}

impl Guard {
    pub(super) fn new(source: Source, meant: Meant) -> Guard {
        Guard { source, meant, is_off: AtomicBool::new(false) }
    }

    /// What changed, where the place means something else now: the place, and how.
    pub(super) fn change(&self, py: Python<'_>) -> Fallible<Option<(String, Change<'_>)>> {
        if self.holds(py)? {
            return Ok(None);
        }
        let place = self.source.text(py);
        let old = match &self.meant {
            Meant::Plain(value) | Meant::Code(value) => text(value.bind(py)),
            Meant::Container(known) => known.tree.whole(py, &known.models)?,
            Meant::Elements { elements, .. } => elements.text(py)?,
            Meant::Large(_, length) => length.to_string(),
            Meant::Object(class) => containers::with_article(&class_name(class.bind(py))),
            Meant::Class(class) => containers::value_text(class.bind(py)),
            Meant::Absent => "not defined".to_owned(),
        };
        let Some(now) = self.source.read(py)? else {
            let change = Change::Meaning(Aspect::Kind, old, "not defined".to_owned());
            return Ok(Some((place, change)));
        };
        let function = function_of(&now)?;
        let mut new = text(function.as_ref().unwrap_or(&now));
        let (mut old, mut aspect) = (old, Aspect::Kind);
        match &self.meant {
            Meant::Plain(before) => {
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
            Meant::Code(_) => {
                if function.is_some() {
                    aspect = Aspect::Function;
                }
            }
            Meant::Container(known) => {
                if let Some(opened) = opened(&now)? {
                    return Ok(Some((place, Change::Inside(known, Box::new(opened)))));
                }
            }
            Meant::Large(class, _) => {
                if now.get_type().is(class) {
                    (aspect, new) = (Aspect::Length, now.len()?.to_string());
                }
            }
            Meant::Elements { .. } => {
                if let Some(now) = Elements::of(&now)? {
                    (aspect, new) = (Aspect::Value, now.text(py)?);
                }
            }
            Meant::Object(_) | Meant::Class(_) | Meant::Absent => {}
        }
        if old == new {
            let bare = ["the function ", "the class ", "a ", "an "];
            let name = bare.iter().find_map(|lead| new.strip_prefix(lead)).unwrap_or(&new);
            new = format!("another {name}");
        }
        Ok(Some((place, Change::Meaning(aspect, old, new))))
    }

    /// Notes whether code takes items or attributes of the array that is at the place.
    pub(super) fn note_accessed(&mut self, accessed: &FxHashSet<(String, usize)>) {
        if let Meant::Elements { name, is_accessed, .. } = &mut self.meant {
            *is_accessed = accessed.contains(name);
        }
    }

    /// Whether an array is at the place whose elements are an input of the program and nothing else.
    fn is_input(&self, py: Python<'_>, inputs: &FxHashSet<usize>) -> Fallible<bool> {
        let Meant::Elements { is_accessed: false, .. } = &self.meant else { return Ok(false) };
        Ok(self.source.read(py)?.is_some_and(|now| inputs.contains(&(now.as_ptr() as usize))))
    }

    /// Whether the place still means the same.
    fn holds(&self, py: Python<'_>) -> Fallible<bool> {
        if self.is_off.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let Some(now) = self.source.read(py)? else {
            return Ok(matches!(self.meant, Meant::Absent));
        };
        match &self.meant {
            Meant::Plain(before) => {
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
            Meant::Code(code) => match function_of(&now)? {
                Some(function) => Ok(function.getattr(intern!(py, "__code__"))?.is(code)),
                None => Ok(false),
            },
            Meant::Container(known) => match flat(&now)? {
                Some(flat) => Ok(known.tree.equals(py, &flat.tree)?),
                None => Ok(false),
            },
            Meant::Elements { elements, .. } => elements.are_in(&now),
            Meant::Large(class, length) => {
                Ok(now.get_type().is(class) && if_there(py, now.len())? == Some(*length))
            }
            Meant::Object(class) => Ok(now.get_type().is(class)),
            Meant::Class(class) => Ok(now.is(class)),
            Meant::Absent => Ok(false),
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

/// What functions, and objects by their names in messages, are looked through for what the functions read.
pub(super) struct Roots<'py> {
    pub(super) functions: Vec<Bound<'py, PyAny>>,
    pub(super) objects: Vec<(Bound<'py, PyAny>, String)>,
}

/// What functions read, and those that they name.
pub(super) fn guards(py: Python<'_>, roots: &Roots<'_>, without: &Without) -> Fallible<Vec<Guard>> {
    let mut reading = Reading::new(py, without);
    for function in &roots.functions {
        reading.function(function.clone());
    }
    for (object, label) in &roots.objects {
        reading.object(object, label)?;
    }
    reading.finish()
}

/// The guards that count: a place that tracing gave another meaning is what the function changes, and not what
/// it depends on; nor is what its host functions alone read, nor arrays that are `inputs` of the program.
pub(super) fn stable<'py>(
    py: Python<'py>,
    guards: Vec<Guard>,
    roots: &Roots<'py>,
    hosts: impl IntoIterator<Item = Bound<'py, PyAny>>,
    inputs: &FxHashSet<usize>,
) -> Fallible<Vec<Guard>> {
    let without = Without::of(hosts)?;
    let counted: Option<FxHashSet<String>> = if without.is_empty() {
        None
    } else {
        let guards = self::guards(py, roots, &without)?;
        Some(guards.iter().map(|guard| guard.source.key(py)).collect())
    };
    let mut kept = Vec::with_capacity(guards.len());
    for guard in guards {
        let is_counted = counted.as_ref().is_none_or(|counted| counted.contains(&guard.source.key(py)));
        if is_counted && !guard.is_input(py, inputs)? && guard.holds(py)? {
            kept.push(guard);
        }
    }
    Ok(kept)
}

/// Looks at no place any more that the first run changed, as host functions may.
pub(super) fn settle(py: Python<'_>, guards: &[Guard]) -> Fallible<()> {
    for guard in guards {
        if !guard.holds(py)? {
            guard.is_off.store(true, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Whether all places mean what they did.
pub(super) fn hold(py: Python<'_>, guards: &[Guard]) -> Fallible<bool> {
    for guard in guards {
        if !guard.holds(py)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What a name means, as text: the type of a tensor, a function or its code by name, another value as it is.
pub(super) fn text(value: &Bound<'_, PyAny>) -> String {
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
    if let Ok(quick) = value.cast::<Quick>() {
        let inner = quick.get().fun(value.py()).clone();
        value = inner;
    }
    if value.is_exact_instance_of::<PyFunction>() {
        return Ok(Some(value));
    }
    let function = if_there(value.py(), value.getattr_opt(intern!(value.py(), "__func__")))?.flatten();
    Ok(function.filter(|function| function.is_exact_instance_of::<PyFunction>()))
}

/// Whether a value cannot change, so that it is compared where it stands.
pub(super) fn is_plain(value: &Bound<'_, PyAny>) -> bool {
    is_plain_at(value, 0)
}

/// What is nested deeper is refused where containers are taken apart.
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
    // Exact tuples and sets, whose iterators run no code of the user's.
    let is_plain = |item: PyResult<Bound<'_, PyAny>>| item.is_ok_and(|item| is_plain_at(&item, depth + 1));
    depth < containers::DEPTH_LIMIT && values.try_iter().is_ok_and(|mut items| items.all(is_plain))
}

impl Jitted {
    /// The function, functions given to it, and the objects that both hold and tell apart by identity only.
    pub(super) fn roots<'py>(&self, py: Python<'py>, flat: &Flat<'py>, key: &Key) -> Fallible<Roots<'py>> {
        let held = |tree: &Tree| -> Vec<Bound<'py, PyAny>> {
            tree.held().iter().map(|held| held.object().bind(py).clone()).collect()
        };
        let given = flat.tree.held().iter().filter(|held| held.is_function());
        let mut functions: Vec<Bound<'py, PyAny>> =
            given.map(|held| held.object().bind(py).clone()).collect();
        functions.push(self.fun.bind(py).clone());
        functions.extend(self.transform(py).cloned());
        let mut objects = Vec::new();
        let fun = self.fun.bind(py);
        if !fun.is_exact_instance_of::<PyFunction>()
            && let Some(call) = fun.getattr_opt(intern!(py, "__call__"))?
        {
            functions.push(call);
            objects.push((fun.clone(), "self".to_owned()));
        }
        for object in held(&flat.tree) {
            let label = if self.signature.takes_self() { "self" } else { "an argument" };
            objects.push((object, label.to_owned()));
        }
        if !key.environment.is_empty() {
            let labels = environment::labels(self.fun.bind(py), self.transform(py), &flat.tree)?;
            for (part, label) in key.environment.iter().zip(labels) {
                let label = match label {
                    Label::Whole(text) => text,
                    Label::Defaults { of, .. } => format!("the defaults{of}"),
                };
                let parts = held(&part.outline.tree);
                objects.extend(parts.into_iter().map(|object| (object, label.clone())));
            }
        }
        Ok(Roots { functions, objects })
    }
}
