//! The thread pool of the CPU backend, which starts its threads when they are first needed.
//!
//! The calling thread works on its call, and idle threads of the pool join it. The call does not wait for threads that
//! have not joined: to wake a thread takes as long as tens of thousands of additions. A thread spins for a while before
//! it sleeps, so that the next call finds it awake.
//!
//! The number of threads is read anew for each call; the pool has the most that any call has requested. A parallel call
//! inside a chunk is shared by the idle threads of the outer call.
//!
//! Between chunks the calling thread polls whether to go on ([`set_poll`]). If not, all threads leave the call before
//! their next chunk, and the error unwinds to [`interruptible`].

mod poll;

use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use defn_core::Result;
use defn_core::memory::{forget_shortage, is_short};

use crate::modes::set_defaults;
use crate::{memory, settings};
pub use poll::set_poll;
use poll::{IS_OF_POOL, poll_if_due, unwind_if_stopped};
pub(crate) use poll::{interruptible, poll_within_chunk};

/// Where a kernel may run its chunks. The backend chooses; kernels comply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Par {
    /// On the calling thread only.
    Serial,
    /// On the calling thread and those of the pool.
    Pool,
}

/// A kernel's work on a chunk. As `dyn Fn`, each kernel would have two more functions, which nobody calls.
trait ChunkFn: Sync {
    fn call(&self, chunk: Range<usize>);
}

impl<F: Fn(Range<usize>) + Sync> ChunkFn for F {
    fn call(&self, chunk: Range<usize>) {
        self(chunk);
    }
}

/// The most shares into which the chunks of a call are divided.
const MAX_RANGES: usize = 64;

/// The number of threads that the program has set, or 0.
static REQUESTED_THREADS: AtomicUsize = AtomicUsize::new(0);

/// The default number of threads, or 0 before it was determined.
static DEFAULT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The number of threads set for calls of this thread, or 0.
    static COUNT: Cell<usize> = const { Cell::new(0) };

    /// The team of which this thread is a member.
    static TEAM: Cell<*const Team> = const { Cell::new(std::ptr::null()) };
}

/// Sets how many threads share the work of one call, the calling thread included, where no narrower setting applies.
/// None restores the default, which is determined anew. Returns the previous setting.
///
/// The default is `DEFN_THREADS` if set, else the number of processors that the affinity and the quota of the process
/// allow. There may be more threads than processors. Results do not depend on the number.
///
/// # Errors
/// No thread at all, more than 1,024, or an invalid value in one of our environment variables.
pub fn set_threads(count: Option<usize>) -> Result<Option<usize>> {
    settings::check()?;
    let count = count.map(|count| settings::checked_thread_count("set_threads", count)).transpose()?;
    if count.is_none() {
        DEFAULT.store(0, Ordering::Relaxed);
    }
    let before = REQUESTED_THREADS.swap(count.map_or(0, NonZeroUsize::get), Ordering::Relaxed);
    Ok((before != 0).then_some(before))
}

/// How many threads share the work of a call that this thread makes now.
///
/// # Errors
/// An invalid value in one of our environment variables.
pub fn threads() -> Result<usize> {
    settings::check()?;
    Ok(count())
}

/// Runs `body` so that `count` threads share the work of each call that it makes on this thread.
///
/// # Errors
/// As [`set_threads`].
pub fn with_threads<T>(count: usize, body: impl FnOnce() -> T) -> Result<T> {
    let _count = ThreadCount::new(count)?;
    Ok(body())
}

/// Sets how many threads share the work of each call that this thread makes, until the guard is dropped.
#[derive(Debug)]
pub struct ThreadCount {
    before: usize,
    /// Not `Send`: the guard belongs to the thread that made it.
    here: PhantomData<*const ()>,
}

impl ThreadCount {
    /// Sets the number of threads, the calling thread included.
    ///
    /// # Errors
    /// As [`set_threads`].
    pub fn new(count: usize) -> Result<ThreadCount> {
        settings::check()?;
        Ok(ThreadCount::set(settings::checked_thread_count("with_threads", count)?))
    }

    fn set(count: NonZeroUsize) -> ThreadCount {
        ThreadCount { before: COUNT.replace(count.get()), here: PhantomData }
    }
}

impl Drop for ThreadCount {
    fn drop(&mut self) {
        COUNT.set(self.before);
    }
}

/// As [`with_threads`].
pub(crate) fn with_count<T>(count: NonZeroUsize, body: impl FnOnce() -> T) -> T {
    let _count = ThreadCount::set(count);
    body()
}

