//! Memory for tensors. What is freed is kept for a while and given again, so that a program that does the same over and
//! over neither asks the system for memory nor pays for pages that are touched first.
//!
//! Blocks of up to 64 KiB are kept by the thread that frees them ([`small`]), without locks; larger ones by all threads
//! together ([`large`]). What is kept is bounded, goes back to the system when it was not used for some seconds, and
//! goes back wholly before an allocation is refused.

mod count;
mod large;
mod report;
mod small;
mod spare;

use std::ptr::NonNull;

use defn_core::memory::reserve;

pub use count::{held_bytes, live_bytes, peak_bytes, reset_peak};
pub(crate) use large::{AGE, give_back_old};
pub use report::{MemoryReport, memory_report};
pub use spare::Allocator;

/// Blocks begin at a multiple of this: a cache line, and the widest vector register.
pub(crate) const ALIGN: usize = 64;

/// Uninitialised memory that somebody holds alone, and gives back by dropping it.
pub(crate) struct Block {
    start: NonNull<u8>,
    /// What was asked for.
    bytes: usize,
    /// What there is.
    room: usize,
}

// SAFETY: a block is memory that nobody else refers to, and the allocator takes it from any thread.
unsafe impl Send for Block {}
// SAFETY: a shared block gives addresses and sizes.
unsafe impl Sync for Block {}

impl Block {
    /// Memory of so many bytes, which begins at a multiple of [`ALIGN`].
    ///
    /// # Errors
    /// The number of bytes that are available, when there are fewer.
    pub(crate) fn new(bytes: usize) -> Result<Block, usize> {
        let (start, room) = match bytes {
            0 => {
                (NonNull::new(std::ptr::without_provenance_mut(ALIGN)).expect("the alignment is not zero"), 0)
            }
            1..=small::MOST => small::take(bytes)?,
            _ => large::take(bytes)?,
        };
        count::taken(bytes);
        Ok(Block { start, bytes, room })
    }

    /// Where the memory begins.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// How many bytes were asked for.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        count::given(self.bytes);
        match self.room {
            0 => {}
            // SAFETY: the block was taken there with this room, and nobody refers to it any more.
            1..=small::MOST => unsafe { small::give(self.start, self.room) },
            // SAFETY: as above.
            _ => unsafe { large::give(self.start, self.room) },
        }
    }
}

/// Asks the system for memory by `ask`. Where there is not enough, what is kept goes back before it is asked again.
///
/// # Errors
/// The number of bytes that are available, when there are fewer.
fn from_system(bytes: usize, ask: impl Fn() -> Option<NonNull<u8>>) -> Result<NonNull<u8>, usize> {
    let try_once = || {
        reserve(bytes)?;
        ask().ok_or(0)
    };
    let start = try_once().or_else(|_| {
        give_back();
        try_once()
    })?;
    count::held(bytes);
    Ok(start)
}

/// Gives back to the system what is kept: all large blocks, and the small ones of this thread.
pub(crate) fn give_back() {
    small::give_back();
    large::give_back();
}

#[cfg(test)]
mod tests;
