//! Executables: compiled programs, with or without the devices to run on.

use std::ffi::{c_char, c_int};
use std::ptr;

use smallvec::SmallVec;

use super::{Api, Buffer, Client, Device, list, text};
use crate::element::ElementType;
use crate::error::{Error, Result};
use crate::ffi::{self, Struct};

/// A compiled program, not tied to the devices of this process.
pub struct Executable {
    api: Api,
    raw: *mut ffi::Executable,
}

// SAFETY: the PJRT C API allows any thread to use an executable, which is constant.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

impl Drop for Executable {
    fn drop(&mut self) {
        let mut args = ffi::ExecutableDestroyArgs::new();
        args.executable = self.raw;
        // SAFETY: owned, and not used afterwards.
        unsafe { self.api.free(&mut args) };
    }
}

/// The memory use of a program on a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the interface")]
pub struct ExecutableMemory {
    pub code: i64,
    pub arguments: i64,
    pub outputs: i64,
    /// Outputs that are stored in the memory of arguments.
    pub aliases: i64,
    pub temporaries: i64,
}

impl Executable {
    /// Takes ownership of an executable.
    ///
    /// # Safety
    /// The executable is live and owned by the caller, who gives up ownership.
    pub(super) unsafe fn from_raw(api: Api, raw: *mut ffi::Executable) -> Executable {
        Executable { api, raw }
    }

    /// The program's name.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn name(&self) -> Result<String> {
        let mut args = ffi::ExecutableNameArgs::new();
        args.executable = self.raw;
        // SAFETY: the object is live, and the text lives as long as it.
        unsafe {
            self.api.call(&mut args)?;
            Ok(text(args.executable_name, args.executable_name_size))
        }
    }

    /// The number of results.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn num_outputs(&self) -> Result<usize> {
        let mut args = ffi::ExecutableNumOutputsArgs::new();
        args.executable = self.raw;
        // SAFETY: the executable is live.
        unsafe { self.api.call(&mut args) }?;
        Ok(args.num_outputs)
    }

    /// The element types and dimensions of the results.
    ///
    /// # Errors
    /// An error from the plugin, or a type that this crate does not know.
    pub fn outputs(&self) -> Result<Vec<(ElementType, Vec<i64>)>> {
        let (mut types, mut dims) =
            (ffi::ExecutableOutputElementTypesArgs::new(), ffi::ExecutableOutputDimensionsArgs::new());
        (types.executable, dims.executable) = (self.raw, self.raw);
        // SAFETY: the executable is live, and the lists live as long as it. `dims` is the concatenation of all
        // dimensions, and `dim_sizes` has the ranks.
        let (types, mut all, ranks) = unsafe {
            self.api.call(&mut types)?;
            self.api.call(&mut dims)?;
            let ranks = list(dims.dim_sizes, dims.num_outputs);
            let types = list(types.output_types.cast_const(), types.num_output_types);
            (types, list(dims.dims, ranks.iter().sum()), ranks)
        };
        let mut outputs = Vec::with_capacity(types.len());
        for (&element, &rank) in types.iter().zip(ranks) {
            let (sizes, rest) = all.split_at(rank);
            outputs.push((ElementType::from_raw(element)?, sizes.to_vec()));
            all = rest;
        }
        Ok(outputs)
    }

    /// The size of its code on the device, in bytes.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn code_bytes(&self) -> Result<i64> {
        let mut args = ffi::ExecutableSizeOfGeneratedCodeInBytesArgs::new();
        args.executable = self.raw;
        // SAFETY: the executable is live.
        unsafe { self.api.call(&mut args) }?;
        Ok(args.size_in_bytes)
    }

    /// The memory that a run needs.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn memory(&self) -> Result<ExecutableMemory> {
        let mut args = ffi::ExecutableGetCompiledMemoryStatsArgs::new();
        args.executable = self.raw;
        // SAFETY: the executable is live.
        unsafe { self.api.call(&mut args) }?;
        Ok(ExecutableMemory {
            code: args.generated_code_size_in_bytes,
            arguments: args.argument_size_in_bytes,
            outputs: args.output_size_in_bytes,
            aliases: args.alias_size_in_bytes,
            temporaries: args.temp_size_in_bytes,
        })
    }

    /// The format and the code of the program after the plugin's optimisations.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn optimized_program(&self) -> Result<(String, Vec<u8>)> {
        let mut program = ffi::Program::new();
        let mut args = ffi::ExecutableOptimizedProgramArgs::new();
        (args.executable, args.program) = (self.raw, &raw mut program);
        // SAFETY: the executable is live; without memory for the code the call returns the size that it needs.
        unsafe { self.api.call(&mut args) }?;
        let mut code = vec![0_u8; program.code_size];
        program.code = code.as_mut_ptr().cast::<c_char>();
        // SAFETY: the executable is live; the memory has the size that the call asked for; the format is a constant of
        // the plugin.
        let format = unsafe {
            self.api.call(&mut args)?;
            text(program.format, program.format_size)
        };
        Ok((format, code))
    }

    /// The executable as bytes, which the same version of the same plugin can load.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn serialize(&self) -> Result<Vec<u8>> {
        let mut args = ffi::ExecutableSerializeArgs::new();
        args.executable = self.raw;
        // SAFETY: the executable is live; the bytes live until the accompanying object is freed, by its own function.
        unsafe {
            self.api.call(&mut args)?;
            let bytes = list(args.serialized_bytes.cast::<u8>(), args.serialized_bytes_size).to_vec();
            if let Some(free) = args.serialized_executable_deleter {
                free(args.serialized_executable);
            }
            Ok(bytes)
        }
    }
}

