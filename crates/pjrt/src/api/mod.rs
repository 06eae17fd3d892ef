//! Calls through a plugin's function table, each with its safety argument, behind handles that free their objects.
//!
//! Every error object of a plugin becomes an [`Error`] here. A plugin's table that is shorter than ours leaves
//! functions null, and a call of one is an error.
#![allow(unsafe_code)]

mod buffer;
mod client;
mod custom_call;
mod device;
mod event;
mod executable;
mod exit;
mod fork;
mod kernel;
mod key_value;
mod named;
mod topology;
#[cfg(unix)]
mod user;

use std::ffi::{c_char, c_int};
use std::mem::offset_of;
use std::path::Path;

use libloading::Library;

pub use buffer::Buffer;
pub(crate) use buffer::HostView;
pub use client::{Client, Placement};
pub use custom_call::CustomCall;
pub use device::{Device, DeviceDescription, Memory, MemoryStats};
pub use event::Event;
pub use executable::{Buffers, Executable, ExecutableMemory, LoadedExecutable};
pub(crate) use exit::at_exit;
pub(crate) use fork::forks;
pub(crate) use kernel::Kernels;
pub(crate) use key_value::KeyValues;
pub use topology::Topology;
#[cfg(unix)]
pub(crate) use user::user;

use crate::error::{Code, Error, Result};
use crate::ffi::{self, Arguments, Struct};
use crate::plugin::{Attribute, Version};

/// The functions of a loaded plugin. The library is never unloaded: plugins start threads and register handlers, and
/// unloading would remove their code.
#[derive(Clone, Copy)]
pub(crate) struct Api {
    table: &'static ffi::Table,
}

// SAFETY: the table is constant after loading, and its functions may be called from any thread.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

impl Api {
    /// Opens a library, finds its table, checks version and size, and initialises the plugin.
    pub fn load(path: &Path) -> Result<Api> {
        // SAFETY: loading runs the library's initialisers; the caller names a library that it trusts, as for a program
        // that it runs.
        let library = unsafe { Library::new(path) }
            .map_err(|error| Error::Load { path: path.to_owned(), why: reason(&error) })?;
        // SAFETY: the PJRT C API defines the type of the symbol with this name.
        let entry = unsafe { library.get::<ffi::GetPjrtApi>(b"GetPjrtApi\0") }
            .map_err(|_| Error::NoPlugin { path: path.to_owned() })?;
        // SAFETY: it takes no arguments and returns a table that lives as long as the library.
        let theirs = unsafe { entry() };
        if theirs.is_null() {
            return Err(Error::NoPlugin { path: path.to_owned() });
        }
        // SAFETY: not null; the first three fields exist in every version of the API, and later fields are read only if
        // `struct_size` covers them.
        let (size, version) = unsafe {
            (
                (*theirs).struct_size,
                Version { major: (*theirs).version.major, minor: (*theirs).version.minor },
            )
        };
        let required = offset_of!(ffi::Table, event_destroy);
        if version.major != 0 || size < required {
            let Version { major, minor } = version;
            return Err(Error::Version { path: path.to_owned(), major, minor, size, required });
        }
        std::mem::forget(library);
        // Functions that an older plugin's table lacks stay null here; calling one is an error.
        // SAFETY: every field of a table is a pointer, an integer or an optional function, for which zero is valid.
        let mut table: ffi::Table = unsafe { std::mem::zeroed() };
        // SAFETY: both sides have at least that many bytes and do not overlap; all versions of the table begin with the
        // same fields.
        unsafe {
            std::ptr::copy_nonoverlapping(
                theirs.cast::<u8>(),
                (&raw mut table).cast::<u8>(),
                size.min(size_of::<ffi::Table>()),
            );
        }
        let api = Api { table: Box::leak(Box::new(table)) };
        // SAFETY: the arguments contain no pointer.
        unsafe { api.call(&mut ffi::PluginInitializeArgs::new()) }?;
        Ok(api)
    }

    /// The version of the API that the plugin implements.
    pub fn version(self) -> Version {
        Version { major: self.table.version.major, minor: self.table.version.minor }
    }

