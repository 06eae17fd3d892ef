//! Which concrete tensors were made while a definition is traced on this thread.
//!
//! Such a tensor is a constant of the program: it is bound to the executable. A tensor made of a NumPy array
//! remembers the array, which may be older than the trace and is then found again at each call, as older tensors
//! are.

use std::cell::RefCell;
use std::sync::Arc;

use defn_core::Tensor;
use defn_core::backend::Buffer;
use defn_core::trace;
use pyo3::prelude::*;

/// A tensor's buffer, and the array that it was made of.
struct Allocation {
    buffer: Arc<dyn Buffer>,
    array: Option<Py<PyAny>>,
}

/// What a tensor that was made while tracing is made of.
pub(crate) enum Origin {
    /// Numbers of the program.
    Constant,
    /// A NumPy array.
    Array(Py<PyAny>),
}

thread_local! {
    static ALLOCATIONS: RefCell<Vec<Allocation>> = const { RefCell::new(Vec::new()) };
}

/// Remembers a concrete tensor where a trace is open.
pub(crate) fn note(tensor: Tensor) -> Tensor {
    note_ref(&tensor);
    tensor
}

/// As [`note`], of a tensor that stays where it is.
pub(crate) fn note_ref(tensor: &Tensor) {
    remember(tensor, || None);
}

/// Remembers a tensor that was made of an array.
pub(crate) fn note_array(tensor: Tensor, array: &Bound<'_, PyAny>) -> Tensor {
    remember(&tensor, || Some(array.clone().unbind()));
    tensor
}

fn remember(tensor: &Tensor, array: impl FnOnce() -> Option<Py<PyAny>>) {
    if trace::depth() == 0 {
        return;
    }
    if let Some(buffer) = tensor.buffer() {
        let allocation = Allocation { buffer: buffer.clone(), array: array() };
        ALLOCATIONS.with_borrow_mut(|list| list.push(allocation));
    }
}

/// What a tensor was made of, if it was made since the outermost open trace began. An array comes before the
/// numbers that its copy is noted as.
pub(crate) fn origin(py: Python<'_>, tensor: &Tensor) -> Option<Origin> {
    let buffer = tensor.buffer()?;
    ALLOCATIONS.with_borrow(|allocations| {
        let mut found = None;
        for known in allocations.iter().filter(|known| Arc::ptr_eq(&known.buffer, buffer)) {
            match &known.array {
                Some(array) => return Some(Origin::Array(array.clone_ref(py))),
                None => found = Some(Origin::Constant),
            }
        }
        found
    })
}

/// Whether a tensor was made since the outermost open trace began.
pub(crate) fn is_new(tensor: &Tensor) -> bool {
    tensor.buffer().is_some_and(|buffer| {
        ALLOCATIONS
            .with_borrow(|allocations| allocations.iter().any(|known| Arc::ptr_eq(&known.buffer, buffer)))
    })
}

/// Forgets everything, once no trace is open.
pub(crate) fn forget() {
    if trace::depth() == 0 {
        // Dropped outside the borrow: the owners of buffers may be Python objects.
        let allocations = ALLOCATIONS.take();
        drop(allocations);
    }
}
