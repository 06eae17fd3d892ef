//! Calls of versions that were compiled before: found by all that they depend on, and the version of the last call by
//! the types of its arguments alone, where it depends on nothing else.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use defn_core::Tensor;
use defn_core::builder::common_backend;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

use super::Jitted;
use super::argument_names::name_entry_argument;
use super::cache::{Entry, Key};
use super::leaf::{self, Borrowed};
use super::program::count_one;
use crate::checks;
use crate::compilers::Choice;
use crate::containers::Flat;
use crate::error::Fallible;
use crate::options;

/// The version of the last call whose arguments were tensors.
#[derive(Default)]
pub(super) struct Last(Mutex<Weak<Entry>>);

impl Last {
    fn get(&self) -> Option<Arc<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    fn set(&self, entry: &Arc<Entry>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(entry);
    }
}

impl Jitted {
    /// The result of the version that a call's signature has, if it was compiled before.
    pub(super) fn find<'py>(
        &self,
        py: Python<'py>,
        flat: &Flat<'py>,
        key: &Key,
    ) -> Fallible<Option<Bound<'py, PyAny>>> {
        let fun = self.fun.bind(py);
        for entry in self.shared.candidates(key.hash) {
            if !entry.serves(fun, flat, key)? {
                continue;
            }
            let mut borrowed = Borrowed::default();
            if let Some(captures) = entry.program.read_captures(fun, &flat.tree, &mut borrowed)? {
                if !self.closes && flat.is_leaves() && entry.program.is_plain() {
                    self.last.set(&entry);
                }
                let hooks = self.hooks.as_ref();
                let run = || entry.program.run(py, &flat.leaves, captures, borrowed, hooks);
                return self.call(py, &entry, run).map(Some);
            }
        }
        Ok(None)
    }

    /// The result of a version that was found.
    fn call<'py>(
        &self,
        py: Python<'py>,
        entry: &Arc<Entry>,
        run: impl FnOnce() -> Fallible<Bound<'py, PyAny>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        self.shared.touch(entry);
        count_one(py, &self.hits);
        run().map_err(|fault| name_entry_argument(py, fault, entry, &self.signature))
    }

    /// The result of the version that the last call had, if this one has tensors of the same types and nothing else
    /// that a version depends on has changed.
    pub(super) fn again<'py>(&self, args: &Bound<'py, PyTuple>) -> Fallible<Option<Bound<'py, PyAny>>> {
        let py = args.py();
        let Some(entry) = self.last.get() else { return Ok(None) };
        let known = &entry.known;
        if args.len() != known.models.len() || checks::current() != known.checks {
            return Ok(None);
        }
        let mut lent: SmallVec<[&Tensor; 8]> = SmallVec::new();
        for (leaf, model) in args.iter_borrowed().zip(&known.models) {
            match leaf::lent_of(leaf) {
                Some(tensor) if leaf::same_model(tensor, model) => lent.push(tensor),
                Some(_) | None => return Ok(None),
            }
        }
        if !self.chooses(py, &known.compiler)? || !known.holds(py)? {
            return Ok(None);
        }
        let Some(backend) = common_backend(&lent) else { return Ok(None) };
        let run = || entry.program.run_lent(py, &backend, &lent, self.hooks.as_ref());
        self.call(py, &entry, run).map(Some)
    }

    /// Whether a call would choose a compiler, looked at without taking hold of one.
    fn chooses(&self, py: Python<'_>, known: &Choice) -> Fallible<bool> {
        match (&self.compiler, &self.options) {
            (Some(choice), _) => Ok(choice.is_same(py, known)?),
            (None, None) if options::is_default(known) => Ok(true),
            (None, _) => Ok(self.chosen(py)?.is_same(py, known)?),
        }
    }
}
