//! Where a captured tensor is found again at each call.
//!
//! After tracing, each captured tensor is searched for once. The search covers the closure of the function, its
//! defaults and the globals that its code names, and goes through containers and objects. A module of an installed package
//! is not asked for attributes that it computes: it may import others then.

use std::sync::Arc;

use defn_core::Tensor;
use defn_core::backend::Buffer;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyList, PyModule, PyString, PyTuple, PyType};
use rustc_hash::FxHashSet;

use super::closed_values::cell_name;
use super::packages::{Packages, is_file_installed};
use super::values::{function_of, is_library};
use crate::containers::{self, Tree};
use crate::error::if_there;
use crate::jit::Jitted;
use crate::tensor::PyTensor;

/// The number of objects that the search for one tensor looks at.
const SEARCH_LIMIT: usize = 100_000;

/// One step on the way to a tensor.
enum PathStep {
    /// The content of a cell of a closure, and the name of the variable.
    Cell(usize, Py<PyAny>),
    /// A global of a function.
    Global(Py<PyAny>),
    Attribute(Py<PyAny>),
    /// An entry of a list or a tuple, or a value of a dict.
    Entry(Py<PyAny>),
    /// The function that a definition wraps.
    Wrapped,
}

/// Where a path begins.
enum PathRoot {
    /// The function itself.
    Function,
    /// A static value in the arguments of the call.
    Argument(usize),
}

/// Where a captured tensor or array is found again.
pub(in crate::jit) struct CapturePath {
    root: PathRoot,
    steps: Vec<PathStep>,
}

impl CapturePath {
    /// The object that is there now.
    pub(in crate::jit) fn read<'py>(
        &self,
        fun: &Bound<'py, PyAny>,
        arguments: &Tree,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = fun.py();
        let mut at = match self.root {
            PathRoot::Function => fun.clone(),
            PathRoot::Argument(position) => arguments.objects()[position].object().bind(py).clone(),
        };
        for step in &self.steps {
            at = match step {
                PathStep::Cell(cell, _) => at
                    .getattr(intern!(py, "__closure__"))?
                    .get_item(*cell)?
                    .getattr(intern!(py, "cell_contents"))?,
                PathStep::Global(name) => at.getattr(intern!(py, "__globals__"))?.get_item(name)?,
                PathStep::Attribute(name) => at.getattr(name.bind(py).cast::<PyString>()?)?,
                PathStep::Entry(key) => at.get_item(key)?,
                PathStep::Wrapped => at.cast::<Jitted>()?.get().fun(py).clone(),
            };
        }
        Ok(at)
    }

    /// The path as text: `the closure's weights["w"]`, `the global SCALE`, `self.weight`.
    pub(in crate::jit) fn text(&self, py: Python<'_>) -> String {
        let mut text = match self.root {
            PathRoot::Function => String::new(),
            PathRoot::Argument(_) => "an argument".to_owned(),
        };
        for step in &self.steps {
            match step {
                // The name of a variable says more than the steps that lead to it.
                PathStep::Cell(_, name) => text = format!("the closure's {}", name.bind(py)),
                PathStep::Global(name) => text = format!("the global {}", name.bind(py)),
                PathStep::Attribute(name)
                    if text.is_empty() && name.bind(py).eq("__self__").unwrap_or(false) =>
                {
                    text.push_str("self");
                }
                PathStep::Attribute(name) if text.is_empty() => {
                    text = format!("the function's {}", name.bind(py))
                }
                PathStep::Attribute(name) => text.push_str(&format!(".{}", name.bind(py))),
                PathStep::Entry(key) => {
                    text.push_str(&format!("[{}]", containers::value_text(key.bind(py))));
                }
                PathStep::Wrapped => {}
            }
        }
        text
    }
}

/// What a search covers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Also what functions and classes of installed packages use.
    Everywhere,
    /// What the user's own code uses. Packages have so many objects that a search for what is not there takes seconds.
    OwnCode,
}

