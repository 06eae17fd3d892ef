//! Printing of tensors: the type, then the values in the format of Nx, or the graph of a traced tensor. For large
//! tensors, the elements at both ends of each axis are shown, as in NumPy.

use smallvec::smallvec;

use super::display;
use crate::backend::BufferState;
use crate::dtype::DType;
use crate::error::Result;
use crate::scalar::{Number, Scalar};
use crate::tensor::{Data, Tensor};
use crate::vectorize;

/// Tensors with more elements show only those at the ends of their axes, unless the user asks for others.
pub const SHOWN_ELEMENTS: usize = 50;

/// For large tensors, the number of positions that are shown at each end of an axis.
const EDGE_POSITIONS: usize = 3;

/// The maximum length of a line; longer rows continue on the next line.
const WIDTH: usize = 80;

/// For a tensor with more bytes on a device, printing reads only the first elements.
const MAX_BYTES_READ: usize = 1 << 20;

/// The maximum number of axes that are printed as nested brackets; tensors with more show only their type.
const DEEPEST: usize = 256;

/// The elements that are shown.
#[derive(Clone, Copy, Debug)]
pub enum ShownElements {
    /// The first `n` elements in row-major order.
    First(usize),
    /// All elements if there are at most `n`, else those at the ends of the axes.
    Ends(usize),
}

/// How bools are written: false, and true.
pub type BoolText = [&'static str; 2];

/// Whether a tensor has elements that were not freed.
pub fn is_live(tensor: &Tensor) -> bool {
    tensor.buffer().is_some_and(|buffer| match buffer.state() {
        BufferState::Live => true,
        BufferState::Gone(_) => false,
    })
}

/// Whether a tensor prints as its number: a scalar, outside of a trace, that was not freed.
pub fn is_number(tensor: &Tensor) -> bool {
    is_live(tensor) && tensor.whole().shape.rank() == 0
}

/// The text between `Tensor<` and `>`: vectorized axes, the type, where the tensor lies if that is to be shown, and the
/// elements that `elements` writes, or the graph of a traced tensor.
///
/// # Errors
/// Those of `elements`.
pub fn tensor<E>(
    tensor: &Tensor,
    device: Option<&str>,
    elements: impl FnOnce() -> std::result::Result<String, E>,
) -> std::result::Result<String, E> {
    let body = match tensor.data() {
        Data::Template => String::new(),
        Data::Buffer(buffer) => match buffer.state() {
            BufferState::Live => format!("\n  {}", elements()?),
            // The type is still known, and printing must not fail while the user inspects an error.
            BufferState::Gone(gone) => format!("\n  ({})", gone.how),
        },
        Data::Traced { trace, value } => {
            let is_gone = trace.with_graph(|graph| graph.len() <= value.node as usize);
            let text = if is_gone {
                "of a definition that has ended".to_owned()
            } else {
                display(&trace.snapshot(smallvec![*value]), &[*value])
            };
            let lines: Vec<String> = text.lines().map(|line| format!("\n  {line}")).collect();
            format!("\n{}", lines.concat())
        }
    };
    let mut header = String::new();
    if !tensor.vectorized_axes().is_empty() {
        header = format!("{}\n  ", vectorize::vectorized_axes_text(tensor.vectorized_axes()));
    }
    let device = device.map(|device| format!("\n  {device}")).unwrap_or_default();
    Ok(format!("Tensor<\n  {header}{}{device}{body}\n>", tensor.ty()))
}

/// The elements of a tensor. At most so many are read from its backend, or as many as printing needs.
///
/// # Errors
/// Elements that were freed, and errors of the backend.
pub fn elements(
    tensor: &Tensor,
    part: ShownElements,
    most: Option<usize>,
    bools: BoolText,
) -> Result<String> {
    let stored = tensor.whole();
    let (sizes, dtype) = (stored.shape.sizes(), stored.dtype);
    if sizes.len() > DEEPEST {
        return Ok("...".to_owned());
    }
    match part {
        ShownElements::Ends(limit) if limit > 0 && stored.size() > limit => {
            let edges = edges(sizes, limit);
            let is_large = stored.byte_size() > MAX_BYTES_READ;
            let needed = if is_large { MAX_BYTES_READ / dtype.storage_bytes() } else { usize::MAX };
            let most = most.unwrap_or(needed);
            let memory = tensor.host_prefix("repr", most)?;
            Ok(Values::new(dtype, sizes, memory.bytes(), usize::MAX, edges, bools).text())
        }
        ShownElements::Ends(limit) | ShownElements::First(limit) => {
            let memory = tensor.host_prefix("repr", limit)?;
            Ok(first_elements(dtype, sizes, memory.bytes(), limit, bools))
        }
    }
}

/// The first elements of a tensor with these sizes; `bytes` holds at least the first `limit`.
pub fn first_elements(dtype: DType, sizes: &[usize], bytes: &[u8], limit: usize, bools: BoolText) -> String {
    if sizes.len() > DEEPEST {
        return "...".to_owned();
    }
    Values::new(dtype, sizes, bytes, limit, vec![(usize::MAX, 0); sizes.len()], bools).text()
}

/// The text of an element.
pub fn element_text(scalar: Scalar, bools: BoolText) -> String {
    match scalar.value() {
        Number::Bool(value) => bools[usize::from(value)].to_owned(),
        Number::Int(_) | Number::Huge(_) | Number::Float(_) | Number::Complex(_) => scalar.to_string(),
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
    bools: BoolText,
}

impl<'a> Values<'a> {
    fn new(
        dtype: DType,
        sizes: &'a [usize],
        bytes: &'a [u8],
        limit: usize,
        edges: Vec<(usize, usize)>,
        bools: BoolText,
    ) -> Values<'a> {
        let mut strides = vec![1; sizes.len()];
        for axis in (1..sizes.len()).rev() {
            strides[axis - 1] = strides[axis] * sizes[axis];
        }
        let limit = limit.min(bytes.len() / dtype.storage_bytes());
        Values { dtype, sizes, strides, bytes, limit, edges, bools }
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
        if at < self.limit {
            element_text(Scalar::from_bytes(self.dtype, element), self.bools)
        } else {
            "...".to_owned()
        }
    }
}
