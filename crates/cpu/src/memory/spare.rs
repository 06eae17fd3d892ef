//! An allocator that has something to spare when the system has nothing left.
//!
//! Rust's collections end the process where an allocation fails, unless each is asked whether it may. What takes memory by
//! shapes and elements asks; graphs, plans and texts are thousands of small allocations, which do not. Here the last
//! megabytes are kept for them: an allocation that the system refuses is met from there, and noted. Whoever walks over
//! nodes or steps looks whether one was ([`defn_core::memory::check`]), and stops with an error that a program can catch,
//! which frees what was taken.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

use defn_core::memory::note_shortage;

/// Bytes to spare. They are addresses alone until they are used.
const ROOM: usize = 32 << 20;

/// The most that an allocation gets of them: what is larger has to ask whether it may.
const MOST: usize = 4 << 20;

/// What chunks begin at multiples of.
const LINE: usize = 64;

/// Allocates as `A` does, the system's allocator as it stands; where that has nothing left, from the spare.
///
/// A program installs it by `#[global_allocator]`. Without it running out of memory ends the process while a graph is
/// built or compiled, as it does in Rust anywhere.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: defn_cpu::Allocator = defn_cpu::Allocator::new();
///
/// assert_eq!(vec![1; 3].len(), 3);
/// ```
#[derive(Debug, Default)]
pub struct Allocator<A = System> {
    inner: A,
    most: usize,
}

impl Allocator {
    /// The system's allocator, with something to spare.
    pub const fn new() -> Allocator {
        Allocator { inner: System, most: MOST }
    }
}

impl<A> Allocator<A> {
    /// As [`Allocator::new`] over another allocator, which spares no more than `most` bytes for one allocation.
    pub const fn over(inner: A, most: usize) -> Allocator<A> {
        Allocator { inner, most }
    }

    #[cold]
    fn spare(&self, layout: Layout) -> *mut u8 {
        if layout.size() > self.most || layout.align() > LINE {
            return std::ptr::null_mut();
        }
        let chunk = SPARE.take(layout.size());
        if !chunk.is_null() {
            note_shortage(layout.size());
        }
        chunk
    }
}

