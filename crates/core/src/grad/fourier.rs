//! What `g`, the cotangent of a transform, contributes.

use super::{Site, Vjp};
use crate::error::Result;
use crate::graph::Value;
use crate::op::{FftOp, Tolerance};
use crate::shape::Axis;

/// The same transform of `g`.
pub(super) fn fft(
    site: &mut Site<'_>,
    op: FftOp,
    axis: Axis,
    length: usize,
    eps: Tolerance,
    g: Value,
) -> Result<Vjp> {
    let _ = (&site.inputs, op, axis, length, eps, g);
    todo!()
}
