//! Compiled versions by signature. Functions of one code object share them.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use defn_core::Tensor;
use defn_core::backend::Checks;
use defn_core::vectorize::type_text;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyFunction;
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::environment::{Outline, Part};
use super::globals::{self, Guard};
use super::leaf::{self, Words};
use super::program::{Capture, Program};
use super::signature::Signature;
use super::{Kind, function_name};
use crate::containers::{Flat, Leaves, Tree};
use crate::error::{Fallible, Fault};
use crate::grad::Derivative;
use crate::misuse::Misuse;

/// Functions whose versions are kept although no definition of them is alive.
const SHARED_LIMIT: usize = 2048;

/// What a call looks for.
pub(super) struct Key {
    pub(super) hash: u64,
    pub(super) compiler: &'static str,
    pub(super) checks: Checks,
    words: Words,
    environment: Vec<Part>,
}

impl Key {
    /// # Errors
    /// A static value that cannot be hashed.
    pub(super) fn new(
        py: Python<'_>,
        compiler: &'static str,
        checks: Checks,
        words: Words,
        flat: &Flat<'_>,
        environment: Vec<Part>,
    ) -> Fallible<Key> {
        let mut hasher = FxHasher::default();
        words.hash(&mut hasher);
        compiler.len().hash(&mut hasher);
        checks.hash(&mut hasher);
        flat.tree.hash(py, "jit")?.hash(&mut hasher);
        // The environment takes no part in the hash: what tracing itself changes of it counts for nothing.
        Ok(Key { hash: hasher.finish(), compiler, checks, words, environment })
    }
}

/// The signature of a compiled version.
pub(super) struct Known {
    hash: u64,
    compiler: &'static str,
    checks: Checks,
    words: Words,
    /// What the function closes over.
    environment: Vec<Bond>,
    arguments: Tree,
    /// The types of the arguments' leaves.
    models: Vec<Tensor>,
}

impl Known {
    /// Whether a call has this signature.
    pub(super) fn equals(&self, py: Python<'_>, flat: &Flat<'_>, key: &Key) -> Fallible<bool> {
        if self.compiler != key.compiler
            || self.checks != key.checks
            || self.words != key.words
            || !self.arguments.equals(py, &flat.tree)?
            || !same_environment(py, &self.environment, &key.environment)?
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
        Ok(true)
    }
}

/// How one part of the environment is compared. Tracing may change what a function closes over, such as a list
/// that it appends to or a counter: that is what the function does, not what it depends on.
enum Bond {
    /// By structure, static values and types. The object is not kept: its tensors may be large.
    Value(Box<Outline>),
    /// As the same object, which tracing changed.
    Object(Py<PyAny>),
    /// Not at all: tracing put another object in its place.
    Nothing,
}

