//! The end of the process: a plugin that is taken down while its devices work would crash, so they are waited for.

use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use super::Runtime;
use crate::api::at_exit;

/// For how long the end of the process waits; what takes longer may be work without an end.
const PATIENCE: Duration = Duration::from_secs(20);

static RUNNING: Mutex<Vec<&'static Runtime>> = Mutex::new(Vec::new());

/// Waits for a client's work when the process ends.
pub(super) fn settle_at_exit(runtime: &'static Runtime) {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).push(runtime);
    at_exit(settle);
}

/// The same again when a first program was started: what a plugin made only then is taken down before what was there
/// earlier.
pub(super) fn settle_before_later_parts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| at_exit(settle));
}

extern "C" fn settle() {
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let end = Instant::now() + PATIENCE;
    for runtime in running {
        if runtime.process.is_this() {
            runtime.live().settle(end);
        }
    }
}
