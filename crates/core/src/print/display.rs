//! The display form: one line for each node that a value needs, as Nx prints expressions.

use smallvec::SmallVec;

use crate::form::{self, Argument, Attr, Form};
use crate::graph::{Graph, Node, Value};
use crate::op::{CondOp, CustomGradOp, Identity, ImplicitOp, Op, OpClass, Outputs};
use crate::region::Region;
use crate::shape::TensorType;

/// The number of spaces between the longest line and the column of types.
const GAP: usize = 3;

/// Prints the nodes that some values of a region need.
///
/// Parameters come first, with their positions, then captured tensors and literals, then nodes in the order
/// in which they are first needed. Letters are assigned in order of first visit. The types have no names.
/// Constants and options are printed inline. A loop shows only its initial state. A cond shows the values of
/// its branches, whose nodes are listed with the others. Ops that only add a gradient rule are not shown.
pub fn display(region: &Region, results: &[Value]) -> String {
    let mut printer = Printer::default();
    let arguments = vec![None; region.inputs().len()];
    let mut frame = Frame { graph: region.graph(), arguments, texts: vec![None; region.graph().len()] };
    printer.visit(&mut frame, results, region.parameter_count());
    for &result in results {
        if let Op::Constant(scalar) = &region.graph().node(result).op {
            let letter = printer.letter();
            printer
                .nodes
                .push((format!("{letter} = constant {scalar}"), type_text(region.graph().ty(result))));
        }
    }
    printer.finish()
}

#[derive(Default)]
struct Printer {
    inputs: Vec<(String, String)>,
    nodes: Vec<(String, String)>,
    letters: usize,
}

/// A graph that is being printed: the program's, or a branch's inside it.
struct Frame<'g> {
    graph: &'g Graph,
    /// The text of each input of a branch. The program's inputs get letters when they are first visited.
    arguments: Vec<Option<String>>,
    /// The text of each node's outputs, once it is visited.
    texts: Vec<Option<SmallVec<[String; 1]>>>,
}

impl Frame<'_> {
    fn text(&self, value: Value) -> &str {
        let texts = self.texts[value.node as usize].as_ref();
        &texts.expect("operands are visited before what uses them")[value.output as usize]
    }
}

impl Printer {
    /// The next of a, b, ..., z, aa, ab, ...
    fn letter(&mut self) -> String {
        let mut rest = self.letters;
        self.letters += 1;
        let mut reversed = Vec::new();
        loop {
            reversed.push(b'a' + (rest % 26) as u8);
            match (rest / 26).checked_sub(1) {
                Some(more) => rest = more,
                None => break,
            }
        }
        reversed.iter().rev().map(|&byte| char::from(byte)).collect()
    }

    /// Visits the nodes that values need, operands first. An explicit stack avoids recursion on long chains
    /// of nodes.
    fn visit(&mut self, frame: &mut Frame<'_>, values: &[Value], parameters: usize) {
        for value in values {
            let mut stack = vec![(value.node as usize, 0)];
            while let Some((position, next)) = stack.pop() {
                if frame.texts[position].is_some() {
                    continue;
                }
                let node = &frame.graph.nodes()[position];
                let shown = shown_inputs(&node.op, node.inputs.len());
                if next < shown {
                    stack.push((position, next + 1));
                    stack.push((node.inputs[next].node as usize, 0));
                } else {
                    let texts = self.node(frame, node, parameters);
                    frame.texts[position] = Some(texts);
                }
            }
        }
    }

    /// Prints a node whose operands are printed, and returns the texts of its outputs.
    fn node(&mut self, frame: &Frame<'_>, node: &Node, parameters: usize) -> SmallVec<[String; 1]> {
        let one = |text: String| SmallVec::from_elem(text, 1);
        match node.op.class() {
            OpClass::Parameter { index, ty } => {
                if let Some(text) = &frame.arguments[index] {
                    return one(text.clone());
                }
                let letter = self.letter();
                let line = if index < parameters {
                    format!("parameter {letter}:{index}")
                } else {
                    format!("tensor {letter}")
                };
                self.inputs.push((line, type_text(ty)));
                one(letter)
            }
            OpClass::Literal(literal) => {
                let letter = self.letter();
                self.inputs.push((format!("tensor {letter}"), type_text(literal.ty())));
                one(letter)
            }
            OpClass::Constant(scalar) => one(scalar.to_string()),
            OpClass::Identity(Identity::Constant | Identity::Transfer(_)) => {
                one(frame.text(node.inputs[0]).to_owned())
            }
            OpClass::Barrier => node.inputs.iter().map(|&value| frame.text(value).to_owned()).collect(),
            OpClass::CustomGrad(CustomGradOp { values, .. })
            | OpClass::Implicit(ImplicitOp { values, .. }) => {
                node.inputs[..*values].iter().map(|&value| frame.text(value).to_owned()).collect()
            }
            OpClass::While(op) => {
                let initial: Vec<&str> =
                    node.inputs[..op.state].iter().map(|&value| frame.text(value)).collect();
                self.line(format!("while {}", tuple(&initial)), &node.outputs)
            }
            OpClass::UserBlock(op) => {
                let texts = node.inputs.iter().map(|&value| frame.text(value).to_owned());
                let attributes = (!op.attributes.is_empty()).then(|| op.attributes.to_string());
                let arguments: Vec<String> = texts.chain(attributes).collect();
                let text = format!("block {} {}", op.name, arguments.join(", "));
                self.line(text.trim_end().to_owned(), &node.outputs)
            }
            OpClass::Cond(op) => {
                let clauses = self.clauses(frame, node, op);
                self.line(format!("cond {clauses}"), &node.outputs)
            }
            OpClass::Primitive(_)
            | OpClass::Identity(Identity::Mark(_))
            | OpClass::Collective(_)
            | OpClass::Fold(_)
            | OpClass::WindowFold(_)
            | OpClass::Hook(_)
            | OpClass::RuntimeCall(_)
            | OpClass::Block(_) => {
                let form = form::form(&node.op);
                let arguments = arguments(frame, node, &form);
                let text = [form.name, " ", &arguments.join(", ")].concat();
                self.line(text.trim_end().to_owned(), &node.outputs)
            }
        }
    }

