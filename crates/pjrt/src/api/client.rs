//! A client: the plugin's access to the devices of this process, and what it knows of those of others.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use defn_core::backend::HostMemory;

use super::{Api, Buffer, Device, Event, Kernels, KeyValues, LoadedExecutable, Memory, list, named, text};
use crate::element::ElementType;
use crate::error::{Error, Result};
use crate::ffi::{self, Struct};
use crate::options::CompileOptions;
use crate::plugin::Attribute;

/// The plugin's access to the devices of this process. Clones are cheap. It is freed with the last of its clones,
/// devices, buffers and executables.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    api: Api,
    raw: *mut ffi::Client,
}

// SAFETY: the PJRT C API allows any thread to use a client.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        let mut args = ffi::ClientDestroyArgs::new();
        args.client = self.raw;
        // SAFETY: owned, and not used afterwards; all dependent objects hold a reference and were dropped before.
        unsafe { self.api.free(&mut args) };
    }
}

impl Client {
    pub(crate) fn new(
        api: Api,
        options: &[(String, Attribute)],
        key_values: Option<&'static KeyValues>,
    ) -> Result<Client> {
        let values = named::write(options);
        let mut args = ffi::ClientCreateArgs::new();
        (args.create_options, args.num_options) = (values.as_ptr(), values.len());
        if let Some(key_values) = key_values {
            key_values.set(&mut args);
        }
        // SAFETY: the options live across the call; what the callbacks use lives as long as the process, and without
        // other processes the callbacks are null, which is allowed.
        unsafe { api.call(&mut args) }?;
        Ok(Client(Arc::new(Inner { api, raw: args.client })))
    }

    /// As [`Api::register_kernels`], for the programs of this client's plugin.
    pub(crate) fn register_kernels(&self, kernels: Kernels) -> bool {
        self.api().register_kernels(kernels)
    }

    pub(super) fn api(&self) -> Api {
        self.0.api
    }

    pub(super) fn raw(&self) -> *mut ffi::Client {
        self.0.raw
    }

