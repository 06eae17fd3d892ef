//! Caches of nests: one of the process. Each thread has a smaller one in front of it, so that a call of a nest that
//! ran before neither allocates nor changes what other threads read. Both are bounded.

use std::cell::RefCell;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::LocalKey;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::super::fuse::chunk;
use crate::kernels::reduce::CHUNK;

/// Nests that a thread remembers.
const THREAD_CACHE_SLOTS: usize = 64;

/// Nests that the process remembers.
const MAX_CACHED: usize = 1 << 12;

/// The nests that a thread has run last, each in the slot of its key.
pub(super) type ThreadCache<K, V> = RefCell<[Option<(K, Arc<V>)>; THREAD_CACHE_SLOTS]>;

/// The nests of the process.
pub(super) type ProcessCache<K, V> = Mutex<Option<FxHashMap<K, Arc<V>>>>;

/// The hash of a key as a whole.
pub(super) fn hash_of<K: Hash>(key: &K) -> u64 {
    FxBuildHasher.hash_one(key)
}

/// An empty cache of a thread.
pub(super) const fn recent<K, V>() -> ThreadCache<K, V> {
    RefCell::new([const { None }; THREAD_CACHE_SLOTS])
}

/// The caches of one kind of keys.
pub(super) struct Cache<K: 'static, V: 'static> {
    pub(super) recent: &'static LocalKey<ThreadCache<K, V>>,
    pub(super) cached: &'static ProcessCache<K, V>,
}

impl<K: Clone + Eq + Hash, V> Cache<K, V> {
    /// Calls `work` with the nest of a key, whose slot in the cache of the thread depends on `hash`.
    pub(super) fn with<R>(&self, key: &K, hash: u64, make: impl Fn() -> V, work: impl Fn(&V) -> R) -> R {
        let slot = hash as usize % THREAD_CACHE_SLOTS;
        let run = |recent: &ThreadCache<K, V>| {
            // The work may run other ops, which may find the cache borrowed.
            if let Ok(recent) = recent.try_borrow()
                && let Some((cached, nest)) = &recent[slot]
                && cached == key
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

    /// As [`Cache::with`], for nests that depend on the length of pieces. Tests change it, and keys do not have it.
    pub(super) fn with_pieces<R>(
        &self,
        key: &K,
        hash: u64,
        make: impl Fn() -> V,
        work: impl Fn(&V) -> R,
    ) -> R {
        if chunk() == CHUNK { self.with(key, hash, make, work) } else { work(&make()) }
    }

    /// The nest of a key: the known one, if there is one and no other thread looks for one now. Nothing waits for
    /// another thread, since a child that was forked meanwhile does not have it.
    fn of_process(&self, key: &K, make: impl Fn() -> V) -> Arc<V> {
        let mut cached = match self.cached.try_lock() {
            Ok(cached) => cached,
            Err(TryLockError::Poisoned(cached)) => cached.into_inner(),
            Err(TryLockError::WouldBlock) => return Arc::new(make()),
        };
        let cached = cached.get_or_insert_default();
        if let Some(nest) = cached.get(key) {
            return nest.clone();
        }
        if cached.len() == MAX_CACHED {
            cached.clear();
        }
        let nest = Arc::new(make());
        cached.insert(key.clone(), nest.clone());
        nest
    }
}
