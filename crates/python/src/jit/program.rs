//! One compiled version of a definition: how it is traced, and how it runs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use defn_core::Tensor;
use defn_core::backend::{Checks, Compiler, Executable};
use defn_core::builder::{Arg, Builder, bring_together};
use defn_core::region::Region;
use defn_core::tensor::Data;
use defn_core::trace::Trace;
use defn_core::vectorize::{Lanes, type_text};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::donate;
use super::environment::{self, Place, Wanted};
use super::globals;
use super::leaf::{self, Borrowed};
use super::python::{Compiling, FunctionKey};
use crate::born;
use crate::compilers::{self, Choice};
use crate::containers::{self, Flat, Leaves, Mode, Tree};
use crate::convert;
use crate::error::{Fallible, Fault};
use crate::hooks::{self, Collecting, Table};
use crate::location;
use crate::misuse::Misuse;
use crate::ops;
use crate::place;
use crate::recursion;
use crate::tensor::PyTensor;

/// Runs that took longer than this give up the interpreter lock.
const RELEASE_NANOS: u64 = 30_000;

/// The first runs are timed, and then one of so many.
const TIMED_RUNS: u64 = 16;

/// Where a captured value comes from at each call.
pub(super) enum Capture {
    /// Made while tracing: a constant of the program.
    Bound(Tensor),
    /// Found again where the function found it.
    Found { place: Place, model: Tensor },
}

/// A leaf of the result.
#[derive(Clone)]
pub(super) enum Output {
    /// An argument, as it was given.
    Argument(usize),
    /// What the program computes, and the vectorized axes that lead it.
    Result(usize, Lanes),
}

impl Output {
    fn is_result(&self) -> bool {
        match self {
            Output::Argument(_) => false,
            Output::Result(..) => true,
        }
    }
}

/// A traced and compiled program.
pub(super) struct Program {
    executable: Arc<dyn Executable>,
    pub(super) captures: Arc<[Capture]>,
    outputs: Vec<Output>,
    tree: Tree,
    /// The host functions that the program shows values to.
    slots: Table,
    /// Whether nothing is computed: the results are arguments, and there are no effects.
    is_trivial: bool,
    /// What a compiler of Python's knows the function by.
    pub(super) function_key: Option<Py<PyAny>>,
    runs: AtomicU64,
    /// What the latest timed run took.
    nanos: AtomicU64,
}

/// Calls what is traced.
pub(super) type Call =
    Arc<dyn Fn(&Bound<'_, PyTuple>, &Bound<'_, PyDict>) -> Fallible<Py<PyAny>> + Send + Sync>;

/// What is traced: a function of a tuple and a dict, and the callable whose environment holds its captures.
pub(super) struct Source {
    pub(super) op: &'static str,
    pub(super) fun: Py<PyAny>,
    call: Call,
}

impl Source {
    pub(super) fn new(op: &'static str, fun: &Bound<'_, PyAny>, call: Call) -> Source {
        Source { op, fun: fun.clone().unbind(), call }
    }

    pub(super) fn clone_ref(&self, py: Python<'_>) -> Source {
        Source { op: self.op, fun: self.fun.clone_ref(py), call: self.call.clone() }
    }

    /// The types of a call's leaves.
    pub(super) fn models(&self, leaves: &Leaves<'_>) -> Fallible<Vec<Tensor>> {
        leaves.iter().map(|leaf| leaf::model(self.op, leaf)).collect()
    }
}

/// A definition that was traced on types.
pub(super) struct Traced {
    pub(super) region: Arc<Region>,
    /// The trace, which is closed.
    pub(super) trace: Arc<Trace>,
    captures: Arc<[Capture]>,
    pub(super) outputs: Vec<Output>,
    pub(super) tree: Tree,
    /// A traced tensor for each leaf of the result.
    pub(super) leaves: Vec<Tensor>,
    pub(super) slots: Table,
}

