//! Errors of a plugin, and errors in finding, loading or calling it.

use std::path::PathBuf;

use crate::element::ElementType;

/// The result of a call to a plugin.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is not a shared library that this machine can load.
    #[error("plugin: {} cannot be loaded, a PJRT plugin for this machine is required: {why}", path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// The message of the dynamic loader.
        why: String,
    },
    /// The library is not a PJRT plugin.
    #[error("plugin: {} exports no GetPjrtApi, a PJRT plugin is required", path.display())]
    NoPlugin {
        /// The file.
        path: PathBuf,
    },
    /// The plugin implements an incompatible version of the PJRT C API.
    #[error("plugin: {} speaks PJRT {major}.{minor} with a table of {size} bytes, version 0 and at least {required} bytes are required; install another version of the plugin", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The major version.
        major: i32,
        /// The minor version.
        minor: i32,
        /// The size of its function table.
        size: usize,
        /// The required size.
        required: usize,
    },
    /// The number of bytes does not match the type and shape of the tensor.
    #[error("buffer: {given} bytes, {} required for elements of type {element} and the sizes {dims:?}", element.bytes(dims).map_or_else(|| "a size that exists is".to_owned(), |bytes| format!("{bytes} are")))]
    Size {
        /// The number of bytes.
        given: usize,
        /// The type of the elements.
        element: ElementType,
        /// The sizes of the axes.
        dims: Vec<i64>,
    },
    /// An element type that this crate does not know.
    #[error("buffer: elements of type number {raw}, one of the types up to {} is required", ElementType::ALL.len() + 1)]
    Element {
        /// Its number in the PJRT C API.
        raw: i32,
    },
    /// The argument lists have different lengths.
    #[error("run: {one} arguments for one device and {other} for another, as many for each are required")]
    Arguments {
        /// The length of the first list.
        one: usize,
        /// The length of another.
        other: usize,
    },
    /// The plugin returned an error.
    #[error("{call}: the plugin answered {code:?}: {message}")]
    Plugin {
        /// The call.
        call: &'static str,
        /// The error code.
        code: Code,
        /// The plugin's message.
        message: String,
    },
}

/// The error codes of PJRT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are those of the interface")]
pub enum Code {
    Cancelled,
    Unknown,
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    OutOfRange,
    Unimplemented,
    Internal,
    Unavailable,
    DataLoss,
    Unauthenticated,
    /// A code that this crate does not know.
    Other(i32),
}

impl Code {
    pub(crate) fn from_raw(code: i32) -> Code {
        match code {
            1 => Code::Cancelled,
            2 => Code::Unknown,
            3 => Code::InvalidArgument,
            4 => Code::DeadlineExceeded,
            5 => Code::NotFound,
            6 => Code::AlreadyExists,
            7 => Code::PermissionDenied,
            8 => Code::ResourceExhausted,
            9 => Code::FailedPrecondition,
            10 => Code::Aborted,
            11 => Code::OutOfRange,
            12 => Code::Unimplemented,
            13 => Code::Internal,
            14 => Code::Unavailable,
            15 => Code::DataLoss,
            16 => Code::Unauthenticated,
            other => Code::Other(other),
        }
    }

    pub(crate) fn to_raw(self) -> i32 {
        match self {
            Code::Cancelled => 1,
            Code::Unknown => 2,
            Code::InvalidArgument => 3,
            Code::DeadlineExceeded => 4,
            Code::NotFound => 5,
            Code::AlreadyExists => 6,
            Code::PermissionDenied => 7,
            Code::ResourceExhausted => 8,
            Code::FailedPrecondition => 9,
            Code::Aborted => 10,
            Code::OutOfRange => 11,
            Code::Unimplemented => 12,
            Code::Internal => 13,
            Code::Unavailable => 14,
            Code::DataLoss => 15,
            Code::Unauthenticated => 16,
            Code::Other(other) => other,
        }
    }
}
