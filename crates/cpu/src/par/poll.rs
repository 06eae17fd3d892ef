//! How long work is stopped: who asks, and how everybody gets out.

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

    /// When this thread asks next whether to go on; none where what it runs has not asked for the time yet.
    static NEXT_POLL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// How long work goes on before its thread asks whether to, and how long from then on.
const POLL_PERIOD: Duration = Duration::from_millis(20);

/// What is asked.
static POLL: OnceLock<fn() -> Result<()>> = OnceLock::new();

/// Says what a thread that calls the backend asks every 20 milliseconds, between the chunks of long work: an error stops
/// the op or run, which gives that error. Said once for the process; a second one is not heard.
pub fn set_poll(poll: fn() -> Result<()>) {
    POLL.get_or_init(|| poll);
}

/// What threads of a team unwind with when it was stopped; the thread that stopped it unwinds with the error.
struct Stopped;

/// Runs what may be stopped between the chunks that it shares. What it was to write is unknown then, and nobody may see it.
///
/// # Errors
/// Those of `body`, and what [`set_poll`]'s function gives.
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

/// Asks whether to go on, where that is due and this thread is the one that called.
///
/// # Panics
/// Unwinds with the error where not; the team is stopped then.
#[inline]
pub(super) fn pause(team: Option<&Team>) {
    if let Some(poll) = POLL.get()
        && !IS_OF_POOL.get()
    {
        pause_for(*poll, team);
    }
}

/// Asks whether to go on where a thread does much in one chunk. Any thread may call it at any time, every few microseconds
/// at most.
///
/// # Panics
/// Unwinds where what it belongs to is stopped: what is half done by then is to be of no harm.
pub(crate) fn breathe() {
    // SAFETY: a team outlives the calls that its members make.
    let team = unsafe { TEAM.get().as_ref() };
    pause(team);
    if let Some(team) = team {
        leave(team);
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
        // What the host language runs meanwhile is none of the team's.
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

/// Goes on after a call that a team has shared.
///
/// # Panics
/// Unwinds where it was stopped, since chunks were left out: to whoever joined this thread to the team.
pub(super) fn leave(team: &Team) {
    if team.is_short.load(Ordering::Relaxed) {
        note_shortage(1);
    }
    if team.is_stopped.load(Ordering::Relaxed) {
        resume_unwind(Box::new(Stopped));
    }
}
