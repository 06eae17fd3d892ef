//! Tangents of ops that move elements. `t` are the tangents of the operands, and move as the elements do.

use smallvec::SmallVec;

use crate::builder::Builder;
use crate::error::Result;
use crate::grad::Site;
use crate::graph::{Value, Values};
use crate::op::Op;
use crate::shape::{Axis, AxisList};

/// The shape of the result.
pub(super) fn reshape(site: &mut Site<'_>, t: &[Option<Value>]) -> Result<Option<Value>> {
    let shape = site.output_ty(0).shape.without_names();
    t[0].map(|t| site.graph.emit_one(Op::Reshape { shape }, &[t])).transpose()
}

/// Repeated along the same axes.
pub(super) fn broadcast(site: &mut Site<'_>, axes: &[Axis], t: &[Option<Value>]) -> Result<Option<Value>> {
    let (shape, axes) = (site.output_ty(0).shape.without_names(), AxisList::from(axes));
    t[0].map(|t| site.graph.emit_one(Op::Broadcast { shape, axes }, &[t])).transpose()
}

/// The same op on the tangents of all operands.
pub(super) fn linear(site: &mut Site<'_>, op: &Op, t: &[Option<Value>]) -> Result<Option<Value>> {
    let operands = super::all(site, t)?;
    site.graph.emit_one(op.clone(), &operands).map(Some)
}

/// The same op on the tangents of the first `tensors` operands. The operands behind them are positions.
pub(super) fn at_starts(
    site: &mut Site<'_>,
    op: &Op,
    tensors: usize,
    t: &[Option<Value>],
) -> Result<Option<Value>> {
    let mut operands: Values = super::all(site, &t[..tensors])?;
    let starts: SmallVec<[Value; 4]> =
        (tensors..site.inputs.len()).map(|input| site.input(input)).collect::<Result<_>>()?;
    operands.extend(starts);
    site.graph.emit_one(op.clone(), &operands).map(Some)
}
