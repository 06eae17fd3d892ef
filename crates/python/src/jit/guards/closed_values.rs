//! What a function closes over: the contents of its cells and its defaults. They are part of the key of each call.

use std::collections::VecDeque;

use defn_core::Tensor;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFunction, PyModule, PyTuple};
use rustc_hash::FxHashSet;

use super::values::is_plain;
use crate::containers::{self, Mode, Tree};
use crate::error::Fallible;
use crate::jit::Jitted;
use crate::jit::leaf;
use crate::jit::signature::function_name;
use crate::misuse::Misuse;
use crate::ops::FastFunction;

/// The number of functions that are looked into for one key.
const FUNCTION_LIMIT: usize = 10_000;

/// The content of a cell, or the defaults of a function.
pub(in crate::jit) struct ClosedValue {
    pub(in crate::jit) object: Py<PyAny>,
    pub(in crate::jit) structure: ClosedStructure,
}

impl ClosedValue {
    /// Whether the object may change and holds no tensor. Then only its identity can be compared.
    fn is_opaque(&self, py: Python<'_>) -> bool {
        self.structure.words.is_empty() && !is_plain(self.object.bind(py))
    }

    /// The types of the tensors in the value.
    pub(in crate::jit) fn models(&self, py: Python<'_>) -> Fallible<Vec<Tensor>> {
        let flat = containers::flatten("jit", Mode::Environment, self.object.bind(py))?;
        flat.leaves.iter().map(|leaf| leaf::model("jit", leaf)).collect()
    }
}

/// The parts of a closed-over value that are compared.
pub(in crate::jit) struct ClosedStructure {
    pub(in crate::jit) tree: Tree,
    /// The types of the tensors in the value.
    words: Vec<u64>,
}

impl ClosedStructure {
    /// The structure for a key that outlives the call.
    fn into_retained(self, py: Python<'_>) -> PyResult<ClosedStructure> {
        Ok(ClosedStructure { tree: self.tree.into_retained(py)?, words: self.words })
    }

    /// Whether structures, static values and types are equal.
    fn equals(&self, py: Python<'_>, other: &ClosedStructure) -> PyResult<bool> {
        Ok(self.words == other.words && self.tree.equals(py, &other.tree)?)
    }
}

/// How a closed-over value is compared. Tracing may change what a function closes over, such as a counter or a list
/// that it appends to. That is what the function does, not what it depends on.
pub(in crate::jit) enum RecordedClosedValue {
    /// By structure, static values and types. The types of the leaves are kept for messages. The object itself is not
    /// kept, because its tensors may be large.
    Value(Box<(ClosedStructure, Vec<Tensor>)>),
    /// By identity. Tracing changed the object, or a host function may change it.
    SameObject(Box<Tree>),
    /// Not at all. Tracing replaced the object by another one.
    Ignored,
}

impl RecordedClosedValue {
    /// Whether a value is the one that was recorded.
    pub(in crate::jit) fn holds(&self, py: Python<'_>, now: &ClosedValue) -> PyResult<bool> {
        match self {
            RecordedClosedValue::Value(recorded) => recorded.0.equals(py, &now.structure),
            RecordedClosedValue::SameObject(recorded) => {
                recorded.equals(py, &Tree::of_object(py, &now.object))
            }
            RecordedClosedValue::Ignored => Ok(true),
        }
    }

    /// Whether an object that the comparison needs no longer exists.
    pub(in crate::jit) fn is_gone(&self, py: Python<'_>) -> bool {
        match self {
            RecordedClosedValue::Value(recorded) => recorded.0.tree.is_gone(py),
            RecordedClosedValue::SameObject(recorded) => recorded.is_gone(py),
            RecordedClosedValue::Ignored => false,
        }
    }
}

