//! Definitions of ops that use sorting.

use smallvec::{SmallVec, smallvec};

use super::unnamed;
use crate::builder::{BuildCreate, BuildIndex, BuildOrder, BuildShape, Builder};
use crate::error::{ErrorKind, Result};
use crate::infer::order::no_position;
use crate::infer::reduce::{index_dtype, require_real};
use crate::op::{Block, Direction, Op};
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

/// The axis of a partition, and its positions in ascending order.
fn partition_positions<B: Builder>(
    b: &B,
    op: &'static str,
    x: &B::V,
    kth: &[i64],
    axis: &AxisRef,
) -> Result<(Axis, Vec<usize>)> {
    let got = b.ty(x);
    require_real(op, &got)?;
    let axis = got.shape.resolve(op, axis)?;
    let size = got.shape[axis] as i64;
    let mut positions = Vec::with_capacity(kth.len());
    for &at in kth {
        if !(-size..size).contains(&at) {
            return Err(no_position(op, &got, axis, at));
        }
        positions.push(at.rem_euclid(size) as usize);
    }
    positions.sort_unstable();
    positions.dedup();
    Ok((axis, positions))
}

/// See [`BuildOrder::partition`].
///
/// # Errors
/// As the method.
pub fn partition<B: Builder>(b: &mut B, x: &B::V, kth: &[i64], axis: &AxisRef) -> Result<B::V> {
    let (axis, kth) = partition_positions(b, "partition", x, kth, axis)?;
    let shape = b.ty(x).shape;
    let parted = partition_at(b, x.clone(), axis, 0, &kth)?;
    b.reshape_to(parted, shape)
}

/// A partition at ascending positions, counted from the first element of a whole, `start` of whose elements are before
/// `x`. The middle position divides the others, so that each element is moved once for each halving of them.
fn partition_at<B: Builder>(b: &mut B, x: B::V, axis: Axis, start: usize, kth: &[usize]) -> Result<B::V> {
    let (below, rest) = kth.split_at(kth.len() / 2);
    let Some((&middle, above)) = rest.split_first() else { return Ok(x) };
    let parted = b.emit_one(Op::Block(Block::Partition { axis, kth: middle - start }), &[x])?;
    if kth.len() == 1 {
        return Ok(parted);
    }
    let [low, at, high] = parts(b, &parted, axis, middle - start)?;
    let low = partition_at(b, low, axis, start, below)?;
    let high = partition_at(b, high, axis, middle + 1, above)?;
    b.concatenate(&[low, at, high], axis)
}

/// See [`BuildOrder::argpartition`].
///
/// # Errors
/// As the method.
pub fn argpartition<B: Builder>(b: &mut B, x: &B::V, kth: &[i64], axis: &AxisRef) -> Result<B::V> {
    let (axis, kth) = partition_positions(b, "argpartition", x, kth, axis)?;
    let shape = b.ty(x).shape;
    let plain = unnamed(b, x)?;
    let order = match kth.is_empty() {
        true => {
            let order = b.iota(shape.without_names(), index_dtype(shape[axis]), Some(axis.into()))?;
            b.vectorized_like(order, x)?
        }
        false => argpartition_at(b, plain, axis, 0, &kth)?,
    };
    b.reshape_to(order, shape)
}

/// As [`partition_at`], with at least one position.
fn argpartition_at<B: Builder>(b: &mut B, x: B::V, axis: Axis, start: usize, kth: &[usize]) -> Result<B::V> {
    let (below, rest) = kth.split_at(kth.len() / 2);
    let (middle, above) = (rest[0], &rest[1..]);
    let order =
        b.emit_one(Op::Block(Block::Argpartition { axis, kth: middle - start }), std::slice::from_ref(&x))?;
    if kth.len() == 1 {
        return Ok(order);
    }
    let [low, at, high] = parts(b, &order, axis, middle - start)?;
    let side = |b: &mut B, side: B::V, start: usize, kth: &[usize]| -> Result<B::V> {
        if kth.is_empty() {
            return Ok(side);
        }
        let elements = b.take_along_axis(&x, &side, axis)?;
        let order = argpartition_at(b, elements, axis, start, kth)?;
        b.take_along_axis(side, order, axis)
    };
    let low = side(b, low, start, below)?;
    let high = side(b, high, middle + 1, above)?;
    b.concatenate(&[low, at, high], axis)
}

/// What is before a position of an axis, at it, and behind it.
fn parts<B: Builder>(b: &mut B, x: &B::V, axis: Axis, at: usize) -> Result<[B::V; 3]> {
    let (at, size) = (at as i64, b.ty(x).shape[axis] as i64);
    let low = b.slice_along_axis(x, 0, at, axis, 1)?;
    let middle = b.slice_along_axis(x, at, 1, axis, 1)?;
    let high = b.slice_along_axis(x, at + 1, size - at - 1, axis, 1)?;
    Ok([low, middle, high])
}

/// The definition of [`Block::Partition`].
///
/// # Errors
/// As the ops.
pub(crate) fn partitioned<B: Builder>(b: &mut B, x: &B::V, axis: Axis, kth: usize) -> Result<B::V> {
    let ty = b.ty(x);
    let plain = unnamed(b, x)?;
    let order = b.emit_one(Op::Block(Block::Argpartition { axis, kth }), std::slice::from_ref(&plain))?;
    let parted = b.take_along_axis(plain, order, axis)?;
    b.reshape_to(parted, ty.shape)
}

/// The definition of [`Block::Argpartition`]: the positions on each side of a sort, in order.
///
/// # Errors
/// As the ops.
pub(crate) fn partition_order<B: Builder>(b: &mut B, x: &B::V, axis: Axis, kth: usize) -> Result<B::V> {
    let ty = b.ty(x);
    let plain = unnamed(b, x)?;
    let order = b.argsort(plain, axis, Direction::Asc, None)?;
    let [low, at, high] = parts(b, &order, axis, kth)?;
    let low = b.sort(low, axis, Direction::Asc)?;
    let high = b.sort(high, axis, Direction::Asc)?;
    let order = b.concatenate(&[low, at, high], axis)?;
    b.reshape_to(order, ty.shape)
}
