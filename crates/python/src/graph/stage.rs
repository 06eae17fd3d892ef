//! Stages as Python objects: the core's stage with its tensors and functions.
//!
//! A stage holds its captured tensors, the table of host functions, and, for the last stage, the container
//! of the results. A pickled stage is the core's text of it, the captured tensors, a container of
//! templates, and the vectorized axes.

use std::sync::{Arc, Mutex, PoisonError};

use defn_core::backend::Checks;
use defn_core::region::Region;
use defn_core::stage::{Source, Stage, StageError};
use defn_core::trace::Trace;
use defn_core::vectorize::NamedAxes;
use defn_core::{ErrorKind, Name, Tensor, TensorType, print};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};

use crate::compilers::Choice;
use crate::containers::{self, Flat, Mode, Tree};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::hooks::{self, Table, WeakTable};
use crate::jit::staged::Staged;
use crate::jit::wrap;
use crate::misuse::Misuse;
use crate::tensor::PyTensor;

/// The number of compiled programs that a stage caches.
const MAX_CACHED_PROGRAMS: usize = 16;

/// A cached program of a stage, with its compiler and checks.
type CachedProgram = (Choice, Checks, Arc<Staged>);

/// One part of a graph that was split.
///
/// ``expr`` holds traced tensors: a tuple of the values that later stages use, and for the last stage the
/// container that was split. Its parameters come from ``arguments``, one each, in order: the input ``index``
/// of the whole graph where the stage id is ``None``, else the output ``index`` of that stage. Tensors that
/// the function captured are stored with the stages that use them, as ``captures``.
///
/// A stage can be pickled. If it is read with the same version of the package, the copy has the same ``id``,
/// and can be compiled and run.
#[pyclass(frozen, weakref, name = "Stage", module = "defn.graph")]
pub(crate) struct PyStage {
    pub(super) stage: Stage,
    /// A tensor for each capture.
    pub(super) captures: Vec<Tensor>,
    table: Table,
    /// For the last stage: the container of the results, and the vectorized axes of each.
    results: Option<(Tree, Vec<NamedAxes>)>,
    /// The vectorized axes of each argument of the whole graph; empty if they are not known.
    arguments: Arc<[NamedAxes]>,
    /// The positions of plain-number arguments that are passed again, as further parameters in other dtypes.
    further: Arc<[usize]>,
    expr: PyOnceLock<Py<PyAny>>,
    cached_programs: Mutex<Vec<CachedProgram>>,
}

impl PyStage {
    pub(super) fn new(
        stage: Stage,
        captures: Vec<Tensor>,
        table: Table,
        results: Option<(Tree, Vec<NamedAxes>)>,
        (arguments, further): (Arc<[NamedAxes]>, Arc<[usize]>),
    ) -> PyStage {
        PyStage {
            stage,
            captures,
            table,
            results,
            arguments,
            further,
            expr: PyOnceLock::new(),
            cached_programs: Mutex::default(),
        }
    }

    /// The position of the stage, for messages.
    pub(super) fn position_text(&self) -> String {
        format!("stage {} of {}", self.stage.position(), self.stage.count())
    }

    /// The vectorized axes of an argument of the whole graph, if they are known.
    pub(super) fn argument_lanes(&self, position: usize) -> Option<&[(Name, usize)]> {
        self.arguments.get(position).map(|lanes| &**lanes)
    }

    /// The number arguments that are passed again in other dtypes, for a call with `count` arguments.
    ///
    /// # Errors
    /// Too few arguments.
    pub(super) fn further(&self, count: usize) -> Fallible<&[usize]> {
        if self.further.iter().all(|&position| position < count) {
            return Ok(&self.further);
        }
        let expected = self.stage.arguments().len() - self.further.len();
        Err(StageError::InputCount { op: "run", given: count, expected }.into())
    }

    /// The types of the parameters, without captures.
    pub(super) fn parameters(&self) -> &[TensorType] {
        let region = self.stage.region();
        &region.inputs()[..region.parameter_count()]
    }