    /// The platform, such as `cpu` or `cuda`.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn platform_name(&self) -> Result<String> {
        let mut args = ffi::ClientPlatformNameArgs::new();
        args.client = self.raw();
        // SAFETY: the client is live, and the text lives as long as it.
        unsafe {
            self.api().call(&mut args)?;
            Ok(text(args.platform_name, args.platform_name_size))
        }
    }

    /// The platform's version, in human-readable text.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn platform_version(&self) -> Result<String> {
        let mut args = ffi::ClientPlatformVersionArgs::new();
        args.client = self.raw();
        // SAFETY: the client is live, and the text lives as long as it.
        unsafe {
            self.api().call(&mut args)?;
            Ok(text(args.platform_version, args.platform_version_size))
        }
    }

    /// All devices, including those of other processes.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn devices(&self) -> Result<Vec<Device>> {
        let mut args = ffi::ClientDevicesArgs::new();
        args.client = self.raw();
        // SAFETY: the client is live, and its devices live as long as it.
        unsafe {
            self.api().call(&mut args)?;
            Ok(list(args.devices, args.num_devices).iter().map(|&raw| Device::of(self, raw)).collect())
        }
    }

    /// The devices that this process can use.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn addressable_devices(&self) -> Result<Vec<Device>> {
        let mut args = ffi::ClientAddressableDevicesArgs::new();
        args.client = self.raw();
        // SAFETY: the client is live, and its devices live as long as it.
        unsafe {
            self.api().call(&mut args)?;
            let raw = list(args.addressable_devices, args.num_addressable_devices);
            Ok(raw.iter().map(|&raw| Device::of(self, raw)).collect())
        }
    }

    /// Compiles a program (StableHLO as text or bytecode) for devices of this client.
    ///
    /// # Errors
    /// An error from the plugin: a program that it cannot parse or compile.
    pub fn compile(&self, program: &[u8], options: &CompileOptions) -> Result<LoadedExecutable> {
        let options = options.to_bytes(program);
        let program = mlir(program);
        let mut args = ffi::ClientCompileArgs::new();
        (args.client, args.program) = (self.raw(), &raw const program);
        (args.compile_options, args.compile_options_size) =
            (options.as_ptr().cast::<c_char>(), options.len());
        // SAFETY: the client is live; program and options live across the call; this side owns the executable.
        unsafe {
            self.api().call(&mut args)?;
            LoadedExecutable::from_raw(self, args.executable)
        }
    }

    /// Loads bytes that [`super::Executable::serialize`] wrote with the same version of the same plugin.
    ///
    /// # Errors
    /// An error from the plugin: bytes of another plugin or for other devices.
    pub fn load(&self, serialized: &[u8]) -> Result<LoadedExecutable> {
        let mut args = ffi::ExecutableDeserializeAndLoadArgs::new();
        args.client = self.raw();
        args.serialized_executable = serialized.as_ptr().cast::<c_char>();
        args.serialized_executable_size = serialized.len();
        // SAFETY: the client is live; the bytes live across the call; this side owns the executable.
        unsafe {
            self.api().call(&mut args)?;
            LoadedExecutable::from_raw(self, args.loaded_executable)
        }
    }

    /// Copies elements in row-major order to a device. The bytes are read before this function returns.
    ///
    /// # Errors
    /// A number of bytes that does not match the shape, or an error from the plugin: an unsupported type, out of
    /// memory.
    pub fn buffer(
        &self,
        data: &[u8],
        element: ElementType,
        dims: &[i64],
        placement: Placement<'_>,
    ) -> Result<Buffer> {
        let expected_bytes = element.bytes(dims);
        if expected_bytes != Some(data.len()) {
            return Err(Error::Size { given: data.len(), element, dims: dims.to_vec() });
        }
        let mut args = ffi::ClientBufferFromHostBufferArgs::new();
        args.client = self.raw();
        args.data = data.as_ptr().cast::<c_void>();
        args.r#type = element.to_raw();
        (args.dims, args.num_dims) = (dims.as_ptr(), dims.len());
        args.host_buffer_semantics = ffi::IMMUTABLE_ONLY_DURING_CALL;
        match placement {
            Placement::Device(device) => args.device = device.raw(),
            Placement::Memory(memory) => args.memory = memory.raw(),
        }
        // SAFETY: the client is live; `data`, which is as long as the shape needs, and `dims` live across the call and
        // are not read after it; this side owns the event and the buffer.
        unsafe {
            self.api().call(&mut args)?;
            drop(Event::from_raw(self.api(), args.done_with_host_buffer));
            Ok(Buffer::from_raw(self, args.buffer))
        }
    }

    /// A buffer over elements that already are in host memory in row-major order, on a device that can read that
    /// memory. The plugin reads the memory and does not write it, unless the buffer is donated to a program.
    ///
    /// # Errors
    /// A number of bytes that does not match the shape, or an error from the plugin: memory that it cannot read, or
    /// that is not aligned as it needs.
    pub(crate) fn view(
        &self,
        memory: HostMemory,
        element: ElementType,
        dims: &[i64],
        device: &Device,
    ) -> Result<Buffer> {
        let given = memory.bytes().len();
        if element.bytes(dims) != Some(given) {
            return Err(Error::Size { given, element, dims: dims.to_vec() });
        }
        let mut args = ffi::ClientCreateViewOfDeviceBufferArgs::new();
        args.client = self.raw();
        args.device_buffer_ptr = memory.bytes().as_ptr().cast_mut().cast::<c_void>();
        (args.dims, args.num_dims) = (dims.as_ptr(), dims.len());
        args.element_type = element.to_raw();
        args.device = device.raw();
        let memory = Box::into_raw(Box::new(memory));
        args.on_delete_callback = Some(release_memory);
        args.on_delete_callback_arg = memory.cast::<c_void>();
        // SAFETY: client and device are live; `dims` lives across the call; the memory, which is as long as the shape
        // needs, is held until the plugin calls back. This side owns the buffer. The API does not say whether a plugin
        // that returns an error also calls back: at worst the memory leaks.
        unsafe {
            self.api().call(&mut args)?;
            Ok(Buffer::from_raw(self, args.buffer))
        }
    }
}

/// Releases memory that a plugin no longer reads.
///
/// # Safety
/// The argument is the pointer that [`Client::view`] gave to the plugin, which calls this function once.
unsafe extern "C" fn release_memory(_: *mut c_void, memory: *mut c_void) {
    // SAFETY: guaranteed by the caller; the box was leaked for this call.
    drop(unsafe { Box::from_raw(memory.cast::<HostMemory>()) });
}

impl PartialEq for Client {
    fn eq(&self, other: &Client) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Client {}

/// The destination of a buffer.
#[derive(Clone, Copy)]
pub enum Placement<'a> {
    /// The device's default memory.
    Device(&'a Device),
    /// A specific memory.
    Memory(&'a Memory),
}

/// A program in the plugin's format; it borrows the text.
pub(super) fn mlir(program: &[u8]) -> ffi::Program {
    let mut raw = ffi::Program::new();
    // The API declares the code mutable because some calls write it.
    raw.code = program.as_ptr().cast::<c_char>().cast_mut();
    raw.code_size = program.len();
    (raw.format, raw.format_size) = (c"mlir".as_ptr(), 4);
    raw
}
