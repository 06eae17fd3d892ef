//! Gradients of ops that sort. `g` is the cotangent of the result.

use super::{Site, Vjp};
use crate::builder::{BuildIndex, BuildOrder};
use crate::error::Result;
use crate::graph::Value;
use crate::op::Direction;
use crate::shape::Axis;

/// `g` permuted back into the order of `x`.
pub(super) fn sort(site: &mut Site<'_>, axis: Axis, direction: Direction, g: Value) -> Result<Vjp> {
    let x = site.input(0)?;
    let order = site.graph.argsort(x, axis, direction, None)?;
    // The sorted position of each element: the inverse of the sorting permutation.
    let inverse = site.graph.argsort(order, axis, Direction::Asc, None)?;
    Ok(Vjp::one(site.graph.take_along_axis(g, inverse, axis)?))
}
