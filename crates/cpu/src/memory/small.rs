//! The caches of small blocks: each thread has free lists by size class.
//!
//! A block goes to the thread that frees it. A thread that only frees returns its surplus to the system, and one that
//! only allocates gets blocks from the system, so that no thread accumulates memory.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::ptr::{NonNull, null_mut};

use super::{ALIGN, count, from_system};

/// The size of the largest small block.
pub(super) const MAX_SMALL_BYTES: usize = 64 << 10;

/// The most bytes that a thread caches: a part of its second-level cache, which still holds them.
const CACHE_BYTES: usize = 1 << 20;

/// Size classes: every multiple of a cache line up to 16, then four for each power of two.
const CLASSES: usize = 40;

/// The class of blocks for `bytes` bytes.
fn class_of(bytes: usize) -> usize {
    let before = bytes.div_ceil(ALIGN) - 1;
    if before < 16 {
        return before;
    }
    let top = before.ilog2() as usize;
    16 + (top - 4) * 4 + (before >> (top - 2) & 3)
}

/// The size of the blocks of a class.
fn block_bytes(class: usize) -> usize {
    if class < 16 {
        return (class + 1) * ALIGN;
    }
    let (top, quarter) = (4 + (class - 16) / 4, (class - 16) % 4);
    ((5 + quarter) << (top - 2)) * ALIGN
}

fn layout(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, ALIGN).expect("a small block")
}

/// The free lists of a thread. A free block starts with the address of the next one.
struct Lists {
    heads: [Cell<*mut u8>; CLASSES],
    /// The bytes of all cached blocks.
    cached: Cell<usize>,
}

thread_local! {
    static LISTS: Lists =
        const { Lists { heads: [const { Cell::new(null_mut()) }; CLASSES], cached: Cell::new(0) } };
}

impl Lists {
    /// Takes the block that was freed last.
    fn take(&self, class: usize) -> Option<NonNull<u8>> {
        let head = NonNull::new(self.heads[class].get())?;
        // SAFETY: `free` has written the address there, and no other code accesses a free block.
        self.heads[class].set(unsafe { head.cast::<*mut u8>().read() });
        self.cached.set(self.cached.get() - block_bytes(class));
        Some(head)
    }

    /// Caches a block.
    ///
    /// # Safety
    /// It has the size of the class, and is not accessed any more.
    unsafe fn free(&self, start: NonNull<u8>, class: usize) {
        if self.cached.get() + block_bytes(class) > CACHE_BYTES {
            // All lists are cleared, so that sizes not used any more leave room for others.
            self.return_cached();
        }
        // SAFETY: a block has at least one cache line, and is aligned to it.
        unsafe { start.cast::<*mut u8>().write(self.heads[class].get()) };
        self.heads[class].set(start.as_ptr());
        self.cached.set(self.cached.get() + block_bytes(class));
    }

    fn return_cached(&self) {
        for class in 0..CLASSES {
            while let Some(start) = self.take(class) {
                // SAFETY: `take` below has allocated it with this layout, and it is in no list any more.
                unsafe { to_system(start, block_bytes(class)) };
            }
        }
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        self.return_cached();
    }
}

/// # Safety
/// The block came from the system with this size, and is not accessed any more.
unsafe fn to_system(start: NonNull<u8>, capacity: usize) {
    count::returned_to_system(capacity);
    // SAFETY: as the caller says.
    unsafe { dealloc(start.as_ptr(), layout(capacity)) };
}

/// Allocates a block of at least `bytes` bytes; returns it and its size.
///
/// # Errors
/// The number of bytes that are available, when there are fewer.
pub(super) fn take(bytes: usize) -> Result<(NonNull<u8>, usize), usize> {
    let class = class_of(bytes);
    // The lists of a thread that ends may be gone.
    if let Ok(Some(start)) = LISTS.try_with(|lists| lists.take(class)) {
        return Ok((start, block_bytes(class)));
    }
    let capacity = block_bytes(class);
    // SAFETY: the layout is not empty.
    let start = from_system(capacity, || NonNull::new(unsafe { alloc(layout(capacity)) }))?;
    Ok((start, capacity))
}

/// Frees a block.
///
/// # Safety
/// It was allocated with this size, and is not accessed any more.
pub(super) unsafe fn free(start: NonNull<u8>, capacity: usize) {
    // SAFETY: as the caller says; a size determines its class.
    let freed = LISTS.try_with(|lists| unsafe { lists.free(start, class_of(capacity)) });
    if freed.is_err() {
        // SAFETY: as the caller says.
        unsafe { to_system(start, capacity) };
    }
}

/// Returns the cached blocks of this thread to the system.
pub(super) fn return_cached() {
    // The lists of a thread that has ended were returned already.
    let _ended = LISTS.try_with(Lists::return_cached);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_room_for_what_is_of_them() {
        for bytes in 1..=MAX_SMALL_BYTES {
            let class = class_of(bytes);
            assert!(block_bytes(class) >= bytes && (class == 0 || block_bytes(class - 1) < bytes), "{bytes}");
            assert!(block_bytes(class) <= (bytes + bytes / 4).next_multiple_of(ALIGN), "{bytes}");
        }
        assert_eq!((class_of(MAX_SMALL_BYTES), block_bytes(CLASSES - 1)), (CLASSES - 1, MAX_SMALL_BYTES));
    }
}
