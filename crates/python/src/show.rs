//! Printing of tensors in Python. A scalar takes one line.

use defn_core::format::packed;
use defn_core::print::{self, BoolText, SHOWN_ELEMENTS, ShownElements};
use defn_core::scalar::Scalar;
use defn_core::tensor::Data;
use defn_core::{Tensor, vectorize};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::convert;
use crate::error::{Fallible, guard};
use crate::memory;
use crate::misuse::Misuse;
use crate::options;
use crate::pjrt;
use crate::pybackend::PythonBuffer;
use crate::read;
use crate::tensor::PyTensor;

/// How bools are written.
const BOOLS: BoolText = ["False", "True"];

/// The limit in this context; `usize::MAX` stands for no limit.
fn limit(py: Python<'_>) -> Fallible<usize> {
    match options::get(py, intern!(py, "print_limit"))? {
        Some(value) => parse_limit("print_limit", &value),
        None => Ok(SHOWN_ELEMENTS),
    }
}

/// Whether tensors on devices print their location.
fn shows_device() -> Fallible<bool> {
    Python::attach(|py| match options::get(py, intern!(py, "print_place"))? {
        Some(value) => Ok(value.is_truthy()?),
        None => Ok(true),
    })
}

/// A number of elements, or None for all of them.
pub(crate) fn parse_limit(op: &str, value: &Bound<'_, PyAny>) -> Fallible<usize> {
    let required = "an int that is at least 0, or None for all elements";
    if value.is_none() {
        return Ok(usize::MAX);
    }
    match convert::index(value)?.map(usize::try_from) {
        Some(Ok(limit)) => Ok(limit),
        // No tensor has more elements.
        _ if value.is_instance_of::<PyInt>() && value.gt(0)? => Ok(usize::MAX),
        Some(Err(_)) | None => Err(convert::bad(op, "limit", value, required)?),
    }
}

/// The `repr` of a tensor: a scalar in one line; for others, the text between `Tensor<` and `>`.
pub(crate) fn tensor(py: Python<'_>, tensor: &Tensor) -> Fallible<String> {
    let Some(element) = scalar(tensor)? else { return written(tensor, ShownElements::Ends(limit(py)?)) };
    Ok(match device_text(tensor)? {
        Some(device) => format!("Tensor({element}, {}, {device})", tensor.ty().dtype),
        None => format!("Tensor({element}, {})", tensor.ty().dtype),
    })
}

/// The `str` of a tensor: the number of a scalar; others as their `repr`.
pub(crate) fn plain(py: Python<'_>, tensor: &Tensor) -> Fallible<String> {
    match scalar(tensor)? {
        // Python's own formatting.
        Some(_) if tensor.ty().dtype.is_complex() => {
            Ok(read::number(py, read::only_element("str", tensor)?)?.str()?.to_string())
        }
        Some(element) => Ok(element),
        None => written(tensor, ShownElements::Ends(limit(py)?)),
    }
}

/// The element of a concrete scalar as text.
fn scalar(tensor: &Tensor) -> Fallible<Option<String>> {
    if !print::is_number(tensor) {
        return Ok(None);
    }
    elements(tensor, ShownElements::First(1)).map(Some)
}

/// A tensor with at most `limit` elements, the first ones.
#[pyfunction]
fn inspect(tensor: &Bound<'_, PyTensor>, limit: &Bound<'_, PyAny>) -> Fallible<String> {
    guard(|| written(&tensor.get().tensor, ShownElements::First(parse_limit("inspect", limit)?)))
}

/// The location of a tensor on a device, unless the options hide it.
fn device_text(tensor: &Tensor) -> Fallible<Option<String>> {
    match pjrt::signature(tensor) {
        Some(device) if shows_device()? => Ok(Some(device)),
        Some(_) | None => Ok(None),
    }
}

fn written(tensor: &Tensor, part: ShownElements) -> Fallible<String> {
    print::tensor(tensor, device_text(tensor)?.as_deref(), || elements(tensor, part))
}

/// The elements of a tensor, as a backend of the user's prints them if it does.
fn elements(tensor: &Tensor, part: ShownElements) -> Fallible<String> {
    let own = tensor.buffer().and_then(|buffer| buffer.as_any().downcast_ref::<PythonBuffer>());
    let (ShownElements::First(limit) | ShownElements::Ends(limit)) = part;
    match own.and_then(|own| own.inspect(limit)) {
        Some(text) => Ok(text?),
        // The backend's callback takes the limit.
        None => Ok(print::elements(tensor, part, own.map(|_| limit), BOOLS)?),
    }
}

/// The values in bytes that `to_binary` returned, for a tensor of the type of `out`.
#[pyfunction]
fn inspect_binary(
    out: &Bound<'_, PyTensor>,
    data: &Bound<'_, PyAny>,
    limit: &Bound<'_, PyAny>,
) -> Fallible<String> {
    guard(|| {
        let op = "inspect";
        let stored = out.get().tensor.whole().clone();
        let limit = parse_limit(op, limit)?;
        let packed = memory::bytes(op, "data", data)?;
        let bytes = packed::unpack(stored.dtype, packed.bytes());
        let needed = limit.min(stored.size());
        let given = bytes.len() / stored.dtype.storage_bytes();
        if given < needed {
            return Err(Misuse::FewBytes { got: stored, given, needed }.into());
        }
        Ok(print::first_elements(stored.dtype, stored.shape.sizes(), &bytes, limit, BOOLS))
    })
}

/// The printed elements of a small tensor with at most two axes, row by row; None for other tensors.
#[pyfunction]
fn table_cells(tensor: &Bound<'_, PyTensor>) -> Fallible<Option<Vec<Vec<String>>>> {
    guard(|| {
        let py = tensor.py();
        let tensor = &tensor.get().tensor;
        let (ty, sizes) = (tensor.whole(), tensor.ty().shape.sizes());
        let is_small = sizes.len() <= 2 && (1..=limit(py)?).contains(&ty.size());
        if !print::is_live(tensor) || !is_small || !tensor.vectorized_axes().is_empty() {
            return Ok(None);
        }
        let memory = tensor.host_prefix("repr", ty.size())?;
        let elements = memory.bytes().chunks_exact(ty.dtype.storage_bytes());
        let texts: Vec<String> = elements
            .map(|element| print::element_text(Scalar::from_bytes(ty.dtype, element), BOOLS))
            .collect();
        let width = sizes.last().copied().unwrap_or(1);
        Ok(Some(texts.chunks(width).map(<[String]>::to_vec).collect()))
    })
}

/// A tensor's type as printed: `f32[x: 2][3]`.
#[pyfunction]
fn type_text(tensor: &Bound<'_, PyTensor>) -> String {
    vectorize::type_text(&tensor.get().tensor)
}

/// Whether a tensor is a value of a graph that still exists.
#[pyfunction]
fn has_graph(tensor: &Bound<'_, PyTensor>) -> bool {
    match tensor.get().tensor.data() {
        Data::Traced { trace, value } => trace.with_graph(|graph| graph.len() > value.node as usize),
        Data::Buffer(_) | Data::Template => false,
    }
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(inspect, module)?)?;
    module.add_function(wrap_pyfunction!(table_cells, module)?)?;
    module.add_function(wrap_pyfunction!(has_graph, module)?)?;
    module.add_function(wrap_pyfunction!(type_text, module)?)?;
    module.add_function(wrap_pyfunction!(inspect_binary, module)?)
}
