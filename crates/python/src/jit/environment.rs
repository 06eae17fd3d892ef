//! What a function closes over: part of the key of a call, and where captured tensors are found again.
//!
//! A tensor that a traced function uses without being given it is looked for once, after tracing, in the
//! function's closure, defaults and the globals that its code names, through containers and objects. Its place
//! is read again at each call.

use std::collections::VecDeque;
use std::sync::Arc;

use defn_core::Tensor;
use defn_core::backend::Buffer;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyList, PyModule, PyString, PyTuple, PyType};
use rustc_hash::FxHashSet;

use super::Jitted;
use super::globals;
use super::leaf;
use super::signature::function_name;
use crate::containers::{self, Mode, Tree};
use crate::error::{Fallible, if_there};
use crate::misuse::Misuse;
use crate::tensor::PyTensor;

/// Objects looked at in the search for one tensor.
const SEARCH_LIMIT: usize = 100_000;

/// Functions looked into for one key.
const FUNCTION_LIMIT: usize = 10_000;

/// What one cell or default holds, for keys.
pub(super) struct Part {
    pub(super) object: Py<PyAny>,
    pub(super) outline: Outline,
}

impl Part {
    /// Whether the object may change and holds no tensor, so that its identity is all there is to compare.
    pub(super) fn is_opaque(&self, py: Python<'_>) -> bool {
        self.outline.words.is_empty() && !globals::is_plain(self.object.bind(py))
    }
}

/// What is compared of a part.
pub(super) struct Outline {
    pub(super) tree: Tree,
    /// The types of the tensors in it.
    words: Vec<u64>,
}

impl Outline {
    /// The outline for a key that outlives the call.
    pub(super) fn kept(self, py: Python<'_>) -> PyResult<Outline> {
        Ok(Outline { tree: self.tree.kept(py)?, words: self.words })
    }

    /// Whether structures, static values and types are equal.
    pub(super) fn equals(&self, py: Python<'_>, other: &Outline) -> PyResult<bool> {
        Ok(self.words == other.words && self.tree.equals(py, &other.tree)?)
    }
}

/// What a callable closes over: cells and defaults, and those of functions found there, of the function that
/// makes a tensor of its value, and of functions among arguments.
pub(super) fn parts(
    fun: &Bound<'_, PyAny>,
    transform: Option<&Bound<'_, PyAny>>,
    arguments: &Tree,
) -> Fallible<Vec<Part>> {
    let mut walk = Walk::default();
    walk.all(fun, transform, arguments)?;
    Ok(walk.parts)
}

/// For each part what it is called in messages, in the order of [`parts`].
pub(super) fn labels(
    fun: &Bound<'_, PyAny>,
    transform: Option<&Bound<'_, PyAny>>,
    arguments: &Tree,
) -> Fallible<Vec<Label>> {
    let mut walk = Walk { labels: Some(Vec::new()), ..Walk::default() };
    walk.all(fun, transform, arguments)?;
    Ok(walk.labels.unwrap_or_default())
}

/// What a part is called in messages.
pub(super) enum Label {
    /// The content of a cell, or an attribute of a callable.
    Whole(String),
    /// The defaults of parameters, whose names these are; for those of keywords the keys are the names.
    Defaults { names: Vec<String>, of: String },
}

#[derive(Default)]
struct Walk {
    parts: Vec<Part>,
    labels: Option<Vec<Label>>,
    /// Callables to look into, each after those that lead to it.
    queue: VecDeque<Py<PyAny>>,
    seen: FxHashSet<usize>,
    has_begun: bool,
}

