//! How much of a thread's stack is left.
//!
//! Functions inside functions are recursion: a branch inside a branch, a container inside a container. Their depth is
//! bounded, and so is it by the stack of the thread, which the host language may have made as small as it likes. Only
//! the operating system knows where a stack ends: who may ask it says so once.

use std::cell::Cell;
use std::sync::OnceLock;

use crate::error::{ErrorKind, Result};

/// What a function inside others needs at least: the kernels of the CPU have pieces of their operands on the stack, up to
/// 60 KiB of them.
pub const ROOM: usize = 72 << 10;

/// Gives the lowest address of the calling thread's stack, where it is known.
pub type Probe = fn() -> Option<usize>;

static PROBE: OnceLock<Probe> = OnceLock::new();

thread_local! {
    /// The lowest address; 0 where it is not known.
    static LOWEST: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Says who knows where stacks end, once for the process; a second one is not heard.
pub fn set_probe(probe: Probe) {
    PROBE.get_or_init(|| probe);
}

/// The bytes that are left of this thread's stack; more than any has where that is not known.
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

/// Whether there is room for one more function inside those that run.
pub fn has_room() -> bool {
    left() >= ROOM
}

/// Refuses to go deeper where there is no room; `op` is for the message.
///
/// # Errors
/// Less than [`ROOM`] is left.
pub fn require(op: &'static str) -> Result<()> {
    if has_room() {
        return Ok(());
    }
    Err(ErrorKind::SmallStack { op, left: left() >> 10 }.into())
}