    /// Adds a node's line, and one for each of several outputs.
    fn line(&mut self, text: String, outputs: &Outputs) -> SmallVec<[String; 1]> {
        let letter = self.letter();
        if let [output] = &outputs[..] {
            self.nodes.push((format!("{letter} = {text}"), type_text(output)));
            return SmallVec::from_elem(letter, 1);
        }
        self.nodes.push((format!("{letter} = {text}"), format!("tuple{}", outputs.len())));
        let mut letters = SmallVec::new();
        for (position, output) in outputs.iter().enumerate() {
            let element = self.letter();
            self.nodes.push((format!("{element} = elem {letter}, {position}"), type_text(output)));
            letters.push(element);
        }
        letters
    }

    /// `a -> b, true -> c`: the results of each branch. Branches have captures only, so that their nodes can
    /// be listed among the surrounding ones.
    fn clauses(&mut self, frame: &Frame<'_>, node: &Node, op: &CondOp) -> String {
        let (predicates, captures) = node.inputs.split_at(op.branches.len() - 1);
        let mut clauses = Vec::new();
        for (position, branch) in op.branches.iter().enumerate() {
            let mut inner = Frame {
                graph: branch.graph(),
                arguments: captures.iter().map(|&value| Some(frame.text(value).to_owned())).collect(),
                texts: vec![None; branch.graph().len()],
            };
            self.visit(&mut inner, branch.results(), 0);
            let results: Vec<&str> = branch.results().iter().map(|&value| inner.text(value)).collect();
            let predicate = predicates.get(position).map_or("true", |&value| frame.text(value));
            clauses.push(format!("{predicate} -> {}", tuple(&results)));
        }
        clauses.join(", ")
    }

    /// Aligns the column of types.
    fn finish(self) -> String {
        let lines: Vec<_> = self.inputs.into_iter().chain(self.nodes).collect();
        let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0) + GAP;
        lines.iter().map(|(line, ty)| format!("{line:width$}{ty}\n")).collect()
    }
}

/// The number of a node's inputs that are printed.
fn shown_inputs(op: &Op, count: usize) -> usize {
    if let Op::While(op) = op {
        op.state
    } else if let Op::CustomGrad(op) = op {
        op.values
    } else if let Op::Implicit(op) = op {
        op.values
    } else {
        count
    }
}

fn arguments(frame: &Frame<'_>, node: &Node, form: &Form) -> Vec<String> {
    let text = |index: usize| frame.text(node.inputs[index]);
    let mut out = Vec::new();
    for argument in &form.arguments {
        match argument {
            Argument::Operand { name: _, index } => out.push(text(*index).to_owned()),
            Argument::Operands { name: _, start, count } => {
                let end = count.map_or(node.inputs.len(), |count| start + count);
                let list: Vec<&str> = (*start..end).map(text).collect();
                out.push(format!("[{}]", list.join(", ")));
            }
            Argument::Attribute { name: _, value } => out.push(attribute(value)),
            Argument::Option { name, value } => out.push(format!("{name}: {}", attribute(value))),
        }
    }
    out
}

fn attribute(value: &Attr) -> String {
    match value {
        Attr::None | Attr::Bool(_) | Attr::Number(_) | Attr::Ints(_) | Attr::Padding(_) | Attr::Text(_) => {
            value.to_string()
        }
        Attr::Bytes(bytes) => format!("{} bytes", bytes.len()),
    }
}

/// A single value without braces, several in braces.
fn tuple(values: &[&str]) -> String {
    if let [value] = values { (*value).to_owned() } else { format!("{{{}}}", values.join(", ")) }
}

/// A type without names.
fn type_text(ty: &TensorType) -> String {
    format!("{}{}", ty.dtype, ty.shape.without_names())
}
