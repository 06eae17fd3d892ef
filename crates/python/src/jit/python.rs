//! Definitions behind compilers that are written in Python: what such a compiler receives, and what it returns.

mod executable;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use defn_core::backend::Executable;
use defn_core::trace::{self, Trace};
use defn_core::vectorize::type_text;
use defn_core::{Number, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use self::executable::PythonExecutable;
use super::argument_names::name_argument_by_signature;
use super::leaf::{Borrowed, number_in, same_type, weak, wrap};
use super::signature::function_name;
use super::traced::{TraceSource, TracedFunction};
use crate::compilers::{Choice, Custom};
use crate::containers::{Flat, Tree};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::hooks::{self, CurrentRun, SharedTable, Table, WeakTable};
use crate::misuse::Misuse;
use crate::tensor::PyTensor;

/// The key by which a compiler knows a function. Two calls have equal keys only if they are calls of one function
/// with equal static values. The types of the arguments do not matter.
#[pyclass(frozen, weakref, name = "Key", module = "defn.compilers")]
pub(super) struct FunctionKey {
    name: String,
}

impl FunctionKey {
    pub(super) fn new(fun: &Bound<'_, PyAny>) -> FunctionKey {
        FunctionKey { name: function_name(fun) }
    }
}

#[pymethods]
impl FunctionKey {
    fn __repr__(&self) -> String {
        format!("<key of {}>", self.name)
    }
}

/// A function that returns an argument. A number or an array becomes a tensor when the function is called.
#[pyclass(frozen, module = "defn._core")]
struct Thunk {
    argument: ThunkArgument,
}

enum ThunkArgument {
    /// The leaf as the caller passed it.
    Leaf(Py<PyAny>),
    Tensor(Tensor),
}

impl Thunk {
    fn of_leaf(leaf: &Bound<'_, PyAny>) -> Thunk {
        Thunk { argument: ThunkArgument::Leaf(leaf.clone().unbind()) }
    }

    fn of_tensor(tensor: Tensor) -> Thunk {
        Thunk { argument: ThunkArgument::Tensor(tensor) }
    }
}

#[pymethods]
impl Thunk {
    fn __call__(&self, py: Python<'_>) -> Fallible<PyTensor> {
        guard(|| match &self.argument {
            ThunkArgument::Leaf(leaf) => Ok(PyTensor::new(Borrowed::copying().tensor(leaf.bind(py))?.flat())),
            ThunkArgument::Tensor(tensor) => Ok(PyTensor::new(tensor.clone())),
        })
    }
}

/// What is still to be traced.
struct PendingTrace {
    source: TraceSource,
    tree: Tree,
    compiler: Choice,
}

/// The function that a compiler calls with its vars to trace the definition.
#[pyclass(frozen, name = "Traceable", module = "defn._core")]
pub(super) struct Traceable {
    name: String,
    /// What is traced. It is dropped after tracing, because the definition holds its versions, and so these must not
    /// hold the definition.
    pending: Mutex<Option<Arc<PendingTrace>>>,
    models: Vec<Tensor>,
    /// The vars and the lists of arguments that the compiler received. Tracing appends what the function captures.
    vars: Py<PyList>,
    argument_lists: Vec<Py<PyList>>,
    /// The numbers of the call by the positions of their leaves, and the number of leading leaves that the lists
    /// lack.
    numbers: Vec<(usize, Number)>,
    skipped: usize,
    traced: OnceLock<TracedFunction>,
    slots: SharedTable,
}

impl Traceable {
    /// The trace, after tracing.
    pub(super) fn trace(&self) -> Option<Arc<Trace>> {
        self.traced.get().map(|traced| traced.trace.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<PendingTrace>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops what is traced.
    fn end(&self) {
        let pending = self.lock().take();
        drop(pending);
    }

    fn new(
        py: Python<'_>,
        source: &TraceSource,
        flat: &Flat<'_>,
        compiler: &Choice,
        (argument_lists, skipped): (Vec<Py<PyList>>, usize),
    ) -> Fallible<Traceable> {
        let models = source.models(&flat.leaves)?;
        let mut numbers = Vec::new();
        for (position, leaf) in flat.leaves.iter().enumerate() {
            numbers.extend(weak(leaf)?.map(|number| (position, number)));
        }
        let pending = PendingTrace {
            source: source.clone_ref(py),
            tree: flat.tree.clone_ref(py),
            compiler: compiler.clone(),
        };
        let templates = models.iter().map(|model| PyTensor::new(model.clone()));
        let vars = PyList::new(py, templates.map(|var| Bound::new(py, var)).collect::<PyResult<Vec<_>>>()?)?;
        Ok(Traceable {
            name: function_name(source.fun.bind(py)),
            pending: Mutex::new(Some(Arc::new(pending))),
            models,
            vars: vars.unbind(),
            argument_lists,
            numbers,
            skipped,
            traced: OnceLock::new(),
            slots: Arc::default(),
        })
    }

    /// Refuses vars that are not those that the compiler received.
    fn check(&self, vars: &Bound<'_, PyTuple>) -> Fallible<()> {
        let refuse =
            |got: String| -> Fallible<()> { Err(Misuse::OtherVars { callback: "compile", got }.into()) };
        let is_count = vars.len() == self.models.len() || vars.len() == self.vars.bind(vars.py()).len();
        if !is_count {
            return refuse(format!("{} vars of {}", vars.len(), self.models.len()));
        }
        for (var, model) in vars.iter().zip(&self.models) {
            let Ok(var) = var.cast::<PyTensor>() else {
                return refuse(convert::describe(&var)?);
            };
            let var = &var.get().tensor;
            // After tracing, a number has the dtype in which it is used.
            let is_resolved = model.is_weak() && self.traced.get().is_some();
            if !is_resolved && !same_type(var, model) {
                return refuse(type_text(var));
            }
        }
        Ok(())
    }

    /// The container that the traced function returned, with a traced tensor for each leaf.
    fn container<'py>(&self, py: Python<'py>, traced: &TracedFunction) -> Fallible<Bound<'py, PyAny>> {
        traced.tree.unflatten(py, &mut wrap(py, traced.leaves.iter().cloned())?.into_iter())
    }

    /// Appends the captures and the numbers in further dtypes to what the compiler received.
    fn complete(&self, py: Python<'_>, pending: &PendingTrace, traced: &TracedFunction) -> Fallible<()> {
        let inputs = traced.region.inputs();
        for (position, model) in self.models.iter().enumerate() {
            if model.is_weak() {
                let var = Tensor::template(inputs[position].clone());
                self.vars.bind(py).set_item(position, Bound::new(py, PyTensor::new(var))?)?;
            }
        }
        for ty in &inputs[self.models.len()..] {
            self.vars.bind(py).append(Bound::new(py, PyTensor::new(Tensor::template(ty.clone())))?)?;
        }
        if self.argument_lists.is_empty() {
            return Ok(());
        }
        let number = |position: usize, input: usize| -> Fallible<Option<Bound<'_, Thunk>>> {
            let number = self.numbers.iter().find(|(leaf, _)| *leaf == position);
            let Some(&(_, number)) = number else { return Ok(None) };
            let made = number_in("jit", position, inputs[input].dtype, number)?;
            Ok(Some(Bound::new(py, Thunk::of_tensor(made))?))
        };
        for list in &self.argument_lists {
            for &(position, _) in self.numbers.iter().filter(|(position, _)| *position >= self.skipped) {
                list.bind(py).set_item(position - self.skipped, number(position, position)?)?;
            }
            for (behind, &position) in traced.further.iter().enumerate() {
                list.bind(py).append(number(position, self.models.len() + behind)?)?;
            }
        }
        let mut borrowed = Borrowed::copying();
        let captures = traced.read_captures(pending.source.fun.bind(py), &pending.tree, &mut borrowed)?;
        for tensor in captures.unwrap_or_default() {
            for list in &self.argument_lists {
                list.bind(py).append(Bound::new(py, Thunk::of_tensor(tensor.flat()))?)?;
            }
        }
        Ok(())
    }
}

