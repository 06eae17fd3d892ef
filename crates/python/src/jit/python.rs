//! Definitions behind compilers that are written in Python: what such a compiler is given, and what it gives.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use defn_core::backend::{Backend, Executable, Hooks};
use defn_core::op::Op;
use defn_core::region::Region;
use defn_core::trace::{self, Trace};
use defn_core::vectorize::type_text;
use defn_core::{Number, Result, Tensor, TensorType};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::leaf::{Borrowed, number_in, same_type, weak, wrap};
use super::program::{Output, Source, Traced};
use super::signature::function_name;
use super::written::written_by;
use crate::build;
use crate::compilers::{Choice, Custom};
use crate::containers::{self, Flat, Leaves, Mode, Tree};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::hooks::{self, Known, SharedTable, Showing, Table};
use crate::misuse::Misuse;
use crate::pybackend::enter;
use crate::tensor::PyTensor;

/// What a compiler knows a function by: equal for two calls only if they are of one function with equal static
/// values, whatever the types of its arguments.
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

/// A function that gives an argument: a number or an array becomes a tensor when it is called.
#[pyclass(frozen, module = "defn._core")]
struct Thunk {
    argument: Argument,
}

enum Argument {
    /// As it was passed.
    Leaf(Py<PyAny>),
    Tensor(Tensor),
}

impl Thunk {
    fn of_leaf(leaf: &Bound<'_, PyAny>) -> Thunk {
        Thunk { argument: Argument::Leaf(leaf.clone().unbind()) }
    }

    fn of_tensor(tensor: Tensor) -> Thunk {
        Thunk { argument: Argument::Tensor(tensor) }
    }
}

#[pymethods]
impl Thunk {
    fn __call__(&self, py: Python<'_>) -> Fallible<PyTensor> {
        guard(|| match &self.argument {
            Argument::Leaf(leaf) => Ok(PyTensor::new(Borrowed::copying().tensor(leaf.bind(py))?.flat())),
            Argument::Tensor(tensor) => Ok(PyTensor::new(tensor.clone())),
        })
    }
}

/// What is to be traced.
struct Pending {
    source: Source,
    tree: Tree,
    compiler: Choice,
}

/// The function that a compiler calls with its vars to trace the definition.
#[pyclass(frozen, name = "Traceable", module = "defn._core")]
pub(super) struct Traceable {
    name: String,
    /// What is traced, until it was: the definition holds its versions, and so these must not hold it.
    pending: Mutex<Option<Arc<Pending>>>,
    models: Vec<Tensor>,
    /// The compiler's vars and lists of arguments, which get what the function takes from around it besides.
    vars: Py<PyList>,
    given: Vec<Py<PyList>>,
    /// The numbers of the call by the positions of their leaves, and how many leaves the lists lack in front.
    numbers: Vec<(usize, Number)>,
    skipped: usize,
    traced: OnceLock<Traced>,
    slots: SharedTable,
}

