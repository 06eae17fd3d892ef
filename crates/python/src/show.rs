//! Printing of tensors: the type, then the values in the format of Nx, or the graph of a traced tensor. A
//! scalar takes one line. For large tensors, the elements at both ends of each axis are shown, as in NumPy.

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
use crate::read;
use crate::tensor::PyTensor;

/// Tensors with more elements show only those at the ends of their axes.
const LIMIT: usize = 50;

/// For large tensors, the number of positions that are shown at each end of an axis.
const EDGE_POSITIONS: usize = 3;

/// The maximum length of a line; longer rows continue on the next line.
const WIDTH: usize = 80;

/// For a tensor with more bytes on a device, printing reads only the first elements.
const MAX_BYTES_READ: usize = 1 << 20;

/// The maximum number of axes that are printed as nested brackets; tensors with more show only their type.
const DEEPEST: usize = 256;

/// The limit in this context; `usize::MAX` stands for no limit.
fn limit(py: Python<'_>) -> Fallible<usize> {
    match options::get(py, intern!(py, "print_limit"))? {
        Some(value) => parse_limit("print_limit", &value),
        None => Ok(LIMIT),
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
    let is_live = tensor.buffer().is_some_and(|buffer| match buffer.state() {
        BufferState::Live => true,
        BufferState::Gone(_) => false,
    });
    if is_live && tensor.whole().shape.rank() == 0 {
        Ok(Some(elements(tensor, ShownElements::First(1))?))
    } else {
        Ok(None)
    }
}

/// A tensor with at most `limit` elements, the first ones.
#[pyfunction]
fn inspect(tensor: &Bound<'_, PyTensor>, limit: &Bound<'_, PyAny>) -> Fallible<String> {
    guard(|| written(&tensor.get().tensor, ShownElements::First(parse_limit("inspect", limit)?)))
}

/// The elements that are shown.
#[derive(Clone, Copy)]
enum ShownElements {
    /// The first `n` elements in row-major order.
    First(usize),
    /// All elements if there are at most `n`, else those at the ends of the axes.
    Ends(usize),
}

/// The location of a tensor on a device, unless the options hide it.
fn device_text(tensor: &Tensor) -> Fallible<Option<String>> {
    match pjrt::signature(tensor) {
        Some(device) if shows_device()? => Ok(Some(device)),
        Some(_) | None => Ok(None),
    }
}

fn written(tensor: &Tensor, part: ShownElements) -> Fallible<String> {
    let body = match tensor.data() {
        Data::Template => String::new(),
        Data::Buffer(buffer) => match buffer.state() {
            BufferState::Live => format!("\n  {}", elements(tensor, part)?),
            // The type is still known, and printing must not raise while the user inspects an error.
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
        header = format!("{}\n  ", vectorize::vectorized_axes_text(tensor.vectorized_axes()));
    }
    let device = device_text(tensor)?.map(|device| format!("\n  {device}")).unwrap_or_default();
    Ok(format!("Tensor<\n  {header}{}{device}{body}\n>", tensor.ty()))
}

fn elements(tensor: &Tensor, part: ShownElements) -> Fallible<String> {
    let stored = tensor.whole();
    let sizes = stored.shape.sizes();
    if sizes.len() > DEEPEST {
        return Ok("...".to_owned());
    }
    let own = tensor.buffer().and_then(|buffer| buffer.as_any().downcast_ref::<PythonBuffer>());
    let (ShownElements::First(limit) | ShownElements::Ends(limit)) = part;
    if let Some(text) = own.and_then(|own| own.inspect(limit)) {
        return Ok(text?);
    }
    match part {
        ShownElements::Ends(limit) if limit > 0 && stored.size() > limit => {
            let edges = edges(sizes, limit);
            let most = match own {
                // The backend's `inspect` callback takes the limit.
                Some(_) => limit,
                None if stored.byte_size() > MAX_BYTES_READ => MAX_BYTES_READ / stored.dtype.storage_bytes(),
                None => usize::MAX,
            };
            let memory = tensor.host_prefix("repr", most)?;
            Ok(Values::new(stored.dtype, sizes, memory.bytes(), usize::MAX, edges).text())
        }
        ShownElements::Ends(limit) | ShownElements::First(limit) => {
            let memory = tensor.host_prefix("repr", limit)?;
            Ok(values(stored.dtype, sizes, memory.bytes(), limit))
        }
    }
}

/// The number of positions that are shown at the start and at the end of each axis, so that at most `limit`
/// elements are shown.
fn edges(sizes: &[usize], limit: usize) -> Vec<(usize, usize)> {
    let shown = |edges: &[(usize, usize)]| {
        edges
            .iter()
            .zip(sizes)
            .fold(1, |count: usize, (&(start, end), &size)| count.saturating_mul((start + end).min(size)))
    };
    for edge in (1..=EDGE_POSITIONS).rev() {
        let edges = vec![(edge, edge); sizes.len()];
        if shown(&edges) <= limit {
            return edges;
        }
    }
    // With many axes, the first axes show only their first position.
    let mut edges = vec![(1, 1); sizes.len()];
    for axis in 0..sizes.len() {
        if shown(&edges) <= limit {
            break;
        }
        edges[axis] = (1, 0);
    }
    edges
}

/// The values of a tensor with these sizes; `bytes` holds at least the first `limit` elements.
fn values(dtype: DType, sizes: &[usize], bytes: &[u8], limit: usize) -> String {
    Values::new(dtype, sizes, bytes, limit, vec![(usize::MAX, 0); sizes.len()]).text()
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
        if stored.shape.rank() > DEEPEST {
            return Ok("...".to_owned());
        }
        Ok(values(stored.dtype, stored.shape.sizes(), &bytes, limit))
    })
}

