//! Definitions of ops that use sorting.

use smallvec::{SmallVec, smallvec};

use crate::builder::{Arg, BuildIndex, BuildOrder, BuildShape, Builder};
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::{index_dtype, require_real};
use crate::op::Direction;
use crate::shape::{Axis, AxisRef};

/// See [`BuildOrder::top_k`].
///
/// # Errors
/// As the method.
pub fn top_k<B: Builder>(b: &mut B, x: &B::V, k: usize) -> Result<SmallVec<[B::V; 1]>> {
    let ty = b.ty(x);
    require_real("top_k", &ty)?;
    let Some(axis) = ty.shape.last_axis() else {
        let required = "at least one axis is required";
        return Err(ErrorKind::Rank { op: "top_k", got: ty, required }.into());
    };
    if k < 1 || k > ty.shape[axis] {
        let (option, given) = ("k", k.to_string());
        let required = format!("at least 1 and at most the size of the last axis of {ty}");
        return Err(ErrorKind::OptionValue { op: "top_k", option, given, required }.into());
    }
    let order = b.argsort(x, axis, Direction::Desc, None)?;
    let indices = b.slice_along_axis(order, 0, k as i64, axis, 1)?;
    let values = b.take_along_axis(x, &indices, axis)?;
    Ok(smallvec![values, indices])
}

/// See [`BuildOrder::lexsort`].
///
/// Stable sorts by one key after the other: what the last key does not order keeps the order of the keys before.
///
/// # Errors
/// As the method.
pub fn lexsort<B: Builder>(b: &mut B, keys: &[B::V], axis: &AxisRef) -> Result<B::V> {
    let op = "lexsort";
    let Some((first, rest)) = keys.split_first() else { return Err(ErrorKind::NoTensors { op }.into()) };
    let left = b.ty(first);
    let axis = left.shape.resolve(op, axis)?;
    for key in keys {
        let right = b.ty(key);
        require_real(op, &right)?;
        if right.shape.sizes() != left.shape.sizes() {
            return Err(ErrorKind::ShapesDiffer { op, left, right }.into());
        }
    }
    let mut order = b.argsort(first, axis, Direction::Asc, None)?;
    for key in rest {
        let plain = b.ty(key).shape.without_names();
        let key = b.reshape_to(key, plain)?;
        let key = if left.shape.size() == 0 { key } else { b.take_along_axis(key, &order, axis)? };
        let by_key = b.argsort(key, axis, Direction::Asc, None)?;
        order = if left.shape.size() == 0 { by_key } else { b.take_along_axis(order, by_key, axis)? };
    }
    b.reshape_to(order, left.shape)
}

/// The axis of a partition, whose positions are checked.
fn partition_axis<B: Builder>(
    b: &B,
    op: &'static str,
    x: &B::V,
    kth: &[i64],
    axis: &AxisRef,
) -> Result<Axis> {
    let got = b.ty(x);
    require_real(op, &got)?;
    let axis = got.shape.resolve(op, axis)?;
    let size = got.shape[axis] as i64;
    match kth.iter().find(|&&at| !(-size..size).contains(&at)) {
        None => Ok(axis),
        Some(at) => {
            let (option, given) = ("kth", at.to_string());
            let required = format!("a position on axis {} of {got}", axis.index());
            Err(ErrorKind::OptionValue { op, option, given, required }.into())
        }
    }
}

/// See [`BuildOrder::partition`].
///
/// # Errors
/// As the method.
pub fn partition<B: Builder>(b: &mut B, x: &B::V, kth: &[i64], axis: &AxisRef) -> Result<B::V> {
    let axis = partition_axis(b, "partition", x, kth, axis)?;
    b.sort(x, axis, Direction::Asc)
}

/// See [`BuildOrder::argpartition`].
///
/// # Errors
/// As the method.
pub fn argpartition<B: Builder>(b: &mut B, x: &B::V, kth: &[i64], axis: &AxisRef) -> Result<B::V> {
    let axis = partition_axis(b, "argpartition", x, kth, axis)?;
    let dtype = index_dtype(b.ty(x).shape[axis]);
    b.argsort(Arg::from(x), axis, Direction::Asc, dtype)
}
