//! The allocator of tensors. Freed memory is cached and reused, so that a program that repeats its work neither calls
//! the system nor pays for page faults.
//!
//! Blocks of up to 64 KiB are cached without locks by the thread that frees them ([`small`]); larger ones are cached
//! for all threads together ([`large`]). The caches are bounded. Blocks that were unused for some seconds go back to
//! the system, and all cached blocks do before an allocation is refused.
//!
//! The temporaries of compiled programs come from this allocator too. Live memory is counted by the requested sizes, so
//! that a program's peak can be compared with its prediction. `docs/memory.md` states the bounds.

mod count;
mod large;
mod report;
mod reserve;
mod small;

use std::ptr::NonNull;

use defn_core::memory::reserve;

pub use count::{held_bytes, live_bytes, peak_bytes, reset_peak};
pub(crate) use large::{MAX_IDLE_TIME, give_back_old};
pub use report::{MemoryReport, memory_report};
pub use reserve::Allocator;

/// The alignment of blocks: a cache line, and the widest vector register.
pub(crate) const ALIGN: usize = 64;

/// Uninitialised memory with one owner, freed on drop.
pub(crate) struct Block {
    start: NonNull<u8>,
    /// The bytes requested.
    bytes: usize,
    /// The bytes allocated.
    capacity: usize,
}

// SAFETY: a block owns its memory, and any thread may free it.
unsafe impl Send for Block {}
// SAFETY: a shared block returns only addresses and sizes.
unsafe impl Sync for Block {}

impl Block {
    /// Allocates `bytes` bytes, aligned to [`ALIGN`].
    ///
    /// # Errors
    /// The number of bytes that are available, when there are fewer.
    pub(crate) fn new(bytes: usize) -> Result<Block, usize> {
        let (start, capacity) = match bytes {
            0 => {
                (NonNull::new(std::ptr::without_provenance_mut(ALIGN)).expect("the alignment is not zero"), 0)
            }
            1..=small::MAX_SMALL_BYTES => small::take(bytes)?,
            _ => large::take(bytes)?,
        };
        count::allocated(bytes);
        Ok(Block { start, bytes, capacity })
    }

    /// The first byte.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The number of bytes requested.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        count::freed(self.bytes);
        match self.capacity {
            0 => {}
            // SAFETY: the block was allocated there with this size, and is not accessed any more.
            1..=small::MAX_SMALL_BYTES => unsafe { small::free(self.start, self.capacity) },
            // SAFETY: as above.
            _ => unsafe { large::free(self.start, self.capacity) },
        }
    }
}

/// Allocates memory from the system by `ask`. If that fails, the caches are returned to the system, and it is tried
/// again.
///
/// # Errors
/// The number of bytes that are available, when there are fewer.
fn from_system(bytes: usize, ask: impl Fn() -> Option<NonNull<u8>>) -> Result<NonNull<u8>, usize> {
    let try_once = || {
        reserve(bytes)?;
        ask().ok_or(0)
    };
    let start = try_once().or_else(|_| {
        return_cached();
        try_once()
    })?;
    count::obtained_from_system(bytes);
    Ok(start)
}

/// Returns cached blocks to the system: all large ones, and the small ones of this thread.
pub(crate) fn return_cached() {
    small::return_cached();
    large::return_cached();
}

#[cfg(test)]
mod tests;
