//! A call of a definition: it runs the compiled version for its signature, or compiles one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::Jitted;
use super::argument_names::{name_argument, name_entry_argument};
use super::background;
use super::cache::{CallKey, Entry};
use super::compile_lock::{Acquired, CompileGuard};
use super::donate;
use super::explain::{ComparedCall, Reason};
use super::guards::{self, ClosedValue, GuardRoots, Guards};
use super::leaf::{self, Borrowed, TypeWords};
use super::log;
use super::program::Program;
use super::settings::CompileMode;
use crate::checks;
use crate::compilers::Choice;
use crate::containers::{AuxObject, Flat};
use crate::error::Fallible;
use crate::misuse::Misuse;

impl Jitted {
    /// Runs a call outside of any trace, or separately from the open one.
    pub(super) fn run<'py>(
        slf: &Bound<'py, Jitted>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let (py, this) = (args.py(), slf.get());
        if kwargs.is_none()
            && let Some(result) = this.run_last(args)?
        {
            return Ok(result);
        }
        let flat = this.signature.flatten(this.function.bind(py), args, kwargs)?;
        let key = this.key(py, &flat)?;
        match this.run_cached(py, &flat, &key)? {
            Some(result) => Ok(result),
            None => this.miss(slf, flat, key),
        }
    }

    /// Compiles a version and runs it. Where another thread compiles the same version at this moment, that version is
    /// run instead.
    #[cold]
    fn miss<'py>(
        &self,
        slf: &Bound<'py, Jitted>,
        flat: Flat<'py>,
        key: CallKey,
    ) -> Fallible<Bound<'py, PyAny>> {
        let py = slf.py();
        let shared = &self.versions.shared;
        let mut known = 0;
        loop {
            let acquired = shared.compile_lock.acquire(py, key.hash)?;
            let count = shared.count();
            if (matches!(acquired, Acquired::Waited) || count != known)
                && let Some(result) = self.run_cached(py, &flat, &key)?
            {
                return Ok(result);
            }
            known = count;
            if let Acquired::Compile(lock) = acquired {
                return self.compile(slf, flat, key, lock);
            }
        }
    }

    fn compile<'py>(
        &self,
        slf: &Bound<'py, Jitted>,
        flat: Flat<'py>,
        key: CallKey,
        lock: Option<CompileGuard<'_>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let py = slf.py();
        let fun = self.function.bind(py);
        let reason = self.reason(py, &flat, &key)?;
        let count = self.statistics.misses() as usize;
        if let Some(limit) = self.settings.max_compiles(py)?.filter(|limit| count >= *limit) {
            let (fun, why) = (self.function.name(py), reason.text());
            return Err(Misuse::TooManyCompiles { fun, count, limit, why }.into());
        }
        let start = Instant::now();
        let source = Jitted::source(slf);
        let shared = &self.versions.shared;
        let known = shared.count();
        let (transform, takes_self) = (self.kind.transform(py), self.signature.takes_self());
        let roots = GuardRoots::of_call(fun, transform, takes_self, &flat, &key.closed_values)?;
        // Guards are recorded before tracing, so that what tracing itself changes can be left out afterwards.
        let guards = Guards::record(py, &roots)?;
        let donate = self.settings.donated_leaves(py, &self.signature, &flat.tree);
        let hooks = self.settings.hooks();
        let (program, first) = match &key.compiler {
            Choice::BuiltIn(_) => {
                let result =
                    Program::compile(py, &source, &flat, &key.compiler, (key.checks, key.mode), &donate);
                let name = |position: usize| self.signature.name(py, position);
                (result.map_err(|fault| name_argument(py, fault, &flat.tree, (&[], &[]), &name))?, None)
            }
            Choice::Python(_) => {
                donate::refuse(&key.compiler, &donate)?;
                background::refuse(&key.compiler, key.mode)?;
                let known = shared.function_key(py, fun, &flat, &key)?;
                Program::compile_and_run(py, &source, &flat, &key.compiler, key.checks, known, hooks)?
            }
        };
        // A thread that compiled without the lock may have added the same version in the meantime.
        if first.is_none()
            && shared.count() != known
            && let Some(result) = self.run_cached(py, &flat, &key)?
        {
            return Ok(result);
        }
        let mut borrowed = Borrowed::default();
        let Some(captures) = program.read_captures(fun, &flat.tree, &mut borrowed)? else {
            return Err(guards::missing_capture(&program.captures, fun, &flat.tree));
        };
        let after = self.closed_values(py, &flat)?;
        let leaves = flat.leaves.clone();
        let hosts = program.host_functions(py);
        let has_hosts = !hosts.is_empty();
        let inputs = guards::input_arrays(&program.captures, fun, &flat.tree);
        let guards = guards.into_stable(py, &roots, hosts, &inputs)?;
        let entry = Arc::new(Entry::new(fun, key, &after, flat, program, guards)?);
        self.versions.insert(py, &entry);
        drop(lock);
        self.report(py, &reason, start.elapsed(), entry.key.mode)?;
        let result = entry.program.run_or_take(py, &leaves, captures, borrowed, hooks, first);
        if has_hosts {
            entry.key.guards.disable_changed(py)?;
        }
        result.map_err(|fault| name_entry_argument(py, fault, &entry, &self.signature))
    }

    /// Why a call compiles.
    fn reason<'py>(&self, py: Python<'py>, flat: &Flat<'py>, key: &CallKey) -> Fallible<Reason> {
        let fun = self.function.bind(py);
        let versions = self.versions.shared.all();
        let labels = if versions.is_empty() || key.closed_values.is_empty() {
            Vec::new()
        } else {
            guards::closed_labels(fun, self.kind.transform(py), &flat.tree)?
        };
        let name = |position: usize| self.signature.name(py, position);
        ComparedCall { fun, flat, key, name: &name, labels: &labels }.explain(versions)
    }

    /// Counts a compilation, logs it where the user asks for that, and warns of too many.
    fn report(&self, py: Python<'_>, reason: &Reason, took: Duration, mode: CompileMode) -> Fallible<()> {
        let text = reason.text();
        self.statistics.count_miss(took, text.clone());
        let fun = self.function.name(py);
        log::compiled(py, &fun, took, mode, &text)?;
        match self.versions.shared.storm.note(&fun, reason) {
            Some(warning) => log::warn(py, &warning),
            None => Ok(()),
        }
    }

    /// The key by which a call finds its version.
    pub(super) fn key(&self, py: Python<'_>, flat: &Flat<'_>) -> Fallible<CallKey> {
        let mut words = TypeWords::new();
        for leaf in &flat.leaves {
            leaf::push_type_words(leaf, &mut words)?;
        }
        let compiler = self.settings.compiler(py)?;
        let how = (checks::current(), self.settings.compile_mode(py)?);
        CallKey::new(py, compiler, how, words, flat, self.closed_values(py, flat)?)
    }

    fn closed_values(&self, py: Python<'_>, flat: &Flat<'_>) -> Fallible<Vec<ClosedValue>> {
        if !self.has_closed_values() && !flat.tree.objects().iter().any(AuxObject::is_function) {
            return Ok(Vec::new());
        }
        guards::closed_values(self.function.bind(py), self.kind.transform(py), &flat.tree)
    }
}
