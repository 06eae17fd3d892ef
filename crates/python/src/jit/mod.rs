//! Definitions: callables that trace a Python function once for each signature, and run what it did.
//!
//! A call that was seen before is Rust from end to end: the arguments are taken apart, the signature is looked
//! up, the program runs, and the results are put together.

mod argument_names;
mod cache;
mod compile_lock;
mod compiled;
mod definition;
mod donate;
mod explain;
mod guards;
pub(crate) mod leaf;
mod log;
mod memory;
mod profile;
mod program;
mod python;
mod saved;
mod settings;
mod signature;
pub(crate) mod staged;
mod traced;
mod versions;

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use defn_core::trace;
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::checks;
use crate::compilers::Choice;
use crate::containers::{Flat, Held};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::fields::Fields;
use crate::grad::Gradient;
use crate::hooks;
use crate::misuse::Misuse;
use crate::options;
use crate::recursion;
use crate::tensor::PyTensor;
use argument_names::{name_argument, name_entry_argument};
use cache::{Entry, Key, Shared, VERSION_LIMIT};
use compile_lock::{Acquired, CompileGuard};
pub(crate) use compiled::{flatten_arguments, named_type};
use definition::{Definition, Kind};
use explain::{Call, Reason};
use guards::{ClosedValue, GuardRoots, Guards};
use leaf::Words;
pub(crate) use leaf::{Borrowed, arguments as leaf_arguments, model as leaf_model, ty as leaf_type};
pub(crate) use log::warn_of;
use program::Program;
pub(crate) use python::traced_by;
pub(crate) use settings::check_default;
use settings::{Conflict, compile_limit, marked_names};
use signature::Signature;
use versions::Last;
pub(crate) use {leaf::wrap, program::result_tensor, signature::function_name};

/// A definition.
#[pyclass(frozen, dict, weakref, module = "defn._core")]
pub(crate) struct Jitted(Fields<Definition>);

impl Deref for Jitted {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        &self.0
    }
}

impl Jitted {
    /// The Python function.
    pub(crate) fn fun<'a, 'py>(&'a self, py: Python<'py>) -> &'a Bound<'py, PyAny> {
        self.fun.bind(py)
    }

    /// A definition that differentiates a function.
    pub(crate) fn gradient(fun: &Bound<'_, PyAny>, gradient: Gradient) -> Fallible<Jitted> {
        let kind = Kind::Gradient(gradient);
        let definition = Jitted::build(fun, false, kind, Some(Conflict::Reuse), &[], None, None)?;
        Ok(Jitted(definition.into()))
    }

    fn build(
        fun: &Bound<'_, PyAny>,
        convert: bool,
        kind: Kind,
        conflict: Option<Conflict>,
        marked: &[String],
        compiler: Option<Choice>,
        max_compiles: Option<usize>,
    ) -> Fallible<Definition> {
        if !fun.is_callable() {
            return Err(convert::bad("jit", "the function", fun, "callable")?);
        }
        let signature = Signature::new(fun, marked)?;
        Ok(Definition {
            shared: Shared::of(fun, &kind, marked, &[])?,
            donate: Vec::new(),
            last: Last::default(),
            closes: guards::has_closed_values(fun)? || kind.has_transform(),
            fun: fun.clone().unbind(),
            convert,
            converted: OnceLock::new(),
            kind,
            conflict,
            compiler,
            options: None,
            max_compiles,
            hooks: None,
            signature,
            owned: Mutex::default(),
            history: Mutex::default(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            nanos: AtomicU64::new(0),
        })
    }

    /// Calls the function, or what is made of it, with tensors of the open trace or at once.
    fn apply<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let fun = self.called(args.py())?;
        match &self.kind {
            Kind::Plain => Ok(fun.call(args, kwargs)?),
            Kind::Gradient(gradient) => gradient.call(fun, args, kwargs),
        }
    }

    /// The function as it is called: with its control flow rewritten where that is asked for.
    fn called<'a, 'py>(&'a self, py: Python<'py>) -> PyResult<&'a Bound<'py, PyAny>> {
        if !self.convert {
            return Ok(self.fun.bind(py));
        }
        if let Some(converted) = self.converted.get() {
            return Ok(converted.bind(py));
        }
        let syntax = py.import("defn._syntax")?;
        let converted = syntax.call_method1(intern!(py, "converted"), (&self.fun,))?.unbind();
        // Of two threads that convert it at once, one keeps what it made.
        Ok(self.converted.get_or_init(|| converted).bind(py))
    }

