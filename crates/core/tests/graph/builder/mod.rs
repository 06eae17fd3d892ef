//! Types and errors of every function of the builder, by family.

mod arrange;
mod control;
mod create;
mod elementwise;
mod index;
mod linalg;
mod order;
mod reduce;
mod search;
mod shape;
mod special;
mod window;

use defn_core::builder::Builder;
use defn_core::graph::{Graph, Value};
use defn_core::{DType, Name, Result, Shape, TensorType};

/// Parses a printed type, such as `f32[x: 2][3]`.
fn ty(text: &str) -> TensorType {
    let (dtype, axes) = text.split_at(text.find('[').unwrap_or(text.len()));
    let axes = axes.split_terminator(']').map(|axis| {
        let axis = axis.strip_prefix('[').expect("axes are in brackets");
        match axis.split_once(": ") {
            Some((name, size)) => (size.parse().expect("a size"), Some(Name::from(name))),
            None => (axis.parse().expect("a size"), None),
        }
    });
    let dtype: DType = dtype.parse().expect("a dtype");
    TensorType::new(dtype, Shape::from_axes(axes)).expect("a type that fits in memory")
}

/// The type of `build`'s result on operands of these types, or the text of its error.
fn check<R: Describe>(types: &[&str], build: impl FnOnce(&mut Graph, &[Value]) -> Result<R>) -> String {
    let mut graph = Graph::new();
    let operands: Vec<Value> =
        types.iter().enumerate().map(|(index, text)| graph.parameter(index, ty(text))).collect();
    match build(&mut graph, &operands) {
        Ok(value) => value.describe(&graph),
        Err(error) => error.to_string(),
    }
}

/// The result of a builder function, as text.
trait Describe {
    fn describe(&self, graph: &Graph) -> String;
}

impl Describe for Value {
    fn describe(&self, graph: &Graph) -> String {
        Builder::ty(graph, self).to_string()
    }
}

impl Describe for (Value, Value) {
    fn describe(&self, graph: &Graph) -> String {
        format!("{}, {}", self.0.describe(graph), self.1.describe(graph))
    }
}

impl Describe for Vec<Value> {
    fn describe(&self, graph: &Graph) -> String {
        self.iter().map(|value| value.describe(graph)).collect::<Vec<_>>().join(", ")
    }
}

/// Names from texts; an empty text is a missing name.
fn names(texts: &[&str]) -> Vec<Option<Name>> {
    texts.iter().map(|text| (!text.is_empty()).then(|| Name::from(*text))).collect()
}
