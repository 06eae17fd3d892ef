//! Tensors from nested arrays, vectors and slices, and back.

use defn_core::builder::default_scalar;
use defn_core::{DType, Error, ErrorKind, Location, Number, Result, Shape, TensorType, memory};

use crate::tensor::of_bytes;
use crate::{Element, Tensor, host};

#[diagnostic::on_unimplemented(
    message = "`{Self}` has no elements for a tensor",
    label = "give numbers, or nested arrays, vectors or slices of numbers"
)]
/// Numbers in nested arrays, vectors or slices of one length on each level: what [`tensor!`](crate::tensor!) and the
/// conversions to [`Tensor`] take.
///
/// ```
/// use defn::{Nested, Tensor};
///
/// fn table<A: Nested<Leaf = f32>>(rows: A) -> defn::Result<Tensor> {
///     Tensor::from_nested(rows)
/// }
/// assert_eq!(table([[1f32, 2.0], [3.0, 4.0]])?.ty().to_string(), "f32[2][2]");
/// assert!(table(vec![vec![1f32], vec![2.0, 3.0]]).is_err());
/// # Ok::<(), defn::Error>(())
/// ```
pub trait Nested {
    /// The numbers.
    type Leaf: Copy;

    /// Appends the length of each level to `sizes`, or compares it with what is there from `depth` on; appends the
    /// numbers to `leaves`. Gives whether all lengths of a level are the same.
    ///
    /// ```
    /// use defn::Nested;
    ///
    /// let (mut sizes, mut leaves) = (Vec::new(), Vec::new());
    /// assert!([[1u8, 2], [3, 4]].collect(0, &mut sizes, &mut leaves));
    /// assert_eq!((sizes, leaves), (vec![2, 2], vec![1, 2, 3, 4]));
    /// ```
    fn collect(&self, depth: usize, sizes: &mut Vec<usize>, leaves: &mut Vec<Self::Leaf>) -> bool;
}

macro_rules! leaves {
    ($($ty:ty),*) => {$(
        impl Nested for $ty {
            type Leaf = $ty;

            fn collect(&self, depth: usize, sizes: &mut Vec<usize>, leaves: &mut Vec<$ty>) -> bool {
                leaves.push(*self);
                depth == sizes.len()
            }
        }
    )*};
}
leaves! { bool, u8, u16, u32, u64, i8, i16, i32, i64, f32, f64, Number }

impl<A: Nested> Nested for [A] {
    type Leaf = A::Leaf;

    fn collect(&self, depth: usize, sizes: &mut Vec<usize>, leaves: &mut Vec<A::Leaf>) -> bool {
        if leaves.is_empty() && depth == sizes.len() {
            sizes.push(self.len());
        }
        let is_regular = sizes.get(depth) == Some(&self.len());
        is_regular && self.iter().all(|item| item.collect(depth + 1, sizes, leaves))
    }
}

impl<A: Nested> Nested for Vec<A> {
    type Leaf = A::Leaf;

    fn collect(&self, depth: usize, sizes: &mut Vec<usize>, leaves: &mut Vec<A::Leaf>) -> bool {
        self.as_slice().collect(depth, sizes, leaves)
    }
}

impl<A: Nested, const N: usize> Nested for [A; N] {
    type Leaf = A::Leaf;

    fn collect(&self, depth: usize, sizes: &mut Vec<usize>, leaves: &mut Vec<A::Leaf>) -> bool {
        self.as_slice().collect(depth, sizes, leaves)
    }
}

impl<A: Nested + ?Sized> Nested for &A {
    type Leaf = A::Leaf;

    fn collect(&self, depth: usize, sizes: &mut Vec<usize>, leaves: &mut Vec<A::Leaf>) -> bool {
        (**self).collect(depth, sizes, leaves)
    }
}

/// The lengths of all levels, and the numbers.
fn collected<A: Nested>(op: &'static str, nested: &A) -> Result<(Vec<usize>, Vec<A::Leaf>)> {
    let (mut sizes, mut leaves) = (Vec::new(), Vec::new());
    if nested.collect(0, &mut sizes, &mut leaves) {
        return Ok((sizes, leaves));
    }
    let (given, required) = ("ragged".to_owned(), "of one length on each level".to_owned());
    Err(ErrorKind::OptionValue { op, option: "the nesting", given, required }.into())
}

