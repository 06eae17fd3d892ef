//! Tangents of reads and writes at positions. `t` are the tangents of the operands.

use crate::builder::Builder;
use crate::error::Result;
use crate::grad::Site;
use crate::graph::Value;
use crate::op::Op;

/// The tangents at the positions that are read.
pub(super) fn gather(site: &mut Site<'_>, op: &Op, t: &[Option<Value>]) -> Result<Option<Value>> {
    let Some(t) = t[0] else { return Ok(None) };
    let indices = site.input(1)?;
    site.graph.emit_one(op.clone(), &[t, indices]).map(Some)
}

/// The tangents of the updates, written where the updates are. Of several updates of one position the same one takes
/// effect.
pub(super) fn scatter(site: &mut Site<'_>, op: &Op, t: &[Option<Value>]) -> Result<Option<Value>> {
    let tangents = super::all(site, t)?;
    let indices = site.input(1)?;
    site.graph.emit_one(op.clone(), &[tangents[0], indices, tangents[2]]).map(Some)
}