/// How many threads share a call of this thread.
fn count() -> usize {
    let team = TEAM.get();
    if !team.is_null() {
        // SAFETY: a team outlives the calls of its members, and a thread is a member only during these.
        return unsafe { (*team).count };
    }
    match (COUNT.get(), REQUESTED_THREADS.load(Ordering::Relaxed), DEFAULT.load(Ordering::Relaxed)) {
        (0, 0, 0) => {
            let count = settings::threads().unwrap_or_else(|| {
                std::thread::available_parallelism().map_or(1, usize::from).min(settings::MAX_THREADS)
            });
            DEFAULT.store(count, Ordering::Relaxed);
            count
        }
        (0, 0, count) | (0, count, _) | (count, _, _) => count,
    }
}

/// The threads of one call and of all calls nested in it: together they are at most `count`.
struct Team {
    count: usize,
    /// How many helpers may still join.
    free: AtomicUsize,
    /// Whether the remaining chunks are skipped.
    is_stopped: AtomicBool,
    /// Whether an allocation of a helper found no memory.
    is_short: AtomicBool,
}

impl Team {
    /// Whether to run the next chunk; polls if that is due.
    fn should_continue(&self) -> bool {
        poll_if_due(Some(self));
        !self.is_stopped.load(Ordering::Relaxed)
    }

    /// Reserves up to `helpers` helpers; returns the number that may join.
    fn reserve_helpers(&self, helpers: usize) -> usize {
        let take = |free: usize| (free > 0).then(|| free - free.min(helpers));
        match self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(free) => free.min(helpers),
            Err(_) => 0,
        }
    }
}

/// Makes the thread a member of a team until it is dropped.
struct Member(*const Team);

impl Member {
    fn of(team: *const Team) -> Member {
        Member(TEAM.replace(team))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        TEAM.set(self.0);
    }
}

impl Par {
    /// The number of threads that share work. Only work whose result does not depend on the division may be divided by
    /// it, and no workspace may be sized by it: the next call may find another number.
    pub(crate) fn threads(self) -> usize {
        match self {
            Par::Serial => 1,
            Par::Pool => count(),
        }
    }

    /// Calls `work` with each chunk of `0..n`; all have `grain` elements, but the last may have fewer.
    ///
    /// The chunks do not depend on the number of threads, and so results that depend on the chunks do not depend on the
    /// threads either. A panic in a chunk unwinds out of this call when all threads have left it; so does an error that
    /// stops the work ([`interruptible`]).
    #[inline]
    pub(crate) fn for_chunks(self, n: usize, grain: usize, work: impl Fn(Range<usize>) + Sync) {
        // There are a thousand kernels; the function that shares their chunks is compiled once.
        self.share_chunks(n, grain, &work);
    }

    fn share_chunks(self, n: usize, grain: usize, work: &dyn ChunkFn) {
        let grain = grain.max(1);
        let chunks = n.div_ceil(grain);
        let chunk = |index: usize| {
            let start = index * grain;
            work.call(start..n.min(start + grain));
        };
        if self == Par::Serial {
            (0..chunks).for_each(chunk);
            return;
        }
        let alone = |index: usize| {
            poll_if_due(None);
            chunk(index);
        };
        if chunks <= 1 {
            (0..chunks).for_each(alone);
            return;
        }
        let team = TEAM.get();
        if !team.is_null() {
            // SAFETY: a team outlives the calls of its members.
            run_chunks(unsafe { &*team }, chunks, &chunk);
            return;
        }
        match count() {
            1 => (0..chunks).for_each(alone),
            count => {
                let team = Team {
                    count,
                    free: AtomicUsize::new(count - 1),
                    is_stopped: AtomicBool::new(false),
                    is_short: AtomicBool::new(false),
                };
                let _member = Member::of(&raw const team);
                run_chunks(&team, chunks, &chunk);
            }
        }
    }
}

