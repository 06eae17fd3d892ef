//! The sharding of a tensor over a mesh.

use std::fmt;

use super::{Mesh, MeshError};
use crate::error::{ErrorKind, Result};
use crate::shape::{Name, Shape, Sizes, TensorType};

/// For each axis of a tensor, the mesh axes over which it is sharded. Axes without an entry or with an empty
/// entry are replicated: every device has the whole axis.
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

/// A spec with mesh axes as positions.
type Along = Vec<Vec<usize>>;

impl Spec {
    /// The type of each device's block of a tensor of type `got`; `what` is the tensor's name in messages.
    ///
    /// # Errors
    /// More entries than axes, a mesh axis that is unknown or named twice, and a size that the number of
    /// devices does not divide.
    pub fn block(&self, mesh: &Mesh, what: &str, got: &TensorType) -> Result<TensorType> {
        let along = self.along(mesh)?;
        if along.len() > got.shape.rank() {
            let (what, got, spec) = (what.to_owned(), got.clone(), self.to_string());
            return Err(MeshError::SpecRank { what, got, spec }.into());
        }
        let mut sizes: Sizes = got.shape.sizes().into();
        for (axis, mesh_axes) in along.iter().enumerate() {
            let count = mesh.size_along(mesh_axes);
            if !sizes[axis].is_multiple_of(count) {
                let mesh_axes = entry_text(&self.0[axis]);
                let (what, got) = (what.to_owned(), got.clone());
                return Err(MeshError::SpecSize { what, got, axis, mesh_axes, count }.into());
            }
            sizes[axis] /= count;
        }
        TensorType::new(got.dtype, with_sizes(&got.shape, &sizes))
    }

    /// The type of the tensor whose blocks have the type `got`.
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
        for (axis, mesh_axes) in along.iter().enumerate() {
            let Some(size) = sizes[axis].checked_mul(mesh.size_along(mesh_axes)) else {
                return Err(ErrorKind::TooLarge { dtype: got.dtype, shape: got.shape.clone() }.into());
            };
            sizes[axis] = size;
        }
        TensorType::new(got.dtype, with_sizes(&got.shape, &sizes))
    }

    /// The position of a device's block along each axis of a tensor.
    ///
    /// # Errors
    /// A mesh axis that is unknown or named twice.
    pub fn block_position(&self, mesh: &Mesh, device: usize) -> Result<Vec<usize>> {
        let along = self.along(mesh)?;
        Ok(along.iter().map(|mesh_axes| mesh.coordinate_along(device, mesh_axes)).collect())
    }

    /// Checks the spec against a mesh.
    ///
    /// # Errors
    /// A mesh axis that is unknown or named twice.
    pub fn check(&self, mesh: &Mesh) -> Result<()> {
        self.along(mesh).map(|_| ())
    }

    /// The spec without trailing empty entries: equal layouts then have equal specs.
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

/// An entry in the user's notation.
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

/// In the user's notation: `("data", None)`.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries: Vec<String> = self.0.iter().map(|entry| entry_text(entry)).collect();
        match &entries[..] {
            [one] => write!(f, "({one},)"),
            several => write!(f, "({})", several.join(", ")),
        }
    }
}
