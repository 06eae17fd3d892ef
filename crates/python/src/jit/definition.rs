//! What a definition consists of.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};

use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::cache::{Entry, Shared};
use super::donate::Donated;
use super::settings::Conflict;
use super::signature::Signature;
use super::versions::Last;
use crate::compilers::Choice;
use crate::grad::Gradient;

/// What a definition does with its function.
pub(crate) enum Kind {
    /// Calls it.
    Plain,
    /// Differentiates it.
    Gradient(Gradient),
}

impl Kind {
    pub(super) fn has_transform(&self) -> bool {
        match self {
            Kind::Plain => false,
            Kind::Gradient(gradient) => gradient.transform.is_some(),
        }
    }
}

/// The fields of a definition.
pub(crate) struct Definition {
    pub(super) fun: Py<PyAny>,
    /// Whether the function's control flow is rewritten before it is traced.
    pub(super) convert: bool,
    /// What is called in place of the function then.
    pub(super) converted: OnceLock<Py<PyAny>>,
    pub(super) kind: Kind,
    /// The default option decides where nothing was given.
    pub(super) conflict: Option<Conflict>,
    pub(super) compiler: Option<Choice>,
    /// What is handed to the default compiler.
    pub(super) options: Option<Py<PyDict>>,
    pub(super) max_compiles: Option<usize>,
    /// Parameters whose memory runs reuse.
    pub(super) donate: Vec<Donated>,
    /// Functions for hooks by their names.
    pub(super) hooks: Option<Py<PyDict>>,
    pub(super) signature: Signature,
    pub(super) shared: Arc<Shared>,
    pub(super) last: Last,
    /// Whether the function has cells or defaults, which are part of each call's key.
    pub(super) closes: bool,
    /// Versions whose programs hold objects of this definition's function; others are shared.
    pub(super) owned: Mutex<Vec<Arc<Entry>>>,
    /// Why the latest versions were compiled.
    pub(super) history: Mutex<VecDeque<String>>,
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
    /// The time spent on tracing and compiling.
    pub(super) nanos: AtomicU64,
}

impl Definition {
    /// Visits the objects that the definition holds.
    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.fun)?;
        visit.call(&self.hooks)?;
        visit.call(&self.options)?;
        if let Some(converted) = self.converted.get() {
            visit.call(converted)?;
        }
        match &self.kind {
            Kind::Plain => {}
            Kind::Gradient(gradient) => visit.call(&gradient.transform)?,
        }
        // Where another thread holds the lock, this definition is in use.
        match self.owned.try_lock() {
            Ok(owned) => owned.iter().try_for_each(|entry| entry.traverse(visit)),
            Err(_) => Ok(()),
        }
    }

    /// Lets go of the versions, through which a definition may reach itself.
    pub(super) fn clear(&self) {
        if let Ok(mut owned) = self.owned.try_lock() {
            let owned_before = std::mem::take(&mut *owned);
            drop(owned);
            drop(owned_before);
        }
    }
}