impl Walk {
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
        for held in arguments.held() {
            if held.is_function() {
                self.reach(held.object().bind(py));
            }
        }
        // A queue and no recursion, since containers may make functions without end.
        while let Some(next) = self.queue.pop_front() {
            if self.seen.len() > FUNCTION_LIMIT {
                return Err(
                    Misuse::TooManyFunctions { fun: function_name(fun), limit: FUNCTION_LIMIT }.into()
                );
            }
            self.callable(next.bind(py))?;
        }
        Ok(())
    }

    /// Notes a callable that is to be looked into.
    fn reach(&mut self, callable: &Bound<'_, PyAny>) {
        let mut callable = callable.clone();
        while let Ok(jitted) = callable.cast::<Jitted>() {
            let inner = jitted.get().fun(callable.py()).clone();
            callable = inner;
        }
        if self.seen.insert(callable.as_ptr() as usize) {
            self.queue.push_back(callable.unbind());
        }
    }

    fn label(&mut self, label: impl FnOnce() -> PyResult<Label>) -> PyResult<()> {
        if let Some(labels) = &mut self.labels {
            labels.push(label()?);
        }
        Ok(())
    }

    fn callable(&mut self, fun: &Bound<'_, PyAny>) -> Fallible<()> {
        let py = fun.py();
        // The function that is called needs no name in messages, others do.
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let of = || if is_first { String::new() } else { format!(" of {}", short_name(fun)) };
        if fun.is_exact_instance_of::<PyFunction>() {
            let closure = fun.getattr(intern!(py, "__closure__"))?;
            if !closure.is_none() {
                for (position, cell) in closure.try_iter()?.enumerate() {
                    // A cell that is not filled yet raises; it has nothing to tell apart.
                    if let Ok(content) = cell?.getattr(intern!(py, "cell_contents")) {
                        let label = || {
                            Ok(Label::Whole(format!("the closure's {}{}", cell_name(fun, position)?, of())))
                        };
                        self.content(&content, label)?;
                    }
                }
            }
            for name in [intern!(py, "__defaults__"), intern!(py, "__kwdefaults__")] {
                let defaults = fun.getattr(name)?;
                if !defaults.is_none() {
                    let label = || Ok(Label::Defaults { names: defaulted(fun)?, of: of() });
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
                self.content(&part, || Ok(Label::Whole(format!("{text}{}", of()))))?;
            }
        }
        Ok(())
    }

    fn content(
        &mut self,
        content: &Bound<'_, PyAny>,
        label: impl FnOnce() -> PyResult<Label>,
    ) -> Fallible<()> {
        let py = content.py();
        if content.is_instance_of::<Jitted>() {
            self.reach(content);
            return Ok(());
        }
        let flat = containers::flatten("jit", Mode::Environment, content)?;
        let mut words = Vec::new();
        for leaf in &flat.leaves {
            leaf::push_words(leaf, &mut words)?;
        }
        let given = flat.tree.held().iter().filter(|held| held.is_function());
        let functions: Vec<Bound<'_, PyAny>> = given.map(|held| held.object().bind(py).clone()).collect();
        self.label(label)?;
        let outline = Outline { tree: flat.tree, words };
        self.parts.push(Part { object: content.clone().unbind(), outline });
        functions.iter().for_each(|function| self.reach(function));
        Ok(())
    }
}

/// The name of a variable that a function closes over.
fn cell_name(fun: &Bound<'_, PyAny>, position: usize) -> PyResult<String> {
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
    let given = if defaults.is_none() { 0 } else { defaults.len()? };
    Ok(names.into_iter().take(count).skip(count.saturating_sub(given)).collect())
}

/// A callable's name without the functions that it was defined in.
pub(super) fn short_name(fun: &Bound<'_, PyAny>) -> String {
    containers::local_name(&function_name(fun)).to_owned()
}

/// One step on the way to a tensor.
enum Step {
    /// The content of a closure's cell, and the variable's name.
    Cell(usize, Py<PyAny>),
    /// A global of a function.
    Global(Py<PyAny>),
    Attribute(Py<PyAny>),
    /// An entry of a list or a tuple, or a value of a dict.
    Entry(Py<PyAny>),
    /// What a definition wraps.
    Wrapped,
}

/// Where a search begins.
enum Root {
    /// The function itself.
    Function,
    /// A static value of the call's arguments.
    Argument(usize),
}

/// Where a captured tensor or array is found again.
pub(super) struct Place {
    root: Root,
    steps: Vec<Step>,
}

impl Place {
    /// What is at the place now.
    pub(super) fn read<'py>(&self, fun: &Bound<'py, PyAny>, arguments: &Tree) -> PyResult<Bound<'py, PyAny>> {
        let py = fun.py();
        let mut at = match self.root {
            Root::Function => fun.clone(),
            Root::Argument(position) => arguments.held()[position].object().bind(py).clone(),
        };
        for step in &self.steps {
            at = match step {
                Step::Cell(cell, _) => at
                    .getattr(intern!(py, "__closure__"))?
                    .get_item(*cell)?
                    .getattr(intern!(py, "cell_contents"))?,
                Step::Global(name) => at.getattr(intern!(py, "__globals__"))?.get_item(name)?,
                Step::Attribute(name) => at.getattr(name.bind(py).cast::<PyString>()?)?,
                Step::Entry(key) => at.get_item(key)?,
                Step::Wrapped => at.cast::<Jitted>()?.get().fun(py).clone(),
            };
        }
        Ok(at)
    }

    /// The place as text: `the closure's weights["w"]`, `the global SCALE`, `self.weight`.
    pub(super) fn text(&self, py: Python<'_>) -> String {
        let mut text = match self.root {
            Root::Function => String::new(),
            Root::Argument(_) => "an argument".to_owned(),
        };
        for step in &self.steps {
            match step {
                // What leads to a variable says less than its name does.
                Step::Cell(_, name) => text = format!("the closure's {}", name.bind(py)),
                Step::Global(name) => text = format!("the global {}", name.bind(py)),
                Step::Attribute(name) if text.is_empty() && name.bind(py).eq("__self__").unwrap_or(false) => {
                    text.push_str("self");
                }
                Step::Attribute(name) if text.is_empty() => {
                    text = format!("the function's {}", name.bind(py))
                }
                Step::Attribute(name) => text.push_str(&format!(".{}", name.bind(py))),
                Step::Entry(key) => {
                    text.push_str(&format!("[{}]", containers::value_text(key.bind(py))));
                }
                Step::Wrapped => {}
            }
        }
        text
    }
}

