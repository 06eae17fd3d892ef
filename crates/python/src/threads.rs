//! The number of CPU threads that share the work of a call, in the process and in a context.

use std::sync::atomic::{AtomicBool, Ordering};

use defn_cpu::{DefaultModes, ThreadCount};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

use crate::convert;
use crate::error::{Fallible, guard, if_fits};
use crate::misuse::Misuse;
use crate::options;

/// Whether the option was ever set. While it is false, calls skip the look-up.
static ANY_SET: AtomicBool = AtomicBool::new(false);

/// A number of threads; `None` for that of the enclosing context.
///
/// # Errors
/// A value that is not a valid integer.
pub(crate) fn parse(
    op: &'static str,
    option: &str,
    value: &Bound<'_, PyAny>,
    required: &str,
) -> Fallible<Option<usize>> {
    if value.is_none() {
        return Ok(None);
    }
    let is_bool = value.is_instance_of::<PyBool>();
    let count = if is_bool { None } else { if_fits(value.py(), value.extract::<usize>())? };
    match count.filter(|count| (1..=defn_cpu::MAX_THREADS).contains(count)) {
        Some(count) => Ok(Some(count)),
        None => {
            let (option, got) = (option.to_owned(), convert::text(value)?);
            Err(Misuse::OptionValue { op, option, got, required: required.to_owned() }.into())
        }
    }
}

/// Checks the option of a context.
pub(crate) fn check(op: &'static str, value: &Bound<'_, PyAny>) -> Fallible<()> {
    parse(op, "threads", value, "an int from 1 to 1024, or None for as many as outside")?;
    ANY_SET.store(true, Ordering::Relaxed);
    Ok(())
}

/// Runs `body` with the thread count of this context and the default floating-point modes, so that constants are
/// rounded while a function is traced as they are when it runs.
pub(crate) fn within<T>(body: impl FnOnce() -> Fallible<T>) -> Fallible<T> {
    let _modes = DefaultModes::set();
    let _count = if ANY_SET.load(Ordering::Relaxed) { count()? } else { None };
    body()
}

/// The thread count of this context, if it is set.
#[cold]
fn count() -> Fallible<Option<ThreadCount>> {
    let count = Python::attach(|py| match options::get(py, intern!(py, "threads"))? {
        Some(value) => value.extract::<Option<usize>>(),
        None => Ok(None),
    })?;
    Ok(count.map(ThreadCount::new).transpose()?)
}

#[pyfunction]
#[pyo3(signature = (count = None))]
fn set_threads(count: Option<&Bound<'_, PyAny>>) -> Fallible<Option<usize>> {
    guard(|| {
        let required = "an int from 1 to 1024, or None for the default";
        let count = match count {
            Some(count) => parse("set_threads", "count", count, required)?,
            None => None,
        };
        Ok(defn_cpu::set_threads(count)?)
    })
}

#[pyfunction]
fn get_threads() -> Fallible<usize> {
    guard(|| Ok(defn_cpu::threads()?))
}

#[pyfunction]
fn config(py: Python<'_>) -> Fallible<Bound<'_, PyDict>> {
    guard(|| {
        let config = PyDict::new(py);
        config.set_item("threads", defn_cpu::threads()?)?;
        let code = defn_cpu::machine_code();
        config.set_item("machine_code", code.ok())?;
        config.set_item("machine_code_refused", code.err())?;
        Ok(config)
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_threads, module)?)?;
    module.add_function(wrap_pyfunction!(get_threads, module)?)?;
    module.add_function(wrap_pyfunction!(config, module)?)
}
