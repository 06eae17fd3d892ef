//! The program of a compiled version: how it is compiled, and how it runs.

mod run;

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use defn_core::backend::{Checks, Compiler, Executable};
use defn_core::builder::{common_backend, move_to_common_backend};
use defn_core::region::Region;
use defn_core::vectorize::NamedAxes;
use defn_core::{Tensor, TensorType};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use smallvec::SmallVec;

use super::background;
use super::donate;
use super::guards::{self, Capture};
use super::leaf::{self, Borrowed};
use super::python::{CompilerCall, FunctionKey};
use super::settings::CompileMode;
use super::signature::function_name;
use super::traced::{TraceSource, TracedFunction};
use crate::backends;
use crate::compilers::Choice;
use crate::containers::{Flat, Leaves, Tree};
use crate::error::Fallible;
use crate::gil;
use crate::hooks::{self, Table};
use crate::misuse::Misuse;
use crate::tensor::PyTensor;
use crate::trace_allocations;

/// Runs that take longer than this release the interpreter lock.
const RELEASE_NANOS: u64 = 30_000;

/// The number of runs at the beginning that are timed. After them, one run of this many is timed.
const TIMED_RUNS: u64 = 16;

/// A leaf of the result.
#[derive(Clone)]
pub(super) enum Output {
    /// An argument that is returned unchanged.
    Argument(usize),
    /// A result of the program, with its leading vectorized axes. The results are numbered in order.
    Result(usize, NamedAxes),
}

impl Output {
    fn is_result(&self) -> bool {
        match self {
            Output::Argument(_) => false,
            Output::Result(..) => true,
        }
    }

    fn is_argument(&self, position: usize) -> bool {
        match self {
            Output::Argument(at) => *at == position,
            Output::Result(..) => false,
        }
    }
}

/// For each output, the argument that it is, or None for a computed output. The list is empty where every output is
/// computed.
type PassedArguments<'py> = Vec<Option<Bound<'py, PyAny>>>;

/// A traced and compiled program.
pub(super) struct Program {
    executable: Arc<dyn Executable>,
    pub(super) captures: Arc<[Capture]>,
    outputs: Vec<Output>,
    tree: Tree,
    /// The leaves that are numbers which the program takes in further dtypes, in the order of the inputs for them.
    further: Vec<usize>,
    /// The host functions that the program shows values to.
    slots: Table,
    /// Whether nothing is computed: the results are arguments, and there are no effects.
    is_trivial: bool,
    /// Whether the inputs are exactly the leaves of a call and constants, all of them are used, and every output is
    /// computed. Such a program can run on borrowed tensors.
    has_fast_path: bool,
    /// The types of the computed results.
    types: Vec<TensorType>,
    /// The key by which a compiler written in Python knows the function.
    pub(super) function_key: Option<Py<PyAny>>,
    runs: AtomicU64,
    /// The duration of the latest timed run.
    nanos: AtomicU64,
}

/// Increments a counter and returns its previous value. The interpreter lock is held, so that no other thread counts
/// at the same time.
pub(super) fn count_one(_locked: Python<'_>, counter: &AtomicU64) -> u64 {
    let before = counter.load(Ordering::Relaxed);
    counter.store(before + 1, Ordering::Relaxed);
    before
}

/// A result as a Python object.
fn result_object<'py>(py: Python<'py>, tensor: Tensor, lanes: &NamedAxes) -> PyResult<Bound<'py, PyAny>> {
    trace_allocations::note_ref(&tensor);
    Ok(Bound::new(py, PyTensor::new(tensor.with_vectorized(lanes)))?.into_any())
}

