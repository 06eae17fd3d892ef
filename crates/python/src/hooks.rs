//! Python objects that a program needs while it runs: host functions that receive values or compute them, and
//! the tags of blocks.
//!
//! A graph holds the number of a slot. While a definition is traced, its slots are collected in a table,
//! which its program keeps. Eager control flow has its own table while it runs. A hook's function is the one
//! that the caller passes for its name, else the one given in the program, else none.

mod weak_table;

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use defn_core::backend::{Backend, Hooks};
use defn_core::builder::BuildControl;
use defn_core::collected::{Collecting, Lists};
use defn_core::op::UserBlockOp;
use defn_core::vectorize::NamedAxes;
use defn_core::{DType, Error, ErrorKind, Name, Tensor, TensorType, trace};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::calls::{BlockTag, HostCall};
use crate::containers::Tree;
use crate::control::{container, tensors};
use crate::convert;
use crate::error::{Fallible, Fault, guard};
use crate::gil;
use crate::jit::{Borrowed, wrap};
use crate::misuse::Misuse;
use crate::ops;
use crate::pybackend;
use crate::recursion;
use crate::tensor::PyTensor;
pub(crate) use weak_table::WeakTable;

/// The number of polls before a run first reads the clock.
const POLLS_BEFORE_CLOCK: u32 = 16;

/// How often a run checks for signals.
const SIGNAL_PERIOD: Duration = Duration::from_millis(50);

/// An entry of a table.
#[expect(clippy::large_enum_variant, reason = "each is behind a pointer of its own")]
pub(crate) enum Slot {
    /// A function that receives values.
    Hook(HookSlot),
    /// A function that computes values.
    Call(HostCall),
    /// The tag of a block.
    Tag(BlockTag),
}

impl Slot {
    /// The function that was given in the program.
    fn fun(&self) -> Option<&Py<PyAny>> {
        match self {
            Slot::Hook(shown) => shown.fun.as_ref(),
            Slot::Call(call) => Some(&call.fun),
            Slot::Tag(_) => None,
        }
    }
}

/// A hook: a function that receives values.
pub(crate) struct HookSlot {
    name: Option<Py<PyString>>,
    fun: Option<Py<PyAny>>,
    /// The structure of the values, and the vectorized axes of the tensors.
    tree: Tree,
    lanes: Vec<NamedAxes>,
    /// The types of the tensors, with their vectorized axes first.
    types: Vec<TensorType>,
}

impl HookSlot {
    /// A hook that receives one scalar.
    pub(crate) fn scalar(fun: Bound<'_, PyAny>, dtype: DType) -> HookSlot {
        let (fun, types) = (Some(fun.unbind()), vec![TensorType::scalar(dtype)]);
        HookSlot { name: None, fun, tree: Tree::leaf(), lanes: vec![NamedAxes::new()], types }
    }

    /// Calls the function of the slot with the values of a run.
    fn call(&self, py: Python<'_>, named: Option<&Py<PyDict>>, values: &[Tensor]) -> Fallible<()> {
        let by_name = match (named, &self.name) {
            (Some(named), Some(name)) => named.bind(py).get_item(name)?,
            (None, _) | (_, None) => None,
        };
        let Some(fun) = by_name.or_else(|| self.fun.as_ref().map(|fun| fun.bind(py).clone())) else {
            return Ok(());
        };
        // The function may run the program that called it.
        let _call = recursion::enter("hook")?;
        let shown = values.iter().zip(&self.lanes);
        let tensors = shown.map(|(value, lanes)| value.clone().with_vectorized(lanes));
        let mut leaves = wrap(py, tensors)?.into_iter();
        fun.call1((self.tree.unflatten(py, &mut leaves)?,))?;
        Ok(())
    }
}

/// The slots of one program.
pub(crate) type Table = Vec<Arc<Slot>>;

thread_local! {
    static TABLES: Lists<Arc<Slot>> = const { Lists::new() };
    static EAGER_FAULT: RefCell<Option<Fault>> = const { RefCell::new(None) };
    static EAGER_PULSE: SignalTimer = const { SignalTimer::new() };
}

/// Adds an entry to this thread's current table, and returns its index; `None` without a table.
pub(crate) fn push(slot: Slot) -> Option<usize> {
    TABLES.with(|tables| tables.push(Arc::new(slot)))
}

