//! The compiled versions of a definition, and calls of them.
//!
//! A call finds its version by everything that the version depends on. The version of the last call has a fast path: it
//! is found by the types of the arguments, where it depends on nothing else but its guards and settings.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use defn_core::Tensor;
use defn_core::vectorize::named;
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

use super::Jitted;
use super::argument_names::name_entry_argument;
use super::cache::{CallKey, Entry, SharedVersions, VERSION_LIMIT};
use super::definition::Kind;
use super::donate::Donated;
use super::leaf::{self, Borrowed};
use crate::checks;
use crate::containers::Flat;
use crate::error::Fallible;
use crate::options;

/// The versions of a definition.
pub(crate) struct Versions {
    /// The versions that all definitions of the same code share, with their compile lock.
    pub(super) shared: Arc<SharedVersions>,
    last: LastVersion,
    /// The versions whose programs hold objects of this definition's function. Only a weak reference to them is shared.
    owned: Mutex<Vec<Arc<Entry>>>,
}

impl Versions {
    pub(super) fn of(
        fun: &Bound<'_, PyAny>,
        kind: &Kind,
        marked: &[String],
        donate: &[Donated],
    ) -> PyResult<Versions> {
        let shared = SharedVersions::of(fun, kind, marked, donate)?;
        Ok(Versions { shared, last: LastVersion::default(), owned: Mutex::default() })
    }

    fn owned(&self) -> MutexGuard<'_, Vec<Arc<Entry>>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many versions are kept: [`VERSION_LIMIT`] for each definition that shares them.
    pub(super) fn limit(&self) -> usize {
        // The list of functions holds a reference, too.
        let definitions = Arc::strong_count(&self.shared).saturating_sub(1).max(1);
        definitions.saturating_mul(VERSION_LIMIT)
    }

    /// Keeps a new version.
    pub(super) fn insert(&self, py: Python<'_>, entry: &Arc<Entry>) {
        if entry.key.is_owned {
            let mut owned = self.owned();
            let oldest = (owned.len() >= VERSION_LIMIT).then(|| owned.remove(0));
            owned.push(entry.clone());
            drop(owned);
            // Dropping a version may run Python code, which must not find the lock held.
            drop(oldest);
        }
        self.shared.insert(py, entry, self.limit());
    }

    /// Forgets every version.
    pub(super) fn clear(&self) {
        self.shared.clear();
        let owned = std::mem::take(&mut *self.owned());
        drop(owned);
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Another thread that holds the lock uses the definition, which is therefore not garbage.
        match self.owned.try_lock() {
            Ok(owned) => owned.iter().try_for_each(|entry| entry.traverse(visit)),
            Err(_) => Ok(()),
        }
    }

    /// Drops the owned versions, for the garbage collector.
    pub(super) fn break_cycles(&self) {
        if let Ok(mut owned) = self.owned.try_lock() {
            let owned_before = std::mem::take(&mut *owned);
            drop(owned);
            drop(owned_before);
        }
    }
}

/// The version of the last call whose arguments were tensors.
#[derive(Default)]
struct LastVersion(Mutex<Weak<Entry>>);

impl LastVersion {
    fn get(&self) -> Option<Arc<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    fn set(&self, entry: &Arc<Entry>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(entry);
    }
}

impl Jitted {
    /// Runs the version for the signature of a call, if it was compiled before.
    pub(super) fn run_cached<'py>(
        &self,
        py: Python<'py>,
        flat: &Flat<'py>,
        key: &CallKey,
    ) -> Fallible<Option<Bound<'py, PyAny>>> {
        let fun = self.function.bind(py);
        for entry in self.versions.shared.candidates(key.hash) {
            if !entry.serves(fun, flat, key)? {
                continue;
            }
            let mut borrowed = Borrowed::default();
            if let Some(captures) = entry.program.read_captures(fun, &flat.tree, &mut borrowed)? {
                if !self.has_closed_values() && flat.is_leaves() && entry.program.has_fast_path() {
                    self.versions.last.set(&entry);
                }
                let hooks = self.settings.hooks();
                let run = || entry.program.run(py, &flat.leaves, captures, borrowed, hooks);
                return self.run_entry(py, &entry, run).map(Some);
            }
        }
        Ok(None)
    }

    /// Runs a version that was found.
    fn run_entry<'py>(
        &self,
        py: Python<'py>,
        entry: &Arc<Entry>,
        run: impl FnOnce() -> Fallible<Bound<'py, PyAny>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        self.versions.shared.touch(entry);
        self.statistics.count_hit(py);
        run().map_err(|fault| name_entry_argument(py, fault, entry, &self.signature))
    }

    /// Runs the version of the last call, if the arguments are tensors of the same types and nothing else that a
    /// version depends on has changed.
    pub(super) fn run_last<'py>(&self, args: &Bound<'py, PyTuple>) -> Fallible<Option<Bound<'py, PyAny>>> {
        let py = args.py();
        let Some(entry) = self.versions.last.get() else { return Ok(None) };
        let key = &entry.key;
        if args.len() != key.models.len() || checks::current() != key.checks {
            return Ok(None);
        }
        let mut tensors: SmallVec<[&Tensor; 8]> = SmallVec::new();
        for (leaf, model) in args.iter_borrowed().zip(&key.models) {
            match leaf::concrete_tensor(leaf) {
                Some(tensor) if leaf::same_model(tensor, model) => tensors.push(tensor),
                Some(_) | None => return Ok(None),
            }
        }
        if self.settings.compile_mode(py)? != key.mode
            || options::default_float(py)? != key.default_float
            || !named::is_known(&key.named_axes)
            || !self.settings.would_choose(py, &key.compiler)?
            || !key.holds(py)?
        {
            return Ok(None);
        }
        let Some(backend) = entry.program.add_constants(&mut tensors) else { return Ok(None) };
        let run = || entry.program.run_borrowed(py, &backend, &tensors, self.settings.hooks());
        self.run_entry(py, &entry, run).map(Some)
    }
}
