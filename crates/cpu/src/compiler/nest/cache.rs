//! Nests that are made once and then known to the process. Each thread has a few in front, so that a call of one that
//! ran before neither allocates nor changes what other threads read. Both are bounded.

use std::cell::RefCell;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::LocalKey;

use rustc_hash::{FxBuildHasher, FxHashMap};

/// Nests that a thread remembers.
const RECENT: usize = 64;

/// Nests that the process remembers.
const MAX_CACHED: usize = 1 << 12;

/// The nests that a thread has run last, each in the place that its key has.
pub(super) type Recent<K, V> = RefCell<[Option<(K, Arc<V>)>; RECENT]>;

/// The nests of the process.
pub(super) type Known<K, V> = Mutex<Option<FxHashMap<K, Arc<V>>>>;

/// The hash of a key as a whole.
pub(super) fn hash_of<K: Hash>(key: &K) -> u64 {
    FxBuildHasher.hash_one(key)
}

/// None yet.
pub(super) const fn recent<K, V>() -> Recent<K, V> {
    RefCell::new([const { None }; RECENT])
}

/// What is known of one kind of keys.
pub(super) struct Cache<K: 'static, V: 'static> {
    pub(super) recent: &'static LocalKey<Recent<K, V>>,
    pub(super) known: &'static Known<K, V>,
}

impl<K: Clone + Eq + Hash, V> Cache<K, V> {
    /// Calls `work` with the nest of a key, whose place among those of a thread depends on `hash`.
    pub(super) fn with<R>(&self, key: &K, hash: u64, make: impl Fn() -> V, work: impl Fn(&V) -> R) -> R {
        let slot = hash as usize % RECENT;
        let run = |recent: &Recent<K, V>| {
            // The work may run other ops, which may find the cache borrowed.
            if let Ok(recent) = recent.try_borrow()
                && let Some((known, nest)) = &recent[slot]
                && known == key
            {
                return work(nest);
            }
            let nest = self.of_process(key, &make);
            if let Ok(mut recent) = recent.try_borrow_mut() {
                recent[slot] = Some((key.clone(), nest.clone()));
            }
            work(&nest)
        };
        // A thread that ends has no cache any more.
        self.recent.try_with(run).unwrap_or_else(|_| work(&self.of_process(key, &make)))
    }

    /// The nest of a key: the known one, if there is one and no other thread looks for one now. Nothing waits for
    /// another thread, since a child that was forked meanwhile does not have it.
    fn of_process(&self, key: &K, make: impl Fn() -> V) -> Arc<V> {
        let mut known = match self.known.try_lock() {
            Ok(known) => known,
            Err(TryLockError::Poisoned(known)) => known.into_inner(),
            Err(TryLockError::WouldBlock) => return Arc::new(make()),
        };
        let known = known.get_or_insert_default();
        if let Some(nest) = known.get(key) {
            return nest.clone();
        }
        if known.len() == MAX_CACHED {
            known.clear();
        }
        let nest = Arc::new(make());
        known.insert(key.clone(), nest.clone());
        nest
    }
}
