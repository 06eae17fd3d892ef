//! Tensors: made from slices and numbers, read into vectors.

use std::sync::Arc;

use defn_core as core;
use defn_core::backend::{Backend, HostMemory};
use defn_core::builder::Arg;
use defn_core::location::during;
use defn_core::{AxisRef, DType, ErrorKind, Location, Name, Number, Result, Shape, TensorType};
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use half::{bf16, f16};
use num_complex::Complex;

use crate::{backend, host};

/// A tensor: elements of one dtype, in a shape, on a backend. It is immutable, cheap to clone, and may cross threads.
///
/// Operations run at once and return a `Result`.
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
#[derive(Clone)]
pub struct Tensor(pub(crate) core::Tensor);

#[diagnostic::on_unimplemented(
    message = "`{Self}` is no type of elements",
    note = "elements are bool, integers of 8 to 64 bits, f32 and f64, and those of the crates half and num-complex"
)]
/// The Rust types of elements: bool, the integers of 8 to 64 bits, f32 and f64; `f16` and `bf16` of the crate
/// [`half`], and `Complex<f32>` and `Complex<f64>` of [`num_complex`]. The other dtypes have no Rust type.
///
/// ```
/// use defn::prelude::*;
/// use defn::Element;
///
/// fn ones<T: Element>(one: T) -> Result<Tensor, defn::Error> {
///     Tensor::from_slice(&[one; 3], &[3])
/// }
/// assert_eq!(<u8 as Element>::DTYPE, DType::U8);
/// assert_eq!(ones(1i64)?.ty().to_string(), "s64[3]");
/// # Ok::<(), defn::Error>(())
/// ```
pub trait Element: Copy + Send + Sync + sealed::Sealed + 'static {
    /// The dtype of the elements.
    const DTYPE: DType;

    /// Appends the bytes of the element, as in memory.
    ///
    /// ```
    /// # use defn::Element;
    /// let mut bytes = Vec::new();
    /// 258u16.write(&mut bytes);
    /// assert_eq!(bytes, 258u16.to_ne_bytes());
    /// ```
    fn write(self, bytes: &mut Vec<u8>);

    /// The element of bytes as in memory.
    ///
    /// ```
    /// # use defn::Element;
    /// assert_eq!(u16::read(&258u16.to_ne_bytes()), 258);
    /// ```
    ///
    /// # Panics
    /// If the number of bytes is not that of one element.
    fn read(bytes: &[u8]) -> Self;
}

mod sealed {
    pub trait Sealed: Sized {
        /// The bytes of elements, in place.
        fn bytes(elements: &[Self]) -> &[u8];

        /// Bytes as elements, in place. None where they are not aligned, and for bool: a byte from outside may be no
        /// valid bool of Rust.
        fn slice(bytes: &[u8]) -> Option<&[Self]>;
    }
}

/// The types whose slices `bytemuck` takes for bytes, and bytes for slices.
macro_rules! plain {
    ($($ty:ty),*) => {$(
        impl sealed::Sealed for $ty {
            fn bytes(elements: &[$ty]) -> &[u8] {
                bytemuck::cast_slice(elements)
            }

            fn slice(bytes: &[u8]) -> Option<&[$ty]> {
                bytemuck::try_cast_slice(bytes).ok()
            }
        }
    )*};
}
plain!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64, Complex<f32>, Complex<f64>);

/// The types of the crate `half`, by its own casts to the integers of their bits.
macro_rules! halves {
    ($($ty:ty),*) => {$(
        impl sealed::Sealed for $ty {
            fn bytes(elements: &[$ty]) -> &[u8] {
                bytemuck::cast_slice::<u16, u8>(elements.reinterpret_cast())
            }

            fn slice(bytes: &[u8]) -> Option<&[$ty]> {
                bytemuck::try_cast_slice::<u8, u16>(bytes).ok().map(HalfBitsSliceExt::reinterpret_cast)
            }
        }
    )*};
}
halves!(f16, bf16);

