//! Tensors in files: NumPy's formats, safetensors, and one of our own.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use defn_core as core;
use defn_core::backend::HostMemory;
use defn_core::format::{Array, native, npy, npz, safetensors};
use defn_core::{ErrorKind, Location, Result};

use crate::{Tensor, default_backend};

/// Reads a file of tensors by name: `.npy`, `.npz`, `.safetensors`, or `.defn`, which [`save`] writes. The first bytes
/// determine the format.
///
/// An `.npy` file, and a `.defn` file of one tensor, hold one tensor, whose name is empty. Shapes and dtypes are those
/// of the file. The tensors are on the default backend.
///
/// ```
/// use defn::prelude::*;
///
/// let path = std::env::temp_dir().join("defn-load-example.npz");
/// let x = Tensor::from_slice(&[1f32, 2.0], &[2])?;
/// defn::save(&path, &[("x", &x)])?;
/// let tensors = defn::load(&path)?;
/// assert_eq!(tensors[0].0, "x");
/// assert_eq!(tensors[0].1.to_vec::<f32>()?, [1.0, 2.0]);
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A file that cannot be read (`Backend`); one that is damaged or of an unknown format (`Format`); elements without a
/// corresponding dtype (`DType`); an archive that expands to more than the available memory (`OutOfMemory`).
#[track_caller]
pub fn load(path: impl AsRef<Path>) -> Result<Vec<(String, Tensor)>> {
    let location = Location::caller();
    read(path.as_ref()).map_err(|error| error.at(Some(location)))
}

/// Writes tensors by name to a file in the format of its suffix: `.npz`, `.safetensors` or `.defn`; or one tensor,
/// whatever its name, to an `.npy` file.
///
/// Only `.defn` keeps axis names. In the other formats vectorized axes become ordinary axes. Nothing is written if a
/// tensor cannot be saved.
///
/// ```
/// use defn::prelude::*;
///
/// let path = std::env::temp_dir().join("defn-save-example.npy");
/// let x = Tensor::from_slice(&[1u8, 2, 3], &[3])?;
/// defn::save(&path, &[("", &x)])?;
/// assert_eq!(defn::load(&path)?[0].1.to_vec::<u8>()?, [1, 2, 3]);
/// # std::fs::remove_file(&path).ok();
/// assert!(defn::save("x.csv", &[("", &x)]).is_err());
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Another suffix, and several tensors for `.npy` (`Option`); elements that the format cannot hold (`DType`); a file
/// that cannot be written (`Backend`).
#[track_caller]
pub fn save(path: impl AsRef<Path>, tensors: &[(&str, &Tensor)]) -> Result<()> {
    let location = Location::caller();
    write(path.as_ref(), tensors).map_err(|error| error.at(Some(location)))
}

/// The bytes of named tensors, in the format of this project, which keeps every property: what [`save`] writes to a file that
/// ends in `.defn`.
///
/// ```
/// use defn::Tensor;
///
/// let x = Tensor::from_slice(&[1u8, 2], &[2])?.rename(&[Some("x")])?;
/// let bytes = defn::serialize(&[("x", &x)])?;
/// let (name, y) = defn::deserialize(bytes)?.remove(0);
/// assert_eq!((name.as_str(), y.shape().to_string().as_str()), ("x", "[x: 2]"));
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Elements that were freed (`Backend`).
#[track_caller]
pub fn serialize(tensors: &[(&str, &Tensor)]) -> Result<Vec<u8>> {
    let location = Location::caller();
    arrays_of("serialize", tensors)
        .and_then(|arrays| to_native("serialize", arrays))
        .map_err(|error| error.at(Some(location)))
}

/// The named tensors of bytes in any of the formats that [`load`] reads.
///
/// ```
/// # use defn::Tensor;
/// assert!(defn::deserialize(b"something else".to_vec()).is_err());
/// ```
///
/// # Errors
/// Bytes of no known format, and broken ones (`Format`).
#[track_caller]
pub fn deserialize(bytes: impl Into<Vec<u8>>) -> Result<Vec<(String, Tensor)>> {
    let location = Location::caller();
    parse("deserialize", bytes.into()).map_err(|error| error.at(Some(location)))
}

