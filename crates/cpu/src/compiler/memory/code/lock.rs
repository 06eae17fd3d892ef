//! The lock of the arena, and what a fork does to it.
//!
//! It is a spin lock that knows the process of its holder: a child that inherits it from a thread which it does not have
//! begins a new arena.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::arena::Arena;
use super::system;

/// The arena of the process.
pub(super) static ARENA: Lock = Lock { holder: AtomicU32::new(0), state: UnsafeCell::new(State::New) };

/// What there is of the arena.
#[derive(Debug)]
pub(super) enum State {
    /// It was not asked for yet.
    New,
    Ready(Arena),
    /// There is no executable memory.
    Unavailable(&'static str),
}

impl State {
    /// The arena, which is made when it is asked for first.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn arena(&mut self) -> Result<&mut Arena, &'static str> {
        if let State::New = self {
            *self = match watch_forks().and_then(|()| Arena::new()) {
                Ok(arena) => State::Ready(arena),
                Err(reason) => State::Unavailable(reason),
            };
        }
        match self {
            State::Ready(arena) => Ok(arena),
            State::Unavailable(reason) => Err(reason),
            State::New => unreachable!("it was just made"),
        }
    }
}

/// A lock.
pub(super) struct Lock {
    /// The process whose thread has the lock, or 0.
    holder: AtomicU32,
    state: UnsafeCell<State>,
}

// SAFETY: the state is accessed under the lock only, and belongs to no thread.
unsafe impl Sync for Lock {}

impl Lock {
    pub(super) fn lock(&self) -> Guard<'_> {
        let process = std::process::id();
        for attempt in 0_u64.. {
            match self.holder.compare_exchange_weak(0, process, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break,
                Err(0) => {}
                Err(holder) if holder == process => {
                    if attempt < 64 {
                        std::hint::spin_loop();
                    } else {
                        std::thread::yield_now();
                    }
                }
                Err(parent) => {
                    let taken =
                        self.holder.compare_exchange(parent, process, Ordering::Acquire, Ordering::Relaxed);
                    if taken.is_ok() {
                        // A thread of the parent's had it, which may have been amidst a change. What it had is not
                        // dropped. SAFETY: the lock is taken, and the thread does not exist here.
                        unsafe { self.state.get().write(State::New) };
                        break;
                    }
                }
            }
        }
        let mut guard = Guard { lock: self };
        if let State::Ready(arena) = &mut *guard
            && arena.process() != process
        {
            // No handler has run in this child.
            arena.inherit(process);
        }
        guard
    }

    fn unlock(&self) {
        self.holder.store(0, Ordering::Release);
    }
}

/// The lock is taken as long as this exists.
pub(super) struct Guard<'a> {
    lock: &'a Lock,
}

impl Deref for Guard<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        // SAFETY: the lock is taken.
        unsafe { &*self.lock.state.get() }
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut State {
        // SAFETY: the lock is taken, and the guard is borrowed exclusively.
        unsafe { &mut *self.lock.state.get() }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.lock.unlock();
    }
}

/// The thread that has taken the lock for a fork, or 0.
static FORKING: AtomicU32 = AtomicU32::new(0);

/// Registers the fork handlers, which take the lock before a fork and release it after, in the child too.
///
/// # Errors
/// The C library has no room for them.
fn watch_forks() -> Result<(), &'static str> {
    static WATCHED: AtomicBool = AtomicBool::new(false);

    unsafe extern "C" fn before() {
        // They are registered twice if a process was forked while its parent registered them.
        if FORKING.load(Ordering::Relaxed) != system::thread() {
            // The handlers behind the fork unlock.
            std::mem::forget(ARENA.lock());
            FORKING.store(system::thread(), Ordering::Relaxed);
        }
    }
    unsafe extern "C" fn in_parent() {
        if FORKING.load(Ordering::Relaxed) == system::thread() {
            after(Arena::keep_for_child);
        }
    }
    unsafe extern "C" fn in_child() {
        if FORKING.load(Ordering::Relaxed) != 0 {
            after(|arena| arena.inherit(std::process::id()));
        }
    }
    /// Tells the arena of the fork, and unlocks.
    fn after(tell: impl FnOnce(&mut Arena)) {
        // SAFETY: `before` has taken the lock.
        if let State::Ready(arena) = unsafe { &mut *ARENA.state.get() } {
            tell(arena);
        }
        FORKING.store(0, Ordering::Relaxed);
        ARENA.unlock();
    }

    if !WATCHED.load(Ordering::Relaxed) {
        // SAFETY: the functions may be called at any time, one after the other on one thread.
        if unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) } != 0 {
            return Err("the system has no room for fork handlers");
        }
        WATCHED.store(true, Ordering::Relaxed);
    }
    Ok(())
}
