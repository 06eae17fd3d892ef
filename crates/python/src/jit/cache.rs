//! Compiled versions by signature. Functions of one code object share them.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use defn_core::Tensor;
use defn_core::backend::Checks;
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
use crate::compilers::Choice;
use crate::containers::{Flat, Tree};
use crate::error::Fallible;
use crate::grad::Derivative;

/// Functions whose versions are kept although no definition of them is alive.
const SHARED_LIMIT: usize = 2048;

/// VersionTable that are kept for each definition of one code.
pub(super) const VERSION_LIMIT: usize = 256;

/// What a call looks for.
pub(super) struct CallKey {
    pub(super) hash: u64,
    pub(super) compiler: Choice,
    pub(super) checks: Checks,
    words: TypeWords,
    pub(super) closed_values: Vec<ClosedValue>,
}

impl CallKey {
    /// # Errors
    /// A static value that cannot be hashed.
    pub(super) fn new(
        py: Python<'_>,
        compiler: Choice,
        checks: Checks,
        words: TypeWords,
        flat: &Flat<'_>,
        closed_values: Vec<ClosedValue>,
    ) -> Fallible<CallKey> {
        let mut hasher = FxHasher::default();
        words.hash(&mut hasher);
        compiler.name().hash(&mut hasher);
        checks.hash(&mut hasher);
        flat.tree.hash(py, "jit")?.hash(&mut hasher);
        // The closed_values takes no part in the hash: what tracing itself changes of it counts for nothing.
        Ok(CallKey { hash: hasher.finish(), compiler, checks, words, closed_values })
    }
}

/// The signature of a compiled version.
pub(super) struct VersionKey {
    pub(super) compiler: Choice,
    pub(super) checks: Checks,
    words: TypeWords,
    /// What the function closes over.
    pub(super) closed_values: Vec<RecordedClosedValue>,
    pub(super) arguments: Tree,
    /// The types of the arguments' leaves.
    pub(super) models: Vec<Tensor>,
    /// What the globals meant that the function read.
    pub(super) guards: Guards,
    /// Whether the program holds objects that only the traced function has.
    pub(super) is_owned: bool,
    /// How many versions there were when this one was used last.
    used: AtomicU64,
    number: AtomicU64,
}

impl VersionKey {
    /// Which of the versions of its function it is.
    pub(super) fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// Whether a call has this signature.
    fn matches(&self, py: Python<'_>, flat: &Flat<'_>, key: &CallKey) -> Fallible<bool> {
        if !self.compiler.is_same(py, &key.compiler)?
            || self.checks != key.checks
            || self.words != key.words
            || !self.arguments.equals(py, &flat.tree)?
            || !equal_closed_values(py, &self.closed_values, &key.closed_values)?
        {
            return Ok(false);
        }
        // The words hold names by their hashes only.
        for (known, leaf) in self.models.iter().zip(&flat.leaves) {
            let named = known.ty().shape.has_names() || known.is_vectorized();
            if named && !leaf::same_model(known, &leaf::model("jit", leaf)?) {
                return Ok(false);
            }
        }
        self.holds(py)
    }

    /// Whether the globals that the function read mean what they did.
    pub(super) fn holds(&self, py: Python<'_>) -> Fallible<bool> {
        self.guards.hold(py)
    }

    /// Whether an object is gone that calls of this signature need.
    fn is_gone(&self, py: Python<'_>) -> bool {
        self.arguments.is_gone(py) || self.closed_values.iter().any(|bond| bond.is_gone(py))
    }
}

/// A compiled version.
pub(super) struct Entry {
    pub(super) key: Arc<VersionKey>,
    hash: u64,
    pub(super) program: Program,
    /// The function that was traced, where the program holds objects that only this one has.
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
        let CallKey { hash, compiler, checks, words, closed_values } = key;
        let closed_values = record_closed_values(py, closed_values, after, is_owned)?;
        let known = VersionKey {
            compiler,
            checks,
            words,
            closed_values,
            arguments: flat.tree.kept(py)?,
            models: types,
            guards,
            is_owned,
            used: AtomicU64::new(0),
            number: AtomicU64::new(0),
        };
        Ok(Entry { key: Arc::new(known), hash, program, owner: is_owned.then(|| fun.clone().unbind()) })
    }

    /// Whether the version serves a call of this function.
    pub(super) fn serves(&self, fun: &Bound<'_, PyAny>, flat: &Flat<'_>, key: &CallKey) -> Fallible<bool> {
        let is_for = self.owner.as_ref().is_none_or(|owner| fun.is(owner));
        Ok(is_for && self.key.matches(fun.py(), flat, key)?)
    }

    /// Shows the garbage collector what is held.
    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.owner)?;
        self.program.traverse(visit)
    }
}

