//! The interpreter lock: this thread without it, and back with it where Python is called.
//!
//! Who calls the core holds the lock, so that it need not be asked for, except where a thread has given it up here.

use std::cell::Cell;

use pyo3::prelude::*;

thread_local! {
    static IS_AWAY: Cell<bool> = const { Cell::new(false) };
}

/// Sets the flag, until it is dropped.
struct Flag(bool);

impl Flag {
    fn set(is_away: bool) -> Flag {
        Flag(IS_AWAY.replace(is_away))
    }
}

impl Drop for Flag {
    fn drop(&mut self) {
        IS_AWAY.set(self.0);
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
pub(crate) fn leave<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    if IS_AWAY.get() {
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
