//! What `g` contributes to what was read or written at positions.

use super::{Site, Vjp};
use crate::error::Result;
use crate::graph::Value;
use crate::op::ScatterOp;
use crate::shape::Axis;

/// `g` added up where it was read.
pub(super) fn gather(site: &mut Site<'_>, axes: &[Axis], g: Value) -> Result<Vjp> {
    let _ = (&site.inputs, axes, g);
    todo!()
}

/// The target and the updates.
pub(super) fn scatter(site: &mut Site<'_>, op: ScatterOp, axes: &[Axis], g: Value) -> Result<Vjp> {
    let _ = (&site.inputs, op, axes, g);
    todo!()
}
