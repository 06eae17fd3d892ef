//! The compile lock of a function: two threads that need the same new version compile it once.
//!
//! The first thread compiles, which runs Python code. Other threads that need a version of the same hash wait until
//! that compilation has ended, whether it succeeded or failed. Then they look the version up again. A thread never
//! waits for itself. A thread also never waits for a thread that waits for it, directly or through other threads. In
//! these cases both compile, and one of the two versions is kept.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use rustc_hash::FxHashMap;

/// How often a waiting thread checks for signals.
const SIGNAL_PERIOD: Duration = Duration::from_millis(50);

/// The longest wait. The other compilation may need something that the waiting thread holds, such as a lock of the
/// user's.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The compilations of one function that are running.
#[derive(Default)]
pub(super) struct CompileLock {
    running: Mutex<Vec<Arc<Compilation>>>,
}

/// The compilation of one hash by one thread.
struct Compilation {
    hash: u64,
    thread: ThreadId,
    is_done: Mutex<bool>,
    done: Condvar,
}

/// The compilation that each waiting thread waits for.
static WAITING: Mutex<Option<FxHashMap<ThreadId, Arc<Compilation>>>> = Mutex::new(None);

/// The outcome of [`CompileLock::acquire`].
pub(super) enum Acquired<'a> {
    /// Another thread has compiled in the meantime.
    Waited,
    /// The caller compiles. The lock is held until the guard is dropped. Without a guard, the caller compiles although
    /// another thread holds the lock.
    Compile(Option<CompileGuard<'a>>),
}

/// Holds the lock of one hash until it is dropped.
pub(super) struct CompileGuard<'a> {
    lock: &'a CompileLock,
    compilation: Arc<Compilation>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the thread of a compilation waits for another thread, directly or through others.
fn waits_for(
    waiting: &FxHashMap<ThreadId, Arc<Compilation>>,
    compilation: &Arc<Compilation>,
    thread: ThreadId,
) -> bool {
    let mut at = compilation;
    // The loop ends because `acquire` never adds an edge that closes a cycle.
    while at.thread != thread {
        match waiting.get(&at.thread) {
            Some(next) => at = next,
            None => return false,
        }
    }
    true
}

impl CompileLock {
    /// Takes the lock of a hash, or waits until the thread that holds it is done. No mutex is held while waiting.
    ///
    /// # Errors
    /// What a signal handler raises during the wait.
    pub(super) fn acquire(&self, py: Python<'_>, hash: u64) -> PyResult<Acquired<'_>> {
        let thread = thread::current().id();
        let compilation = {
            let mut running = lock(&self.running);
            match running.iter().find(|compilation| compilation.hash == hash) {
                None => {
                    let (is_done, done) = (Mutex::new(false), Condvar::new());
                    let compilation = Arc::new(Compilation { hash, thread, is_done, done });
                    running.push(compilation.clone());
                    return Ok(Acquired::Compile(Some(CompileGuard { lock: self, compilation })));
                }
                Some(compilation) => compilation.clone(),
            }
        };
        {
            let mut waiting = lock(&WAITING);
            let waiting = waiting.get_or_insert_default();
            if waits_for(waiting, &compilation, thread) {
                return Ok(Acquired::Compile(None));
            }
            waiting.insert(thread, compilation.clone());
        }
        let ended = compilation.wait(py);
        let removed = lock(&WAITING).get_or_insert_default().remove(&thread);
        drop(removed);
        Ok(if ended? { Acquired::Waited } else { Acquired::Compile(None) })
    }
}

impl Compilation {
    /// Waits until the compilation is done or the wait is too long. Returns whether it is done.
    fn wait(&self, py: Python<'_>) -> PyResult<bool> {
        let start = Instant::now();
        loop {
            let is_done = py.detach(|| {
                let waited =
                    self.done.wait_timeout_while(lock(&self.is_done), SIGNAL_PERIOD, |is_done| !*is_done);
                *waited.unwrap_or_else(PoisonError::into_inner).0
            });
            if is_done || start.elapsed() > LONGEST_WAIT {
                return Ok(is_done);
            }
            py.check_signals()?;
        }
    }
}

impl Drop for CompileGuard<'_> {
    fn drop(&mut self) {
        lock(&self.lock.running).retain(|compilation| !Arc::ptr_eq(compilation, &self.compilation));
        *lock(&self.compilation.is_done) = true;
        self.compilation.done.notify_all();
    }
}