#[pymethods]
impl Traceable {
    #[pyo3(signature = (*vars))]
    fn __call__<'py>(&self, vars: &Bound<'py, PyTuple>) -> Fallible<Bound<'py, PyAny>> {
        guard(|| {
            let py = vars.py();
            self.check(vars)?;
            if let Some(traced) = self.traced.get() {
                return self.container(py, traced);
            }
            let Some(pending) = self.lock().clone() else {
                return Err(Misuse::OverForGood { fun: self.name.clone() }.into());
            };
            let mut traced =
                TracedFunction::of(py, &pending.source, &pending.tree, &self.models, &pending.compiler)?;
            traced.trace.keep(traced.region.clone());
            traced.trace.set_host(Arc::new(WeakTable::of(&traced.slots)));
            let slots = std::mem::take(&mut traced.slots);
            // Two threads may call this function at the same time. The first of the two equal graphs is kept.
            if self.traced.set(traced).is_ok() {
                *self.slots.lock().unwrap_or_else(PoisonError::into_inner) = slots;
                let traced = self.traced.get().expect("it was set");
                let made = self.complete(py, &pending, traced);
                made.map_err(|fault| {
                    name_argument_by_signature(pending.source.fun.bind(py), fault, &pending.tree, (&[], &[]))
                })?;
            }
            self.container(py, self.traced.get().expect("it was set"))
        })
    }

    fn __repr__(&self) -> String {
        format!("<traceable {}>", self.name)
    }
}