/// What a search is for.
pub(super) enum CaptureTarget<'a> {
    /// A tensor with this buffer.
    Buffer(&'a Arc<dyn Buffer>),
    /// This very object.
    Object(&'a Py<PyAny>),
}

impl CaptureTarget<'_> {
    fn is(&self, value: &Bound<'_, PyAny>) -> bool {
        match self {
            CaptureTarget::Object(object) => value.is(object),
            CaptureTarget::Buffer(buffer) => value.cast::<PyTensor>().is_ok_and(|tensor| {
                let tensor: &Tensor = &tensor.get().tensor;
                tensor.buffer().is_some_and(|found| Arc::ptr_eq(found, buffer))
            }),
        }
    }
}

/// A breadth-first search, which finds a shortest path.
struct Search<'a, 'py> {
    target: CaptureTarget<'a>,
    scope: Scope,
    /// The objects to look into, each with the position of the object that it was reached from and the step from
    /// there.
    queue: Vec<(Bound<'py, PyAny>, usize, Option<PathStep>)>,
    visited: FxHashSet<usize>,
    /// The names in the code that was seen so far. Of modules and classes, only attributes with these names are
    /// looked at.
    names: FxHashSet<String>,
    packages: Packages,
}

/// Finds a tensor in what a function closes over, or in static arguments.
pub(super) fn find_capture(
    fun: &Bound<'_, PyAny>,
    arguments: &Tree,
    target: CaptureTarget<'_>,
    scope: Scope,
) -> PyResult<Option<CapturePath>> {
    let py = fun.py();
    let mut search = Search {
        target,
        scope,
        queue: Vec::new(),
        visited: FxHashSet::default(),
        names: FxHashSet::default(),
        packages: Packages::default(),
    };
    if let Ok(Some(function)) = function_of(fun) {
        search.packages.add_own(&function);
    }
    search.visit(fun.clone(), 0, None);
    for object in arguments.objects() {
        search.visit(object.object().bind(py).clone(), 0, None);
    }
    let roots = search.queue.len();
    let mut at = 0;
    while at < search.queue.len() && at < SEARCH_LIMIT {
        let value = search.queue[at].0.clone();
        if search.target.is(&value) {
            return Ok(Some(search.path(at, roots, fun, arguments)));
        }
        search.expand(&value, at)?;
        at += 1;
    }
    Ok(None)
}

impl<'py> Search<'_, 'py> {
    fn visit(&mut self, value: Bound<'py, PyAny>, from: usize, step: Option<PathStep>) {
        if self.visited.insert(value.as_ptr() as usize) {
            self.queue.push((value, from, step));
        }
    }

    fn path(mut self, mut at: usize, roots: usize, fun: &Bound<'py, PyAny>, arguments: &Tree) -> CapturePath {
        let mut steps = Vec::new();
        while at >= roots {
            let (_, from, step) = &mut self.queue[at];
            steps.extend(step.take());
            at = *from;
        }
        steps.reverse();
        let root = &self.queue[at].0;
        let root = if root.is(fun) {
            PathRoot::Function
        } else {
            let found = arguments.objects().iter().position(|object| root.is(object.object()));
            found.map_or(PathRoot::Function, PathRoot::Argument)
        };
        CapturePath { root, steps }
    }

