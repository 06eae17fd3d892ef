//! Meshes: grids of devices with named axes, the sharding of tensors over them, and the mesh of a program.
//!
//! Every device of a mesh runs the same program on its own blocks. Devices are numbered from 0, in row-major
//! order of their coordinates, the last axis fastest.
//!
//! A program is traced once, on blocks. The groups of devices that communicate are written into the ops, so
//! that a graph can be read without its mesh.

mod blocks;
mod divergent;
mod error;
mod spec;

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

pub use divergent::check;
pub use error::MeshError;
pub use spec::Spec;

use crate::error::Result;
use crate::op::DeviceGroups;
use crate::shape::Name;

/// The maximum number of devices of a mesh.
const MAX_DEVICES: usize = 1 << 16;

/// A grid of devices with named axes.
///
/// ```
/// use defn_core::mesh::Mesh;
/// let mesh = Mesh::new(vec![("data".into(), 2), ("model".into(), 3)])?;
/// assert_eq!(mesh.count(), 6);
/// assert_eq!(mesh.coordinate(4, 1), 1);
/// assert_eq!(mesh.device_groups("all_reduce", &["data".into()])?.devices(), [0, 3, 1, 4, 2, 5]);
/// assert_eq!(mesh.to_string(), "{data: 2, model: 3}");
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mesh {
    axes: Arc<[(Name, usize)]>,
}

impl Mesh {
    /// A mesh with the given axes and sizes.
    ///
    /// # Errors
    /// No axis, a name given twice, a size of 0, and too many devices.
    pub fn new(axes: Vec<(Name, usize)>) -> Result<Mesh> {
        let wrong = |problem: String, required| Err(MeshError::Axes { problem, required }.into());
        if axes.is_empty() {
            return wrong("there is no axis".to_owned(), "at least one is required");
        }
        for (at, (name, size)) in axes.iter().enumerate() {
            if axes[..at].iter().any(|(other, _)| other == name) {
                return wrong(format!("two axes are named \"{name}\""), "names must differ");
            }
            if *size == 0 {
                return wrong(format!("the axis \"{name}\" has size 0"), "a size of at least 1 is required");
            }
        }
        let count = axes.iter().try_fold(1_usize, |count, (_, size)| count.checked_mul(*size));
        match count {
            Some(count) if count <= MAX_DEVICES => Ok(Mesh { axes: axes.into() }),
            Some(_) | None => {
                let sizes: Vec<String> = axes.iter().map(|(_, size)| size.to_string()).collect();
                wrong(format!("{} devices", sizes.join(" x ")), "at most 65536 are possible")
            }
        }
    }

    /// The axes with their sizes.
    pub fn axes(&self) -> &[(Name, usize)] {
        &self.axes
    }

    /// The number of devices.
    pub fn count(&self) -> usize {
        self.axes.iter().map(|(_, size)| size).product()
    }

    /// The coordinate of a device along the axis at a position.
    pub fn coordinate(&self, device: usize, axis: usize) -> usize {
        let after: usize = self.axes[axis + 1..].iter().map(|(_, size)| size).product();
        device / after % self.axes[axis].1
    }

    /// The coordinate of a device along several axes combined, the last fastest.
    pub(crate) fn coordinate_along(&self, device: usize, axes: &[usize]) -> usize {
        axes.iter().fold(0, |at, &axis| at * self.axes[axis].1 + self.coordinate(device, axis))
    }

    /// The position of an axis.
    ///
    /// # Errors
    /// An unknown name.
    pub(crate) fn axis(&self, op: &'static str, name: &Name) -> Result<usize> {
        let found = self.axes.iter().position(|(known, _)| known == name);
        found.ok_or_else(|| {
            let known: Vec<String> = self.axes.iter().map(|(known, _)| format!("\"{known}\"")).collect();
            MeshError::UnknownAxis { op, axis: name.clone(), known: known.join(", ") }.into()
        })
    }

    /// The positions of named axes.
    pub(crate) fn positions(&self, op: &'static str, names: &[Name]) -> Result<Vec<usize>> {
        let mut positions = Vec::with_capacity(names.len());
        for name in names {
            let axis = self.axis(op, name)?;
            if positions.contains(&axis) {
                return Err(MeshError::AxisRepeated { op, axis: name.clone() }.into());
            }
            positions.push(axis);
        }
        Ok(positions)
    }

    /// The number of devices along several axes combined.
    pub(crate) fn size_along(&self, axes: &[usize]) -> usize {
        axes.iter().map(|&axis| self.axes[axis].1).product()
    }

    /// The groups of devices that differ only along the axes of these names. Without names all devices are
    /// one group. In a group the last named axis is the fastest.
    ///
    /// # Errors
    /// An axis that the mesh does not have, and one that is named twice.
    pub fn device_groups(&self, op: &'static str, names: &[Name]) -> Result<DeviceGroups> {
        let along =
            if names.is_empty() { (0..self.axes.len()).collect() } else { self.positions(op, names)? };
        let rest: Vec<usize> = (0..self.axes.len()).filter(|axis| !along.contains(axis)).collect();
        let mut devices: Vec<usize> = (0..self.count()).collect();
        devices.sort_by_key(|&device| {
            (self.coordinate_along(device, &rest), self.coordinate_along(device, &along))
        });
        let named: Vec<&str> = along.iter().map(|&axis| &*self.axes[axis].0).collect();
        let devices: Vec<u32> = devices.into_iter().map(|device| device as u32).collect();
        let groups = DeviceGroups::new(named.join(", ").into(), devices, self.size_along(&along));
        Ok(groups.expect("every device is in one group"))
    }
}

impl fmt::Display for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (at, (name, size)) in self.axes.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{name}: {size}")?;
        }
        f.write_str("}")
    }
}

thread_local! {
    static MESHES: RefCell<Vec<Mesh>> = const { RefCell::new(Vec::new()) };
}

/// Keeps a mesh current on this thread until it is dropped.
#[derive(Debug)]
pub struct Entered {
    /// The stack is thread-local.
    not_send: PhantomData<*const ()>,
}

/// Makes a mesh current for traces on this thread, until the result is dropped.
pub fn enter(mesh: Mesh) -> Entered {
    MESHES.with_borrow_mut(|stack| stack.push(mesh));
    Entered { not_send: PhantomData }
}

impl Drop for Entered {
    fn drop(&mut self) {
        MESHES.with_borrow_mut(Vec::pop);
    }
}

/// The current mesh of this thread; `op` is for messages.
///
/// # Errors
/// When there is none.
pub fn current(op: &'static str) -> Result<Mesh> {
    let current = MESHES.with_borrow(|stack| stack.last().cloned());
    current.ok_or_else(|| MeshError::NoMesh { op }.into())
}

/// The groups of devices along axes of the current mesh, as in [`Mesh::device_groups`].
///
/// # Errors
/// When there is no mesh, and as [`Mesh::device_groups`].
pub fn device_groups(op: &'static str, names: &[Name]) -> Result<DeviceGroups> {
    current(op)?.device_groups(op, names)
}
