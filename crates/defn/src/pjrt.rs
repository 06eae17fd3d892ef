//! Devices through PJRT plugins: all of `defn_pjrt`, and short functions for what most programs need of it.
//!
//! A plugin is a shared library from a wheel: `xla_cpu_pjrt.so` of `xla-cpu-pjrt`, `xla_cuda_plugin.so` of
//! `jax-cuda13-pjrt`. A program names its file, or the variable `DEFN_PJRT_PLUGIN` does. Programs are the same as on
//! the CPU: tensors that are placed on a device stay there, operations on them run there, and [`compiler`] compiles
//! whole functions for it.
//!
//! On the host, XLA's programs have factorizations, sorts, large reductions and the like computed by the kernels of the
//! CPU's compiler (feature `cpu`), if the plugin can call them: [`DeviceInfo::kernels`] says it.
//!
//! The examples below have registered the client "host" of the first wheel, with two devices.
//!
//! ```
//! # fn file(name: &str) -> std::path::PathBuf {
//! #     let pythons = || std::fs::read_dir("../../.venv/lib").into_iter().flatten().flatten();
//! #     let wheel = |python: std::fs::DirEntry| python.path().join("site-packages/xla_plugins/xla_cpu_pjrt");
//! #     let named = std::env::var_os("DEFN_PJRT_WHEEL").map(std::path::PathBuf::from);
//! #     let folder = named.or_else(|| pythons().map(wheel).find(|folder| folder.is_dir()));
//! #     folder.expect("the wheel xla-cpu-pjrt is in .venv, by `./dev test`, or where DEFN_PJRT_WHEEL says").join(name)
//! # }
//! use defn::pjrt::{self, ClientSpec};
//! use defn::prelude::*;
//!
//! pjrt::register("host", ClientSpec::new(file("xla_cpu_pjrt.so")))?;
//! let device = pjrt::device("host", 0)?;
//! let softmax = jit(|x: Expr| {
//!     let e = (&x - x.reduce_max(-1, true)).exp();
//!     &e / e.sum(-1, true)
//! })
//! .with_compiler(pjrt::compiler(&device)?);
//! let x = Tensor::from_slice(&[1f32, 2.0, 3.0], &[3])?.backend_transfer(&pjrt::backend(&device))?;
//! let sum: f32 = softmax.call(x)?.to_vec::<f32>()?.iter().sum();
//! assert!((sum - 1.0).abs() < 1e-6);
//! # Ok::<(), defn::Error>(())
//! ```

use std::sync::Arc;

use defn_core::backend::{Backend, Compiler};
use defn_core::builder::{Ops, Source};
use defn_core::mesh::{Mesh, Spec};

pub use defn_pjrt::*;

use crate::Tensor;

/// The hidden lines of an example: a function for the files of the wheel `xla-cpu-pjrt`, which is where the tests find
/// it too, and the client "host" with two devices.
macro_rules! two_devices {
    () => {
        r#"# fn file(name: &str) -> std::path::PathBuf {
#     let pythons = || std::fs::read_dir("../../.venv/lib").into_iter().flatten().flatten();
#     let wheel = |python: std::fs::DirEntry| python.path().join("site-packages/xla_plugins/xla_cpu_pjrt");
#     let named = std::env::var_os("DEFN_PJRT_WHEEL").map(std::path::PathBuf::from);
#     let folder = named.or_else(|| pythons().map(wheel).find(|folder| folder.is_dir()));
#     folder.expect("the wheel xla-cpu-pjrt is in .venv, by `./dev test`, or where DEFN_PJRT_WHEEL says").join(name)
# }
# use defn::pjrt::{self, Attribute, ClientSpec};
# let spec = ClientSpec::new(file("xla_cpu_pjrt.so")).with("cpu_device_count", Attribute::Int(2));
# pjrt::register("host", spec)?;"#
    };
}

/// A device of a client: of one that was [`register`]ed, or of the one that `DEFN_PJRT_PLUGIN` names. The client is
/// started if it does not run yet.
///
/// ```
#[doc = two_devices!()]
/// # use defn::prelude::*;
/// let device = pjrt::device("host", 1)?;
/// assert_eq!(pjrt::backend(&device).device_name(), "pjrt<host:1>");
/// assert!(pjrt::device("host", 2).is_err());
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// No such client or device, a file that is not a plugin, and a device or driver that is missing (`Backend`).
pub fn device(client: &str, device_id: i64) -> defn_core::Result<Arc<PjrtBackend>> {
    set_host();
    defn_pjrt::backend("device", Some(client), Some(device_id))
}