    fn expand(&mut self, value: &Bound<'py, PyAny>, at: usize) -> PyResult<()> {
        let py = value.py();
        if value.is_exact_instance_of::<PyFunction>() {
            return self.expand_function(value, at);
        }
        if let Ok(jitted) = value.cast::<Jitted>() {
            self.visit(jitted.get().fun(py).clone(), at, Some(PathStep::Wrapped));
            return Ok(());
        }
        if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
            for (position, item) in value.try_iter()?.enumerate() {
                let key = position.into_pyobject(py)?.into_any().unbind();
                self.visit(item?, at, Some(PathStep::Entry(key)));
            }
        }
        if let Ok(dict) = value.cast::<PyDict>() {
            let items: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)> = dict.iter().collect();
            for (key, item) in items {
                self.visit(item, at, Some(PathStep::Entry(key.unbind())));
            }
        }
        if value.is_instance_of::<PyModule>() {
            return self.expand_names(value, &value.getattr(intern!(py, "__name__"))?, at);
        }
        if value.is_instance_of::<PyType>() {
            return self.expand_names(value, &value.getattr(intern!(py, "__module__"))?, at);
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
                    self.visit(content, at, Some(PathStep::Cell(position, name)));
                }
            }
        }
        for name in [intern!(py, "__defaults__"), intern!(py, "__kwdefaults__")] {
            let defaults = fun.getattr(name)?;
            if !defaults.is_none() {
                self.visit(defaults, at, Some(PathStep::Attribute(name.clone().into_any().unbind())));
            }
        }
        let globals = fun.getattr(intern!(py, "__globals__"))?;
        let code = fun.getattr(intern!(py, "__code__"))?;
        let file = code.getattr(intern!(py, "co_filename"))?;
        let is_own = self.packages.is_own(&fun.getattr(intern!(py, "__module__"))?);
        if self.scope == Scope::OwnCode && !is_own && is_file_installed(&file)? {
            return Ok(());
        }
        for name in code_names(&code)? {
            if let Ok(value) = globals.get_item(&name) {
                self.visit(value, at, Some(PathStep::Global(name.clone().into_any().unbind())));
            }
            self.names.insert(name.to_string());
        }
        Ok(())
    }

    /// Visits the attributes of a module, or of a class in it, that the code names.
    fn expand_names(
        &mut self,
        value: &Bound<'py, PyAny>,
        module: &Bound<'py, PyAny>,
        at: usize,
    ) -> PyResult<()> {
        let py = value.py();
        let is_installed = self.packages.is_installed(module)?;
        let is_module = value.is_instance_of::<PyModule>();
        if self.scope == Scope::OwnCode && is_installed && !is_module {
            return Ok(());
        }
        let attributes = value.getattr(intern!(py, "__dict__"))?;
        for name in self.names.clone() {
            let found = match attributes.cast::<PyDict>() {
                Ok(attributes) if is_installed && is_module => attributes.get_item(&name)?,
                Ok(_) | Err(_) => if_there(py, value.getattr_opt(name.as_str()))?.flatten(),
            };
            if let Some(found) = found {
                let name = PyString::intern(py, &name).into_any().unbind();
                self.visit(found, at, Some(PathStep::Attribute(name)));
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
                self.visit(found, at, Some(PathStep::Attribute(name)));
            }
        }
        if let Some(attributes) = if_there(py, value.getattr_opt(intern!(py, "__dict__")))?.flatten()
            && let Ok(attributes) = attributes.cast::<PyDict>()
        {
            let items: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)> = attributes.iter().collect();
            for (name, found) in items {
                if name.is_instance_of::<PyString>() {
                    self.visit(found, at, Some(PathStep::Attribute(name.unbind())));
                }
            }
        }
        if let Some(slots) = if_there(py, class.getattr_opt(intern!(py, "__slots__")))?.flatten() {
            for name in if_there(py, slots.try_iter())?.into_iter().flatten() {
                let name = if_there(py, name)?;
                let Some(Ok(name)) = name.map(Bound::cast_into::<PyString>) else { continue };
                if let Some(found) = if_there(py, value.getattr_opt(&name))?.flatten() {
                    self.visit(found, at, Some(PathStep::Attribute(name.into_any().unbind())));
                }
            }
        }
        // The class may hold tensors that all of its objects share.
        if class.module()?.to_str()? != "builtins" {
            let name = PyString::intern(py, "__class__").into_any().unbind();
            self.visit(class.into_any(), at, Some(PathStep::Attribute(name)));
        }
        Ok(())
    }
}

/// The names in a code object and in the code objects inside it.
fn code_names<'py>(code: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyString>>> {
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
