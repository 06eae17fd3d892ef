//! The calling interpreter. Its threads release its lock while they wait, and its user may interrupt one of them.
//! Without an interpreter a wait cannot be interrupted.

use std::sync::OnceLock;
use std::time::Duration;

use defn_core::{Result, background, stack};

use super::{helpers, shutdown};

/// How long a thread waits between two checks for an interruption.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The interpreter whose threads wait for devices.
pub trait Caller: Sync {
    /// Runs `body` once, on this thread, without the interpreter's lock.
    fn without_lock(&self, body: &mut (dyn FnMut() + Send));

    /// Whether this thread is the one that users interrupt.
    fn may_be_interrupted(&self) -> bool;

    /// Checks whether this thread was interrupted.
    ///
    /// # Errors
    /// It was interrupted: the interpreter's exception.
    fn poll(&self) -> Result<()>;
}

static CALLER: OnceLock<&'static dyn Caller> = OnceLock::new();

/// Sets the interpreter, once for the process; later calls have no effect.
pub fn set_caller(caller: &'static dyn Caller) {
    CALLER.get_or_init(|| caller);
}

/// Whether there is an interpreter.
pub(super) fn is_there() -> bool {
    CALLER.get().is_some()
}

/// The interpreter, unless this thread compiles in the background: it does not hold the lock, and must not wait for it.
fn of_this_thread() -> Option<&'static dyn Caller> {
    if background::is_here() { None } else { CALLER.get().copied() }
}

/// Runs a function that may wait for a device or for another thread, without the interpreter's lock.
pub(super) fn without_lock<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    let Some(caller) = of_this_thread() else { return body() };
    let (mut body, mut result) = (Some(body), None);
    caller.without_lock(&mut || {
        shutdown::park_other_threads();
        result = body.take().map(|body| body());
        shutdown::park_other_threads();
    });
    result.expect("a caller runs what it is given")
}

/// Checks whether the wait of this thread was interrupted.
///
/// # Errors
/// It was interrupted.
pub(super) fn poll() -> Result<()> {
    of_this_thread().map_or(Ok(()), |caller| caller.poll())
}

/// The stack that a plugin may need: XLA compiles by recursion.
const PLUGIN_STACK_BYTES: usize = 512 << 10;

/// Runs a function that may take long and cannot be cancelled. On the thread that users interrupt, a helper runs the
/// function, and continues without the caller after an interruption. A helper also runs it if the stack of this thread
/// is small.
///
/// # Errors
/// It was interrupted.
pub(super) fn interruptible<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    match of_this_thread() {
        Some(caller) if caller.may_be_interrupted() => helpers::run(body),
        Some(_) | None if stack::left() < PLUGIN_STACK_BYTES => helpers::run(body),
        Some(_) | None => Ok(without_lock(body)),
    }
}
