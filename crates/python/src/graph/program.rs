//! Compiled stages: tensors in, tensors out.

use std::sync::Arc;

use defn_core::backend::Backend;
use defn_core::stage::StageError;
use defn_core::{ErrorKind, Tensor, trace};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::stage::PyStage;
use crate::backends;
use crate::checks;
use crate::compilers::Choice;
use crate::containers::Leaves;
use crate::error::{Fallible, Fault, guard};
use crate::gil;
use crate::hooks;
use crate::jit::leaf;
use crate::jit::staged::Staged;
use crate::jit::wrap;
use crate::misuse::Misuse;
use crate::options;

/// A compiled stage. It is called with a tensor for each of its parameters, and returns a tuple of its
/// outputs.
///
/// Its errors name the stage. Several threads may call it at the same time.
#[pyclass(frozen, weakref, name = "StageProgram", module = "defn.graph")]
pub(crate) struct StageProgram {
    stage: Py<PyStage>,
    staged: Arc<Staged>,
    /// The backend on which it runs, if the options select one.
    backend: Option<Arc<dyn Backend>>,
    hooks: Option<Py<PyDict>>,
}

impl StageProgram {
    /// Compiles a stage.
    ///
    /// # Errors
    /// Options that the compiler does not take, and errors of the compiler.
    pub(super) fn make(
        stage: &Bound<'_, PyStage>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> Fallible<StageProgram> {
        let py = stage.py();
        if trace::depth() > 0 {
            return Err(Misuse::StageInTrace.into());
        }
        let rest = match options {
            Some(options) => options.copy()?,
            None => PyDict::new(py),
        };
        let take = |name| -> PyResult<Option<Bound<'_, PyAny>>> {
            let value = rest.get_item(name)?;
            if value.is_some() {
                rest.del_item(name)?;
            }
            Ok(value.filter(|value| !value.is_none()))
        };
        let compiler = take(intern!(py, "compiler"))?;
        let hooks = take(intern!(py, "hooks"))?;
        let backend = take(intern!(py, "backend"))?;
        let hooks = hooks::named("run", hooks.as_ref())?;
        let choice = match compiler {
            Some(compiler) => Choice::of("run", &compiler, Some(&rest))?,
            None => options::default_compiler(py, Some(&rest))?,
        };
        let backend = match backend {
            Some(backend) => Some(backends::parse(Some(&backend))?),
            None => choice.chosen_backend(),
        };
        let this = stage.get();
        let staged = this.staged(py, &choice, checks::current()).map_err(|fault| within(py, fault, this))?;
        Ok(StageProgram { stage: stage.clone().unbind(), staged, backend, hooks })
    }

    /// The argument tensors of a run, on the backend of the run.
    fn gather<'py>(&self, args: &Bound<'py, PyTuple>) -> Fallible<Leaves<'py>> {
        let (py, op, stage) = (args.py(), "run", self.stage.get());
        let types = stage.parameters();
        if args.len() != types.len() {
            let (given, expected) = (args.len(), types.len());
            return Err(StageError::InputCount { op, given, expected }.into());
        }
        let mut tensors = Vec::with_capacity(types.len() + stage.captures.len());
        for (position, (arg, ty)) in args.iter().zip(types).enumerate() {
            let tensor = leaf::input(op, &arg, position, ty)?;
            tensor.require_buffer(op, "run stages outside of definitions")?;
            if !ty.is_compatible(tensor.whole()) {
                let argument = format!("argument {position}");
                let (got, expected) = (tensor.whole().clone(), ty.clone());
                return Err(StageError::InputType { op, argument, got, expected }.into());
            }
            tensors.push(tensor.flat());
        }
        tensors.extend(stage.captures.iter().cloned());
        if let Some(backend) = &self.backend {
            let bring = |tensor: Tensor| match tensor.backend() {
                Some(there) if !there.is_same_device(&**backend) => tensor.copy_to(op, backend),
                Some(_) | None => Ok(tensor),
            };
            let is_elsewhere =
                |tensor: &Tensor| tensor.backend().is_some_and(|there| !there.is_same_device(&**backend));
            if tensors.iter().any(is_elsewhere) {
                tensors = gil::detach(py, || {
                    tensors.into_iter().map(bring).collect::<defn_core::Result<Vec<_>>>()
                })?;
            }
        }
        Ok(wrap(py, tensors.into_iter())?)
    }
}

#[pymethods]
impl StageProgram {
    /// The stage that it runs.
    #[getter]
    fn stage(&self, py: Python<'_>) -> Py<PyStage> {
        self.stage.clone_ref(py)
    }

    #[pyo3(signature = (*args))]
    fn __call__<'py>(&self, args: &Bound<'py, PyTuple>) -> Fallible<Bound<'py, PyTuple>> {
        guard(|| {
            let py = args.py();
            if trace::depth() > 0 {
                return Err(Misuse::StageInTrace.into());
            }
            let run = || {
                let leaves = self.gather(args)?;
                self.staged.run(py, &leaves, self.backend.as_ref(), self.hooks.as_ref())
            };
            run().map_err(|fault| within(py, fault, self.stage.get()))
        })
    }

    fn __repr__(&self) -> String {
        format!("<program of {}>", self.stage.get().position_text())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.stage)?;
        visit.call(&self.hooks)
    }
}

/// Adds the stage to an error.
#[cold]
fn within(py: Python<'_>, fault: Fault, stage: &PyStage) -> Fault {
    match fault {
        Fault::Core(error) => {
            if let ErrorKind::Host { error: raised } = error.kind()
                && let Some(raised) = raised.downcast_ref::<PyErr>()
            {
                return within(py, Fault::Python(raised.clone_ref(py)), stage);
            }
            error.within(|| stage.position_text()).into()
        }
        Fault::Python(error) => {
            // An exception that takes no notes is left unchanged.
            let noted = error
                .value(py)
                .call_method1(intern!(py, "add_note"), (format!("in {}", stage.position_text()),));
            drop(noted);
            Fault::Python(error)
        }
        fault @ Fault::Misuse(_) => fault,
    }
}

/// Compiles a stage with the options of a run.
#[pyfunction]
#[pyo3(signature = (stage, options = None))]
fn graph_compile(stage: &Bound<'_, PyStage>, options: Option<&Bound<'_, PyDict>>) -> Fallible<StageProgram> {
    guard(|| StageProgram::make(stage, options))
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StageProgram>()?;
    module.add_function(wrap_pyfunction!(graph_compile, module)?)
}
