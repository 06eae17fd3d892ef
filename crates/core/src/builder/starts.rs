//! Starts of windows: static, or given by operands.

use smallvec::SmallVec;

use super::shape::Start;
use super::{Arg, BuildCreate, BuildElementwise, Builder};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::op::{Op, Starts};
use crate::scalar::Number;
use crate::shape::{Sizes, TensorType};

/// Checks that there is one entry for each axis.
pub(super) fn check_count(op: &'static str, given: usize, ty: &TensorType) -> Result<()> {
    if given == ty.shape.rank() {
        return Ok(());
    }
    let required = "one entry for each axis is required";
    Err(ErrorKind::AxesCount { op, given, shape: ty.shape.clone(), required }.into())
}

/// A window of `x`: from each start, every `stride`-th of `length` elements. `kind` applies to starts that are
/// operands.
pub(super) fn window<B: Builder>(
    b: &mut B,
    op: &'static str,
    x: B::V,
    starts: &[Start<B::V>],
    (lengths, strides): (&[i64], Option<&[i64]>),
    kind: Starts,
) -> Result<B::V> {
    let ty = b.ty(&x);
    let ones = vec![1; lengths.len()];
    let strides = strides.unwrap_or(&ones);
    for given in [starts.len(), lengths.len(), strides.len()] {
        check_count(op, given, &ty)?;
    }
    let (mut sizes, mut steps) = (Sizes::new(), Sizes::new());
    for axis in ty.shape.axes() {
        let (length, stride) = (lengths[axis.index()], strides[axis.index()]);
        let within = usize::try_from(length).ok().filter(|&length| length <= ty.shape[axis]);
        let Some(length) = within else {
            let start = match &starts[axis.index()] {
                Start::Index(start) => *start,
                Start::Value(_) => 0,
            };
            let axis = axis.index();
            return Err(ErrorKind::SliceLength { op, got: ty, axis, start, length }.into());
        };
        match usize::try_from(stride) {
            Ok(stride) if stride >= 1 => steps.push(stride),
            _ => return Err(ErrorKind::Stride { op, stride, axis: axis.index() }.into()),
        }
        sizes.push(length);
    }
    let (starts, dynamic) = lower(b, op, &ty, starts, &sizes, kind)?;
    let mut operands = vec![x];
    operands.extend(dynamic);
    b.emit_one(Op::Slice { starts, lengths: sizes, strides: steps }, &operands)
}

/// The starts of a window of `lengths`: an attribute, or operands of `kind` if any start is a value or out of range,
/// because only the run determines their effect.
pub(super) fn lower<B: Builder>(
    b: &mut B,
    op: &'static str,
    ty: &TensorType,
    starts: &[Start<B::V>],
    lengths: &[usize],
    kind: Starts,
) -> Result<(Starts, Vec<B::V>)> {
    let mut known: SmallVec<[Option<usize>; 6]> = SmallVec::new();
    let mut dtype: Option<DType> = None;
    for (axis, start) in starts.iter().enumerate() {
        known.push(match start {
            Start::Index(index) => kind.exact(i128::from(*index), lengths[axis], ty.shape.sizes()[axis]),
            Start::Value(value) => {
                let got = b.ty(value);
                if got.shape.rank() != 0 || !got.dtype.is_integer() {
                    return Err(ErrorKind::StartIndex { op, axis, got }.into());
                }
                dtype = Some(dtype.map_or(got.dtype, |dtype| dtype.merge(got.dtype)));
                None
            }
        });
    }
    if let Some(known) = known.iter().copied().collect::<Option<Sizes>>() {
        return Ok((Starts::Static(known), Vec::new()));
    }
    // A number gets the dtype of the operands if that can hold it.
    for (start, known) in starts.iter().zip(&known) {
        let Start::Index(index) = *start else { continue };
        let index = known.map_or(i128::from(index), |known| known as i128);
        if !dtype.is_some_and(|dtype| can_hold(dtype, index)) {
            let own = if can_hold(DType::S32, index) { DType::S32 } else { DType::S64 };
            dtype = Some(dtype.map_or(own, |dtype| dtype.merge(own)));
        }
    }
    let dtype = dtype.expect("no axis leaves no start that is unknown");
    let mut values = Vec::with_capacity(starts.len());
    for ((start, known), &size) in starts.iter().zip(&known).zip(ty.shape.sizes()) {
        values.push(match (start, known) {
            (Start::Index(_), Some(known)) => b.constant(dtype, *known)?,
            (Start::Index(index), None) => b.constant(dtype, *index)?,
            (Start::Value(value), _) => convert_starts(b, value, dtype, size)?,
        });
    }
    Ok((kind, values))
}

fn can_hold(dtype: DType, index: i128) -> bool {
    let (Number::Int(lowest), Number::Int(highest)) = (dtype.lowest(), dtype.highest()) else { return false };
    (lowest..=highest).contains(&index)
}

/// Positions along an axis of `size`, converted to the common dtype. In a signed dtype the greatest u64 would be
/// negative and count from the end. Therefore u64 is clamped to `size`, which is still out of range.
pub(crate) fn convert_starts<B: Builder>(b: &mut B, value: &B::V, dtype: DType, size: usize) -> Result<B::V> {
    if b.ty(value).dtype != DType::U64 || dtype == DType::U64 {
        return b.as_type(value, dtype);
    }
    let value = b.min(value, Arg::Number(Number::from(size)))?;
    b.as_type(&value, dtype)
}
