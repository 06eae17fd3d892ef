//! DLPack export and import (dmlc/dlpack, versions 1.0 and 1.1, and the older capsules without a version).
//!
//! The structs are those of `dlpack.h`. A tensor is exported without a copy if the protocol version can mark
//! it read-only. Imported elements are copied unless they are memory of our own or already a copy, or the
//! user promises that nothing writes them.

mod export;
mod take;

use std::ffi::{CStr, c_void};

use defn_core::DType;

pub(crate) use export::{HOST, Request, export};
pub(crate) use take::{is_offered, take};

/// The newest supported version of the protocol.
const VERSION: Version = Version { major: 1, minor: 1 };

/// Device kinds: the host, and host memory that is visible to a CUDA device.
const CPU: i32 = 1;
const CUDA_HOST: i32 = 3;

/// Flag: the elements must not be written.
const READ_ONLY: u64 = 1;
/// Flag: the elements are a copy that only the consumer holds.
const IS_COPIED: u64 = 2;
/// Flag: elements of less than a byte are padded to one byte each (from 1.1 on).
const IS_PADDED: u64 = 4;

const NAME: &CStr = c"dltensor";
const NAME_VERSIONED: &CStr = c"dltensor_versioned";
const USED: &CStr = c"used_dltensor";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    major: u32,
    minor: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Device {
    kind: i32,
    id: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ElementType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Array {
    data: *mut c_void,
    device: Device,
    rank: i32,
    dtype: ElementType,
    sizes: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct Managed {
    array: Array,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct ManagedVersioned {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    array: Array,
}

/// Codes of element types; 7 and above are new in 1.1.
mod code {
    pub(super) const INT: u8 = 0;
    pub(super) const UINT: u8 = 1;
    pub(super) const FLOAT: u8 = 2;
    pub(super) const BFLOAT: u8 = 4;
    pub(super) const COMPLEX: u8 = 5;
    pub(super) const BOOL: u8 = 6;
    pub(super) const FLOAT8_E4M3FN: u8 = 10;
    pub(super) const FLOAT8_E5M2: u8 = 12;
}

fn element_type(dtype: DType) -> ElementType {
    let code = match dtype {
        // DLPack gives the number of bits that an element takes in memory.
        DType::Bool => return ElementType { code: code::BOOL, bits: 8, lanes: 1 },
        DType::S2 | DType::S4 | DType::S8 | DType::S16 | DType::S32 | DType::S64 => code::INT,
        DType::U2 | DType::U4 | DType::U8 | DType::U16 | DType::U32 | DType::U64 => code::UINT,
        DType::F16 | DType::F32 | DType::F64 => code::FLOAT,
        DType::BF16 => code::BFLOAT,
        DType::F8E4M3FN => code::FLOAT8_E4M3FN,
        DType::F8E5M2 => code::FLOAT8_E5M2,
        DType::C64 | DType::C128 => code::COMPLEX,
    };
    ElementType { code, bits: dtype.bits() as u8, lanes: 1 }
}

/// Our dtype for a DLPack element type.
fn dtype_of(given: ElementType) -> Option<DType> {
    DType::ALL.iter().copied().find(|&dtype| element_type(dtype) == given)
}
