//! The end of the process: a plugin that is taken down while its devices work would crash, so they are waited for.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use super::{Runtime, helpers};
use crate::api::{Buffer, at_exit};

/// For how long the end of the process waits; what takes longer may be work without an end.
const PATIENCE: Duration = Duration::from_secs(5);

static RUNNING: Mutex<Vec<&'static Runtime>> = Mutex::new(Vec::new());

/// Waits for a client's work when the process ends.
pub(super) fn settle_at_exit(runtime: &'static Runtime) {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).push(runtime);
    at_exit(settle);
}

/// The same again after the first run of a program, which is waited for: what a plugin makes for a kernel when that is
/// first used is taken down before what was there earlier. An interpreter that calls needs none of this, as it says
/// when it ends.
pub(super) fn settle_before_parts_of<'a>(results: impl Iterator<Item = &'a Buffer>) {
    for buffer in results {
        // Who reads the buffer is told what it failed with.
        let _ = buffer.ready().and_then(|event| event.wait());
    }
    at_exit(settle);
}

/// The thread that ends the process, once it is known.
static ENDED_BY: OnceLock<ThreadId> = OnceLock::new();

/// Waits until the devices of all clients are idle, for some seconds at most. To be called by an interpreter that is
/// about to end, before libraries are taken down. From then on other threads that use devices stop where they are:
/// what they would come back to is being taken down too.
pub fn end() {
    ENDED_BY.get_or_init(|| std::thread::current().id());
    settle();
    // Before all that the plugin has made by now.
    at_exit(settle);
}

/// Keeps a thread for good that is not the one which ends the process, when that ends.
pub(super) fn stop_others() {
    if let Some(&by) = ENDED_BY.get()
        && by != std::thread::current().id()
    {
        loop {
            std::thread::park();
        }
    }
}

/// Waits until the devices of all clients are idle, for some seconds at most; whether they are. Further calls have what
/// is left of the time.
fn settle() -> bool {
    static END: OnceLock<Instant> = OnceLock::new();
    let end = *END.get_or_init(|| Instant::now() + PATIENCE);
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner).clone();
    running.retain(|runtime| runtime.process.is_this());
    // A fork that started no client has none of the helpers either.
    (running.is_empty() || helpers::settle(end)) && running.iter().all(|runtime| runtime.live().settle(end))
}
