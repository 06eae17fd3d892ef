//! Which concrete tensors were made while a definition is traced on this thread.
//!
//! Such a tensor is a constant of the program: it is bound to the executable. An older one must be found
//! again at each call.

use std::cell::RefCell;
use std::sync::Arc;

use defn_core::Tensor;
use defn_core::backend::Buffer;
use defn_core::trace;

thread_local! {
    static BORN: RefCell<Vec<Arc<dyn Buffer>>> = const { RefCell::new(Vec::new()) };
}

/// Remembers a concrete tensor where a trace is open.
pub(crate) fn note(tensor: Tensor) -> Tensor {
    if trace::depth() > 0 {
        if let Some(buffer) = tensor.buffer() {
            BORN.with_borrow_mut(|born| born.push(buffer.clone()));
        }
    }
    tensor
}

/// Whether a tensor was made since the outermost open trace began.
pub(crate) fn is_new(tensor: &Tensor) -> bool {
    tensor
        .buffer()
        .is_some_and(|buffer| BORN.with_borrow(|born| born.iter().any(|known| Arc::ptr_eq(known, buffer))))
}

/// Forgets everything, once no trace is open.
pub(crate) fn forget() {
    if trace::depth() == 0 {
        // Buffers are dropped outside the borrow: their owners may be Python objects.
        let born = BORN.take();
        drop(born);
    }
}
