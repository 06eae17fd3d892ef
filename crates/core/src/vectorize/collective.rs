//! Collectives: axes are shifted by the number of vectorized ones.

use smallvec::SmallVec;

use super::Rewrite;
use crate::error::Result;
use crate::op::{Collective, CollectiveOp, Op};
use crate::tensor::Tensor;

impl Rewrite<'_> {
    /// All positions of the vectorized axes are exchanged in the same way.
    pub(super) fn collective(&mut self, op: &CollectiveOp, x: &Tensor) -> Result<SmallVec<[Tensor; 1]>> {
        let kind = match &op.kind {
            Collective::AllGather { axis } => Collective::AllGather { axis: self.shift(*axis) },
            Collective::ReduceScatter { axis } => Collective::ReduceScatter { axis: self.shift(*axis) },
            Collective::AllReduce { .. } | Collective::CollectivePermute { .. } | Collective::MeshIndex => {
                op.kind.clone()
            }
        };
        self.emit(Op::Collective(CollectiveOp { kind, groups: op.groups.clone() }), &[x.flat()])
    }
}