    fn op(&self) -> &'static str {
        match &self.kind {
            Kind::Plain => "defn",
            Kind::Gradient(_) => "grad",
        }
    }

    /// A call outside of any trace, or apart from the open one.
    fn run<'py>(
        slf: &Bound<'py, Jitted>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let (py, this) = (args.py(), slf.get());
        if kwargs.is_none()
            && let Some(result) = this.again(args)?
        {
            return Ok(result);
        }
        let flat = this.signature.flatten(this.fun.bind(py), args, kwargs)?;
        let key = this.key(py, &flat)?;
        match this.find(py, &flat, &key)? {
            Some(result) => Ok(result),
            None => this.miss(slf, flat, key),
        }
    }

    /// Compiles a version, unless another thread does so meanwhile.
    #[cold]
    fn miss<'py>(&self, slf: &Bound<'py, Jitted>, flat: Flat<'py>, key: Key) -> Fallible<Bound<'py, PyAny>> {
        let py = slf.py();
        let mut known = 0;
        loop {
            let acquired = self.shared.compile_lock.acquire(py, key.hash)?;
            let count = self.shared.count();
            if (matches!(acquired, Acquired::Waited) || count != known)
                && let Some(result) = self.find(py, &flat, &key)?
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
        key: Key,
        lock: Option<CompileGuard<'_>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let py = slf.py();
        let fun = self.fun.bind(py);
        let reason = self.reason(py, &flat, &key)?;
        let count = self.misses.load(Ordering::Relaxed) as usize;
        let limit = match self.max_compiles {
            Some(limit) => Some(limit),
            None => match options::get(py, intern!(py, "max_compiles"))? {
                Some(limit) => compile_limit("default_options", &limit)?,
                None => None,
            },
        };
        if let Some(limit) = limit.filter(|limit| count >= *limit) {
            let (fun, why) = (function_name(fun), reason.text());
            return Err(Misuse::TooManyCompiles { fun, count, limit, why }.into());
        }
        let start = Instant::now();
        let source = Jitted::source(slf);
        let known = self.shared.count();
        let takes_self = self.signature.takes_self();
        let roots = GuardRoots::of_call(fun, self.transform(py), takes_self, &flat, &key.environment)?;
        let guards = Guards::record(py, &roots)?;
        let donate = donate::leaves(py, &self.donate, &self.signature, &flat.tree);
        let (program, first) = match &key.compiler {
            Choice::BuiltIn(_) => {
                let made = Program::make(py, &source, &flat, &key.compiler, key.checks, &donate);
                let name = |position: usize| self.signature.name(py, position);
                (made.map_err(|fault| name_argument(py, fault, &flat.tree, (&[], &[]), &name))?, None)
            }
            Choice::Python(_) => {
                donate::refuse(&key.compiler, &donate)?;
                let known = self.shared.function_key(py, fun, &flat, &key)?;
                let hooks = self.hooks.as_ref();
                Program::make_and_run(py, &source, &flat, &key.compiler, key.checks, known, hooks)?
            }
        };
        // One who had no turn of its own may have compiled the same version meanwhile.
        if first.is_none()
            && self.shared.count() != known
            && let Some(result) = self.find(py, &flat, &key)?
        {
            return Ok(result);
        }
        let mut borrowed = Borrowed::default();
        let Some(captures) = program.read_captures(fun, &flat.tree, &mut borrowed)? else {
            return Err(guards::missing_capture(&program.captures, fun, &flat.tree));
        };
        let after = self.environment(py, &flat)?;
        let leaves = flat.leaves.clone();
        let hosts = program.host_functions(py);
        let has_hosts = !hosts.is_empty();
        let inputs = guards::input_arrays(&program.captures, fun, &flat.tree);
        let guards = guards.into_stable(py, &roots, hosts, &inputs)?;
        let entry = Arc::new(Entry::new(fun, key, &after, flat, program, guards)?);
        if entry.known.is_owned {
            let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
            let oldest = (owned.len() >= VERSION_LIMIT).then(|| owned.remove(0));
            owned.push(entry.clone());
            drop(owned);
            drop(oldest);
        }
        self.shared.insert(py, &entry, self.limit());
        drop(lock);
        self.note(py, &reason, start.elapsed())?;
        let hooks = self.hooks.as_ref();
        let result = entry.program.run_or_take(py, &leaves, captures, borrowed, hooks, first);
        if has_hosts {
            entry.known.guards.disable_changed(py)?;
        }
        result.map_err(|fault| name_entry_argument(py, fault, &entry, &self.signature))
    }

    /// Why a call compiles.
    fn reason<'py>(&self, py: Python<'py>, flat: &Flat<'py>, key: &Key) -> Fallible<Reason> {
        let fun = self.fun.bind(py);
        let versions = self.shared.all();
        let labels = if versions.is_empty() || key.environment.is_empty() {
            Vec::new()
        } else {
            guards::closed_labels(fun, self.transform(py), &flat.tree)?
        };
        let name = |position: usize| self.signature.name(py, position);
        Call { fun, flat, key, name: &name, labels: &labels }.explain(versions)
    }

    /// Remembers that a version was compiled, says so where that is asked for, and warns of a storm.
    fn note(&self, py: Python<'_>, reason: &Reason, took: Duration) -> Fallible<()> {
        self.misses.fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        let text = reason.text();
        {
            let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
            if history.len() >= VERSION_LIMIT {
                history.pop_front();
            }
            history.push_back(text.clone());
        }
        let fun = function_name(self.fun.bind(py));
        log::compiled(py, &fun, took, &text)?;
        match self.shared.storm.note(&fun, reason) {
            Some(warning) => log::warn(py, &warning),
            None => Ok(()),
        }
    }

    /// How many versions are kept: so many for each definition that shares them.
    fn limit(&self) -> usize {
        // The list of functions holds them too.
        let definitions = Arc::strong_count(&self.shared).saturating_sub(1).max(1);
        definitions.saturating_mul(VERSION_LIMIT)
    }

    /// What a call does while another definition is traced.
    fn conflict(&self, py: Python<'_>) -> Fallible<Conflict> {
        match (self.conflict, options::get(py, intern!(py, "on_conflict"))?) {
            (Some(conflict), _) => Ok(conflict),
            (None, Some(value)) => Conflict::of("default_options", &value),
            (None, None) => Ok(Conflict::Raise),
        }
    }

    fn transform<'a, 'py>(&'a self, py: Python<'py>) -> Option<&'a Bound<'py, PyAny>> {
        match &self.kind {
            Kind::Plain => None,
            Kind::Gradient(gradient) => gradient.transform.as_ref().map(|transform| transform.bind(py)),
        }
    }

    fn key(&self, py: Python<'_>, flat: &Flat<'_>) -> Fallible<Key> {
        let mut words = Words::new();
        for leaf in &flat.leaves {
            leaf::push_words(leaf, &mut words)?;
        }
        Key::new(py, self.chosen(py)?, checks::current(), words, flat, self.environment(py, flat)?)
    }

    /// The compiler of a call: the definition's own, or the one that holds where it is called.
    fn chosen(&self, py: Python<'_>) -> Fallible<Choice> {
        match &self.compiler {
            Some(choice) => Ok(choice.clone()),
            None => options::default_compiler(py, self.options.as_ref().map(|options| options.bind(py))),
        }
    }

    fn environment(&self, py: Python<'_>, flat: &Flat<'_>) -> Fallible<Vec<ClosedValue>> {
        if !self.closes && !flat.tree.held().iter().any(Held::is_function) {
            return Ok(Vec::new());
        }
        guards::closed_values(self.fun.bind(py), self.transform(py), &flat.tree)
    }
}