/// Copies the entries of a graph's table to this thread's current table. That table must be empty, because
/// the graph's nodes refer to slots by number.
pub(crate) fn adopt(table: &Table) -> bool {
    let add = |new: &mut Table| {
        if new.is_empty() {
            new.extend(table.iter().cloned());
            return true;
        }
        table.is_empty()
    };
    TABLES.with(|tables| tables.innermost(add)).unwrap_or(table.is_empty())
}

/// The table that currently collects slots on this thread.
pub(crate) fn collecting() -> Option<WeakTable> {
    TABLES.with(|tables| tables.innermost(|table| WeakTable::of(table)))
}

/// Starts a table that collects the slots created on this thread until it is taken or dropped.
pub(crate) fn collect() -> Collecting<Arc<Slot>> {
    Collecting::begin(&TABLES)
}

/// Runs control flow eagerly, with a table for its hooks. An exception of a hook becomes the error.
pub(crate) fn run_eagerly<T>(body: impl FnOnce() -> Fallible<T>) -> Fallible<T> {
    if trace::depth() > 0 {
        return body();
    }
    let _table = collect();
    EAGER_PULSE.with(SignalTimer::reset);
    let result = body();
    match (EAGER_FAULT.take(), result) {
        (Some(fault), Err(_)) => Err(fault),
        (_, result) => result,
    }
}

/// Whether a function is reachable by its module and qualified name, so that it closes over nothing.
pub(crate) fn is_global(fun: &Bound<'_, PyAny>) -> bool {
    let find = || -> PyResult<bool> {
        let py = fun.py();
        let module: String = fun.getattr(intern!(py, "__module__"))?.extract()?;
        let path: String = fun.getattr(intern!(py, "__qualname__"))?.extract()?;
        let mut at = py.import("sys")?.getattr("modules")?.get_item(module)?;
        for name in path.split('.') {
            at = at.getattr(name)?;
        }
        Ok(at.is(fun))
    };
    find().unwrap_or(false)
}

/// Whether programs with these slots use functions that only the traced function keeps alive.
pub(crate) fn is_bound_to_function(py: Python<'_>, slots: &Table) -> bool {
    slots.iter().any(|slot| slot.fun().is_some_and(|fun| !is_global(fun.bind(py))))
}

/// The functions that were given for slots in the program.
pub(crate) fn functions<'py>(py: Python<'py>, slots: &Table) -> Vec<Bound<'py, PyAny>> {
    slots.iter().filter_map(|slot| Some(slot.fun()?.bind(py).clone())).collect()
}

/// Reports the functions of slots to the garbage collector. A slot with other owners is left out.
pub(crate) fn traverse(slots: &Table, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
    let mut own = slots.iter().filter(|slot| Arc::strong_count(slot) == 1);
    own.try_for_each(|slot| match &**slot {
        Slot::Hook(shown) => shown.fun.as_ref().map_or(Ok(()), |fun| visit.call(fun)),
        Slot::Call(call) => visit.call(&call.fun),
        Slot::Tag(tag) => visit.call(&tag.tag),
    })
}

/// Decides when to check for signals.
#[derive(Default)]
struct SignalTimer {
    polls: Cell<u32>,
    last: Cell<Option<Instant>>,
}

impl SignalTimer {
    const fn new() -> SignalTimer {
        SignalTimer { polls: Cell::new(0), last: Cell::new(None) }
    }

    fn reset(&self) {
        self.polls.set(0);
        self.last.set(None);
    }

    fn is_due(&self) -> bool {
        let polls = self.polls.get();
        self.polls.set(polls.wrapping_add(1));
        // Short programs end before reading the clock is worth its cost.
        if polls < POLLS_BEFORE_CLOCK {
            return false;
        }
        let now = Instant::now();
        let last = self.last.get();
        if last.is_some_and(|last| now.duration_since(last) < SIGNAL_PERIOD) {
            return false;
        }
        self.last.set(Some(now));
        last.is_some()
    }
}

/// The hooks of one run of a program, and its signal checks.
pub(crate) struct RunHooks<'a> {
    slots: &'a Table,
    named: Option<&'a Py<PyDict>>,
    /// The memory that the run borrows from the caller. Host functions receive copies of values in it, since
    /// they may keep them.
    borrowed: &'a Borrowed,
    signal_timer: SignalTimer,
    fault: RefCell<Option<Fault>>,
}