    /// The type numbers of the extensions, in the order of the plugin's list.
    pub fn extensions(self) -> Vec<i32> {
        self.extension_list().map(|(kind, _)| kind).collect()
    }

    /// The extensions, each after the number of its type.
    fn extension_list(self) -> impl Iterator<Item = (c_int, *mut ffi::ExtensionBase)> {
        let mut next = self.table.extension_start;
        std::iter::from_fn(move || {
            let this = next;
            // SAFETY: every element of the list begins with an `ExtensionBase` and lives as long as the table; the last
            // one is followed by null.
            let extension = unsafe { this.as_ref() }?;
            next = extension.next;
            Some((extension.kind, this))
        })
    }

    /// The plugin's attributes.
    pub fn attributes(self) -> Result<Vec<(String, Attribute)>> {
        let mut args = ffi::PluginAttributesArgs::new();
        // SAFETY: the arguments contain no pointer; the returned array lives as long as the process.
        unsafe {
            self.call(&mut args)?;
            Ok(named::read(args.attributes, args.num_attributes))
        }
    }

    /// Calls the function that takes these arguments and converts its error object to [`Error`].
    ///
    /// # Safety
    /// Every pointer in the arguments is null where the function allows it, or points to what the function expects, for
    /// as long as the API requires.
    unsafe fn call<A: Arguments>(self, args: &mut A) -> Result<()> {
        let Some(function) = A::function(self.table) else {
            let message = "the plugin's table has no such function".to_owned();
            return Err(Error::Plugin { call: A::CALL, code: Code::Unimplemented, message });
        };
        // SAFETY: the layout of the table pairs the function with this type of arguments; the caller guarantees the
        // rest.
        let error = unsafe { function(args) };
        // SAFETY: the caller of a function owns the error object and frees it.
        unsafe { self.check(A::CALL, error) }
    }

    /// Frees an object. Its errors are ignored because no caller could handle them.
    ///
    /// # Safety
    /// As for [`Api::call`]; the objects that the arguments point to are not used afterwards.
    unsafe fn free<A: Arguments>(self, args: &mut A) {
        // SAFETY: guaranteed by the caller. An error means that the object was not freed: a leak, not a hazard.
        let _ = unsafe { self.call(args) };
    }

    /// Converts an error object to [`Error`] and frees it.
    ///
    /// # Safety
    /// The object is null, or live and owned by the caller, who gives up ownership.
    unsafe fn check(self, call: &'static str, error: *mut ffi::PjrtError) -> Result<()> {
        if error.is_null() {
            return Ok(());
        }
        let mut code = ffi::ErrorGetCodeArgs::new();
        code.error = error;
        if let Some(get_code) = ffi::ErrorGetCodeArgs::function(self.table) {
            // SAFETY: the error object is live, and the arguments live across the call, which cannot fail.
            unsafe { get_code(&mut code) };
        }
        let mut message = ffi::ErrorMessageArgs::new();
        message.error = error;
        let mut said = String::new();
        if let Some(get_message) = self.table.error_message {
            // SAFETY: as above; the text lives as long as the error object and is copied immediately.
            said = unsafe {
                get_message(&mut message);
                text(message.message, message.message_size)
            };
        }
        if let Some(destroy) = self.table.error_destroy {
            let mut args = ffi::ErrorDestroyArgs::new();
            args.error = error;
            // SAFETY: the error object is live, and not used afterwards.
            unsafe { destroy(&mut args) };
        }
        Err(Error::Plugin { call, code: Code::from_raw(code.code), message: said })
    }
}

/// The dynamic loader's message; `libloading` itself says only that loading failed.
fn reason(error: &libloading::Error) -> String {
    match std::error::Error::source(error) {
        Some(loader) => loader.to_string(),
        None => error.to_string(),
    }
}

/// Copies a text of the plugin.
///
/// # Safety
/// `start` is null, or points to `size` readable bytes.
unsafe fn text(start: *const c_char, size: usize) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), size) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// A list that belongs to the plugin, which may use null for an empty list.
///
/// # Safety
/// `start` is null, or points to `size` values that outlive the use of the result.
unsafe fn list<'a, T>(start: *const T, size: usize) -> &'a [T] {
    // SAFETY: guaranteed by the caller.
    if start.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(start, size) } }
}