/// The positional arguments and keywords of a call, from its leaves.
pub(super) fn arguments<'py>(
    py: Python<'py>,
    tree: &Tree,
    leaves: impl Iterator<Item = Bound<'py, PyAny>>,
) -> Fallible<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
    let mut leaves = leaves;
    let (args, kwargs) = tree.unflatten_pair(py, &mut leaves)?;
    Ok((
        args.cast_into::<PyTuple>().map_err(PyErr::from)?,
        kwargs.cast_into::<PyDict>().map_err(PyErr::from)?,
    ))
}

/// A traced leaf of Python's: a tensor as it is, a number as a tensor of its own.
pub(crate) fn result_tensor(op: &'static str, leaf: &Bound<'_, PyAny>) -> Fallible<Tensor> {
    let arg = convert::arg(op, leaf)?;
    ops::with(|ops| match arg {
        Arg::Value(tensor) => Ok(tensor),
        Arg::Number(_) => Builder::operand(ops, arg),
    })
}

impl Traced {
    /// Traces a function on arguments of a structure and types.
    pub(super) fn of(
        py: Python<'_>,
        source: &Source,
        tree: &Tree,
        models: &[Tensor],
        compiler: &Choice,
    ) -> Fallible<Traced> {
        let _call = recursion::enter(source.op)?;
        let _current = compilers::enter(compiler.clone());
        let table = Collecting::begin();
        let (tracing, parameters) = Trace::begin_like(models);
        let tracing = tracing.at(location::of_function(source.fun.bind(py)));
        let wrapped = wrap(py, parameters.iter().cloned())?;
        let (args, kwargs) = arguments(py, tree, wrapped.into_iter())?;
        let result = (source.call)(&args, &kwargs)?.into_bound(py);
        let flat = containers::flatten(source.op, Mode::State, &result)?;
        let (mut outputs, mut results) = (Vec::with_capacity(flat.leaves.len()), Vec::new());
        let mut leaves = Vec::with_capacity(flat.leaves.len());
        for leaf in &flat.leaves {
            let tensor = result_tensor(source.op, leaf)?;
            match parameters.iter().position(|parameter| is_same_value(parameter, &tensor)) {
                Some(position) => {
                    outputs.push(Output::Argument(position));
                    leaves.push(parameters[position].clone());
                }
                None => {
                    let lanes = Lanes::from(tensor.vectorized_axes());
                    outputs.push(Output::Result(results.len(), lanes));
                    leaves.push(tensor.clone());
                    results.push(tensor);
                }
            }
        }
        let slots = table.finish();
        let trace = tracing.trace().clone();
        let closed = tracing.finish(source.op, &results)?;
        // What came from outside is a value of the trace now.
        for (output, leaf) in outputs.iter().zip(&mut leaves) {
            if let Output::Result(position, lanes) = output {
                let value = closed.region.results()[*position];
                let ty = closed.region.graph().ty(value).clone();
                *leaf = Tensor::traced(ty, trace.clone(), value).with_vectorized(lanes);
            }
        }
        let captures = closed
            .captures
            .iter()
            .map(|capture| locate(source.op, source.fun.bind(py), tree, capture))
            .collect::<Fallible<_>>()?;
        let region = Arc::new(closed.region);
        Ok(Traced { region, trace, captures, outputs, tree: flat.tree, leaves, slots })
    }

    /// The same again, for a program that outlives what the compiler was handed.
    pub(super) fn clone_ref(&self, py: Python<'_>) -> Traced {
        Traced {
            region: self.region.clone(),
            trace: self.trace.clone(),
            captures: self.captures.clone(),
            outputs: self.outputs.clone(),
            tree: self.tree.clone_ref(py),
            leaves: self.leaves.clone(),
            slots: self.slots.clone(),
        }
    }

    /// The values of the captures, as [`Program::read_captures`].
    pub(super) fn read_captures(
        &self,
        fun: &Bound<'_, PyAny>,
        arguments: &Tree,
        borrowed: &mut Borrowed,
    ) -> Fallible<Option<Vec<Tensor>>> {
        read_captures(&self.captures, fun, arguments, borrowed)
    }
}

