//! Definitions of reads at positions given by a tensor.

use crate::builder::{BuildCreate, BuildElementwise, BuildIndex, BuildShape, Builder};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::infer::index::{nothing, require_integers};
use crate::shape::{Axis, AxisList, AxisRef, Shape, merge_names};

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
    // A position has an entry for each axis: the index along `axis`, and the element's own position along the others.
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
    let positions = b.stack(&entries, -1, None)?;
    let axes: AxisList = ty.shape.axes().collect();
    let gathered = b.gather(x, positions, axes)?;
    b.reshape_to(gathered, at.shape.with_names(ty.shape.names().map(|name| name.cloned()))?)
}