impl<'a> RunHooks<'a> {
    /// A run with the functions that the caller passes by name.
    pub(crate) fn new(
        slots: &'a Table,
        named: Option<&'a Py<PyDict>>,
        borrowed: &'a Borrowed,
    ) -> RunHooks<'a> {
        RunHooks { slots, named, borrowed, signal_timer: SignalTimer::default(), fault: RefCell::new(None) }
    }

    /// The error of a host function, or the interruption.
    pub(crate) fn into_fault(self) -> Option<Fault> {
        self.fault.into_inner()
    }

    fn stop(&self, fault: Fault) -> Error {
        self.fault.replace(Some(fault));
        interrupted()
    }
}

impl Hooks for RunHooks<'_> {
    fn call(&self, slot: usize, values: &[Tensor]) -> defn_core::Result<()> {
        let Some(Slot::Hook(shown)) = self.slots.get(slot).map(|slot| &**slot) else { return Ok(()) };
        gil::attach(|py| shown.call(py, self.named, &self.borrowed.own_all(values)?))
            .map_err(|fault| self.stop(fault))
    }

    fn compute(
        &self,
        slot: usize,
        values: &[Tensor],
        outputs: &[TensorType],
    ) -> defn_core::Result<Vec<Tensor>> {
        let Some(Slot::Call(call)) = self.slots.get(slot).map(|slot| &**slot) else {
            return Err(ErrorKind::NoHostFunction { slot }.into());
        };
        gil::attach(|py| call.compute(py, &self.borrowed.own_all(values)?, outputs))
            .map_err(|fault| self.stop(fault))
    }

    fn native(
        &self,
        block: &UserBlockOp,
        backend: &Arc<dyn Backend>,
        values: &[Tensor],
        outputs: &[TensorType],
    ) -> defn_core::Result<Option<Vec<Tensor>>> {
        gil::attach(|py| {
            let values = &self.borrowed.own_all(values)?;
            let named = self.named.map(|named| named.clone_ref(py));
            pybackend::native(py, backend, block, self.slots, named, values, outputs)
        })
        .map_err(|fault| self.stop(fault))
    }

    fn poll(&self) -> defn_core::Result<()> {
        if !self.signal_timer.is_due() {
            return Ok(());
        }
        gil::attach(|py| py.check_signals()).map_err(|error| self.stop(Fault::Python(error)))
    }
}

/// The host functions of the current run of a program that a Python compiler produced. It is called with the
/// number of a slot and the values for its function.
#[pyclass(frozen, name = "Hooks", module = "defn.compilers")]
pub(crate) struct RunTable {
    slots: SharedTable,
    named: Option<Py<PyDict>>,
}

/// A table that is filled once the definition is traced, and emptied when the run has ended.
pub(crate) type SharedTable = Arc<Mutex<Table>>;

/// Takes the current entries out of a table.
pub(crate) fn take_slots(table: &SharedTable) -> Table {
    std::mem::take(&mut *table.lock().unwrap_or_else(PoisonError::into_inner))
}

impl RunTable {
    fn table(&self) -> Table {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn slot(&self, slot: usize) -> Option<Arc<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).get(slot).cloned()
    }

    /// Passes values to the function of a slot.
    pub(crate) fn show(&self, py: Python<'_>, slot: usize, values: &[Tensor]) -> Fallible<()> {
        match self.slot(slot).as_deref() {
            Some(Slot::Hook(shown)) => shown.call(py, self.named.as_ref(), values),
            Some(Slot::Call(_) | Slot::Tag(_)) | None => Ok(()),
        }
    }

    /// The results of a slot's function for some values.
    pub(crate) fn compute_tensors(
        &self,
        py: Python<'_>,
        slot: usize,
        values: &[Tensor],
        outputs: &[TensorType],
    ) -> Fallible<Vec<Tensor>> {
        match self.slot(slot).as_deref() {
            Some(Slot::Call(call)) => call.compute(py, values, outputs),
            Some(Slot::Hook(_) | Slot::Tag(_)) | None => Err(ErrorKind::NoHostFunction { slot }.into()),
        }
    }

    /// The results of a user-defined block on a backend with a native implementation of it.
    pub(crate) fn native(
        &self,
        py: Python<'_>,
        block: &UserBlockOp,
        backend: &Arc<dyn Backend>,
        values: &[Tensor],
        outputs: &[TensorType],
    ) -> Fallible<Option<Vec<Tensor>>> {
        let named = self.named.as_ref().map(|named| named.clone_ref(py));
        pybackend::native(py, backend, block, &self.table(), named, values, outputs)
    }
}

