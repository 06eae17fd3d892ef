//! Who calls: an interpreter has a lock that its threads give up while they wait, and a user who may interrupt one of
//! them. Without one a wait only waits.

use std::sync::OnceLock;
use std::time::Duration;

use defn_core::{Result, stack};

use super::{ending, helpers};

/// How long a thread waits before it asks whether it was interrupted.
pub(super) const SLICE: Duration = Duration::from_millis(20);

/// The interpreter whose threads wait for devices.
pub trait Caller: Sync {
    /// Runs `body` once, on this thread, without the interpreter's lock.
    fn away(&self, body: &mut (dyn FnMut() + Send));

    /// Whether this thread is the one that users interrupt.
    fn may_be_interrupted(&self) -> bool;

    /// Whether it was.
    ///
    /// # Errors
    /// It was: what the interpreter raises then.
    fn poll(&self) -> Result<()>;
}

static CALLER: OnceLock<&'static dyn Caller> = OnceLock::new();

/// Says who calls, once for the process; a second one is not heard.
pub fn set_caller(caller: &'static dyn Caller) {
    CALLER.get_or_init(|| caller);
}

/// Whether anyone said so.
pub(super) fn is_there() -> bool {
    CALLER.get().is_some()
}

/// Runs what may wait for a device or for another thread, without the interpreter's lock.
pub(super) fn away<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    let Some(caller) = CALLER.get() else { return body() };
    let (mut body, mut made) = (Some(body), None);
    caller.away(&mut || {
        ending::stop_others();
        made = body.take().map(|body| body());
        ending::stop_others();
    });
    made.expect("a caller runs what it is given")
}

/// Whether the wait of this thread was interrupted.
///
/// # Errors
/// It was.
pub(super) fn poll() -> Result<()> {
    CALLER.get().map_or(Ok(()), |caller| caller.poll())
}

/// What a plugin may need of the stack: XLA compiles by recursion.
const PLUGIN_ROOM: usize = 512 << 10;

/// Runs what may take long and cannot be asked to end: on the thread that users interrupt a helper runs it, and goes
/// on alone when they do. A helper runs it also where the stack of this thread is small.
///
/// # Errors
/// It was interrupted.
pub(super) fn interruptible<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    match CALLER.get() {
        Some(caller) if caller.may_be_interrupted() => helpers::run(body),
        Some(_) | None if stack::left() < PLUGIN_ROOM => helpers::run(body),
        Some(_) | None => Ok(away(body)),
    }
}
