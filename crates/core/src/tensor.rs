//! Tensors: a type with elements, a value of a trace, or nothing.

use std::sync::Arc;

use crate::backend::{Backend, Buffer, BufferState, HostMemory};
use crate::error::{ErrorKind, Result};
use crate::graph::Value;
use crate::location::Location;
use crate::memory::with_capacity;
use crate::shape::{Name, Shape, TensorType};
use crate::trace::Trace;
use crate::weak::Weak;

/// Leading named axes that ops do not see; they are not part of shape, rank and names.
pub type VectorizedAxes = Arc<[(Name, usize)]>;

/// A tensor: immutable, cheap to clone, `Send` and `Sync`.
#[derive(Clone, Debug)]
pub struct Tensor {
    ty: TensorType,
    vectorized: Option<Arc<Vectorized>>,
    /// The definition of a weak value, which adopts the dtype of the tensors it is combined with.
    weak: Option<Arc<Weak>>,
    data: Data,
}

/// The additional data of a vectorized tensor.
#[derive(Debug)]
struct Vectorized {
    axes: VectorizedAxes,
    /// The type of the stored elements: the vectorized axes first, without their names.
    whole: TensorType,
}

/// The data of a tensor, in addition to its type.
#[derive(Clone, Debug)]
pub enum Data {
    /// Elements on a backend.
    Buffer(Arc<dyn Buffer>),
    /// A value of a graph that is being traced.
    Traced {
        /// The trace.
        trace: Arc<Trace>,
        /// The value in the trace's graph.
        value: Value,
    },
    /// Nothing: only a type.
    Template,
}

impl Tensor {
    /// A tensor with elements.
    #[inline]
    pub fn concrete(ty: TensorType, buffer: Arc<dyn Buffer>) -> Tensor {
        buffer.list(&ty, Location::current_line);
        Tensor { ty, vectorized: None, weak: None, data: Data::Buffer(buffer) }
    }

    /// A value of a trace.
    pub fn traced(ty: TensorType, trace: Arc<Trace>, value: Value) -> Tensor {
        Tensor { ty, vectorized: None, weak: None, data: Data::Traced { trace, value } }
    }

    /// A type without elements, to describe a function's future argument.
    pub fn template(ty: TensorType) -> Tensor {
        Tensor { ty, vectorized: None, weak: None, data: Data::Template }
    }

    /// Element type, sizes and names, without the vectorized axes.
    #[inline]
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The vectorized axes, in order.
    #[inline]
    pub fn vectorized_axes(&self) -> &[(Name, usize)] {
        match &self.vectorized {
            Some(vectorized) => &vectorized.axes,
            None => &[],
        }
    }

    /// Whether there are vectorized axes.
    #[inline]
    pub fn is_vectorized(&self) -> bool {
        self.vectorized.is_some()
    }

    /// The type of the stored elements: vectorized axes first, without their names.
    #[inline]
    pub fn whole(&self) -> &TensorType {
        match &self.vectorized {
            Some(vectorized) => &vectorized.whole,
            None => &self.ty,
        }
    }

    /// The same elements without vectorized axes, which become leading axes without names.
    #[must_use]
    pub fn flat(&self) -> Tensor {
        Tensor { ty: self.whole().clone(), vectorized: None, weak: None, data: self.data.clone() }
    }

    /// The same elements with the leading axes vectorized; the axes' own names are dropped.
    ///
    /// # Panics
    /// When the tensor is vectorized already, or its leading sizes differ: a bug of the caller.
    #[must_use]
    #[inline]
    pub fn with_vectorized(self, axes: &[(Name, usize)]) -> Tensor {
        if axes.is_empty() {
            return self;
        }
        assert!(self.vectorized.is_none(), "the tensor is vectorized already");
        let sizes = &self.ty.shape.sizes()[..axes.len()];
        assert!(sizes.iter().eq(axes.iter().map(|(_, size)| size)), "{axes:?} of {}", self.ty);
        let dtype = self.ty.dtype;
        let lead = sizes.iter().map(|&size| (size, None));
        let inner: Vec<_> = self.ty.shape.entries().skip(axes.len()).collect();
        let whole = TensorType { dtype, shape: Shape::from_axes(lead.chain(inner.iter().cloned())) };
        let ty = TensorType { dtype, shape: Shape::from_axes(inner) };
        let vectorized = Some(Arc::new(Vectorized { axes: axes.into(), whole }));
        Tensor { ty, vectorized, weak: None, data: self.data }
    }

    /// The same value as a weak one, which adopts the dtype of its partners; the type is a scalar's, s32, f32
    /// or c64.
    #[must_use]
    pub fn with_weak(self, weak: Arc<Weak>) -> Tensor {
        Tensor { weak: Some(weak), ..self }
    }

    /// The same value with a fixed dtype.
    #[must_use]
    pub fn strong(self) -> Tensor {
        Tensor { weak: None, ..self }
    }

    /// The definition of a weak value.
    pub fn weak(&self) -> Option<&Arc<Weak>> {
        self.weak.as_ref()
    }

    /// Whether the value is weak: whether it adopts the dtype of its partners.
    #[inline]
    pub fn is_weak(&self) -> bool {
        self.weak.is_some()
    }