/// The versions of one function.
#[derive(Default)]
pub(super) struct SharedVersions {
    state: Mutex<VersionTable>,
    /// How many versions were ever kept.
    count: AtomicU64,
    /// Who compiles at this moment.
    pub(super) compile_lock: CompileLock,
    pub(super) storm: RecompileStorm,
}

/// A version, which belongs to a definition where its program holds objects of that one's function.
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
    /// By hash, the newest first: of two that differ in captured types only, it is the likelier one.
    by_hash: FxHashMap<u64, SmallVec<[Version; 1]>>,
    /// The newest, which is compared with also where its objects are gone.
    latest: Option<Arc<VersionKey>>,
}

/// What tells functions apart: the code, and what is made of it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct FunctionIdentity {
    code: usize,
    is_method: bool,
    gradient: Option<(Vec<i64>, bool, Derivative, usize)>,
    marked: Vec<String>,
    donate: Vec<Donated>,
}

/// What a function is told apart by, held so that its address is known to be its own.
enum Anchor {
    /// The code of a function, or a callable that Python lets nobody refer to weakly.
    Kept { _object: Py<PyAny> },
    /// A callable that is no function, which may hold much and is not kept alive.
    Callable(Py<PyWeakrefReference>),
}

impl Anchor {
    fn new(fun: &Bound<'_, PyAny>) -> PyResult<(Anchor, usize)> {
        let py = fun.py();
        if fun.is_exact_instance_of::<PyFunction>() {
            let code = fun.getattr(intern!(py, "__code__"))?;
            let address = code.as_ptr() as usize;
            return Ok((Anchor::Kept { _object: code.unbind() }, address));
        }
        let anchor = match PyWeakrefReference::new(fun) {
            Ok(reference) => Anchor::Callable(reference.unbind()),
            Err(_) => Anchor::Kept { _object: fun.clone().unbind() },
        };
        Ok((anchor, fun.as_ptr() as usize))
    }

    fn is_gone(&self, py: Python<'_>) -> bool {
        match self {
            Anchor::Kept { .. } => false,
            Anchor::Callable(reference) => reference.bind(py).upgrade().is_none(),
        }
    }
}

struct RegisteredFunction {
    anchors: Arc<[Anchor]>,
    shared: Arc<SharedVersions>,
}

/// Only looked up and inserted into while locked; no Python code runs then.
static FUNCTIONS: Mutex<Option<FxHashMap<FunctionIdentity, RegisteredFunction>>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<FxHashMap<FunctionIdentity, RegisteredFunction>>> {
    FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedVersions {
    /// The versions that a function shares with all others of its code.
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
                Some((spec.argnums.clone(), spec.single, spec.derivative, transform))
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
        // An address may be another's by now.
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
        // Dropping them may run Python code, which must not find the lock held.
        drop(dropped);
        Ok(shared)
    }

    fn lock(&self) -> MutexGuard<'_, VersionTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The versions of a hash. They are compared without the lock, since that may run Python code.
    pub(super) fn candidates(&self, hash: u64) -> SmallVec<[Arc<Entry>; 1]> {
        let versions = self.lock();
        versions
            .by_hash
            .get(&hash)
            .map(|found| found.iter().filter_map(Version::entry).collect())
            .unwrap_or_default()
    }

    /// What compilers know a function by: the same for versions that differ in the types of arguments only.
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

    /// How many versions were ever kept: a number that changes when there is a new one.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Notes that a version was used.
    pub(super) fn touch(&self, entry: &Entry) {
        entry.key.used.store(self.count(), Ordering::Relaxed);
    }

    /// Keeps a version, and drops those that no call can find any more, and of others beyond the limit those
    /// that were not used for the longest time.
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
        // What is dropped may run Python code, which must not find the lock held.
        drop(lock);
        drop((before, dropped, dead));
    }

    /// Every version, the newest first as far as is known, and the programs that are there still.
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

    /// The number of versions.
    pub(super) fn len(&self) -> usize {
        let is_there = |version: &&Version| match &version.entry {
            EntryRef::Strong(_) => true,
            EntryRef::Weak(entry) => entry.strong_count() > 0,
        };
        self.lock().by_hash.values().flatten().filter(is_there).count()
    }

    /// Forgets every version.
    pub(super) fn clear(&self) {
        let before = std::mem::take(&mut *self.lock());
        drop(before);
        self.storm.clear();
    }
}
