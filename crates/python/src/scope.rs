//! Scopes that free the tensors created in them.
//!
//! A Python tensor that is created while a scope is open carries a mark. When the scope ends, a buffer is
//! freed if its only holders are tensors with marks of this scope. A buffer that older tensors, programs or
//! runs of other threads also hold is kept.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use defn_core::Tensor;
use defn_core::backend::Buffer;
use pyo3::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::containers::{self, Flat, Mode};
use crate::error::{Fallible, guard};
use crate::misuse::Misuse;
use crate::tensor::PyTensor;

/// The number of open scopes in the process. If it is zero, creating a tensor does nothing else here.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// The minimum number of recorded tensors before the list is pruned of dead ones.
const MIN_PRUNE_LENGTH: usize = 1_024;

thread_local! {
    static SCOPES: RefCell<Vec<Open>> = const { RefCell::new(Vec::new()) };
}

/// The mark of a Python tensor that was created in a scope.
pub(crate) type Mark = Option<Arc<()>>;

/// A tensor that was created in a scope.
struct ScopedTensor {
    buffer: Weak<dyn Buffer>,
    /// Alive as long as the Python tensor.
    mark: Weak<()>,
}

/// An open scope of this thread.
struct Open {
    id: u64,
    tensors: Vec<ScopedTensor>,
    /// The length at which the list is pruned next.
    limit: usize,
}

/// Records a tensor that is created for Python.
pub(crate) fn note(tensor: &Tensor) -> Mark {
    if OPEN.load(Ordering::Relaxed) == 0 { None } else { noted(tensor) }
}

#[cold]
fn noted(tensor: &Tensor) -> Mark {
    let buffer = Arc::downgrade(tensor.buffer()?);
    SCOPES.with_borrow_mut(|scopes| {
        let open = scopes.last_mut()?;
        if open.tensors.len() >= open.limit {
            open.tensors.retain(|tensor| tensor.mark.strong_count() > 0);
            open.limit = (2 * open.tensors.len()).max(MIN_PRUNE_LENGTH);
        }
        let mark = Arc::new(());
        open.tensors.push(ScopedTensor { buffer, mark: Arc::downgrade(&mark) });
        Some(mark)
    })
}

/// The address of a buffer.
fn address(buffer: &Arc<dyn Buffer>) -> usize {
    Arc::as_ptr(buffer).cast::<()>() as usize
}

/// A scope: when it ends, the tensors created in it are freed.
#[pyclass(frozen, weakref, name = "Scope", module = "defn")]
struct Scope {
    id: u64,
    was_entered: AtomicBool,
    /// The buffers that are kept; holding them keeps their addresses unique.
    retained: Mutex<Vec<Arc<dyn Buffer>>>,
}

#[pymethods]
impl Scope {
    fn __enter__(slf: Bound<'_, Self>) -> Fallible<Bound<'_, Self>> {
        guard(|| {
            let scope = slf.get();
            if scope.was_entered.swap(true, Ordering::Relaxed) {
                let problem = "it was entered before; make another with dn.scope()";
                return Err(Misuse::ScopeUse { problem }.into());
            }
            let open = Open { id: scope.id, tensors: Vec::new(), limit: MIN_PRUNE_LENGTH };
            SCOPES.with_borrow_mut(|scopes| scopes.push(open));
            OPEN.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })?;
        Ok(slf)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyAny>) -> Fallible<()> {
        guard(|| {
            let ended = SCOPES.with_borrow_mut(|scopes| {
                let at = scopes.iter().rposition(|open| open.id == self.id)?;
                Some(scopes.remove(at))
            });
            let Some(ended) = ended else {
                let problem = "it is left on another thread than it was entered on; leave it there";
                return Err(Misuse::ScopeUse { problem }.into());
            };
            OPEN.fetch_sub(1, Ordering::Relaxed);
            let retained = std::mem::take(&mut *self.lock());
            end(ended, &retained)
        })
    }

    /// Keeps the tensors of a container, and returns the container.
    fn keep<'py>(&self, value: Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
        guard(|| {
            let Flat { leaves, .. } = containers::flatten("scope", Mode::State, &value)?;
            let tensors = leaves.iter().filter_map(|leaf| leaf.cast::<PyTensor>().ok());
            let buffers = tensors.filter_map(|tensor| tensor.get().tensor.buffer().cloned());
            let buffers: Vec<_> = buffers.collect();
            self.lock().extend(buffers);
            Ok(value)
        })
    }

    fn __repr__(&self) -> &'static str {
        "<scope>"
    }
}

impl Scope {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<dyn Buffer>>> {
        self.retained.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Frees the buffers that a scope created, and passes the kept ones to the enclosing scope.
fn end(ended: Open, retained: &[Arc<dyn Buffer>]) -> Fallible<()> {
    let retained: FxHashSet<usize> = retained.iter().map(address).collect();
    let mut marked: FxHashMap<usize, (Arc<dyn Buffer>, usize)> = FxHashMap::default();
    let mut passed = Vec::new();
    for tensor in ended.tensors {
        let Some(buffer) = tensor.buffer.upgrade().filter(|_| tensor.mark.strong_count() > 0) else {
            continue;
        };
        let address = address(&buffer);
        if retained.contains(&address) {
            passed.push(tensor);
        } else {
            marked.entry(address).or_insert((buffer, 0)).1 += 1;
        }
    }
    SCOPES.with_borrow_mut(|scopes| {
        if let Some(outer) = scopes.last_mut() {
            outer.tensors.extend(passed);
        }
    });
    for (buffer, marks) in marked.into_values() {
        // Our own reference, and one for each marked tensor.
        if Arc::strong_count(&buffer) == marks + 1 {
            buffer.deallocate()?;
        }
    }
    Ok(())
}

/// A scope: when it ends, the tensors created in it are freed.
#[pyfunction]
fn scope() -> Scope {
    static IDS: AtomicU64 = AtomicU64::new(0);
    let id = IDS.fetch_add(1, Ordering::Relaxed);
    Scope { id, was_entered: AtomicBool::new(false), retained: Mutex::new(Vec::new()) }
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Scope>()?;
    module.add_function(wrap_pyfunction!(scope, module)?)
}
