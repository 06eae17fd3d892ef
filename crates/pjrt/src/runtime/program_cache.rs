//! The programs that stay in memory, and their eviction.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use super::digest::Digest;
use super::eager::Eager;
use super::programs::Compiled;

/// The number of programs that the caches of a process keep, eager ops and whole definitions together.
///
/// XLA on the CPU maps three to six regions of memory for a program, and Linux allows a process 65,530 of them: beyond
/// that XLA fails to place the code. This number of programs takes at most 24,576. That leaves room for the programs
/// that definitions hold, which the caches cannot drop, and for the libraries and arrays of the process.
pub(super) const MAX_PROGRAMS: usize = if cfg!(test) { 32 } else { 4096 };

/// A client with fewer programs drops none for those of other clients.
const PROTECTED_ENTRIES: usize = MAX_PROGRAMS / 16;

/// The number of entries in the caches of all clients.
static ENTRY_COUNT: AtomicUsize = AtomicUsize::new(0);

/// The entry of one program. It is locked while the program is compiled, so that other threads that need it wait for
/// it, and is empty if that failed.
pub(super) type CacheEntry = Arc<Mutex<Option<Arc<Compiled>>>>;

/// The programs of a client that are in memory.
#[derive(Default)]
pub(super) struct ProgramCache {
    entries: Mutex<HashMap<Digest, CacheEntry>>,
    /// The number of lookups so far.
    clock: AtomicU64,
}

impl ProgramCache {
    /// The current time, counted in lookups of programs.
    pub fn now(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    /// The entry of a key. If there are too many, the half of the client's entries that were used longest ago is
    /// dropped; `eager` has some of their programs too.
    pub fn entry(&self, key: Digest, eager: &Eager) -> CacheEntry {
        self.clock.fetch_add(1, Ordering::Relaxed);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get(&key) {
            return entry.clone();
        }
        let has_too_many =
            ENTRY_COUNT.load(Ordering::Relaxed) >= MAX_PROGRAMS && entries.len() >= PROTECTED_ENTRIES;
        let evicted = if has_too_many { older_half(&mut entries) } else { Vec::new() };
        let entry = CacheEntry::default();
        entries.insert(key, entry.clone());
        drop(entries);
        ENTRY_COUNT.fetch_add(1, Ordering::Relaxed);
        if has_too_many {
            ENTRY_COUNT.fetch_sub(evicted.len(), Ordering::Relaxed);
            // Freeing a program takes so long that no other thread should wait for it.
            drop(evicted);
            eager.sweep();
        }
        entry
    }

    /// The number of programs; an entry whose program is being compiled, or was rejected, has none.
    pub fn count(&self) -> usize {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.values().filter(|entry| used(entry).is_some()).count()
    }
}

/// The time of the last use of an entry's program, if there is one.
fn used(entry: &CacheEntry) -> Option<u64> {
    let program = match entry.try_lock() {
        Ok(program) => program,
        Err(TryLockError::Poisoned(program)) => program.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    program.as_ref().map(|program| program.used())
}

/// Removes the half of the entries that were used longest ago, those without a program first.
fn older_half(entries: &mut HashMap<Digest, CacheEntry>) -> Vec<CacheEntry> {
    let mut times: Vec<(Option<u64>, Digest)> =
        entries.iter().map(|(key, entry)| (used(entry), *key)).collect();
    let half = times.len() / 2;
    times.select_nth_unstable(half);
    times[..half].iter().filter_map(|(_, key)| entries.remove(key)).collect()
}

#[cfg(test)]
mod tests;