/// The printed elements of a small tensor with at most two axes, row by row; None for other tensors.
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

/// The text of an element; bools are written as in Python.
fn element_text(scalar: Scalar) -> String {
    match scalar.value() {
        Number::Bool(value) => if value { "True" } else { "False" }.to_owned(),
        Number::Int(_) | Number::Huge(_) | Number::Float(_) | Number::Complex(_) => scalar.to_string(),
    }
}

/// The printed elements, as nested brackets.
struct Values<'a> {
    dtype: DType,
    sizes: &'a [usize],
    /// The stride of each axis, in elements.
    strides: Vec<usize>,
    bytes: &'a [u8],
    /// The number of leading elements that may be shown.
    limit: usize,
    /// The number of positions that are shown at the start and at the end of each axis.
    edges: Vec<(usize, usize)>,
}

impl<'a> Values<'a> {
    fn new(
        dtype: DType,
        sizes: &'a [usize],
        bytes: &'a [u8],
        limit: usize,
        edges: Vec<(usize, usize)>,
    ) -> Values<'a> {
        let mut strides = vec![1; sizes.len()];
        for axis in (1..sizes.len()).rev() {
            strides[axis - 1] = strides[axis] * sizes[axis];
        }
        let limit = limit.min(bytes.len() / dtype.storage_bytes());
        Values { dtype, sizes, strides, bytes, limit, edges }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        self.write(0, 0, &mut out);
        out
    }

    /// The positions of an axis that are shown, for the block that begins at element `start`; None is an
    /// ellipsis.
    fn positions(&self, axis: usize, start: usize) -> Vec<Option<usize>> {
        let (size, (first, last)) = (self.sizes[axis], self.edges[axis]);
        let every: Vec<Option<usize>> = if size <= first.saturating_add(last) {
            (0..size).map(Some).collect()
        } else {
            let ends = (0..first).map(Some).chain([None]);
            ends.chain((size - last..size).map(Some)).collect()
        };
        let is_there = |at: &Option<usize>| at.is_none_or(|at| start + at * self.strides[axis] < self.limit);
        let mut shown: Vec<_> = every.iter().copied().take_while(is_there).collect();
        if shown.len() < every.len() && shown.last() != Some(&None) {
            shown.push(None);
        }
        shown
    }

    /// Writes the block of an axis that begins at element `start`, with all inner blocks.
    fn write(&self, axis: usize, start: usize, out: &mut String) {
        if axis == self.sizes.len() {
            out.push_str(&self.element(start));
            return;
        }
        if self.sizes[axis..].contains(&0) {
            out.push_str("[]");
            return;
        }
        if axis + 1 == self.sizes.len() {
            return self.row(start, out);
        }
        let line = |depth: usize| format!("\n{}", "  ".repeat(depth));
        out.push('[');
        for (count, position) in self.positions(axis, start).into_iter().enumerate() {
            out.push_str(if count > 0 { "," } else { "" });
            out.push_str(&line(axis + 2));
            match position {
                Some(position) => self.write(axis + 1, start + position * self.strides[axis], out),
                None => out.push_str("..."),
            }
        }
        out.push_str(&line(axis + 1));
        out.push(']');
    }

    /// Writes a row of elements; long rows continue on further lines.
    fn row(&self, start: usize, out: &mut String) {
        let indent = 2 * self.sizes.len() + 1;
        let mut column = indent;
        out.push('[');
        for (count, position) in self.positions(self.sizes.len() - 1, start).into_iter().enumerate() {
            let text = position.map_or_else(|| "...".to_owned(), |at| self.element(start + at));
            if count > 0 {
                out.push(',');
                // The space before, and the comma or bracket after the element.
                if column + text.len() + 3 > WIDTH {
                    out.push('\n');
                    out.push_str(&" ".repeat(indent));
                    column = indent;
                } else {
                    out.push(' ');
                    column += 2;
                }
            }
            column += text.len();
            out.push_str(&text);
        }
        out.push(']');
    }

    fn element(&self, at: usize) -> String {
        let Some(element) = self.bytes.chunks_exact(self.dtype.storage_bytes()).nth(at) else {
            return "...".to_owned();
        };
        if at < self.limit { element_text(Scalar::from_bytes(self.dtype, element)) } else { "...".to_owned() }
    }
}
