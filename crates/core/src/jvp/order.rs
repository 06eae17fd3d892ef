//! Tangents of ops that sort. `t` are the tangents of the operands.

use crate::builder::{BuildIndex, BuildOrder};
use crate::error::Result;
use crate::grad::Site;
use crate::graph::Value;
use crate::op::Direction;
use crate::shape::Axis;

/// The tangents in the order of the sorted elements.
pub(super) fn sort(
    site: &mut Site<'_>,
    axis: Axis,
    direction: Direction,
    t: &[Option<Value>],
) -> Result<Option<Value>> {
    let Some(t) = t[0] else { return Ok(None) };
    let x = site.input(0)?;
    let order = site.graph.argsort(x, axis, direction, None)?;
    site.graph.take_along_axis(t, order, axis).map(Some)
}
