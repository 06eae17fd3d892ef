//! The memory that a run will allocate, computed before the run.

use defn_core::backend::{Executable, MemoryNeed};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::Jitted;
use super::argument_names::name_argument;
use super::background;
use super::program::Program;
use super::settings::CompileMode;
use crate::error::{Fallible, guard};

/// The bytes that a run of a definition allocates, and those of the arguments that it reads.
#[pyclass(frozen, eq, hash, name = "MemoryNeed", module = "defn._core")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyMemoryNeed(MemoryNeed);

#[pymethods]
impl PyMemoryNeed {
    /// The most that is allocated at once: results, values in between and workspace.
    #[getter]
    fn peak(&self) -> usize {
        self.0.peak()
    }

    /// The bytes of the arguments that are read. They are there before the run.
    #[getter]
    fn arguments(&self) -> usize {
        self.0.arguments
    }

    /// The bytes of the results that have memory of their own.
    #[getter]
    fn results(&self) -> usize {
        self.0.results
    }

    /// The bytes of the block for what lies between arguments and results.
    #[getter]
    fn between(&self) -> usize {
        self.0.temporaries
    }

    /// The most bytes that an operation takes beside while it runs.
    #[getter]
    fn workspace(&self) -> usize {
        self.0.workspace
    }

    fn __repr__(&self) -> String {
        let MemoryNeed { arguments, results, temporaries, workspace } = self.0;
        let peak = text(self.0.peak());
        format!(
            "<memory: at most {peak}: results {}, in between {}, workspace {}; arguments {}>",
            text(results),
            text(temporaries),
            text(workspace),
            text(arguments)
        )
    }
}

/// A number of bytes in a readable unit.
fn text(bytes: usize) -> String {
    let mut scaled = bytes as f64;
    for unit in ["B", "KiB", "MiB"] {
        if scaled < 1024.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{scaled:.1} {unit}") };
        }
        scaled /= 1024.0;
    }
    format!("{scaled:.1} GiB")
}

/// The memory that a call would allocate.
pub(super) fn memory<'py>(
    slf: &Bound<'py, Jitted>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> Fallible<PyMemoryNeed> {
    with_version(slf, args, kwargs, |executable| Ok(PyMemoryNeed(executable.memory()?)))
}

/// Calls `work` with the version for a call if it is compiled; otherwise with one that is compiled for the answer and
/// not kept.
pub(super) fn with_version<'py, T>(
    slf: &Bound<'py, Jitted>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    work: impl Fn(&dyn Executable) -> Fallible<T>,
) -> Fallible<T> {
    guard(|| {
        let (py, this) = (slf.py(), slf.get());
        let fun = this.function.bind(py);
        let flat = this.signature.flatten(fun, args, kwargs)?;
        let key = this.key(py, &flat)?;
        for entry in this.versions.shared.candidates(key.hash) {
            if entry.serves(fun, &flat, &key)? {
                let executable = entry.program.executable();
                background::wait(py, &**executable)?;
                return work(&**executable);
            }
        }
        let source = Jitted::source(slf);
        let donated = this.settings.donated_leaves(py, &this.signature, &flat.tree);
        let result =
            Program::compile(py, &source, &flat, &key.compiler, (key.checks, CompileMode::Now), &donated);
        let name = |position: usize| this.signature.name(py, position);
        let program = result.map_err(|fault| name_argument(py, fault, &flat.tree, (&[], &[]), &name))?;
        work(&**program.executable())
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyMemoryNeed>()
}
