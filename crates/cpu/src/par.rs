//! The threads of the CPU backend: a pool of its own, started when first needed.
//!
//! A call does its work itself, and threads that are free join it meanwhile. None is waited for that has not
//! come: to wake one takes as long as tens of thousands of sums. A thread looks out for more work for a while
//! before it sleeps, so that calls which follow one another find it awake.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Where a kernel may run its chunks. The backend chooses, kernels obey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Par {
    /// On the calling thread only.
    Serial,
    /// On the calling thread and those of the pool.
    Pool,
}

/// Shares of the chunks of one call, at most.
const SHARES: usize = 64;

impl Par {
    /// How many threads there are to share work. Only work whose result does not depend on how it is shared may be
    /// cut by it.
    pub(crate) fn threads(self) -> usize {
        match self {
            Par::Serial => 1,
            Par::Pool => 1 + pool().map_or(0, |pool| pool.threads()),
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
        // Each thread has a share of its own, the same in every call on as much memory, which may be in its
        // caches. When it is done it helps the others.
        let shares = chunks.min(1 + pool.threads()).min(SHARES);
        let first = |share: usize| share * (chunks / shares) + share.min(chunks % shares);
        let next: [AtomicUsize; SHARES] = std::array::from_fn(|share| AtomicUsize::new(first(share)));
        let drain = |thread: usize| {
            for share in (0..shares).map(|place| (thread + place) % shares) {
                loop {
                    let index = next[share].fetch_add(1, Ordering::Relaxed);
                    if index >= first(share + 1) {
                        break;
                    }
                    chunk(index);
                }
            }
        };
        pool.run(shares - 1, &drain);
    }
}

/// How long a thread looks out for work before it sleeps.
const AWAKE: Duration = Duration::from_micros(200);

/// How long a caller looks out for the threads that are still at its work.
const PATIENCE: Duration = Duration::from_micros(20);

/// Threads that a call wakes, and each of those that come to it.
const WAKES: usize = 2;

/// Something threads do together: the same call on each, with a number of the thread.
struct Job {
    /// Lives until the job is closed and left.
    work: *const (dyn Fn(usize) + Sync),
    /// How many threads have joined and not left.
    inside: AtomicUsize,
    /// What a thread panicked with.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// A job that threads may join.
struct Open {
    job: *const Job,
    /// How many may.
    room: usize,
}

// SAFETY: a job is removed before its memory is gone, and all of it can be used by any thread.
unsafe impl Send for Open {}

/// What the threads know of each other.
struct State {
    open: Vec<Open>,
    asleep: usize,
}

struct Pool {
    /// How many were started.
    threads: AtomicUsize,
    state: Mutex<State>,
    /// The room of all open jobs: what threads that are awake look at.
    room: AtomicUsize,
    /// Callers that wait for threads to leave.
    waiting: AtomicUsize,
    /// There is a job to join.
    posted: Condvar,
    /// A job was left by the last thread.
    left: Condvar,
}

/// Waits until something holds, or for so long; says whether it does. Threads that have work go first.
fn look_out(time: Duration, holds: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    loop {
        for _ in 0..16 {
            if holds() {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() >= time {
            return false;
        }
        std::thread::yield_now();
    }
}

/// A lock that is held for a few steps, none of which panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// A pool without threads.
    fn new() -> Pool {
        Pool {
            threads: AtomicUsize::new(0),
            state: Mutex::new(State { open: Vec::new(), asleep: 0 }),
            room: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            posted: Condvar::new(),
            left: Condvar::new(),
        }
    }

    /// Starts the threads. A system that grants none still computes, on the caller's.
    fn start(&'static self) {
        let wanted = std::thread::available_parallelism().map_or(1, usize::from);
        for thread in 1..wanted {
            let named = std::thread::Builder::new().name(format!("defn-cpu-{thread}"));
            if named.spawn(move || self.serve(thread)).is_err() {
                return;
            }
            self.threads.fetch_add(1, Ordering::Release);
        }
    }

    /// How many threads there are.
    fn threads(&self) -> usize {
        self.threads.load(Ordering::Acquire)
    }

    /// Calls `work` on this thread, with 0, and on those that come before it returns, at most `helpers`.
    fn run(&self, helpers: usize, work: &(dyn Fn(usize) + Sync)) {
        let work: *const (dyn Fn(usize) + Sync + '_) = work;
        // SAFETY: only the lifetime changes; this call returns when nobody uses it any more.
        let work = unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), *const _>(work) };
        let job = Job { work, inside: AtomicUsize::new(0), panic: Mutex::new(None) };
        let mut state = lock(&self.state);
        state.open.push(Open { job: &raw const job, room: helpers });
        self.room.fetch_add(helpers, Ordering::Relaxed);
        let wakes = state.asleep.min(helpers).min(WAKES);
        drop(state);
        (0..wakes).for_each(|_| self.posted.notify_one());

        // SAFETY: the reference that was given lives as long as this call.
        let own = catch_unwind(AssertUnwindSafe(|| unsafe { (*work)(0) }));

        let mut state = lock(&self.state);
        let place = state.open.iter().position(|open| std::ptr::eq(open.job, &job));
        let closed = state.open.swap_remove(place.expect("an open job"));
        self.room.fetch_sub(closed.room, Ordering::Relaxed);
        drop(state);
        let alone = || job.inside.load(Ordering::SeqCst) == 0;
        if !look_out(PATIENCE, alone) {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let mut state = lock(&self.state);
            while !alone() {
                state = self.left.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            drop(state);
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        let theirs = job.panic.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(panic) = own.err().or(theirs) {
            resume_unwind(panic);
        }
    }

    /// What a thread does, for ever.
    fn serve(&self, thread: usize) -> ! {
        loop {
            let mut state = lock(&self.state);
            let Some(open) = state.open.iter_mut().rev().find(|open| open.room > 0) else {
                drop(state);
                if look_out(AWAKE, || self.room.load(Ordering::Relaxed) > 0) {
                    continue;
                }
                let mut state = lock(&self.state);
                if state.open.iter().all(|open| open.room == 0) {
                    state.asleep += 1;
                    state = self.posted.wait(state).unwrap_or_else(PoisonError::into_inner);
                    state.asleep -= 1;
                }
                continue;
            };
            open.room -= 1;
            self.room.fetch_sub(1, Ordering::Relaxed);
            let (job, room) = (open.job, open.room);
            // SAFETY: the job is open, so its memory is there, and the caller waits until all have left.
            let job = unsafe { &*job };
            job.inside.fetch_add(1, Ordering::SeqCst);
            let wakes = state.asleep.min(room).min(WAKES);
            drop(state);
            (0..wakes).for_each(|_| self.posted.notify_one());
            // SAFETY: as above.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| unsafe { (*job.work)(thread) })) {
                lock(&job.panic).get_or_insert(panic);
            }
            // The job may be gone from here on.
            if job.inside.fetch_sub(1, Ordering::SeqCst) == 1 && self.waiting.load(Ordering::SeqCst) > 0 {
                drop(lock(&self.state));
                self.left.notify_all();
            }
        }
    }
}

struct Entry {
    process: u32,
    pool: Pool,
}

/// The pool: as many threads as the affinity and the quota of the process allow, less the caller. None where
/// that leaves no thread.
fn pool() -> Option<&'static Pool> {
    static ENTRY: AtomicPtr<Entry> = AtomicPtr::new(std::ptr::null_mut());
    let process = std::process::id();
    let current = ENTRY.load(Ordering::Acquire);
    // SAFETY: entries are published whole and never freed.
    let mut entry = unsafe { current.as_ref() }.filter(|entry| entry.process == process);
    if entry.is_none() {
        // First use, or a forked child, which has none of its parent's threads: the parent's entry is left as it is.
        let fresh = Box::into_raw(Box::new(Entry { process, pool: Pool::new() }));
        entry = match ENTRY.compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                // SAFETY: just made, and never freed from now on.
                let entry: &'static Entry = unsafe { &*fresh };
                entry.pool.start();
                Some(entry)
            }
            Err(other) => {
                // SAFETY: it was not published, so that this is the only pointer to it.
                drop(unsafe { Box::from_raw(fresh) });
                // SAFETY: published entries are never freed.
                Some(unsafe { &*other })
            }
        };
    }
    entry.map(|entry| &entry.pool).filter(|pool| pool.threads() > 0)
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
    fn threads_join_and_leave_while_others_work() {
        let seen = Mutex::new(std::collections::HashSet::new());
        let total = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..500 {
                        Par::Pool.for_chunks(round % 50, 1, |chunk| {
                            lock(&seen).insert(std::thread::current().id());
                            total.fetch_add(chunk.len(), Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 4 * (0..500).map(|round| round % 50).sum::<usize>());
        assert!(seen.into_inner().unwrap().len() < 4 + Par::Pool.threads());
    }

    /// Calls `work` once on a thread of the pool, while the caller waits in its own chunk.
    fn on_another_thread(work: impl Fn() + Sync) {
        let come = AtomicUsize::new(0);
        let caller = std::thread::current().id();
        Par::Pool.for_chunks(2, 1, |_| {
            if std::thread::current().id() == caller {
                while come.load(Ordering::Relaxed) == 0 {
                    std::thread::yield_now();
                }
            } else if come.fetch_add(1, Ordering::Relaxed) == 0 {
                // It may take both chunks, if it is faster than the caller.
                work();
            }
        });
    }

    #[test]
    fn a_sleeping_thread_is_woken() {
        if Par::Pool.threads() == 1 {
            return;
        }
        let count = AtomicUsize::new(0);
        for _ in 0..3 {
            std::thread::sleep(4 * AWAKE);
            on_another_thread(|| {
                count.fetch_add(1, Ordering::Relaxed);
            });
        }
        assert_eq!(count.into_inner(), 3);
    }

    #[test]
    fn a_panic_of_another_thread_comes_out() {
        if Par::Pool.threads() == 1 {
            return;
        }
        let caught = std::panic::catch_unwind(|| {
            on_another_thread(|| {
                // The caller is done, and waits for this thread.
                std::thread::sleep(4 * PATIENCE);
                panic!("of another thread");
            });
        });
        assert_eq!(*caught.unwrap_err().downcast::<&str>().unwrap(), "of another thread");
        assert_eq!(chunks_of(Par::Pool, 100, 1).len(), 100);
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
