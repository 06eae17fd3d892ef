//! Functions that run on all devices of a mesh: meshes, sharded tensors, and the calls.

mod function;
mod mesh;
mod sharded;
mod spec;

use pyo3::prelude::*;

pub(crate) use mesh::{MeshCompilerHandle, PyMesh};
pub(crate) use sharded::{PySharded, refuse};

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyMesh>()?;
    module.add_class::<PySharded>()?;
    module.add_class::<function::ShardedFunction>()
}
