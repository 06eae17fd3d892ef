//! Counters of memory: bytes allocated and not freed, and bytes obtained from the system.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes allocated and not freed.
static LIVE: AtomicUsize = AtomicUsize::new(0);
/// The maximum of [`LIVE`].
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// Bytes obtained from the system.
static FROM_SYSTEM: AtomicUsize = AtomicUsize::new(0);

/// Counts allocated bytes.
pub(super) fn allocated(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    // The peak rarely changes, and a load is cheaper.
    if live > PEAK.load(Ordering::Relaxed) {
        PEAK.fetch_max(live, Ordering::Relaxed);
    }
}

/// Counts freed bytes.
pub(super) fn freed(bytes: usize) {
    LIVE.fetch_sub(bytes, Ordering::Relaxed);
}

/// Counts bytes obtained from the system.
pub(super) fn obtained_from_system(bytes: usize) {
    FROM_SYSTEM.fetch_add(bytes, Ordering::Relaxed);
}

/// Counts bytes returned to the system.
pub(super) fn returned_to_system(bytes: usize) {
    FROM_SYSTEM.fetch_sub(bytes, Ordering::Relaxed);
}

/// The bytes that tensors and running programs have allocated and not freed: exact, without rounding.
pub fn live_bytes() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// The maximum of [`live_bytes`] since the start or the last [`reset_peak`].
pub fn peak_bytes() -> usize {
    PEAK.load(Ordering::Relaxed)
}

/// Resets [`peak_bytes`] to what is live now.
pub fn reset_peak() {
    PEAK.store(live_bytes(), Ordering::Relaxed);
}

/// The bytes obtained from the system: live blocks, cached blocks, and rounding.
pub fn held_bytes() -> usize {
    FROM_SYSTEM.load(Ordering::Relaxed)
}
