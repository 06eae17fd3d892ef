//! Tensors in files: NumPy's formats, safetensors, and one of our own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use defn_core as core;
use defn_core::backend::HostMemory;
use defn_core::format::native::{Form, Object};
use defn_core::format::{Array, native, npy, npz, safetensors};
use defn_core::vectorize::vectorized_axes_text;
use defn_core::{ErrorKind, Location, Result};

use crate::replace::replace;
use crate::tree::{add_part, map};
use crate::{Tensor, Tree, default_backend, named_leaves};

/// Reads a file of tensors by name: `.npy`, `.npz`, `.safetensors`, or `.defn`, which [`save`] writes. The first bytes
/// determine the format.
///
/// An `.npy` file, and a `.defn` file of one tensor, hold one tensor, whose name is empty. In a `.defn` file that Python
/// has written, the tensors of containers within others have the names that [`named_leaves`] gives, and values that are
/// no tensors are left out. Shapes and dtypes are those of the file. The tensors are on the default backend.
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
    read("load", path.as_ref()).map_err(|error| in_file(path.as_ref(), error).at(Some(location)))
}

/// Writes tensors by name to a file in the format of its suffix: `.npz`, `.safetensors` or `.defn`; or one tensor,
/// whatever its name, to an `.npy` file.
///
/// A file is replaced at once: the bytes are written to a temporary file beside it, which is renamed when they are on the
/// disk. A program that is killed meanwhile leaves the old content or the new one, never a part.
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
    write("save", path.as_ref(), tensors).map_err(|error| error.at(Some(location)))
}

/// Writes the tensors of a container, such as the parameters of a model, to a file in the format of its suffix, by their
/// [names](named_leaves): `.npz`, `.safetensors` or `.defn`; or its only tensor to an `.npy` file. What is no tensor is
/// not written. [`load_tree`] reads it; [`save`] says what the formats keep.
///
/// ```
/// use defn::prelude::*;
///
/// #[derive(Tree)]
/// struct Layer<T> {
///     weight: T,
///     bias: T,
/// }
/// let path = std::env::temp_dir().join("defn-save-tree-example.safetensors");
/// let layers = vec![Layer { weight: tensor![[1.0, 2.0]]?, bias: Tensor::scalar(0.5)? }];
/// defn::save_tree(&path, &layers)?;
/// let (name, _) = &defn::load(&path)?[0];
/// assert!(name == "0.weight" || name == "0.bias");
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Two leaves of one name (`Option`), and those of [`save`].
#[track_caller]
pub fn save_tree<A: Tree<Tensor>>(path: impl AsRef<Path>, tree: &A) -> Result<()> {
    let location = Location::caller();
    write_tree("save_tree", path.as_ref(), tree).map_err(|error| error.at(Some(location)))
}

