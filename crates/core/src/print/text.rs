//! The IR text: a complete description of a region, exact to the bit.
//!
//! ```text
//! defn-ir 1
//! (f32["x": 2]; s32) {
//!   %0 = parameter {index: 0} : f32["x": 2]
//!   %1 = constant {value: 2.0} : f32
//!   %2 = multiply %0 %1 : f32["x": 2]
//!   return %2
//! }
//! ```
//!
//! Inputs come first, parameters before the semicolon and captures after it. A node has its operands, its
//! attributes by name, and the types of its outputs; regions follow with their own numbers. `%3.1` is the
//! second output of node 3. Floats are written as the shortest decimals of their f64 value, NaNs as their
//! bits, and names are quoted. The rest of a line after `//` is a comment; a file and a line in a comment
//! after a node are its location.

use std::fmt::Write as _;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::form::{Attr, Form, form, quoted};
use crate::graph::{Node, Value};
use crate::region::Region;
use crate::shape::TensorType;

/// The only version of the text that this build writes and reads.
pub(super) const VERSION: u32 = 1;

impl Region {
    /// The whole region as text, which [`Region::from_text`] parses to an equal region. Locations are left
    /// out.
    ///
    /// ```
    /// use defn_core::graph::Graph;
    /// use defn_core::op::{Op, UnaryOp};
    /// use defn_core::region::Region;
    /// use defn_core::{DType, TensorType};
    /// let mut graph = Graph::new();
    /// let x = graph.parameter(0, TensorType::scalar(DType::F32));
    /// let results = graph.push(Op::Unary(UnaryOp::SIN), &[x])?;
    /// let region = Region::new(graph, vec![TensorType::scalar(DType::F32)], 1, results);
    /// assert_eq!(Region::from_text(&region.to_text())?, region);
    /// # Ok::<(), defn_core::Error>(())
    /// ```
    pub fn to_text(&self) -> String {
        self.text(false)
    }

    /// As [`Region::to_text`], with the user's line beside each node.
    pub fn to_text_with_locations(&self) -> String {
        self.text(true)
    }

    fn text(&self, locations: bool) -> String {
        let mut writer = Writer { out: format!("defn-ir {VERSION}\n"), indent: 0, locations };
        writer.region(self);
        writer.out.push('\n');
        writer.out
    }
}

/// The text of a value.
pub(crate) fn value_text(value: Value) -> String {
    let Value { node, output } = value;
    if output == 0 { format!("%{node}") } else { format!("%{node}.{output}") }
}

/// The text of a type.
pub(crate) fn type_text(ty: &TensorType) -> String {
    let mut writer = Writer { out: String::new(), indent: 0, locations: false };
    writer.types(std::slice::from_ref(ty));
    writer.out
}

/// The text of the types of parameters and captures.
pub(super) fn types_text(inputs: &[TensorType], parameters: usize) -> String {
    let mut writer = Writer { out: String::new(), indent: 0, locations: false };
    writer.inputs(inputs, parameters);
    writer.out
}

/// A node on one line, for reading: without its regions, and with a digest in place of elements.
pub(crate) fn line(position: usize, node: &Node) -> String {
    let mut writer = Writer { out: String::new(), indent: 0, locations: false };
    writer.head(position, node, &form(&node.op), short_attribute);
    writer.out
}

/// An attribute on one line, for reading: elements are replaced by their size and a digest.
pub(crate) fn short_attribute(value: &Attr) -> String {
    match value {
        Attr::Bytes(bytes) => {
            let mut hasher = FxHasher::default();
            bytes.hash(&mut hasher);
            format!("{} bytes #{:016x}", bytes.len(), hasher.finish())
        }
        Attr::None | Attr::Bool(_) | Attr::Number(_) | Attr::Ints(_) | Attr::Padding(_) | Attr::Text(_) => {
            value.to_string()
        }
    }
}

struct Writer {
    out: String,
    indent: usize,
    locations: bool,
}

impl Writer {
    fn region(&mut self, region: &Region) {
        self.inputs(region.inputs(), region.parameter_count());
        self.out.push_str(" {");
        self.indent += 1;
        for (position, node) in region.graph().nodes().iter().enumerate() {
            self.new_line();
            self.node(position, node);
        }
        self.new_line();
        self.out.push_str("return");
        for &result in region.results() {
            self.value(result);
        }
        self.indent -= 1;
        self.new_line();
        self.out.push('}');
    }

    fn inputs(&mut self, inputs: &[TensorType], parameters: usize) {
        let (parameters, captures) = inputs.split_at(parameters);
        self.out.push('(');
        self.types(parameters);
        if !captures.is_empty() {
            self.out.push_str("; ");
            self.types(captures);
        }
        self.out.push(')');
    }

    fn node(&mut self, position: usize, node: &Node) {
        let form = form(&node.op);
        self.head(position, node, &form, |value| value.to_string());
        if self.locations
            && let Some(location) = &node.location
        {
            // A file name may contain any character, but must not end the comment.
            let text: String =
                location.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            self.push(format_args!(" // {text}"));
        }
        self.indent += 1;
        for (name, region) in form.regions.iter().zip(node.op.regions()) {
            self.new_line();
            self.push(format_args!("{name} "));
            self.region(region);
        }
        self.indent -= 1;
    }

    /// A node without its regions.
    fn head(&mut self, position: usize, node: &Node, form: &Form, attribute: impl Fn(&Attr) -> String) {
        self.push(format_args!("%{position} = {}", form.name));
        for &input in &node.inputs {
            self.value(input);
        }
        let attributes: Vec<String> =
            form.attributes().map(|(name, value)| format!("{name}: {}", attribute(value))).collect();
        if !attributes.is_empty() {
            self.push(format_args!(" {{{}}}", attributes.join(", ")));
        }
        self.out.push_str(" : ");
        if node.outputs.is_empty() {
            self.out.push_str("()");
        }
        self.types(&node.outputs);
    }

    fn value(&mut self, value: Value) {
        self.push(format_args!(" {}", value_text(value)));
    }

    fn types(&mut self, types: &[TensorType]) {
        for (position, ty) in types.iter().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            self.push(format_args!("{comma}{}", ty.dtype));
            for (size, name) in ty.shape.entries() {
                match name {
                    Some(name) => self.push(format_args!("[{}: {size}]", quoted(&name))),
                    None => self.push(format_args!("[{size}]")),
                }
            }
        }
    }

    fn new_line(&mut self) {
        self.out.push('\n');
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        self.out.write_fmt(text).expect("writing to a string does not fail");
    }
}
