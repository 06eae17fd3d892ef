//! Types of reads and writes at positions held in a tensor.

use super::reduce::{index_dtype, require_number};
use crate::error::{ErrorKind, Result};
use crate::op::ScatterOp;
use crate::shape::{Axis, Shape, TensorType};

/// The leading axes of the indices, then the axes of `x` that are not indexed.
pub(super) fn gather(x: &TensorType, indices: &TensorType, axes: &[Axis]) -> Result<TensorType> {
    let entries = entries("gather", indices)?;
    if entries != axes.len() {
        let required =
            format!("the size of their last axis must be the number of axes, which is {}", axes.len());
        return Err(ErrorKind::Indices { op: "gather", got: indices.clone(), required }.into());
    }
    let index_sizes = &indices.shape.sizes()[..indices.shape.rank() - 1];
    let rest = x.shape.axes().filter(|axis| !axes.contains(axis)).map(|axis| x.shape[axis]);
    let sizes: Vec<usize> = index_sizes.iter().copied().chain(rest).collect();
    let ty = TensorType::new(x.dtype, Shape::new(&sizes))?;
    if let Some(axis) = axes.iter().find(|&&axis| x.shape[axis] == 0)
        && ty.size() > 0
    {
        return Err(nothing("gather", x, *axis, indices));
    }
    Ok(ty)
}

/// The error for a read along an empty axis, for which no index is valid.
pub(crate) fn nothing(
    op: &'static str,
    x: &TensorType,
    axis: Axis,
    indices: &TensorType,
) -> crate::error::Error {
    ErrorKind::NothingToTake { op, got: x.clone(), axis: axis.index(), indices: indices.clone() }.into()
}

/// The number of entries of a position: the size of the indices' last axis.
fn entries(op: &'static str, indices: &TensorType) -> Result<usize> {
    require_integers(op, indices)?;
    let Some(&entries) = indices.shape.sizes().last() else {
        let required =
            "at least one axis is required, whose elements are the entries of a position".to_owned();
        return Err(ErrorKind::Indices { op, got: indices.clone(), required }.into());
    };
    Ok(entries)
}

/// Requires integer indices.
pub(crate) fn require_integers(op: &'static str, indices: &TensorType) -> Result<()> {
    if indices.dtype.is_integer() {
        return Ok(());
    }
    Err(ErrorKind::IndicesDType { op, got: indices.clone() }.into())
}

/// The number of each integer of a vector below `length`.
pub(crate) fn bincount(ids: &TensorType, length: usize) -> Result<TensorType> {
    require_integers("bincount", ids)?;
    let &[size] = ids.shape.sizes() else {
        let required = "a vector is required; flatten it";
        return Err(ErrorKind::Rank { op: "bincount", got: ids.clone(), required }.into());
    };
    TensorType::new(index_dtype(size.saturating_add(1)), Shape::new(&[length]))
}

/// The shape of `x` in the merged dtype. There is one update for each row of the indices, no larger than the
/// axes of `x` that are not indexed.
pub(super) fn scatter(
    op: ScatterOp,
    x: &TensorType,
    indices: &TensorType,
    updates: &TensorType,
    axes: &[Axis],
) -> Result<TensorType> {
    let dtype = x.dtype.merge(updates.dtype);
    match op {
        ScatterOp::IndexedAdd => require_number(op.name(), x, dtype)?,
        ScatterOp::IndexedPut => {}
    }
    let op = op.name();
    let entries = entries(op, indices)?;
    let refuse = |required: String| Err(ErrorKind::Indices { op, got: indices.clone(), required }.into());
    let &[count, _] = indices.shape.sizes() else {
        return refuse("one axis, for a single element, or two are required".to_owned());
    };
    if entries != axes.len() {
        return refuse(format!(
            "the size of their last axis must be the number of axes, which is {}",
            axes.len()
        ));
    }
    let rest: Vec<usize> =
        x.shape.axes().filter(|axis| !axes.contains(axis)).map(|axis| x.shape[axis]).collect();
    let fits = match updates.shape.sizes() {
        [updates, own @ ..] => {
            *updates == count
                && own.len() == rest.len()
                && own.iter().zip(&rest).all(|(own, whole)| own <= whole)
        }
        [] => false,
    };
    if !fits {
        let most: Vec<String> = rest.iter().map(|size| format!(", at most {size}")).collect();
        let required = format!("sizes [{count}{}] are required to update {x} at {indices}", most.concat());
        return Err(ErrorKind::Updates { op, got: updates.clone(), required }.into());
    }
    TensorType::new(dtype, x.shape.clone())
}
