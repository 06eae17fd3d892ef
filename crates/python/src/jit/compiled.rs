//! Functions that are compiled ahead of their calls, and functions that are traced for inspection.

use std::ops::Deref;
use std::sync::Arc;

use defn_core::background::Progress;
use defn_core::trace::{self, Trace};
use defn_core::{ErrorKind, Tensor, TensorType, vectorize};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use smallvec::SmallVec;

use super::argument_names::{name_argument, name_argument_by_signature};
use super::background;
use super::definition::Kind;
use super::donate;
use super::leaf::{self, Borrowed};
use super::profile;
use super::program::Program;
use super::settings::{CompileMode, marked_names};
use super::signature::{Signature, function_name};
use super::traced::TraceSource;
use super::{Jitted, wrap};
use crate::array;
use crate::checks;
use crate::compilers::{self, Choice};
use crate::containers::{self, Flat, Leaves, Mode, Tree};
use crate::convert;
use crate::error::{Fallible, Fault, guard};
use crate::fields::Fields;
use crate::hooks::{self, WeakTable};
use crate::location;
use crate::misuse::Misuse;
use crate::options;
use crate::tensor::PyTensor;
use crate::trace_allocations;

/// A function for arguments of one structure and type.
#[pyclass(frozen, dict, weakref, module = "defn._core")]
pub(crate) struct Compiled(Fields<CompiledParts>);

pub(crate) struct CompiledParts {
    /// The function in which captures are found again. It is None where no captures need to be found.
    pub(super) fun: Py<PyAny>,
    /// The name of the function, for messages.
    pub(super) name: String,
    pub(super) tree: Tree,
    /// The structure of the arguments of a call. Arguments that are static as a whole are left out.
    pub(super) call: Tree,
    pub(super) models: Vec<Tensor>,
    pub(super) program: Program,
    pub(super) hooks: Option<Py<PyDict>>,
    /// The compiler, where it is known.
    pub(super) compiler: Option<Choice>,
}

impl Deref for Compiled {
    type Target = CompiledParts;

    fn deref(&self) -> &CompiledParts {
        &self.0
    }
}

impl From<CompiledParts> for Compiled {
    fn from(parts: CompiledParts) -> Compiled {
        Compiled(parts.into())
    }
}

impl Compiled {
    /// The leaves of the arguments of a call. They must have the types that were compiled.
    fn leaves<'py>(&self, args: &Bound<'py, PyTuple>) -> Fallible<Leaves<'py>> {
        let py = args.py();
        let flat = flatten_arguments(args)?;
        if !self.call.equals(py, &flat.tree)? {
            let (what, other) = ("the arguments".to_owned(), "those it was compiled for".to_owned());
            let difference = flat.tree.difference_of_calls(py, &self.call)?;
            return Err(Misuse::Structure { op: "compile".into(), what, other, difference }.into());
        }
        for (position, (leaf, expected)) in flat.leaves.iter().zip(&self.models).enumerate() {
            let got = leaf::model("compile", leaf)?;
            if expected.is_weak() && !got.is_weak() {
                return Err(Misuse::NumberExpected { position, got: convert::describe(leaf)? }.into());
            }
            let same_axes = got.vectorized_axes() == expected.vectorized_axes();
            if !same_axes || !takes(expected.ty(), got.ty()) {
                let (got, expected) = (named_type(&got), named_type(expected));
                let error =
                    ErrorKind::ArgumentType { op: "compile", argument: position.into(), got, expected };
                return Err(self.name_argument(py, error.into()));
            }
        }
        Ok(flat.leaves)
    }

    fn run<'py>(&self, args: &Bound<'py, PyTuple>) -> Fallible<Bound<'py, PyAny>> {
        let py = args.py();
        if trace::depth() > 0 {
            return Err(Misuse::CompiledInTrace.into());
        }
        let leaves = self.leaves(args)?;
        let mut borrowed = Borrowed::default();
        let captures = self.captures(py, &mut borrowed)?;
        let result = self.program.run(py, &leaves, captures, borrowed, self.hooks.as_ref());
        result.map_err(|fault| self.name_argument(py, fault))
    }

    /// Adds the name of the argument to an error.
    #[cold]
    fn name_argument(&self, py: Python<'_>, fault: Fault) -> Fault {
        let (fun, captures) = (self.fun.bind(py), (&self.program.captures[..], self.program.further()));
        if fun.is_none() {
            // A function that was read from a file has no parameter names.
            return name_argument(py, fault, &self.call, captures, &|position| format!("args[{position}]"));
        }
        name_argument_by_signature(fun, fault, &self.tree, captures)
    }

    /// The values of the captures of the function.
    pub(super) fn captures(&self, py: Python<'_>, borrowed: &mut Borrowed) -> Fallible<Vec<Tensor>> {
        if let Some(captures) = self.program.read_captures(self.fun.bind(py), &self.tree, borrowed)? {
            return Ok(captures);
        }
        Err(Misuse::BadArgument {
            op: "compile".to_owned(),
            what: "the environment".to_owned(),
            got: format!("a tensor that {} closes over has another type now", self.name),
            required: "of the types it was compiled for".to_owned(),
        }
        .into())
    }
}

