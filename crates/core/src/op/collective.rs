//! What the devices of a mesh make of their blocks together.

use std::sync::Arc;

use crate::shape::{Axis, Name};

super::catalogue! {
    /// What a fold over devices computes from the elements in one place of their blocks.
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

/// Which devices work together: groups of one size, to one of which each device of the mesh belongs.
///
/// ```
/// use defn_core::mesh::Mesh;
/// let mesh = Mesh::new(vec![("data".into(), 2), ("model".into(), 2)])?;
/// let over = mesh.over("all_reduce", &["model".into()])?;
/// assert_eq!(over.size(), 2);
/// assert_eq!(over.groups().collect::<Vec<_>>(), [[0, 1], [2, 3]]);
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Over {
    axes: Name,
    devices: Arc<[u32]>,
    size: usize,
}

impl Over {
    /// Groups of `size` devices, one after the other; `axes` is what people call them. Devices are numbers from 0 on.
    ///
    /// # Errors
    /// A sentence about groups to which a device does not belong just once.
    pub fn new(axes: Name, devices: impl Into<Arc<[u32]>>, size: usize) -> Result<Over, String> {
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
        Ok(Over { axes, devices, size })
    }

    /// The axes of the mesh, for people.
    pub fn axes(&self) -> &Name {
        &self.axes
    }

    /// How many devices are in a group.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The devices, group after group.
    pub fn devices(&self) -> &[u32] {
        &self.devices
    }

    /// The groups, each in the order in which blocks are put together.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        self.devices.chunks_exact(self.size)
    }
}

/// What is done over the devices of each group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Collective {
    /// Each device has the fold of what all have in the same place.
    AllReduce {
        /// The fold.
        op: AllReduceOp,
    },
    /// Each device has the blocks of all, one after the other.
    AllGather {
        /// The axis whose size is multiplied.
        axis: Axis,
    },
    /// Each device has its part of the sum of all blocks.
    ReduceScatter {
        /// The axis whose size is divided.
        axis: Axis,
    },
    /// A device has what another had; zeros, where none is named.
    CollectivePermute {
        /// Devices from which and to which a block goes.
        pairs: Arc<[(u32, u32)]>,
    },
    /// Which of its group a device is.
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

    /// The names of all, in the order of the catalogue.
    pub const NAMES: &'static [&'static str] =
        &["all_reduce", "all_gather", "reduce_scatter", "collective_permute", "mesh_index"];
}

/// Operands: the device's block; none for `mesh_index`. Each device of a mesh runs the same program, and comes to each
/// collective as often as the others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CollectiveOp {
    /// What is done.
    pub kind: Collective,
    /// By which devices together.
    pub over: Over,
}

impl CollectiveOp {
    /// Whether a block goes from each device at most once, and to each at most once.
    ///
    /// # Errors
    /// A sentence about one that does not.
    pub fn check_pairs(&self) -> Result<(), String> {
        let Collective::CollectivePermute { pairs } = &self.kind else { return Ok(()) };
        let count = self.over.devices.len();
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
