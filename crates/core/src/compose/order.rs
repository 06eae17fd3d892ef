//! Definitions of ops that use sorting.

use smallvec::{SmallVec, smallvec};

use crate::builder::{BuildIndex, BuildOrder, BuildShape, Builder};
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::require_real;
use crate::op::Direction;

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