impl Program {
    /// Traces a function on types and compiles what it did.
    pub(super) fn make<'py>(
        py: Python<'py>,
        source: &Source,
        flat: &Flat<'py>,
        compiler: &Choice,
        checks: Checks,
        donate: &[usize],
    ) -> Fallible<Program> {
        let made = match compiler {
            Choice::BuiltIn(found) => {
                Program::built_in(py, source, flat, &found.compiler, (compiler, checks), donate)
            }
            Choice::Python(_) => {
                donate::refuse(compiler, donate)?;
                let key = Py::new(py, FunctionKey::new(source.fun.bind(py)))?.into_any();
                Program::python(py, source, flat, compiler, checks, key, None).map(|(program, _)| program)
            }
        };
        born::forget();
        made
    }

    /// As [`Program::make`] for a compiler of Python's, which may run the program at the same time: then the
    /// results are those of its first run.
    pub(super) fn make_and_run<'py>(
        py: Python<'py>,
        source: &Source,
        flat: &Flat<'py>,
        compiler: &Choice,
        checks: Checks,
        function_key: Option<Py<PyAny>>,
        hooks: Option<&Py<PyDict>>,
    ) -> Fallible<(Program, Option<Vec<Tensor>>)> {
        let key = match function_key {
            Some(key) => key,
            None => Py::new(py, FunctionKey::new(source.fun.bind(py)))?.into_any(),
        };
        let made = Program::python(py, source, flat, compiler, checks, key, Some(hooks));
        born::forget();
        made
    }

    fn built_in<'py>(
        py: Python<'py>,
        source: &Source,
        flat: &Flat<'py>,
        found: &Arc<dyn Compiler>,
        (compiler, checks): (&Choice, Checks),
        donate: &[usize],
    ) -> Fallible<Program> {
        let models = source.models(&flat.leaves)?;
        let traced = Traced::of(py, source, &flat.tree, &models, compiler)?;
        let region = traced.region.clone();
        let executable = py.detach(|| found.compile_donating(region, checks, donate))?;
        Ok(Program::new(traced, executable))
    }

    fn new(traced: Traced, executable: Arc<dyn Executable>) -> Program {
        let has_results = traced.outputs.iter().any(Output::is_result);
        Program {
            executable,
            is_trivial: !has_results && !traced.region.has_effects(),
            captures: traced.captures,
            outputs: traced.outputs,
            tree: traced.tree,
            slots: traced.slots,
            function_key: None,
            runs: AtomicU64::new(0),
            nanos: AtomicU64::new(u64::MAX),
        }
    }

    fn python<'py>(
        py: Python<'py>,
        source: &Source,
        flat: &Flat<'py>,
        compiler: &Choice,
        checks: Checks,
        key: Py<PyAny>,
        run: Option<Option<&Py<PyDict>>>,
    ) -> Fallible<(Program, Option<Vec<Tensor>>)> {
        let Choice::Python(custom) = compiler else {
            return Err(Misuse::Internal { text: "a compiler that is not Python's".to_owned() }.into());
        };
        custom.refuse_checks(py, checks)?;
        let made = Compiling { source, flat, compiler: custom, key: &key, run }.make(py)?;
        let traced = made.traced;
        let program = Program::new(traced, made.executable);
        Ok((Program { function_key: Some(key), slots: made.slots, ..program }, made.first))
    }

    /// The values of the captures, where they are there and of the types that were compiled.
    pub(super) fn read_captures(
        &self,
        fun: &Bound<'_, PyAny>,
        arguments: &Tree,
        borrowed: &mut Borrowed,
    ) -> Fallible<Option<Vec<Tensor>>> {
        read_captures(&self.captures, fun, arguments, borrowed)
    }

    /// Runs on the leaves of a call.
    pub(super) fn run<'py>(
        &self,
        py: Python<'py>,
        leaves: &Leaves<'py>,
        captures: Vec<Tensor>,
        borrowed: Borrowed,
        hooks: Option<&Py<PyDict>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        self.run_or_take(py, leaves, captures, borrowed, hooks, None)
    }

    /// As [`Program::run`], where the results may be there already.
    pub(super) fn run_or_take<'py>(
        &self,
        py: Python<'py>,
        leaves: &Leaves<'py>,
        captures: Vec<Tensor>,
        mut borrowed: Borrowed,
        hooks: Option<&Py<PyDict>>,
        known: Option<Vec<Tensor>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let mut tensors = Vec::with_capacity(leaves.len() + captures.len());
        for (position, leaf) in leaves.iter().enumerate() {
            let is_used = self.executable.uses(position);
            // What nothing uses is not brought to where the program runs; a tensor of ours is looked at all the same.
            let tensor = match is_used || leaf.is_instance_of::<PyTensor>() {
                true => borrowed.tensor(leaf)?,
                false => leaf::model("jit", leaf)?,
            };
            tensors.push(if is_used { tensor } else { Tensor::template(tensor.whole().clone()) });
        }
        // An argument that is returned as it is keeps its buffer; a number or an array becomes a tensor.
        let mut kept: Vec<Option<Bound<'py, PyAny>>> = Vec::with_capacity(self.outputs.len());
        for output in &self.outputs {
            kept.push(match output {
                Output::Argument(position) if leaves[*position].is_exact_instance_of::<PyTensor>() => {
                    Some(leaves[*position].clone())
                }
                Output::Argument(position) => {
                    let tensor = borrowed.tensor(&leaves[*position])?;
                    let tensor = born::note(borrowed.own(tensor)?);
                    Some(Bound::new(py, PyTensor::new(tensor))?.into_any())
                }
                Output::Result(..) => None,
            });
        }
        tensors.extend(captures);
        let results = match known {
            Some(results) => results,
            None => self.execute(py, tensors, hooks)?,
        };
        let mut owned = Vec::with_capacity(results.len());
        for result in results {
            owned.push(Some(born::note(borrowed.own(result)?)));
        }
        let mut wrapped = Leaves::with_capacity(self.outputs.len());
        for (output, kept) in self.outputs.iter().zip(kept) {
            wrapped.push(match (output, kept) {
                (_, Some(kept)) => kept,
                (Output::Result(position, lanes), None) => {
                    let tensor = owned[*position].take().expect("each result is one leaf");
                    Bound::new(py, PyTensor::new(tensor.with_vectorized(lanes)))?.into_any()
                }
                (Output::Argument(_), None) => unreachable!("an argument is kept"),
            });
        }
        self.tree.unflatten(py, &mut wrapped.into_iter())
    }

    fn execute(
        &self,
        py: Python<'_>,
        mut tensors: Vec<Tensor>,
        hooks: Option<&Py<PyDict>>,
    ) -> Fallible<Vec<Tensor>> {
        if self.is_trivial {
            return Ok(Vec::new());
        }
        let backend = bring_together("run", &mut tensors, &place::default()?)?;
        let _showing = match &self.function_key {
            // Programs of a compiler of Python's call the host functions themselves.
            Some(_) => Some(hooks::Showing::begin(py, Arc::new(Mutex::new(self.slots.clone())), hooks)?),
            None => None,
        };
        // Reading the clock costs as much as a small op, so that only some runs are timed.
        let runs = self.runs.fetch_add(1, Ordering::Relaxed);
        let start = (runs < TIMED_RUNS || runs.is_multiple_of(TIMED_RUNS)).then(Instant::now);
        let run = || {
            let hooks = hooks::Run::new(&self.slots, hooks);
            let results = self.executable.run(&backend, tensors, &hooks);
            (results, hooks.into_fault())
        };
        let long = self.nanos.load(Ordering::Relaxed) > RELEASE_NANOS;
        let (results, fault) = if long { py.detach(run) } else { run() };
        if let Some(fault) = fault {
            return Err(fault);
        }
        if let Some(start) = start {
            let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.nanos.store(nanos, Ordering::Relaxed);
        }
        Ok(results?)
    }

    /// What is to say where a captured tensor is gone right after tracing: the function replaced it.
    pub(super) fn missing_capture(&self, fun: &Bound<'_, PyAny>, arguments: &Tree) -> Fault {
        let py = fun.py();
        for capture in self.captures.iter() {
            if let Capture::Found { place, model } = capture {
                let now = match place.read(fun, arguments) {
                    Ok(value) => match leaf::captured_model(&value) {
                        Ok(Some(found)) if leaf::same_model(&found, model) => continue,
                        Ok(Some(found)) => type_text(&found),
                        Ok(None) | Err(_) => globals::text(&value),
                    },
                    Err(_) => "missing".to_owned(),
                };
                let (fun, got, place) = (function_name(fun), model.ty().clone(), place.text(py));
                return Misuse::CaptureGone { fun, got, place, now }.into();
            }
        }
        Misuse::Internal { text: "a captured tensor cannot be read".to_owned() }.into()
    }

    /// Shows the garbage collector what is held.
    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.tree.traverse(visit)?;
        visit.call(&self.function_key)?;
        hooks::traverse(&self.slots, visit)
    }

    /// The functions that runs call.
    pub(super) fn host_functions<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
        hooks::functions(py, &self.slots)
    }

    /// Whether the program holds host functions that only the traced function has.
    pub(super) fn is_bound_to_function(&self, py: Python<'_>) -> bool {
        hooks::is_bound_to_function(py, &self.slots)
    }

    /// The program's graph, for inspection.
    pub(super) fn executable(&self) -> &Arc<dyn Executable> {
        &self.executable
    }
}

