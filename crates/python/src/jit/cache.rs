//! The cache of compiled versions, by signature. Functions of one code object share their versions.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use defn_core::backend::Checks;
use defn_core::background::Progress;
use defn_core::vectorize::{NamedAxes, named};
use defn_core::{DType, Tensor};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFunction, PyWeakrefMethods, PyWeakrefReference};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::compile_lock::CompileLock;
use super::definition::Kind;
use super::donate::Donated;
use super::explain::RecompileStorm;
use super::guards::{ClosedValue, Guards, RecordedClosedValue, equal_closed_values, record_closed_values};
use super::leaf::{self, TypeWords};
use super::program::Program;
use super::settings::CompileMode;
use crate::compilers::Choice;
use crate::containers::{Flat, Tree};
use crate::error::Fallible;
use crate::grad::Derivative;
use crate::options;

/// The number of functions whose versions are kept although no definition of them is alive.
const SHARED_LIMIT: usize = 2048;

/// The number of versions that are kept for each definition of one code object.
pub(super) const VERSION_LIMIT: usize = 256;

/// What a call looks its version up by.
pub(super) struct CallKey {
    pub(super) hash: u64,
    pub(super) compiler: Choice,
    pub(super) checks: Checks,
    pub(super) mode: CompileMode,
    pub(super) default_float: DType,
    /// The named axes of the mapped functions around the call.
    pub(super) named_axes: NamedAxes,
    words: TypeWords,
    pub(super) closed_values: Vec<ClosedValue>,
}

impl CallKey {
    /// # Errors
    /// A static value that cannot be hashed, and a default that is not one any more.
    pub(super) fn new(
        py: Python<'_>,
        compiler: Choice,
        (checks, mode): (Checks, CompileMode),
        words: TypeWords,
        flat: &Flat<'_>,
        closed_values: Vec<ClosedValue>,
    ) -> Fallible<CallKey> {
        let default_float = options::default_float(py)?;
        let named_axes = named::known();
        let mut hasher = FxHasher::default();
        words.hash(&mut hasher);
        named_axes.hash(&mut hasher);
        compiler.name().hash(&mut hasher);
        (checks, mode, default_float).hash(&mut hasher);
        flat.tree.hash(py, "jit")?.hash(&mut hasher);
        // The closed-over values are not hashed, because what tracing itself changes in them does not count.
        let hash = hasher.finish();
        Ok(CallKey { hash, compiler, checks, mode, default_float, named_axes, words, closed_values })
    }
}

/// The signature of a compiled version: what a call must have to run it.
pub(super) struct VersionKey {
    pub(super) compiler: Choice,
    pub(super) checks: Checks,
    pub(super) mode: CompileMode,
    pub(super) default_float: DType,
    pub(super) named_axes: NamedAxes,
    words: TypeWords,
    /// What the function closes over.
    pub(super) closed_values: Vec<RecordedClosedValue>,
    pub(super) arguments: Tree,
    /// The types of the leaves of the arguments.
    pub(super) models: Vec<Tensor>,
    /// What the function read from outside its arguments.
    pub(super) guards: Guards,
    /// Whether the program holds objects that only the traced function has.
    pub(super) is_owned: bool,
    /// The value of [`SharedVersions::count`] when this version was used last.
    used: AtomicU64,
    number: AtomicU64,
}

impl VersionKey {
    /// The position of the version in the order in which the versions of its function were added.
    pub(super) fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// Whether a call has this signature.
    fn matches(&self, py: Python<'_>, flat: &Flat<'_>, key: &CallKey) -> Fallible<bool> {
        if !self.compiler.is_same(py, &key.compiler)?
            || (self.checks, self.mode, self.default_float) != (key.checks, key.mode, key.default_float)
            || self.named_axes != key.named_axes
            || self.words != key.words
            || !self.arguments.equals(py, &flat.tree)?
            || !equal_closed_values(py, &self.closed_values, &key.closed_values)?
        {
            return Ok(false);
        }
        // The words contain only the hashes of names, so that the names are compared here.
        for (known, leaf) in self.models.iter().zip(&flat.leaves) {
            let named = known.ty().shape.has_names() || known.is_vectorized();
            if named && !leaf::same_model(known, &leaf::model("jit", leaf)?) {
                return Ok(false);
            }
        }
        self.holds(py)
    }

    /// Whether the guards hold.
    pub(super) fn holds(&self, py: Python<'_>) -> Fallible<bool> {
        self.guards.hold(py)
    }

    /// Whether an object that calls of this signature need no longer exists.
    fn is_gone(&self, py: Python<'_>) -> bool {
        self.arguments.is_gone(py) || self.closed_values.iter().any(|value| value.is_gone(py))
    }
}

