//! Iteration over a tensor.

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;

use crate::error::{Fallible, guard};
use crate::index;
use crate::tensor::PyTensor;

/// An iterator over a tensor's slices along its first axis.
#[pyclass(frozen, module = "defn._core")]
pub(crate) struct Rows {
    tensor: Py<PyTensor>,
    next: AtomicUsize,
}

impl Rows {
    /// An iterator that begins at the first slice.
    pub(crate) fn of(tensor: Py<PyTensor>) -> Rows {
        Rows { tensor, next: AtomicUsize::new(0) }
    }
}

#[pymethods]
impl Rows {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self) -> Fallible<Option<PyTensor>> {
        let tensor = &self.tensor.get().tensor;
        let position = self.next.fetch_add(1, Ordering::Relaxed);
        if position >= tensor.ty().shape.sizes()[0] {
            return Ok(None);
        }
        guard(|| index::row(tensor, position)).map(Some)
    }

    fn __length_hint__(&self) -> usize {
        let size = self.tensor.get().tensor.ty().shape.sizes()[0];
        size.saturating_sub(self.next.load(Ordering::Relaxed))
    }
}