/// Runs all chunks on the members of a team that join.
fn run_chunks(team: &Team, chunks: usize, chunk: &(dyn Fn(usize) + Sync)) {
    let helpers = team.reserve_helpers(chunks - 1);
    let pool = if helpers > 0 { pool(team.count - 1) } else { None };
    let Some(pool) = pool else {
        team.free.fetch_add(helpers, Ordering::Relaxed);
        (0..chunks).take_while(|_| team.should_continue()).for_each(chunk);
        return unwind_if_stopped(team);
    };
    // Each thread has its own share, which is the same in every call on as much memory, since its caches may hold it. A
    // thread that has finished its share continues with the others.
    let ranges = (1 + helpers).min(MAX_RANGES);
    let first = |range: usize| range * (chunks / ranges) + range.min(chunks % ranges);
    let next: [AtomicUsize; MAX_RANGES] = std::array::from_fn(|range| AtomicUsize::new(first(range)));
    let drain = |thread: usize| {
        // The first range is the caller's, whose index is 0.
        let own = if thread < ranges { thread } else { 1 + (thread - 1) % (ranges - 1) };
        for range in (0..ranges).map(|offset| (own + offset) % ranges) {
            loop {
                let index = next[range].fetch_add(1, Ordering::Relaxed);
                if index >= first(range + 1) {
                    break;
                }
                if !team.should_continue() {
                    return;
                }
                chunk(index);
            }
        }
    };
    #[cfg(test)]
    let level = crate::kernels::tested();
    #[cfg(test)]
    let drain = |thread: usize| crate::kernels::at_tested(level, || drain(thread));
    pool.run(team, helpers, &drain);
    unwind_if_stopped(team);
}

/// How long a thread spins before it sleeps.
const SPIN_BEFORE_SLEEP: Duration = Duration::from_micros(200);

/// How long a caller spins for the threads that still run its chunks, before it sleeps.
const SPIN_FOR_HELPERS: Duration = Duration::from_micros(20);

/// The number of threads that a call wakes, and that each joining thread wakes.
const WAKES: usize = 2;

