//! Elements in host memory: vectors become tensors, and tensors are read as slices, without a copy where possible.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use defn_core::backend::HostMemory;
use defn_core::format::Array;
use defn_core::memory::with_capacity;
use defn_core::{ErrorKind, Location, Result, Shape, TensorType};

use crate::tensor::of_bytes;
use crate::{Element, Tensor};

/// The elements of a tensor as a slice in host memory. [`Tensor::host_slice`] returns it.
///
/// It keeps the memory alive. The memory is not written while it exists, even if the tensor is freed or donated. Clones
/// share the memory.
///
/// ```
/// use defn::Tensor;
///
/// let x = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// let elements = x.host_slice::<f32>()?;
/// assert_eq!(elements.iter().sum::<f32>(), 10.0);
/// assert_eq!(elements.shape().sizes(), [2, 2]);
/// assert_eq!(format!("{elements:?}"), "HostSlice(f32[2][2])");
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone)]
pub struct HostSlice<T> {
    shape: Shape,
    memory: Memory<T>,
}

#[derive(Clone)]
enum Memory<T> {
    /// Memory of the tensor that can be read in place.
    Shared(HostMemory),
    Copied(Vec<T>),
}

impl<T: Element> HostSlice<T> {
    /// The elements in row-major order.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let x = Tensor::from_vec(vec![1u8, 2, 3], &[3])?;
    /// assert_eq!(x.host_slice::<u8>()?.as_slice(), [1, 2, 3]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn as_slice(&self) -> &[T] {
        match &self.memory {
            Memory::Shared(memory) => T::slice(memory.bytes()).expect("the alignment was checked before"),
            Memory::Copied(elements) => elements,
        }
    }

    /// The shape: vectorized axes first, without their names.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let x = Tensor::from_vec(vec![1u8, 2, 3, 4], &[2, 2])?.vectorize(&["batch"])?;
    /// assert_eq!(x.host_slice::<u8>()?.shape().sizes(), [2, 2]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn shape(&self) -> &Shape {
        &self.shape
    }
}

impl<T: Element> Deref for HostSlice<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: Element> AsRef<[T]> for HostSlice<T> {
    fn as_ref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: Element> fmt::Debug for HostSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostSlice({}{})", T::DTYPE, self.shape)
    }
}

impl Tensor {
    /// A tensor on the default backend, from elements in row-major order. The vector becomes the memory of a tensor on
    /// the CPU, without a copy.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let elements = vec![1f32, 2.0, 3.0, 4.0];
    /// let address = elements.as_ptr();
    /// let x = Tensor::from_vec(elements, &[2, 2])?;
    /// assert_eq!(x.ty().to_string(), "f32[2][2]");
    /// assert_eq!(x.host_slice::<f32>()?.as_ptr(), address);
    /// assert!(Tensor::from_vec(vec![1u8, 2], &[3]).is_err());
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A shape with another number of elements (`Option`), and too little memory on a device (`OutOfMemory`).
    #[track_caller]
    pub fn from_vec<T: Element>(elements: Vec<T>, sizes: &[usize]) -> Result<Tensor> {
        let location = Location::caller();
        from_vec("from_vec", elements, Shape::new(sizes)).map_err(|error| error.at(Some(location)))
    }

    /// The elements in row-major order, those of vectorized axes first, as a slice in host memory: without a copy if
    /// the tensor is on the CPU. Elements of bool are copied.
    ///
    /// ```
    /// # use defn::{DType, Tensor};
    /// let x = Tensor::iota(&[2, 2], DType::S32, None)?;
    /// let elements = x.host_slice::<i32>()?;
    /// assert_eq!(elements[3], 3);
    /// assert_eq!(elements.as_ptr(), x.host_slice::<i32>()?.as_ptr());
    /// assert!(x.host_slice::<f32>().is_err());
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    #[track_caller]
    pub fn host_slice<T: Element>(&self) -> Result<HostSlice<T>> {
        let location = Location::caller();
        self.read_slice("host_slice").map_err(|error| error.at(Some(location)))
    }

    /// As [`Tensor::host_slice`], for an op of this name.
    pub(crate) fn read_slice<T: Element>(&self, op: &'static str) -> Result<HostSlice<T>> {
        let Array { ty, memory, .. } = self.host_array::<T>(op)?;
        let memory = match T::slice(memory.bytes()) {
            Some(_) => Memory::Shared(memory),
            None => Memory::Copied(read(op, memory.bytes())?),
        };
        Ok(HostSlice { shape: ty.shape, memory })
    }

    /// As [`Tensor::to_vec`], for an op of this name.
    pub(crate) fn read_vec<T: Element>(&self, op: &'static str) -> Result<Vec<T>> {
        read(op, self.host_array::<T>(op)?.memory.bytes())
    }

    /// The bytes of elements of type `T`.
    fn host_array<T: Element>(&self, op: &'static str) -> Result<Array> {
        if self.dtype() != T::DTYPE {
            let (got, required, hint) = (self.ty().clone(), T::DTYPE.name(), "; convert it with as_type");
            return Err(ErrorKind::OperandDType { op, got, required, hint }.into());
        }
        Array::of(op, self.core())
    }
}

/// A vector that owns host memory.
struct Elements<T>(Vec<T>);

impl<T: Element> AsRef<[u8]> for Elements<T> {
    fn as_ref(&self) -> &[u8] {
        T::bytes(&self.0)
    }
}

/// A tensor of elements in row-major order, whose memory is the vector's.
pub(crate) fn from_vec<T: Element>(op: &'static str, elements: Vec<T>, shape: Shape) -> Result<Tensor> {
    let ty = TensorType::new(T::DTYPE, shape)?;
    if ty.size() != elements.len() {
        let (given, required) = (format!("{ty}"), format!("of the {} elements given", elements.len()));
        return Err(ErrorKind::OptionValue { op, option: "the shape", given, required }.into());
    }
    of_bytes(ty, HostMemory::new(Arc::new(Elements(elements))))
}

/// As [`from_vec`], of the elements from `start` on, as many as the shape has. All of the vector stays alive.
#[cfg(feature = "ndarray")]
pub(crate) fn from_part<T: Element>(elements: Vec<T>, start: usize, shape: Shape) -> Result<Tensor> {
    let ty = TensorType::new(T::DTYPE, shape)?;
    let offset = start * size_of::<T>();
    let whole = HostMemory::new(Arc::new(Elements(elements)));
    let range = offset..offset + ty.byte_size();
    of_bytes(ty, whole.part(range))
}

/// A copy of elements.
///
/// # Errors
/// Too little memory.
pub(crate) fn copied<T: Element>(op: &'static str, elements: &[T]) -> Result<Vec<T>> {
    let mut copy = with_capacity(op, elements.len())?;
    copy.extend_from_slice(elements);
    Ok(copy)
}

/// The elements of bytes: one copy of memory, where they are aligned.
fn read<T: Element>(op: &'static str, bytes: &[u8]) -> Result<Vec<T>> {
    if let Some(elements) = T::slice(bytes) {
        return copied(op, elements);
    }
    let mut elements = with_capacity(op, bytes.len() / size_of::<T>())?;
    elements.extend(bytes.chunks_exact(size_of::<T>()).map(T::read));
    Ok(elements)
}
