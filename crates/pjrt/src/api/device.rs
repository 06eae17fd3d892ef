//! Devices of a client, their descriptions, and their memories.

use super::{Api, Client, list, named, text};
use crate::error::Result;
use crate::ffi::{self, Struct};
use crate::plugin::Attribute;

/// The properties of a device. They are also known for devices of other processes and of a topology.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceDescription {
    /// Its number, unique among all devices of all processes.
    pub id: i32,
    /// The process that can use the device.
    pub process_index: i32,
    /// The vendor's name, such as `NVIDIA H200`.
    pub kind: String,
    /// A human-readable description.
    pub text: String,
    /// Further properties from the plugin, such as `core_count`.
    pub attributes: Vec<(String, Attribute)>,
}

/// Reads a description.
///
/// # Safety
/// The description is live.
pub(super) unsafe fn describe(api: Api, raw: *mut ffi::DeviceDescription) -> Result<DeviceDescription> {
    let (mut id, mut process) =
        (ffi::DeviceDescriptionIdArgs::new(), ffi::DeviceDescriptionProcessIndexArgs::new());
    let (mut kind, mut debug) =
        (ffi::DeviceDescriptionKindArgs::new(), ffi::DeviceDescriptionDebugStringArgs::new());
    let mut attributes = ffi::DeviceDescriptionAttributesArgs::new();
    (id.device_description, process.device_description, kind.device_description) = (raw, raw, raw);
    (debug.device_description, attributes.device_description) = (raw, raw);
    // SAFETY: guaranteed by the caller; texts and attributes live as long as the description and are copied.
    unsafe {
        api.call(&mut id)?;
        api.call(&mut process)?;
        api.call(&mut kind)?;
        api.call(&mut debug)?;
        api.call(&mut attributes)?;
        Ok(DeviceDescription {
            id: id.id,
            process_index: process.process_index,
            kind: text(kind.device_kind, kind.device_kind_size),
            text: text(debug.debug_string, debug.debug_string_size),
            attributes: named::read(attributes.attributes, attributes.num_attributes),
        })
    }
}

/// A device of a client. It keeps the client alive.
#[derive(Clone)]
pub struct Device {
    client: Client,
    raw: *mut ffi::Device,
}

// SAFETY: devices are constant parts of their client, which any thread may use.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    /// A device of this client.
    ///
    /// # Safety
    /// The client owns the device.
    pub(super) unsafe fn of(client: &Client, raw: *mut ffi::Device) -> Device {
        Device { client: client.clone(), raw }
    }

    pub(super) fn raw(&self) -> *mut ffi::Device {
        self.raw
    }

    /// The client that owns it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    fn api(&self) -> Api {
        self.client.api()
    }

    /// Its properties.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn description(&self) -> Result<DeviceDescription> {
        let mut args = ffi::DeviceGetDescriptionArgs::new();
        args.device = self.raw;
        // SAFETY: the device lives as long as its client, and the description as long as the device.
        unsafe {
            self.api().call(&mut args)?;
            describe(self.api(), args.device_description)
        }
    }

    /// Its hardware id on this machine.
    ///
    /// # Errors
    /// An error from the plugin; devices of other processes have no such id.
    pub fn local_id(&self) -> Result<i32> {
        let mut args = ffi::DeviceLocalHardwareIdArgs::new();
        args.device = self.raw;
        // SAFETY: the device lives as long as its client.
        unsafe { self.api().call(&mut args) }?;
        Ok(args.local_hardware_id)
    }

    /// Whether this process can use it.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn is_addressable(&self) -> Result<bool> {
        let mut args = ffi::DeviceIsAddressableArgs::new();
        args.device = self.raw;
        // SAFETY: the device lives as long as its client.
        unsafe { self.api().call(&mut args) }?;
        Ok(args.is_addressable)
    }

    /// The memories that it can use.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn memories(&self) -> Result<Vec<Memory>> {
        let mut args = ffi::DeviceAddressableMemoriesArgs::new();
        args.device = self.raw;
        // SAFETY: the device lives as long as its client, and its memories as long as the device.
        unsafe {
            self.api().call(&mut args)?;
            let raw = list(args.memories, args.num_memories);
            Ok(raw.iter().map(|&raw| Memory { client: self.client.clone(), raw }).collect())
        }
    }

    /// The memory in which buffers are placed by default.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn default_memory(&self) -> Result<Memory> {
        let mut args = ffi::DeviceDefaultMemoryArgs::new();
        args.device = self.raw;
        // SAFETY: the device lives as long as its client, and its memories as long as the device.
        unsafe { self.api().call(&mut args) }?;
        Ok(Memory { client: self.client.clone(), raw: args.memory })
    }

    /// The usage of its memory.
    ///
    /// # Errors
    /// An error from the plugin: some plugins keep no statistics.
    pub fn memory_stats(&self) -> Result<MemoryStats> {
        let mut args = ffi::DeviceMemoryStatsArgs::new();
        args.device = self.raw;
        // SAFETY: the device lives as long as its client.
        unsafe { self.api().call(&mut args) }?;
        let if_set = |value: i64, is_set: bool| is_set.then_some(value);
        Ok(MemoryStats {
            bytes_in_use: args.bytes_in_use,
            peak_bytes_in_use: if_set(args.peak_bytes_in_use, args.peak_bytes_in_use_is_set),
            allocations: if_set(args.num_allocs, args.num_allocs_is_set),
            bytes_limit: if_set(args.bytes_limit, args.bytes_limit_is_set),
            largest_free_block: if_set(args.largest_free_block_bytes, args.largest_free_block_bytes_is_set),
        })
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        self.raw == other.raw
    }
}

impl Eq for Device {}

/// The usage of a device's memory, in bytes, as far as the plugin reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryStats {
    /// The current usage.
    pub bytes_in_use: i64,
    /// The peak usage.
    pub peak_bytes_in_use: Option<i64>,
    /// The number of allocated blocks.
    pub allocations: Option<i64>,
    /// The usable memory.
    pub bytes_limit: Option<i64>,
    /// The largest block that could be allocated now.
    pub largest_free_block: Option<i64>,
}

/// A memory of a client. It keeps the client alive.
#[derive(Clone)]
pub struct Memory {
    client: Client,
    raw: *mut ffi::Memory,
}

// SAFETY: memories are constant parts of their client, which any thread may use.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// A memory of this client.
    ///
    /// # Safety
    /// The client owns the memory.
    pub(super) unsafe fn of(client: &Client, raw: *mut ffi::Memory) -> Memory {
        Memory { client: client.clone(), raw }
    }

    pub(super) fn raw(&self) -> *mut ffi::Memory {
        self.raw
    }

    /// Its kind, such as `device` or `pinned_host`.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn kind(&self) -> Result<String> {
        let mut args = ffi::MemoryKindArgs::new();
        args.memory = self.raw;
        // SAFETY: the memory and its texts live as long as the client.
        unsafe {
            self.client.api().call(&mut args)?;
            Ok(text(args.kind, args.kind_size))
        }
    }

    /// Its number, unique among all memories.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn id(&self) -> Result<i32> {
        let mut args = ffi::MemoryIdArgs::new();
        args.memory = self.raw;
        // SAFETY: the memory lives as long as the client.
        unsafe { self.client.api().call(&mut args) }?;
        Ok(args.id)
    }
}
