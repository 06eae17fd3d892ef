//! Waiting for a device, without the interpreter's lock and so that the wait can be interrupted.

use std::time::{Duration, Instant};

use defn_core::Result;
use defn_core::backend::Poll;

use super::caller::{SLICE, away};
use super::{Runtime, failure};
use crate::api::Event;

/// For how long the thread keeps asking before it sleeps between questions.
const EAGER: Duration = Duration::from_micros(50);

/// Waits until an event is ready, calling `poll` now and then. What the device does goes on when `poll` fails.
///
/// # Errors
/// What the device failed with, and what `poll` gives.
pub(super) fn until_ready(op: &'static str, runtime: &Runtime, event: &Event, poll: Poll<'_>) -> Result<()> {
    let failed = |error| failure::device(op, runtime, error);
    let start = Instant::now();
    while !event.is_ready().map_err(failed)? {
        if !away(|| is_ready_within(event, start, SLICE)).map_err(failed)? {
            poll()?;
        }
    }
    event.wait().map_err(failed)
}

/// Waits for a while, as part of a wait that began at `start`; whether the event is ready.
fn is_ready_within(event: &Event, start: Instant, slice: Duration) -> crate::Result<bool> {
    let end = Instant::now() + slice;
    loop {
        let now = Instant::now();
        let passed = now.duration_since(start);
        if event.is_ready()? {
            return Ok(true);
        }
        if now >= end {
            return Ok(false);
        }
        if passed < EAGER {
            std::hint::spin_loop();
        } else {
            // A sixteenth of what has passed: what is waited for too long is a small part of the whole.
            std::thread::sleep((passed / 16).clamp(Duration::from_micros(20), slice));
        }
    }
}
