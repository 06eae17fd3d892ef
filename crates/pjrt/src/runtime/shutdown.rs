//! The end of the process. A plugin that is destroyed while its devices work would crash, so the end waits for them.
//!
//! Python announces its end ([`end`]). A Rust program does not, so there the first run of a program on the host is
//! waited for, and the exit handler is registered again after it: handlers run in reverse order, so ours runs before
//! the plugin's.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use super::{Runtime, helpers};
use crate::api::{Buffer, at_exit};

/// How long the end of the process waits; longer work may never end.
const MAX_EXIT_WAIT: Duration = Duration::from_secs(5);

static RUNNING: Mutex<Vec<&'static Runtime>> = Mutex::new(Vec::new());

/// Registers a client whose work the end of the process waits for.
pub(super) fn wait_at_exit(runtime: &'static Runtime) {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).push(runtime);
    at_exit(wait_idle);
}

/// Waits for the first run of a program, then registers the exit handler again. A plugin creates objects for a kernel
/// at its first use, and these are destroyed before older ones, so the handler must run before that. An interpreter
/// does not need this, because it calls [`end`].
pub(super) fn wait_before_next_exit_handler<'a>(results: impl Iterator<Item = &'a Buffer>) {
    for buffer in results {
        // Readers of the buffer get its error.
        let _ = buffer.ready().and_then(|event| event.wait());
    }
    at_exit(wait_idle);
}

/// The thread that ends the process, once known.
static ENDING_THREAD: OnceLock<ThreadId> = OnceLock::new();

/// Waits until the devices of all clients are idle, for some seconds at most. An interpreter calls this when it is
/// about to end, before libraries are unloaded. From then on other threads that use devices stop where they are,
/// because the state to which they would return is being destroyed.
pub fn end() {
    ENDING_THREAD.get_or_init(|| std::thread::current().id());
    wait_idle();
    // Runs before the destructors of everything that the plugin has created by now.
    at_exit(wait_idle);
}

/// Parks the current thread for good if the process is ending and another thread ends it.
pub(super) fn park_other_threads() {
    if let Some(&ending_thread) = ENDING_THREAD.get()
        && ending_thread != std::thread::current().id()
    {
        loop {
            std::thread::park();
        }
    }
}

/// Waits until the devices of all clients are idle, for some seconds at most; returns whether they are. Further calls
/// have only the rest of that time.
fn wait_idle() -> bool {
    static END: OnceLock<Instant> = OnceLock::new();
    let end = *END.get_or_init(|| Instant::now() + MAX_EXIT_WAIT);
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner).clone();
    running.retain(|runtime| runtime.process.is_this());
    // A forked process that started no client has no helpers either.
    (running.is_empty() || helpers::wait_idle(end))
        && running.iter().all(|runtime| runtime.live().wait_idle(end))
}
