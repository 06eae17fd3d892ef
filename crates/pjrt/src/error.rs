//! What a plugin, or the way to it, can answer instead of a result.

use std::path::PathBuf;

use crate::element::ElementType;

/// The result of a call to a plugin.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is no shared library that this machine can load.
    #[error("plugin: {} cannot be loaded, a PJRT plugin for this machine is required: {why}", path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// What the loader says.
        why: String,
    },
    /// The library is something else.
    #[error("plugin: {} exports no GetPjrtApi, a PJRT plugin is required", path.display())]
    NoPlugin {
        /// The file.
        path: PathBuf,
    },
    /// The plugin speaks another version of the interface.
    #[error("plugin: {} speaks PJRT {major}.{minor} with a table of {size} bytes, version 0 and at least {required} bytes are required; install another version of the plugin", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The major version.
        major: i32,
        /// The minor version.
        minor: i32,
        /// The size of its table of functions.
        size: usize,
        /// The size that is needed.
        required: usize,
    },
    /// Bytes that are not as many as a tensor of that type and shape has.
    #[error("buffer: {given} bytes, {} required for elements of type {element} and the sizes {dims:?}", element.bytes(dims).map_or_else(|| "a size that exists is".to_owned(), |bytes| format!("{bytes} are")))]
    Size {
        /// The bytes.
        given: usize,
        /// The type of the elements.
        element: ElementType,
        /// The sizes of the axes.
        dims: Vec<i64>,
    },
    /// A type of elements that was unknown when this was written.
    #[error("buffer: elements of type number {raw}, one of the types up to {} is required", ElementType::ALL.len() + 1)]
    Element {
        /// Its number in the interface.
        raw: i32,
    },
    /// Lists of arguments of different lengths.
    #[error("run: {one} arguments for one device and {other} for another, as many for each are required")]
    Arguments {
        /// The length of the first list.
        one: usize,
        /// The length of another.
        other: usize,
    },
    /// The plugin answered with an error of its own.
    #[error("{call}: the plugin answered {code:?}: {message}")]
    Plugin {
        /// The call.
        call: &'static str,
        /// The kind.
        code: Code,
        /// What the plugin says.
        message: String,
    },
}

/// The kinds of errors that plugins answer with.
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
    /// A number that the interface did not have when this was written.
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
}
