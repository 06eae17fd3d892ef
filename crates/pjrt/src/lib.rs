//! Devices: PJRT plugins, tensors on their devices, eager ops, and compiled programs.
//!
//! A client is [`register`]ed under a name. Its devices are [`backend`]s: they store tensors and run ops, each op as a
//! program that is compiled once. [`PjrtCompiler`] compiles whole graphs.
//!
//! A plugin is a shared library that exports `GetPjrtApi`. It is opened at run time. So one binary drives every device
//! that has a plugin installed, and a build needs neither C++ nor a plugin. `ffi` has the raw declarations, `api` the
//! calls with their safety arguments; no other module is unsafe.
//!
//! Five layers depend only on those before them: `store` (key-value store of several processes), `ffi` (declarations),
//! `api` (calls), `lower` (graphs as StableHLO), and `runtime` (everything with a name or a state). `lower` needs none of
//! the first three.
//!
//! XLA on the host calls kernels of this process where they are faster, if [`set_kernel_compiler`] has set a compiler
//! for them and the plugin has custom calls.
//!
//! The crate `xla` is no alternative: it links `xla_extension`, a C++ archive that no package registry carries, so that
//! each build downloads or compiles it, for one version of XLA and one kind of device. A plugin of the C API is an
//! ordinary wheel. The price is a layout of C structs that must be right, which a test and the load of each plugin
//! check.

mod api;
mod element;
mod error;
mod ffi;
mod lower;
mod options;
mod plugin;
#[cfg(test)]
#[path = "../tests/quick/mod.rs"]
mod quick;
mod runtime;
mod store;
#[cfg(test)]
#[path = "../tests/wheel/mod.rs"]
mod wheel;

/// Clients whose devices are in several processes.
pub mod distributed {
    pub use crate::runtime::distributed::{Options, initialize};
}

pub use api::{
    Buffer, Buffers, Client, CustomCall, Device, DeviceDescription, Event, Executable, ExecutableMemory,
    LoadedExecutable, Memory, MemoryStats, Placement, Topology,
};
pub use element::ElementType;
pub use error::{Code, Error, Result};
pub use lower::{Hardware, LowerError, LoweredProgram, element_type, lower, lower_over};
pub use options::CompileOptions;
pub use plugin::{Attribute, Plugin, Version};
pub use runtime::{
    CacheReport, Caller, ClientSpec, CompilerOptions, DeviceInfo, HostCopy, MeshBackend, MeshCompiler,
    PjrtBackend, PjrtBuffer, PjrtCompiler, PjrtExecutable, Runtime, Target, TargetCompiler, TargetExecutable,
    backend, client_name, client_names, default_client, devices, devices_of, end, library_calls,
    named_plugin, preferred_clients, register, runtime, set_caller, set_default_client, set_host_copy,
    set_kernel_compiler, set_library,
};
