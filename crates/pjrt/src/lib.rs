//! Devices: PJRT plugins, tensors on the devices that they drive, ops at once, and compiled programs.
//!
//! A client is [`register`]ed under a name, and its devices are [`backend`]s: tensors are placed on them, and ops run
//! there, each as a program that is compiled once. [`PjrtCompiler`] compiles whole graphs.
//!
//! A plugin is a shared library that exports `GetPjrtApi`. It is opened at run time, so that one binary drives
//! whatever device a plugin was installed for, and building needs neither C++ nor the plugin. Raw declarations
//! are in `ffi`, the calls with their safety arguments in `api`; nothing else is unsafe.

mod api;
mod element;
mod error;
mod ffi;
mod lower;
mod options;
mod plugin;
mod runtime;
#[cfg(test)]
#[path = "../tests/wheel/mod.rs"]
mod wheel;

pub use api::{
    Buffer, Buffers, Client, Device, DeviceDescription, Event, Executable, ExecutableMemory,
    LoadedExecutable, Memory, MemoryStats, Place, Topology,
};
pub use element::ElementType;
pub use error::{Code, Error, Result};
pub use lower::{Hardware, LowerError, Program, element_type, lower, lower_over};
pub use options::CompileOptions;
pub use plugin::{Attribute, Plugin, Version};
pub use runtime::{
    CacheReport, Caller, ClientSpec, CompilerOptions, DeviceInfo, MeshBackend, MeshCompiler, PjrtBackend,
    PjrtBuffer, PjrtCompiler, PjrtExecutable, Runtime, Target, TargetCompiler, TargetExecutable, backend,
    client_name, client_names, default_client, devices, devices_of, end, named_plugin, preferred_clients,
    register, runtime, set_caller, set_default_client,
};
