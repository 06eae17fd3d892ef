//! Memory that each thread keeps from one run of a nest to the next.

use std::cell::Cell;

/// A line of the cache, which the memory begins at.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line {
    _bytes: [u8; LINE],
}

/// Bytes of a line.
const LINE: usize = 64;

thread_local! {
    static MEMORY: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// Calls `work` with so many bytes of this thread's own, all of which have been written once.
pub(crate) fn with_thread_memory(bytes: usize, work: impl FnOnce(*mut u8)) {
    let mut memory = Taken::of(bytes);
    work(memory.0.as_mut_ptr().cast());
}

/// This thread's memory while it is used. A nest that is run meanwhile on this thread has other memory.
struct Taken(Vec<Line>);

impl Taken {
    #[inline(never)]
    fn of(bytes: usize) -> Taken {
        let mut memory = MEMORY.take();
        let lines = bytes.div_ceil(LINE);
        if memory.len() < lines {
            memory.resize(lines, Line { _bytes: [0; LINE] });
        }
        Taken(memory)
    }
}

impl Drop for Taken {
    #[inline(never)]
    fn drop(&mut self) {
        MEMORY.set(std::mem::take(&mut self.0));
    }
}
