//! Windows of tensors by positions and ranges, and iterators over the first axis.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use defn_core as core;
use defn_core::builder::{BuildShape, Ops, Start};
use defn_core::{Axes, Axis, ErrorKind, Location, Result};

use crate::Tensor;
use crate::ops::eager;

/// What is taken of one axis: a position or a range. [`Index::parts`] gives one for each.
///
/// ```
/// use defn::{Index, Part};
///
/// let parts: Vec<Part> = (0, 1..3).parts();
/// assert_eq!(parts.len(), 2);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Part(Taken);

#[derive(Clone, Copy, Debug)]
enum Taken {
    /// One position; the result lacks the axis.
    At(i64),
    /// The positions from one on and before another one.
    Between(Option<i64>, Option<i64>),
}

#[diagnostic::on_unimplemented(
    message = "`{Self}` is no index of a tensor",
    label = "give a position, a range, or a tuple of them: x.at((0, 1..3))"
)]
/// What [`Tensor::at`] and [`Expr::at`](crate::Expr::at) take: a position, a range, or a tuple of them, one for each of
/// the first axes. Negative positions count from the end, and ranges are cut to the axis, as in Python. Clippy takes
/// `1..-1` for an empty range; allow `clippy::reversed_empty_ranges` where it stands.
///
/// ```
/// use defn::prelude::*;
/// use defn::Index;
///
/// fn last(x: &Tensor, of: impl Index) -> Result<Tensor, defn::Error> {
///     x.at(of)?.at(-1)
/// }
/// let x = Tensor::iota(&[2, 3], DType::S32, None)?;
/// assert_eq!(last(&x, 0)?.item::<i32>()?, 2);
/// assert_eq!(last(&x, (.., 1..3))?.to_vec::<i32>()?, [4, 5]);
/// # Ok::<(), defn::Error>(())
/// ```
pub trait Index: sealed::Sealed {
    /// What is taken of the first axes.
    ///
    /// ```
    /// use defn::Index;
    ///
    /// assert_eq!((0, 1..3).parts().len(), 2);
    /// ```
    fn parts(self) -> Vec<Part>;
}

mod sealed {
    pub trait Sealed {}
}

/// What indexes one axis.
macro_rules! axis_index {
    ($($ty:ty: |$own:ident| $taken:expr;)*) => {$(
        impl sealed::Sealed for $ty {}

        impl Index for $ty {
            fn parts(self) -> Vec<Part> {
                let $own = self;
                vec![Part($taken)]
            }
        }
    )*};
}

/// A position as 64 bits. No axis has positions beyond them.
fn position(at: impl TryInto<i64>) -> i64 {
    at.try_into().unwrap_or(i64::MAX)
}

macro_rules! integer_index {
    ($($ty:ty)*) => {$(
        axis_index! {
            $ty: |at| Taken::At(position(at));
            Range<$ty>: |of| Taken::Between(Some(position(of.start)), Some(position(of.end)));
            RangeFrom<$ty>: |of| Taken::Between(Some(position(of.start)), None);
            RangeTo<$ty>: |of| Taken::Between(None, Some(position(of.end)));
            RangeInclusive<$ty>: |of| Taken::Between(Some(position(*of.start())), after(position(*of.end())));
            RangeToInclusive<$ty>: |of| Taken::Between(None, after(position(of.end)));
        }
    )*};
}
integer_index! { i32 i64 usize }
axis_index! { RangeFull: |_of| Taken::Between(None, None); }

/// The position behind one; none behind the last, -1.
fn after(last: i64) -> Option<i64> {
    if last == -1 { None } else { last.checked_add(1) }
}

macro_rules! tuple_index {
    ($(($($name:ident $index:tt),+))*) => {$(
        impl<$($name: Index),+> sealed::Sealed for ($($name,)+) {}

        impl<$($name: Index),+> Index for ($($name,)+) {
            fn parts(self) -> Vec<Part> {
                [$(self.$index.parts()),+].concat()
            }
        }
    )*};
}
for_tuples! { tuple_index }

