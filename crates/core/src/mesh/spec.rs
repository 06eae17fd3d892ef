//! How a tensor is laid over a mesh.

use std::fmt;

use super::{Mesh, MeshError};
use crate::error::{ErrorKind, Result};
use crate::shape::{Name, Shape, Sizes, TensorType};

/// Over which axes of a mesh each axis of a tensor is laid. Axes without an entry, and those whose entry names none, are
/// whole on every device.
///
/// ```
/// use defn_core::mesh::{Mesh, Spec};
/// use defn_core::{DType, Shape, TensorType};
/// let mesh = Mesh::new(vec![("data".into(), 2)])?;
/// let columns = Spec(vec![vec![], vec!["data".into()]]);
/// let whole = TensorType::new(DType::F32, Shape::new(&[3, 8]))?;
/// assert_eq!(columns.block(&mesh, "x", &whole)?.to_string(), "f32[3][4]");
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spec(pub Vec<Vec<Name>>);

/// A spec of a mesh: the positions of the axes.
type Along = Vec<Vec<usize>>;

impl Spec {
    /// The type of the block of a tensor of type `got` that each device has; `what` is the tensor's name in messages.
    ///
    /// # Errors
    /// More entries than axes, a mesh axis that is unknown or named twice, and a size that the devices do not divide.
    pub fn block(&self, mesh: &Mesh, what: &str, got: &TensorType) -> Result<TensorType> {
        let along = self.along(mesh)?;
        if along.len() > got.shape.rank() {
            let (what, got, spec) = (what.to_owned(), got.clone(), self.to_string());
            return Err(MeshError::SpecRank { what, got, spec }.into());
        }
        let mut sizes: Sizes = got.shape.sizes().into();
        for (axis, over) in along.iter().enumerate() {
            let count = mesh.size_along(over);
            if !sizes[axis].is_multiple_of(count) {
                let over = entry_text(&self.0[axis]);
                let (what, got) = (what.to_owned(), got.clone());
                return Err(MeshError::SpecSize { what, got, axis, over, count }.into());
            }
            sizes[axis] /= count;
        }
        TensorType::new(got.dtype, with_sizes(&got.shape, &sizes))
    }

    /// The type of the tensor whose blocks are of type `got`.
    ///
    /// # Errors
    /// As [`Spec::block`], and a tensor that is too large.
    pub fn whole(&self, mesh: &Mesh, what: &str, got: &TensorType) -> Result<TensorType> {
        let along = self.along(mesh)?;
        if along.len() > got.shape.rank() {
            let (what, got, spec) = (what.to_owned(), got.clone(), self.to_string());
            return Err(MeshError::SpecRank { what, got, spec }.into());
        }
        let mut sizes: Sizes = got.shape.sizes().into();
        for (axis, over) in along.iter().enumerate() {
            let Some(size) = sizes[axis].checked_mul(mesh.size_along(over)) else {
                return Err(ErrorKind::TooLarge { dtype: got.dtype, shape: got.shape.clone() }.into());
            };
            sizes[axis] = size;
        }
        TensorType::new(got.dtype, with_sizes(&got.shape, &sizes))
    }

    /// Which block along each axis of a tensor a device has.
    ///
    /// # Errors
    /// A mesh axis that is unknown or named twice.
    pub fn place(&self, mesh: &Mesh, device: usize) -> Result<Vec<usize>> {
        let along = self.along(mesh)?;
        Ok(along.iter().map(|over| mesh.coordinate_along(device, over)).collect())
    }

    /// Refuses what is no spec of a mesh.
    ///
    /// # Errors
    /// A mesh axis that is unknown or named twice.
    pub fn check(&self, mesh: &Mesh) -> Result<()> {
        self.along(mesh).map(|_| ())
    }

    /// The same without empty entries at the end, by which equal layouts are known.
    #[must_use]
    pub fn trimmed(mut self) -> Spec {
        while self.0.last().is_some_and(Vec::is_empty) {
            self.0.pop();
        }
        self
    }

    fn along(&self, mesh: &Mesh) -> Result<Along> {
        let names: Vec<Name> = self.0.iter().flatten().cloned().collect();
        let mut positions = mesh.positions("shard", &names)?.into_iter();
        Ok(self.0.iter().map(|entry| positions.by_ref().take(entry.len()).collect()).collect())
    }
}

fn with_sizes(shape: &Shape, sizes: &[usize]) -> Shape {
    Shape::from_axes(sizes.iter().copied().zip(shape.names().map(|name| name.cloned())))
}

/// An entry as users write it.
fn entry_text(entry: &[Name]) -> String {
    match entry {
        [] => "None".to_owned(),
        [name] => format!("\"{name}\""),
        names => {
            let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
            format!("({})", names.join(", "))
        }
    }
}

/// As users write it: `("data", None)`.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries: Vec<String> = self.0.iter().map(|entry| entry_text(entry)).collect();
        match &entries[..] {
            [one] => write!(f, "({one},)"),
            several => write!(f, "({})", several.join(", ")),
        }
    }
}
