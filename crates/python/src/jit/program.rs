//! One compiled version of a definition: how it is traced, and how it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use defn_core::Tensor;
use defn_core::backend::{Checks, Compiler, Executable};
use defn_core::builder::{Arg, Builder, bring_together};
use defn_core::tensor::Data;
use defn_core::trace::Trace;
use defn_core::vectorize::{Lanes, type_text};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::environment::{self, Place, Wanted};
use super::globals;
use super::leaf::{self, Borrowed};
use crate::born;
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
enum Output {
    /// An argument, as it was given.
    Argument(usize),
    /// What the program computes, and the vectorized axes that lead it.
    Result(usize, Lanes),
}

/// A traced and compiled program.
pub(super) struct Program {
    executable: Arc<dyn Executable>,
    pub(super) captures: Vec<Capture>,
    outputs: Vec<Output>,
    tree: Tree,
    /// The host functions that the program shows values to.
    slots: Table,
    /// Whether nothing is computed: the results are arguments, and there are no effects.
    is_trivial: bool,
    runs: AtomicU64,
    /// What the latest timed run took.
    nanos: AtomicU64,
}

/// What is traced: a function of a tuple and a dict, and the callable whose environment holds its captures.
pub(super) struct Source<'a, 'py> {
    pub(super) op: &'static str,
    pub(super) fun: &'a Bound<'py, PyAny>,
    pub(super) call: &'a dyn Fn(&Bound<'py, PyTuple>, &Bound<'py, PyDict>) -> Fallible<Bound<'py, PyAny>>,
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

impl Program {
    /// Traces a function on types and compiles what it did.
    pub(super) fn make<'py>(
        py: Python<'py>,
        source: &Source<'_, 'py>,
        flat: &Flat<'py>,
        compiler: &Arc<dyn Compiler>,
        checks: Checks,
    ) -> Fallible<Program> {
        let made = Program::trace(py, source, flat, compiler, checks);
        born::forget();
        made
    }

    fn trace<'py>(
        py: Python<'py>,
        source: &Source<'_, 'py>,
        flat: &Flat<'py>,
        compiler: &Arc<dyn Compiler>,
        checks: Checks,
    ) -> Fallible<Program> {
        let _call = recursion::enter(source.op)?;
        let models: Vec<Tensor> =
            flat.leaves.iter().map(|leaf| leaf::model(source.op, leaf)).collect::<Fallible<_>>()?;
        let table = Collecting::begin();
        let (tracing, parameters) = Trace::begin_like(&models);
        let tracing = tracing.at(location::of_function(source.fun));
        let wrapped = wrap(py, parameters.iter().cloned())?;
        let (args, kwargs) = arguments(py, &flat.tree, wrapped.into_iter())?;
        let result = (source.call)(&args, &kwargs)?;
        let Flat { leaves, tree } = containers::flatten(source.op, Mode::State, &result)?;
        let (mut outputs, mut results) = (Vec::with_capacity(leaves.len()), Vec::new());
        for leaf in &leaves {
            let tensor = result_tensor(source.op, leaf)?;
            match parameters.iter().position(|parameter| is_same_value(parameter, &tensor)) {
                Some(position) => outputs.push(Output::Argument(position)),
                None => {
                    outputs.push(Output::Result(results.len(), tensor.vectorized_axes().into()));
                    results.push(tensor);
                }
            }
        }
        let slots = table.finish();
        let closed = tracing.finish(source.op, &results)?;
        let captures = closed
            .captures
            .iter()
            .map(|capture| locate(source, &flat.tree, capture))
            .collect::<Fallible<Vec<_>>>()?;
        let region = Arc::new(closed.region);
        let is_trivial = results.is_empty() && !region.has_effects();
        let executable = py.detach(|| compiler.compile(region, checks))?;
        Ok(Program {
            executable,
            captures,
            outputs,
            tree,
            slots,
            is_trivial,
            runs: AtomicU64::new(0),
            nanos: AtomicU64::new(u64::MAX),
        })
    }

    /// The values of the captures, where they are there and of the types that were compiled.
    pub(super) fn read_captures(
        &self,
        fun: &Bound<'_, PyAny>,
        arguments: &Tree,
        borrowed: &mut Borrowed,
    ) -> Fallible<Option<Vec<Tensor>>> {
        let mut tensors = Vec::with_capacity(self.captures.len());
        for capture in &self.captures {
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

    /// Runs on the leaves of a call.
    pub(super) fn run<'py>(
        &self,
        py: Python<'py>,
        leaves: &Leaves<'py>,
        captures: Vec<Tensor>,
        mut borrowed: Borrowed,
        hooks: Option<&Py<PyDict>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let mut tensors = Vec::with_capacity(leaves.len() + captures.len());
        for leaf in leaves {
            tensors.push(borrowed.tensor(leaf)?);
        }
        // An argument that is returned as it is keeps its buffer; a number or an array becomes a tensor.
        let mut kept: Vec<Option<Bound<'py, PyAny>>> = Vec::with_capacity(self.outputs.len());
        for output in &self.outputs {
            kept.push(match output {
                Output::Argument(position) if leaves[*position].is_exact_instance_of::<PyTensor>() => {
                    Some(leaves[*position].clone())
                }
                Output::Argument(position) => {
                    let tensor = borrowed.own(tensors[*position].clone())?;
                    Some(Bound::new(py, PyTensor::new(tensor))?.into_any())
                }
                Output::Result(..) => None,
            });
        }
        tensors.extend(captures);
        let results = self.execute(py, tensors, hooks)?;
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
        for capture in &self.captures {
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
        for capture in &self.captures {
            match capture {
                Capture::Bound(_) => {}
                Capture::Found { place, .. } => place.traverse(visit)?,
            }
        }
        self.tree.traverse(visit)?;
        hooks::traverse(&self.slots, visit)
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

fn locate(source: &Source<'_, '_>, arguments: &Tree, capture: &Tensor) -> Fallible<Capture> {
    let Some(buffer) = capture.buffer() else {
        let fun = function_name(source.fun);
        return Err(Misuse::ForcedTraced { op: source.op, fun }.into());
    };
    let found = match born::origin(source.fun.py(), capture) {
        Some(born::Origin::Constant) => return Ok(Capture::Bound(capture.clone())),
        Some(born::Origin::Array(array)) => environment::find(source.fun, arguments, Wanted::Object(&array))?,
        None => environment::find(source.fun, arguments, Wanted::Buffer(buffer))?,
    };
    match found {
        Some(place) => {
            // The same elements may be vectorized where they were found; what counts is how they are there.
            let model = leaf::model(source.op, &place.read(source.fun, arguments)?)?;
            Ok(Capture::Found { place, model })
        }
        // An array that the function made itself is a constant.
        None if born::is_new(capture) => Ok(Capture::Bound(capture.clone())),
        None => {
            let fun = function_name(source.fun);
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
