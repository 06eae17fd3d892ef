//! How long work is interrupted: the poll, and how all threads leave the call.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use defn_core::memory::note_shortage;
use defn_core::{Error, Result};

use super::{Member, TEAM, Team};

thread_local! {
    /// Whether this thread is one of the pool.
    pub(super) static IS_OF_POOL: Cell<bool> = const { Cell::new(false) };

    /// When this thread polls next; None where its current work has not read the clock yet.
    static NEXT_POLL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The time before a thread polls for the first time, and between two polls.
const POLL_PERIOD: Duration = Duration::from_millis(20);

/// The function that is polled.
static POLL: OnceLock<fn() -> Result<()>> = OnceLock::new();

/// Sets the function that a thread which calls the backend polls every 20 milliseconds between the chunks of long work.
/// Its error stops the op or run and becomes its error. It is set once for the process; later calls have no effect.
pub fn set_poll(poll: fn() -> Result<()>) {
    POLL.get_or_init(|| poll);
}

/// The panic payload of the threads of a stopped team; the thread that stopped it unwinds with the error.
struct Stopped;

/// Runs work that may be stopped between its parallel chunks. After a stop the contents of its results are unspecified,
/// and no reader may see them.
///
/// # Errors
/// Those of `body`, and those of the function of [`set_poll`].
pub(crate) fn interruptible<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    NEXT_POLL.set(None);
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(made) => made,
        Err(panic) => match panic.downcast::<Error>() {
            Ok(error) => Err(*error),
            Err(panic) => resume_unwind(panic),
        },
    }
}

/// Polls, if that is due and this is the calling thread.
///
/// # Panics
/// Unwinds with the error of the poll; the team is stopped then.
#[inline]
pub(super) fn poll_if_due(team: Option<&Team>) {
    if let Some(poll) = POLL.get()
        && !IS_OF_POOL.get()
    {
        pause_for(*poll, team);
    }
}

/// Polls within a long chunk. Any thread may call it at any time, every few microseconds at most.
///
/// # Panics
/// Unwinds if the work is stopped; half-done work must do no harm.
pub(crate) fn poll_within_chunk() {
    // SAFETY: a team outlives the calls that its members make.
    let team = unsafe { TEAM.get().as_ref() };
    poll_if_due(team);
    if let Some(team) = team {
        unwind_if_stopped(team);
    }
}

fn pause_for(poll: fn() -> Result<()>, team: Option<&Team>) {
    let now = Instant::now();
    match NEXT_POLL.get() {
        Some(next) if next > now => return,
        Some(_) => {}
        None => return NEXT_POLL.set(Some(now + POLL_PERIOD)),
    }
    let asked = {
        // The host language may call the backend here; such calls are no part of the team.
        let _nobody = Member::of(std::ptr::null());
        poll()
    };
    NEXT_POLL.set(Some(Instant::now() + POLL_PERIOD));
    if let Err(error) = asked {
        if let Some(team) = team {
            team.is_stopped.store(true, Ordering::Relaxed);
        }
        resume_unwind(Box::new(error));
    }
}

/// Checks the state of the team after a parallel call.
///
/// # Panics
/// Unwinds if the team was stopped, since chunks were skipped; the panic goes to the code that made this thread a
/// member.
pub(super) fn unwind_if_stopped(team: &Team) {
    if team.is_short.load(Ordering::Relaxed) {
        note_shortage(1);
    }
    if team.is_stopped.load(Ordering::Relaxed) {
        resume_unwind(Box::new(Stopped));
    }
}