impl Traceable {
    /// What was traced, once it was.
    pub(super) fn trace(&self) -> Option<Arc<Trace>> {
        self.traced.get().map(|traced| traced.trace.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Pending>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what is traced.
    fn end(&self) {
        let pending = self.lock().take();
        drop(pending);
    }

    fn new(
        py: Python<'_>,
        source: &Source,
        flat: &Flat<'_>,
        compiler: &Choice,
        (given, skipped): (Vec<Py<PyList>>, usize),
    ) -> Fallible<Traceable> {
        let models = source.models(&flat.leaves)?;
        let mut numbers = Vec::new();
        for (position, leaf) in flat.leaves.iter().enumerate() {
            numbers.extend(weak(leaf)?.map(|number| (position, number)));
        }
        let pending = Pending {
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
            given,
            numbers,
            skipped,
            traced: OnceLock::new(),
            slots: Arc::default(),
        })
    }

    /// Refuses other vars than the compiler was given.
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
            // A number is of the dtype in which it is used, once that is known.
            let is_resolved = model.is_weak() && self.traced.get().is_some();
            if !is_resolved && !same_type(var, model) {
                return refuse(type_text(var));
            }
        }
        Ok(())
    }

    /// The container of what was traced, with a traced tensor for each leaf.
    fn container<'py>(&self, py: Python<'py>, traced: &Traced) -> Fallible<Bound<'py, PyAny>> {
        traced.tree.unflatten(py, &mut wrap(py, traced.leaves.iter().cloned())?.into_iter())
    }

    /// Completes what the compiler was given by what the function takes from around it.
    fn complete(&self, py: Python<'_>, pending: &Pending, traced: &Traced) -> Fallible<()> {
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
        if self.given.is_empty() {
            return Ok(());
        }
        let number = |position: usize, input: usize| -> Fallible<Option<Bound<'_, Thunk>>> {
            let known = self.numbers.iter().find(|(leaf, _)| *leaf == position);
            let Some(&(_, number)) = known else { return Ok(None) };
            let made = number_in("jit", position, inputs[input].dtype, number)?;
            Ok(Some(Bound::new(py, Thunk::of_tensor(made))?))
        };
        for list in &self.given {
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
            for list in &self.given {
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
            let mut traced = Traced::of(py, &pending.source, &pending.tree, &self.models, &pending.compiler)?;
            traced.trace.keep(traced.region.clone());
            traced.trace.set_host(Arc::new(Known::of(&traced.slots)));
            let slots = std::mem::take(&mut traced.slots);
            // A function that is called on two threads at once keeps the first of two equal graphs.
            if self.traced.set(traced).is_ok() {
                *self.slots.lock().unwrap_or_else(PoisonError::into_inner) = slots;
                let traced = self.traced.get().expect("it was set");
                let made = self.complete(py, &pending, traced);
                made.map_err(|fault| {
                    written_by(pending.source.fun.bind(py), fault, &pending.tree, (&[], &[]))
                })?;
            }
            self.container(py, self.traced.get().expect("it was set"))
        })
    }

    fn __repr__(&self) -> String {
        format!("<traceable {}>", self.name)
    }
}

/// What a compiler made of a definition.
pub(super) struct Made {
    pub(super) executable: Arc<dyn Executable>,
    pub(super) traced: Traced,
    pub(super) slots: Table,
    /// The results of the first run, where the compiler runs and compiles in one.
    pub(super) first: Option<Vec<Tensor>>,
}

/// How a call wants its definition compiled.
pub(super) struct Compiling<'a, 'py> {
    pub(super) source: &'a Source,
    pub(super) flat: &'a Flat<'py>,
    pub(super) compiler: &'a Arc<Custom>,
    pub(super) key: &'a Py<PyAny>,
    /// Whether the arguments are values that a first run takes, and the functions for named hooks.
    pub(super) run: Option<Option<&'a Py<PyDict>>>,
}

impl Compiling<'_, '_> {
    /// Has the compiler compile: by its `jit` if it has one of its own and there is something to run.
    ///
    /// # Errors
    /// A compiler that lacks the callback or does not trace, and what it raises.
    pub(super) fn make(&self, py: Python<'_>) -> Fallible<Made> {
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
    ) -> Fallible<Made> {
        let Some(traced) = traceable.get().traced.get() else {
            let compiler = self.compiler.name.clone();
            return Err(Misuse::NeverTraced { callback, compiler }.into());
        };
        let executable = Arc::new(PythonExecutable {
            region: traced.region.clone(),
            compiler: self.compiler.clone(),
            compiled,
            traceable: traceable.clone_ref(py),
            key: self.key.clone_ref(py),
            used: traced.used(),
        });
        let slots = hooks::taken(&traceable.get().slots);
        Ok(Made { executable, traced: traced.clone_ref(py), slots, first: None })
    }

    fn compile(&self, py: Python<'_>) -> Fallible<Made> {
        let traceable = Traceable::new(py, self.source, self.flat, &self.choice(), (Vec::new(), 0))?;
        let traceable = Py::new(py, traceable)?;
        let vars = traceable.get().vars.clone_ref(py);
        let arguments = (self.key, vars, &traceable, self.compiler.options(py)?);
        let compiled = trace::suspended(|| self.compiler.call("compile", arguments, py));
        traceable.get().end();
        let compiled = compiled?;
        if !compiled.is_callable() {
            let (callback, compiler) = ("compile", self.compiler.name.clone());
            let (got, expected) =
                (convert::describe(&compiled)?, "a function of lists of arguments".to_owned());
            return Err(Misuse::CompilerResult { callback, compiler, got, expected }.into());
        }
        self.finish(py, "compile", traceable, Some(compiled.unbind()))
    }

