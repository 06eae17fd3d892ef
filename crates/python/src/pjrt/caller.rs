//! Python's threads as those that wait for devices.

use std::cell::OnceCell;

use defn_core::Result;
use defn_pjrt::Caller;
use pyo3::prelude::*;

use crate::away;
use crate::pybackend::carry;

/// What devices are told.
pub(super) struct Interpreter;

impl Caller for Interpreter {
    fn away(&self, body: &mut (dyn FnMut() + Send)) {
        away::leave(body);
    }

    fn may_be_interrupted(&self) -> bool {
        thread_local! {
            static IS_MAIN: OnceCell<bool> = const { OnceCell::new() };
        }
        // Python runs what signals ask for on its first thread.
        IS_MAIN.with(|is_main| *is_main.get_or_init(|| away::attach(is_main_thread).unwrap_or(false)))
    }

    fn poll(&self) -> Result<()> {
        away::attach(|py| py.check_signals()).map_err(carry)
    }
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let (main, this) = (threading.call_method0("main_thread")?, threading.call_method0("get_ident")?);
    main.getattr("ident")?.eq(this)
}
