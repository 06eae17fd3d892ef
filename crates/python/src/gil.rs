//! The GIL: code that releases it, and code that acquires it again to call Python.
//!
//! A thread that calls the core normally holds the GIL. It lacks the GIL only where it released it through
//! this module.

use std::cell::{Cell, OnceCell};

use defn_core::{Result, background};
use pyo3::prelude::*;

use crate::pybackend::carry;

thread_local! {
    static IS_RELEASED: Cell<bool> = const { Cell::new(false) };
}

/// Sets the thread's "GIL released" flag, and restores the previous value on drop.
struct Flag(bool);

impl Flag {
    fn set(is_released: bool) -> Flag {
        Flag(IS_RELEASED.replace(is_released))
    }
}

impl Drop for Flag {
    fn drop(&mut self) {
        IS_RELEASED.set(self.0);
    }
}

/// Runs `body` with the GIL released.
pub(crate) fn detach<T: Send>(py: Python<'_>, body: impl FnOnce() -> T + Send) -> T {
    py.detach(|| {
        let _flag = Flag::set(true);
        body()
    })
}

/// Runs `body` with the GIL released; this thread may have released it already.
pub(crate) fn release<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    if IS_RELEASED.get() {
        return body();
    }
    Python::attach(|py| detach(py, body))
}

/// Runs `body`, which calls Python, with the GIL held; this thread may have released it.
pub(crate) fn attach<T>(body: impl FnOnce(Python<'_>) -> T) -> T {
    Python::attach(|py| {
        let _flag = Flag::set(false);
        body(py)
    })
}

/// Whether this is Python's main thread, on which Python runs signal handlers.
pub(crate) fn is_main_thread() -> bool {
    thread_local! {
        static IS_MAIN: OnceCell<bool> = const { OnceCell::new() };
    }
    let ask = |py: Python<'_>| -> PyResult<bool> {
        let threading = py.import("threading")?;
        let (main, this) = (threading.call_method0("main_thread")?, threading.call_method0("get_ident")?);
        main.getattr("ident")?.eq(this)
    };
    IS_MAIN.with(|is_main| *is_main.get_or_init(|| attach(ask).unwrap_or(false)))
}

/// Runs pending signal handlers.
///
/// # Errors
/// The exception that a handler raised.
pub(crate) fn poll() -> Result<()> {
    attach(|py| py.check_signals()).map_err(carry)
}

/// As [`poll`] on the main thread. Other threads return at once and do not wait for the GIL, which a thread that
/// compiles in the background must not even ask for: the interpreter may be ending.
///
/// # Errors
/// As [`poll`].
pub(crate) fn poll_main() -> Result<()> {
    if !background::is_here() && is_main_thread() { poll() } else { Ok(()) }
}
