//! The pointer through which threads write disjoint parts of one memory.

use std::mem::MaybeUninit;

/// The first element of memory that threads share. The memory stays exclusively borrowed while the pointer is used.
pub(crate) struct SendPtr<T>(*mut T);

// SAFETY: a thread reaches elements only by unsafe functions, whose callers keep the threads' parts disjoint.
unsafe impl<T: Send> Sync for SendPtr<T> {}

impl<T> SendPtr<T> {
    /// Memory from `start` on.
    pub(crate) fn new(start: *mut T) -> SendPtr<T> {
        SendPtr(start)
    }

    /// The elements of a slice.
    pub(crate) fn of(memory: &mut [MaybeUninit<T>]) -> SendPtr<T> {
        SendPtr::new(memory.as_mut_ptr().cast())
    }

    /// The address of a position.
    ///
    /// # Safety
    /// The position is inside the memory, or at its end.
    #[inline(always)]
    pub(crate) unsafe fn at(&self, position: usize) -> *mut T {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(position) }
    }

    /// The `len` elements from `start` on.
    ///
    /// # Safety
    /// The range is inside the memory, and no other code uses it during the borrow.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "the caller keeps parts disjoint")]
    pub(crate) unsafe fn part(&self, start: usize, len: usize) -> &mut [MaybeUninit<T>] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.at(start).cast(), len) }
    }
}
