//! Errors about meshes: devices, axes, layouts, and programs that a mesh cannot run.

use crate::error::{Error, ErrorClass, ErrorKind};
use crate::shape::{Name, TensorType};

/// Errors about meshes. `op` is the public name of the function that was called.
///
/// ```
/// use defn_core::ErrorClass;
/// use defn_core::mesh::Mesh;
/// let error = Mesh::new(vec![("data".into(), 0)]).unwrap_err();
/// assert_eq!(error.class(), ErrorClass::Option);
/// assert!(error.to_string().starts_with("mesh: the axis \"data\" has size 0"));
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum MeshError {
    #[error("mesh: {problem}, {required}")]
    Axes { problem: String, required: &'static str },
    #[error(
        "mesh: {mesh} needs {count} devices and there are {there}, as many devices are required; use a smaller mesh, or a client with more devices"
    )]
    Devices { mesh: String, count: usize, there: usize },
    #[error("mesh: {device} is given twice, each device must be another")]
    DeviceRepeated { device: String },
    #[error("mesh: {left} and {right} belong to two clients, devices of one client are required")]
    Clients { left: String, right: String },
    #[error(
        "mesh: none of the devices of {mesh} belongs to this process, one at least is required; choose other devices, or use the mesh only in the processes that have one"
    )]
    NoneHere { mesh: String },
    #[error(
        "{op}: the tensor is stored in blocks in several processes, and the one on {device} is in process {process}, all blocks in this process are required; read the blocks that are here, or replicate the result by all_gather"
    )]
    Elsewhere { op: &'static str, device: String, process: i32 },
    #[error(
        "{op}: there is no mesh here, one is required; call it inside a function that dn.shard runs on the devices of a mesh, or for an axis_name of dn.vmap inside the function that is mapped"
    )]
    NoMesh { op: &'static str },
    #[error("{op}: the mesh has no axis \"{axis}\", it must be one of {known}")]
    UnknownAxis { op: &'static str, axis: Name, known: String },
    #[error("{op}: the axis \"{axis}\" of the mesh is given twice, axes must be unique")]
    AxisRepeated { op: &'static str, axis: Name },
    #[error(
        "{op}: {executor} runs a program on one device, and this is an exchange between {count}; run the whole program by dn.shard on \"pjrt\""
    )]
    Alone { op: &'static str, executor: String, count: usize },
    #[error(
        "{op}: the program is for {given} devices, a mesh of as many is required and this one has {count}"
    )]
    OtherMesh { op: &'static str, given: usize, count: usize },
    #[error(
        "{op}: an exchange between devices inside {inside}, which each device may run another number of times; every device must come to it equally often, so move it out, or count the loop's trips by for_ or scan"
    )]
    Divergent { op: &'static str, inside: &'static str },
    #[error(
        "shard: {op} in a program for several devices, a program without it is required; return the value instead"
    )]
    Effect { op: &'static str },
    #[error("shard: checks are asked for, and a program for several devices makes none; turn them off")]
    Checks,
    #[error(
        "reduce_scatter: axis {axis} of {got} has size {size}, a multiple of the {count} devices along \"{mesh_axes}\" is required"
    )]
    Scatter { got: TensorType, axis: usize, size: usize, mesh_axes: Name, count: usize },
    #[error("collective_permute: {problem}, {required}")]
    Pairs { problem: String, required: String },
    #[error("shard: {what} is {got} and its spec {spec}, at most one entry for each of its {} axes is required", got.shape.rank())]
    SpecRank { what: String, got: TensorType, spec: String },
    #[error(
        "shard: axis {axis} of {what}, which is {got}, is laid over the {count} devices along {mesh_axes}; its size must be a multiple of {count}"
    )]
    SpecSize { what: String, got: TensorType, axis: usize, mesh_axes: String, count: usize },
    #[error(
        "{op}: the tensor {got} is stored in blocks on the devices of a mesh, a tensor on one device is required; call its to_tensor()"
    )]
    Blocks { op: String, got: TensorType },
}

impl MeshError {
    /// The public error class.
    pub fn class(&self) -> ErrorClass {
        match self {
            MeshError::Axes { .. }
            | MeshError::Devices { .. }
            | MeshError::NoneHere { .. }
            | MeshError::DeviceRepeated { .. }
            | MeshError::Clients { .. }
            | MeshError::Checks
            | MeshError::Pairs { .. } => ErrorClass::Option,
            MeshError::NoMesh { .. } => ErrorClass::Trace,
            MeshError::UnknownAxis { .. } | MeshError::AxisRepeated { .. } => ErrorClass::Axis,
            MeshError::Alone { .. }
            | MeshError::OtherMesh { .. }
            | MeshError::Divergent { .. }
            | MeshError::Effect { .. } => ErrorClass::Compile,
            MeshError::Scatter { .. } | MeshError::SpecRank { .. } | MeshError::SpecSize { .. } => {
                ErrorClass::Shape
            }
            MeshError::Blocks { .. } | MeshError::Elsewhere { .. } => ErrorClass::Backend,
        }
    }
}

impl From<MeshError> for Error {
    #[cold]
    fn from(error: MeshError) -> Error {
        ErrorKind::Mesh(error).into()
    }
}
