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

pub use defn_pjrt::*;

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
