//! The part of the PJRT C API that is used: layouts with the order and the field names of `pjrt_c_api.h`.
//!
//! Every struct begins with its size, which tells both sides how many fields the other side has. Fields that a newer
//! plugin appends are not read; fields that an older plugin lacks stay zero. `layouts` lists every struct with its size
//! and offsets, and a test compares them with the header in a plugin's wheel.

#![allow(unsafe_code)]
#![allow(dead_code, reason = "fields that only the plugin reads or writes complete the layouts")]

mod args;
mod custom_call;
mod table;
#[cfg(test)]
mod tests;

use std::ffi::{c_char, c_int, c_void};

pub(crate) use args::*;
pub(crate) use custom_call::*;
pub(crate) use table::*;

/// Declares opaque objects of the plugin, which are used only through pointers.
macro_rules! opaque {
    ($($name:ident)*) => { $(pub(crate) enum $name {})* };
}

opaque! {
    PjrtError Event Client Device Memory DeviceDescription TopologyDescription Executable LoadedExecutable Buffer
    ExecuteContext SerializedExecutable SerializedTopology BufferMemoryLayout
}

/// The head of every extension; extensions form a linked list.
#[repr(C)]
pub(crate) struct ExtensionBase {
    pub struct_size: usize,
    pub kind: c_int,
    pub next: *mut ExtensionBase,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ApiVersion {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub major: c_int,
    pub minor: c_int,
}

/// A value of one of five types; `kind` of [`NamedValue`] names the type.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union NamedValueData {
    pub string: *const c_char,
    pub int64: i64,
    pub int64_array: *const i64,
    pub float: f32,
    pub boolean: bool,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct NamedValue {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub name: *const c_char,
    pub name_size: usize,
    pub kind: c_int,
    pub data: NamedValueData,
    pub value_size: usize,
}

/// The kinds of [`NamedValue`].
pub(crate) mod kind {
    use std::ffi::c_int;

    pub const STRING: c_int = 0;
    pub const INT64: c_int = 1;
    pub const INT64_LIST: c_int = 2;
    pub const FLOAT: c_int = 3;
    pub const BOOL: c_int = 4;
}

/// The caller may change and free the memory as soon as the call returns.
pub(crate) const IMMUTABLE_ONLY_DURING_CALL: c_int = 0;

/// A function that returns an error object, or null on success.
pub(crate) type Call<Args> = unsafe extern "C" fn(*mut Args) -> *mut PjrtError;
/// A function without a result.
pub(crate) type Procedure<Args> = unsafe extern "C" fn(*mut Args);
/// The callback of a ready event; it owns the error, which is null on success.
pub(crate) type OnReady = unsafe extern "C" fn(*mut PjrtError, *mut c_void);
/// The callback for a borrowed device buffer that is no longer used.
pub(crate) type OnDelete = unsafe extern "C" fn(*mut c_void, *mut c_void);
/// Makes an error object of a plugin, for a callback to return; it copies the text.
pub(crate) type CallbackError = unsafe extern "C" fn(c_int, *const c_char, usize) -> *mut PjrtError;
/// Frees a value that a callback returned.
pub(crate) type ValueDeleter = unsafe extern "C" fn(*mut c_char);
/// A pointer that is always null in this crate.
pub(crate) type Unused = *const c_void;
/// The one symbol that a plugin exports.
pub(crate) type GetPjrtApi = unsafe extern "C" fn() -> *const Table;

/// The layout of a struct in Rust: its C name, its size, and the offsets of its fields.
#[cfg(test)]
pub(crate) struct Layout {
    pub name: &'static str,
    pub size: usize,
    pub fields: Vec<(&'static str, usize)>,
}

/// Every declared struct.
#[cfg(test)]
pub(crate) fn layouts() -> Vec<Layout> {
    use std::mem::offset_of;
    let mut all = args::layouts();
    all.push(table::layout());
    all.push(Layout {
        name: "PJRT_Extension_Base",
        size: size_of::<ExtensionBase>(),
        fields: vec![
            ("struct_size", 0),
            ("type", offset_of!(ExtensionBase, kind)),
            ("next", offset_of!(ExtensionBase, next)),
        ],
    });
    all.push(Layout {
        name: "PJRT_Api_Version",
        size: size_of::<ApiVersion>(),
        fields: vec![
            ("extension_start", offset_of!(ApiVersion, extension_start)),
            ("major_version", offset_of!(ApiVersion, major)),
            ("minor_version", offset_of!(ApiVersion, minor)),
        ],
    });
    all.push(Layout {
        name: "PJRT_NamedValue",
        size: size_of::<NamedValue>(),
        fields: vec![
            ("extension_start", offset_of!(NamedValue, extension_start)),
            ("name", offset_of!(NamedValue, name)),
            ("name_size", offset_of!(NamedValue, name_size)),
            ("type", offset_of!(NamedValue, kind)),
            ("string_value", offset_of!(NamedValue, data)),
            ("value_size", offset_of!(NamedValue, value_size)),
        ],
    });
    all
}
