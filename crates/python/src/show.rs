//! How a tensor prints: its type, then its values as Nx prints them, or the graph of a traced one.

use defn_core::backend::BufferState;
use defn_core::format::packed;
use defn_core::scalar::Scalar;
use defn_core::tensor::Data;
use defn_core::{DType, Number, Tensor, vectorize};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use smallvec::smallvec;

use crate::convert;
use crate::error::{Fallible, guard};
use crate::memory;
use crate::misuse::Misuse;
use crate::options;
use crate::pjrt;
use crate::pybackend::PythonBuffer;
use crate::tensor::PyTensor;

/// How many elements are read and shown.
const LIMIT: usize = 50;

/// How many axes are written out as nested brackets; tensors of more show their type only.
const DEEPEST: usize = 256;

/// The limit that holds here; no limit counts as one that is never reached.
fn limit(py: Python<'_>) -> Fallible<usize> {
    match options::get(py, intern!(py, "print_limit"))? {
        Some(value) => parse_limit("print_limit", &value),
        None => Ok(LIMIT),
    }
}

/// Whether tensors on devices say where they are.
fn shows_place() -> Fallible<bool> {
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
        // More elements than any tensor has.
        _ if value.is_instance_of::<PyInt>() && value.gt(0)? => Ok(usize::MAX),
        Some(Err(_)) | None => Err(convert::bad(op, "limit", value, required)?),
    }
}

/// A tensor as it prints: the text between `Tensor<` and `>`, and both.
pub(crate) fn tensor(py: Python<'_>, tensor: &Tensor) -> Fallible<String> {
    written(tensor, limit(py)?)
}

/// A tensor with at most so many elements.
#[pyfunction]
fn inspect(tensor: &Bound<'_, PyTensor>, limit: &Bound<'_, PyAny>) -> Fallible<String> {
    guard(|| written(&tensor.get().tensor, parse_limit("inspect", limit)?))
}

fn written(tensor: &Tensor, limit: usize) -> Fallible<String> {
    let body = match tensor.data() {
        Data::Template => String::new(),
        Data::Buffer(buffer) => match buffer.state() {
            BufferState::Live => format!("\n  {}", elements(tensor, limit)?),
            // The type is known still, and printing a tensor must not raise while an error is looked into.
            BufferState::Gone(gone) => format!("\n  ({})", gone.how),
        },
        Data::Traced { trace, value } => {
            let is_gone = trace.with_graph(|graph| graph.len() <= value.node as usize);
            let text = if is_gone {
                "of a definition that has ended".to_owned()
            } else {
                let region = trace.snapshot(smallvec![*value]);
                defn_core::print::display(&region, &[*value])
            };
            let lines: Vec<String> = text.lines().map(|line| format!("\n  {line}")).collect();
            format!("\n{}", lines.concat())
        }
    };
    let mut header = String::new();
    if !tensor.vectorized_axes().is_empty() {
        header = format!("{}\n  ", vectorize::lanes_text(tensor.vectorized_axes()));
    }
    let place = match pjrt::signature(tensor) {
        Some(place) if shows_place()? => format!("\n  {place}"),
        Some(_) | None => String::new(),
    };
    Ok(format!("Tensor<\n  {header}{}{place}{body}\n>", tensor.ty()))
}

fn elements(tensor: &Tensor, limit: usize) -> Fallible<String> {
    let stored = tensor.whole();
    if stored.shape.rank() > DEEPEST {
        return Ok("...".to_owned());
    }
    let own = tensor.buffer().and_then(|buffer| buffer.as_any().downcast_ref::<PythonBuffer>());
    if let Some(text) = own.and_then(|own| own.inspect(limit)) {
        return Ok(text?);
    }
    let memory = tensor.host_prefix("repr", limit)?;
    Ok(values(stored.dtype, stored.shape.sizes(), memory.bytes(), limit))
}

/// The values of a tensor of these sizes, of which at least the first `limit` are in `bytes`.
fn values(dtype: DType, sizes: &[usize], bytes: &[u8], limit: usize) -> String {
    let mut values = Values { dtype, bytes, left: limit };
    let mut out = String::new();
    values.write(sizes, 1, &mut out);
    out
}

/// The values that bytes hold for a tensor of the type of `out`, as `to_binary` gives them.
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
        if stored.shape.rank() > DEEPEST {
            return Ok("...".to_owned());
        }
        Ok(values(stored.dtype, stored.shape.sizes(), &bytes, limit))
    })
}

/// The elements of a small tensor of at most two axes, row by row, as they print; None for any other.
#[pyfunction]
fn table_cells(tensor: &Bound<'_, PyTensor>) -> Fallible<Option<Vec<Vec<String>>>> {
    guard(|| {
        let py = tensor.py();
        let tensor = &tensor.get().tensor;
        let (ty, sizes) = (tensor.whole(), tensor.ty().shape.sizes());
        let is_live = tensor.buffer().is_some_and(|buffer| match buffer.state() {
            BufferState::Live => true,
            BufferState::Gone(_) => false,
        });
        let is_small = sizes.len() <= 2 && (1..=limit(py)?).contains(&ty.size());
        if !is_live || !is_small || !tensor.vectorized_axes().is_empty() {
            return Ok(None);
        }
        let memory = tensor.host_prefix("repr", ty.size())?;
        let elements = memory.bytes().chunks_exact(ty.dtype.storage_bytes());
        let texts: Vec<String> =
            elements.map(|element| element_text(Scalar::from_bytes(ty.dtype, element))).collect();
        let width = sizes.last().copied().unwrap_or(1);
        Ok(Some(texts.chunks(width).map(<[String]>::to_vec).collect()))
    })
}

/// Whether a tensor is a value of a graph that is there to be looked at.
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
    module.add_function(wrap_pyfunction!(inspect_binary, module)?)
}

/// An element as it is shown: truth values as Python writes them.
fn element_text(scalar: Scalar) -> String {
    match scalar.value() {
        Number::Bool(value) => if value { "True" } else { "False" }.to_owned(),
        Number::Int(_) | Number::Huge(_) | Number::Float(_) | Number::Complex(_) => scalar.to_string(),
    }
}

/// The elements not shown yet.
struct Values<'a> {
    dtype: DType,
    bytes: &'a [u8],
    left: usize,
}

impl Values<'_> {
    /// Writes a block of these sizes; `depth` is how far its lines are indented.
    fn write(&mut self, sizes: &[usize], depth: usize, out: &mut String) {
        let Some((&size, inner)) = sizes.split_first() else {
            if self.left == 0 {
                out.push_str("...");
                return;
            }
            let (element, rest) = self.bytes.split_at(self.dtype.storage_bytes());
            out.push_str(&element_text(Scalar::from_bytes(self.dtype, element)));
            self.bytes = rest;
            self.left -= 1;
            return;
        };
        if size == 0 || inner.contains(&0) {
            out.push_str("[]");
            return;
        }
        let (open, gap, close) = if inner.is_empty() {
            (String::new(), " ".to_owned(), String::new())
        } else {
            let line = |depth: usize| format!("\n{}", "  ".repeat(depth));
            (line(depth + 1), line(depth + 1), line(depth))
        };
        out.push('[');
        out.push_str(&open);
        for position in 0..size {
            if position > 0 {
                out.push(',');
                out.push_str(&gap);
            }
            if self.left == 0 {
                out.push_str("...");
                break;
            }
            self.write(inner, depth + 1, out);
        }
        out.push_str(&close);
        out.push(']');
    }
}
