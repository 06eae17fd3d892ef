//! Tangents of products. `t` are the tangents of the operands.

use crate::builder::Builder;
use crate::error::Result;
use crate::grad::Site;
use crate::grad::matrix::sum;
use crate::graph::Value;
use crate::op::Op;

/// `y = op(a, b)`, linear in each operand: the op with one operand replaced by its tangent, for each operand.
pub(super) fn bilinear(site: &mut Site<'_>, op: &Op, t: &[Option<Value>]) -> Result<Option<Value>> {
    let (a, b) = (site.input(0)?, site.input(1)?);
    let left = t[0].map(|t| site.graph.emit_one(op.clone(), &[t, b])).transpose()?;
    let right = t[1].map(|t| site.graph.emit_one(op.clone(), &[a, t])).transpose()?;
    sum(site.graph, [left, right])
}
