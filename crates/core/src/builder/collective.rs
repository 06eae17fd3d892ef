//! Collective operations of the devices of a mesh.

use std::sync::Arc;

use super::{Arg, Builder};
use crate::error::Result;
use crate::mesh::MeshError;
use crate::op::{AllReduceOp, Collective, CollectiveOp, DeviceGroups, Op};
use crate::shape::{AxisRef, Name};

/// Ops of one program that every device of a mesh runs on its own block. An [`DeviceGroups`] names the devices that take
/// part; [`mesh::device_groups`](crate::mesh::device_groups) makes one from axes of the mesh.
pub trait BuildCollective: Builder + Sized {
    /// The reduction of the devices' blocks, element by element, on each device.
    ///
    /// ```
    /// use defn_core::builder::{BuildCollective, BuildCreate, Builder};
    /// use defn_core::graph::Graph;
    /// use defn_core::mesh::Mesh;
    /// use defn_core::op::AllReduceOp;
    /// use defn_core::{DType, Shape};
    /// let mesh = Mesh::new(vec![("data".into(), 4)])?;
    /// let mut graph = Graph::new();
    /// let x = graph.iota(Shape::new(&[3]), DType::F32, None)?;
    /// let groups = mesh.device_groups("all_reduce", &["data".into()])?;
    /// let y = graph.all_reduce(x, AllReduceOp::Sum, &groups)?;
    /// assert_eq!(Builder::ty(&graph, &y).to_string(), "f32[3]");
    /// # Ok::<(), defn_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// The maximum or minimum of complex elements.
    fn all_reduce(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        op: AllReduceOp,
        groups: &DeviceGroups,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.emit_one(collective(Collective::AllReduce { op }, groups), &[x])
    }

    /// The blocks of all devices of the group, concatenated along an axis.
    ///
    /// # Errors
    /// An axis that `x` does not have, and a result that is too large.
    fn all_gather(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
        groups: &DeviceGroups,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let axis = self.ty(&x).shape.resolve("all_gather", &axis.into())?;
        self.emit_one(collective(Collective::AllGather { axis }, groups), &[x])
    }

    /// The device's part, along an axis, of the sum of the group's blocks.
    ///
    /// # Errors
    /// An axis that `x` does not have, or whose size the devices do not divide.
    fn reduce_scatter(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
        groups: &DeviceGroups,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let axis = self.ty(&x).shape.resolve("reduce_scatter", &axis.into())?;
        self.emit_one(collective(Collective::ReduceScatter { axis }, groups), &[x])
    }

    /// The block of another device of the group. Each pair sends the block of its first device to its second; both
    /// are positions in the group. A device that is second in no pair gets zeros.
    ///
    /// # Errors
    /// A position outside the group, and two pairs with the same source or the same target.
    fn collective_permute(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        pairs: &[(usize, usize)],
        groups: &DeviceGroups,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        check_pairs(pairs, groups.size(), groups.axes())?;
        let of_group = |group: &[u32]| -> Vec<(u32, u32)> {
            pairs.iter().map(|&(from, to)| (group[from], group[to])).collect()
        };
        let devices: Arc<[(u32, u32)]> = groups.groups().flat_map(of_group).collect();
        self.emit_one(collective(Collective::CollectivePermute { pairs: devices }, groups), &[x])
    }

    /// The device's position in its group, an s32.
    ///
    /// # Errors
    /// None of its own.
    fn mesh_index(&mut self, groups: &DeviceGroups) -> Result<Self::V> {
        self.emit_one(collective(Collective::MeshIndex, groups), &[])
    }
}

/// Checks that pairs of positions along an axis are in range, and that each is the source of at most one and
/// the target of at most one.
///
/// # Errors
/// A pair that is not.
pub(crate) fn check_pairs(pairs: &[(usize, usize)], size: usize, axis: &Name) -> Result<()> {
    if let Some(&(from, to)) = pairs.iter().find(|(from, to)| *from >= size || *to >= size) {
        let problem = format!("the pair ({from}, {to})");
        let required = format!("positions in 0..{size} along \"{axis}\" are required");
        return Err(MeshError::Pairs { problem, required }.into());
    }
    let mut taken = vec![(false, false); size];
    for &(from, to) in pairs {
        if taken[from].0 || taken[to].1 {
            let problem = format!("the pairs are {pairs:?}");
            let required = "at most one from each position and one to each is required".to_owned();
            return Err(MeshError::Pairs { problem, required }.into());
        }
        taken[from].0 = true;
        taken[to].1 = true;
    }
    Ok(())
}

fn collective(kind: Collective, groups: &DeviceGroups) -> Op {
    Op::Collective(CollectiveOp { kind, groups: groups.clone() })
}

impl<B: Builder> BuildCollective for B {}