#[pymethods]
impl RunTable {
    /// Calls the function of a hook, if any, with a container of the values in the structure that the hook
    /// was given.
    fn __call__(&self, py: Python<'_>, slot: usize, values: &Bound<'_, PyAny>) -> Fallible<()> {
        guard(|| {
            let values = values.try_iter()?.collect::<PyResult<Vec<_>>>()?;
            let found = self.slot(slot);
            let Some(Slot::Hook(hook)) = found.as_deref() else {
                return Ok(());
            };
            if values.len() != hook.types.len() {
                let (op, given, expected) = ("hook", values.len(), hook.types.len());
                return Err(Misuse::LeafCount { op, given, expected }.into());
            }
            let mut tensors = Vec::with_capacity(values.len());
            for (value, ty) in values.iter().zip(&hook.types) {
                let tensor = convert::tensor("hook", value)?.flat();
                let buffer = tensor.require_buffer("hook", "show values while the program runs")?;
                if tensor.ty().dtype != ty.dtype || tensor.ty().shape.sizes() != ty.shape.sizes() {
                    let (left, right) = (tensor.ty().clone(), ty.clone());
                    return Err(ErrorKind::ShapesDiffer { op: "hook", left, right }.into());
                }
                tensors.push(Tensor::concrete(ty.clone(), buffer.clone()));
            }
            self.show(py, slot, &tensors)
        })
    }

    /// The results of the function of a ``runtime_call``: one tensor for each template.
    fn compute<'py>(
        &self,
        py: Python<'py>,
        slot: usize,
        values: &Bound<'py, PyAny>,
        outputs: Vec<Bound<'py, PyTensor>>,
    ) -> Fallible<Bound<'py, PyList>> {
        guard(|| {
            let types: Vec<TensorType> = outputs.iter().map(|out| out.get().tensor.ty().clone()).collect();
            let mut tensors = Vec::new();
            for value in values.try_iter()? {
                tensors.push(convert::tensor("runtime_call", &value?)?);
            }
            let computed = self.compute_tensors(py, slot, &tensors, &types)?;
            Ok(PyList::new(py, wrap(py, computed.into_iter())?)?)
        })
    }
}

thread_local! {
    static RUNS: RefCell<Vec<Py<RunTable>>> = const { RefCell::new(Vec::new()) };
}

/// While this guard lives, its table is that of the current run.
pub(crate) struct CurrentRun(());

impl CurrentRun {
    /// Sets the hooks that a Python compiler's program calls on this thread, until the result is dropped.
    pub(crate) fn begin(
        py: Python<'_>,
        slots: SharedTable,
        named: Option<&Py<PyDict>>,
    ) -> PyResult<CurrentRun> {
        let named = named.map(|named| named.clone_ref(py));
        let table = Py::new(py, RunTable { slots, named })?;
        RUNS.with_borrow_mut(|runs| runs.push(table));
        Ok(CurrentRun(()))
    }
}

impl Drop for CurrentRun {
    fn drop(&mut self) {
        let ended = RUNS.with_borrow_mut(Vec::pop);
        // Python code that kept the table finds it empty, and keeps nothing of the definition alive.
        let table = ended.map(|ended| take_slots(&ended.get().slots));
        drop(table);
    }
}