fn same_environment(py: Python<'_>, known: &[Bond], now: &[Part]) -> PyResult<bool> {
    if known.len() != now.len() {
        return Ok(false);
    }
    for (known, now) in known.iter().zip(now) {
        let is_same = match known {
            Bond::Value(known) => known.equals(py, &now.outline)?,
            Bond::Object(object) => object.is(&now.object),
            Bond::Nothing => true,
        };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A compiled version.
pub(super) struct Entry {
    pub(super) key: Known,
    pub(super) program: Program,
    /// What the globals meant that the function read.
    guards: Vec<Guard>,
    /// The function that was traced, where the program holds objects that only this one has.
    owner: Option<Py<PyAny>>,
}

impl Entry {
    pub(super) fn new(
        fun: &Bound<'_, PyAny>,
        key: Key,
        after: &[Part],
        leaves: &Leaves<'_>,
        arguments: Tree,
        program: Program,
        guards: Vec<Guard>,
    ) -> Fallible<Entry> {
        let py = fun.py();
        let owned = program.is_bound_to_function(py);
        let models = leaves.iter().map(|leaf| leaf::model("jit", leaf)).collect::<Fallible<_>>()?;
        let Key { hash, compiler, checks, words, environment } = key;
        let is_same_list = environment.len() == after.len();
        let mut kept = Vec::with_capacity(environment.len());
        for (position, part) in environment.into_iter().enumerate() {
            // A host function may change what it was made of, which is then the same object still.
            if owned && is_same_list && part.is_opaque(py) && part.object.is(&after[position].object) {
                kept.push(Bond::Object(part.object));
                continue;
            }
            let is_stable = is_same_list && part.outline.equals(py, &after[position].outline)?;
            kept.push(if is_stable {
                Bond::Value(Box::new(part.outline))
            } else if is_same_list && part.object.is(&after[position].object) {
                Bond::Object(part.object)
            } else {
                Bond::Nothing
            });
        }
        let known = Known { hash, compiler, checks, words, environment: kept, arguments, models };
        let owner = owned.then(|| fun.clone().unbind());
        Ok(Entry { key: known, program, guards: globals::stable(py, guards)?, owner })
    }

    /// Whether the version serves a function of the code that it was made of.
    pub(super) fn is_for(&self, fun: &Bound<'_, PyAny>) -> bool {
        self.owner.as_ref().is_none_or(|owner| fun.is(owner))
    }

    /// Whether the globals that the function read still mean what they meant.
    pub(super) fn globals_hold(&self, py: Python<'_>) -> Fallible<bool> {
        Ok(globals::first_broken(py, &self.guards)?.is_none())
    }

    /// The structure of the arguments.
    pub(super) fn arguments(&self) -> &Tree {
        &self.key.arguments
    }

    /// What is to say where a captured tensor is gone right after tracing: the function replaced it.
    pub(super) fn missing_capture(&self, py: Python<'_>, fun: &Bound<'_, PyAny>) -> Fault {
        for capture in &self.program.captures {
            if let Capture::Found { place, model } = capture {
                let now = match place.read(fun, &self.key.arguments) {
                    Ok(value) => match leaf::model("jit", &value) {
                        Ok(found) if leaf::same_model(&found, model) => continue,
                        Ok(found) => type_text(&found),
                        Err(_) => value.repr().map(|text| text.to_string()).unwrap_or_default(),
                    },
                    Err(_) => "missing".to_owned(),
                };
                let (fun, got, place) = (function_name(fun), model.ty().clone(), place.text(py));
                return Misuse::CaptureGone { fun, got, place, now }.into();
            }
        }
        Misuse::Internal { text: "a captured tensor cannot be read".to_owned() }.into()
    }
}

/// The versions of one function.
#[derive(Default)]
pub(super) struct Shared {
    state: Mutex<Versions>,
}

#[derive(Default)]
struct Versions {
    entries: FxHashMap<u64, SmallVec<[Arc<Entry>; 1]>>,
    latest: Option<Arc<Entry>>,
}

/// What tells functions apart: the code, and what is made of it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Identity {
    code: usize,
    is_method: bool,
    gradient: Option<(Vec<i64>, bool, Derivative, usize)>,
    marked: Vec<String>,
}

struct Registered {
    /// Kept alive so that the addresses stay their own.
    _code: [Option<Py<PyAny>>; 2],
    shared: Arc<Shared>,
}

/// Only looked up and inserted into while locked; no Python code runs then.
static FUNCTIONS: Mutex<Option<FxHashMap<Identity, Registered>>> = Mutex::new(None);

impl Shared {
    /// The versions that a function shares with all others of its code.
    pub(super) fn of(fun: &Bound<'_, PyAny>, kind: &Kind, marked: &[String]) -> PyResult<Arc<Shared>> {
        let py = fun.py();
        let code = |fun: &Bound<'_, PyAny>| -> PyResult<Py<PyAny>> {
            if fun.is_exact_instance_of::<PyFunction>() {
                return Ok(fun.getattr(intern!(py, "__code__"))?.unbind());
            }
            Ok(fun.clone().unbind())
        };
        let is_method = fun.is_instance(super::method_class(py)?.as_any())?;
        let main = if is_method { code(&fun.getattr(intern!(py, "__func__"))?)? } else { code(fun)? };
        let (gradient, other) = match kind {
            Kind::Plain => (None, None),
            Kind::Gradient(spec) => {
                let transform =
                    spec.transform.as_ref().map(|transform| code(transform.bind(py))).transpose()?;
                let address = transform.as_ref().map_or(0, |code| code.as_ptr() as usize);
                let spec = (spec.argnums.clone(), spec.single, spec.derivative, address);
                (Some(spec), transform)
            }
        };
        let identity =
            Identity { code: main.as_ptr() as usize, is_method, gradient, marked: marked.to_vec() };
        let mut lock = FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        let functions = lock.get_or_insert_default();
        if let Some(known) = functions.get(&identity) {
            return Ok(known.shared.clone());
        }
        let mut dropped = Vec::new();
        if functions.len() >= SHARED_LIMIT {
            let unused: Vec<Identity> = functions
                .iter()
                .filter(|(_, known)| Arc::strong_count(&known.shared) == 1)
                .map(|(identity, _)| identity.clone())
                .collect();
            dropped.extend(unused.iter().filter_map(|identity| functions.remove(identity)));
        }
        let shared = Arc::new(Shared::default());
        let registered = Registered { _code: [Some(main), other], shared: shared.clone() };
        functions.insert(identity, registered);
        drop(lock);
        // Dropping them may run Python code, which must not find the lock held.
        drop(dropped);
        Ok(shared)
    }

    fn lock(&self) -> MutexGuard<'_, Versions> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The versions of a hash. They are compared without the lock, since that may run Python code.
    pub(super) fn candidates(&self, hash: u64) -> SmallVec<[Arc<Entry>; 1]> {
        self.lock().entries.get(&hash).cloned().unwrap_or_default()
    }

    /// Keeps a version.
    pub(super) fn insert(&self, entry: Entry) -> Arc<Entry> {
        let entry = Arc::new(entry);
        let mut versions = self.lock();
        // The newest first: of two that differ in captured types only, it is the likelier one.
        versions.entries.entry(entry.key.hash).or_default().insert(0, entry.clone());
        let before = versions.latest.replace(entry.clone());
        drop(versions);
        drop(before);
        entry
    }

    /// The number of versions.
    pub(super) fn len(&self) -> usize {
        self.lock().entries.values().map(SmallVec::len).sum()
    }

    /// Forgets every version.
    pub(super) fn clear(&self) {
        let before = std::mem::take(&mut *self.lock());
        drop(before);
    }

    /// What of a call is new, beside the latest version.
    pub(super) fn explain(
        &self,
        py: Python<'_>,
        signature: &Signature,
        flat: &Flat<'_>,
        key: &Key,
    ) -> Fallible<String> {
        let latest = self.lock().latest.clone();
        let Some(latest) = latest else {
            return Ok("it is the first call".to_owned());
        };
        let known = &latest.key;
        if known.compiler != key.compiler {
            return Ok(format!("the compiler is \"{}\", before \"{}\"", key.compiler, known.compiler));
        }
        if known.checks != key.checks {
            return Ok("other checks are asked for".to_owned());
        }
        if !known.arguments.equals(py, &flat.tree)? {
            let difference = known.arguments.difference_of_calls(py, &flat.tree)?;
            return Ok(format!("a static value or the structure of the arguments is new: {difference}"));
        }
        let places = flat.tree.call_places(py)?;
        let mut changes = Vec::new();
        for ((leaf, before), (argument, place)) in flat.leaves.iter().zip(&known.models).zip(places) {
            let now = leaf::model("jit", leaf)?;
            if !leaf::same_model(&now, before) {
                let name = match argument {
                    Ok(position) => signature.name(py, position),
                    Err(keyword) => keyword,
                };
                let what = if now.ty().dtype != before.ty().dtype {
                    "dtype"
                } else if now.ty().shape.sizes() != before.ty().shape.sizes() {
                    "shape"
                } else if now.vectorized_axes() != before.vectorized_axes() {
                    "list of vectorized axes"
                } else {
                    "names"
                };
                let (now, before) = (type_text(&now), type_text(before));
                changes.push(format!("the {what} of {name}{place} is new: {now}, before {before}"));
            }
        }
        if !changes.is_empty() {
            return Ok(changes.join("; "));
        }
        for (before, now) in known.environment.iter().zip(&key.environment) {
            let Bond::Value(before) = before else { continue };
            if !before.tree.equals(py, &now.outline.tree)? {
                let difference = before.tree.difference(py, &now.outline.tree)?;
                return Ok(format!("a value that the function closes over is new: {difference}"));
            }
        }
        if let Some(name) = globals::first_broken(py, &latest.guards)? {
            return Ok(format!("the global {name} is new"));
        }
        Ok("the type of a tensor that the function closes over is new".to_owned())
    }
}
