//! Buffers: the elements of a tensor in a place.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::{Alike, Backend};
use crate::dtype::DType;
use crate::error::Result;
use crate::location::Location;
use crate::op::Op;
use crate::shape::TensorType;

/// The elements of one tensor, somewhere. Shared, and immutable while shared.
pub trait Buffer: Any + fmt::Debug + Send + Sync {
    /// Where the elements are.
    fn backend(&self) -> Arc<dyn Backend>;

    /// As [`Buffer::backend`], of one that lives as long as the buffer, where there is such a one.
    fn backend_lent(&self) -> Option<&Arc<dyn Backend>> {
        None
    }

    /// Whether the elements are on a backend that is this very object.
    fn is_on(&self, backend: &Arc<dyn Backend>) -> bool {
        Arc::ptr_eq(&self.backend(), backend)
    }

    /// Copies the first `out.len()` bytes to the host: row-major, native byte order, a byte for each 2- or
    /// 4-bit element. Waits until they are there.
    ///
    /// # Errors
    /// When the elements were freed or donated, or the device fails.
    fn read(&self, out: &mut [u8]) -> Result<()>;

    /// The elements as host memory, without a copy, where they are on the host. The result keeps them alive,
    /// and keeps them from being reused in place.
    ///
    /// # Errors
    /// When the elements were freed or donated.
    fn host(&self) -> Result<Option<HostMemory>>;

    /// The elements in another place, by a way of the backend's own. Without one they go by way of the host.
    ///
    /// # Errors
    /// What the backend fails with.
    fn copy_to(&self, _backend: &Arc<dyn Backend>) -> Result<Option<Arc<dyn Buffer>>> {
        Ok(None)
    }

    /// As [`Buffer::copy_to`], where the elements are freed after.
    ///
    /// # Errors
    /// What the backend fails with.
    fn transfer_to(&self, backend: &Arc<dyn Backend>) -> Result<Option<Arc<dyn Buffer>>> {
        self.copy_to(backend)
    }

    /// Whether the elements are still there.
    fn state(&self) -> BufferState;

    /// Frees the elements now; a run that uses them keeps its own hold. False if they were gone before.
    ///
    /// # Errors
    /// When the backend fails to free them.
    fn deallocate(&self) -> Result<bool>;

    /// Runs an element-wise op on operands that are all of the type `ty`, or elements of its dtype that stand for all, where
    /// the result is of that shape and of the dtype `to` ([`infer::alike`](crate::infer::alike)) and the op refuses no
    /// elements: the shortest way for small operands, of which this buffer is one. None where the backend has no such way
    /// for them; it is then asked to run the op as any other, and says what is wrong if something is.
    fn run_alike(
        &self,
        op: &Op,
        operands: &[Alike<'_>],
        ty: &TensorType,
        to: DType,
    ) -> Option<Arc<dyn Buffer>> {
        let _ = (op, operands, ty, to);
        None
    }

    /// The bytes `offset..offset + len`, which there are, as a buffer of their own over the same memory. None where the
    /// backend has no such way, and where the bytes are gone.
    fn part(&self, offset: usize, len: usize) -> Option<Arc<dyn Buffer>> {
        let _ = (offset, len);
        None
    }

    /// Lists the elements among what is alive ([`crate::live`]), as a tensor of this type that a line made: where they
    /// hold much of this process's memory, else nothing happens. Where they are listed already, only a line that is not
    /// known yet is added.
    fn list(&self, _ty: &TensorType, _line: fn() -> Option<Location>) {}

    /// For backends, which know their own buffers.
    fn as_any(&self) -> &dyn Any;

    /// For backends, which take a buffer that nobody else holds and reuse it.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// Whether a buffer's elements are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferState {
    /// They are.
    Live,
    /// They are not any more.
    Gone(Gone),
}

/// How elements went, and by which line of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// In a word: `freed` by the user, or `donated` to a run that reused their memory.
    pub how: &'static str,
    /// The line, where it is known.
    pub by: Option<Location>,
}

impl Gone {
    /// Freed by the line that this thread is called from.
    pub fn freed() -> Gone {
        Gone { how: "freed", by: Location::of_user() }
    }

    /// Donated by the line that this thread is called from.
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
    pub fn bytes(&self) -> &[u8] {
        (*self.owner).as_ref()
    }

    /// A part of the memory, which keeps all of it alive.
    ///
    /// # Panics
    /// When the memory is shorter.
    pub fn part(&self, range: Range<usize>) -> HostMemory {
        assert!(range.start <= range.end && range.end <= self.bytes().len(), "{range:?} of {self:?}");
        HostMemory::new(Arc::new(Part { memory: self.clone(), range }))
    }
}

/// A part of some memory.
struct Part {
    memory: HostMemory,
    range: Range<usize>,
}

impl AsRef<[u8]> for Part {
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