#[pymethods]
impl Compiled {
    #[pyo3(signature = (*args))]
    fn __call__<'py>(&self, args: &Bound<'py, PyTuple>) -> Fallible<Bound<'py, PyAny>> {
        guard(|| self.run(args))
    }

    /// Runs a call and measures its steps.
    #[pyo3(signature = (*args))]
    fn profile<'py>(&self, args: &Bound<'py, PyTuple>) -> Fallible<Bound<'py, PyAny>> {
        profile::profile(args.py(), || Ok(self.compiler.clone()), || self.run(args))
    }

    /// Runs on several lists of arguments, and returns a list of what a call with each returns. With `"pjrt"` the
    /// runs go on in parallel: each runs where its tensors are, and those with tensors on the host are distributed
    /// over the devices in turn.
    fn run_each<'py>(&self, args_list: &Bound<'py, PyAny>) -> Fallible<Vec<Bound<'py, PyAny>>> {
        guard(|| {
            let py = args_list.py();
            if trace::depth() > 0 {
                return Err(Misuse::CompiledInTrace.into());
            }
            let mut calls = Vec::new();
            for args in args_list.try_iter()? {
                let args = args?;
                let Ok(args) = args
                    .cast::<PyTuple>()
                    .cloned()
                    .or_else(|_| args.cast::<PyList>().map_err(PyErr::from).map(|list| list.to_tuple()))
                else {
                    return Err(convert::bad("run_each", "an entry of args_list", &args, "a list or tuple")?);
                };
                let leaves = self.leaves(&args)?;
                let mut borrowed = Borrowed::default();
                let captures = self.captures(py, &mut borrowed)?;
                calls.push((leaves, captures, borrowed));
            }
            let results = self.program.run_each(py, calls, self.hooks.as_ref());
            results.map_err(|fault| self.name_argument(py, fault))
        })
    }

    /// Waits until the program that is compiled in the background is there.
    fn wait(&self, py: Python<'_>) -> Fallible<()> {
        guard(|| background::wait(py, &**self.program.executable()))
    }

    /// Whether the program is compiled.
    fn ready(&self) -> bool {
        matches!(self.program.executable().progress(), Progress::Compiled)
    }

    /// The bytes from which `dn.pjrt.deserialize` restores the function.
    fn serialize<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyBytes>> {
        guard(|| Ok(PyBytes::new(py, &self.write(py)?)))
    }

    /// Writes the file from which `dn.pjrt.load` restores the function. The target is a path, or a file that is open
    /// for writing bytes.
    fn save(&self, target: &Bound<'_, PyAny>) -> Fallible<()> {
        guard(|| {
            let py = target.py();
            let bytes = PyBytes::new(py, &self.write(py)?);
            py.import("defn._files")?.call_method1("write", (target, bytes))?;
            Ok(())
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Some(parts) = self.0.get() else {
            return Ok(());
        };
        visit.call(&parts.fun)?;
        visit.call(&parts.hooks)?;
        parts.tree.traverse(&visit)?;
        parts.call.traverse(&visit)?;
        parts.program.traverse(&visit)
    }

    fn __repr__(&self) -> String {
        let nodes = self.program.executable().program().total_nodes();
        format!("<compiled {} of {nodes} nodes>", self.name)
    }
}

/// The compiler that the caller asks for, or the default one.
fn chosen(
    py: Python<'_>,
    op: &'static str,
    compiler: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> Fallible<Choice> {
    match compiler.filter(|compiler| !compiler.is_none()) {
        Some(compiler) => Choice::of(op, compiler, options),
        None => options::default_compiler(py, options),
    }
}

/// Whether a compiled function accepts an argument: its dtype, shape and names are those of the template. An axis
/// without a name, such as every axis of an array, takes the name of the template.
fn takes(expected: &TensorType, got: &TensorType) -> bool {
    expected.dtype == got.dtype
        && expected.shape.sizes() == got.shape.sizes()
        && expected
            .shape
            .names()
            .zip(got.shape.names())
            .all(|(expected, got)| got.is_none() || got == expected)
}

/// The leaves and the structure of a call without keywords.
pub(crate) fn flatten_arguments<'py>(args: &Bound<'py, PyTuple>) -> Fallible<Flat<'py>> {
    let mut flat = Flat::default();
    flat.push("compile", Mode::Inputs, args.as_any())?;
    flat.begin_dict(std::iter::empty());
    Ok(flat)
}