impl Program {
    /// Traces a function on types and compiles the trace.
    pub(super) fn compile<'py>(
        py: Python<'py>,
        source: &TraceSource,
        flat: &Flat<'py>,
        compiler: &Choice,
        (checks, mode): (Checks, CompileMode),
        donate: &[usize],
    ) -> Fallible<Program> {
        let program = match compiler {
            Choice::BuiltIn(found) => {
                let compiler_impl = match mode {
                    CompileMode::Now => found.compiler.clone(),
                    CompileMode::Background => {
                        background::compiler(&found.compiler, function_name(source.fun.bind(py)))
                    }
                };
                Program::built_in(py, source, flat, &compiler_impl, (compiler, checks), donate)
            }
            Choice::Python(_) => {
                donate::refuse(compiler, donate)?;
                background::refuse(compiler, mode)?;
                let key = Py::new(py, FunctionKey::new(source.fun.bind(py)))?.into_any();
                Program::python(py, source, flat, compiler, checks, key, None).map(|(program, _)| program)
            }
        };
        trace_allocations::forget();
        program
    }

    /// As [`Program::compile`], for a compiler written in Python. The compiler may run the program at the same time;
    /// then the results of that first run are returned, too.
    pub(super) fn compile_and_run<'py>(
        py: Python<'py>,
        source: &TraceSource,
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
        let output = Program::python(py, source, flat, compiler, checks, key, Some(hooks));
        trace_allocations::forget();
        output
    }

    fn built_in<'py>(
        py: Python<'py>,
        source: &TraceSource,
        flat: &Flat<'py>,
        compiler_impl: &Arc<dyn Compiler>,
        (compiler, checks): (&Choice, Checks),
        donate: &[usize],
    ) -> Fallible<Program> {
        let models = source.models(&flat.leaves)?;
        let traced = TracedFunction::of(py, source, &flat.tree, &models, compiler)?;
        let region = traced.region.clone();
        // An argument that is returned unchanged lives on, so that nothing may reuse its memory.
        let is_returned = |position: usize| traced.outputs.iter().any(|output| output.is_argument(position));
        let donate: SmallVec<[usize; 8]> =
            donate.iter().copied().filter(|&position| !is_returned(position)).collect();
        let executable = gil::detach(py, || compiler_impl.compile_donating(region, checks, &donate))?;
        Ok(Program::new(traced, executable))
    }

    fn new(traced: TracedFunction, executable: Arc<dyn Executable>) -> Program {
        let TracedFunction { region, captures, outputs, tree, slots, further, .. } = traced;
        Program { further, ..Program::of_parts(&region, executable, (captures, slots), outputs, tree) }
    }

    /// The program with the leaves for its inputs in further dtypes.
    pub(super) fn with_further(self, further: Vec<usize>) -> Program {
        Program { further, ..self }
    }

    /// The leaves that are numbers which the program takes in further dtypes.
    pub(super) fn further(&self) -> &[usize] {
        &self.further
    }

    /// A program from parts that exist already.
    pub(super) fn of_parts(
        region: &Region,
        executable: Arc<dyn Executable>,
        (captures, slots): (Arc<[Capture]>, Table),
        outputs: Vec<Output>,
        tree: Tree,
    ) -> Program {
        let has_results = outputs.iter().any(Output::is_result);
        let is_trivial = !has_results && !region.has_effects();
        let uses_all = (0..region.inputs().len()).all(|input| executable.uses(input));
        Program {
            is_trivial,
            has_fast_path: !is_trivial
                && uses_all
                && captures.iter().all(|capture| capture.constant().is_some())
                && outputs.iter().all(Output::is_result),
            types: region.result_types().cloned().collect(),
            executable,
            captures,
            outputs,
            tree,
            further: Vec::new(),
            slots,
            function_key: None,
            runs: AtomicU64::new(0),
            nanos: AtomicU64::new(u64::MAX),
        }
    }

    fn python<'py>(
        py: Python<'py>,
        source: &TraceSource,
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
        let output = CompilerCall { source, flat, compiler: custom, key: &key, run }.run(py)?;
        let traced = output.traced;
        let program = Program::new(traced, output.executable);
        Ok((Program { function_key: Some(key), slots: output.slots, ..program }, output.first))
    }

    /// The values of the captures. None where a capture is missing or no longer has the type that was compiled.
    pub(super) fn read_captures(
        &self,
        fun: &Bound<'_, PyAny>,
        arguments: &Tree,
        borrowed: &mut Borrowed,
    ) -> Fallible<Option<Vec<Tensor>>> {
        self.limit(borrowed);
        guards::read_captures(&self.captures, fun, arguments, borrowed)
    }

    /// Programs of a compiler written in Python may keep the tensors that they receive, so that these must not be
    /// borrowed.
    fn limit(&self, borrowed: &mut Borrowed) {
        if self.function_key.is_some() {
            borrowed.copy_from_now_on();
        }
    }

    /// The input tensors of a run, and the outputs that are arguments.
    fn gather<'py>(
        &self,
        py: Python<'py>,
        leaves: &Leaves<'py>,
        captures: Vec<Tensor>,
        borrowed: &mut Borrowed,
    ) -> Fallible<(Vec<Tensor>, PassedArguments<'py>)> {
        self.limit(borrowed);
        let mut tensors = Vec::with_capacity(leaves.len() + self.further.len() + captures.len());
        let inputs = self.executable.program().inputs();
        for (position, leaf) in leaves.iter().enumerate() {
            let is_used = self.executable.uses(position);
            // An unused leaf is not transferred to where the program runs. A tensor is validated nevertheless.
            let tensor = match is_used || leaf.is_instance_of::<PyTensor>() {
                true => borrowed.input(leaf, position, inputs[position].dtype)?,
                false => leaf::model("jit", leaf)?,
            };
            tensors.push(if is_used { tensor } else { Tensor::template(tensor.whole().clone()) });
        }
        for (&position, ty) in self.further.iter().zip(&inputs[leaves.len()..]) {
            tensors.push(borrowed.input(&leaves[position], position, ty.dtype)?);
        }
        tensors.extend(captures);
        if self.outputs.iter().all(Output::is_result) {
            return Ok((tensors, PassedArguments::new()));
        }
        // A tensor that is returned unchanged keeps its buffer. A number or an array becomes a tensor.
        let mut passed = PassedArguments::with_capacity(self.outputs.len());
        for output in &self.outputs {
            passed.push(match output {
                Output::Argument(position) if leaves[*position].is_exact_instance_of::<PyTensor>() => {
                    Some(leaves[*position].clone())
                }
                Output::Argument(position) => {
                    let tensor = borrowed.tensor(&leaves[*position])?;
                    let tensor = trace_allocations::note(borrowed.own(tensor)?);
                    Some(Bound::new(py, PyTensor::new(tensor))?.into_any())
                }
                Output::Result(..) => None,
            });
        }
        Ok((tensors, passed))
    }

    /// Puts the results into their container.
    fn result_container<'py>(
        &self,
        py: Python<'py>,
        results: impl IntoIterator<Item = Tensor>,
        passed: PassedArguments<'py>,
        borrowed: &mut Borrowed,
    ) -> Fallible<Bound<'py, PyAny>> {
        // Each result is one leaf. The results are in this order.
        let mut results = results.into_iter();
        let (mut passed, mut wrapped) = (passed.into_iter(), Leaves::new());
        for output in &self.outputs {
            wrapped.push(match (output, passed.next().flatten()) {
                (_, Some(passed)) => passed,
                (Output::Result(_, lanes), None) => {
                    let mut tensor = results.next().expect("each result is one leaf");
                    if borrowed.is_any() {
                        tensor = borrowed.own(tensor)?;
                    }
                    result_object(py, tensor, lanes)?
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
        borrowed: &Borrowed,
        hooks: Option<&Py<PyDict>>,
    ) -> Fallible<Vec<Tensor>> {
        if self.is_trivial {
            return Ok(Vec::new());
        }
        let common = {
            let operands: SmallVec<[&Tensor; 8]> = tensors.iter().collect();
            common_backend(&operands).map(Cow::into_owned)
        };
        let backend = match common {
            Some(backend) => backend,
            None => move_to_common_backend("run", &mut tensors, &backends::default()?)?,
        };
        self.timed(py, borrowed, hooks, |hooks| self.executable.run(&backend, tensors, hooks))
    }

    /// Runs, and measures the duration of some runs.
    fn timed<T: Send>(
        &self,
        py: Python<'_>,
        borrowed: &Borrowed,
        hooks: Option<&Py<PyDict>>,
        run: impl FnOnce(&hooks::RunHooks<'_>) -> defn_core::Result<T> + Send,
    ) -> Fallible<T> {
        let _showing = self.showing(py, hooks)?;
        // Reading the clock costs as much as a small operation, so that only some runs are timed.
        let runs = count_one(py, &self.runs);
        let start = (runs < TIMED_RUNS || runs.is_multiple_of(TIMED_RUNS)).then(Instant::now);
        let long = self.nanos.load(Ordering::Relaxed) > RELEASE_NANOS;
        let results = self.with_hooks(py, borrowed, hooks, long, run)?;
        if let Some(start) = start {
            let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.nanos.store(nanos, Ordering::Relaxed);
        }
        Ok(results)
    }

    /// Lets programs of a compiler written in Python call the host functions themselves.
    fn showing(&self, py: Python<'_>, hooks: Option<&Py<PyDict>>) -> Fallible<Option<hooks::CurrentRun>> {
        let begin = || hooks::CurrentRun::begin(py, Arc::new(Mutex::new(self.slots.clone())), hooks);
        Ok(self.function_key.as_ref().map(|_| begin()).transpose()?)
    }

    /// Runs with the host functions. A `long` run releases the interpreter lock.
    fn with_hooks<T: Send>(
        &self,
        py: Python<'_>,
        borrowed: &Borrowed,
        named: Option<&Py<PyDict>>,
        long: bool,
        run: impl FnOnce(&hooks::RunHooks<'_>) -> defn_core::Result<T> + Send,
    ) -> Fallible<T> {
        let run = || {
            let hooks = hooks::RunHooks::new(&self.slots, named, borrowed);
            let results = run(&hooks);
            (results, hooks.into_fault())
        };
        let (results, fault) = if long { gil::detach(py, run) } else { run() };
        match fault {
            Some(fault) => Err(fault),
            None => Ok(results?),
        }
    }

    /// The leaves of the result, and their structure.
    pub(super) fn results(&self) -> (&[Output], &Tree) {
        (&self.outputs, &self.tree)
    }

    /// Whether the program shows values to the host, or asks the host for values.
    pub(super) fn has_slots(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Shows the garbage collector the objects that the program holds.
    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.tree.traverse(visit)?;
        visit.call(&self.function_key)?;
        hooks::traverse(&self.slots, visit)
    }

    /// The host functions that runs call.
    pub(super) fn host_functions<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
        hooks::functions(py, &self.slots)
    }

    /// Whether the program holds host functions that only the traced function has.
    pub(super) fn is_bound_to_function(&self, py: Python<'_>) -> bool {
        hooks::is_bound_to_function(py, &self.slots)
    }

    /// The executable, whose graph can be inspected.
    pub(super) fn executable(&self) -> &Arc<dyn Executable> {
        &self.executable
    }
}