/// Whether closed-over values are those that were recorded.
pub(in crate::jit) fn equal_closed_values(
    py: Python<'_>,
    recorded: &[RecordedClosedValue],
    now: &[ClosedValue],
) -> PyResult<bool> {
    if recorded.len() != now.len() {
        return Ok(false);
    }
    for (recorded, now) in recorded.iter().zip(now) {
        if !recorded.holds(py, now)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What is recorded of closed-over values, from their state `before` tracing and `after` it. `is_owned` says whether
/// the program holds objects that only the traced function has.
pub(in crate::jit) fn record_closed_values(
    py: Python<'_>,
    before: Vec<ClosedValue>,
    after: &[ClosedValue],
    is_owned: bool,
) -> Fallible<Vec<RecordedClosedValue>> {
    let is_same_list = before.len() == after.len();
    let mut recorded = Vec::with_capacity(before.len());
    for (position, value) in before.into_iter().enumerate() {
        let is_same_object = is_same_list && value.object.is(&after[position].object);
        // A host function may change the object that it closes over. It is still the same object then.
        let is_opaque = is_owned && is_same_object && value.is_opaque(py);
        let is_stable = is_same_list && value.structure.equals(py, &after[position].structure)?;
        recorded.push(if is_stable && !is_opaque {
            let models = value.models(py)?;
            RecordedClosedValue::Value(Box::new((value.structure.into_retained(py)?, models)))
        } else if is_same_object {
            RecordedClosedValue::SameObject(Box::new(Tree::of_object(py, &value.object).into_retained(py)?))
        } else {
            RecordedClosedValue::Ignored
        });
    }
    Ok(recorded)
}

/// The values that a callable closes over. These are the contents of cells and defaults of the callable, of functions
/// that are found in them, of `transform`, and of functions among the arguments. `transform` is applied to the value
/// before it is differentiated.
pub(in crate::jit) fn closed_values(
    fun: &Bound<'_, PyAny>,
    transform: Option<&Bound<'_, PyAny>>,
    arguments: &Tree,
) -> Fallible<Vec<ClosedValue>> {
    let mut walk = ClosedValueWalk::default();
    walk.all(fun, transform, arguments)?;
    Ok(walk.parts)
}

/// The names of the closed-over values in messages, in the order of [`closed_values`].
pub(in crate::jit) fn closed_labels(
    fun: &Bound<'_, PyAny>,
    transform: Option<&Bound<'_, PyAny>>,
    arguments: &Tree,
) -> Fallible<Vec<ClosedLabel>> {
    let mut walk = ClosedValueWalk { labels: Some(Vec::new()), ..ClosedValueWalk::default() };
    walk.all(fun, transform, arguments)?;
    Ok(walk.labels.unwrap_or_default())
}

/// The name of a closed-over value in messages.
pub(in crate::jit) enum ClosedLabel {
    /// The content of a cell, or an attribute of a callable.
    Whole(String),
    /// Defaults. `names` are the parameters of positional defaults. The defaults of keywords have their keys as
    /// names.
    Defaults { names: Vec<String>, of: String },
}

#[derive(Default)]
struct ClosedValueWalk {
    parts: Vec<ClosedValue>,
    labels: Option<Vec<ClosedLabel>>,
    /// The callables that are still to be looked into.
    queue: VecDeque<Py<PyAny>>,
    visited: FxHashSet<usize>,
    has_begun: bool,
}

impl ClosedValueWalk {
    fn all(
        &mut self,
        fun: &Bound<'_, PyAny>,
        transform: Option<&Bound<'_, PyAny>>,
        arguments: &Tree,
    ) -> Fallible<()> {
        let py = fun.py();
        self.reach(fun);
        if let Some(transform) = transform {
            self.reach(transform);
        }
        for object in arguments.objects() {
            if object.is_function() {
                self.reach(object.object().bind(py));
            }
        }
        // A queue replaces recursion, because containers may create functions without end.
        while let Some(next) = self.queue.pop_front() {
            if self.visited.len() > FUNCTION_LIMIT {
                return Err(
                    Misuse::TooManyFunctions { fun: function_name(fun), limit: FUNCTION_LIMIT }.into()
                );
            }
            self.callable(next.bind(py))?;
        }
        Ok(())
    }

    /// Adds a callable that is to be looked into.
    fn reach(&mut self, callable: &Bound<'_, PyAny>) {
        let mut callable = callable.clone();
        while let Ok(jitted) = callable.cast::<Jitted>() {
            let inner = jitted.get().fun(callable.py()).clone();
            callable = inner;
        }
        if self.visited.insert(callable.as_ptr() as usize) {
            self.queue.push_back(callable.unbind());
        }
    }

    fn label(&mut self, label: impl FnOnce() -> PyResult<ClosedLabel>) -> PyResult<()> {
        if let Some(labels) = &mut self.labels {
            labels.push(label()?);
        }
        Ok(())
    }

    fn callable(&mut self, fun: &Bound<'_, PyAny>) -> Fallible<()> {
        let py = fun.py();
        // Messages do not name the called function, but they name the other functions.
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let of = || if is_first { String::new() } else { format!(" of {}", short_name(fun)) };
        if fun.is_exact_instance_of::<PyFunction>() {
            let closure = fun.getattr(intern!(py, "__closure__"))?;
            if !closure.is_none() {
                for (position, cell) in closure.try_iter()?.enumerate() {
                    // Reading an empty cell raises an error. An empty cell has no value to compare.
                    if let Ok(content) = cell?.getattr(intern!(py, "cell_contents")) {
                        let label = || {
                            Ok(ClosedLabel::Whole(format!(
                                "the closure's {}{}",
                                cell_name(fun, position)?,
                                of()
                            )))
                        };
                        self.content(&content, label)?;
                    }
                }
            }
            for name in [intern!(py, "__defaults__"), intern!(py, "__kwdefaults__")] {
                let defaults = fun.getattr(name)?;
                if !defaults.is_none() {
                    let label = || Ok(ClosedLabel::Defaults { names: defaulted(fun)?, of: of() });
                    self.content(&defaults, label)?;
                }
            }
            return Ok(());
        }
        for name in ["__self__", "__func__", "func", "args", "keywords"] {
            if let Some(part) = fun.getattr_opt(name)?
                && !part.is_instance_of::<PyModule>()
            {
                let text = match name {
                    "__self__" => "self",
                    "args" => "the partial's args",
                    "keywords" => "the partial's keywords",
                    _ => "the function behind it",
                };
                self.content(&part, || Ok(ClosedLabel::Whole(format!("{text}{}", of()))))?;
            }
        }
        Ok(())
    }

    fn content(
        &mut self,
        content: &Bound<'_, PyAny>,
        label: impl FnOnce() -> PyResult<ClosedLabel>,
    ) -> Fallible<()> {
        let py = content.py();
        let is_definition = content.is_instance_of::<Jitted>();
        let compared = if is_definition { described(content)?.into_any() } else { content.clone() };
        if is_definition {
            self.reach(content);
        }
        let flat = containers::flatten("jit", Mode::Environment, &compared)?;
        let mut words = Vec::new();
        for leaf in &flat.leaves {
            leaf::push_type_words(leaf, &mut words)?;
        }
        let passed = flat.tree.objects().iter().filter(|object| object.is_function());
        let functions: Vec<Bound<'_, PyAny>> =
            passed.map(|object| object.object().bind(py).clone()).collect();
        self.label(label)?;
        let structure = ClosedStructure { tree: flat.tree, words };
        self.parts.push(ClosedValue { object: content.clone().unbind(), structure });
        functions.iter().for_each(|function| self.reach(function));
        Ok(())
    }
}

/// What a definition computes: how each definition around the function differentiates, then the function.
fn described<'py>(definition: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    let py = definition.py();
    let (mut parts, mut callable) = (Vec::new(), definition.clone());
    while let Ok(jitted) = callable.cast::<Jitted>() {
        parts.push(jitted.get().kind.described(py)?);
        let inner = jitted.get().fun(py).clone();
        callable = inner;
    }
    parts.push(callable);
    PyTuple::new(py, parts)
}

/// The name of a variable that a function closes over.
pub(super) fn cell_name(fun: &Bound<'_, PyAny>, position: usize) -> PyResult<String> {
    let py = fun.py();
    fun.getattr(intern!(py, "__code__"))?.getattr(intern!(py, "co_freevars"))?.get_item(position)?.extract()
}

/// The names of the positional parameters that have defaults.
fn defaulted(fun: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let py = fun.py();
    let code = fun.getattr(intern!(py, "__code__"))?;
    let count: usize = code.getattr(intern!(py, "co_argcount"))?.extract()?;
    let names: Vec<String> = code.getattr(intern!(py, "co_varnames"))?.extract()?;
    let defaults = fun.getattr(intern!(py, "__defaults__"))?;
    let default_count = if defaults.is_none() { 0 } else { defaults.len()? };
    Ok(names.into_iter().take(count).skip(count.saturating_sub(default_count)).collect())
}

/// The name of a callable without the names of the functions around it.
pub(in crate::jit) fn short_name(fun: &Bound<'_, PyAny>) -> String {
    containers::local_name(&function_name(fun)).to_owned()
}

/// Whether the calls of a callable depend on more than its code.
pub(in crate::jit) fn has_closed_values(fun: &Bound<'_, PyAny>) -> PyResult<bool> {
    // The functions of this package stay as they are.
    if fun.is_exact_instance_of::<FastFunction>() {
        return Ok(false);
    }
    if !fun.is_exact_instance_of::<PyFunction>() {
        return Ok(true);
    }
    let py = fun.py();
    for name in [intern!(py, "__closure__"), intern!(py, "__defaults__"), intern!(py, "__kwdefaults__")] {
        if !fun.getattr(name)?.is_none() {
            return Ok(true);
        }
    }
    Ok(false)
}
