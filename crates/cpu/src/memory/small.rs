//! Small blocks, in lists of equal size that each thread has for itself.
//!
//! A block goes to the thread that frees it. A thread that only frees gives back what it has too much of, and one that
//! only takes asks the system, so that memory does not gather anywhere.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::ptr::{NonNull, null_mut};

use super::{ALIGN, count, from_system};

/// Bytes of the largest small block.
pub(super) const MOST: usize = 64 << 10;

/// What a thread keeps at most: a share of the second cache, in which it is still warm.
const KEPT: usize = 1 << 20;

/// Sizes: every multiple of a line up to 16, then four for each power of two.
const CLASSES: usize = 40;

/// The class of blocks that have room for so many bytes.
fn class_of(bytes: usize) -> usize {
    let before = bytes.div_ceil(ALIGN) - 1;
    if before < 16 {
        return before;
    }
    let top = before.ilog2() as usize;
    16 + (top - 4) * 4 + (before >> (top - 2) & 3)
}

/// The bytes of the blocks of a class.
fn room_of(class: usize) -> usize {
    if class < 16 {
        return (class + 1) * ALIGN;
    }
    let (top, quarter) = (4 + (class - 16) / 4, (class - 16) % 4);
    ((5 + quarter) << (top - 2)) * ALIGN
}

fn layout(room: usize) -> Layout {
    Layout::from_size_align(room, ALIGN).expect("a small block")
}

/// The blocks that a thread keeps. The first bytes of each are the address of the next one.
struct Lists {
    heads: [Cell<*mut u8>; CLASSES],
    /// The bytes of all.
    kept: Cell<usize>,
}

thread_local! {
    static LISTS: Lists =
        const { Lists { heads: [const { Cell::new(null_mut()) }; CLASSES], kept: Cell::new(0) } };
}

impl Lists {
    /// Takes the block that was freed last.
    fn take(&self, class: usize) -> Option<NonNull<u8>> {
        let head = NonNull::new(self.heads[class].get())?;
        // SAFETY: `give` has written the address there, and a kept block is touched by nobody else.
        self.heads[class].set(unsafe { head.cast::<*mut u8>().read() });
        self.kept.set(self.kept.get() - room_of(class));
        Some(head)
    }

    /// Keeps a block.
    ///
    /// # Safety
    /// It has the room of the class, and nobody refers to it.
    unsafe fn give(&self, start: NonNull<u8>, class: usize) {
        if self.kept.get() + room_of(class) > KEPT {
            // All of it, so that sizes which are used no more leave room for others. What is freed pays for that once.
            self.give_back();
        }
        // SAFETY: a block has at least a line, and is aligned to one.
        unsafe { start.cast::<*mut u8>().write(self.heads[class].get()) };
        self.heads[class].set(start.as_ptr());
        self.kept.set(self.kept.get() + room_of(class));
    }

    fn give_back(&self) {
        for class in 0..CLASSES {
            while let Some(start) = self.take(class) {
                // SAFETY: `take` below has asked for it by this layout, and it is in no list any more.
                unsafe { to_system(start, room_of(class)) };
            }
        }
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// # Safety
/// The block came from the system with this room, and nobody refers to it.
unsafe fn to_system(start: NonNull<u8>, room: usize) {
    count::let_go(room);
    // SAFETY: as the caller says.
    unsafe { dealloc(start.as_ptr(), layout(room)) };
}

/// A block of at least so many bytes, and its room.
///
/// # Errors
/// The number of bytes that are available, when there are fewer.
pub(super) fn take(bytes: usize) -> Result<(NonNull<u8>, usize), usize> {
    let class = class_of(bytes);
    // A thread that ends may have no lists any more.
    if let Ok(Some(kept)) = LISTS.try_with(|lists| lists.take(class)) {
        return Ok((kept, room_of(class)));
    }
    let room = room_of(class);
    // SAFETY: the layout is not empty.
    let start = from_system(room, || NonNull::new(unsafe { alloc(layout(room)) }))?;
    Ok((start, room))
}

/// Takes a block back.
///
/// # Safety
/// It was taken with this room, and nobody refers to it any more.
pub(super) unsafe fn give(start: NonNull<u8>, room: usize) {
    // SAFETY: as the caller says; the room of a class is of that class.
    let kept = LISTS.try_with(|lists| unsafe { lists.give(start, class_of(room)) });
    if kept.is_err() {
        // SAFETY: as the caller says.
        unsafe { to_system(start, room) };
    }
}

/// Gives back to the system what this thread keeps.
pub(super) fn give_back() {
    // A thread that ends has given it back already.
    let _ended = LISTS.try_with(Lists::give_back);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_room_for_what_is_of_them() {
        for bytes in 1..=MOST {
            let class = class_of(bytes);
            assert!(room_of(class) >= bytes && (class == 0 || room_of(class - 1) < bytes), "{bytes}");
            assert!(room_of(class) <= (bytes + bytes / 4).next_multiple_of(ALIGN), "{bytes}");
        }
        assert_eq!((class_of(MOST), room_of(CLASSES - 1)), (CLASSES - 1, MOST));
    }
}
