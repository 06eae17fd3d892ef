//! What `g` contributes to what was put in order.

use super::{Site, Vjp};
use crate::error::Result;
use crate::graph::Value;
use crate::op::Direction;
use crate::shape::Axis;

/// `g` put back in the order of `x`.
pub(super) fn sort(site: &mut Site<'_>, axis: Axis, direction: Direction, g: Value) -> Result<Vjp> {
    let _ = (&site.inputs, axis, direction, g);
    todo!()
}
