//! Tensors from bytes and file contents, and back.

use std::sync::Arc;

use defn_core::backend::{Backend, HostMemory};
use defn_core::format::{Array, native, npy, npz, packed, safetensors};
use defn_core::{ErrorKind, Shape, TensorType};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::backends;
use crate::containers::{self, Numbers};
use crate::convert;
use crate::dtype;
use crate::error::{Fallible, guard};
use crate::memory;
use crate::misuse::Misuse;
use crate::show;
use crate::tensor::PyTensor;
use crate::trace_allocations;

/// A tensor of an array, on a backend.
fn upload_array(backend: &Arc<dyn Backend>, array: Array) -> Fallible<PyTensor> {
    Ok(PyTensor::new(trace_allocations::note(array.on(backend)?)))
}

/// A vector of the elements in some bytes. 2- and 4-bit elements are packed, the first one in the highest
/// bits.
#[pyfunction]
#[pyo3(signature = (data, dtype, backend = None))]
fn from_binary(
    data: &Bound<'_, PyAny>,
    dtype: &Bound<'_, PyAny>,
    backend: Option<&Bound<'_, PyAny>>,
) -> Fallible<PyTensor> {
    guard(|| {
        let dtype = dtype::parse(dtype)?;
        let backend = backends::parse(backend)?;
        let mut bytes = memory::bytes("from_binary", "data", data)?;
        if dtype.bits() < 8 {
            bytes = packed::unpack(dtype, bytes.bytes()).into_owned().into();
        }
        let given = bytes.bytes().len();
        if given == 0 || given % dtype.storage_bytes() != 0 {
            return Err(Misuse::BinaryLength { given, dtype }.into());
        }
        let ty = TensorType::new(dtype, Shape::new(&[given / dtype.storage_bytes()]))?;
        upload_array(&backend, Array::new(ty, bytes))
    })
}

/// The bytes of the elements in row-major order; only the first `limit` elements if it is given.
#[pyfunction]
#[pyo3(signature = (tensor, limit = None))]
fn to_binary<'py>(
    tensor: &Bound<'py, PyAny>,
    limit: Option<&Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyBytes>> {
    guard(|| {
        let (py, op) = (tensor.py(), "to_binary");
        let tensor = convert::tensor(op, tensor)?;
        let limit = limit.map_or(Ok(usize::MAX), |limit| show::parse_limit(op, limit))?;
        let memory = tensor.host_prefix(op, limit)?;
        let stored = tensor.whole();
        let len = limit.min(stored.size()) * stored.dtype.storage_bytes();
        Ok(PyBytes::new(py, &packed::pack(stored.dtype, &memory.bytes()[..len])))
    })
}

/// The format of some data: the named one, else the one that its first bytes indicate.
#[derive(Clone, Copy)]
enum Format {
    Npy,
    Npz,
    Safetensors,
    Native,
}

const FORMATS: &[(&str, Format)] = &[
    ("npy", Format::Npy),
    ("npz", Format::Npz),
    ("safetensors", Format::Safetensors),
    ("defn", Format::Native),
];

/// The tensors in a file's contents: a single tensor, a dict of tensors by name, or the stored container.
#[pyfunction]
fn load<'py>(
    py: Python<'py>,
    op: &str,
    data: &Bound<'py, PyAny>,
    format: Option<&str>,
    dtype: Option<&Bound<'py, PyAny>>,
    backend: Option<&Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyAny>> {
    guard(|| {
        let op = if op == "load_numpy" { "load_numpy" } else { "load" };
        let opaque = dtype.map(dtype::parse).transpose()?;
        let backend = backends::parse(backend)?;
        let data = memory::bytes(op, "data", data)?;
        let format = match format {
            Some(name) => FORMATS.iter().find(|(known, _)| *known == name).map(|(_, format)| *format),
            None => guess(data.bytes()),
        };
        let Some(format) = format else {
            let problem = "the data begins as no format that is known".to_owned();
            let required = "it must be that of an .npy, .npz, .safetensors or .defn file".to_owned();
            return Err(ErrorKind::Malformed { op, problem, required }.into());
        };
        match format {
            Format::Npy => {
                let array = py.detach(|| npy::parse(op, &data, opaque))?;
                Ok(Bound::new(py, upload_array(&backend, array)?)?.into_any())
            }
            Format::Npz => {
                let limit = defn_cpu::available_memory();
                named(py, &backend, py.detach(|| npz::parse(op, &data, opaque, limit))?)
            }
            Format::Safetensors => named(py, &backend, py.detach(|| safetensors::parse(op, &data))?),
            Format::Native => stored(py, op, &backend, &data),
        }
    })
}

