//! The statistics of a definition: how its calls found their versions, and why versions were compiled.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::cache::VERSION_LIMIT;
use super::program::count_one;

#[derive(Default)]
pub(crate) struct Statistics {
    /// Calls that found a compiled version.
    hits: AtomicU64,
    /// Calls that compiled one.
    misses: AtomicU64,
    /// The time spent on tracing and compiling.
    nanos: AtomicU64,
    /// Why the latest versions were compiled, the oldest first.
    reasons: Mutex<VecDeque<String>>,
}

impl Statistics {
    fn reasons_lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count_hit(&self, py: Python<'_>) {
        count_one(py, &self.hits);
    }

    /// The number of calls that compiled.
    pub(super) fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }

    /// Counts a call that compiled, with the time that it took and the reason.
    pub(super) fn count_miss(&self, took: Duration, reason: String) {
        self.misses.fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        let mut reasons = self.reasons_lock();
        if reasons.len() >= VERSION_LIMIT {
            reasons.pop_front();
        }
        reasons.push_back(reason);
    }

    /// Why each version was compiled, the oldest first.
    pub(super) fn reasons(&self) -> Vec<String> {
        self.reasons_lock().iter().cloned().collect()
    }

    /// The entries of `cache_info`, with the number of versions that are kept, how many may be, and how many
    /// are still compiled.
    pub(super) fn cache_info<'py>(
        &self,
        py: Python<'py>,
        size: usize,
        limit: usize,
        compiling: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let info = PyDict::new(py);
        info.set_item("hits", self.hits.load(Ordering::Relaxed))?;
        info.set_item("misses", self.misses())?;
        info.set_item("size", size)?;
        info.set_item("limit", limit)?;
        info.set_item("compiling", compiling)?;
        info.set_item("seconds", self.nanos.load(Ordering::Relaxed) as f64 * 1e-9)?;
        Ok(info)
    }

    pub(super) fn clear(&self) {
        self.reasons_lock().clear();
        self.hits.store(0, Ordering::Relaxed);
        self.misses.store(0, Ordering::Relaxed);
        self.nanos.store(0, Ordering::Relaxed);
    }
}