// SAFETY: memory is the inner allocator's or a chunk of the spare, which is aligned as asked for, is given to one at a time,
// and goes back to where it came from. Nothing here panics.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Allocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let start = unsafe { self.inner.alloc(layout) };
        if start.is_null() { self.spare(layout) } else { start }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let start = unsafe { self.inner.alloc_zeroed(layout) };
        if !start.is_null() {
            return start;
        }
        let start = self.spare(layout);
        if !start.is_null() {
            // SAFETY: the chunk has as many bytes.
            unsafe { start.write_bytes(0, layout.size()) };
        }
        start
    }

    #[inline]
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        if SPARE.has(start) {
            // SAFETY: the chunk was taken there, and the caller uses it no more.
            unsafe { SPARE.give(start) };
        } else {
            // SAFETY: the inner allocator gave it for this layout.
            unsafe { self.inner.dealloc(start, layout) };
        }
    }

    #[inline]
    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !SPARE.has(start) {
            // SAFETY: the inner allocator gave it for this layout.
            let moved = unsafe { self.inner.realloc(start, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller promises a size that is a layout's.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the size is not zero, as the caller promises.
        let moved = unsafe { self.alloc(wanted) };
        if !moved.is_null() {
            // SAFETY: both have so many bytes and are apart, and the old ones are used no more.
            unsafe {
                moved.copy_from_nonoverlapping(start, layout.size().min(size));
                self.dealloc(start, layout);
            }
        }
        moved
    }
}

/// The memory of the spare.
#[repr(C, align(64))]
struct Room(UnsafeCell<[MaybeUninit<u8>; ROOM]>);

// SAFETY: parts are given to one at a time, under the lock.
unsafe impl Sync for Room {}

static MEMORY: Room = Room(UnsafeCell::new([MaybeUninit::uninit(); ROOM]));

/// What is written before each chunk.
#[derive(Clone, Copy)]
#[repr(C)]
struct Head {
    /// From here to the next head.
    step: usize,
    is_taken: bool,
}

/// Chunks one after the other: new ones behind the last, and where no room is left there the first that is free and
/// large enough. When all are given back it begins again.
struct Chunks {
    /// Where the last chunk ends.
    end: usize,
    taken: usize,
}

struct Spare {
    is_locked: AtomicBool,
    chunks: UnsafeCell<Chunks>,
}

// SAFETY: what is inside is reached by who holds the lock.
unsafe impl Sync for Spare {}

static SPARE: Spare =
    Spare { is_locked: AtomicBool::new(false), chunks: UnsafeCell::new(Chunks { end: 0, taken: 0 }) };

impl Spare {
    fn start() -> *mut u8 {
        MEMORY.0.get().cast()
    }

    /// Whether a chunk is one of these.
    #[inline]
    fn has(&self, chunk: *mut u8) -> bool {
        chunk.addr().wrapping_sub(Spare::start().addr()) < ROOM
    }

    /// Runs `body` alone. A lock of the standard library may allocate.
    fn locked<T>(&self, body: impl FnOnce(&mut Chunks) -> T) -> T {
        while self.is_locked.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        // SAFETY: nobody else has the lock.
        let made = body(unsafe { &mut *self.chunks.get() });
        self.is_locked.store(false, Ordering::Release);
        made
    }

    /// A chunk of so many bytes; null where there is none.
    fn take(&self, bytes: usize) -> *mut u8 {
        self.locked(|chunks| chunks.take(LINE + bytes.next_multiple_of(LINE)))
            .map_or(std::ptr::null_mut(), |at| Spare::start().wrapping_add(at + LINE))
    }

    /// # Safety
    /// It was taken, and nobody uses it any more.
    unsafe fn give(&self, chunk: *mut u8) {
        let at = chunk.addr() - Spare::start().addr() - LINE;
        self.locked(|chunks| {
            let head = Chunks::head(at);
            // SAFETY: a head was written before the chunk.
            unsafe { (*head).is_taken = false };
            chunks.taken -= 1;
            if chunks.taken == 0 {
                chunks.end = 0;
            }
        });
    }
}

impl Chunks {
    fn head(at: usize) -> *mut Head {
        Spare::start().wrapping_add(at).cast()
    }

    /// Where a chunk of so many bytes begins, its head among them.
    fn take(&mut self, step: usize) -> Option<usize> {
        let at = if ROOM - self.end >= step { self.end } else { self.find(step)? };
        if at == self.end {
            self.end += step;
            // SAFETY: there is room for a head, aligned to a line, which nobody uses.
            unsafe { Chunks::head(at).write(Head { step, is_taken: true }) };
        }
        self.taken += 1;
        Some(at)
    }

    /// The first free chunk that is large enough, of which the rest stays free; neighbours become one on the way.
    fn find(&mut self, step: usize) -> Option<usize> {
        let mut at = 0;
        while at < self.end {
            // SAFETY: heads were written from the first to the end, each where the one before says.
            let head = unsafe { &mut *Chunks::head(at) };
            while !head.is_taken && at + head.step < self.end {
                // SAFETY: as above.
                let next = unsafe { Chunks::head(at + head.step).read() };
                if next.is_taken {
                    break;
                }
                head.step += next.step;
            }
            if !head.is_taken && head.step >= step {
                if head.step > step {
                    // SAFETY: steps are whole lines, so that there is room for a head in what is left.
                    unsafe {
                        Chunks::head(at + step).write(Head { step: head.step - step, is_taken: false })
                    };
                }
                *head = Head { step, is_taken: true };
                return Some(at);
            }
            at += head.step;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that has nothing.
    struct Nothing;

    // SAFETY: it gives nothing.
    unsafe impl GlobalAlloc for Nothing {
        unsafe fn alloc(&self, _: Layout) -> *mut u8 {
            std::ptr::null_mut()
        }

        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
    }

    #[test]
    fn the_spare_is_given_again() {
        let allocator = Allocator::over(Nothing, 1 << 20);
        let layout = |size| Layout::from_size_align(size, 16).unwrap();
        let write = |start: *mut u8, size: usize, byte: u8| {
            assert!(!start.is_null() && start.addr().is_multiple_of(16));
            // SAFETY: it was allocated with this size.
            unsafe { start.write_bytes(byte, size) };
        };
        // SAFETY: each is freed once, with its layout.
        unsafe {
            assert!(allocator.alloc(layout((1 << 20) + 1)).is_null(), "it is too large");
            assert!(!defn_core::memory::is_short());
            for round in 0..3 {
                // Twice as many as there is room for, of which every other one is given back at once.
                let mut held = Vec::new();
                let size = |at: usize| 1000 + 60_000 * (at % 5);
                for at in 0..600 {
                    let start = allocator.alloc(layout(size(at)));
                    write(start, size(at), at as u8);
                    if at % 2 == 0 {
                        allocator.dealloc(start, layout(size(at)));
                    } else {
                        held.push((at, start));
                    }
                    if held.len() > 60 {
                        let (at, start) = held.remove(0);
                        assert_eq!((*start, *start.add(size(at) - 1)), (at as u8, at as u8), "round {round}");
                        allocator.dealloc(start, layout(size(at)));
                    }
                }
                assert!(defn_core::memory::is_short());
                let (at, start) = held.pop().unwrap();
                let grown = allocator.realloc(start, layout(size(at)), 2 * size(at));
                assert_eq!((*grown, *grown.add(size(at) - 1)), (at as u8, at as u8));
                allocator.dealloc(grown, layout(2 * size(at)));
                held.into_iter().for_each(|(at, start)| allocator.dealloc(start, layout(size(at))));
            }
            let zeroed = allocator.alloc_zeroed(layout(100));
            assert!((0..100).all(|at| *zeroed.add(at) == 0));
            allocator.dealloc(zeroed, layout(100));
        }
        assert!(defn_core::memory::check("run").is_err());
        assert!(defn_core::memory::check("run").is_ok());
        SPARE.locked(|chunks| assert_eq!((chunks.taken, chunks.end), (0, 0)));
    }
}