/// Reads a file of tensors that [`save_tree`] or Python has written into a container of the same structure as `like`,
/// whose leaves may be [templates](Tensor::template). The file must hold a tensor of the same dtype, shape and
/// vectorized axes for the [name](named_leaves) of each leaf, and no other. Names of axes are those of the file, or else
/// of `like`. The tensors are on the default backend.
///
/// ```
/// use defn::prelude::*;
///
/// let path = std::env::temp_dir().join("defn-load-tree-example.npz");
/// let params = (tensor![1.0, 2.0]?, vec![tensor![3.0]?]);
/// defn::save_tree(&path, &params)?;
/// let like = (Tensor::template(&[2], DType::F32)?, vec![Tensor::template(&[1], DType::F32)?]);
/// let read = defn::load_tree(&path, &like)?;
/// assert_eq!(read.1[0].to_vec::<f32>()?, [3.0]);
/// let other = (Tensor::template(&[2], DType::F32)?, ());
/// assert!(defn::load_tree(&path, &other).is_err());
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A file without a tensor for a leaf, with one more, with two of one name, or with one of another type (`Format`); two
/// leaves of one name (`Option`); and those of [`load`].
#[track_caller]
pub fn load_tree<A: Tree<Tensor>>(path: impl AsRef<Path>, like: &A) -> Result<A::Of<Tensor>> {
    let location = Location::caller();
    tree_of("load_tree", path.as_ref(), like).map_err(|error| error.at(Some(location)))
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

/// The container of a file; errors name the file.
pub(crate) fn tree_of<A: Tree<Tensor>>(op: &'static str, path: &Path, like: &A) -> Result<A::Of<Tensor>> {
    let tensors = read_into(op, path, named_leaves(like)).map_err(|error| in_file(path, error))?;
    let mut tensors = tensors.into_iter();
    Ok(map(like, |_| tensors.next().expect("a tensor for each leaf")))
}

/// Writes a container to a file.
pub(crate) fn write_tree<A: Tree<Tensor>>(op: &'static str, path: &Path, tree: &A) -> Result<()> {
    let leaves = named_leaves(tree);
    let tensors: Vec<(&str, &Tensor)> = leaves.iter().map(|(name, leaf)| (name.as_str(), leaf)).collect();
    distinct(op, tensors.iter().map(|(name, _)| *name))?;
    write(op, path, &tensors)
}

/// An error about the content of a file, with the path of the file.
fn in_file(path: &Path, error: core::Error) -> core::Error {
    let ErrorKind::Malformed { op, problem, required } = error.kind() else {
        return error;
    };
    let problem = format!("in {}, {problem}", path.display());
    ErrorKind::Malformed { op, problem, required: required.clone() }.into()
}

fn read(op: &'static str, path: &Path) -> Result<Vec<(String, Tensor)>> {
    parse(op, fs::read(path).map_err(failed)?)
}

/// The tensors of a file for some leaves, in their order.
fn read_into(op: &'static str, path: &Path, leaves: Vec<(String, Tensor)>) -> Result<Vec<Tensor>> {
    distinct(op, leaves.iter().map(|(name, _)| name.as_str()))?;
    let malformed = |problem, required: &str| -> core::Error {
        ErrorKind::Malformed { op, problem, required: required.to_owned() }.into()
    };
    let one_each = "one for each leaf of the container is required";
    let mut tensors = read(op, path)?;
    if let ([(name, _)], [(leaf, _)]) = (&mut tensors[..], &leaves[..])
        && name.is_empty()
    {
        // The tensor of an `.npy` file has no name.
        name.clone_from(leaf);
    }
    let mut found: BTreeMap<&str, &Tensor> = BTreeMap::new();
    for (name, tensor) in &tensors {
        if found.insert(name, tensor).is_some() {
            return Err(malformed(format!("the file has two tensors `{name}`"), one_each));
        }
    }
    let mut of_leaf = |(name, like): &(String, Tensor)| {
        let Some(tensor) = found.remove(name.as_str()) else {
            return Err(malformed(format!("the file has no tensor `{name}`"), one_each));
        };
        with_names_of(tensor, like)?.ok_or_else(|| {
            let problem = format!("`{name}` of the file is {}", whole_type(tensor));
            malformed(problem, &format!("the container has {} there", whole_type(like)))
        })
    };
    let of_leaves = leaves.iter().map(&mut of_leaf).collect::<Result<_>>()?;
    match found.keys().next() {
        None => Ok(of_leaves),
        Some(name) => {
            let problem = format!("the file has a tensor `{name}`");
            Err(malformed(problem, "the container has no leaf of this name"))
        }
    }
}

/// The tensor if it has the type of another one, with the names of its axes where it has none itself.
fn with_names_of(tensor: &Tensor, like: &Tensor) -> Result<Option<Tensor>> {
    let (shape, wanted) = (tensor.shape(), like.shape());
    let fits = tensor.dtype() == like.dtype() && shape.sizes() == wanted.sizes();
    if !fits || tensor.vectorized_axes() != like.vectorized_axes() {
        return Ok(None);
    }
    match (shape.has_names(), wanted.has_names()) {
        (true, true) if shape != wanted => Ok(None),
        (true, true | false) | (false, false) => Ok(Some(tensor.clone())),
        (false, true) => {
            let names: Vec<Option<&str>> = wanted.names().map(|name| name.map(|name| &**name)).collect();
            tensor.rename(&names).map(Some)
        }
    }
}

/// The type after the vectorized axes, which are outside of it.
fn whole_type(tensor: &Tensor) -> String {
    match tensor.vectorized_axes() {
        [] => tensor.ty().to_string(),
        axes => format!("{} {}", vectorized_axes_text(axes), tensor.ty()),
    }
}

/// Refuses names that are given twice.
fn distinct<'a>(op: &'static str, names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            let required = "that of one; name the parts with Visit::part".to_owned();
            let (option, given) = ("the name of two leaves", format!("`{name}`"));
            return Err(ErrorKind::OptionValue { op, option, given, required }.into());
        }
    }
    Ok(())
}

