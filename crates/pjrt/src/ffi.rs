//! The C interface as far as it is used: layouts, in the order and with the names of `pjrt_c_api.h`.
//!
//! Every struct begins with its size, by which both sides know how many of its fields the other has.

use std::ffi::{c_char, c_int, c_void};

/// An error object of the plugin; opaque.
pub(crate) enum PjrtError {}

/// The head of every extension; they form a list.
#[repr(C)]
pub(crate) struct ExtensionBase {
    pub struct_size: usize,
    pub kind: c_int,
    pub next: *mut ExtensionBase,
}

#[repr(C)]
pub(crate) struct ApiVersion {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub major: c_int,
    pub minor: c_int,
}

#[repr(C)]
pub(crate) struct ErrorDestroyArgs {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub error: *mut PjrtError,
}

#[repr(C)]
pub(crate) struct ErrorMessageArgs {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub error: *const PjrtError,
    pub message: *const c_char,
    pub message_size: usize,
}

#[repr(C)]
pub(crate) struct ErrorGetCodeArgs {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub error: *const PjrtError,
    pub code: c_int,
}

#[repr(C)]
pub(crate) struct PluginInitializeArgs {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
}

#[repr(C)]
pub(crate) struct PluginAttributesArgs {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub attributes: *const NamedValue,
    pub num_attributes: usize,
}

/// A value of one of five types; `kind` says which.
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

type Call<Args> = unsafe extern "C" fn(*mut Args) -> *mut PjrtError;

/// The head of the plugin's table of functions.
#[repr(C)]
pub(crate) struct Api {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub version: ApiVersion,
    pub error_destroy: Option<unsafe extern "C" fn(*mut ErrorDestroyArgs)>,
    pub error_message: Option<unsafe extern "C" fn(*mut ErrorMessageArgs)>,
    pub error_get_code: Option<Call<ErrorGetCodeArgs>>,
    pub plugin_initialize: Option<Call<PluginInitializeArgs>>,
    pub plugin_attributes: Option<Call<PluginAttributesArgs>>,
}

/// The one symbol that a plugin exports.
pub(crate) type GetPjrtApi = unsafe extern "C" fn() -> *const Api;

const _: () = assert!(size_of::<*const c_void>() == size_of::<usize>());
