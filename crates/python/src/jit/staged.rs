//! Programs of regions for which no Python function is called: the stages of a graph.

use std::sync::Arc;

use defn_core::Tensor;
use defn_core::backend::{Backend, Checks};
use defn_core::builder::BuildControl;
use defn_core::region::Region;
use defn_core::vectorize::NamedAxes;
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::compiled::flatten_arguments;
use super::leaf::{Borrowed, wrap};
use super::program::{Output, Program};
use super::settings::CompileMode;
use super::traced::TraceSource;
use crate::compilers::Choice;
use crate::containers::{self, Leaves, Mode};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::gil;
use crate::hooks::{self, Table};
use crate::misuse::Misuse;
use crate::ops;

/// A compiled region. It takes tensors and returns a tuple of tensors.
pub(crate) struct Staged(Program);

impl Staged {
    /// Compiles a region whose nodes have the numbers of a table's slots. A compiler written in Python receives a
    /// function of the given name that replays the region.
    ///
    /// # Errors
    /// What the compiler raises.
    pub(crate) fn compile(
        py: Python<'_>,
        name: String,
        region: &Arc<Region>,
        table: &Table,
        choice: &Choice,
        checks: Checks,
    ) -> Fallible<Staged> {
        match choice {
            Choice::BuiltIn(found) => {
                let executable = gil::detach(py, || found.compiler.compile(region.clone(), checks))?;
                let outputs: Vec<Output> =
                    (0..region.results().len()).map(|at| Output::Result(at, NamedAxes::new())).collect();
                let blanks = region.result_types().map(|ty| Tensor::template(ty.clone()));
                let blanks = PyTuple::new(py, wrap(py, blanks)?)?;
                let tree = containers::flatten("run", Mode::State, &blanks)?.tree;
                let captures = Arc::from(Vec::new());
                let program = Program::of_parts(region, executable, (captures, table.clone()), outputs, tree);
                Ok(Staged(program))
            }
            Choice::Python(_) => {
                let models = region.inputs().iter().map(|ty| Tensor::template(ty.clone()));
                let flat = flatten_arguments(&PyTuple::new(py, wrap(py, models)?)?)?;
                let replay = Replay { name, region: region.clone(), table: table.clone() };
                let replay = Bound::new(py, replay)?;
                let called = replay.clone().unbind();
                let call = move |args: &Bound<'_, PyTuple>, _: &Bound<'_, PyDict>| {
                    Ok(called.get().__call__(args)?.into_any().unbind())
                };
                let source = TraceSource::new("run", replay.as_any(), Arc::new(call));
                Ok(Staged(Program::compile(py, &source, &flat, choice, (checks, CompileMode::Now), &[])?))
            }
        }
    }

    /// Runs on a tensor for each input. The tensors are on the given backend. Without one, they are brought to a
    /// common backend.
    ///
    /// # Errors
    /// What the run raises.
    pub(crate) fn run<'py>(
        &self,
        py: Python<'py>,
        leaves: &Leaves<'py>,
        backend: Option<&Arc<dyn Backend>>,
        hooks: Option<&Py<PyDict>>,
    ) -> Fallible<Bound<'py, PyTuple>> {
        let results = match backend {
            Some(backend) => self.0.run_at(py, backend, leaves, hooks)?,
            None => self.0.run(py, leaves, Vec::new(), Borrowed::default(), hooks)?,
        };
        Ok(results.cast_into::<PyTuple>().map_err(PyErr::from)?)
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.traverse(visit)
    }
}

/// A function that replays a region: when it is traced, it adds the nodes of the region.
#[pyclass(frozen, module = "defn._core")]
struct Replay {
    name: String,
    region: Arc<Region>,
    table: Table,
}

#[pymethods]
impl Replay {
    #[getter]
    fn __name__(&self) -> &str {
        &self.name
    }

    #[pyo3(signature = (*args))]
    fn __call__<'py>(&self, args: &Bound<'py, PyTuple>) -> Fallible<Bound<'py, PyTuple>> {
        guard(|| {
            let py = args.py();
            let (given, expected) = (args.len(), self.region.inputs().len());
            if given != expected {
                return Err(Misuse::LeafCount { op: "run", given, expected }.into());
            }
            let mut tensors = Vec::with_capacity(given);
            for arg in args.iter() {
                tensors.push(convert::tensor("run", &arg)?.flat());
            }
            if !hooks::adopt(&self.table) {
                let text = "a stage is traced among other nodes with host functions".to_owned();
                return Err(Misuse::Internal { text }.into());
            }
            let results = ops::with(|ops| ops.inline(&self.region, &tensors))?;
            Ok(PyTuple::new(py, wrap(py, results.into_iter())?)?)
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        hooks::traverse(&self.table, &visit)
    }
}
