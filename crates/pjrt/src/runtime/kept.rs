//! Which programs stay in memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use super::digest::Digest;
use super::eager::Eager;
use super::programs::Compiled;

/// How many programs the caches of a process keep, of ops at once and of whole definitions together.
///
/// XLA on the CPU maps three to six regions of memory for a program, and Linux lets a process have 65,530 of them: with
/// more it fails to place the code. So many programs take 24,576 at most, and leave room for those that definitions
/// hold, which are theirs, and for the libraries and arrays of the process.
pub(super) const KEPT: usize = if cfg!(test) { 32 } else { 4096 };

/// A client with fewer lets none go for those of other clients.
const FEW: usize = KEPT / 16;

/// How many places the caches of all clients have.
static PLACES: AtomicUsize = AtomicUsize::new(0);

/// Where one program is, or will be. It is locked while the program is compiled, so that those who need it too wait
/// for it, and empty where that failed.
pub(super) type Place = Arc<Mutex<Option<Arc<Compiled>>>>;

/// The programs of a client that are in memory.
#[derive(Default)]
pub(super) struct Kept {
    places: Mutex<HashMap<Digest, Place>>,
    /// How often a program was looked for.
    clock: AtomicU64,
}

impl Kept {
    /// The time, as it is counted for programs: it goes on whenever one is looked for.
    pub fn now(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    /// Where the program of a key is, or will be. Where there are too many, half of the client's are let go, those
    /// that were used longest ago; `eager` has some of them too.
    pub fn place(&self, key: Digest, eager: &Eager) -> Place {
        self.clock.fetch_add(1, Ordering::Relaxed);
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.get(&key) {
            return place.clone();
        }
        let has_too_many = PLACES.load(Ordering::Relaxed) >= KEPT && places.len() >= FEW;
        let let_go = if has_too_many { older_half(&mut places) } else { Vec::new() };
        let place = Place::default();
        places.insert(key, place.clone());
        drop(places);
        PLACES.fetch_add(1, Ordering::Relaxed);
        if has_too_many {
            PLACES.fetch_sub(let_go.len(), Ordering::Relaxed);
            // To free a program takes long enough that nobody should wait for it.
            drop(let_go);
            eager.sweep();
        }
        place
    }

    /// How many programs there are; a place whose program is being compiled, or was refused, has none.
    pub fn count(&self) -> usize {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.values().filter(|place| used(place).is_some()).count()
    }
}

/// When the program of a place was used last, if there is one.
fn used(place: &Place) -> Option<u64> {
    let program = match place.try_lock() {
        Ok(program) => program,
        Err(TryLockError::Poisoned(program)) => program.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    program.as_ref().map(|program| program.used())
}

/// Takes out the half that was used longest ago, first of all what has no program.
fn older_half(places: &mut HashMap<Digest, Place>) -> Vec<Place> {
    let mut times: Vec<(Option<u64>, Digest)> =
        places.iter().map(|(key, place)| (used(place), *key)).collect();
    let half = times.len() / 2;
    times.select_nth_unstable(half);
    times[..half].iter().filter_map(|(_, key)| places.remove(key)).collect()
}

#[cfg(test)]
mod tests;