/// A compiled program on devices of a client. It keeps the client alive.
pub struct LoadedExecutable {
    client: Client,
    raw: *mut ffi::LoadedExecutable,
    executable: Executable,
    outputs: usize,
}

// SAFETY: the PJRT C API allows any thread to run an executable.
unsafe impl Send for LoadedExecutable {}
// SAFETY: as above.
unsafe impl Sync for LoadedExecutable {}

impl Drop for LoadedExecutable {
    fn drop(&mut self) {
        let mut args = ffi::LoadedExecutableDestroyArgs::new();
        args.executable = self.raw;
        // SAFETY: owned, and not used afterwards; started runs keep what they need alive.
        unsafe { self.client.api().free(&mut args) };
    }
}

/// The results of a run.
pub type Buffers = SmallVec<[Buffer; 2]>;

impl LoadedExecutable {
    /// Takes ownership of a loaded executable.
    ///
    /// # Safety
    /// The executable is live, belongs to this client, and is owned by the caller, who gives up ownership.
    pub(super) unsafe fn from_raw(
        client: &Client,
        raw: *mut ffi::LoadedExecutable,
    ) -> Result<LoadedExecutable> {
        let mut args = ffi::LoadedExecutableGetExecutableArgs::new();
        args.loaded_executable = raw;
        // SAFETY: the loaded executable is live; this side owns the executable that is returned.
        let executable = unsafe {
            client.api().call(&mut args)?;
            Executable::from_raw(client.api(), args.executable)
        };
        let outputs = executable.num_outputs()?;
        Ok(LoadedExecutable { client: client.clone(), raw, executable, outputs })
    }

    /// The client that owns it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The program, independent of devices.
    pub fn executable(&self) -> &Executable {
        &self.executable
    }

    /// The devices on which it runs, one for each argument list.
    ///
    /// # Errors
    /// An error from the plugin.
    pub fn devices(&self) -> Result<Vec<Device>> {
        let mut args = ffi::LoadedExecutableAddressableDevicesArgs::new();
        args.executable = self.raw;
        // SAFETY: the executable is live; its devices belong to its client.
        unsafe {
            self.client.api().call(&mut args)?;
            let raw = list(args.addressable_devices, args.num_addressable_devices);
            Ok(raw.iter().map(|&raw| Device::of(&self.client, raw)).collect())
        }
    }

