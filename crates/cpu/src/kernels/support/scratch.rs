//! Scratch memory that threads share: equal pieces, each used by one thread at a time.
//!
//! The number of pieces depends only on the work, so that memory can be planned. Threads beyond that number do not
//! help.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Plain, SendPtr};
use crate::par::{Par, poll_within_chunk};

/// The most pieces.
const MAX_PIECES: usize = 32;

/// The bytes that all pieces together may have for any result.
const BASE_SCRATCH_BYTES: usize = 16 << 20;

/// The number of pieces of `piece` bytes for `tasks` tasks with a result of `result` bytes. Together they take at most
/// [`BASE_SCRATCH_BYTES`] or an eighth of the result, whichever is more; but two pieces are always allowed.
pub(crate) fn count(tasks: usize, piece: usize, result: usize, par: Par) -> usize {
    let few = if par == Par::Serial { 1 } else { tasks.min(MAX_PIECES) };
    (BASE_SCRATCH_BYTES.max(result / 8) / piece.max(1)).max(2).min(few)
}

/// Calls `work` with pieces of `piece` elements of `memory` and the tasks to run in each. Every task runs once; their
/// order is not defined.
pub(crate) fn share<T: Plain>(
    par: Par,
    tasks: usize,
    (memory, piece): (&mut [MaybeUninit<T>], usize),
    work: impl Fn(&mut [MaybeUninit<T>], &mut dyn Iterator<Item = usize>) + Sync,
) {
    let count = memory.len().checked_div(piece).map_or(MAX_PIECES, |count| count.min(MAX_PIECES));
    assert!(count > 0 || tasks == 0, "{piece} elements of {}", memory.len());
    let start = SendPtr::of(memory);
    let next = AtomicUsize::new(0);
    let take = || {
        poll_within_chunk();
        Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&task| task < tasks)
    };
    par.for_chunks(count.min(tasks), 1, |index| {
        let Some(first) = take() else { return };
        // SAFETY: pieces are disjoint and in bounds, and the memory is borrowed mutably meanwhile.
        let own = unsafe { start.part(index.start * piece, piece) };
        work(own, &mut std::iter::once(first).chain(std::iter::from_fn(take)));
    });
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
        assert_eq!(count(100, 1 << 10, 1 << 20, Par::Pool), MAX_PIECES);
        assert_eq!(count(5, 1 << 10, 1 << 20, Par::Pool), 5);
        assert_eq!(count(100, 8 << 20, 1 << 20, Par::Pool), 2);
        assert_eq!(count(100, 64 << 20, 1 << 30, Par::Pool), 2);
        assert_eq!(count(100, 8 << 20, 1 << 30, Par::Pool), 16);
        assert_eq!(count(100, 8 << 20, 1 << 30, Par::Serial), 1);
    }
}
