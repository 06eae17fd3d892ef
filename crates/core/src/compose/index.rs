//! Definitions of reads at positions given by a tensor, and of positions.

use super::arrange::positions;
use crate::builder::{Arg, BuildCreate, BuildElementwise, BuildIndex, BuildShape, Builder};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::infer::index::{nothing, require_integers};
use crate::infer::reduce::index_dtype;
use crate::scalar::Number;
use crate::shape::{Axes, Axis, AxisList, AxisRef, Shape, TensorType, merge_names};

/// See [`BuildIndex::take`].
///
/// # Errors
/// As the method.
pub fn take<B: Builder>(b: &mut B, x: &B::V, indices: &B::V, axis: Axis) -> Result<B::V> {
    let (ty, at) = (b.ty(x), b.ty(indices));
    require_integers("take", &at)?;
    let mut entries: Vec<_> = ty.shape.entries().collect();
    let (_, own) = entries.remove(axis.index());
    let mut spliced: Vec<_> = at.shape.entries().collect();
    if let [(_, name)] = &mut spliced[..] {
        *name = merge_names("take", (own, Some(axis)), (name.take(), at.shape.axis(0)))?;
    }
    let added = spliced.len();
    entries.splice(axis.index()..axis.index(), spliced);
    let shape = Shape::from_axes(entries);
    if ty.shape[axis] == 0 && !shape.sizes().contains(&0) {
        return Err(nothing("take", &ty, axis, &at));
    }
    let positions = b.new_axis(indices, -1, None)?;
    let gathered = b.gather(x, positions, axis)?;
    // The result of `gather` has the axes of the indices first.
    let order = (added..added + axis.index()).chain(0..added).chain(added + axis.index()..shape.rank());
    let order: Vec<AxisRef> = order.map(|axis| AxisRef::Index(axis as i64)).collect();
    let moved = b.transpose(gathered, order)?;
    b.reshape_to(moved, shape)
}

/// See [`BuildIndex::take_along_axis`].
///
/// # Errors
/// As the method.
pub fn take_along_axis<B: Builder>(b: &mut B, x: &B::V, indices: &B::V, axis: Axis) -> Result<B::V> {
    let (ty, at) = (b.ty(x), b.ty(indices));
    require_integers("take_along_axis", &at)?;
    let fits = at.shape.rank() == ty.shape.rank()
        && ty.shape.axes().all(|other| other == axis || at.shape[other] == ty.shape[other]);
    if !fits {
        let required = format!("the sizes of {ty} are required but on axis {axis}");
        return Err(ErrorKind::Indices { op: "take_along_axis", got: at, required }.into());
    }
    if ty.shape[axis] == 0 && at.size() > 0 {
        return Err(nothing("take_along_axis", &ty, axis, &at));
    }
    let positions = entries_along(b, indices, axis)?;
    let axes: AxisList = ty.shape.axes().collect();
    let gathered = b.gather(x, positions, axes)?;
    b.reshape_to(gathered, at.shape.with_names(ty.shape.names().map(|name| name.cloned()))?)
}

/// The positions of the elements at indices along an axis: one entry for each axis, which is the index along `axis`, and
/// the element's own position along the others.
fn entries_along<B: Builder>(b: &mut B, indices: &B::V, axis: Axis) -> Result<B::V> {
    let at = b.ty(indices);
    let plain = at.shape.without_names();
    let small = plain.sizes().iter().all(|&size| i32::try_from(size).is_ok());
    let counted = if small { DType::S32 } else { DType::S64 };
    // Merged with a signed dtype, the greatest u64 would become negative.
    let dtype = if at.dtype == DType::U64 { DType::U64 } else { at.dtype.merge(counted) };
    let mut entries = Vec::with_capacity(plain.rank());
    for other in plain.axes() {
        entries.push(if other == axis {
            let own = b.reshape_to(indices, plain.clone())?;
            b.as_type(own, dtype)?
        } else {
            b.iota(plain.clone(), dtype, Some(other.into()))?
        });
    }
    b.stack(&entries, -1, None)
}