    /// As [`Tensor::weak`], moved out of the tensor, so that the caller may be the only owner.
    pub fn into_weak(self) -> Option<Arc<Weak>> {
        self.weak
    }

    /// The data besides the type.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// The buffer, if there is one.
    #[inline]
    pub fn buffer(&self) -> Option<&Arc<dyn Buffer>> {
        match &self.data {
            Data::Buffer(buffer) => Some(buffer),
            Data::Traced { .. } | Data::Template => None,
        }
    }

    /// The buffer, moved out of the tensor, so that the caller may be the only owner.
    pub fn into_buffer(self) -> Option<Arc<dyn Buffer>> {
        match self.data {
            Data::Buffer(buffer) => Some(buffer),
            Data::Traced { .. } | Data::Template => None,
        }
    }

    /// The backend of the elements, if there are any.
    pub fn backend(&self) -> Option<Arc<dyn Backend>> {
        self.buffer().map(|buffer| buffer.backend())
    }

    /// Whether the tensor is a value of a trace.
    #[inline]
    pub fn is_traced(&self) -> bool {
        matches!(self.data, Data::Traced { .. })
    }

    /// The buffer; `op` and `hint` are for the error message.
    ///
    /// # Errors
    /// A traced tensor or a template.
    #[inline]
    pub fn require_buffer(&self, op: &'static str, hint: &'static str) -> Result<&Arc<dyn Buffer>> {
        match &self.data {
            Data::Buffer(buffer) => Ok(buffer),
            Data::Traced { .. } => Err(ErrorKind::NoValues { op, got: self.ty.clone(), hint }.into()),
            Data::Template => Err(ErrorKind::IsTemplate { op, got: self.ty.clone() }.into()),
        }
    }

    /// The elements in row-major order, native byte order, one byte for each 2- or 4-bit element; without a
    /// copy where they are on the host. Vectorized axes are included.
    ///
    /// # Errors
    /// A traced tensor, a template, or elements that were freed.
    pub fn host_bytes(&self, op: &'static str) -> Result<HostMemory> {
        self.host_prefix(op, usize::MAX)
    }

    /// As [`Tensor::host_bytes`] for the first elements only, so that a device transfers no more; host memory
    /// may contain more.
    ///
    /// # Errors
    /// As [`Tensor::host_bytes`].
    pub fn host_prefix(&self, op: &'static str, elements: usize) -> Result<HostMemory> {
        let buffer = self.live_buffer(op)?;
        if let Some(memory) = buffer.host()? {
            return Ok(memory);
        }
        let stored = self.whole();
        let len = elements.min(stored.size()) * stored.dtype.storage_bytes();
        let mut bytes = with_capacity(op, len)?;
        bytes.resize(len, 0);
        buffer.read(&mut bytes)?;
        Ok(HostMemory::new(Arc::new(bytes)))
    }

    /// A copy on a backend, with the same elements, types, names and vectorized axes; this tensor is
    /// unchanged.
    ///
    /// # Errors
    /// As [`Tensor::host_bytes`], and errors of the backend.
    pub fn copy_to(&self, op: &'static str, backend: &Arc<dyn Backend>) -> Result<Tensor> {
        match self.live_buffer(op)?.copy_to(backend)? {
            Some(buffer) => Ok(Tensor { data: Data::Buffer(buffer), ..self.clone() }),
            None => self.copy_by_host(op, backend),
        }
    }

    fn copy_by_host(&self, op: &'static str, backend: &Arc<dyn Backend>) -> Result<Tensor> {
        let memory = self.host_bytes(op)?;
        let stored = self.whole();
        let mut bytes = with_capacity(op, stored.byte_size())?;
        bytes.extend_from_slice(&memory.bytes()[..stored.byte_size()]);
        let buffer = backend.from_host(stored, HostMemory::new(Arc::new(bytes)))?;
        Ok(Tensor { data: Data::Buffer(buffer), ..self.clone() })
    }

    /// Moves the elements to a backend. Without a move if they are already there; else this tensor's elements
    /// are freed, also when the copy fails.
    ///
    /// # Errors
    /// As [`Tensor::copy_to`].
    pub fn transfer_to(&self, op: &'static str, backend: &Arc<dyn Backend>) -> Result<Tensor> {
        let buffer = self.live_buffer(op)?;
        if buffer.backend().is_same_device(&**backend) {
            return Ok(self.clone());
        }
        let moved = match buffer.transfer_to(backend) {
            Ok(Some(buffer)) => Ok(Tensor { data: Data::Buffer(buffer), ..self.clone() }),
            Ok(None) => self.copy_by_host(op, backend),
            Err(error) => Err(error),
        };
        let freed = buffer.deallocate();
        // The error of the copy is more useful than the error of freeing the source.
        let moved = moved?;
        freed?;
        Ok(moved)
    }

    /// The buffer, whose elements are not gone.
    fn live_buffer(&self, op: &'static str) -> Result<&Arc<dyn Buffer>> {
        let buffer = self.require_buffer(op, "return it from the definition, and read it there")?;
        match buffer.state() {
            BufferState::Live => Ok(buffer),
            BufferState::Gone(gone) => Err(ErrorKind::BufferGone { op, gone }.into()),
        }
    }
}
