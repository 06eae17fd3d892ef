//! Custom calls: the extension of a plugin that registers functions which a program calls while it runs, and the structs
//! of such a call (`xla/ffi/api/c_api.h`, version 0.3).

use std::ffi::{c_char, c_int, c_void};

use super::{Call, ExtensionBase};

/// The kind of the extension [`CustomCallExtension`].
pub(crate) const CUSTOM_CALLS: c_int = 5;

/// The extension that registers functions.
#[repr(C)]
pub(crate) struct CustomCallExtension {
    pub base: ExtensionBase,
    pub register_type: *const c_void,
    pub add_user_data: *const c_void,
    pub register: Option<Call<RegisterArgs>>,
}

/// The arguments of the registration. They begin with their size and have no list of extensions.
#[repr(C)]
pub(crate) struct RegisterArgs {
    pub struct_size: usize,
    pub name: *const c_char,
    pub name_size: usize,
    pub handler: Handler,
    pub platform: *const c_char,
    pub platform_size: usize,
    pub traits: u32,
}

/// A function that programs call. It returns an error object, or null on success.
pub(crate) type Handler = unsafe extern "C" fn(*mut CallFrame) -> *mut CallError;

/// An error of a custom call, which the runtime owns.
pub(crate) enum CallError {}

/// The kind of the extension [`MetadataExtension`].
pub(crate) const METADATA: c_int = 1;

/// The extension of a call that asks which version of the structs the function knows.
#[repr(C)]
pub(crate) struct MetadataExtension {
    pub base: ExtensionBase,
    pub metadata: *mut Metadata,
}

#[repr(C)]
pub(crate) struct Metadata {
    pub struct_size: usize,
    pub version: super::ApiVersion,
    pub traits: u32,
}

/// One call.
#[repr(C)]
pub(crate) struct CallFrame {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub api: *const CallApi,
    pub context: *mut c_void,
    pub stage: c_int,
    pub arguments: CallList,
    pub results: CallList,
    pub attributes: AttributeList,
}

/// The stage in which a function computes.
pub(crate) const EXECUTE: c_int = 3;

/// The operands or results of a call: kinds, and pointers to values of these kinds.
#[repr(C)]
pub(crate) struct CallList {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub size: i64,
    pub kinds: *const c_int,
    pub values: *const *const CallBuffer,
}

/// The attributes of a call, by name.
#[repr(C)]
pub(crate) struct AttributeList {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub size: i64,
    pub kinds: *const c_int,
    pub names: *const *const Text,
    pub values: *const *const c_void,
}

/// The kind of an operand or a result that is a [`CallBuffer`], the only one.
pub(crate) const BUFFER: c_int = 1;
/// The kind of an attribute that is a [`Text`].
pub(crate) const TEXT: c_int = 4;

#[repr(C)]
pub(crate) struct Text {
    pub start: *const c_char,
    pub size: usize,
}

/// The elements of an operand or a result, in row-major order.
#[repr(C)]
pub(crate) struct CallBuffer {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub element: c_int,
    pub data: *mut u8,
    pub rank: i64,
    pub dims: *const i64,
}

/// The functions that a custom call may call, up to the last one that is used.
#[repr(C)]
pub(crate) struct CallApi {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub version: super::ApiVersion,
    pub internal: *const c_void,
    pub create_error: Option<unsafe extern "C" fn(*mut CreateErrorArgs) -> *mut CallError>,
}

#[repr(C)]
pub(crate) struct CreateErrorArgs {
    pub struct_size: usize,
    pub extension_start: *mut ExtensionBase,
    pub message: *const c_char,
    pub code: c_int,
}

/// The code of errors inside a custom call.
pub(crate) const INTERNAL: c_int = 13;
