//! Memory that threads take turns at: some equal pieces, each of which one thread works in at a time.
//!
//! How many there are follows from what is computed alone, so that memory can be planned; more threads than pieces do
//! not help.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Plain;
use crate::par::{Par, breathe};

/// Pieces at most.
const MOST: usize = 32;

/// Bytes of all pieces, from which on fewer have to do.
const BYTES: usize = 16 << 20;

/// How many pieces of so many bytes some tasks are worth, which make a result of `result` bytes: together they take up
/// to an eighth of that, where more than two threads can still work.
pub(crate) fn count(tasks: usize, piece: usize, result: usize, par: Par) -> usize {
    let few = if par == Par::Serial { 1 } else { tasks.min(MOST) };
    (BYTES.max(result / 8) / piece.max(1)).max(2).min(few)
}

/// Calls `work` with pieces of `piece` elements of `memory` and the tasks that are done in each. Every task is done
/// once; tasks are done in any order.
pub(crate) fn share<T: Plain>(
    par: Par,
    tasks: usize,
    (memory, piece): (&mut [MaybeUninit<T>], usize),
    work: impl Fn(&mut [MaybeUninit<T>], &mut dyn Iterator<Item = usize>) + Sync,
) {
    let count = memory.len().checked_div(piece).map_or(MOST, |count| count.min(MOST));
    assert!(count > 0 || tasks == 0, "{piece} elements of {}", memory.len());
    let start = Start(memory.as_mut_ptr());
    let next = AtomicUsize::new(0);
    let take = || {
        breathe();
        Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&task| task < tasks)
    };
    par.for_chunks(count.min(tasks), 1, |index| {
        let Some(first) = take() else { return };
        // SAFETY: pieces are disjoint and inside, and the memory is borrowed mutably meanwhile.
        let own = unsafe { start.piece(index.start * piece, piece) };
        work(own, &mut std::iter::once(first).chain(std::iter::from_fn(take)));
    });
}

/// Where the pieces begin.
struct Start<T>(*mut MaybeUninit<T>);

// SAFETY: threads use disjoint pieces.
unsafe impl<T: Send> Sync for Start<T> {}

impl<T> Start<T> {
    /// # Safety
    /// The range is inside the memory, and nobody else uses it meanwhile.
    #[expect(clippy::mut_from_ref, reason = "the caller keeps pieces disjoint")]
    unsafe fn piece(&self, start: usize, len: usize) -> &mut [MaybeUninit<T>] {
        // SAFETY: as the caller promises.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), len) }
    }
}

/// Fills a piece.
pub(crate) fn filled<T: Plain>(piece: &mut [MaybeUninit<T>], value: T) -> &mut [T] {
    piece.fill(MaybeUninit::new(value));
    // SAFETY: just written.
    unsafe { piece.assume_init_mut() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_done_once() {
        for par in [Par::Serial, Par::Pool] {
            for (tasks, len, piece) in [(0, 0, 3), (1, 3, 3), (100, 7, 3), (5, 0, 0), (1000, 96, 1)] {
                let done: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                let mut memory = vec![MaybeUninit::new(0_u32); len];
                share(par, tasks, (&mut memory, piece), |own, tasks| {
                    let own = filled(own, 1);
                    for task in tasks {
                        assert_eq!(own.iter().sum::<u32>() as usize % piece.max(1), 0);
                        done[task].fetch_add(1, Ordering::Relaxed);
                    }
                });
                assert!(done.into_iter().all(|count| count.into_inner() == 1), "{tasks} in {len} of {piece}");
            }
        }
    }

    #[test]
    fn pieces_are_few_where_they_are_large() {
        assert_eq!(count(100, 1 << 10, 1 << 20, Par::Pool), MOST);
        assert_eq!(count(5, 1 << 10, 1 << 20, Par::Pool), 5);
        assert_eq!(count(100, 8 << 20, 1 << 20, Par::Pool), 2);
        assert_eq!(count(100, 64 << 20, 1 << 30, Par::Pool), 2);
        assert_eq!(count(100, 8 << 20, 1 << 30, Par::Pool), 16);
        assert_eq!(count(100, 8 << 20, 1 << 30, Par::Serial), 1);
    }
}