/// A compiled version.
pub(super) struct Entry {
    pub(super) key: Arc<VersionKey>,
    hash: u64,
    pub(super) program: Program,
    /// The traced function, where the program holds objects that only this function has.
    owner: Option<Py<PyAny>>,
}

impl Entry {
    pub(super) fn new(
        fun: &Bound<'_, PyAny>,
        key: CallKey,
        after: &[ClosedValue],
        flat: Flat<'_>,
        program: Program,
        guards: Guards,
    ) -> Fallible<Entry> {
        let py = fun.py();
        let is_owned = program.is_bound_to_function(py);
        let types = flat.leaves.iter().map(|leaf| leaf::model("jit", leaf)).collect::<Fallible<_>>()?;
        let CallKey { hash, compiler, checks, mode, default_float, named_axes, words, closed_values } = key;
        let closed_values = record_closed_values(py, closed_values, after, is_owned)?;
        let known = VersionKey {
            compiler,
            checks,
            mode,
            default_float,
            named_axes,
            words,
            closed_values,
            arguments: flat.tree.into_retained(py)?,
            models: types,
            guards,
            is_owned,
            used: AtomicU64::new(0),
            number: AtomicU64::new(0),
        };
        Ok(Entry { key: Arc::new(known), hash, program, owner: is_owned.then(|| fun.clone().unbind()) })
    }

    /// Whether the version may run for a call of this function.
    pub(super) fn serves(&self, fun: &Bound<'_, PyAny>, flat: &Flat<'_>, key: &CallKey) -> Fallible<bool> {
        let is_for = self.owner.as_ref().is_none_or(|owner| fun.is(owner));
        Ok(is_for && self.key.matches(fun.py(), flat, key)?)
    }

    /// Shows the garbage collector the objects that the version holds.
    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.owner)?;
        self.program.traverse(visit)
    }
}

/// The versions of one function.
#[derive(Default)]
pub(super) struct SharedVersions {
    state: Mutex<VersionTable>,
    /// The number of versions that were ever added.
    count: AtomicU64,
    /// The lock of the thread that compiles a version at this moment.
    pub(super) compile_lock: CompileLock,
    pub(super) storm: RecompileStorm,
}

/// A version. Where the program holds objects of one definition's function, the version belongs to that definition.
struct Version {
    key: Arc<VersionKey>,
    entry: EntryRef,
}

enum EntryRef {
    Strong(Arc<Entry>),
    Weak(Weak<Entry>),
}

impl Version {
    fn entry(&self) -> Option<Arc<Entry>> {
        match &self.entry {
            EntryRef::Strong(entry) => Some(entry.clone()),
            EntryRef::Weak(entry) => entry.upgrade(),
        }
    }
}

#[derive(Default)]
struct VersionTable {
    /// The versions by hash, the newest first. Of two versions that differ only in the types of captures, the newer
    /// one is the likelier match.
    by_hash: FxHashMap<u64, SmallVec<[Version; 1]>>,
    /// The newest version. A call is compared with it for its reason to compile even after the program was dropped.
    latest: Option<Arc<VersionKey>>,
}

/// What two functions must have in common to share their versions: the code, and what the definition does with it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct FunctionIdentity {
    code: usize,
    is_method: bool,
    gradient: Option<(Vec<i64>, bool, Derivative, bool, usize)>,
    marked: Vec<String>,
    donate: Vec<Donated>,
}

/// Keeps the address in a [`FunctionIdentity`] valid: either the object is kept alive, or its end is noticed.
enum Anchor {
    /// The code of a function, or a callable that does not support weak references. It is kept alive.
    Strong { _object: Py<PyAny> },
    /// A callable that is not a Python function. It may hold large objects and is not kept alive.
    Callable(Py<PyWeakrefReference>),
}

impl Anchor {
    fn new(fun: &Bound<'_, PyAny>) -> PyResult<(Anchor, usize)> {
        let py = fun.py();
        if fun.is_exact_instance_of::<PyFunction>() {
            let code = fun.getattr(intern!(py, "__code__"))?;
            let address = code.as_ptr() as usize;
            return Ok((Anchor::Strong { _object: code.unbind() }, address));
        }
        let anchor = match PyWeakrefReference::new(fun) {
            Ok(reference) => Anchor::Callable(reference.unbind()),
            Err(_) => Anchor::Strong { _object: fun.clone().unbind() },
        };
        Ok((anchor, fun.as_ptr() as usize))
    }

    fn is_gone(&self, py: Python<'_>) -> bool {
        match self {
            Anchor::Strong { .. } => false,
            Anchor::Callable(reference) => reference.bind(py).upgrade().is_none(),
        }
    }
}