    fn jit(&self, py: Python<'_>, hooks: Option<&Py<PyDict>>) -> Fallible<Made> {
        let thunks = self.flat.leaves.iter().map(|leaf| Bound::new(py, Thunk::of_leaf(leaf)));
        let given = PyList::new(py, thunks.collect::<PyResult<Vec<_>>>()?)?;
        let list = vec![given.clone().unbind()];
        let traceable = Py::new(py, Traceable::new(py, self.source, self.flat, &self.choice(), (list, 0))?)?;
        let vars = traceable.get().vars.clone_ref(py);
        let lists = PyList::new(py, [given])?;
        let arguments = (self.key, vars, &traceable, lists, self.compiler.options(py)?);
        let _showing = Showing::begin(py, traceable.get().slots.clone(), hooks)?;
        let results = trace::suspended(|| self.compiler.call("jit", arguments, py));
        traceable.get().end();
        let results = results?;
        let made = self.finish(py, "jit", traceable.clone_ref(py), None)?;
        let traced = traceable.get().traced.get().expect("finish looked for it");
        let first = traced.results(py, self.compiler, "jit", &results)?;
        Ok(Made { first: Some(first), ..made })
    }
}

/// A program that a compiler of Python's made.
struct PythonExecutable {
    region: Arc<Region>,
    compiler: Arc<Custom>,
    /// What `compile` gave; without it, `jit` runs each call.
    compiled: Option<Py<PyAny>>,
    traceable: Py<Traceable>,
    key: Py<PyAny>,
    /// Whether anything uses an input: what nothing uses is a template.
    used: Vec<bool>,
}

impl fmt::Debug for PythonExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PythonExecutable({})", self.compiler.name)
    }
}

impl Executable for PythonExecutable {
    fn program(&self) -> &Arc<Region> {
        &self.region
    }

    fn uses(&self, input: usize) -> bool {
        self.used[input]
    }

    fn run(&self, _: &Arc<dyn Backend>, arguments: Vec<Tensor>, _: &dyn Hooks) -> Result<Vec<Tensor>> {
        enter(|py| {
            let traced = self.traceable.get().traced.get().expect("it was traced when it was compiled");
            let (callback, results) = match &self.compiled {
                Some(compiled) => {
                    let given = PyList::new(py, wrap(py, arguments.into_iter())?)?;
                    ("compile", compiled.bind(py).call1((PyList::new(py, [given])?,))?)
                }
                None => {
                    let thunks = arguments.into_iter().map(|tensor| Bound::new(py, Thunk::of_tensor(tensor)));
                    let given = PyList::new(py, thunks.collect::<PyResult<Vec<_>>>()?)?;
                    let vars = PyList::new(py, self.traceable.get().vars.bind(py))?;
                    let lists = PyList::new(py, [given])?;
                    let options = self.compiler.options(py)?;
                    let arguments = (&self.key, vars, &self.traceable, lists, options);
                    ("jit", self.compiler.call("jit", arguments, py)?)
                }
            };
            traced.results(py, &self.compiler, callback, &results)
        })
    }
}

impl Traced {
    /// For each input, whether the results or an effect take it, as they are or in what they are made of.
    fn used(&self) -> Vec<bool> {
        let graph = self.region.graph();
        let mut needed = vec![false; graph.len()];
        self.region.results().iter().for_each(|value| needed[value.node as usize] = true);
        let mut used = vec![false; self.region.inputs().len()];
        for (position, node) in graph.nodes().iter().enumerate().rev() {
            if !needed[position] && !node.op.has_effect() {
                continue;
            }
            node.inputs.iter().for_each(|input| needed[input.node as usize] = true);
            if let Op::Parameter { index, .. } = &node.op {
                used[*index] = true;
            }
        }
        for output in &self.outputs {
            if let Output::Argument(position) = output {
                used[*position] = true;
            }
        }
        used
    }

