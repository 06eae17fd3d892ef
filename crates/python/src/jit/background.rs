//! Programs that are compiled in the background, while the evaluator runs their first calls.

use std::sync::Arc;

use defn_core::backend::{Compiler, Executable};
use defn_core::background::Background;
use defn_core::device::DeviceError;
use pyo3::intern;
use pyo3::prelude::*;

use super::settings::CompileMode;
use crate::compilers::Choice;
use crate::error::Fallible;
use crate::gil;
use crate::pybackend::carry;

/// A compiler in the background, for a function of this name. A call logs its failure.
pub(super) fn compiler(compiler: &Arc<dyn Compiler>, fun: String) -> Arc<dyn Compiler> {
    let tell = move |error: &defn_core::Error| {
        let log = |py: Python<'_>| -> PyResult<()> {
            let (name, text) = (intern!(py, "not_compiled"), error.to_string());
            py.import("defn._log")?.call_method1(name, (&fun, text)).map(|_| ())
        };
        gil::attach(log).map_err(carry)
    };
    Arc::new(Background::new(compiler.clone(), Arc::new(tell)))
}

/// Refuses to compile in the background by a compiler written in Python.
///
/// # Errors
/// It is asked to.
pub(super) fn refuse(compiler: &Choice, mode: CompileMode) -> Fallible<()> {
    match mode {
        CompileMode::Now => Ok(()),
        CompileMode::Background => {
            Err(defn_core::Error::from(DeviceError::no_background(compiler.name())).into())
        }
    }
}

/// Waits until a program is compiled. Other threads run meanwhile, and signals end the wait.
///
/// # Errors
/// The compiler's, and what a signal handler raises.
pub(super) fn wait(py: Python<'_>, executable: &dyn Executable) -> Fallible<()> {
    let poll = || gil::attach(|py| py.check_signals()).map_err(carry);
    Ok(gil::detach(py, || executable.wait(&poll))?)
}