    /// The container of the whole graph's results; a tuple for a stage that is not the last.
    ///
    /// # Errors
    /// A wrong number of tensors.
    pub(super) fn rebuild<'py>(&self, py: Python<'py>, tensors: Vec<Tensor>) -> Fallible<Bound<'py, PyAny>> {
        let Some((tree, lanes)) = &self.results else {
            return Ok(PyTuple::new(py, wrap(py, tensors.into_iter())?)?.into_any());
        };
        if tensors.len() != lanes.len() {
            let (given, expected) = (tensors.len(), lanes.len());
            return Err(Misuse::LeafCount { op: "run", given, expected }.into());
        }
        let tensors = tensors.into_iter().zip(lanes);
        let tensors = tensors.map(|(tensor, lanes)| tensor.with_vectorized(lanes));
        tree.unflatten(py, &mut wrap(py, tensors)?.into_iter())
    }

    /// The program for a compiler: a cached one, or a new one.
    pub(super) fn staged(&self, py: Python<'_>, choice: &Choice, checks: Checks) -> Fallible<Arc<Staged>> {
        // Comparing options may run Python code, which must not happen under the lock.
        let cached_programs: Vec<CachedProgram> = self.lock(|cached_programs| cached_programs.clone());
        for (other, with, staged) in &cached_programs {
            if *with == checks && choice.is_same(py, other)? {
                return Ok(staged.clone());
            }
        }
        let region = self.stage.region();
        let staged =
            Arc::new(Staged::compile(py, self.position_text(), region, &self.table, choice, checks)?);
        let entry = (choice.clone(), checks, staged.clone());
        let oldest = self.lock(|cached_programs| {
            cached_programs.push(entry);
            (cached_programs.len() > MAX_CACHED_PROGRAMS).then(|| cached_programs.remove(0))
        });
        drop(oldest);
        Ok(staged)
    }

    fn lock<T>(&self, body: impl FnOnce(&mut Vec<CachedProgram>) -> T) -> T {
        body(&mut self.cached_programs.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A tuple of templates, one for each type.
fn templates<'py>(py: Python<'py>, types: impl Iterator<Item = TensorType>) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, wrap(py, types.map(Tensor::template))?)
}

#[pymethods]
impl PyStage {
    /// A text that is unique to this stage, among all splits and all graphs.
    #[getter]
    fn id(&self) -> String {
        id_text(self.stage.id())
    }

    /// The position of the stage in its split.
    #[getter]
    fn position(&self) -> usize {
        self.stage.position()
    }

    /// The number of stages in the split.
    #[getter]
    fn count(&self) -> usize {
        self.stage.count()
    }

    /// The results of the stage, as traced tensors.
    #[getter]
    fn expr<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyAny>> {
        guard(|| {
            if let Some(expr) = self.expr.get(py) {
                return Ok(expr.bind(py).clone());
            }
            let region = self.stage.region();
            let trace = Trace::ended(region.clone(), self.captures.clone());
            trace.set_host(Arc::new(WeakTable::keeping(self.table.clone())));
            let tensors = region
                .results()
                .iter()
                .map(|&value| Tensor::traced(region.graph().ty(value).clone(), trace.clone(), value));
            let expr = self.rebuild(py, tensors.collect())?.unbind();
            Ok(self.expr.get_or_init(py, || expr).bind(py).clone())
        })
    }