/// Tensors as Python objects.
pub(crate) fn wrap<'py>(py: Python<'py>, tensors: impl Iterator<Item = Tensor>) -> PyResult<Leaves<'py>> {
    tensors.map(|tensor| Ok(Bound::new(py, PyTensor::new(tensor))?.into_any())).collect()
}

/// Whether two traced tensors are one value under one type.
fn is_same_value(a: &Tensor, b: &Tensor) -> bool {
    if !leaf::same_model(a, b) {
        return false;
    }
    match (a.data(), b.data()) {
        (Data::Traced { trace: left, value: x }, Data::Traced { trace: right, value: y }) => {
            Arc::ptr_eq(left, right) && x == y
        }
        (Data::Buffer(_) | Data::Template | Data::Traced { .. }, _) => false,
    }
}

/// The values of captures, where they are there and of the types that were compiled.
fn read_captures(
    captures: &[Capture],
    fun: &Bound<'_, PyAny>,
    arguments: &Tree,
    borrowed: &mut Borrowed,
) -> Fallible<Option<Vec<Tensor>>> {
    let mut tensors = Vec::with_capacity(captures.len());
    for capture in captures {
        match capture {
            Capture::Bound(tensor) => tensors.push(tensor.clone()),
            Capture::Found { place, model } => {
                let Ok(value) = place.read(fun, arguments) else {
                    return Ok(None);
                };
                match leaf::captured_model(&value) {
                    Ok(Some(found)) if leaf::same_model(&found, model) => {
                        tensors.push(borrowed.tensor(&value)?)
                    }
                    Ok(_) | Err(_) => return Ok(None),
                }
            }
        }
    }
    Ok(Some(tensors))
}

