//! The threads of the CPU backend: a pool of its own, started when first needed.

use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Where a kernel may run its chunks. The backend chooses, kernels obey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Par {
    /// On the calling thread only.
    Serial,
    /// On the calling thread and those of the pool.
    Pool,
}

impl Par {
    /// How many threads there are to share work. Only work whose result does not depend on how it is shared may be
    /// cut by it.
    pub(crate) fn threads(self) -> usize {
        match self {
            Par::Serial => 1,
            Par::Pool => 1 + pool().map_or(0, ThreadPool::current_num_threads),
        }
    }

    /// Calls `work` with every chunk of `0..n`, each of `grain` elements but the last.
    ///
    /// The chunks are the same whatever the number of threads, so results that depend on the chunks do not
    /// depend on the threads. A panic in a chunk unwinds out of this call, when all threads have left it.
    pub(crate) fn for_chunks(self, n: usize, grain: usize, work: impl Fn(Range<usize>) + Sync) {
        let grain = grain.max(1);
        let chunks = n.div_ceil(grain);
        let chunk = |index: usize| {
            let start = index * grain;
            work(start..n.min(start + grain));
        };
        let pool = match self {
            Par::Pool if chunks > 1 => pool(),
            Par::Pool | Par::Serial => None,
        };
        let Some(pool) = pool else {
            (0..chunks).for_each(chunk);
            return;
        };
        // Whoever is free takes the next chunk; the caller works too instead of waiting for a thread to wake.
        let next = AtomicUsize::new(0);
        let drain = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= chunks {
                    return;
                }
                chunk(index);
            }
        };
        pool.in_place_scope(|scope| {
            for _ in 0..pool.current_num_threads().min(chunks - 1) {
                scope.spawn(|_| drain());
            }
            drain();
        });
    }
}

struct Entry {
    process: u32,
    pool: Option<ThreadPool>,
}

/// The pool: as many threads as the affinity and the quota of the process allow, less the caller. None where
/// that leaves no thread.
fn pool() -> Option<&'static ThreadPool> {
    static ENTRY: AtomicPtr<Entry> = AtomicPtr::new(std::ptr::null_mut());
    let process = std::process::id();
    let current = ENTRY.load(Ordering::Acquire);
    // SAFETY: entries are published whole and never freed.
    if let Some(entry) = unsafe { current.as_ref() }
        && entry.process == process
    {
        return entry.pool.as_ref();
    }
    // First use, or a forked child, which has none of its parent's threads: the parent's entry is left as
    // it is, since dropping it would wait for them.
    let entry = Box::into_raw(Box::new(Entry { process, pool: build() }));
    match ENTRY.compare_exchange(current, entry, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            // SAFETY: just made, and never freed from now on.
            unsafe { &*entry }.pool.as_ref()
        }
        Err(other) => {
            // SAFETY: it was not published, so that this is the only pointer to it.
            drop(unsafe { Box::from_raw(entry) });
            // SAFETY: published entries are never freed.
            unsafe { &*other }.pool.as_ref()
        }
    }
}

fn build() -> Option<ThreadPool> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    if threads < 2 {
        return None;
    }
    // A system that grants no threads still computes, on the caller's.
    ThreadPoolBuilder::new()
        .num_threads(threads - 1)
        .thread_name(|index| format!("defn-cpu-{index}"))
        .build()
        .ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn chunks_of(par: Par, n: usize, grain: usize) -> Vec<Range<usize>> {
        let seen = Mutex::new(Vec::new());
        par.for_chunks(n, grain, |chunk| seen.lock().unwrap().push(chunk));
        let mut seen = seen.into_inner().unwrap();
        seen.sort_by_key(|chunk| chunk.start);
        seen
    }

    #[test]
    fn chunks_do_not_depend_on_the_threads() {
        for (n, grain) in [(0, 4), (1, 4), (4, 4), (1000, 7), (5, 0)] {
            assert_eq!(chunks_of(Par::Serial, n, grain), chunks_of(Par::Pool, n, grain));
        }
        assert_eq!(chunks_of(Par::Pool, 10, 4), [0..4, 4..8, 8..10]);
    }

    #[test]
    fn several_threads_and_nested_calls_share_the_pool() {
        let total = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    Par::Pool.for_chunks(64, 1, |_| {
                        Par::Pool.for_chunks(100, 10, |chunk| {
                            total.fetch_add(chunk.len(), Ordering::Relaxed);
                        });
                    });
                });
            }
        });
        assert_eq!(total.into_inner(), 4 * 64 * 100);
    }

    #[test]
    fn a_panic_comes_out_and_the_pool_goes_on() {
        let caught = std::panic::catch_unwind(|| {
            Par::Pool.for_chunks(100, 1, |chunk| assert_ne!(chunk.start, 50));
        });
        assert!(caught.is_err());
        assert_eq!(chunks_of(Par::Pool, 100, 1).len(), 100);
    }
}