    /// The source of each parameter.
    #[getter]
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let arguments = PyList::empty(py);
        for source in self.stage.sources() {
            let from = match source {
                Source::Argument(index) => (None, *index),
                Source::Output { stage, output } => (Some(id_text(self.stage.id_at(*stage))), *output),
                Source::Capture(_) => continue,
            };
            let entry = PyDict::new(py);
            entry.set_item("source", from)?;
            arguments.append(entry)?;
        }
        Ok(arguments)
    }

    /// For each parameter, the position of the stage whose output it is, or ``None``, and the index.
    #[getter]
    fn sources(&self) -> Vec<(Option<usize>, usize)> {
        let sources = self.stage.sources().iter().filter_map(|source| match source {
            Source::Argument(index) => Some((None, *index)),
            Source::Output { stage, output } => Some((Some(*stage), *output)),
            Source::Capture(_) => None,
        });
        sources.collect()
    }

    /// The captured tensors that the stage uses.
    #[getter]
    fn captures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, wrap(py, self.captures.iter().cloned())?)
    }

    /// Whether running the stage has effects besides its outputs: it passes values to hooks.
    #[getter]
    fn has_effects(&self) -> bool {
        self.stage.region().has_effects()
    }

    /// The types of the parameters, as templates.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        templates(py, self.parameters().iter().cloned())
    }

    /// The types of the outputs, as templates.
    #[getter]
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        templates(py, self.stage.region().result_types().cloned())
    }

    /// The stage as text: its position in the split, and the graph, exact to the bit. The elements of
    /// ``captures`` are left out.
    fn to_text(&self) -> String {
        self.stage.to_text()
    }

    /// The stage of a text, with its captured tensors. The last stage of a split returns a tuple.
    #[classmethod]
    #[pyo3(signature = (text, captures = None))]
    fn from_text(
        _class: &Bound<'_, PyType>,
        text: &str,
        captures: Option<&Bound<'_, PyAny>>,
    ) -> Fallible<PyStage> {
        guard(|| read(text, captures, None, (Vec::new(), Vec::new())))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyTuple>> {
        guard(|| {
            if self.stage.region().has_effects() {
                return Err(Misuse::HostStage { stage: self.position_text() }.into());
            }
            let container = match &self.results {
                Some(_) => {
                    let types = self.stage.region().result_types().cloned();
                    self.rebuild(py, types.map(Tensor::template).collect())?
                }
                None => py.None().into_bound(py),
            };
            let again = py.import("defn._core")?.getattr("_stage")?;
            let lanes = |lanes: &NamedAxes| -> Vec<(String, usize)> {
                lanes.iter().map(|(name, size)| (name.to_string(), *size)).collect()
            };
            let arguments: Vec<Vec<(String, usize)>> = self.arguments.iter().map(lanes).collect();
            let (text, captures) = (self.stage.to_text_with_locations(), self.captures(py)?);
            let parts = (text, captures, container, arguments, self.further.to_vec());
            Ok((again, parts).into_pyobject(py)?)
        })
    }

    fn __repr__(&self) -> String {
        let region = self.stage.region();
        let takes: Vec<String> = self.stage.sources().iter().map(Source::to_string).collect();
        let takes = if takes.is_empty() { "nothing".to_owned() } else { takes.join(", ") };
        let text = print::display(region, region.results());
        let lines: Vec<String> = text.lines().map(|line| format!("\n  {line}")).collect();
        format!("Stage<\n  {}, takes {takes}\n{}\n>", self.position_text(), lines.concat())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        hooks::traverse(&self.table, &visit)?;
        if let Some((tree, _)) = &self.results {
            tree.traverse(&visit)?;
        }
        // If another thread holds the lock, the stage is in use, and hence reachable.
        match self.cached_programs.try_lock() {
            Ok(cached_programs) => {
                cached_programs.iter().try_for_each(|(_, _, staged)| match Arc::strong_count(staged) {
                    1 => staged.traverse(&visit),
                    _ => Ok(()),
                })
            }
            Err(_) => Ok(()),
        }
    }
}