/// What is looked for.
pub(super) enum Wanted<'a> {
    /// A tensor with this buffer.
    Buffer(&'a Arc<dyn Buffer>),
    /// This very object.
    Object(&'a Py<PyAny>),
}

impl Wanted<'_> {
    fn is(&self, value: &Bound<'_, PyAny>) -> bool {
        match self {
            Wanted::Object(object) => value.is(object),
            Wanted::Buffer(buffer) => value.cast::<PyTensor>().is_ok_and(|tensor| {
                let tensor: &Tensor = &tensor.get().tensor;
                tensor.buffer().is_some_and(|found| Arc::ptr_eq(found, buffer))
            }),
        }
    }
}

/// Breadth first, so that the shortest place is found.
struct Search<'a, 'py> {
    wanted: Wanted<'a>,
    /// Objects to look into: where they came from, and how.
    queue: Vec<(Bound<'py, PyAny>, usize, Option<Step>)>,
    seen: FxHashSet<usize>,
    /// Names that the code seen so far mentions, which are what is looked at of modules and classes.
    names: FxHashSet<String>,
}

/// Finds a tensor in what a function closes over, or in static arguments.
pub(super) fn find(fun: &Bound<'_, PyAny>, arguments: &Tree, wanted: Wanted<'_>) -> PyResult<Option<Place>> {
    let py = fun.py();
    let mut search =
        Search { wanted, queue: Vec::new(), seen: FxHashSet::default(), names: FxHashSet::default() };
    search.visit(fun.clone(), 0, None);
    for held in arguments.held() {
        search.visit(held.object().bind(py).clone(), 0, None);
    }
    let roots = search.queue.len();
    let mut at = 0;
    while at < search.queue.len() && at < SEARCH_LIMIT {
        let value = search.queue[at].0.clone();
        if search.wanted.is(&value) {
            return Ok(Some(search.place(at, roots, fun, arguments)));
        }
        search.expand(&value, at)?;
        at += 1;
    }
    Ok(None)
}

impl<'py> Search<'_, 'py> {
    fn visit(&mut self, value: Bound<'py, PyAny>, from: usize, step: Option<Step>) {
        if self.seen.insert(value.as_ptr() as usize) {
            self.queue.push((value, from, step));
        }
    }

    fn place(mut self, mut at: usize, roots: usize, fun: &Bound<'py, PyAny>, arguments: &Tree) -> Place {
        let mut steps = Vec::new();
        while at >= roots {
            let (_, from, step) = &mut self.queue[at];
            steps.extend(step.take());
            at = *from;
        }
        steps.reverse();
        let root = &self.queue[at].0;
        let root = if root.is(fun) {
            Root::Function
        } else {
            let found = arguments.held().iter().position(|held| root.is(held.object()));
            found.map_or(Root::Function, Root::Argument)
        };
        Place { root, steps }
    }

