//! The interpreter lock: this thread without it, and back with it where Python is called.
//!
//! Who calls the core holds the lock, so that it need not be asked for, except where a thread has given it up here.

use std::cell::{Cell, OnceCell};

use defn_core::Result;
use pyo3::prelude::*;

use crate::pybackend::carry;

thread_local! {
    static IS_RELEASED: Cell<bool> = const { Cell::new(false) };
}

/// Sets the flag, until it is dropped.
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

/// Runs `body` without the lock.
pub(crate) fn detach<T: Send>(py: Python<'_>, body: impl FnOnce() -> T + Send) -> T {
    py.detach(|| {
        let _flag = Flag::set(true);
        body()
    })
}

/// Runs `body` without the lock, which this thread may have given up already.
pub(crate) fn release<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    if IS_RELEASED.get() {
        return body();
    }
    Python::attach(|py| detach(py, body))
}

/// Runs what calls Python with the lock, which this thread may have given up.
pub(crate) fn attach<T>(body: impl FnOnce(Python<'_>) -> T) -> T {
    Python::attach(|py| {
        let _flag = Flag::set(false);
        body(py)
    })
}

/// Whether this is the thread on which Python runs what signals ask for: its first.
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

/// Whether a signal has interrupted this thread.
///
/// # Errors
/// What its handler raised.
pub(crate) fn poll() -> Result<()> {
    attach(|py| py.check_signals()).map_err(carry)
}

/// As [`poll`] on the thread that signals interrupt; any other goes on, and does not wait for the lock.
///
/// # Errors
/// As there.
pub(crate) fn poll_main() -> Result<()> {
    if is_main_thread() { poll() } else { Ok(()) }
}
