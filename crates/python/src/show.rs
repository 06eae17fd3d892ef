//! How a tensor prints: its type, then its values as Nx prints them, or the graph of a traced one.

use defn_core::scalar::Scalar;
use defn_core::tensor::Data;
use defn_core::{DType, Tensor, vectorize};
use smallvec::smallvec;

use crate::error::Fallible;

/// How many elements are read and shown.
const LIMIT: usize = 50;

/// How many axes are written out as nested brackets; tensors of more show their type only.
const DEEPEST: usize = 256;

/// The text between `Tensor<` and `>`, and both.
pub(crate) fn tensor(tensor: &Tensor) -> Fallible<String> {
    let body = match tensor.data() {
        Data::Template => String::new(),
        Data::Buffer(_) if tensor.whole().shape.rank() > DEEPEST => "\n  ...".to_owned(),
        Data::Buffer(_) => {
            let memory = tensor.host_bytes("repr")?;
            let mut values = Values { dtype: tensor.ty().dtype, bytes: memory.bytes(), left: LIMIT };
            let mut out = String::new();
            values.write(tensor.whole().shape.sizes(), 1, &mut out);
            format!("\n  {out}")
        }
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
    Ok(format!("Tensor<\n  {header}{}{body}\n>", tensor.ty()))
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
            let (element, rest) = self.bytes.split_at(self.dtype.storage_bytes());
            out.push_str(&Scalar::from_bytes(self.dtype, element).to_string());
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