impl Tensor {
    /// A tensor on the default backend, from nested arrays, vectors or slices, whose elements are copied. The dtype is
    /// that of their Rust type.
    ///
    /// ```
    /// use defn::Tensor;
    ///
    /// let x = Tensor::from_nested([[1u8, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.ty().to_string(), "u8[2][3]");
    /// let rows: Vec<Vec<f64>> = vec![vec![1.0, 2.0], vec![3.0]];
    /// assert!(Tensor::from_nested(rows).unwrap_err().to_string().contains("ragged"));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Vectors or slices of other lengths than their neighbours (`Option`), and too little memory (`OutOfMemory`).
    #[track_caller]
    pub fn from_nested<A: Nested<Leaf: Element>>(nested: A) -> Result<Tensor> {
        let location = Location::caller();
        let made = collected("from_nested", &nested)
            .and_then(|(sizes, leaves)| host::from_vec("from_nested", leaves, Shape::new(&sizes)));
        made.map_err(|error| error.at(Some(location)))
    }

    /// A tensor from nested numbers, as [`tensor!`](crate::tensor!) makes it: of a dtype, or of that which
    /// [`Tensor::scalar`] gives the first number.
    ///
    /// ```
    /// use defn::{DType, Tensor};
    ///
    /// assert_eq!(Tensor::from_numbers([1.5, 2.5], None)?.ty().to_string(), "f32[2]");
    /// assert_eq!(Tensor::from_numbers([[1, 2]], Some(DType::U8))?.ty().to_string(), "u8[1][2]");
    /// assert!(Tensor::from_numbers([300], Some(DType::U8)).is_err());
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// An integer that the dtype does not hold (`Range`), a float for integers (`DType`), vectors or slices of other
    /// lengths than their neighbours (`Option`), and too little memory (`OutOfMemory`).
    #[track_caller]
    pub fn from_numbers<A: Nested<Leaf: Into<Number>>>(nested: A, dtype: Option<DType>) -> Result<Tensor> {
        let location = Location::caller();
        let make = || {
            let op = "tensor";
            let (sizes, leaves) = collected(op, &nested)?;
            let numbers: Vec<Number> = leaves.into_iter().map(Into::into).collect();
            let dtype = dtype.or(numbers.first().map(|number| number.dtype())).unwrap_or(DType::F32);
            let mut bytes = memory::with_capacity(op, numbers.len() * dtype.storage_bytes())?;
            for number in numbers {
                bytes.extend(default_scalar(dtype, number)?.to_bytes());
            }
            of_bytes(TensorType::new(dtype, Shape::new(&sizes))?, bytes)
        };
        make().map_err(|error: Error| error.at(Some(location)))
    }
}

/// A tensor of numbers on the default backend: `tensor![1.0, 2.0]` is a vector, `tensor![[1, 2], [3, 4]]` a matrix.
/// Floats are f32, integers s32, as in Python; `tensor![1.0, 2.0; f64]` has the elements of a Rust type.
///
/// ```
/// use defn::prelude::*;
///
/// let x = tensor![[1.0, 2.0], [3.0, 4.0]]?;
/// assert_eq!(x.ty().to_string(), "f32[2][2]");
/// assert_eq!(tensor![1, 2, 3; u8]?.ty().to_string(), "u8[3]");
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`Tensor::from_numbers`].
#[macro_export]
macro_rules! tensor {
    ($($item:expr),+ $(,)?) => {
        $crate::Tensor::from_numbers([$($item),+], ::core::option::Option::None)
    };
    ($($item:expr),+ $(,)?; $ty:ty) => {
        $crate::Tensor::from_numbers(
            [$($item),+],
            ::core::option::Option::Some(<$ty as $crate::Element>::DTYPE),
        )
    };
}

macro_rules! conversions {
    ($([$($const:tt)*] $ty:ty;)*) => {$(
        impl<A: Nested<Leaf: Element>, $($const)*> TryFrom<$ty> for Tensor {
            type Error = Error;

            #[track_caller]
            fn try_from(nested: $ty) -> Result<Tensor> {
                Tensor::from_nested(nested)
            }
        }
    )*};
}
conversions! { [const N: usize] [A; N]; [] Vec<A>; [] &[A]; }

impl<T: Element> TryFrom<&Tensor> for Vec<T> {
    type Error = Error;

    #[track_caller]
    fn try_from(tensor: &Tensor) -> Result<Vec<T>> {
        tensor.to_vec()
    }
}

/// Conversions from an owned tensor, which is read as a borrowed one.
macro_rules! from_owned {
    ($([$($param:tt)*] $ty:ty;)*) => {$(
        /// As of a reference.
        impl<$($param)*> TryFrom<$crate::Tensor> for $ty {
            type Error = $crate::Error;

            #[track_caller]
            fn try_from(tensor: $crate::Tensor) -> $crate::Result<$ty> {
                <$ty>::try_from(&tensor)
            }
        }
    )*};
}
#[cfg(any(
    feature = "arrow",
    feature = "faer",
    feature = "image",
    feature = "nalgebra",
    feature = "ndarray"
))]
pub(crate) use from_owned;

from_owned! { [T: Element] Vec<T>; }
