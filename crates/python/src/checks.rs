//! The run-time checks of a context. They are not a call option, so they are stored separately from the
//! default options.

use std::sync::atomic::{AtomicBool, Ordering};

use defn_core::backend::Checks;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::error::{Fallible, guard};
use crate::misuse::Misuse;
use crate::options;

/// Whether any check was ever requested. While it is false, calls skip the look-up.
static ANY_SET: AtomicBool = AtomicBool::new(false);

/// Checks as Python stores them: index, NaN, infinity.
type Kinds = (bool, bool, bool);

fn kinds(checks: Checks) -> Kinds {
    (checks.index, checks.nan, checks.inf)
}

fn of_context(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static VARIABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    options::context_variable(py, &VARIABLE, "defn_checks")
}

fn read(py: Python<'_>) -> PyResult<Checks> {
    let kinds: Kinds = of_context(py)?.call_method1(intern!(py, "get"), (Kinds::default(),))?.extract()?;
    let (index, nan, inf) = kinds;
    Ok(Checks { index, nan, inf })
}

/// The checks of this context.
pub(crate) fn current() -> Checks {
    if !ANY_SET.load(Ordering::Relaxed) {
        return Checks::default();
    }
    // The variable holds only values that `set` stored, so reading it does not fail.
    Python::attach(read).unwrap_or_default()
}

fn set(py: Python<'_>, checks: Checks) -> PyResult<()> {
    ANY_SET.store(true, Ordering::Relaxed);
    of_context(py)?.call_method1(intern!(py, "set"), (kinds(checks),))?;
    Ok(())
}

/// Adds checks to those of this context, and returns the previous ones.
#[pyfunction]
fn add_checks(py: Python<'_>, names: Vec<String>) -> Fallible<Kinds> {
    guard(|| {
        let before = read(py)?;
        let mut checks = before;
        for kind in names {
            match &*kind {
                "index" => checks.index = true,
                "nan" => checks.nan = true,
                "inf" => checks.inf = true,
                _ => {
                    let (option, got) = ("a kind".to_owned(), format!("\"{kind}\""));
                    let required = "\"index\", \"nan\" or \"inf\"".to_owned();
                    return Err(Misuse::OptionValue { op: "checks", option, got, required }.into());
                }
            }
        }
        set(py, checks)?;
        Ok(kinds(before))
    })
}

/// Restores the previous checks.
#[pyfunction]
fn restore_checks(py: Python<'_>, before: Kinds) -> PyResult<()> {
    let (index, nan, inf) = before;
    set(py, Checks { index, nan, inf })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(add_checks, module)?)?;
    module.add_function(wrap_pyfunction!(restore_checks, module)?)
}
