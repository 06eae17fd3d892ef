//! Functions that the devices of a mesh run together: meshes, tensors that lie on them in blocks, and the calls.

mod function;
mod mesh;
mod sharded;
mod spec;

use pyo3::prelude::*;

pub(crate) use mesh::{Over, PyMesh};
pub(crate) use sharded::{PySharded, refuse};

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyMesh>()?;
    module.add_class::<PySharded>()?;
    module.add_class::<function::ShardedFunction>()
}