#[pymethods]
impl Jitted {
    #[new]
    #[pyo3(signature = (fun, *, inline = false, r#static = None, on_conflict = None, compiler = None,
                        max_compiles = None, options = None, convert = false, hooks = None, donate = None))]
    #[expect(clippy::too_many_arguments, reason = "they are the options of a definition")]
    fn new(
        fun: &Bound<'_, PyAny>,
        inline: bool,
        r#static: Option<&Bound<'_, PyAny>>,
        on_conflict: Option<&Bound<'_, PyAny>>,
        compiler: Option<&Bound<'_, PyAny>>,
        max_compiles: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
        convert: bool,
        hooks: Option<&Bound<'_, PyAny>>,
        donate: Option<&Bound<'_, PyAny>>,
    ) -> Fallible<Jitted> {
        guard(|| {
            let conflict = match on_conflict.filter(|given| !inline && !given.is_none()) {
                Some(given) => Some(Conflict::of("jit", given)?),
                None => inline.then_some(Conflict::Reuse),
            };
            let compiler = compiler.filter(|compiler| !compiler.is_none());
            let compiler = compiler.map(|compiler| Choice::of("jit", compiler, options)).transpose()?;
            let max_compiles = max_compiles.map(|limit| compile_limit("jit", limit)).transpose()?.flatten();
            // A definition of a definition is one of the same function.
            let (fun, convert) = match fun.cast::<Jitted>() {
                Ok(inner) if matches!(inner.get().kind, Kind::Plain) => {
                    (inner.get().fun(fun.py()).clone(), convert || inner.get().convert)
                }
                Ok(_) | Err(_) => (fun.clone(), convert),
            };
            let marked = marked_names(r#static)?;
            let hooks = hooks::named("jit", hooks)?;
            let made = Jitted::build(&fun, convert, Kind::Plain, conflict, &marked, compiler, max_compiles)?;
            let options = options.map(|options| options.clone().unbind());
            let donate = donate::parse("jit", donate)?;
            if donate.is_empty() {
                return Ok(Jitted(Definition { hooks, options, ..made }.into()));
            }
            donate::check(fun.py(), &donate, &made.signature)?;
            let shared = Shared::of(&fun, &Kind::Plain, &marked, &donate)?;
            Ok(Jitted(Definition { hooks, options, shared, donate, ..made }.into()))
        })
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let this = slf.get();
        guard(|| {
            if trace::depth() == 0 {
                return Jitted::run(slf, args, kwargs);
            }
            match this.conflict(slf.py())? {
                Conflict::Reuse => {
                    let _call = recursion::enter(this.op())?;
                    this.apply(args, kwargs)
                }
                Conflict::Raise => {
                    let fun = function_name(this.fun.bind(args.py()));
                    Err(Misuse::Conflict { fun }.into())
                }
                Conflict::Force => {
                    let is_traced = |value: Bound<'_, PyAny>| {
                        value.cast::<PyTensor>().is_ok_and(|tensor| tensor.get().tensor.is_traced())
                    };
                    if args.iter().any(is_traced) {
                        let fun = function_name(this.fun.bind(args.py()));
                        return Err(Misuse::ForcedTraced { op: "jit", fun }.into());
                    }
                    Jitted::run(slf, args, kwargs)
                }
            }
        })
    }

    /// A call whose steps are timed.
    #[pyo3(signature = (*args, **kwargs))]
    fn profile<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let chosen = || slf.get().chosen(slf.py()).map(Some);
        profile::profile(slf.py(), chosen, || Jitted::run(slf, args, kwargs))
    }

    /// What a call would allocate, told before it runs.
    #[pyo3(signature = (*args, **kwargs))]
    fn memory(
        slf: &Bound<'_, Self>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> Fallible<memory::PyMemoryNeed> {
        memory::memory(slf, args, kwargs)
    }

    /// Makes definitions work as methods.
    fn __get__<'py>(
        slf: Bound<'py, Self>,
        instance: Option<Bound<'py, PyAny>>,
        _owner: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        match instance.filter(|instance| !instance.is_none()) {
            Some(instance) => traced::method_class(py)?.call1((slf, instance)),
            None => Ok(slf.into_any()),
        }
    }

    /// As a function: by its name in its module.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.getattr(intern!(slf.py(), "__qualname__"))
    }

    #[getter(fun)]
    fn function(&self, py: Python<'_>) -> Py<PyAny> {
        self.fun.clone_ref(py)
    }

    /// How many calls found a compiled version, how many compiled one and in how many seconds, and how many are
    /// kept of how many at most.
    fn cache_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let info = PyDict::new(py);
        info.set_item("hits", self.hits.load(Ordering::Relaxed))?;
        info.set_item("misses", self.misses.load(Ordering::Relaxed))?;
        info.set_item("size", self.shared.len())?;
        info.set_item("limit", self.limit())?;
        info.set_item("seconds", self.nanos.load(Ordering::Relaxed) as f64 * 1e-9)?;
        Ok(info)
    }

    /// Forgets every compiled version, and what was said of them.
    fn cache_clear(&self) {
        self.shared.clear();
        let owned = std::mem::take(&mut *self.owned.lock().unwrap_or_else(PoisonError::into_inner));
        drop(owned);
        self.history.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.hits.store(0, Ordering::Relaxed);
        self.misses.store(0, Ordering::Relaxed);
        self.nanos.store(0, Ordering::Relaxed);
    }

    /// Why each version was compiled, the oldest first.
    fn explain(&self) -> Vec<String> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The function that a definition wraps, and its annotations and attributes.
    fn __getattr__<'py>(&self, py: Python<'py>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        let text = name.to_str()?;
        traced::attribute(self.fun.bind(py), name, text)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.get().map_or(Ok(()), |definition| definition.traverse(&visit))
    }

    fn __clear__(&self) {
        if let Some(definition) = self.0.get() {
            definition.clear();
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let about = (self.op(), function_name(self.fun.bind(py)), &self.fun, self.shared.len());
        py.import("defn._describe")?.call_method1("definition", about)?.extract()
    }
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Jitted>()?;
    python::add(module)?;
    saved::add(module)?;
    profile::add(module)?;
    memory::add(module)?;
    guards::add(module)?;
    compiled::add(module)
}