/// See [`BuildIndex::put_along_axis`].
///
/// # Errors
/// As the method.
pub fn put_along_axis<B: Builder>(
    b: &mut B,
    x: Arg<B::V>,
    indices: &B::V,
    values: Arg<B::V>,
    axis: &AxisRef,
) -> Result<B::V> {
    let op = "put_along_axis";
    let (x, values) = b.weak_pair(op, x, values)?;
    let (ty, at) = (b.ty(&x), b.ty(indices));
    let axis = ty.shape.resolve(op, axis)?;
    require_integers(op, &at)?;
    let fits = at.shape.rank() == ty.shape.rank()
        && ty.shape.axes().all(|other| other == axis || at.shape[other] == ty.shape[other]);
    if !fits {
        let required = format!("the sizes of {ty} are required but on axis {axis}");
        return Err(ErrorKind::Indices { op, got: at, required }.into());
    }
    if ty.shape[axis] == 0 && at.size() > 0 {
        return Err(nothing(op, &ty, axis, &at));
    }
    let got = b.ty(&values);
    let plain = at.shape.without_names();
    let merged = got.shape.without_names().broadcast_with(op, &plain)?;
    if merged.sizes() != plain.sizes() {
        let (what, shape) = ("the values", plain);
        return Err(ErrorKind::ParameterShape { op, what, got, shape }.into());
    }
    let values = b.reshape_to(&values, got.shape.without_names())?;
    let values = b.broadcast(values, plain.clone(), Axes::All)?;
    let positions = entries_along(b, indices, axis)?;
    let rows = Shape::new(&[plain.size(), plain.rank()]);
    let positions = b.reshape_to(positions, rows)?;
    let values = b.reshape_to(values, Shape::new(&[plain.size()]))?;
    let axes: AxisList = ty.shape.axes().collect();
    b.indexed_put(x, positions, values, axes)
}

/// See [`BuildIndex::unravel_index`].
///
/// # Errors
/// As the method.
pub fn unravel_index<B: Builder>(b: &mut B, indices: &B::V, shape: &Shape) -> Result<Vec<B::V>> {
    let at = b.ty(indices);
    require_integers("unravel_index", &at)?;
    let ty = TensorType::new(DType::S64, shape.without_names())?;
    let size = ty.shape.size();
    let dtype = index_dtype(size);
    let ty = TensorType { dtype, ..ty };
    if let Some(axis) = ty.shape.axes().find(|&axis| ty.shape[axis] == 0) {
        if at.size() > 0 {
            return Err(nothing("unravel_index", &ty, axis, &at));
        }
        return ty.shape.axes().map(|_| b.as_type(indices, dtype)).collect();
    }
    // Merged with a signed dtype, the greatest u64 would become negative.
    let computed = if at.dtype == DType::U64 { DType::U64 } else { at.dtype.merge(dtype) };
    let index = b.as_type(indices, computed)?;
    // The index is in range where its entry on the first axis is, which `take` requires of positions.
    let (&first, rest) = ty.shape.sizes().split_first().unwrap_or((&1, &[]));
    let mut stride: usize = rest.iter().product();
    let row = if stride == 1 { index.clone() } else { b.floor_divide(&index, Number::from(stride))? };
    let rows = b.iota(Shape::new(&[first]), dtype, None)?;
    let counted = b.ty(&rows);
    let row = b.take(rows, row, 0).map_err(|error| {
        let &ErrorKind::IndexRange { index, .. } = error.kind() else { return error };
        let got = if ty.shape.rank() == 0 { counted.clone() } else { ty.clone() };
        ErrorKind::IndexRange { op: "unravel_index", index, axis: 0, got }.into()
    })?;
    if ty.shape.rank() == 0 {
        return Ok(Vec::new());
    }
    let mut entries = vec![row];
    let is_negative = b.less(&index, 0)?;
    let from_end = b.add(&index, Number::from(size))?;
    let index = b.select(is_negative, from_end, index)?;
    let mut left = b.clip(index, 0, Number::from(size - 1))?;
    for &size in rest {
        left = b.remainder(left, Number::from(stride))?;
        stride /= size;
        let entry = if stride == 1 { left.clone() } else { b.quotient(&left, Number::from(stride))? };
        entries.push(b.as_type(entry, dtype)?);
    }
    Ok(entries)
}

/// See [`BuildIndex::tril_indices`] and [`BuildIndex::triu_indices`].
///
/// # Errors
/// As the methods.
pub fn triangle<B: Builder>(
    b: &mut B,
    (op, lower): (&'static str, bool),
    [rows, columns]: [usize; 2],
    offset: i64,
) -> Result<(B::V, B::V)> {
    let matrix = TensorType::new(DType::S64, Shape::new(&[rows, columns]))?;
    // The columns of a row in the triangle. Diagonals outside the matrix are equivalent to the nearest one outside.
    let offset = offset.clamp(-(rows as i64), columns as i64);
    let bound = |row: usize, beyond: i64| (row as i64 + offset + beyond).clamp(0, columns as i64) as usize;
    let range = |row: usize| if lower { 0..bound(row, 1) } else { bound(row, 0)..columns };
    let count = (0..rows).map(|row| range(row).len()).sum();
    let dtype = index_dtype(matrix.shape.sizes().iter().copied().max().unwrap_or(0));
    let row = (0..rows).flat_map(|row| range(row).map(move |_| row));
    let row = positions(b, op, row, count, dtype)?;
    let column = positions(b, op, (0..rows).flat_map(range), count, dtype)?;
    Ok((row, column))
}
