//! How much memory there is: what was asked for and is not given back, and what is held from the system.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that were asked for and are in use.
static LIVE: AtomicUsize = AtomicUsize::new(0);
/// The most that [`LIVE`] has been.
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// Bytes that the system has given.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Counts bytes that somebody has taken.
pub(super) fn taken(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    // Mostly there is nothing to write.
    if live > PEAK.load(Ordering::Relaxed) {
        PEAK.fetch_max(live, Ordering::Relaxed);
    }
}

/// Counts bytes that somebody has given back.
pub(super) fn given(bytes: usize) {
    LIVE.fetch_sub(bytes, Ordering::Relaxed);
}

/// Counts bytes that came from the system.
pub(super) fn held(bytes: usize) {
    HELD.fetch_add(bytes, Ordering::Relaxed);
}

/// Counts bytes that went to the system.
pub(super) fn let_go(bytes: usize) {
    HELD.fetch_sub(bytes, Ordering::Relaxed);
}

/// The bytes that tensors and what works on them have asked for and not given back: exact, without rounding.
pub fn live_bytes() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// The most that [`live_bytes`] has been, since the start or the last [`reset_peak`].
pub fn peak_bytes() -> usize {
    PEAK.load(Ordering::Relaxed)
}

/// Lets [`peak_bytes`] begin again from what is live now.
pub fn reset_peak() {
    PEAK.store(live_bytes(), Ordering::Relaxed);
}

/// The bytes that are held from the system: what is live, what is kept to be given again, and what rounding takes.
pub fn held_bytes() -> usize {
    HELD.load(Ordering::Relaxed)
}
