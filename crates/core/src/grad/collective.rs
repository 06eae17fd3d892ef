//! Gradients of collectives: the contribution of `g`, the cotangents of a collective's results, to the
//! devices' blocks.
//!
//! The differentiated value is the sum over the devices, so that each rule is the transpose of the whole
//! exchange, as if the blocks were parts of one vector.

use std::sync::Arc;

use super::{Site, Vjp};
use crate::builder::{BuildElementwise, Builder};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::Value;
use crate::op::{AllReduceOp, Collective, CollectiveOp, Op};

/// `y = op(x)`.
pub(super) fn collective(site: &mut Site<'_>, op: &CollectiveOp, g: Value) -> Result<Vjp> {
    let as_kind = |kind: Collective| Op::Collective(CollectiveOp { kind, groups: op.groups.clone() });
    let transposed = match &op.kind {
        Collective::AllReduce { op: AllReduceOp::Sum } => Collective::AllReduce { op: AllReduceOp::Sum },
        Collective::AllReduce { op: AllReduceOp::Max | AllReduceOp::Min } => {
            return extreme(site, op, g);
        }
        Collective::AllGather { axis } => Collective::ReduceScatter { axis: *axis },
        Collective::ReduceScatter { axis } => Collective::AllGather { axis: *axis },
        Collective::CollectivePermute { pairs } => {
            let pairs: Arc<[(u32, u32)]> = pairs.iter().map(|&(from, to)| (to, from)).collect();
            Collective::CollectivePermute { pairs }
        }
        Collective::MeshIndex => return Ok(Vjp::Zero),
    };
    Ok(Vjp::one(site.graph.emit_one(as_kind(transposed), &[g])?))
}

/// Equal shares for the devices whose element equals the result. A NaN equals none, so that its share is 0 /
/// 0.
fn extreme(site: &mut Site<'_>, op: &CollectiveOp, g: Value) -> Result<Vjp> {
    let sum = || {
        let kind = Collective::AllReduce { op: AllReduceOp::Sum };
        Op::Collective(CollectiveOp { kind, groups: op.groups.clone() })
    };
    let (x, y) = (site.input(0)?, site.output(0)?);
    let ties = site.graph.equal(x, y)?;
    // A byte would overflow for 256 devices or more.
    let ties = site.graph.as_type(ties, DType::S32)?;
    let count = site.graph.emit_one(sum(), &[ties])?;
    let all = site.graph.emit_one(sum(), &[g])?;
    let each = site.graph.divide(all, count)?;
    Ok(Vjp::one(site.graph.multiply(each, ties)?))
}
