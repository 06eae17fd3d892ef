//! The remaining stack of a thread.
//!
//! Nested functions and containers recurse: a branch inside a branch, a container inside a container. Their
//! depth is bounded by a limit, and also by the thread's stack, whose size the host language chooses. Only
//! the operating system knows where a stack ends; a crate that may call it registers a probe once.

use std::cell::Cell;
use std::sync::OnceLock;

use crate::error::{ErrorKind, Result};

/// The minimum stack space for a nested function: kernels of the CPU backend keep up to 60 KiB of their
/// operands on the stack.
pub const MIN_STACK_BYTES: usize = 72 << 10;

/// Returns the lowest address of the calling thread's stack, if it is known.
pub type Probe = fn() -> Option<usize>;

static PROBE: OnceLock<Probe> = OnceLock::new();

thread_local! {
    /// The lowest address; 0 if it is unknown, None before the first probe.
    static LOWEST: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Registers the probe of the process. Only the first call has an effect.
pub fn set_probe(probe: Probe) {
    PROBE.get_or_init(|| probe);
}

/// The remaining bytes of this thread's stack; `usize::MAX` if unknown.
pub fn left() -> usize {
    let lowest = LOWEST.get().unwrap_or_else(|| {
        let Some(probe) = PROBE.get() else { return 0 };
        let lowest = probe().unwrap_or(0);
        LOWEST.set(Some(lowest));
        lowest
    });
    if lowest == 0 {
        return usize::MAX;
    }
    let here = 0_u8;
    std::ptr::from_ref(&here).addr().saturating_sub(lowest)
}

/// Whether there is enough stack for one more nested function.
pub fn has_stack() -> bool {
    left() >= MIN_STACK_BYTES
}

/// Refuses deeper nesting if the stack is too short; `op` is for the message.
///
/// # Errors
/// When less than [`MIN_STACK_BYTES`] is left.
pub fn require(op: &'static str) -> Result<()> {
    if has_stack() {
        return Ok(());
    }
    Err(ErrorKind::SmallStack { op, left: left() >> 10 }.into())
}