fn read(path: &Path) -> Result<Vec<(String, Tensor)>> {
    parse("load", fs::read(path).map_err(failed)?)
}

fn parse(op: &'static str, bytes: Vec<u8>) -> Result<Vec<(String, Tensor)>> {
    let file = HostMemory::from(bytes);
    let bytes = file.bytes();
    let arrays = if npy::is_npy(bytes) {
        vec![(String::new(), npy::parse(op, &file, None)?)]
    } else if npz::is_npz(bytes) {
        npz::parse(op, &file, None, available())?
    } else if native::is_native(bytes) {
        named(native::parse(op, &file)?)?
    } else {
        safetensors::parse(op, &file)?
    };
    let backend = default_backend()?;
    let named_tensor = |(name, array): (String, Array)| Ok((name, Tensor(array.on(&backend)?)));
    arrays.into_iter().map(named_tensor).collect()
}

/// The tensors of a dict, or one tensor.
fn named(value: native::Value) -> Result<Vec<(String, Array)>> {
    let other = || {
        let problem = "the file holds a container of the Python package".to_owned();
        let required = "a tensor or a dict of tensors by name is required".to_owned();
        ErrorKind::Malformed { op: "load", problem, required }.into()
    };
    match value {
        native::Value::Tensor(array) => Ok(vec![(String::new(), *array)]),
        native::Value::Dict(entries) => entries
            .into_iter()
            .map(|entry| match entry {
                (native::Value::Text(name), native::Value::Tensor(array)) => Ok((name, *array)),
                _ => Err(other()),
            })
            .collect(),
        native::Value::Tuple(_)
        | native::Value::List(_)
        | native::Value::Object(_)
        | native::Value::None
        | native::Value::Bool(_)
        | native::Value::Integer(_)
        | native::Value::Float(_)
        | native::Value::Complex(..)
        | native::Value::Text(_)
        | native::Value::Bytes(_) => Err(other()),
    }
}

fn write(path: &Path, tensors: &[(&str, &Tensor)]) -> Result<()> {
    let op = "save";
    let arrays = arrays_of(op, tensors)?;
    let refuse = |option, given: String, required: &str| {
        Err(ErrorKind::OptionValue { op, option, given, required: required.to_owned() }.into())
    };
    let bytes = match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("npy") => match &arrays[..] {
            [(_, array)] => npy::write(op, array)?,
            _ => return refuse("the number of tensors", arrays.len().to_string(), "1 for an .npy file"),
        },
        Some("npz") => npz::write(op, &arrays, false)?,
        Some("safetensors") => safetensors::write(op, &arrays)?,
        Some("defn") => to_native(op, arrays)?,
        _ => {
            let required = "one that ends in .npy, .npz, .safetensors or .defn";
            return refuse("the path", path.display().to_string(), required);
        }
    };
    fs::write(path, bytes).map_err(failed)
}

fn arrays_of(op: &'static str, tensors: &[(&str, &Tensor)]) -> Result<Vec<(String, Array)>> {
    let array = |(name, tensor): &(&str, &Tensor)| Ok(((*name).to_owned(), Array::of(op, tensor.core())?));
    tensors.iter().map(array).collect()
}

fn to_native(op: &'static str, arrays: Vec<(String, Array)>) -> Result<Vec<u8>> {
    let entry = |(name, array)| (native::Value::Text(name), native::Value::Tensor(Box::new(array)));
    native::write(op, &native::Value::Dict(arrays.into_iter().map(entry).collect()))
}

pub(crate) fn failed(error: std::io::Error) -> core::Error {
    ErrorKind::Host { error: Arc::new(error) }.into()
}

/// What an archive may inflate to.
#[cfg(feature = "cpu")]
fn available() -> usize {
    defn_cpu::available_memory()
}

/// As much as can be asked for: without a backend of this package nobody knows better.
#[cfg(not(feature = "cpu"))]
fn available() -> usize {
    isize::MAX as usize
}
