//! Who compiles what: two threads that need one new version make it once.
//!
//! The one that comes first compiles, which runs Python; others of the same hash wait until it is done, failed or
//! not, and look again. Nobody waits for itself, nor where the one that compiles waits for it, through others or
//! at once: such a thread compiles too, and one of the two versions is kept.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use rustc_hash::FxHashMap;

/// How often one who waits looks for signals.
const SIGNAL_PERIOD: Duration = Duration::from_millis(50);

/// So long is waited at most: what is waited for may need something that this thread holds, such as a lock of
/// the user's.
const LONGEST: Duration = Duration::from_secs(30);

/// The turns of one function.
#[derive(Default)]
pub(super) struct Turns {
    taken: Mutex<Vec<Arc<Turn>>>,
}

/// One thread's compiling of one hash.
struct Turn {
    hash: u64,
    thread: ThreadId,
    is_over: Mutex<bool>,
    over: Condvar,
}

/// What each waiting thread waits for.
static WAITING: Mutex<Option<FxHashMap<ThreadId, Arc<Turn>>>> = Mutex::new(None);

/// What becomes of one who asks for a turn.
pub(super) enum Asked<'a> {
    /// Another thread has compiled meanwhile.
    Waited,
    /// It is this one's turn until the value is dropped.
    Mine(Option<Taken<'a>>),
}

/// A turn, which ends when this is dropped.
pub(super) struct Taken<'a> {
    turns: &'a Turns,
    turn: Arc<Turn>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the thread of a turn waits for another one, through others or at once.
fn waits_for(waiting: &FxHashMap<ThreadId, Arc<Turn>>, turn: &Arc<Turn>, thread: ThreadId) -> bool {
    let mut at = turn;
    // No circle is ever made, so that the chain ends.
    while at.thread != thread {
        match waiting.get(&at.thread) {
            Some(next) => at = next,
            None => return false,
        }
    }
    true
}

impl Turns {
    /// Takes the turn for a hash, or waits until the one who has it is done. No lock is held while waiting.
    ///
    /// # Errors
    /// What a signal's handler raises meanwhile.
    pub(super) fn ask(&self, py: Python<'_>, hash: u64) -> PyResult<Asked<'_>> {
        let thread = thread::current().id();
        let turn = {
            let mut taken = lock(&self.taken);
            match taken.iter().find(|turn| turn.hash == hash) {
                None => {
                    let turn =
                        Arc::new(Turn { hash, thread, is_over: Mutex::new(false), over: Condvar::new() });
                    taken.push(turn.clone());
                    return Ok(Asked::Mine(Some(Taken { turns: self, turn })));
                }
                Some(turn) => turn.clone(),
            }
        };
        {
            let mut waiting = lock(&WAITING);
            let waiting = waiting.get_or_insert_default();
            if waits_for(waiting, &turn, thread) {
                return Ok(Asked::Mine(None));
            }
            waiting.insert(thread, turn.clone());
        }
        let ended = turn.wait(py);
        let removed = lock(&WAITING).get_or_insert_default().remove(&thread);
        drop(removed);
        Ok(if ended? { Asked::Waited } else { Asked::Mine(None) })
    }
}

impl Turn {
    /// Waits until the turn is over; whether it is.
    fn wait(&self, py: Python<'_>) -> PyResult<bool> {
        let start = Instant::now();
        loop {
            let is_over = py.detach(|| {
                let waited = self.over.wait_timeout_while(lock(&self.is_over), SIGNAL_PERIOD, |over| !*over);
                *waited.unwrap_or_else(PoisonError::into_inner).0
            });
            if is_over || start.elapsed() > LONGEST {
                return Ok(is_over);
            }
            py.check_signals()?;
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        lock(&self.turns.taken).retain(|turn| !Arc::ptr_eq(turn, &self.turn));
        *lock(&self.turn.is_over) = true;
        self.turn.over.notify_all();
    }
}
