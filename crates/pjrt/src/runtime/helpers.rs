//! Helper threads, which run jobs that their callers may stop waiting for.
//!
//! A compilation and the start of a long run cannot be interrupted. Where the calling thread may be, a helper does them
//! and goes on alone after an interrupt.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use defn_core::Result;

use super::caller::{POLL_INTERVAL, poll, without_lock};
use crate::api::forks;

type Job = Box<dyn FnOnce() + Send>;

/// The idle helpers, each with the process that it is a thread of.
static IDLE: Mutex<Vec<(u32, Sender<Job>)>> = Mutex::new(Vec::new());

/// The number of unfinished jobs.
static BUSY: AtomicUsize = AtomicUsize::new(0);

/// Runs a job on a helper and waits for it.
///
/// # Errors
/// The wait was interrupted; the job continues, and its result is dropped.
pub(super) fn run<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let (sender, mut receiver) = channel();
    BUSY.fetch_add(1, Ordering::Relaxed);
    submit(Box::new(move || {
        let result = body();
        BUSY.fetch_sub(1, Ordering::Relaxed);
        // There is no receiver if the wait was interrupted.
        let _ = sender.send(result);
    }));
    loop {
        let receiver = &mut receiver;
        match without_lock(move || receiver.recv_timeout(POLL_INTERVAL)) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => poll()?,
            Err(RecvTimeoutError::Disconnected) => unreachable!("a job sends what it made"),
        }
    }
}

/// Runs a job on a helper, for which nobody waits but the end of the process.
pub(super) fn start(job: Job) {
    BUSY.fetch_add(1, Ordering::Relaxed);
    submit(Box::new(move || {
        job();
        BUSY.fetch_sub(1, Ordering::Relaxed);
    }));
}

/// The stack of a helper: as large as that of a main thread, so that what a plugin compiles there it compiles here.
const STACK_BYTES: usize = 8 << 20;

/// Gives a job to an idle helper, else to a new one; if the system has no more threads, this thread runs it.
fn submit(mut job: Job) {
    let process_forks = forks();
    let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    // Threads do not survive a fork.
    idle.retain(|(process, _)| *process == process_forks);
    while let Some((_, helper)) = idle.pop() {
        match helper.send(job) {
            Ok(()) => return,
            Err(unsent) => job = unsent.0,
        }
    }
    drop(idle);
    let (sender, receiver) = channel::<Job>();
    let idle_sender = sender.clone();
    let helper = move || {
        while let Ok(job) = receiver.recv() {
            job();
            IDLE.lock().unwrap_or_else(PoisonError::into_inner).push((process_forks, idle_sender.clone()));
        }
    };
    match std::thread::Builder::new().name("defn-helper".to_owned()).stack_size(STACK_BYTES).spawn(helper) {
        Ok(_) => sender.send(job).unwrap_or_else(|unsent| (unsent.0)()),
        Err(_) => without_lock(job),
    }
}

/// Waits until all jobs are done, or until `end`; returns whether they are.
pub(super) fn wait_idle(end: Instant) -> bool {
    while BUSY.load(Ordering::Relaxed) > 0 {
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_are_used_again() {
        let first = run(|| std::thread::current().id()).unwrap();
        assert_ne!(first, std::thread::current().id());
        let start = Instant::now();
        // A helper becomes idle only after it has sent its result.
        while run(|| std::thread::current().id()).unwrap() != first {
            assert!(start.elapsed().as_secs() < 10);
        }
        let many: Vec<_> = (0..8).map(|n| std::thread::spawn(move || run(move || n * n).unwrap())).collect();
        let squares: Vec<i32> = many.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(squares, [0, 1, 4, 9, 16, 25, 36, 49]);
        assert!(wait_idle(Instant::now() + Duration::from_secs(10)));
    }
}
