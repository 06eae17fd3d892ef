//! Conversion of Python's bytes for the core.

use std::sync::Arc;

use defn_core::backend::HostMemory;
use defn_core::memory::with_capacity;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert;
use crate::error::{Fallible, if_fits};

/// The memory of an immutable `bytes` object.
struct Constant {
    start: *const u8,
    len: usize,
    _owner: Py<PyBytes>,
}

impl Constant {
    fn new(bytes: &Bound<'_, PyBytes>) -> Constant {
        let memory = bytes.as_bytes();
        Constant { start: memory.as_ptr(), len: memory.len(), _owner: bytes.clone().unbind() }
    }
}

// SAFETY: the memory belongs to the object, which is kept alive, and is only read.
unsafe impl Send for Constant {}
// SAFETY: as above.
unsafe impl Sync for Constant {}

impl AsRef<[u8]> for Constant {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: a `bytes` object has this many bytes at this address, neither moves nor changes, and is
        // kept alive.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

/// The bytes of a buffer. Those of a `bytes` object are borrowed, all others are copied.
///
/// # Errors
/// An object that exports no contiguous buffer; `op` and `what` are for the message.
pub(crate) fn bytes(op: &str, what: &str, value: &Bound<'_, PyAny>) -> Fallible<HostMemory> {
    if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        return Ok(HostMemory::new(Arc::new(Constant::new(bytes))));
    }
    let py = value.py();
    let result = py.get_type::<pyo3::types::PyMemoryView>().call1((value,));
    let Some(view) = if_fits(py, result)? else {
        return Err(convert::bad(op, what, value, "bytes or another buffer")?);
    };
    let bytes = view.call_method0("tobytes")?.cast_into::<PyBytes>().map_err(PyErr::from)?;
    Ok(HostMemory::new(Arc::new(Constant::new(&bytes))))
}

/// A copy of the bytes.
///
/// # Errors
/// Out of memory; `op` is for the message.
pub(crate) fn copy(op: &'static str, bytes: &[u8]) -> Fallible<HostMemory> {
    let mut own = with_capacity(op, bytes.len())?;
    own.extend_from_slice(bytes);
    Ok(own.into())
}

/// Memory at an address that the user guarantees to be valid.
struct Foreign {
    start: *const u8,
    len: usize,
}

// SAFETY: the user guarantees that the memory exists and is not written while the tensor lives.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

impl AsRef<[u8]> for Foreign {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: guaranteed by the user; it cannot be checked. The address is not null.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

/// Memory at an address. Nothing keeps it alive.
pub(crate) fn foreign(address: usize, len: usize) -> HostMemory {
    let start = if len == 0 || address == 0 {
        std::ptr::NonNull::<u128>::dangling().as_ptr().cast_const().cast()
    } else {
        std::ptr::with_exposed_provenance(address)
    };
    HostMemory::new(Arc::new(Foreign { start, len: if address == 0 { 0 } else { len } }))
}
