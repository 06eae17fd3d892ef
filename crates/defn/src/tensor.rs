//! Tensors: made from slices and numbers, read into vectors.

use std::sync::Arc;

use defn_core as core;
use defn_core::backend::{Backend, HostMemory};
use defn_core::builder::Arg;
use defn_core::location::during;
use defn_core::{DType, ErrorKind, Location, Name, Number, Result, Shape, TensorType};

use crate::backend;

/// A tensor: elements of one type, in a shape, on a backend. Immutable, cheap to clone, free to cross threads.
///
/// Operations run at once and give a `Result`.
///
/// ```
/// use defn::prelude::*;
///
/// let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// let y = (&x * 2.0)?.sum(-1, false)?;
/// assert_eq!(y.to_vec::<f32>()?, [6.0, 14.0]);
/// assert_eq!(y.ty().to_string(), "f32[2]");
/// assert_eq!(x.greater(2.0)?.to_vec::<bool>()?, [false, false, true, true]);
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tensor(pub(crate) core::Tensor);

/// Element types of Rust that are element types of tensors.
pub trait Element: Copy + sealed::Sealed + 'static {
    /// The tensor's element type.
    const DTYPE: DType;

    /// Appends the element as it lies in memory.
    fn write(self, bytes: &mut Vec<u8>);

    /// The element that lies in memory.
    fn read(bytes: &[u8]) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($ty:ty => $dtype:ident;)*) => {$(
        impl sealed::Sealed for $ty {}

        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;

            fn write(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_ne_bytes());
            }

            fn read(bytes: &[u8]) -> $ty {
                <$ty>::from_ne_bytes(bytes.try_into().expect("the bytes of one element"))
            }
        }
    )*};
}
elements! {
    u8 => U8; u16 => U16; u32 => U32; u64 => U64;
    i8 => S8; i16 => S16; i32 => S32; i64 => S64;
    f32 => F32; f64 => F64;
}

impl sealed::Sealed for bool {}

impl Element for bool {
    const DTYPE: DType = DType::Bool;

    fn write(self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self));
    }

    fn read(bytes: &[u8]) -> bool {
        // The byte of an element is compared, never taken for Rust's bool: memory from outside may hold another number.
        bytes != [0]
    }
}

impl Tensor {
    /// Copies elements in row-major order into a tensor on the default backend.
    ///
    /// # Errors
    /// A shape with another number of elements, and memory.
    #[track_caller]
    pub fn from_slice<T: Element>(elements: &[T], sizes: &[usize]) -> Result<Tensor> {
        let location = Location::caller();
        make_tensor(elements, sizes).map_err(|error| error.at(Some(location)))
    }

    /// A scalar: s32 from an integer, f32 from a float, c64 from a complex number.
    ///
    /// # Errors
    /// Memory.
    #[track_caller]
    pub fn scalar(number: impl Into<Number>) -> Result<Tensor> {
        let number = number.into();
        Tensor::full(&[], number.dtype(), number)
    }

    /// The element type and the shape.
    pub fn ty(&self) -> &TensorType {
        self.0.ty()
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.ty().shape
    }

    /// The vectorized axes, which are outside the shape.
    pub fn vectorized_axes(&self) -> &[(Name, usize)] {
        self.0.vectorized_axes()
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.ty().dtype
    }

    /// The elements in row-major order.
    ///
    /// # Errors
    /// Elements of another type than `T`, and elements that are gone.
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let location = Location::caller();
        self.read("to_vec").map_err(|error| error.at(Some(location)))
    }

    /// The only element.
    ///
    /// # Errors
    /// Another number of elements than one, elements of another type than `T`, and elements that are gone.
    #[track_caller]
    pub fn item<T: Element>(&self) -> Result<T> {
        let location = Location::caller();
        let read = || match self.read("item")?[..] {
            [item] => Ok(item),
            _ => Err(ErrorKind::NotScalar { op: "item", what: "the tensor", got: self.ty().clone() }.into()),
        };
        read().map_err(|error: core::Error| error.at(Some(location)))
    }

    /// A tensor of the same elements on a backend; this one stays as it is.
    ///
    /// # Errors
    /// Elements that are gone, and what the backend cannot place.
    #[track_caller]
    pub fn backend_copy(&self, backend: &Arc<dyn Backend>) -> Result<Tensor> {
        let location = Location::caller();
        self.0.copy_to("backend_copy", backend).map(Tensor).map_err(|error| error.at(Some(location)))
    }

    /// The elements on a backend. Where they are there already nothing happens; else this tensor's are freed, also
    /// when the copy fails.
    ///
    /// # Errors
    /// As [`Tensor::backend_copy`].
    #[track_caller]
    pub fn backend_transfer(&self, backend: &Arc<dyn Backend>) -> Result<Tensor> {
        let location = Location::caller();
        let moved = during(location.clone(), || self.0.transfer_to("backend_transfer", backend));
        moved.map(Tensor).map_err(|error| error.at(Some(location)))
    }

    /// Frees the elements now, for every clone of the tensor too; false if they were gone before.
    ///
    /// # Errors
    /// When the backend fails to free them.
    #[track_caller]
    pub fn backend_deallocate(&self) -> Result<bool> {
        let location = Location::caller();
        let free =
            || self.0.require_buffer("backend_deallocate", "free it outside the definition")?.deallocate();
        during(location.clone(), free).map_err(|error: core::Error| error.at(Some(location)))
    }

    /// The tensor of the core, for what the facade has no name for.
    pub fn core(&self) -> &core::Tensor {
        &self.0
    }

    fn read<T: Element>(&self, op: &'static str) -> Result<Vec<T>> {
        if self.dtype() != T::DTYPE {
            let (got, required, hint) = (self.ty().clone(), T::DTYPE.name(), "; convert it with as_type");
            return Err(ErrorKind::OperandDType { op, got, required, hint }.into());
        }
        let memory = self.0.host_bytes(op)?;
        Ok(memory.bytes().chunks_exact(size_of::<T>()).take(self.0.whole().size()).map(T::read).collect())
    }
}

fn make_tensor<T: Element>(elements: &[T], sizes: &[usize]) -> Result<Tensor> {
    let ty = TensorType::new(T::DTYPE, Shape::new(sizes))?;
    if ty.size() != elements.len() {
        let (given, required) = (format!("{ty}"), format!("of the {} elements given", elements.len()));
        return Err(ErrorKind::OptionValue { op: "from_slice", option: "the shape", given, required }.into());
    }
    let mut bytes = Vec::with_capacity(ty.byte_size());
    for &element in elements {
        element.write(&mut bytes);
    }
    let buffer = backend::default_backend()?.from_host(&ty, HostMemory::new(Arc::new(bytes)))?;
    Ok(Tensor(core::Tensor::concrete(ty, buffer)))
}

impl From<core::Tensor> for Tensor {
    fn from(tensor: core::Tensor) -> Tensor {
        Tensor(tensor)
    }
}

impl From<Tensor> for Arg<core::Tensor> {
    fn from(tensor: Tensor) -> Arg<core::Tensor> {
        Arg::Value(tensor.0)
    }
}

impl From<&Tensor> for Arg<core::Tensor> {
    fn from(tensor: &Tensor) -> Arg<core::Tensor> {
        Arg::Value(tensor.0.clone())
    }
}
