//! Calls through a plugin's table, each with its safety argument.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int};
use std::mem::offset_of;
use std::path::Path;
use std::ptr;

use libloading::Library;

use crate::error::{Code, Error, Result};
use crate::ffi;
use crate::plugin::{Attribute, Version};

/// A loaded plugin and its table. The library stays loaded for the life of the process: plugins start threads
/// and register handlers that unloading would pull the code from under.
#[derive(Clone, Copy)]
pub(crate) struct Api {
    table: &'static ffi::Api,
}

// SAFETY: the table is constant after loading, and its functions may be called from any thread.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

impl Api {
    /// Opens a library, finds its table, checks version and size, and initialises the plugin.
    pub fn load(path: &Path) -> Result<Api> {
        // SAFETY: loading runs the library's initialisers; the caller names a library that it trusts, as it
        // does when it runs a program.
        let library = unsafe { Library::new(path) }
            .map_err(|error| Error::Load { path: path.to_owned(), why: error.to_string() })?;
        // SAFETY: a symbol of this name has this type by the definition of the interface.
        let entry = unsafe { library.get::<ffi::GetPjrtApi>(b"GetPjrtApi\0") }
            .map_err(|_| Error::NoPlugin { path: path.to_owned() })?;
        // SAFETY: it takes no arguments and returns a table that lives as long as the library.
        let table = unsafe { entry() };
        if table.is_null() {
            return Err(Error::NoPlugin { path: path.to_owned() });
        }
        // SAFETY: not null; the first three fields exist in every version of the interface, and nothing past
        // them is read before `struct_size` says that it is there.
        let (size, version) = unsafe {
            ((*table).struct_size, Version { major: (*table).version.major, minor: (*table).version.minor })
        };
        let required = offset_of!(ffi::Api, plugin_attributes) + size_of::<usize>();
        if version.major != 0 || size < required {
            let Version { major, minor } = version;
            return Err(Error::Version { path: path.to_owned(), major, minor, size, required });
        }
        std::mem::forget(library);
        // SAFETY: at least `required` bytes are there, which is all of our `ffi::Api`, and they stay.
        let api = Api { table: unsafe { &*table } };
        api.initialize()?;
        Ok(api)
    }

    /// The version that the plugin speaks.
    pub fn version(self) -> Version {
        Version { major: self.table.version.major, minor: self.table.version.minor }
    }

    /// The kinds of the extensions, in the order of the plugin's list.
    pub fn extensions(self) -> Vec<i32> {
        let mut kinds = Vec::new();
        let mut next = self.table.extension_start;
        while !next.is_null() {
            // SAFETY: every element of the list begins with an `ExtensionBase` and lives as long as the table.
            let extension = unsafe { &*next };
            kinds.push(extension.kind);
            next = extension.next;
        }
        kinds
    }

    fn initialize(self) -> Result<()> {
        let mut args = ffi::PluginInitializeArgs {
            struct_size: size_of::<ffi::PluginInitializeArgs>(),
            extension_start: ptr::null_mut(),
        };
        self.call("PJRT_Plugin_Initialize", self.table.plugin_initialize, &mut args)
    }

    /// What the plugin says of itself.
    pub fn attributes(self) -> Result<Vec<(String, Attribute)>> {
        let mut args = ffi::PluginAttributesArgs {
            struct_size: size_of::<ffi::PluginAttributesArgs>(),
            extension_start: ptr::null_mut(),
            attributes: ptr::null(),
            num_attributes: 0,
        };
        self.call("PJRT_Plugin_Attributes", self.table.plugin_attributes, &mut args)?;
        let mut attributes = Vec::with_capacity(args.num_attributes);
        for index in 0..args.num_attributes {
            // SAFETY: the plugin returned an array of that many values, which live as long as the process.
            let value = unsafe { &*args.attributes.add(index) };
            // SAFETY: name and size belong together.
            let name = unsafe { text(value.name, value.name_size) };
            attributes.extend(attribute(value).map(|attribute| (name, attribute)));
        }
        Ok(attributes)
    }

    /// Calls one function of the table and turns its error object into ours.
    fn call<Args>(
        self,
        name: &'static str,
        function: Option<unsafe extern "C" fn(*mut Args) -> *mut ffi::PjrtError>,
        args: &mut Args,
    ) -> Result<()> {
        let Some(function) = function else {
            let message = "the plugin's table has no such function".to_owned();
            return Err(Error::Plugin { call: name, code: Code::Unimplemented, message });
        };
        // SAFETY: the function belongs to this type of arguments by the layout of the table, and the arguments
        // live across the call.
        let error = unsafe { function(args) };
        if error.is_null() { Ok(()) } else { Err(self.take_error(name, error)) }
    }

    /// Reads an error object and frees it.
    fn take_error(self, call: &'static str, error: *mut ffi::PjrtError) -> Error {
        let mut code = ffi::ErrorGetCodeArgs {
            struct_size: size_of::<ffi::ErrorGetCodeArgs>(),
            extension_start: ptr::null_mut(),
            error,
            code: 0,
        };
        let mut message = ffi::ErrorMessageArgs {
            struct_size: size_of::<ffi::ErrorMessageArgs>(),
            extension_start: ptr::null_mut(),
            error,
            message: ptr::null(),
            message_size: 0,
        };
        if let Some(get_code) = self.table.error_get_code {
            // SAFETY: the error object is live, and the arguments live across the call.
            unsafe { get_code(&mut code) };
        }
        let mut said = String::new();
        if let Some(get_message) = self.table.error_message {
            // SAFETY: as above; the text lives as long as the error object and is copied at once.
            said = unsafe {
                get_message(&mut message);
                text(message.message, message.message_size)
            };
        }
        if let Some(destroy) = self.table.error_destroy {
            let mut args = ffi::ErrorDestroyArgs {
                struct_size: size_of::<ffi::ErrorDestroyArgs>(),
                extension_start: ptr::null_mut(),
                error,
            };
            // SAFETY: the error object is live and not used after.
            unsafe { destroy(&mut args) };
        }
        Error::Plugin { call, code: Code::from_raw(code.code), message: said }
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
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), size) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// Copies a value, unless it is of a type that the interface did not have when this was written.
fn attribute(value: &ffi::NamedValue) -> Option<Attribute> {
    const STRING: c_int = 0;
    const INT64: c_int = 1;
    const INT64_LIST: c_int = 2;
    const FLOAT: c_int = 3;
    const BOOL: c_int = 4;
    // SAFETY: `kind` says which member of the union was written; pointers belong to `value_size` elements.
    unsafe {
        match value.kind {
            STRING => Some(Attribute::Text(text(value.data.string, value.value_size))),
            INT64 => Some(Attribute::Int(value.data.int64)),
            INT64_LIST => {
                let list = std::slice::from_raw_parts(value.data.int64_array, value.value_size);
                Some(Attribute::Ints(list.to_vec()))
            }
            FLOAT => Some(Attribute::Float(value.data.float)),
            BOOL => Some(Attribute::Bool(value.data.boolean)),
            _ => None,
        }
    }
}
