//! Collective operations of the devices of a mesh.

use std::sync::Arc;

use crate::shape::{Axis, Name};

super::catalogue! {
    /// The reduction that an all-reduce applies to the elements in the same position of the devices' blocks.
    ///
    /// ```
    /// use defn_core::op::AllReduceOp;
    /// assert_eq!(AllReduceOp::Max.name(), "max");
    /// ```
    pub enum AllReduceOp {
        /// The sum; integers wrap.
        Sum = "sum",
        /// The greatest; NaN if any element is.
        Max = "max",
        /// The least; NaN if any element is.
        Min = "min",
    }
}

/// The devices that take part: groups of equal size. Each device of the mesh belongs to exactly one group.
///
/// ```
/// use defn_core::mesh::Mesh;
/// let mesh = Mesh::new(vec![("data".into(), 2), ("model".into(), 2)])?;
/// let groups = mesh.device_groups("all_reduce", &["model".into()])?;
/// assert_eq!(groups.size(), 2);
/// assert_eq!(groups.groups().collect::<Vec<_>>(), [[0, 1], [2, 3]]);
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeviceGroups {
    axes: Name,
    devices: Arc<[u32]>,
    size: usize,
}

impl DeviceGroups {
    /// Consecutive groups of `size` devices. `axes` is the name that messages and prints show. Devices are numbered
    /// from 0.
    ///
    /// # Errors
    /// A sentence about groups that do not contain each device exactly once.
    pub fn new(axes: Name, devices: impl Into<Arc<[u32]>>, size: usize) -> Result<DeviceGroups, String> {
        let devices = devices.into();
        let count = devices.len();
        if count == 0 || size == 0 || !count.is_multiple_of(size) {
            return Err(format!("{count} devices in groups of {size}, groups of one size are required"));
        }
        let mut seen = vec![false; count];
        for &device in &*devices {
            match seen.get_mut(device as usize) {
                Some(seen) if !*seen => *seen = true,
                Some(_) | None => {
                    return Err(format!(
                        "device {device} in the groups, each of 0..{count} once is required"
                    ));
                }
            }
        }
        Ok(DeviceGroups { axes, devices, size })
    }

    /// The axes of the mesh, for messages and prints.
    pub fn axes(&self) -> &Name {
        &self.axes
    }

    /// The number of devices in a group.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The devices, group after group.
    pub fn devices(&self) -> &[u32] {
        &self.devices
    }

    /// The groups, each in the order in which blocks are concatenated.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        self.devices.chunks_exact(self.size)
    }
}

/// The operation over the devices of each group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Collective {
    /// Each device receives the reduction of all blocks, element by element.
    AllReduce {
        /// The reduction.
        op: AllReduceOp,
    },
    /// Each device receives all blocks, concatenated.
    AllGather {
        /// The axis whose size is multiplied.
        axis: Axis,
    },
    /// Each device receives its part of the sum of all blocks.
    ReduceScatter {
        /// The axis whose size is divided.
        axis: Axis,
    },
    /// A device receives another device's block, or zeros if no pair names it as a target.
    CollectivePermute {
        /// Pairs of a source and a target device.
        pairs: Arc<[(u32, u32)]>,
    },
    /// The position of a device in its group.
    MeshIndex,
}

impl Collective {
    /// The public name.
    pub const fn name(&self) -> &'static str {
        match self {
            Collective::AllReduce { .. } => "all_reduce",
            Collective::AllGather { .. } => "all_gather",
            Collective::ReduceScatter { .. } => "reduce_scatter",
            Collective::CollectivePermute { .. } => "collective_permute",
            Collective::MeshIndex => "mesh_index",
        }
    }

    /// The public names of all operations, in the order of the catalogue.
    pub const NAMES: &'static [&'static str] =
        &["all_reduce", "all_gather", "reduce_scatter", "collective_permute", "mesh_index"];
}

/// Operands: the device's block; none for `mesh_index`. Every device of a mesh runs the same program and runs each
/// collective the same number of times.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CollectiveOp {
    /// The operation.
    pub kind: Collective,
    /// The groups of devices.
    pub groups: DeviceGroups,
}

impl CollectiveOp {
    /// Checks that each device is the source of at most one pair and the target of at most one.
    ///
    /// # Errors
    /// A sentence about a device that is not.
    pub fn check_pairs(&self) -> Result<(), String> {
        let Collective::CollectivePermute { pairs } = &self.kind else { return Ok(()) };
        let count = self.groups.devices.len();
        for (what, side) in [("from", 0), ("to", 1)] {
            let mut seen = vec![false; count];
            for pair in &**pairs {
                let device = if side == 0 { pair.0 } else { pair.1 };
                match seen.get_mut(device as usize) {
                    Some(seen) if !*seen => *seen = true,
                    Some(_) => return Err(format!("two blocks go {what} device {device}")),
                    None => return Err(format!("a block goes {what} device {device} of {count}")),
                }
            }
        }
        Ok(())
    }
}
