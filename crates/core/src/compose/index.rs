//! Definitions of reads at positions held in a tensor.

use crate::builder::Builder;
use crate::error::Result;
use crate::shape::Axis;

/// `x` at positions along an axis.
///
/// # Errors
/// What the ops of the definition have against the operands.
pub fn take<B: Builder>(b: &mut B, x: &B::V, indices: &B::V, axis: Axis) -> Result<B::V> {
    let _ = (b, x, indices, axis);
    todo!()
}

/// `x` at a position along an axis for each place along the others.
///
/// # Errors
/// What the ops of the definition have against the operands.
pub fn take_along_axis<B: Builder>(b: &mut B, x: &B::V, indices: &B::V, axis: Axis) -> Result<B::V> {
    let _ = (b, x, indices, axis);
    todo!()
}
