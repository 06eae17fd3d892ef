//! Tangents of collectives. `t` are the tangents of the devices' blocks.

use crate::builder::{BuildElementwise, Builder};
use crate::dtype::DType;
use crate::error::Result;
use crate::grad::Site;
use crate::graph::Value;
use crate::op::{AllReduceOp, Collective, CollectiveOp, Op};

/// `y = op(x)`.
pub(super) fn collective(
    site: &mut Site<'_>,
    op: &CollectiveOp,
    t: &[Option<Value>],
) -> Result<Option<Value>> {
    let Some(t) = t[0] else { return Ok(None) };
    match &op.kind {
        Collective::AllReduce { op: AllReduceOp::Max | AllReduceOp::Min } => extreme(site, op, t).map(Some),
        Collective::AllReduce { op: AllReduceOp::Sum }
        | Collective::AllGather { .. }
        | Collective::ReduceScatter { .. }
        | Collective::CollectivePermute { .. } => {
            site.graph.emit_one(Op::Collective(op.clone()), &[t]).map(Some)
        }
        Collective::MeshIndex => Ok(None),
    }
}

/// The mean of the tangents of the devices whose element equals the result. A NaN equals none, so that the mean is
/// 0 / 0.
fn extreme(site: &mut Site<'_>, op: &CollectiveOp, t: Value) -> Result<Value> {
    let sum = || {
        let kind = Collective::AllReduce { op: AllReduceOp::Sum };
        Op::Collective(CollectiveOp { kind, groups: op.groups.clone() })
    };
    let (x, y) = (site.input(0)?, site.output(0)?);
    let ties = site.graph.equal(x, y)?;
    let masked = site.masked(ties, t)?;
    // A byte would overflow for 256 devices or more.
    let ties = site.graph.as_type(ties, DType::S32)?;
    let (total, count) = (site.graph.emit_one(sum(), &[masked])?, site.graph.emit_one(sum(), &[ties])?);
    site.graph.divide(total, count)
}