    /// The tensors that a compiler's program gave for one list of arguments, held against their types. What is
    /// an argument of the call is left out.
    fn results(
        &self,
        py: Python<'_>,
        compiler: &Custom,
        callback: &'static str,
        results: &Bound<'_, PyAny>,
    ) -> Fallible<Vec<Tensor>> {
        let refuse = |got: String, expected: String| -> Misuse {
            Misuse::CompilerResult { callback, compiler: compiler.name.clone(), got, expected }
        };
        let is_list = results.is_instance_of::<PyList>() || results.is_instance_of::<PyTuple>();
        if !is_list || results.len()? != 1 {
            let got =
                if is_list { format!("{} results", results.len()?) } else { convert::describe(results)? };
            return Err(refuse(got, "a list with one result for each list of arguments".to_owned()).into());
        }
        let result = results.get_item(0)?;
        let Flat { leaves, tree, .. } = match containers::flatten(callback, Mode::State, &result) {
            Ok(flat) => flat,
            Err(_) => {
                let expected = format!("the structure {}", self.tree.text(py)?);
                return Err(refuse(convert::describe(&result)?, expected).into());
            }
        };
        let leaves: Leaves<'_> = if tree.equals(py, &self.tree)? {
            leaves
        } else if let Some(places) = self.tree.places_in(py, &tree)? {
            places.into_iter().map(|place| leaves[place].clone()).collect()
        } else {
            let expected = format!("the structure {}", self.tree.text(py)?);
            return Err(refuse(format!("the structure {}", tree.text(py)?), expected).into());
        };
        let mut tensors = Vec::new();
        let mut place: Option<Bound<'_, PyAny>> = None;
        for (output, leaf) in self.outputs.iter().zip(&leaves) {
            let Output::Result(position, _) = output else { continue };
            let ty: &TensorType = self.region.graph().ty(self.region.results()[*position]);
            let tensor = match leaf.cast::<PyTensor>() {
                Ok(tensor) => tensor.get().tensor.flat(),
                Err(_) => {
                    if place.is_none() && compiler.object.bind(py).hasattr(intern!(py, "to_backend"))? {
                        place = Some(compiler.call("to_backend", (compiler.options(py)?,), py)?);
                    }
                    build::tensor(leaf, None, None, place.as_ref(), None)?.tensor
                }
            };
            let Some(buffer) = tensor.buffer() else {
                return Err(refuse("a tensor without values".to_owned(), ty.to_string()).into());
            };
            if tensor.ty().dtype != ty.dtype || tensor.ty().shape.sizes() != ty.shape.sizes() {
                return Err(refuse(tensor.ty().to_string(), ty.to_string()).into());
            }
            tensors.push(Tensor::concrete(ty.clone(), buffer.clone()));
        }
        Ok(tensors)
    }
}

/// Everything that a stream of a compiler's own is made from: the key, the vars, the function, the thunks and the
/// options.
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
        let source = Source::new("stream", fun, Arc::new(call));
        let thunks = flat.leaves.iter().skip(chunk).map(|leaf| Bound::new(py, Thunk::of_leaf(leaf)));
        let given = PyList::new(py, thunks.collect::<PyResult<Vec<_>>>()?)?;
        let list = vec![given.clone().unbind()];
        let traceable = Py::new(py, Traceable::new(py, &source, &flat, &choice, (list, chunk))?)?;
        let vars = traceable.get().vars.clone_ref(py);
        let key = Py::new(py, FunctionKey::new(fun))?;
        let lists = PyList::new(py, [given])?;
        Ok((key, vars, traceable, lists, custom.options(py)?).into_pyobject(py)?)
    })
}

/// Calls the program of a stream, which no call of a definition runs, with the hooks of what it was made of.
#[pyfunction]
fn run_stream<'py>(
    fun: &Bound<'py, Traceable>,
    run: &Bound<'py, PyAny>,
    args_list: &Bound<'py, PyAny>,
) -> Fallible<Bound<'py, PyAny>> {
    let py = fun.py();
    let slots = fun.get().slots.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let _showing = Showing::begin(py, Arc::new(Mutex::new(slots)), None)?;
    Ok(run.call1((args_list,))?)
}

/// The trace that a function gave which a compiler was handed, once it was called.
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