/// The first device of the default client: the first one that was registered, or the one that `DEFN_PJRT_PLUGIN` names.
///
/// ```
#[doc = two_devices!()]
/// # use defn::prelude::*;
/// assert_eq!(pjrt::backend(&pjrt::default_device()?).device_name(), "pjrt<host:0>");
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`device`], and no plugin at all (`Backend`).
pub fn default_device() -> defn_core::Result<Arc<PjrtBackend>> {
    set_host();
    defn_pjrt::backend("device", None, None)
}

/// Lets XLA on the host use the CPU backend: its kernels, and its memory for large copies.
fn set_host() {
    #[cfg(feature = "cpu")]
    {
        set_kernel_compiler(Arc::new(defn_cpu::CpuCompiler::new()));
        set_host_copy(defn_cpu::host_copy);
    }
}

/// A device as a backend, for [`Tensor::backend_transfer`] and [`set_default_backend`](crate::set_default_backend).
///
/// ```
#[doc = two_devices!()]
/// # use defn::prelude::*;
/// let x = Tensor::scalar(2)?.backend_transfer(&pjrt::backend(&pjrt::device("host", 0)?))?;
/// let y = x.multiply(&x)?;
/// assert_eq!(y.core().backend().unwrap().device_name(), "pjrt<host:0>");
/// assert_eq!(y.item::<i32>()?, 4);
/// # Ok::<(), defn::Error>(())
/// ```
pub fn backend(device: &Arc<PjrtBackend>) -> Arc<dyn Backend> {
    device.clone()
}

/// A compiler for the devices of a client. A program runs on the device of its arguments, or on this one if they are on
/// none.
///
/// ```
#[doc = two_devices!()]
/// # use defn::prelude::*;
/// let device = pjrt::device("host", 0)?;
/// let double = jit(|x: Expr| &x + &x).with_compiler(pjrt::compiler(&device)?);
/// assert_eq!(double.call(Tensor::scalar(2)?)?.item::<i32>()?, 4);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// No backend of the host, on which constants are folded: the feature `cpu` is off, and none was set (`Backend`).
pub fn compiler(device: &Arc<PjrtBackend>) -> defn_core::Result<Arc<dyn Compiler>> {
    compiler_with(device, CompilerOptions::default())
}

/// As [`compiler`], with options: flags of XLA, and a folder that keeps compiled programs.
///
/// ```
#[doc = two_devices!()]
/// # use defn::prelude::*;
/// # use defn::pjrt::CompilerOptions;
/// let fast = [("xla_cpu_enable_fast_math".to_owned(), Attribute::Bool(true))];
/// let options = CompilerOptions::parse(&fast)?;
/// let compiler = pjrt::compiler_with(&pjrt::device("host", 0)?, options)?;
/// let double = jit(|x: Expr| &x + &x).with_compiler(compiler);
/// assert_eq!(double.call(Tensor::scalar(2)?)?.item::<i32>()?, 4);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`compiler`].
pub fn compiler_with(
    device: &Arc<PjrtBackend>,
    options: CompilerOptions,
) -> defn_core::Result<Arc<dyn Compiler>> {
    Ok(Arc::new(PjrtCompiler::new(device.clone(), crate::backend::host()?, options)))
}

/// Devices of one client as a mesh, in row-major order.
///
/// ```
#[doc = two_devices!()]
/// # use defn::prelude::*;
/// # use defn::mesh::Mesh;
/// let grid = Mesh::new(vec![("data".into(), 2)])?;
/// let devices = [pjrt::device("host", 0)?, pjrt::device("host", 1)?];
/// assert_eq!(pjrt::mesh(grid.clone(), &devices)?.mesh().count(), 2);
/// assert!(pjrt::mesh(grid, &devices[..1]).is_err());
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Another number of devices than the mesh has, a device that is given twice, and devices of two clients (`Option`).
pub fn mesh(mesh: Mesh, devices: &[Arc<PjrtBackend>]) -> defn_core::Result<Arc<MeshBackend>> {
    MeshBackend::new(mesh, devices.to_vec())
}

