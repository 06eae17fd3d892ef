//! Concrete tensors that were created on this thread while a definition is traced.
//!
//! Such a tensor is a constant of the program: it is bound to the executable. A tensor created from a NumPy
//! array also records the array. The array may be older than the trace; then it is looked up again at each
//! call, as older tensors are.

use std::cell::RefCell;
use std::sync::Arc;

use defn_core::Tensor;
use defn_core::backend::Buffer;
use defn_core::trace;
use pyo3::prelude::*;

/// A tensor's buffer, and the array from which it was created.
struct Allocation {
    buffer: Arc<dyn Buffer>,
    array: Option<Py<PyAny>>,
}

/// The source of a tensor that was created while tracing.
pub(crate) enum Origin {
    /// Numbers in the program.
    Constant,
    /// A NumPy array.
    Array(Py<PyAny>),
}

thread_local! {
    static ALLOCATIONS: RefCell<Vec<Allocation>> = const { RefCell::new(Vec::new()) };
}

/// Records a concrete tensor if a trace is open.
pub(crate) fn note(tensor: Tensor) -> Tensor {
    note_ref(&tensor);
    tensor
}

/// As [`note`], for a borrowed tensor.
pub(crate) fn note_ref(tensor: &Tensor) {
    remember(tensor, || None);
}

/// Records a tensor that was created from an array.
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

/// The source of a tensor, if it was created since the outermost open trace began. An array has precedence
/// over the constant as which its copy is recorded.
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

/// Whether a tensor was created since the outermost open trace began.
pub(crate) fn is_new(tensor: &Tensor) -> bool {
    tensor.buffer().is_some_and(|buffer| {
        ALLOCATIONS
            .with_borrow(|allocations| allocations.iter().any(|known| Arc::ptr_eq(&known.buffer, buffer)))
    })
}

/// Clears the record when no trace is open.
pub(crate) fn forget() {
    if trace::depth() == 0 {
        // Dropped outside the borrow: dropping a buffer may run Python code.
        let allocations = ALLOCATIONS.take();
        drop(allocations);
    }
}
