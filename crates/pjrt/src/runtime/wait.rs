//! Waiting for a device so that the wait can be interrupted.

use std::time::{Duration, Instant};

use defn_core::Result;
use defn_core::backend::Poll;

use super::{Runtime, failure};
use crate::api::Event;

/// For how long the thread keeps asking before it sleeps between questions.
const EAGER: Duration = Duration::from_micros(50);

/// Waits until an event is ready, calling `poll` now and then. What the device does goes on when `poll` fails.
///
/// # Errors
/// What the device failed with, and what `poll` gives.
pub(super) fn until_ready(op: &'static str, runtime: &Runtime, event: &Event, poll: Poll<'_>) -> Result<()> {
    let start = Instant::now();
    loop {
        if event.is_ready().map_err(|error| failure::device(op, runtime, error))? {
            return event.wait().map_err(|error| failure::device(op, runtime, error));
        }
        let passed = start.elapsed();
        if passed < EAGER {
            std::hint::spin_loop();
            continue;
        }
        poll()?;
        // A sixteenth of what has passed: what is waited for too long is a small part of the whole.
        std::thread::sleep((passed / 16).clamp(Duration::from_micros(20), Duration::from_millis(20)));
    }
}