/// What a compiler returned for a definition.
pub(super) struct CompilerOutput {
    pub(super) executable: Arc<dyn Executable>,
    pub(super) traced: TracedFunction,
    pub(super) slots: Table,
    /// The results of the first run, where the compiler runs and compiles in one step.
    pub(super) first: Option<Vec<Tensor>>,
}

/// A request to a compiler written in Python.
pub(super) struct CompilerCall<'a, 'py> {
    pub(super) source: &'a TraceSource,
    pub(super) flat: &'a Flat<'py>,
    pub(super) compiler: &'a Arc<Custom>,
    pub(super) key: &'a Py<PyAny>,
    /// `Some` if the arguments are values that a first run can take; it has the functions for named hooks.
    pub(super) run: Option<Option<&'a Py<PyDict>>>,
}

impl CompilerCall<'_, '_> {
    /// Lets the compiler compile. Its `jit` is called if it defines one and there is something to run, and its
    /// `compile` otherwise.
    ///
    /// # Errors
    /// A compiler that lacks the callback or does not trace, and what the compiler raises.
    pub(super) fn run(&self, py: Python<'_>) -> Fallible<CompilerOutput> {
        match self.run {
            Some(hooks) if self.compiler.defines(py, "jit")? => self.jit(py, hooks),
            Some(_) | None => self.compile(py),
        }
    }

    fn choice(&self) -> Choice {
        Choice::Python(self.compiler.clone())
    }

    fn finish(
        &self,
        py: Python<'_>,
        callback: &'static str,
        traceable: Py<Traceable>,
        compiled: Option<Py<PyAny>>,
    ) -> Fallible<CompilerOutput> {
        let Some(traced) = traceable.get().traced.get() else {
            let compiler = self.compiler.name.clone();
            return Err(Misuse::NeverTraced { callback, compiler }.into());
        };
        let key = self.key.clone_ref(py);
        let executable =
            Arc::new(PythonExecutable::new(self.compiler, compiled, traceable.clone_ref(py), key));
        let slots = hooks::take_slots(&traceable.get().slots);
        Ok(CompilerOutput { executable, traced: traced.clone_ref(py), slots, first: None })
    }

    fn compile(&self, py: Python<'_>) -> Fallible<CompilerOutput> {
        let traceable = Traceable::new(py, self.source, self.flat, &self.choice(), (Vec::new(), 0))?;
        let traceable = Py::new(py, traceable)?;
        let vars = traceable.get().vars.clone_ref(py);
        let arguments = (self.key, vars, &traceable, self.compiler.options(py)?);
        let compiled = trace::suspended(|| self.compiler.call("compile", arguments, py));
        traceable.get().end();
        let compiled = executable::checked(self.compiler, compiled?)?;
        self.finish(py, "compile", traceable, Some(compiled))
    }

