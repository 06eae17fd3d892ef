//! Devices through PJRT plugins: all of `defn_pjrt`, and what a program needs of it in few words.
//!
//! A plugin is a shared library, as wheels carry them: `xla_cpu_pjrt.so` of `xla-cpu-pjrt`, `xla_cuda_plugin.so` of
//! `jax-cuda13-pjrt`. It is named here by its file, or in the environment by `DEFN_PJRT_PLUGIN`. Programs are the
//! same as on the CPU: tensors that are placed on a device stay there, ops on them run there, and [`compiler`]
//! compiles whole functions for it.
//!
//! ```no_run
//! use defn::pjrt::{self, ClientSpec};
//! use defn::prelude::*;
//!
//! pjrt::register("host", ClientSpec::new("xla_cpu_pjrt.so"))?;
//! let device = pjrt::device("host", 0)?;
//! let softmax = jit(|x: Expr| {
//!     let e = (&x - x.reduce_max(-1, true)).exp();
//!     &e / e.sum(-1, true)
//! })
//! .with_compiler(pjrt::compiler(&device)?);
//! let x = Tensor::from_slice(&[1f32, 2.0, 3.0], &[3])?.backend_transfer(&pjrt::place(&device))?;
//! println!("{:?}", softmax.call(x)?.to_vec::<f32>()?);
//! # Ok::<(), defn::Error>(())
//! ```

use std::sync::Arc;

use defn_core::backend::{Backend, Compiler};
use defn_core::builder::{Ops, Source};
use defn_core::mesh::{Mesh, Spec};

pub use defn_pjrt::*;

use crate::Tensor;

/// A device of a client: of one that was [`register`]ed, or of the one that `DEFN_PJRT_PLUGIN` names. The client is
/// started if it does not run yet.
///
/// # Errors
/// No such client or device, a file that is no plugin, and a device or driver that is missing.
pub fn device(client: &str, device_id: i64) -> defn_core::Result<Arc<PjrtBackend>> {
    defn_pjrt::backend("device", Some(client), Some(device_id))
}

/// The first device of the client that is meant where none is named: the first that was registered, or the one
/// that `DEFN_PJRT_PLUGIN` names.
///
/// # Errors
/// As [`device`], and no plugin at all.
pub fn default_device() -> defn_core::Result<Arc<PjrtBackend>> {
    defn_pjrt::backend("device", None, None)
}

/// A device as a place for tensors.
pub fn place(device: &Arc<PjrtBackend>) -> Arc<dyn Backend> {
    device.clone()
}

/// A compiler for the devices of a client, this one where the arguments are on none of them.
///
/// # Errors
/// There is no backend of the host to fold constants on: the feature `cpu` is off and none was set.
pub fn compiler(device: &Arc<PjrtBackend>) -> defn_core::Result<Arc<dyn Compiler>> {
    compiler_with(device, CompilerOptions::default())
}

/// As [`compiler`], with options.
///
/// # Errors
/// As [`compiler`].
pub fn compiler_with(
    device: &Arc<PjrtBackend>,
    options: CompilerOptions,
) -> defn_core::Result<Arc<dyn Compiler>> {
    Ok(Arc::new(PjrtCompiler::new(device.clone(), crate::backend::host()?, options)))
}

/// Devices of one client in a mesh, in row-major order.
///
/// # Errors
/// Too few devices or too many, one that is given twice, and devices of two clients.
pub fn mesh(mesh: Mesh, devices: &[Arc<PjrtBackend>]) -> defn_core::Result<Arc<MeshBackend>> {
    MeshBackend::new(mesh, devices.to_vec())
}

/// A compiler for the devices of a mesh: each runs the whole function on its own blocks of the arguments, which are
/// tensors that [`lay`] gives. Arguments that are not, and tensors that the function captures, each device has whole.
///
/// # Errors
/// As [`compiler`].
pub fn mesh_compiler(mesh: &Arc<MeshBackend>) -> defn_core::Result<Arc<dyn Compiler>> {
    let host = crate::backend::host()?;
    Ok(Arc::new(MeshCompiler::new(mesh.clone(), host, CompilerOptions::default())))
}

/// A tensor cut into blocks, one on each device: a tensor of the block's type, for functions that [`mesh_compiler`]
/// compiles.
///
/// # Errors
/// A spec that does not fit the tensor or the mesh, and what copying to the devices fails with.
pub fn lay(tensor: &Tensor, mesh: &Arc<MeshBackend>, spec: &Spec) -> defn_core::Result<Tensor> {
    let block = spec.block(mesh.mesh(), "the tensor", tensor.ty())?;
    let mut ops = Ops::new(crate::backend::host()?, Source::Unknown);
    let blocks = spec.cut(&mut ops, mesh.mesh(), tensor.core(), &block)?;
    Ok(Tensor(mesh.gather_blocks(&block, &blocks)?))
}

/// The tensor that the blocks of a tensor of a mesh make up, on the host.
///
/// # Errors
/// A spec that does not fit the blocks or the mesh, and what the devices fail with.
///
/// # Panics
/// When the tensor is on no mesh.
pub fn gather(tensor: &Tensor, mesh: &Arc<MeshBackend>, spec: &Spec) -> defn_core::Result<Tensor> {
    spec.whole(mesh.mesh(), "the tensor", tensor.ty())?;
    let host = crate::backend::host()?;
    let mut ops = Ops::new(host.clone(), Source::Unknown);
    let blocks = MeshBackend::blocks(tensor.core())?;
    let bring = |device: usize| blocks[device].copy_to("gather", &host);
    Ok(Tensor(spec.join(&mut ops, mesh.mesh(), bring)?))
}