macro_rules! elements {
    ($($ty:ty => $dtype:ident;)*) => {$(
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
    f16 => F16; bf16 => BF16; f32 => F32; f64 => F64;
}

/// Complex numbers: the real part first.
macro_rules! complex_elements {
    ($($part:ty => $dtype:ident;)*) => {$(
        impl Element for Complex<$part> {
            const DTYPE: DType = DType::$dtype;

            fn write(self, bytes: &mut Vec<u8>) {
                self.re.write(bytes);
                self.im.write(bytes);
            }

            fn read(bytes: &[u8]) -> Complex<$part> {
                let (re, im) = bytes.split_at(bytes.len() / 2);
                Complex::new(<$part>::read(re), <$part>::read(im))
            }
        }
    )*};
}
complex_elements! { f32 => C64; f64 => C128; }

impl sealed::Sealed for bool {
    fn bytes(elements: &[bool]) -> &[u8] {
        bytemuck::cast_slice(elements)
    }

    fn slice(_bytes: &[u8]) -> Option<&[bool]> {
        None
    }
}

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
    /// A tensor on the default backend, from elements in row-major order, which are copied.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let x = Tensor::from_slice(&[1u8, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!(x.ty().to_string(), "u8[2][3]");
    /// assert!(Tensor::from_slice(&[1u8, 2], &[3]).is_err());
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A shape with another number of elements (`Option`), and too little memory (`OutOfMemory`).
    #[track_caller]
    pub fn from_slice<T: Element>(elements: &[T], sizes: &[usize]) -> Result<Tensor> {
        let location = Location::caller();
        let made = host::copied("from_slice", elements)
            .and_then(|elements| host::from_vec("from_slice", elements, Shape::new(sizes)));
        made.map_err(|error| error.at(Some(location)))
    }

    /// A scalar: bool from a bool, s32 from an integer, f32 from a float, c64 from a complex number. An integer wraps;
    /// [`Tensor::full`] takes another dtype.
    ///
    /// ```
    /// # use defn::Tensor;
    /// assert_eq!(Tensor::scalar(7)?.ty().to_string(), "s32");
    /// assert_eq!(Tensor::scalar(0.5)?.item::<f32>()?, 0.5);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Too little memory (`OutOfMemory`).
    #[track_caller]
    pub fn scalar(number: impl Into<Number>) -> Result<Tensor> {
        let number = number.into();
        Tensor::full(&[], number.dtype(), number)
    }

    /// A template: the type of a tensor, without elements. [`Jit::compile`](crate::Jit::compile) takes it.
    ///
    /// ```
    /// # use defn::{DType, Tensor};
    /// let x = Tensor::template(&[2, 3], DType::F32)?;
    /// assert_eq!(x.ty().to_string(), "f32[2][3]");
    /// assert!(x.to_vec::<f32>().is_err());
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A shape that is too large (`Shape`).
    #[track_caller]
    pub fn template(sizes: &[usize], dtype: DType) -> Result<Tensor> {
        let location = Location::caller();
        let ty = TensorType::new(dtype, Shape::new(sizes)).map_err(|error| error.at(Some(location)))?;
        Ok(Tensor(core::Tensor::template(ty)))
    }

    /// The dtype and the shape.
    ///
    /// ```
    /// # use defn::{DType, Tensor};
    /// let x = Tensor::from_slice(&[1i64, 2], &[1, 2])?;
    /// assert_eq!(x.ty().to_string(), "s64[1][2]");
    /// assert_eq!(x.ty().byte_size(), 16);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn ty(&self) -> &TensorType {
        self.0.ty()
    }

    /// The shape, with the names of its axes.
    ///
    /// ```
    /// # use defn::{DType, Tensor};
    /// let x = Tensor::full(&[2, 3], DType::F32, 0)?;
    /// assert_eq!(x.shape().sizes(), [2, 3]);
    /// assert_eq!(x.rename(&[Some("row"), None])?.shape().to_string(), "[row: 2][3]");
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn shape(&self) -> &Shape {
        &self.ty().shape
    }

    /// The size of an axis.
    ///
    /// ```
    /// # use defn::{DType, Tensor};
    /// let x = Tensor::full(&[2, 3], DType::F32, 0)?.rename(&[Some("row"), Some("column")])?;
    /// assert_eq!((x.axis_size(0)?, x.axis_size("column")?), (2, 3));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// An axis that does not exist (`Axis`).
    #[track_caller]
    pub fn axis_size(&self, axis: impl Into<AxisRef>) -> Result<usize> {
        let location = Location::caller();
        let axis =
            self.shape().resolve("axis_size", &axis.into()).map_err(|error| error.at(Some(location)))?;
        Ok(self.shape()[axis])
    }

    /// The vectorized axes, which are outside the shape: their names and sizes.
    ///
    /// ```
    /// # use defn::{DType, Tensor};
    /// let x = Tensor::full(&[2, 3], DType::F32, 0)?.vectorize(&["batch"])?;
    /// assert_eq!(x.vectorized_axes(), [("batch".into(), 2)]);
    /// assert_eq!(x.shape().sizes(), [3]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn vectorized_axes(&self) -> &[(Name, usize)] {
        self.0.vectorized_axes()
    }

    /// The dtype.
    ///
    /// ```
    /// # use defn::{DType, Tensor};
    /// assert_eq!(Tensor::scalar(1.5)?.dtype(), DType::F32);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        self.ty().dtype
    }

    /// The elements in row-major order, those of vectorized axes first.
    ///
    /// ```
    /// # use defn::{DType, Tensor};
    /// let x = Tensor::iota(&[2, 2], DType::S32, None)?;
    /// assert_eq!(x.to_vec::<i32>()?, [0, 1, 2, 3]);
    /// assert!(x.to_vec::<f32>().is_err());
    /// assert_eq!(x.as_type(DType::F32)?.to_vec::<f32>()?, [0.0, 1.0, 2.0, 3.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Another dtype than that of `T` (`DType`), and elements that were freed (`Backend`).
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let location = Location::caller();
        self.read_vec("to_vec").map_err(|error| error.at(Some(location)))
    }

    /// The only element.
    ///
    /// ```
    /// # use defn::Tensor;
    /// assert_eq!(Tensor::from_slice(&[7u8], &[1, 1])?.item::<u8>()?, 7);
    /// assert!(Tensor::from_slice(&[7u8, 8], &[2])?.item::<u8>().is_err());
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Another number of elements than one (`Shape`), another dtype than that of `T` (`DType`), and elements that were
    /// freed (`Backend`).
    #[track_caller]
    pub fn item<T: Element>(&self) -> Result<T> {
        let location = Location::caller();
        let read = || match *self.read_slice("item")? {
            [item] => Ok(item),
            _ => Err(ErrorKind::NotScalar { op: "item", what: "the tensor", got: self.ty().clone() }.into()),
        };
        read().map_err(|error: core::Error| error.at(Some(location)))
    }

    /// A copy of the tensor on a backend. This tensor does not change.
    ///
    /// ```
    /// # use defn::{Tensor, default_backend};
    /// let x = Tensor::scalar(7)?;
    /// let copy = x.backend_copy(&default_backend()?)?;
    /// assert!(x.backend_deallocate()?);
    /// assert_eq!(copy.item::<i32>()?, 7);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Elements that were freed, and a dtype that the backend does not have (`Backend`); a tensor that is being traced
    /// (`Trace`).
    #[track_caller]
    pub fn backend_copy(&self, backend: &Arc<dyn Backend>) -> Result<Tensor> {
        let location = Location::caller();
        self.0.copy_to("backend_copy", backend).map(Tensor).map_err(|error| error.at(Some(location)))
    }

    /// The tensor moved to a backend. Nothing happens to a tensor that is already there. Any other is freed, even if
    /// the copy fails.
    ///
    /// ```
    /// # use defn::{Tensor, default_backend};
    /// let x = Tensor::scalar(7)?;
    /// let moved = x.backend_transfer(&default_backend()?)?;
    /// assert_eq!(moved.item::<i32>()?, 7);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::backend_copy`].
    #[track_caller]
    pub fn backend_transfer(&self, backend: &Arc<dyn Backend>) -> Result<Tensor> {
        let location = Location::caller();
        let moved = during(location.clone(), || self.0.transfer_to("backend_transfer", backend));
        moved.map(Tensor).map_err(|error| error.at(Some(location)))
    }

    /// Frees the elements now, for every clone of the tensor too. The result is false if they were freed before.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let x = Tensor::scalar(7)?;
    /// assert_eq!((x.backend_deallocate()?, x.backend_deallocate()?), (true, false));
    /// assert!(x.item::<i32>().is_err());
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A backend that fails to free them (`Backend`), and a tensor that is being traced (`Trace`).
    #[track_caller]
    pub fn backend_deallocate(&self) -> Result<bool> {
        let location = Location::caller();
        let free =
            || self.0.require_buffer("backend_deallocate", "free it outside the definition")?.deallocate();
        during(location.clone(), free).map_err(|error: core::Error| error.at(Some(location)))
    }

    /// The tensor of the core crate, for functions that this crate does not offer.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let x = Tensor::scalar(7)?;
    /// assert_eq!(x.core().backend().unwrap().device_name(), "cpu");
    /// assert_eq!(Tensor::from(x.core().clone()).item::<i32>()?, 7);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn core(&self) -> &core::Tensor {
        &self.0
    }
}

/// A tensor of elements in row-major order, as many as the type says.
pub(crate) fn of_bytes(ty: TensorType, bytes: impl Into<HostMemory>) -> Result<Tensor> {
    let buffer = backend::default_backend()?.from_host(&ty, bytes.into())?;
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
