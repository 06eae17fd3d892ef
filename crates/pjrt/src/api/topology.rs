//! Topologies: descriptions of devices to compile for; the devices need not be present.

use std::ffi::c_char;

use super::client::mlir;
use super::{Api, DeviceDescription, Executable, device, list, named, text};
use crate::error::Result;
use crate::ffi::{self, Struct};
use crate::options::CompileOptions;
use crate::plugin::Attribute;

/// Devices to compile for, which need not be present.
pub struct Topology {
    api: Api,
    raw: *mut ffi::TopologyDescription,
}

// SAFETY: a topology is constant.
unsafe impl Send for Topology {}
// SAFETY: as above.
unsafe impl Sync for Topology {}

impl Drop for Topology {
    fn drop(&mut self) {
        let mut args = ffi::TopologyDescriptionDestroyArgs::new();
        args.topology = self.raw;
        // SAFETY: owned, and not used afterwards.
        unsafe { self.api.free(&mut args) };
    }
}

impl Topology {
    pub(crate) fn new(api: Api, name: &str, options: &[(String, Attribute)]) -> Result<Topology> {
        let values = named::write(options);
        let mut args = ffi::TopologyDescriptionCreateArgs::new();
        (args.topology_name, args.topology_name_size) = (name.as_ptr().cast::<c_char>(), name.len());
        (args.create_options, args.num_options) = (values.as_ptr(), values.len());
        // SAFETY: name and options live across the call; this side owns the topology.
        unsafe { api.call(&mut args) }?;
        Ok(Topology { api, raw: args.topology })
    }

    /// The platform, such as `cuda`.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn platform_name(&self) -> Result<String> {
        let mut args = ffi::TopologyDescriptionPlatformNameArgs::new();
        args.topology = self.raw;
        // SAFETY: the object is live, and the text lives as long as it.
        unsafe {
            self.api.call(&mut args)?;
            Ok(text(args.platform_name, args.platform_name_size))
        }
    }

    /// The devices.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn devices(&self) -> Result<Vec<DeviceDescription>> {
        let mut args = ffi::TopologyDescriptionGetDeviceDescriptionsArgs::new();
        args.topology = self.raw;
        // SAFETY: the topology is live, and the descriptions live as long as it.
        unsafe {
            self.api.call(&mut args)?;
            let raw = list(args.descriptions, args.num_descriptions);
            raw.iter().map(|&raw| device::describe(self.api, raw)).collect()
        }
    }

    /// Compiles a program for these devices, which need not be present.
    ///
    /// # Errors
    /// An error from the plugin: a program that it cannot parse or compile, or tools that it needs and does not find.
    pub fn compile(&self, program: &[u8], options: &CompileOptions) -> Result<Executable> {
        let options = options.to_bytes(program);
        let program = mlir(program);
        let mut args = ffi::CompileArgs::new();
        (args.topology, args.program) = (self.raw, &raw const program);
        (args.compile_options, args.compile_options_size) =
            (options.as_ptr().cast::<c_char>(), options.len());
        // SAFETY: the topology is live; program and options live across the call; a null client is allowed; this side
        // owns the executable.
        unsafe {
            self.api.call(&mut args)?;
            Ok(Executable::from_raw(self.api, args.executable))
        }
    }
}