/// Refuses a chunk that does not match the template of the stream.
#[pyfunction]
fn check_chunk(chunk: &Bound<'_, PyAny>, template: &Bound<'_, PyAny>) -> Fallible<()> {
    guard(|| {
        let py = chunk.py();
        let op = "send";
        let (flat, expected) =
            (containers::flatten(op, Mode::Inputs, chunk)?, containers::flatten(op, Mode::Inputs, template)?);
        if !expected.tree.equals(py, &flat.tree)? {
            let (what, other) = ("the chunk".to_owned(), "those that the stream was made for".to_owned());
            let difference = flat.tree.difference(py, &expected.tree)?;
            return Err(Misuse::Structure { op: op.into(), what, other, difference }.into());
        }
        for (position, (leaf, expected)) in flat.leaves.iter().zip(&expected.leaves).enumerate() {
            if let Ok(tensor) = leaf.cast::<PyTensor>() {
                tensor.get().tensor.require_buffer(op, "send it where it has values")?;
            }
            let (got, expected) = (leaf::model(op, leaf)?, leaf::model(op, expected)?);
            let same_axes = got.vectorized_axes() == expected.vectorized_axes();
            if !same_axes || !takes(expected.ty(), got.ty()) {
                let path = format!("the chunk{}", flat.tree.leaf_paths(py)?[position]);
                let (got, expected) = (named_type(&got), named_type(&expected));
                return Err(Misuse::ChunkType { op, path, got, expected }.into());
            }
        }
        Ok(())
    })
}

/// A container that the caller can no longer write to: writable arrays are copied, and the rest is unchanged.
#[pyfunction]
fn owned<'py>(op: &str, value: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
    guard(|| {
        let flat = containers::flatten(op, Mode::Inputs, value)?;
        let leaves = flat.leaves.iter().map(array::owned).collect::<Fallible<Leaves<'py>>>()?;
        flat.tree.unflatten(value.py(), &mut leaves.into_iter())
    })
}

/// The function behind a definition. Captures are searched for in what this function closes over.
fn unwrapped<'py>(fun: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    match fun.cast::<Jitted>() {
        Ok(jitted) if matches!(jitted.get().kind, Kind::Plain) => jitted.get().fun(fun.py()).clone(),
        Ok(_) | Err(_) => fun.clone(),
    }
}

/// The function that is called while tracing. For a definition it is the function that the definition itself would
/// call.
fn callee<'py>(fun: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match fun.cast::<Jitted>() {
        Ok(jitted) if matches!(jitted.get().kind, Kind::Plain) => {
            Ok(jitted.get().function.called(fun.py())?.clone())
        }
        Ok(_) | Err(_) => Ok(fun.clone()),
    }
}

/// Compiles a function for templates. Keyword arguments are part of the program.
#[pyfunction]
#[pyo3(signature = (fun, args, kwargs = None, compiler = None, options = None, hooks = None, donate = None, r#static = None,
                    mode = None))]
