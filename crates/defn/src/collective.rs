//! Exchanges between the devices of a mesh.

use defn_core::builder::BuildCollective;
use defn_core::{AxisRef, Location};

use crate::Expr;
use crate::mesh::{AllReduceOp, DeviceGroups};

impl Expr {
    /// The fold of what the devices of each group have in the same place.
    #[track_caller]
    pub fn all_reduce(&self, op: AllReduceOp, over: &DeviceGroups) -> Expr {
        self.apply(|ops, x| ops.all_reduce(x, op, over))
    }

    /// The blocks of all devices of the group, one after the other along an axis.
    #[track_caller]
    pub fn all_gather(&self, axis: impl Into<AxisRef>, over: &DeviceGroups) -> Expr {
        self.apply(|ops, x| ops.all_gather(x, axis, over))
    }

    /// The device's part along an axis of the sum of the group's blocks.
    #[track_caller]
    pub fn reduce_scatter(&self, axis: impl Into<AxisRef>, over: &DeviceGroups) -> Expr {
        self.apply(|ops, x| ops.reduce_scatter(x, axis, over))
    }

    /// The block of another device of the group: for each pair that of the first on the second, by their positions.
    #[track_caller]
    pub fn collective_permute(&self, pairs: &[(usize, usize)], over: &DeviceGroups) -> Expr {
        self.apply(|ops, x| ops.collective_permute(x, pairs, over))
    }

    /// Where the device stands in its group.
    #[track_caller]
    pub fn mesh_index(over: &DeviceGroups) -> Expr {
        Expr::make(Location::caller(), |ops| ops.mesh_index(over))
    }
}