/// The hooks of the current run on this thread.
pub(crate) fn current_run(py: Python<'_>) -> PyResult<Option<Bound<'_, RunTable>>> {
    Ok(RUNS.with_borrow(|runs| runs.last().map(|table| table.bind(py).clone())))
}

/// The hooks of the current run.
#[pyfunction]
fn run_hooks(py: Python<'_>) -> Fallible<Bound<'_, RunTable>> {
    match current_run(py)? {
        Some(table) => Ok(table),
        None => Err(Misuse::NoRun.into()),
    }
}

/// The hooks of eager control flow; their slots are in this thread's innermost table.
pub(crate) struct EagerHooks;

/// The hooks of eager ops.
pub(crate) static EAGER_HOOKS: EagerHooks = EagerHooks;

impl Hooks for EagerHooks {
    fn call(&self, slot: usize, values: &[Tensor]) -> defn_core::Result<()> {
        let slot = eager_slot(slot);
        let Some(Slot::Hook(shown)) = slot.as_deref() else { return Ok(()) };
        gil::attach(|py| shown.call(py, None, values)).map_err(stop_eager)
    }

    fn compute(
        &self,
        slot: usize,
        values: &[Tensor],
        outputs: &[TensorType],
    ) -> defn_core::Result<Vec<Tensor>> {
        let found = eager_slot(slot);
        let Some(Slot::Call(call)) = found.as_deref() else {
            return Err(ErrorKind::NoHostFunction { slot }.into());
        };
        gil::attach(|py| call.compute(py, values, outputs)).map_err(stop_eager)
    }

    fn native(
        &self,
        block: &UserBlockOp,
        backend: &Arc<dyn Backend>,
        values: &[Tensor],
        outputs: &[TensorType],
    ) -> defn_core::Result<Option<Vec<Tensor>>> {
        let table = TABLES.with(|tables| tables.innermost(|table| table.clone())).unwrap_or_default();
        gil::attach(|py| pybackend::native(py, backend, block, &table, None, values, outputs))
            .map_err(stop_eager)
    }

    fn poll(&self) -> defn_core::Result<()> {
        if !EAGER_PULSE.with(SignalTimer::is_due) {
            return Ok(());
        }
        gil::attach(|py| {
            py.check_signals()?;
            // Lets other threads take the GIL.
            py.detach(|| ());
            Ok(())
        })
        .map_err(|error| stop_eager(Fault::Python(error)))
    }
}

/// An entry of the innermost table of this thread.
fn eager_slot(slot: usize) -> Option<Arc<Slot>> {
    TABLES.with(|tables| tables.innermost(|table| table.get(slot).cloned())).flatten()
}

fn stop_eager(fault: Fault) -> Error {
    EAGER_FAULT.replace(Some(fault));
    interrupted()
}

/// The error that stops a run after a Python exception. The user sees the exception instead.
pub(crate) fn interrupted() -> Error {
    let (backend, why) = ("python".to_owned(), "a Python exception was raised".to_owned());
    ErrorKind::BackendRefused { op: "run", backend, why }.into()
}

/// Passes a value to a host function when the program runs, and returns the value.
#[pyfunction]
#[pyo3(signature = (value, name = None, fun = None))]
fn hook<'py>(
    value: &Bound<'py, PyAny>,
    name: Option<&Bound<'py, PyString>>,
    fun: Option<&Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyAny>> {
    guard(|| {
        let py = value.py();
        let (values, tree) = tensors("hook", value)?;
        let result = container(py, &tree, &values)?;
        if trace::depth() == 0 {
            if let Some(fun) = fun {
                fun.call1((&result,))?;
            }
            return Ok(result);
        }
        let text: Option<Name> = name.map(|name| name.to_str()).transpose()?.map(Name::from);
        let shown = HookSlot {
            name: name.map(|name| name.clone().unbind()),
            fun: fun.map(|fun| fun.clone().unbind()),
            lanes: values.iter().map(|value| value.vectorized_axes().into()).collect(),
            types: values.iter().map(|value| value.whole().clone()).collect(),
            tree: tree.clone_ref(py),
        };
        let Some(index) = push(Slot::Hook(shown)) else {
            // If no table collects, the graph is only inspected and never runs.
            return Ok(result);
        };
        let passed = ops::with(|ops| ops.hook(index, text, &values))?;
        container(py, &tree, &passed)
    })
}

/// Host functions by name, from the options of a definition.
pub(crate) fn named(op: &'static str, hooks: Option<&Bound<'_, PyAny>>) -> Fallible<Option<Py<PyDict>>> {
    let Some(hooks) = hooks.filter(|hooks| !hooks.is_none()) else { return Ok(None) };
    let Ok(functions) = hooks.cast::<PyDict>() else {
        return Err(convert::bad(op, "hooks", hooks, "a dict from names to functions")?);
    };
    for (name, fun) in functions.iter() {
        if !name.is_instance_of::<PyString>() || !fun.is_callable() {
            let (option, got) = ("hooks".to_owned(), convert::text(functions)?);
            let required = "a dict from names to functions".to_owned();
            return Err(Misuse::OptionValue { op, option, got, required }.into());
        }
    }
    Ok(Some(functions.copy()?.unbind()))
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<RunTable>()?;
    module.add_function(wrap_pyfunction!(run_hooks, module)?)?;
    module.add_function(wrap_pyfunction!(hook, module)?)
}
