//! Waiting for a device, without the interpreter's lock, so that the wait can be interrupted.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use defn_core::Result;
use defn_core::backend::Poll;

use super::caller::{SLICE, without_lock};
use super::{Runtime, failure};
use crate::api::Event;

/// How long the thread spins before it sleeps. A device that is the host needs the processor.
const EAGER: Duration = Duration::from_micros(10);

/// Wakes a sleeping thread.
#[derive(Default)]
struct Wakeup {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Wakeup {
    fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.heard.notify_all();
    }

    /// Sleeps for at most `slice`; returns whether it was rung.
    fn sleep(&self, slice: Duration) -> bool {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let woken = self.heard.wait_timeout_while(rung, slice, |rung| !*rung);
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
        if start.elapsed() < EAGER {
            std::hint::spin_loop();
            continue;
        }
        let bell = Arc::new(Wakeup::default());
        let ringing = bell.clone();
        event.on_ready(move || ringing.ring()).map_err(failed)?;
        while !without_lock(|| bell.sleep(SLICE)) {
            poll()?;
        }
        break;
    }
    event.wait().map_err(failed)
}
