//! A limit on the nesting of definitions' calls.

use std::cell::Cell;

use defn_core::stack;

use crate::error::Fallible;
use crate::misuse::Misuse;

/// Below Python's own limit and the depth that a thread's stack can hold.
const LIMIT: usize = 150;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Counts a call until it is dropped.
pub(crate) struct Call(());

/// Enters a call of a definition while tracing.
///
/// # Errors
/// Too many nested calls, as in a definition that calls itself without end.
pub(crate) fn enter(op: &'static str) -> Fallible<Call> {
    let depth = DEPTH.get();
    if depth >= LIMIT {
        return Err(Misuse::Recursion { op, depth }.into());
    }
    stack::require(op)?;
    DEPTH.set(depth + 1);
    Ok(Call(()))
}

impl Drop for Call {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}
