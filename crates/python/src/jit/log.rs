//! Log messages and warnings about compiling.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3::intern;
use pyo3::prelude::*;

use super::settings::CompileMode;
use crate::error::Fallible;
use crate::location;
use crate::options;

/// Logs that a version was compiled, where the option `log_compiles` asks for that.
pub(super) fn compiled(
    py: Python<'_>,
    fun: &str,
    took: Duration,
    mode: CompileMode,
    why: &str,
) -> Fallible<()> {
    without_machine_code(py)?;
    let wanted = match options::get(py, intern!(py, "log_compiles"))? {
        Some(value) => value.is_truthy()?,
        None => false,
    };
    if !wanted {
        return Ok(());
    }
    let millis = took.as_secs_f64() * 1e3;
    let text = match mode {
        CompileMode::Now => format!("{fun} was compiled in {millis:.1} ms: {why}"),
        CompileMode::Background => {
            format!("{fun} was traced in {millis:.1} ms and is compiled in the background: {why}")
        }
    };
    let (file, line) = source_position();
    py.import("defn._log")?.call_method1(intern!(py, "compiled"), (text, file, line))?;
    Ok(())
}

/// Says once in a process that code was to be generated and the system refuses memory for it.
fn without_machine_code(py: Python<'_>) -> Fallible<()> {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if TOLD.load(Ordering::Relaxed) {
        return Ok(());
    }
    TOLD.store(true, Ordering::Relaxed);
    if let Some(reason) = defn_cpu::refused_memory_for_code() {
        py.import("defn._log")?.call_method1(intern!(py, "no_machine_code"), (reason,))?;
    }
    Ok(())
}

/// Warns of too many versions.
pub(super) fn warn(py: Python<'_>, text: &str) -> Fallible<()> {
    let class = py.import("defn.errors")?.getattr(intern!(py, "RecompileWarning"))?;
    warn_of(py, &class, text)
}

/// Issues a warning at the line of the user's code.
pub(crate) fn warn_of(py: Python<'_>, class: &Bound<'_, PyAny>, text: &str) -> Fallible<()> {
    let (file, line) = source_position();
    py.import("warnings")?.call_method1(intern!(py, "warn_explicit"), (text, class, file, line))?;
    Ok(())
}

/// The file and line of the user's code.
fn source_position() -> (String, u32) {
    match location::ask() {
        Some(location) => (location.file.to_string(), location.line),
        None => ("<unknown>".to_owned(), 0),
    }
}
