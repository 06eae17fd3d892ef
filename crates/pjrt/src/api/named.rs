//! Named values: the format of plugins' options and attributes.

use std::ffi::c_char;

use super::text;
use crate::ffi::{self, kind};
use crate::plugin::Attribute;

/// Copies the values; those whose type this crate does not know are skipped.
///
/// # Safety
/// `start` is null, or points to `size` named values of the plugin.
pub(super) unsafe fn read(start: *const ffi::NamedValue, size: usize) -> Vec<(String, Attribute)> {
    // SAFETY: guaranteed by the caller.
    let values = unsafe { super::list(start, size) };
    // SAFETY: every name has `name_size` bytes.
    values
        .iter()
        .filter_map(|value| Some((unsafe { text(value.name, value.name_size) }, attribute(value)?)))
        .collect()
}

fn attribute(value: &ffi::NamedValue) -> Option<Attribute> {
    // SAFETY: `kind` names the member of the union that was written; pointers refer to `value_size` elements.
    unsafe {
        match value.kind {
            kind::STRING => Some(Attribute::Text(text(value.data.string, value.value_size))),
            kind::INT64 => Some(Attribute::Int(value.data.int64)),
            kind::INT64_LIST => {
                Some(Attribute::Ints(super::list(value.data.int64_array, value.value_size).to_vec()))
            }
            kind::FLOAT => Some(Attribute::Float(value.data.float)),
            kind::BOOL => Some(Attribute::Bool(value.data.boolean)),
            _ => None,
        }
    }
}

/// Options in the plugin's format; they borrow from `options`.
pub(super) fn write(options: &[(String, Attribute)]) -> Vec<ffi::NamedValue> {
    let one = |(name, attribute): &(String, Attribute)| {
        let (kind, data, value_size) = match attribute {
            Attribute::Text(text) => {
                (kind::STRING, ffi::NamedValueData { string: text.as_ptr().cast::<c_char>() }, text.len())
            }
            Attribute::Int(value) => (kind::INT64, ffi::NamedValueData { int64: *value }, 1),
            Attribute::Ints(values) => {
                (kind::INT64_LIST, ffi::NamedValueData { int64_array: values.as_ptr() }, values.len())
            }
            Attribute::Float(value) => (kind::FLOAT, ffi::NamedValueData { float: *value }, 1),
            Attribute::Bool(value) => (kind::BOOL, ffi::NamedValueData { boolean: *value }, 1),
        };
        ffi::NamedValue {
            struct_size: size_of::<ffi::NamedValue>(),
            extension_start: std::ptr::null_mut(),
            name: name.as_ptr().cast::<c_char>(),
            name_size: name.len(),
            kind,
            data,
            value_size,
        }
    };
    options.iter().map(one).collect()
}