/// A compiler for the devices of a mesh. Each device runs the whole function on its own blocks of the arguments, which
/// are tensors that [`lay`] returns. Other arguments, and tensors that the function captures, are whole on each device.
///
/// ```
#[doc = two_devices!()]
/// # use defn::prelude::*;
/// # use defn::mesh::{AllReduceOp, Mesh, Spec};
/// let grid = Mesh::new(vec![("data".into(), 2)])?;
/// let mesh = pjrt::mesh(grid.clone(), &[pjrt::device("host", 0)?, pjrt::device("host", 1)?])?;
/// let all = grid.device_groups("all_reduce", &["data".into()])?;
/// let sum = jit(|x: Expr| x.sum(0, false).all_reduce(AllReduceOp::Sum, &all))
///     .with_compiler(pjrt::mesh_compiler(&mesh)?);
/// let x = pjrt::lay(&Tensor::from_slice(&[1, 2, 3, 4], &[4])?, &mesh, &Spec(vec![vec!["data".into()]]))?;
/// assert_eq!(pjrt::gather(&sum.call(x)?, &mesh, &Spec::default())?.item::<i32>()?, 10);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`compiler`].
pub fn mesh_compiler(mesh: &Arc<MeshBackend>) -> defn_core::Result<Arc<dyn Compiler>> {
    let host = crate::backend::host()?;
    Ok(Arc::new(MeshCompiler::new(mesh.clone(), host, CompilerOptions::default())))
}

/// A tensor split into blocks, one on each device, for functions that [`mesh_compiler`] compiles.
///
/// - Shape: that of a block: the size of each axis divided by the number of devices that `spec` names for it.
/// - Dtypes: any; unchanged.
///
/// ```
#[doc = two_devices!()]
/// # use defn::prelude::*;
/// # use defn::mesh::{Mesh, Spec};
/// let grid = Mesh::new(vec![("data".into(), 2)])?;
/// let mesh = pjrt::mesh(grid, &[pjrt::device("host", 0)?, pjrt::device("host", 1)?])?;
/// let x = Tensor::from_slice(&[1, 2, 3, 4], &[4])?;
/// let blocks = pjrt::lay(&x, &mesh, &Spec(vec![vec!["data".into()]]))?;
/// assert_eq!(blocks.ty().to_string(), "s32[2]");
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A spec that does not fit the tensor or the mesh (`Shape`, `Axis`), and a copy that fails (`Backend`).
pub fn lay(tensor: &Tensor, mesh: &Arc<MeshBackend>, spec: &Spec) -> defn_core::Result<Tensor> {
    let block = spec.block(mesh.mesh(), "the tensor", tensor.ty())?;
    let mut ops = Ops::new(crate::backend::host()?, Source::Unknown);
    let blocks = spec.cut(&mut ops, mesh.mesh(), tensor.core(), &block)?;
    Ok(Tensor(mesh.gather_blocks(&block, &blocks)?))
}

/// The whole tensor on the host, from its blocks on the devices of a mesh.
///
/// - Shape: the size of each axis times the number of devices that `spec` names for it.
/// - Dtypes: any; unchanged.
///
/// ```
#[doc = two_devices!()]
/// # use defn::prelude::*;
/// # use defn::mesh::{Mesh, Spec};
/// let grid = Mesh::new(vec![("data".into(), 2)])?;
/// let mesh = pjrt::mesh(grid, &[pjrt::device("host", 0)?, pjrt::device("host", 1)?])?;
/// let (x, rows) = (Tensor::from_slice(&[1, 2, 3, 4], &[4])?, Spec(vec![vec!["data".into()]]));
/// let blocks = pjrt::lay(&x, &mesh, &rows)?;
/// assert_eq!(pjrt::gather(&blocks, &mesh, &rows)?.to_vec::<i32>()?, [1, 2, 3, 4]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A spec that does not fit the blocks or the mesh (`Shape`, `Axis`), blocks that only other processes have, and devices
/// that fail (`Backend`).
///
/// # Panics
/// If the tensor is not on a mesh.
pub fn gather(tensor: &Tensor, mesh: &Arc<MeshBackend>, spec: &Spec) -> defn_core::Result<Tensor> {
    spec.whole(mesh.mesh(), "the tensor", tensor.ty())?;
    let host = crate::backend::host()?;
    let mut ops = Ops::new(host.clone(), Source::Unknown);
    let blocks = MeshBackend::blocks(tensor.core())?;
    let bring = |devices: &[usize]| mesh.shared_block("gather", &blocks, devices)?.copy_to("gather", &host);
    Ok(Tensor(spec.join(&mut ops, mesh.mesh(), bring)?))
}