fn locate(op: &'static str, fun: &Bound<'_, PyAny>, arguments: &Tree, capture: &Tensor) -> Fallible<Capture> {
    let Some(buffer) = capture.buffer() else {
        let fun = function_name(fun);
        return Err(Misuse::ForcedTraced { op, fun }.into());
    };
    let found = match born::origin(fun.py(), capture) {
        Some(born::Origin::Constant) => return Ok(Capture::Bound(capture.clone())),
        Some(born::Origin::Array(array)) => environment::find(fun, arguments, Wanted::Object(&array))?,
        None => environment::find(fun, arguments, Wanted::Buffer(buffer))?,
    };
    match found {
        Some(place) => {
            // The same elements may be vectorized where they were found; what counts is how they are there.
            let model = leaf::model(op, &place.read(fun, arguments)?)?;
            Ok(Capture::Found { place, model })
        }
        // An array that the function made itself is a constant.
        None if born::is_new(capture) => Ok(Capture::Bound(capture.clone())),
        None => {
            let fun = function_name(fun);
            Err(Misuse::UnknownCapture { fun, got: capture.ty().clone() }.into())
        }
    }
}

/// A function's name, for messages.
pub(crate) fn function_name(fun: &Bound<'_, PyAny>) -> String {
    let name = fun.getattr("__qualname__").or_else(|_| fun.getattr("__name__"));
    match name.and_then(|name| name.extract::<String>()) {
        Ok(name) => name,
        Err(_) => "the function".to_owned(),
    }
}
