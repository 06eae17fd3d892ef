//! Parts of tensors, and their bytes.

use defn_core as core;
use defn_core::format::{Array, packed};
use defn_core::print::ShownElements;
use defn_core::{DType, ErrorKind, Location, Result, Shape, TensorType, batches};

use crate::ops::eager;
use crate::tensor::of_bytes;
use crate::{Tensor, print};

/// What becomes of the rows that do not fill a batch.
///
/// ```
/// use defn::{Leftover, prelude::*};
///
/// let x = tensor![1, 2, 3]?;
/// let last = |leftover| x.to_batched(2, leftover)?.last().unwrap()?.to_vec::<i32>();
/// assert_eq!(last(Leftover::Repeat)?, [3, 1]);
/// assert_eq!(last(Leftover::Discard)?, [1, 2]);
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leftover {
    /// The last batch is filled with rows from the beginning.
    Repeat,
    /// They are left out.
    Discard,
}

/// The batches of a tensor, made one by one. [`Tensor::to_batched`] returns it.
///
/// ```
/// use defn::{Batches, Leftover, prelude::*};
///
/// fn sums(batches: Batches) -> Result<Vec<i32>, defn::Error> {
///     batches.map(|batch| batch?.sum(Axes::All, false)?.item()).collect()
/// }
/// assert_eq!(sums(tensor![1, 2, 3, 4]?.to_batched(2, Leftover::Discard)?)?, [3, 7]);
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "batches are made when they are asked for"]
pub struct Batches {
    tensor: Tensor,
    size: usize,
    positions: std::ops::Range<usize>,
    location: Location,
}

impl Iterator for Batches {
    type Item = Result<Tensor>;

    fn next(&mut self) -> Option<Result<Tensor>> {
        let position = self.positions.next()?;
        let make = |ops: &mut core::builder::Ops| batches::batch(ops, &self.tensor.0, self.size, position);
        Some(eager(self.location.clone(), make).map(Tensor))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.positions.size_hint()
    }
}

impl ExactSizeIterator for Batches {}

impl Tensor {
    /// Batches of `size` rows along the first axis, which is a vectorized one if there are any.
    ///
    /// ```
    /// # use defn::{Leftover, prelude::*};
    /// let x = tensor![[1, 2], [3, 4], [5, 6]]?;
    /// let batches = x.to_batched(2, Leftover::Repeat)?;
    /// assert_eq!(batches.len(), 2);
    /// let batches = batches.collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(batches[1].to_vec::<i32>()?, [5, 6, 1, 2]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A scalar, and a batch longer than the axis (`Shape`); a size of 0 (`Option`).
    #[track_caller]
    pub fn to_batched(&self, size: usize, leftover: Leftover) -> Result<Batches> {
        let location = Location::caller();
        let count = batches::count(&self.0, size, leftover == Leftover::Repeat)
            .map_err(|error| error.at(Some(location.clone())))?;
        Ok(Batches { tensor: self.clone(), size, positions: 0..count, location })
    }

    /// A template of the tensor: its type and its vectorized axes, without elements.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let x = tensor![1.0, 2.0]?;
    /// assert_eq!(x.to_template().ty(), x.ty());
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn to_template(&self) -> Tensor {
        Tensor(core::Tensor::template(self.0.whole().clone()).with_vectorized(self.vectorized_axes()))
    }

    /// A vector from the bytes of its elements, in the machine's byte order. Elements of 2 and 4 bits are packed, the first
    /// in the highest bits of a byte.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let x = Tensor::from_binary(&1.5f32.to_ne_bytes(), DType::F32)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.5]);
    /// assert!(Tensor::from_binary(&[1, 2, 3], DType::F32).is_err());
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Bytes that do not hold a whole number of elements (`Option`).
    #[track_caller]
    pub fn from_binary(bytes: &[u8], dtype: DType) -> Result<Tensor> {
        let location = Location::caller();
        vector(bytes, dtype).map_err(|error| error.at(Some(location)))
    }

    /// The bytes of the elements in row-major order, in the machine's byte order. Elements of 2 and 4 bits are packed, the
    /// first in the highest bits of a byte.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let x = tensor![1, 2, 3; u8]?.as_type(DType::U4)?;
    /// assert_eq!(x.to_binary()?, [0x12, 0x30]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Elements that were freed (`Backend`).
    #[track_caller]
    pub fn to_binary(&self) -> Result<Vec<u8>> {
        let location = Location::caller();
        let array = Array::of("to_binary", &self.0).map_err(|error| error.at(Some(location)))?;
        Ok(packed::pack(array.ty.dtype, array.memory.bytes()).into_owned())
    }

    /// What `{}` prints, with the first `limit` elements, or with all of them.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let x = Tensor::iota(&[100], DType::S32, None)?;
    /// assert!(x.inspect(Some(2)).contains("[0, 1, ...]"));
    /// assert!(x.inspect(None).contains("99"));
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn inspect(&self, limit: Option<usize>) -> String {
        print::text(&self.0, ShownElements::First(limit.unwrap_or(usize::MAX)))
    }
}

fn vector(bytes: &[u8], dtype: DType) -> Result<Tensor> {
    let elements = packed::unpack(dtype, bytes).into_owned();
    if elements.is_empty() || !elements.len().is_multiple_of(dtype.storage_bytes()) {
        let (op, option, given) = ("from_binary", "the bytes", format!("{} bytes", bytes.len()));
        let required = format!("a whole number of elements of {dtype}, and at least one");
        return Err(ErrorKind::OptionValue { op, option, given, required }.into());
    }
    of_bytes(TensorType::new(dtype, Shape::new(&[elements.len() / dtype.storage_bytes()]))?, elements)
}
