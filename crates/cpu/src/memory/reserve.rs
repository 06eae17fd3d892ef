//! A global allocator with a reserve for the time when the system has no memory left.
//!
//! Rust's collections abort the process when an allocation fails, unless they use the fallible functions. Code that
//! allocates by shapes and elements does; graphs, plans and texts make thousands of small allocations that do not. A
//! reserve of a few megabytes serves these: when the system refuses an allocation, it comes from the reserve, and this
//! is recorded. Loops over nodes or steps check the record ([`defn_core::memory::check`]) and stop with an error that a
//! program can catch, which frees the memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

use defn_core::memory::note_shortage;

/// The bytes of the reserve. They are only addresses until they are used.
const RESERVE_BYTES: usize = 32 << 20;

/// The most that one allocation gets from the reserve; larger ones must be fallible.
const LARGEST_CHUNK: usize = 4 << 20;

/// Chunks are aligned to this.
const LINE: usize = 64;

/// Allocates like `A`, by default the system's allocator; when that has no memory left, from the reserve.
///
/// A program installs it by `#[global_allocator]`. Without it, running out of memory while a graph is built or compiled
/// aborts the process, as everywhere in Rust.
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
    /// The system's allocator with a reserve.
    pub const fn new() -> Allocator {
        Allocator { inner: System, most: LARGEST_CHUNK }
    }
}

impl<A> Allocator<A> {
    /// Adds a reserve to another allocator; one allocation gets at most `most` bytes from it.
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

// SAFETY: memory comes from the inner allocator or is a chunk of the reserve, which is aligned as requested, has one
// owner at a time, and is freed where it came from. Nothing here panics.
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
            // SAFETY: the chunk has this size.
            unsafe { start.write_bytes(0, layout.size()) };
        }
        start
    }

    #[inline]
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        if SPARE.has(start) {
            // SAFETY: the chunk was taken from the reserve, and the caller does not access it any more.
            unsafe { SPARE.return_chunk(start) };
        } else {
            // SAFETY: the inner allocator returned it for this layout.
            unsafe { self.inner.dealloc(start, layout) };
        }
    }

    #[inline]
    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !SPARE.has(start) {
            // SAFETY: the inner allocator returned it for this layout.
            let moved = unsafe { self.inner.realloc(start, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller promises a size that is valid for a layout.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the size is not zero, as the caller promises.
        let moved = unsafe { self.alloc(wanted) };
        if !moved.is_null() {
            // SAFETY: both have that many bytes and do not overlap, and the old ones are not accessed any more.
            unsafe {
                moved.copy_from_nonoverlapping(start, layout.size().min(size));
                self.dealloc(start, layout);
            }
        }
        moved
    }
}

/// The memory of the reserve.
#[repr(C, align(64))]
struct ReserveMemory(UnsafeCell<[MaybeUninit<u8>; RESERVE_BYTES]>);

// SAFETY: parts are given to one owner at a time, under the lock.
unsafe impl Sync for ReserveMemory {}

static MEMORY: ReserveMemory = ReserveMemory(UnsafeCell::new([MaybeUninit::uninit(); RESERVE_BYTES]));

/// The header before each chunk.
#[derive(Clone, Copy)]
#[repr(C)]
struct ChunkHeader {
    /// The distance to the next header.
    step: usize,
    is_taken: bool,
}

/// Chunks in sequence. A new one goes behind the last; if there is no room left, it takes the first free chunk that is
/// large enough. When all are free, the sequence is emptied.
struct Chunks {
    /// The end of the last chunk.
    end: usize,
    in_use: usize,
}

struct Reserve {
    is_locked: AtomicBool,
    chunks: UnsafeCell<Chunks>,
}

// SAFETY: the contents are accessed under the lock only.
unsafe impl Sync for Reserve {}

static SPARE: Reserve =
    Reserve { is_locked: AtomicBool::new(false), chunks: UnsafeCell::new(Chunks { end: 0, in_use: 0 }) };

impl Reserve {
    fn start() -> *mut u8 {
        MEMORY.0.get().cast()
    }

    /// Whether a chunk belongs to the reserve.
    #[inline]
    fn has(&self, chunk: *mut u8) -> bool {
        chunk.addr().wrapping_sub(Reserve::start().addr()) < RESERVE_BYTES
    }

    /// Runs `body` under a spin lock: a lock of the standard library may allocate.
    fn locked<T>(&self, body: impl FnOnce(&mut Chunks) -> T) -> T {
        while self.is_locked.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        // SAFETY: this thread has the lock.
        let result = body(unsafe { &mut *self.chunks.get() });
        self.is_locked.store(false, Ordering::Release);
        result
    }

    /// A chunk of `bytes` bytes; null where there is none.
    fn take(&self, bytes: usize) -> *mut u8 {
        self.locked(|chunks| chunks.take(LINE + bytes.next_multiple_of(LINE)))
            .map_or(std::ptr::null_mut(), |at| Reserve::start().wrapping_add(at + LINE))
    }

    /// # Safety
    /// It was taken, and is not accessed any more.
    unsafe fn return_chunk(&self, chunk: *mut u8) {
        let at = chunk.addr() - Reserve::start().addr() - LINE;
        self.locked(|chunks| {
            let head = Chunks::head(at);
            // SAFETY: the header was written before the chunk.
            unsafe { (*head).is_taken = false };
            chunks.in_use -= 1;
            if chunks.in_use == 0 {
                chunks.end = 0;
            }
        });
    }
}

impl Chunks {
    fn head(at: usize) -> *mut ChunkHeader {
        Reserve::start().wrapping_add(at).cast()
    }

    /// The offset of a new chunk of `step` bytes, header included.
    fn take(&mut self, step: usize) -> Option<usize> {
        let at = if RESERVE_BYTES - self.end >= step { self.end } else { self.find(step)? };
        if at == self.end {
            self.end += step;
            // SAFETY: there is unused room for a header, aligned to a line.
            unsafe { Chunks::head(at).write(ChunkHeader { step, is_taken: true }) };
        }
        self.in_use += 1;
        Some(at)
    }

    /// Finds the first free chunk that is large enough and splits off its rest. Adjacent free chunks are merged on the
    /// way.
    fn find(&mut self, step: usize) -> Option<usize> {
        let mut at = 0;
        while at < self.end {
            // SAFETY: headers were written from the first to the end, each where the previous one says.
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
                    // SAFETY: steps are whole lines, so that the rest has room for a header.
                    unsafe {
                        Chunks::head(at + step).write(ChunkHeader { step: head.step - step, is_taken: false })
                    };
                }
                *head = ChunkHeader { step, is_taken: true };
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

    /// An allocator without memory.
    struct Nothing;

    // SAFETY: it never returns memory.
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
                // Twice as many as there is room for; every other one is freed at once.
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
        SPARE.locked(|chunks| assert_eq!((chunks.in_use, chunks.end), (0, 0)));
    }
}