    /// Starts a run on one device: its own, or `device` if it was compiled as portable.
    ///
    /// Arguments that the program aliases with a result are donated (used up), except those at the positions `keep`.
    ///
    /// # Errors
    /// An error from the plugin: arguments of other types, on other devices, or already donated; out of memory.
    pub fn run(&self, arguments: &[&Buffer], keep: &[i64], device: Option<&Device>) -> Result<Buffers> {
        self.run_on(arguments.iter().copied(), keep, device)
    }

    /// Like [`LoadedExecutable::run`], with the arguments from an iterator.
    pub(crate) fn run_on<'a>(
        &self,
        arguments: impl Iterator<Item = &'a Buffer>,
        keep: &[i64],
        device: Option<&Device>,
    ) -> Result<Buffers> {
        // Most runs are of this kind and short: their lists are on the stack.
        let raw: SmallVec<[*mut ffi::Buffer; 8]> = arguments.map(Buffer::raw).collect();
        let mut outputs: SmallVec<[*mut ffi::Buffer; 8]> = SmallVec::from_elem(ptr::null_mut(), self.outputs);
        // SAFETY: one argument list, of `raw.len()` buffers, and space for all results of the program.
        unsafe { self.start(&[raw.as_ptr()], raw.len(), &[outputs.as_mut_ptr()], keep, device) }?;
        // SAFETY: the run was started and has written a buffer that this side owns to every place.
        Ok(outputs.iter().map(|&raw| unsafe { Buffer::from_raw(&self.client, raw) }).collect())
    }

    /// Starts a run on several devices at once, one for each argument list.
    ///
    /// # Errors
    /// Lists of different lengths, or an error from the plugin, as for [`LoadedExecutable::run`].
    pub fn run_all(&self, arguments: &[&[&Buffer]], keep: &[i64]) -> Result<Vec<Vec<Buffer>>> {
        let lists = arguments;
        let count = lists.first().map_or(0, |list| list.len());
        if let Some(other) = lists.iter().find(|list| list.len() != count) {
            return Err(Error::Arguments { one: count, other: other.len() });
        }
        let arguments: Vec<Vec<*mut ffi::Buffer>> =
            lists.iter().map(|list| list.iter().map(|buffer| buffer.raw()).collect()).collect();
        let arguments: Vec<*const *mut ffi::Buffer> = arguments.iter().map(Vec::as_ptr).collect();
        let mut outputs = vec![vec![ptr::null_mut::<ffi::Buffer>(); self.outputs]; lists.len()];
        let output_lists: Vec<*mut *mut ffi::Buffer> = outputs.iter_mut().map(Vec::as_mut_ptr).collect();
        // SAFETY: lists of the same length, and for each list space for all results of the program.
        unsafe { self.start(&arguments, count, &output_lists, keep, None) }?;
        // SAFETY: the run was started and has written a buffer that this side owns to every place.
        let from_raw = |raw: &*mut ffi::Buffer| unsafe { Buffer::from_raw(&self.client, *raw) };
        Ok(outputs.iter().map(|list| list.iter().map(from_raw).collect()).collect())
    }

    /// Starts a run.
    ///
    /// # Safety
    /// `arguments` has one list of `count` live buffers per device, and `outputs` as many lists, each with space for
    /// all results of the program.
    unsafe fn start(
        &self,
        arguments: &[*const *mut ffi::Buffer],
        count: usize,
        outputs: &[*mut *mut ffi::Buffer],
        keep: &[i64],
        device: Option<&Device>,
    ) -> Result<()> {
        let mut options = ffi::ExecuteOptions::new();
        (options.non_donatable_input_indices, options.num_non_donatable_input_indices) =
            (keep.as_ptr(), keep.len());
        let mut args = ffi::LoadedExecutableExecuteArgs::new();
        (args.executable, args.options) = (self.raw, &raw mut options);
        (args.argument_lists, args.num_devices, args.num_args) = (arguments.as_ptr(), arguments.len(), count);
        args.output_lists = outputs.as_ptr();
        args.execute_device = device.map_or(ptr::null_mut(), Device::raw);
        // SAFETY: the executable is live; the caller guarantees the lists; no completion events are requested.
        unsafe { self.client.api().call(&mut args) }
    }
}

const _: () = assert!(size_of::<c_int>() == size_of::<i32>());
