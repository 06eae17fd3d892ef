//! A client: a plugin's hold on the devices of this process.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use defn_core::backend::HostMemory;

use super::{Api, Buffer, Device, Event, LoadedExecutable, Memory, list, named, text};
use crate::element::ElementType;
use crate::error::{Error, Result};
use crate::ffi::{self, Struct};
use crate::options::CompileOptions;
use crate::plugin::Attribute;

/// A plugin's hold on the devices of this process. Cheap to clone; the last of its clones, devices, buffers and
/// executables frees it.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    api: Api,
    raw: *mut ffi::Client,
}

// SAFETY: the interface lets any thread use a client.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        let mut args = ffi::ClientDestroyArgs::new();
        args.client = self.raw;
        // SAFETY: owned and not used after; everything that belongs to it holds a reference and is gone.
        unsafe { self.api.free(&mut args) };
    }
}

impl Client {
    pub(crate) fn new(api: Api, options: &[(String, Attribute)]) -> Result<Client> {
        let values = named::write(options);
        let mut args = ffi::ClientCreateArgs::new();
        (args.create_options, args.num_options) = (values.as_ptr(), values.len());
        // SAFETY: the options live across the call; callbacks for several processes are null, which is allowed.
        unsafe { api.call(&mut args) }?;
        Ok(Client(Arc::new(Inner { api, raw: args.client })))
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
    /// The plugin's own.
    pub fn platform_name(&self) -> Result<String> {
        let mut args = ffi::ClientPlatformNameArgs::new();
        args.client = self.raw();
        // SAFETY: the client is live, and the text lives as long as it.
        unsafe {
            self.api().call(&mut args)?;
            Ok(text(args.platform_name, args.platform_name_size))
        }
    }

    /// The platform's version, a text for people.
    ///
    /// # Errors
    /// The plugin's own.
    pub fn platform_version(&self) -> Result<String> {
        let mut args = ffi::ClientPlatformVersionArgs::new();
        args.client = self.raw();
        // SAFETY: the client is live, and the text lives as long as it.
        unsafe {
            self.api().call(&mut args)?;
            Ok(text(args.platform_version, args.platform_version_size))
        }
    }

    /// All devices, those of other processes included.
    ///
    /// # Errors
    /// The plugin's own.
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
    /// The plugin's own.
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

    /// Compiles a program, StableHLO as text or bytecode, for devices of this client.
    ///
    /// # Errors
    /// The plugin's own: a program that it cannot parse or compile.
    pub fn compile(&self, program: &[u8], options: &CompileOptions) -> Result<LoadedExecutable> {
        let options = options.to_bytes(program);
        let program = mlir(program);
        let mut args = ffi::ClientCompileArgs::new();
        (args.client, args.program) = (self.raw(), &raw const program);
        (args.compile_options, args.compile_options_size) =
            (options.as_ptr().cast::<c_char>(), options.len());
        // SAFETY: the client is live; program and options live across the call; the executable is ours.
        unsafe {
            self.api().call(&mut args)?;
            LoadedExecutable::own(self, args.executable)
        }
    }

    /// Loads what [`super::Executable::serialize`] wrote, on this plugin in this version.
    ///
    /// # Errors
    /// The plugin's own: bytes of another plugin or for other devices.
    pub fn load(&self, serialized: &[u8]) -> Result<LoadedExecutable> {
        let mut args = ffi::ExecutableDeserializeAndLoadArgs::new();
        args.client = self.raw();
        args.serialized_executable = serialized.as_ptr().cast::<c_char>();
        args.serialized_executable_size = serialized.len();
        // SAFETY: the client is live; the bytes live across the call; the executable is ours.
        unsafe {
            self.api().call(&mut args)?;
            LoadedExecutable::own(self, args.loaded_executable)
        }
    }

    /// Copies elements in row-major order to a device; the bytes are read before this returns.
    ///
    /// # Errors
    /// Bytes that are too few or too many for the shape, or the plugin's own: a type that it lacks, no memory.
    pub fn buffer(
        &self,
        data: &[u8],
        element: ElementType,
        dims: &[i64],
        place: Place<'_>,
    ) -> Result<Buffer> {
        let want = element.bytes(dims);
        if want != Some(data.len()) {
            return Err(Error::Size { given: data.len(), element, dims: dims.to_vec() });
        }
        let mut args = ffi::ClientBufferFromHostBufferArgs::new();
        args.client = self.raw();
        args.data = data.as_ptr().cast::<c_void>();
        args.r#type = element.to_raw();
        (args.dims, args.num_dims) = (dims.as_ptr(), dims.len());
        args.host_buffer_semantics = ffi::IMMUTABLE_ONLY_DURING_CALL;
        match place {
            Place::Device(device) => args.device = device.raw(),
            Place::Memory(memory) => args.memory = memory.raw(),
        }
        // SAFETY: the client is live; data, which is as long as the shape needs, and dims live across the call,
        // after which they are not read; the event and the buffer are ours.
        unsafe {
            self.api().call(&mut args)?;
            drop(Event::own(self.api(), args.done_with_host_buffer));
            Ok(Buffer::own(self, args.buffer))
        }
    }

    /// A buffer of elements that lie in memory of the host in row-major order already, on a device that reads it. The
    /// plugin reads the memory and does not write it, unless a program is given the buffer to use up.
    ///
    /// # Errors
    /// Bytes that are too few or too many for the shape, or the plugin's own: memory that it does not read, or that is
    /// not aligned as it needs.
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
        let held = Box::into_raw(Box::new(memory));
        args.on_delete_callback = Some(let_go);
        args.on_delete_callback_arg = held.cast::<c_void>();
        // SAFETY: client and device are live; dims live across the call; the memory, which is as long as the shape
        // needs, is held until the plugin calls back. The buffer is ours.
        // Whether a plugin that refuses calls back is not said: at worst the memory is held for ever.
        unsafe {
            self.api().call(&mut args)?;
            Ok(Buffer::own(self, args.buffer))
        }
    }
}

/// Lets go of memory that a plugin has read so far.
///
/// # Safety
/// The argument is what [`Client::view`] gave to the plugin, which calls this once.
unsafe extern "C" fn let_go(_: *mut c_void, memory: *mut c_void) {
    // SAFETY: the caller's promise; the box was leaked for this.
    drop(unsafe { Box::from_raw(memory.cast::<HostMemory>()) });
}

impl PartialEq for Client {
    fn eq(&self, other: &Client) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Client {}

/// Where a buffer goes.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    /// To a device's default memory.
    Device(&'a Device),
    /// To a memory.
    Memory(&'a Memory),
}

/// A program as the plugin reads it; it borrows the text.
pub(super) fn mlir(program: &[u8]) -> ffi::Program {
    let mut raw = ffi::Program::new();
    // The interface declares the code mutable for the calls that write it.
    raw.code = program.as_ptr().cast::<c_char>().cast_mut();
    raw.code_size = program.len();
    (raw.format, raw.format_size) = (c"mlir".as_ptr(), 4);
    raw
}
