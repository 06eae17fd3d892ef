//! Buffers: the elements of a tensor on a backend.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::{Backend, SameDtypeOperand};
use crate::dtype::DType;
use crate::error::Result;
use crate::location::Location;
use crate::op::Op;
use crate::shape::TensorType;

/// The elements of one tensor on some backend. Shared buffers are immutable.
pub trait Buffer: Any + fmt::Debug + Send + Sync {
    /// The backend that stores the elements.
    fn backend(&self) -> Arc<dyn Backend>;

    /// As [`Buffer::backend`], borrowed, where the buffer holds a reference to its backend.
    fn backend_ref(&self) -> Option<&Arc<dyn Backend>> {
        None
    }

    /// Whether the elements are on exactly this backend object.
    fn is_on(&self, backend: &Arc<dyn Backend>) -> bool {
        Arc::ptr_eq(&self.backend(), backend)
    }

    /// Copies the first `out.len()` bytes to the host: row-major, native byte order, one byte for each 2- or
    /// 4-bit element. Blocks until the copy is complete.
    ///
    /// # Errors
    /// When the elements were freed or donated, or the device fails.
    fn read(&self, out: &mut [u8]) -> Result<()>;

    /// The elements as host memory, without a copy; None where they are not on the host. The result keeps
    /// them alive and prevents their reuse in place.
    ///
    /// # Errors
    /// When the elements were freed or donated.
    fn host(&self) -> Result<Option<HostMemory>>;

    /// Copies the elements to another backend by a transfer of this backend's own. None where it has none:
    /// the caller then copies through the host.
    ///
    /// # Errors
    /// The backend's own.
    fn copy_to(&self, _backend: &Arc<dyn Backend>) -> Result<Option<Arc<dyn Buffer>>> {
        Ok(None)
    }

    /// As [`Buffer::copy_to`], where the elements are freed afterwards.
    ///
    /// # Errors
    /// The backend's own.
    fn transfer_to(&self, backend: &Arc<dyn Backend>) -> Result<Option<Arc<dyn Buffer>>> {
        self.copy_to(backend)
    }

    /// Whether the elements are still available.
    fn state(&self) -> BufferState;

    /// Frees the elements now; a run that uses them keeps its own reference. False if they were already gone.
    ///
    /// # Errors
    /// When the backend fails to free them.
    fn deallocate(&self) -> Result<bool>;

    /// The fast path for small operands, of which this buffer is one: runs an element-wise op that is defined
    /// for all elements. Each operand is a buffer of the type `ty`, or one element of its dtype that is
    /// broadcast. The result has that shape and the dtype `to` ([`infer::same_dtype_result`](crate::infer::same_dtype_result)). None
    /// where the backend has no fast path for the operands; the caller then runs the op by the general path,
    /// which reports any error.
    fn run_same_dtype(
        &self,
        op: &Op,
        operands: &[SameDtypeOperand<'_>],
        ty: &TensorType,
        to: DType,
    ) -> Option<Arc<dyn Buffer>> {
        let _ = (op, operands, ty, to);
        None
    }

    /// The bytes `offset..offset + len`, which must be in range, as a buffer that shares this memory. None
    /// where the backend does not support this, and where the elements are gone.
    fn part(&self, offset: usize, len: usize) -> Option<Arc<dyn Buffer>> {
        let _ = (offset, len);
        None
    }

    /// Registers the elements in the list of live buffers ([`crate::live`]), with their type and the user's
    /// line that created them. Only buffers that hold much of this process's memory are listed. If the buffer
    /// is listed already, only a missing line is added.
    fn list(&self, _ty: &TensorType, _line: fn() -> Option<Location>) {}

    /// For backends, to downcast to their own buffers.
    fn as_any(&self) -> &dyn Any;

    /// For backends, to take over a buffer without other owners and reuse its memory.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// Whether a buffer's elements are available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferState {
    /// They are available.
    Live,
    /// They are gone.
    Gone(Gone),
}

/// How the elements were lost, and at which line of the user's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// One word: `freed` by the user, or `donated` to a run that reused their memory.
    pub how: &'static str,
    /// The line, where it is known.
    pub by: Option<Location>,
}

impl Gone {
    /// Freed by the user's line that is running on this thread.
    pub fn freed() -> Gone {
        Gone { how: "freed", by: Location::of_user() }
    }

    /// Donated by the user's line that is running on this thread.
    pub fn donated() -> Gone {
        Gone { how: "donated", by: Location::of_user() }
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.how)?;
        match &self.by {
            Some(location) => write!(f, " at {location}"),
            None => Ok(()),
        }
    }
}

/// Host memory with its owner.
#[derive(Clone)]
pub struct HostMemory {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
}

impl HostMemory {
    /// Memory that lives as long as its owner.
    pub fn new(owner: Arc<dyn AsRef<[u8]> + Send + Sync>) -> HostMemory {
        HostMemory { owner }
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        (*self.owner).as_ref()
    }

    /// A part of the memory, which keeps all of it alive.
    ///
    /// # Panics
    /// When the memory is shorter.
    pub fn part(&self, range: Range<usize>) -> HostMemory {
        assert!(range.start <= range.end && range.end <= self.bytes().len(), "{range:?} of {self:?}");
        HostMemory::new(Arc::new(MemoryRange { memory: self.clone(), range }))
    }
}

/// A part of some memory.
struct MemoryRange {
    memory: HostMemory,
    range: Range<usize>,
}

impl AsRef<[u8]> for MemoryRange {
    fn as_ref(&self) -> &[u8] {
        &self.memory.bytes()[self.range.clone()]
    }
}

impl From<Vec<u8>> for HostMemory {
    fn from(bytes: Vec<u8>) -> HostMemory {
        HostMemory::new(Arc::new(bytes))
    }
}

impl fmt::Debug for HostMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostMemory({} bytes)", self.bytes().len())
    }
}