/// One parallel call: threads that join call the same function with their index.
struct Job {
    /// Valid until the job is closed and all threads have left.
    work: *const (dyn Fn(usize) + Sync),
    /// Valid as long.
    team: *const Team,
    /// How many threads have joined and not left.
    inside: AtomicUsize,
    /// The payload of the first panic of a helper.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// A job that threads may join.
struct OpenJob {
    job: *const Job,
    /// How many threads may still join.
    vacancies: usize,
}

// SAFETY: a job is removed before it is dropped, and any thread may use all of it.
unsafe impl Send for OpenJob {}

/// The state that the lock protects.
struct State {
    open: Vec<OpenJob>,
    asleep: usize,
}

struct Pool {
    /// The number of threads started.
    threads: AtomicUsize,
    /// Held while threads are started.
    growing: Mutex<()>,
    /// Whether the system has refused to start a thread.
    is_full: AtomicBool,
    state: Mutex<State>,
    /// The sum of the `vacancies` of all open jobs; idle threads spin on it.
    vacancies: AtomicUsize,
    /// The number of callers that wait for threads to leave.
    waiting: AtomicUsize,
    /// Signals a job to join.
    posted: Condvar,
    /// Signals that the last thread has left a job.
    left: Condvar,
}

/// Spins until `holds` is true or the time has passed; returns whether it is true. Yields to threads that have work.
fn spin_until(time: Duration, holds: impl Fn() -> bool) -> bool {
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

/// Takes a lock whose critical sections are short and never panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// A pool without threads.
    fn new() -> Pool {
        Pool {
            threads: AtomicUsize::new(0),
            growing: Mutex::new(()),
            is_full: AtomicBool::new(false),
            state: Mutex::new(State { open: Vec::new(), asleep: 0 }),
            vacancies: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            posted: Condvar::new(),
            left: Condvar::new(),
        }
    }

    /// Starts threads until there are `wanted`. If the system refuses, calls still run, on the caller's thread.
    fn grow(&'static self, wanted: usize) {
        if self.threads() >= wanted || self.is_full.load(Ordering::Relaxed) {
            return;
        }
        let _growing = lock(&self.growing);
        for thread in 1 + self.threads()..=wanted {
            let named = std::thread::Builder::new().name(format!("defn-cpu-{thread}"));
            if named.spawn(move || self.serve(thread)).is_err() {
                self.is_full.store(true, Ordering::Relaxed);
                return;
            }
            self.threads.fetch_add(1, Ordering::Release);
        }
    }

    /// The number of threads.
    fn threads(&self) -> usize {
        self.threads.load(Ordering::Acquire)
    }

    /// Calls `work` with 0 on this thread, and on at most `helpers` threads that join before it returns. These helpers
    /// were reserved in the team and are released here.
    fn run(&self, team: &Team, helpers: usize, work: &(dyn Fn(usize) + Sync)) {
        let work: *const (dyn Fn(usize) + Sync + '_) = work;
        // SAFETY: only the lifetime changes; this call returns after the last use.
        let work = unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), *const _>(work) };
        let team: *const Team = team;
        let job = Job { work, team, inside: AtomicUsize::new(0), panic: Mutex::new(None) };
        let mut state = lock(&self.state);
        state.open.push(OpenJob { job: &raw const job, vacancies: helpers });
        self.vacancies.fetch_add(helpers, Ordering::Relaxed);
        let wakes = state.asleep.min(helpers).min(WAKES);
        drop(state);
        (0..wakes).for_each(|_| self.posted.notify_one());

        // SAFETY: the caller's reference lives as long as this call.
        let own = catch_unwind(AssertUnwindSafe(|| unsafe { (*work)(0) }));

        let mut state = lock(&self.state);
        let index = state.open.iter().position(|open| std::ptr::eq(open.job, &job));
        let closed = state.open.swap_remove(index.expect("an open job"));
        self.vacancies.fetch_sub(closed.vacancies, Ordering::Relaxed);
        drop(state);
        // SAFETY: the caller's reference lives as long as this call.
        unsafe { &*team }.free.fetch_add(closed.vacancies, Ordering::Relaxed);
        let alone = || job.inside.load(Ordering::SeqCst) == 0;
        if !spin_until(SPIN_FOR_HELPERS, alone) {
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

    /// The main loop of a thread of the pool.
    fn serve(&self, thread: usize) -> ! {
        IS_OF_POOL.set(true);
        set_defaults();
        loop {
            let mut state = lock(&self.state);
            let Some(open) = state.open.iter_mut().rev().find(|open| open.vacancies > 0) else {
                drop(state);
                if spin_until(SPIN_BEFORE_SLEEP, || self.vacancies.load(Ordering::Relaxed) > 0) {
                    continue;
                }
                let mut state = lock(&self.state);
                if state.open.iter().all(|open| open.vacancies == 0) {
                    state.asleep += 1;
                    let woken = self.posted.wait_timeout(state, memory::MAX_IDLE_TIME);
                    let (mut state, waited) = woken.unwrap_or_else(PoisonError::into_inner);
                    state.asleep -= 1;
                    drop(state);
                    // One of the threads frees memory that was not used for long.
                    if waited.timed_out() && thread == 1 {
                        memory::give_back_old();
                    }
                }
                continue;
            };
            open.vacancies -= 1;
            self.vacancies.fetch_sub(1, Ordering::Relaxed);
            let (job, vacancies) = (open.job, open.vacancies);
            // SAFETY: the job is open, so it is alive, and the caller waits until all threads have left.
            let job = unsafe { &*job };
            job.inside.fetch_add(1, Ordering::SeqCst);
            let wakes = state.asleep.min(vacancies).min(WAKES);
            drop(state);
            (0..wakes).for_each(|_| self.posted.notify_one());
            let member = Member::of(job.team);
            // SAFETY: as above.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| unsafe { (*job.work)(thread) })) {
                lock(&job.panic).get_or_insert(panic);
            }
            drop(member);
            // SAFETY: as above; the team lives as long.
            let team = unsafe { &*job.team };
            if is_short() {
                forget_shortage();
                team.is_short.store(true, Ordering::Relaxed);
            }
            team.free.fetch_add(1, Ordering::Relaxed);
            // The job may be gone after this line.
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

/// The pool, with `wanted` threads or those that the system grants. None if it grants none.
fn pool(wanted: usize) -> Option<&'static Pool> {
    static ENTRY: AtomicPtr<Entry> = AtomicPtr::new(std::ptr::null_mut());
    let process = std::process::id();
    let current = ENTRY.load(Ordering::Acquire);
    // SAFETY: entries are published complete and never freed.
    let mut entry = unsafe { current.as_ref() }.filter(|entry| entry.process == process);
    if entry.is_none() {
        // First use, or a forked child, which has none of its parent's threads. The parent's entry is not touched.
        let fresh = Box::into_raw(Box::new(Entry { process, pool: Pool::new() }));
        entry = match ENTRY.compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                // SAFETY: it is new, and never freed once published.
                Some(unsafe { &*fresh })
            }
            Err(other) => {
                // SAFETY: it was not published, so this is the only pointer to it.
                drop(unsafe { Box::from_raw(fresh) });
                // SAFETY: published entries are never freed.
                Some(unsafe { &*other })
            }
        };
    }
    let pool = &entry?.pool;
    pool.grow(wanted);
    (pool.threads() > 0).then_some(pool)
}

#[cfg(test)]
mod tests;
