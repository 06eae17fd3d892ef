//! Reductions of the segments of an axis: the elements with the same id.

use super::unnamed;
use crate::builder::{Arg, BuildElementwise, BuildIndex, BuildOrder, BuildShape, Builder};
use crate::compose::working_dtype;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::infer::index::require_integers;
use crate::op::Direction;
use crate::scalar::{Number, Scalar};
use crate::shape::{Axes, AxisRef, Name, Shape, TensorType};

/// See [`BuildIndex::segment_sum`].
///
/// # Errors
/// As the method.
pub fn sum<B: Builder>(b: &mut B, x: &B::V, ids: &B::V, count: usize) -> Result<B::V> {
    let rows = rows(b, "segment_sum", x, ids, count)?;
    let x = b.as_type(x, b.ty(x).dtype.to_number())?;
    let updates = unnamed(b, &x)?;
    let zeros = Scalar::zero(b.ty(&x).dtype);
    let start = filled(b, &x, zeros, count)?;
    let positions = b.new_axis(rows, -1, None)?;
    let sums = b.indexed_add(start, positions, updates, 0)?;
    b.slice_along_axis(sums, 0, count as i64, 0, 1)
}

/// A reduction of segments other than the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The product, which is 1 where there is no element.
    Product,
    /// The greatest element, else the least value of the type.
    Max,
    /// The least element, else the greatest value of the type.
    Min,
}

impl Reduction {
    fn name(self) -> &'static str {
        match self {
            Reduction::Product => "segment_product",
            Reduction::Max => "segment_max",
            Reduction::Min => "segment_min",
        }
    }

    /// The type in which elements are combined, and the result where there are none.
    fn identity(self, got: &TensorType) -> Result<Scalar> {
        let dtype = got.dtype.to_number();
        match self {
            Reduction::Product if dtype.is_inexact() => Ok(Scalar::one(working_dtype(dtype))),
            Reduction::Product => Ok(Scalar::one(dtype)),
            Reduction::Max | Reduction::Min if dtype.is_complex() => {
                let (op, got) = (self.name(), got.clone());
                let required = "an integer or a float, not complex";
                Err(ErrorKind::OperandDType { op, got, required, hint: "" }.into())
            }
            Reduction::Max => Scalar::new(got.dtype, got.dtype.lowest()),
            Reduction::Min => Scalar::new(got.dtype, got.dtype.highest()),
        }
    }

    fn combine<B: Builder>(self, b: &mut B, earlier: B::V, later: &B::V) -> Result<B::V> {
        match self {
            Reduction::Product => b.multiply(earlier, later),
            Reduction::Max => b.max(earlier, later),
            Reduction::Min => b.min(earlier, later),
        }
    }
}

/// See [`BuildIndex::segment_max`], [`BuildIndex::segment_min`] and [`BuildIndex::segment_product`].
///
/// The elements are put in the order of their ids, stably. A scan by doubling then combines each of them with all before
/// it that have its id: after step k it stands for the last `2^k` of them. The last one of each id is the result.
///
/// # Errors
/// As the methods.
pub fn reduce<B: Builder>(
    b: &mut B,
    reduction: Reduction,
    x: &B::V,
    ids: &B::V,
    count: usize,
) -> Result<B::V> {
    let rows = rows(b, reduction.name(), x, ids, count)?;
    let got = b.ty(x);
    let identity = reduction.identity(&got)?;
    let size = got.shape.sizes()[0];
    let order = b.argsort(&rows, 0, Direction::Asc, None)?;
    let rows = b.take(&rows, &order, 0)?;
    let values = unnamed(b, x)?;
    let values = b.take(values, order, 0)?;
    let mut values = b.as_type(values, identity.dtype())?;
    let mut distance = 1;
    while distance < size {
        let rest = (size - distance) as i64;
        let (later_row, row) = (part(b, &rows, distance, rest)?, part(b, &rows, 0, rest)?);
        let is_same = b.equal(later_row, row)?;
        let (later, earlier) = (part(b, &values, distance, rest)?, part(b, &values, 0, rest)?);
        let both = reduction.combine(b, earlier, &later)?;
        let shape = b.ty(&later).shape;
        let is_same = b.broadcast(is_same, shape, AxisRef::Index(0))?;
        let later = b.select(is_same, both, later)?;
        let first = part(b, &values, 0, distance as i64)?;
        values = b.concatenate(&[first, later], 0)?;
        distance = distance.saturating_mul(2);
    }
    let mut last = rows.clone();
    if size > 1 {
        let rest = size as i64 - 1;
        let (row, next) = (part(b, &rows, 0, rest)?, part(b, &rows, 1, rest)?);
        let goes_on = b.equal(&row, next)?;
        let row = b.select(goes_on, Arg::Number(Number::from(count)), row)?;
        let end = part(b, &rows, size - 1, 1)?;
        last = b.concatenate(&[row, end], 0)?;
    }
    let start = filled(b, x, identity, count)?;
    let positions = b.new_axis(last, -1, None)?;
    let reduced = b.indexed_put(start, positions, values, 0)?;
    let reduced = b.slice_along_axis(reduced, 0, count as i64, 0, 1)?;
    let dtype = if reduction == Reduction::Product { got.dtype.to_number() } else { got.dtype };
    b.as_type(reduced, dtype)
}

/// The row of the result for each element. Ids out of range get the row `count`, which is dropped at the end.
fn rows<B: Builder>(b: &mut B, op: &'static str, x: &B::V, ids: &B::V, count: usize) -> Result<B::V> {
    let (ty, got) = (b.ty(x), b.ty(ids));
    require_integers(op, &got)?;
    if ty.shape.rank() == 0 || got.shape.sizes() != &ty.shape.sizes()[..1] {
        let required = format!("one for each element of the first axis of {ty} is required");
        return Err(ErrorKind::Indices { op, got, required }.into());
    }
    let is_small = i32::try_from(count).is_ok() && !DType::S32.lacks(got.dtype.highest());
    // The greatest u64 become negative, and are out of range as before.
    let ids = b.as_type(ids, if is_small { DType::S32 } else { DType::S64 })?;
    let ids = unnamed(b, &ids)?;
    let outside = Arg::Number(Number::from(count));
    let (low, high) = (b.less(&ids, 0)?, b.greater_equal(&ids, outside.clone())?);
    let is_outside = b.logical_or(low, high)?;
    b.select(is_outside, outside, ids)
}

/// The result before anything is written, with one more row, and with the names of `x` but for the first.
fn filled<B: Builder>(b: &mut B, x: &B::V, scalar: Scalar, count: usize) -> Result<B::V> {
    let rest: Vec<(usize, Option<Name>)> = b.ty(x).shape.entries().skip(1).collect();
    let shape = Shape::from_axes(std::iter::once((count + 1, None)).chain(rest));
    let ty = TensorType::new(scalar.dtype(), shape)?;
    let scalar = b.scalar(scalar)?;
    b.broadcast(scalar, ty.shape, Axes::All)
}

/// Consecutive elements along the first axis.
fn part<B: Builder>(b: &mut B, x: &B::V, start: usize, length: i64) -> Result<B::V> {
    b.slice_along_axis(x, start as i64, length, 0, 1)
}