struct RegisteredFunction {
    anchors: Arc<[Anchor]>,
    shared: Arc<SharedVersions>,
}

/// While this is locked, entries are only looked up, inserted and removed. No Python code runs under the lock.
static FUNCTIONS: Mutex<Option<FxHashMap<FunctionIdentity, RegisteredFunction>>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<FxHashMap<FunctionIdentity, RegisteredFunction>>> {
    FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedVersions {
    /// The versions that a function shares with all functions of the same code.
    pub(super) fn of(
        fun: &Bound<'_, PyAny>,
        kind: &Kind,
        marked: &[String],
        donate: &[Donated],
    ) -> PyResult<Arc<SharedVersions>> {
        let py = fun.py();
        let is_method = fun.is_instance(super::function::method_class(py)?.as_any())?;
        let (main, address) =
            if is_method { Anchor::new(&fun.getattr(intern!(py, "__func__"))?)? } else { Anchor::new(fun)? };
        let mut anchors = vec![main];
        let gradient = match kind {
            Kind::Plain => None,
            Kind::Gradient(spec) => {
                let transform = match &spec.transform {
                    None => 0,
                    Some(transform) => {
                        let (anchor, address) = Anchor::new(transform.bind(py))?;
                        anchors.push(anchor);
                        address
                    }
                };
                Some((spec.argnums.clone(), spec.single, spec.derivative, spec.has_aux, transform))
            }
        };
        let identity = FunctionIdentity {
            code: address,
            is_method,
            gradient,
            marked: marked.to_vec(),
            donate: donate.to_vec(),
        };
        let found = lock()
            .get_or_insert_default()
            .get(&identity)
            .map(|known| (known.anchors.clone(), known.shared.clone()));
        // The address may belong to another object by now.
        if let Some((anchors, shared)) = found
            && !anchors.iter().any(|anchor| anchor.is_gone(py))
        {
            return Ok(shared);
        }
        let callables: Vec<(FunctionIdentity, Arc<[Anchor]>)> = lock()
            .get_or_insert_default()
            .iter()
            .filter(|(_, known)| known.anchors.iter().any(|anchor| matches!(anchor, Anchor::Callable(_))))
            .map(|(identity, known)| (identity.clone(), known.anchors.clone()))
            .collect();
        let is_gone = |anchors: &[Anchor]| anchors.iter().any(|anchor| anchor.is_gone(py));
        let gone: Vec<FunctionIdentity> = callables
            .into_iter()
            .filter(|(_, anchors)| is_gone(anchors))
            .map(|(identity, _)| identity)
            .collect();
        let shared = Arc::new(SharedVersions::default());
        let mut lock = lock();
        let functions = lock.get_or_insert_default();
        let mut dropped: Vec<RegisteredFunction> =
            gone.iter().filter_map(|identity| functions.remove(identity)).collect();
        if functions.len() >= SHARED_LIMIT {
            let unused: Vec<FunctionIdentity> = functions
                .iter()
                .filter(|(_, known)| Arc::strong_count(&known.shared) == 1)
                .map(|(identity, _)| identity.clone())
                .collect();
            dropped.extend(unused.iter().filter_map(|identity| functions.remove(identity)));
        }
        let registered = RegisteredFunction { anchors: anchors.into(), shared: shared.clone() };
        dropped.extend(functions.insert(identity, registered));
        drop(lock);
        // Dropping these may run Python code, which must not find the lock held.
        drop(dropped);
        Ok(shared)
    }

    fn lock(&self) -> MutexGuard<'_, VersionTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The versions of a hash. The caller compares them without the lock, because a comparison may run Python code.
    pub(super) fn candidates(&self, hash: u64) -> SmallVec<[Arc<Entry>; 1]> {
        let versions = self.lock();
        versions
            .by_hash
            .get(&hash)
            .map(|found| found.iter().filter_map(Version::entry).collect())
            .unwrap_or_default()
    }

    /// The key by which a compiler written in Python knows the function. Versions that differ only in the types of
    /// arguments have the same key.
    pub(super) fn function_key(
        &self,
        py: Python<'_>,
        fun: &Bound<'_, PyAny>,
        flat: &Flat<'_>,
        key: &CallKey,
    ) -> Fallible<Option<Py<PyAny>>> {
        let entries: Vec<Arc<Entry>> =
            self.lock().by_hash.values().flatten().filter_map(Version::entry).collect();
        for entry in entries {
            let known = &entry.key;
            if let Some(found) = &entry.program.function_key
                && entry.owner.as_ref().is_none_or(|owner| fun.is(owner))
                && known.compiler.is_same(py, &key.compiler)?
                && known.arguments.equals(py, &flat.tree)?
                && equal_closed_values(py, &known.closed_values, &key.closed_values)?
                && known.guards.hold(py)?
            {
                return Ok(Some(found.clone_ref(py)));
            }
        }
        Ok(None)
    }

    /// The number of versions that were ever added. It changes when a version is added.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Notes that a version was used.
    pub(super) fn touch(&self, entry: &Entry) {
        entry.key.used.store(self.count(), Ordering::Relaxed);
    }

    /// Adds a version. Drops the versions that no call can find any more. Beyond the limit, drops those that were not
    /// used for the longest time.
    pub(super) fn insert(&self, py: Python<'_>, entry: &Arc<Entry>, limit: usize) {
        let gone = |known: &Arc<VersionKey>| known.is_gone(py);
        let dead: Vec<Arc<VersionKey>> =
            self.all().into_iter().map(|(known, _)| known).filter(gone).collect();
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        entry.key.used.store(number, Ordering::Relaxed);
        entry.key.number.store(number, Ordering::Relaxed);
        let mut dropped: Vec<Version> = Vec::new();
        let mut lock = self.lock();
        let versions = &mut *lock;
        versions.by_hash.retain(|_, list| {
            let mut at = 0;
            while at < list.len() {
                let version = &list[at];
                let is_dead = dead.iter().any(|known| Arc::ptr_eq(known, &version.key));
                let is_lost = match &version.entry {
                    EntryRef::Strong(_) => false,
                    EntryRef::Weak(entry) => entry.strong_count() == 0,
                };
                if is_dead || is_lost { dropped.push(list.remove(at)) } else { at += 1 }
            }
            !list.is_empty()
        });
        let count = versions.by_hash.values().map(SmallVec::len).sum::<usize>() + 1;
        if let Some(excess) = count.checked_sub(limit).filter(|excess| *excess > 0) {
            let all =
                versions.by_hash.iter().flat_map(|(hash, list)| list.iter().map(|known| (*hash, known)));
            let mut all: Vec<(u64, u64, Arc<VersionKey>)> = all
                .map(|(hash, version)| (version.key.used.load(Ordering::Relaxed), hash, version.key.clone()))
                .collect();
            all.sort_by_key(|(used, _, known)| (*used, known.number()));
            for (_, hash, known) in all.into_iter().take(excess) {
                if let Some(list) = versions.by_hash.get_mut(&hash) {
                    let at = list.iter().position(|version| Arc::ptr_eq(&version.key, &known));
                    dropped.extend(at.map(|at| list.remove(at)));
                    if list.is_empty() {
                        versions.by_hash.remove(&hash);
                    }
                }
            }
        }
        let holding = if entry.owner.is_some() {
            EntryRef::Weak(Arc::downgrade(entry))
        } else {
            EntryRef::Strong(entry.clone())
        };
        let version = Version { key: entry.key.clone(), entry: holding };
        versions.by_hash.entry(entry.hash).or_default().insert(0, version);
        let before = versions.latest.replace(entry.key.clone());
        // Dropping these may run Python code, which must not find the lock held.
        drop(lock);
        drop((before, dropped, dead));
    }

    /// Every version, the newest first as far as is known. A program that was dropped is missing.
    pub(super) fn all(&self) -> Vec<(Arc<VersionKey>, Option<Arc<Entry>>)> {
        let versions = self.lock();
        let mut all: Vec<_> = versions
            .by_hash
            .values()
            .flatten()
            .map(|version| (version.key.clone(), version.entry()))
            .collect();
        if let Some(latest) = &versions.latest
            && !all.iter().any(|(known, _)| Arc::ptr_eq(known, latest))
        {
            all.push((latest.clone(), None));
        }
        drop(versions);
        all
    }

    /// The number of versions whose programs still exist.
    pub(super) fn len(&self) -> usize {
        let is_there = |version: &&Version| match &version.entry {
            EntryRef::Strong(_) => true,
            EntryRef::Weak(entry) => entry.strong_count() > 0,
        };
        self.lock().by_hash.values().flatten().filter(is_there).count()
    }

    /// The number of versions that are compiled in the background at this moment.
    pub(super) fn compiling(&self) -> usize {
        let is_compiling = |(_, entry): &(_, Option<Arc<Entry>>)| {
            let progress = entry.as_ref().map(|entry| entry.program.executable().progress());
            matches!(progress, Some(Progress::Compiling))
        };
        self.all().iter().filter(|version| is_compiling(version)).count()
    }

    /// Forgets every version.
    pub(super) fn clear(&self) {
        let before = std::mem::take(&mut *self.lock());
        drop(before);
        self.storm.clear();
    }
}