/// The captured tensors, which a text leaves out.
///
/// # Errors
/// A wrong number of tensors, and tensors of other types.
pub(super) fn captured(region: &Region, captures: Option<&Bound<'_, PyAny>>) -> Fallible<Vec<Tensor>> {
    let op = "from_text";
    let mut tensors = Vec::with_capacity(region.capture_count());
    if let Some(captures) = captures.filter(|captures| !captures.is_none()) {
        for capture in captures.try_iter()? {
            let tensor = convert::tensor(op, &capture?)?;
            tensor.require_buffer(op, "give a tensor with elements")?;
            tensors.push(tensor.flat());
        }
    }
    let expected = &region.inputs()[region.parameter_count()..];
    if tensors.len() != expected.len() {
        let (given, expected) = (tensors.len(), expected.len());
        return Err(Misuse::CaptureCount { given, expected }.into());
    }
    for (position, (tensor, ty)) in tensors.iter().zip(expected).enumerate() {
        if !ty.is_compatible(tensor.whole()) {
            let argument = format!("captures[{position}]");
            let (got, expected) = (tensor.whole().clone(), ty.clone());
            return Err(StageError::InputType { op, argument, got, expected }.into());
        }
    }
    Ok(tensors)
}

/// A stage from its pickled form or its text.
fn read(
    text: &str,
    captures: Option<&Bound<'_, PyAny>>,
    container: Option<&Bound<'_, PyAny>>,
    (arguments, further): (Vec<Vec<(String, usize)>>, Vec<usize>),
) -> Fallible<PyStage> {
    let op = "from_text";
    let stage = Stage::from_text(text)?;
    let arguments: Arc<[NamedAxes]> = arguments
        .into_iter()
        .map(|lanes| lanes.into_iter().map(|(name, size)| (Name::from(name), size)).collect())
        .collect();
    let lead = |(lanes, ty): (&NamedAxes, &TensorType)| {
        let sizes = ty.shape.sizes();
        lanes.len() <= sizes.len() && lanes.iter().zip(sizes).all(|(lane, size)| lane.1 == *size)
    };
    let types = stage.arguments();
    let is_of_another = arguments.len() != types.len() || !arguments.iter().zip(types).all(lead);
    let own = types.len().checked_sub(further.len());
    let is_behind = own.is_some_and(|own| further.iter().all(|&position| position < own));
    if !arguments.is_empty() && is_of_another || !is_behind {
        let problem = "the vectorized axes are not those of the arguments".to_owned();
        let required = "a stage as it was pickled is required".to_owned();
        return Err(ErrorKind::Malformed { op, problem, required }.into());
    }
    let region = stage.region();
    let tensors = captured(region, captures)?;
    let is_last = stage.position() + 1 == stage.count();
    let results = match container.filter(|container| !container.is_none()) {
        Some(container) => {
            let Flat { leaves, tree, .. } = containers::flatten(op, Mode::State, container)?;
            let lanes = leaves.iter().map(|leaf| {
                Ok(match leaf.cast::<PyTensor>() {
                    Ok(tensor) => NamedAxes::from(tensor.get().tensor.vectorized_axes()),
                    Err(_) => NamedAxes::new(),
                })
            });
            Some((tree, lanes.collect::<Fallible<Vec<_>>>()?))
        }
        None => None,
    };
    if results.as_ref().is_some_and(|(_, lanes)| !is_last || lanes.len() != region.results().len()) {
        let (given, expected) = (results.map_or(0, |(_, lanes)| lanes.len()), region.results().len());
        return Err(Misuse::LeafCount { op, given, expected }.into());
    }
    Ok(PyStage::new(stage, tensors, Table::new(), results, (arguments, further.into())))
}

/// Rebuilds a pickled stage.
#[pyfunction]
#[pyo3(name = "_stage")]
pub(super) fn unpickled(
    text: &str,
    captures: &Bound<'_, PyAny>,
    container: &Bound<'_, PyAny>,
    arguments: Vec<Vec<(String, usize)>>,
    further: Vec<usize>,
) -> Fallible<PyStage> {
    guard(|| read(text, Some(captures), Some(container), (arguments, further)))
}

fn id_text(id: u64) -> String {
    format!("{id:016x}")
}