fn guess(bytes: &[u8]) -> Option<Format> {
    if npy::is_npy(bytes) {
        Some(Format::Npy)
    } else if npz::is_npz(bytes) {
        Some(Format::Npz)
    } else if native::is_native(bytes) {
        Some(Format::Native)
    } else {
        safetensors::is_safetensors(bytes).then_some(Format::Safetensors)
    }
}

fn named<'py>(
    py: Python<'py>,
    backend: &Arc<dyn Backend>,
    arrays: Vec<(String, Array)>,
) -> Fallible<Bound<'py, PyAny>> {
    let dict = PyDict::new(py);
    for (name, array) in arrays {
        dict.set_item(name, Bound::new(py, upload_array(backend, array)?)?)?;
    }
    Ok(dict.into_any())
}

fn stored<'py>(
    py: Python<'py>,
    op: &'static str,
    backend: &Arc<dyn Backend>,
    data: &HostMemory,
) -> Fallible<Bound<'py, PyAny>> {
    let value = py.detach(|| native::parse(op, data))?;
    containers::from_value(py, value, &|array| upload_array(backend, array))
}

/// The value that was passed to `serialize`.
#[pyfunction]
#[pyo3(signature = (data, backend = None))]
fn deserialize<'py>(
    data: &Bound<'py, PyAny>,
    backend: Option<&Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyAny>> {
    guard(|| {
        let backend = backends::parse(backend)?;
        stored(data.py(), "deserialize", &backend, &memory::bytes("deserialize", "data", data)?)
    })
}

/// Bytes from which `deserialize` restores the value.
#[pyfunction]
#[pyo3(signature = (value, keep_numbers = false))]
fn serialize<'py>(value: &Bound<'py, PyAny>, keep_numbers: bool) -> Fallible<Bound<'py, PyBytes>> {
    guard(|| {
        let stored = containers::to_value(value, numbers(keep_numbers))?;
        let bytes = value.py().detach(|| native::write("serialize", &stored))?;
        Ok(PyBytes::new(value.py(), &bytes))
    })
}

fn numbers(keep: bool) -> Numbers {
    if keep { Numbers::Kept } else { Numbers::Tensors }
}

/// The contents of a file in a format.
#[pyfunction]
fn save<'py>(
    value: &Bound<'py, PyAny>,
    format: &str,
    compressed: bool,
    keep_numbers: bool,
) -> Fallible<Bound<'py, PyBytes>> {
    guard(|| {
        let (py, op) = (value.py(), "save");
        let found = FORMATS.iter().find(|(known, _)| *known == format).map(|(_, format)| *format);
        let bytes = match found {
            Some(Format::Npy) => {
                let array = Array::of(op, &convert::tensor(op, value)?)?;
                py.detach(|| npy::write(op, &array))?
            }
            Some(Format::Npz) => {
                let arrays = by_name(value)?;
                py.detach(|| npz::write(op, &arrays, compressed))?
            }
            Some(Format::Safetensors) => {
                let arrays = by_name(value)?;
                py.detach(|| safetensors::write(op, &arrays))?
            }
            Some(Format::Native) => {
                let stored = containers::to_value(value, numbers(keep_numbers))?;
                py.detach(|| native::write(op, &stored))?
            }
            None => unreachable!("the Python layer names formats that there are"),
        };
        Ok(PyBytes::new(py, &bytes))
    })
}

/// The tensors of a dict, by name.
fn by_name(value: &Bound<'_, PyAny>) -> Fallible<Vec<(String, Array)>> {
    let required =
        "files of tensors by name hold a dict from str to tensors; other containers go into .defn files";
    let Ok(dict) = value.cast::<PyDict>() else {
        let what = format!("the value is of type {}", value.get_type().name()?);
        return Err(Misuse::NotSaved { what, required }.into());
    };
    let snapshot: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)> = dict.iter().collect();
    let mut arrays = Vec::with_capacity(snapshot.len());
    for (key, item) in snapshot {
        let Ok(name) = key.cast::<PyString>() else {
            let what = format!("a key is {}", convert::describe(&key)?);
            return Err(Misuse::NotSaved { what, required }.into());
        };
        let tensor = match convert::try_arg(&item)? {
            Some(_) => convert::tensor("save", &item)?,
            None => {
                let what =
                    format!("the value at {:?} is of type {}", name.to_str()?, item.get_type().name()?);
                return Err(Misuse::NotSaved { what, required }.into());
            }
        };
        arrays.push((name.to_str()?.to_owned(), Array::of("save", &tensor)?));
    }
    Ok(arrays)
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(from_binary, module)?)?;
    module.add_function(wrap_pyfunction!(to_binary, module)?)?;
    module.add_function(wrap_pyfunction!(load, module)?)?;
    module.add_function(wrap_pyfunction!(save, module)?)?;
    module.add_function(wrap_pyfunction!(serialize, module)?)?;
    module.add_function(wrap_pyfunction!(deserialize, module)?)
}
