//! Waiting for a device, without the interpreter's lock, so that the wait can be interrupted.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use defn_core::Result;
use defn_core::backend::Poll;

use super::caller::{POLL_INTERVAL, without_lock};
use super::{Runtime, failure};
use crate::api::Event;

/// How long the thread spins before it sleeps. A device that is the host needs the processor.
const SPIN_TIME: Duration = Duration::from_micros(10);

/// Wakes a sleeping thread.
#[derive(Default)]
struct Wakeup {
    is_signaled: Mutex<bool>,
    condvar: Condvar,
}

impl Wakeup {
    fn signal(&self) {
        *self.is_signaled.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.condvar.notify_all();
    }

    /// Sleeps for at most `slice`; returns whether it was signaled.
    fn sleep(&self, slice: Duration) -> bool {
        let is_signaled = self.is_signaled.lock().unwrap_or_else(PoisonError::into_inner);
        let woken = self.condvar.wait_timeout_while(is_signaled, slice, |is_signaled| !*is_signaled);
        *woken.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Waits until an event is ready, and calls `poll` periodically. The device's work continues if `poll` fails.
///
/// # Errors
/// The error of the device's work, or the error of `poll`.
pub(super) fn until_ready(op: &'static str, runtime: &Runtime, event: &Event, poll: Poll<'_>) -> Result<()> {
    let failed = |error| failure::device(op, runtime, error);
    let start = Instant::now();
    while !event.is_ready().map_err(failed)? {
        if start.elapsed() < SPIN_TIME {
            std::hint::spin_loop();
            continue;
        }
        let wakeup = Arc::new(Wakeup::default());
        let signaler = wakeup.clone();
        event.on_ready(move || signaler.signal()).map_err(failed)?;
        while !without_lock(|| wakeup.sleep(POLL_INTERVAL)) {
            poll()?;
        }
        break;
    }
    event.wait().map_err(failed)
}
