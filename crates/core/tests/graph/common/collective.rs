//! Random collectives.

use defn_core::Shape;
use defn_core::graph::Values;
use defn_core::op::{AllReduceOp, Collective, CollectiveOp, DeviceGroups, Op};

use super::Random;

impl Random {
    /// A collective over the devices of a small mesh, with operands that mostly fit.
    pub(super) fn exchange(&mut self, shape: &Shape, x: Values) -> (Op, Values) {
        let groups = match self.below(3) {
            0 => DeviceGroups::new("data".into(), [0, 1], 2),
            1 => DeviceGroups::new("model".into(), [0, 2, 1, 3], 2),
            _ => DeviceGroups::new("data, model".into(), [3, 1, 2, 0], 4),
        };
        let kind = match (self.below(5), self.axis(shape)) {
            (1, Some(axis)) => Collective::AllGather { axis },
            (2, Some(axis)) => Collective::ReduceScatter { axis },
            (3, _) => {
                let pairs: &[(u32, u32)] = self.one(&[&[(0, 1), (1, 0)][..], &[(1, 0)], &[]]);
                Collective::CollectivePermute { pairs: pairs.into() }
            }
            (4, _) => {
                let op = CollectiveOp { kind: Collective::MeshIndex, groups: groups.unwrap() };
                return (Op::Collective(op), Values::new());
            }
            _ => Collective::AllReduce { op: self.one(AllReduceOp::ALL) },
        };
        (Op::Collective(CollectiveOp { kind, groups: groups.unwrap() }), x)
    }
}
