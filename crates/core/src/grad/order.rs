//! What `g` contributes to what was put in order.

use super::{Site, Vjp};
use crate::builder::{BuildIndex, BuildOrder};
use crate::error::Result;
use crate::graph::Value;
use crate::op::Direction;
use crate::shape::Axis;

/// `g` put back in the order of `x`.
pub(super) fn sort(site: &mut Site<'_>, axis: Axis, direction: Direction, g: Value) -> Result<Vjp> {
    let x = site.input(0)?;
    let order = site.graph.argsort(x, axis, direction, None)?;
    // Where each element has gone: the inverse of where each place's element comes from.
    let places = site.graph.argsort(order, axis, Direction::Asc, None)?;
    Ok(Vjp::one(site.graph.take_along_axis(g, places, axis)?))
}