/// The window of a tensor that is taken, without the axes of which it is one position.
pub(crate) fn window(ops: &mut Ops, x: &core::Tensor, parts: &[Part]) -> Result<core::Tensor> {
    let ty = x.ty().clone();
    let sizes: Vec<i64> = ty.shape.sizes().iter().map(|&size| size as i64).collect();
    if parts.len() > sizes.len() {
        let axis = parts.len() as i64 - 1;
        return Err(ErrorKind::AxisRange { op: "at", axis, shape: ty.shape }.into());
    }
    let mut starts: Vec<Start<core::Tensor>> = vec![0i64.into(); sizes.len()];
    let mut lengths = sizes.clone();
    let mut dropped: Vec<Axis> = Vec::new();
    let axes = ty.shape.axes().zip(&sizes).zip(starts.iter_mut().zip(&mut lengths));
    for (((axis, &size), (start, length)), part) in axes.zip(parts) {
        let from_start = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
        let (first, count) = match part.0 {
            Taken::At(at) => {
                let first = from_start(at);
                if !(0..size).contains(&first) {
                    let (index, axis) = (at.into(), axis.index());
                    return Err(ErrorKind::IndexRange { op: "at", index, axis, got: ty }.into());
                }
                dropped.push(axis);
                (first, 1)
            }
            Taken::Between(first, end) => {
                let first = first.map_or(0, from_start).clamp(0, size);
                let end = end.map_or(size, from_start).clamp(first, size);
                (first, end - first)
            }
        };
        *start = first.into();
        *length = count;
    }
    let window = ops.slice(x, &starts, &lengths, None)?;
    if dropped.is_empty() {
        return Ok(window);
    }
    let dropped: Vec<i64> = dropped.into_iter().map(|axis| axis.index() as i64).collect();
    ops.squeeze(window, Axes::from(&dropped[..]))
}

/// The tensors along the first axis of a tensor, without that axis. [`Tensor::iter`] makes it.
///
/// ```
/// use defn::prelude::*;
///
/// let x = Tensor::iota(&[2, 3], DType::S32, None)?;
/// let mut rows = x.iter();
/// assert_eq!(rows.len(), 2);
/// assert_eq!(rows.next().unwrap()?.to_vec::<i32>()?, [0, 1, 2]);
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rows<'t> {
    tensor: &'t Tensor,
    positions: Range<usize>,
    location: Location,
}

impl Tensor {
    /// The tensors along the first axis, without that axis. A scalar has none.
    ///
    /// ```
    /// use defn::prelude::*;
    ///
    /// let x = Tensor::iota(&[2, 3], DType::S32, None)?;
    /// let mut sums = Vec::new();
    /// for row in &x {
    ///     sums.push(row?.sum(Axes::All, false)?.item::<i32>()?);
    /// }
    /// assert_eq!(sums, [3, 12]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    #[track_caller]
    pub fn iter(&self) -> Rows<'_> {
        let count = self.shape().sizes().first().copied().unwrap_or(0);
        Rows { tensor: self, positions: 0..count, location: Location::caller() }
    }
}

impl Rows<'_> {
    fn at(&self, position: usize) -> Result<Tensor> {
        let parts = position.parts();
        eager(self.location.clone(), |ops| window(ops, &self.tensor.0, &parts)).map(Tensor)
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Tensor>;

    fn next(&mut self) -> Option<Result<Tensor>> {
        self.positions.next().map(|position| self.at(position))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.positions.size_hint()
    }
}

impl DoubleEndedIterator for Rows<'_> {
    fn next_back(&mut self) -> Option<Result<Tensor>> {
        self.positions.next_back().map(|position| self.at(position))
    }
}

impl ExactSizeIterator for Rows<'_> {}

impl<'t> IntoIterator for &'t Tensor {
    type Item = Result<Tensor>;
    type IntoIter = Rows<'t>;

    #[track_caller]
    fn into_iter(self) -> Rows<'t> {
        self.iter()
    }
}