#[expect(clippy::too_many_arguments, reason = "they are the options of a definition")]
fn compile(
    fun: &Bound<'_, PyAny>,
    args: &Bound<'_, PyAny>,
    kwargs: Option<&Bound<'_, PyDict>>,
    compiler: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
    hooks: Option<&Bound<'_, PyAny>>,
    donate: Option<&Bound<'_, PyAny>>,
    r#static: Option<&Bound<'_, PyAny>>,
    mode: Option<&Bound<'_, PyAny>>,
) -> Fallible<Compiled> {
    guard(|| {
        let mode = match CompileMode::requested("compile", mode)? {
            Some(mode) => mode,
            None => CompileMode::default_here(fun.py())?,
        };
        let hooks = hooks::named("compile", hooks)?;
        let py = fun.py();
        let compiler = chosen(py, "compile", compiler, options)?;
        let args = args.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let marked = marked_names(r#static)?;
        let parsed;
        let signature = match fun.cast::<Jitted>() {
            // The parameters that the definition declares as static are static here, too.
            Ok(jitted) if marked.is_empty() => &jitted.get().signature,
            Ok(_) | Err(_) => {
                parsed = Signature::new(&unwrapped(fun), &marked)?;
                &parsed
            }
        };
        let mut inputs = Vec::new();
        for (position, arg) in args.iter().enumerate() {
            if signature.is_input("compile", position, arg)? {
                inputs.push(arg);
            }
        }
        let call_tree = flatten_arguments(&PyTuple::new(py, inputs)?)?.tree;
        let flat = signature.flatten_positional("compile", &args)?;
        let (callee, fun) = (callee(fun)?, unwrapped(fun));
        let (called, baked) = (callee.unbind(), kwargs.map(|kwargs| kwargs.clone().unbind()));
        let call = move |args: &Bound<'_, PyTuple>, _: &Bound<'_, PyDict>| {
            let py = args.py();
            let baked = baked.as_ref().map(|baked| baked.bind(py));
            if let Some(baked) = baked {
                note_tensors(baked)?;
            }
            Ok(called.bind(py).call(args.clone(), baked)?.unbind())
        };
        let source = TraceSource::new("compile", &fun, Arc::new(call));
        let donated = donate::parse("compile", donate)?;
        let donated = if donated.is_empty() {
            SmallVec::new()
        } else {
            donate::check(py, &donated, signature)?;
            donate::leaves(py, &donated, signature, &flat.tree)
        };
        let how = (checks::current(), mode);
        let program = Program::compile(py, &source, &flat, &compiler, how, &donated);
        let program =
            program.map_err(|fault| name_argument_by_signature(&fun, fault, &flat.tree, (&[], &[])))?;
        let models = flat.leaves.iter().map(|leaf| leaf::model("compile", leaf)).collect::<Fallible<_>>()?;
        let (name, fun) = (function_name(&fun), fun.clone().unbind());
        let (tree, call, compiler) = (flat.tree, call_tree, Some(compiler));
        Ok(CompiledParts { fun, name, tree, call, models, program, hooks, compiler }.into())
    })
}

/// A type for messages. The vectorized axes come first, with their names.
pub(crate) fn named_type(tensor: &Tensor) -> TensorType {
    TensorType { dtype: tensor.ty().dtype, shape: vectorize::named_shape(tensor) }
}

/// Tensors among the baked-in keyword arguments are constants of the program.
fn note_tensors(kwargs: &Bound<'_, PyDict>) -> Fallible<()> {
    let flat = containers::flatten("compile", Mode::Options, kwargs.as_any())?;
    for leaf in &flat.leaves {
        if let Ok(tensor) = leaf.cast::<PyTensor>() {
            let _: Tensor = trace_allocations::note(tensor.get().tensor.clone());
        }
    }
    Ok(())
}

/// What a function returns for traced tensors, for inspection of their graphs.
#[pyfunction]
#[pyo3(signature = (fun, args, kwargs = None, compiler = None, r#static = None))]
fn debug_expr<'py>(
    fun: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    compiler: Option<&Bound<'py, PyAny>>,
    r#static: Option<&Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyAny>> {
    guard(|| {
        let py = fun.py();
        let _current = compilers::enter(chosen(py, "debug_expr", compiler, None)?);
        let marked = marked_names(r#static)?;
        let flat = match fun.cast::<Jitted>() {
            // The parameters that the definition declares as static are static here, too.
            Ok(jitted) if marked.is_empty() => {
                let jitted = jitted.get();
                jitted.signature.flatten(jitted.fun(py), args, kwargs)?
            }
            Ok(_) | Err(_) => {
                let fun = unwrapped(fun);
                Signature::new(&fun, &marked)?.flatten(&fun, args, kwargs)?
            }
        };
        let models: Vec<Tensor> =
            flat.leaves.iter().map(|leaf| leaf::model("debug_expr", leaf)).collect::<Fallible<_>>()?;
        let table = hooks::collect();
        let (tracing, parameters) = Trace::begin_like(&models);
        let tracing = tracing.at(location::of_function(fun));
        let wrapped = wrap(py, parameters.into_iter())?;
        let (args, kwargs) = leaf::arguments(py, &flat.tree, wrapped.into_iter())?;
        let result = callee(fun).and_then(|fun| fun.call(args, Some(&kwargs)));
        if let Ok(result) = &result
            && let Ok(flat) = containers::flatten("debug_expr", Mode::State, result)
        {
            let returned = flat.leaves.iter().filter_map(|leaf| leaf.cast::<PyTensor>().ok());
            let returned: Vec<Tensor> = returned.map(|tensor| tensor.get().tensor.clone()).collect();
            tracing.trace().resolve_weak(&returned);
        }
        tracing.trace().set_host(Arc::new(WeakTable::keeping(table.finish())));
        drop(tracing);
        trace_allocations::forget();
        Ok(result?)
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Compiled>()?;
    module.add_function(wrap_pyfunction!(compile, module)?)?;
    module.add_function(wrap_pyfunction!(check_chunk, module)?)?;
    module.add_function(wrap_pyfunction!(owned, module)?)?;
    module.add_function(wrap_pyfunction!(debug_expr, module)?)
}