fn parse(op: &'static str, bytes: Vec<u8>) -> Result<Vec<(String, Tensor)>> {
    let file = HostMemory::from(bytes);
    let bytes = file.bytes();
    let arrays = if npy::is_npy(bytes) {
        vec![(String::new(), npy::parse(op, &file, None)?)]
    } else if npz::is_npz(bytes) {
        npz::parse(op, &file, None, available())?
    } else if native::is_native(bytes) {
        let mut tensors = Vec::new();
        flatten(op, String::new(), native::parse(op, &file)?, &mut tensors)?;
        tensors
    } else {
        safetensors::parse(op, &file)?
    };
    let backend = default_backend()?;
    let named_tensor = |(name, array): (String, Array)| Ok((name, Tensor(array.on(&backend)?)));
    arrays.into_iter().map(named_tensor).collect()
}

/// Adds the tensors of a value with their names. Values that are no tensors are left out.
fn flatten(
    op: &'static str,
    name: String,
    value: native::Value,
    to: &mut Vec<(String, Array)>,
) -> Result<()> {
    let part = |of: &dyn Display| {
        let mut name = name.clone();
        add_part(&mut name, of);
        name
    };
    match value {
        native::Value::Tensor(array) => to.push((name, *array)),
        native::Value::Tuple(items) | native::Value::List(items) => {
            for (at, item) in items.into_iter().enumerate() {
                flatten(op, part(&at), item, to)?;
            }
        }
        native::Value::Dict(entries) => {
            for (key, item) in entries {
                flatten(op, part(&key_text(op, &key)?), item, to)?;
            }
        }
        native::Value::Object(object) => {
            let Object { form, parts, .. } = *object;
            for (at, (field, item)) in parts.into_iter().enumerate() {
                let name = match form {
                    Form::Fields => part(&field),
                    // The format keeps no names of its entries.
                    Form::Named => part(&at),
                    // The dict is the object's only part.
                    Form::Ordered | Form::Member => name.clone(),
                    // Its children come after the auxiliary data.
                    Form::Registered => at.checked_sub(1).map_or_else(|| name.clone(), |at| part(&at)),
                };
                flatten(op, name, item, to)?;
            }
        }
        native::Value::None
        | native::Value::Bool(_)
        | native::Value::Integer(_)
        | native::Value::Float(_)
        | native::Value::Complex(..)
        | native::Value::Text(_)
        | native::Value::Bytes(_) => {}
    }
    Ok(())
}

/// The key of a dict as a part of names.
fn key_text(op: &'static str, key: &native::Value) -> Result<String> {
    let text = match key {
        native::Value::Text(text) => Some(text.clone()),
        native::Value::Integer(digits) => {
            i64::from_str_radix(digits, 16).ok().map(|number| number.to_string())
        }
        native::Value::Bool(_)
        | native::Value::Float(_)
        | native::Value::Complex(..)
        | native::Value::Bytes(_)
        | native::Value::None
        | native::Value::Tensor(_)
        | native::Value::Tuple(_)
        | native::Value::List(_)
        | native::Value::Dict(_)
        | native::Value::Object(_) => None,
    };
    text.ok_or_else(|| {
        let problem = "a dict of the file has keys that are neither texts nor integers of 64 bits".to_owned();
        ErrorKind::Malformed { op, problem, required: "they must name its tensors".to_owned() }.into()
    })
}

fn write(op: &'static str, path: &Path, tensors: &[(&str, &Tensor)]) -> Result<()> {
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
    replace(path, &bytes).map_err(failed)
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