    fn expand(&mut self, value: &Bound<'py, PyAny>, at: usize) -> PyResult<()> {
        let py = value.py();
        if value.is_exact_instance_of::<PyFunction>() {
            return self.expand_function(value, at);
        }
        if let Ok(jitted) = value.cast::<Jitted>() {
            self.visit(jitted.get().fun(py).clone(), at, Some(Step::Wrapped));
            return Ok(());
        }
        if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
            for (position, item) in value.try_iter()?.enumerate() {
                let key = position.into_pyobject(py)?.into_any().unbind();
                self.visit(item?, at, Some(Step::Entry(key)));
            }
        }
        if let Ok(dict) = value.cast::<PyDict>() {
            let items: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)> = dict.iter().collect();
            for (key, item) in items {
                self.visit(item, at, Some(Step::Entry(key.unbind())));
            }
        }
        if value.is_instance_of::<PyModule>() {
            let is_library = is_library(&value.getattr(intern!(py, "__name__"))?);
            return if is_library { Ok(()) } else { self.expand_names(value, at) };
        }
        if value.is_instance_of::<PyType>() {
            return self.expand_names(value, at);
        }
        self.expand_object(value, at)
    }

    fn expand_function(&mut self, fun: &Bound<'py, PyAny>, at: usize) -> PyResult<()> {
        let py = fun.py();
        if is_library(&fun.getattr(intern!(py, "__module__"))?) {
            return Ok(());
        }
        let closure = fun.getattr(intern!(py, "__closure__"))?;
        if !closure.is_none() {
            for (position, cell) in closure.try_iter()?.enumerate() {
                if let Ok(content) = cell?.getattr(intern!(py, "cell_contents")) {
                    let name = PyString::intern(py, &cell_name(fun, position)?).into_any().unbind();
                    self.visit(content, at, Some(Step::Cell(position, name)));
                }
            }
        }
        for name in [intern!(py, "__defaults__"), intern!(py, "__kwdefaults__")] {
            let defaults = fun.getattr(name)?;
            if !defaults.is_none() {
                self.visit(defaults, at, Some(Step::Attribute(name.clone().into_any().unbind())));
            }
        }
        let globals = fun.getattr(intern!(py, "__globals__"))?;
        for name in code_names(&fun.getattr(intern!(py, "__code__"))?)? {
            if let Ok(value) = globals.get_item(&name) {
                self.visit(value, at, Some(Step::Global(name.clone().into_any().unbind())));
            }
            self.names.insert(name.to_string());
        }
        Ok(())
    }

    /// Of a module or a class: what the code names.
    fn expand_names(&mut self, value: &Bound<'py, PyAny>, at: usize) -> PyResult<()> {
        let py = value.py();
        for name in self.names.clone() {
            if let Some(found) = if_there(py, value.getattr_opt(name.as_str()))?.flatten() {
                let name = PyString::intern(py, &name).into_any().unbind();
                self.visit(found, at, Some(Step::Attribute(name)));
            }
        }
        Ok(())
    }

    fn expand_object(&mut self, value: &Bound<'py, PyAny>, at: usize) -> PyResult<()> {
        let py = value.py();
        let class = value.get_type();
        for name in ["__self__", "__func__", "func", "args", "keywords"] {
            if (class.module()?.to_str()? == "builtins" || class.module()?.to_str()? == "functools")
                && let Some(found) = if_there(py, value.getattr_opt(name))?.flatten()
            {
                let name = PyString::intern(py, name).into_any().unbind();
                self.visit(found, at, Some(Step::Attribute(name)));
            }
        }
        if let Some(attributes) = if_there(py, value.getattr_opt(intern!(py, "__dict__")))?.flatten()
            && let Ok(attributes) = attributes.cast::<PyDict>()
        {
            let items: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)> = attributes.iter().collect();
            for (name, found) in items {
                if name.is_instance_of::<PyString>() {
                    self.visit(found, at, Some(Step::Attribute(name.unbind())));
                }
            }
        }
        if let Some(slots) = if_there(py, class.getattr_opt(intern!(py, "__slots__")))?.flatten() {
            for name in if_there(py, slots.try_iter())?.into_iter().flatten() {
                let name = if_there(py, name)?;
                let Some(Ok(name)) = name.map(Bound::cast_into::<PyString>) else { continue };
                if let Some(found) = if_there(py, value.getattr_opt(&name))?.flatten() {
                    self.visit(found, at, Some(Step::Attribute(name.into_any().unbind())));
                }
            }
        }
        // What the class itself holds, such as tensors that all of its objects share.
        if class.module()?.to_str()? != "builtins" {
            let name = PyString::intern(py, "__class__").into_any().unbind();
            self.visit(class.into_any(), at, Some(Step::Attribute(name)));
        }
        Ok(())
    }
}

/// Whether a module is one of those that hold no tensors of the user's, and many objects.
pub(super) fn is_library(module: &Bound<'_, PyAny>) -> bool {
    let Ok(name) = module.extract::<String>() else {
        return false;
    };
    let top = name.split('.').next().unwrap_or_default();
    ["defn", "numpy", "builtins", "typing", "functools", "dataclasses", "ml_dtypes"].contains(&top)
}

/// The names that a code object and those inside it mention.
pub(super) fn code_names<'py>(code: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyString>>> {
    let py = code.py();
    let mut names = Vec::new();
    for name in code.getattr(intern!(py, "co_names"))?.try_iter()? {
        names.push(name?.cast_into::<PyString>()?);
    }
    for constant in code.getattr(intern!(py, "co_consts"))?.try_iter()? {
        let constant = constant?;
        if constant.hasattr(intern!(py, "co_names"))? {
            names.extend(code_names(&constant)?);
        }
    }
    Ok(names)
}

/// Whether a callable has anything besides its code that its calls depend on.
pub(super) fn closes(fun: &Bound<'_, PyAny>) -> PyResult<bool> {
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