    fn jit(&self, py: Python<'_>, hooks: Option<&Py<PyDict>>) -> Fallible<CompilerOutput> {
        let thunks = self.flat.leaves.iter().map(|leaf| Bound::new(py, Thunk::of_leaf(leaf)));
        let thunk_list = PyList::new(py, thunks.collect::<PyResult<Vec<_>>>()?)?;
        let list = vec![thunk_list.clone().unbind()];
        let traceable = Py::new(py, Traceable::new(py, self.source, self.flat, &self.choice(), (list, 0))?)?;
        let vars = traceable.get().vars.clone_ref(py);
        let lists = PyList::new(py, [thunk_list])?;
        let arguments = (self.key, vars, &traceable, lists, self.compiler.options(py)?);
        let _showing = CurrentRun::begin(py, traceable.get().slots.clone(), hooks)?;
        let results = trace::suspended(|| self.compiler.call("jit", arguments, py));
        traceable.get().end();
        let results = results?;
        let made = self.finish(py, "jit", traceable.clone_ref(py), None)?;
        let traced = traceable.get().traced.get().expect("finish looked for it");
        let first = traced.results(py, self.compiler, "jit", 1, &results)?.pop();
        Ok(CompilerOutput { first, ..made })
    }
}

/// The parts of a stream that a compiler runs itself: the key, the vars, the function, the thunks and the options.
#[pyfunction]
#[pyo3(signature = (fun, args, kwargs, chunk, compiler, options))]
pub(super) fn prepare_stream<'py>(
    py: Python<'py>,
    fun: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    chunk: usize,
    compiler: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
) -> Fallible<Bound<'py, PyTuple>> {
    guard(|| {
        let choice = Choice::of("stream", compiler, options)?;
        let Choice::Python(custom) = &choice else {
            return Err(
                Misuse::Internal { text: "a built-in compiler has no stream of its own".to_owned() }.into()
            );
        };
        let flat = super::compiled::flatten_arguments(args)?;
        let (callee, kwargs) = (fun.clone().unbind(), kwargs.map(|kwargs| kwargs.clone().unbind()));
        let call = move |args: &Bound<'_, PyTuple>, _: &Bound<'_, PyDict>| {
            let py = args.py();
            let kwargs = kwargs.as_ref().map(|kwargs| kwargs.bind(py));
            Ok(callee.bind(py).call(args.clone(), kwargs)?.unbind())
        };
        let source = TraceSource::new("stream", fun, Arc::new(call));
        let thunks = flat.leaves.iter().skip(chunk).map(|leaf| Bound::new(py, Thunk::of_leaf(leaf)));
        let thunk_list = PyList::new(py, thunks.collect::<PyResult<Vec<_>>>()?)?;
        let list = vec![thunk_list.clone().unbind()];
        let traceable = Py::new(py, Traceable::new(py, &source, &flat, &choice, (list, chunk))?)?;
        let vars = traceable.get().vars.clone_ref(py);
        let key = Py::new(py, FunctionKey::new(fun))?;
        let lists = PyList::new(py, [thunk_list])?;
        Ok((key, vars, traceable, lists, custom.options(py)?).into_pyobject(py)?)
    })
}

/// Calls the program of a stream with the hooks of the traced function. No call of a definition runs such a program.
#[pyfunction]
fn run_stream<'py>(
    fun: &Bound<'py, Traceable>,
    run: &Bound<'py, PyAny>,
    args_list: &Bound<'py, PyAny>,
) -> Fallible<Bound<'py, PyAny>> {
    let py = fun.py();
    let slots = fun.get().slots.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let _showing = CurrentRun::begin(py, Arc::new(Mutex::new(slots)), None)?;
    Ok(run.call1((args_list,))?)
}

/// The trace of a function that a compiler received, after the function was called.
pub(crate) fn traced_by(fun: &Bound<'_, PyAny>) -> Option<Arc<Trace>> {
    fun.cast::<Traceable>().ok()?.get().trace()
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<FunctionKey>()?;
    module.add_class::<Traceable>()?;
    module.add_class::<Thunk>()?;
    module.add_function(wrap_pyfunction!(run_stream, module)?)?;
    module.add_function(wrap_pyfunction!(prepare_stream, module)?)
}
