//! The only mapping between an op and its public name, operands and attributes. Their order is that of the
//! arguments of Nx.Backend's callbacks, where Nx has the op.
//!
//! Properties that those callbacks take from their `out` argument, the result's type, are not attributes: the
//! dtype of `as_type`, the shape of `reshape`.

mod attribute;
mod build;

use std::fmt;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

pub(crate) use attribute::{ArgumentWriter, Attribute};
pub(crate) use build::Reader;
pub use build::build;

use crate::op::{
    BinaryOp, Block, Collective, CollectiveOp, CompositeBlock, CustomRules, ElementWise, Identity, Op,
    OpClass, Padding, Primitive, UnaryOp,
};
use crate::scalar::Number;
use crate::shape::Name;

/// The value of an attribute.
#[derive(Clone, Debug)]
pub enum Attr {
    /// No value of an optional attribute.
    None,
    /// A boolean.
    Bool(bool),
    /// A number; counts and positions are integers.
    Number(Number),
    /// Axes, sizes or positions.
    Ints(SmallVec<[i128; 6]>),
    /// The padding of each axis.
    Padding(SmallVec<[Padding; 4]>),
    /// A name.
    Text(Name),
    /// Elements in memory layout.
    Bytes(Arc<[u8]>),
}

/// One argument of an op's form.
#[derive(Clone, Debug)]
pub enum Argument {
    /// An operand.
    Operand {
        /// Its name.
        name: &'static str,
        /// Its position among the node's inputs.
        index: usize,
    },
    /// A list of operands.
    Operands {
        /// Their name.
        name: &'static str,
        /// The position of the first among the node's inputs.
        start: usize,
        /// Their number; None for all remaining inputs.
        count: Option<usize>,
    },
    /// An attribute by position.
    Attribute {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: Attr,
    },
    /// An attribute by name, written after the others.
    Option {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: Attr,
    },
}

/// The operands and attributes of an op, in written order.
pub type Arguments = SmallVec<[Argument; 4]>;

/// The written form of an op.
#[derive(Clone, Debug)]
pub struct Form {
    /// The public name.
    pub name: &'static str,
    /// Operands and attributes.
    pub arguments: Arguments,
    /// The names of the regions, in the order of [`Op::regions`].
    pub regions: SmallVec<[&'static str; 2]>,
}

impl Form {
    /// The attributes with their names, in order.
    pub fn attributes(&self) -> impl Iterator<Item = (&'static str, &Attr)> {
        self.arguments.iter().filter_map(|argument| match argument {
            Argument::Attribute { name, value } | Argument::Option { name, value } => Some((*name, value)),
            Argument::Operand { .. } | Argument::Operands { .. } => None,
        })
    }
}

fn operand(name: &'static str, index: usize) -> Argument {
    Argument::Operand { name, index }
}

fn operands(name: &'static str, start: usize, count: Option<usize>) -> Argument {
    Argument::Operands { name, start, count }
}

fn attribute(name: &'static str, value: impl Into<Attr>) -> Argument {
    Argument::Attribute { name, value: value.into() }
}

fn option(name: &'static str, value: impl Into<Attr>) -> Argument {
    Argument::Option { name, value: value.into() }
}

/// The written form of an op: its name, then its operands and attributes in the order of the public
/// arguments.
///
/// ```
/// use defn_core::form::form;
/// use defn_core::op::{Op, UnaryOp};
/// assert_eq!(form(&Op::Unary(UnaryOp::SIN)).name, "sin");
/// ```
pub fn form(op: &Op) -> Form {
    let mut regions = SmallVec::new();
    let x = || operand("x", 0);
    let arguments: Arguments = match op.class() {
        OpClass::Parameter { index, ty: _ } => smallvec![attribute("index", index)],
        OpClass::Constant(scalar) => smallvec![attribute("value", Attr::Number(scalar.value()))],
        OpClass::Literal(literal) => smallvec![attribute("bytes", Attr::Bytes(literal.bytes().clone()))],
        OpClass::Primitive(Primitive::ElementWise(op)) => match op {
            ElementWise::Unary(_) | ElementWise::AsType(_) | ElementWise::Bitcast(_) => smallvec![x()],
            ElementWise::Binary(_) => smallvec![operand("a", 0), operand("b", 1)],
            ElementWise::Select => {
                smallvec![operand("pred", 0), operand("on_true", 1), operand("on_false", 2)]
            }
            ElementWise::Clip => smallvec![x(), operand("lo", 1), operand("hi", 2)],
        },
        OpClass::Primitive(_) => op.row_arguments().expect("primitives with attributes have rows"),
        OpClass::Block(block) => block.arguments(),
        OpClass::Identity(Identity::Constant) => smallvec![x()],
        OpClass::Identity(Identity::Transfer(to)) => {
            smallvec![x(), attribute("to", Attr::Text(to.name().into()))]
        }
        OpClass::Barrier => smallvec![operands("values", 0, None)],
        OpClass::Identity(Identity::Mark(name)) => {
            smallvec![x(), attribute("name", Attr::Text(name.clone()))]
        }
        OpClass::Collective(op) => collective_arguments(op),
        OpClass::Fold(op) => {
            regions.push("fun");
            let mut writer = ArgumentWriter::new(&["x", "acc"], Some("captures"));
            writer.option("axes", &op.axes);
            writer.option("keep_axes", &op.keep_axes);
            writer.finish()
        }
        OpClass::WindowFold(op) => {
            regions.push("fun");
            let mut writer = ArgumentWriter::new(&["x", "acc"], Some("captures"));
            writer.attribute("window", &op.window);
            writer.finish()
        }
        OpClass::Cond(op) => {
            regions.resize(op.branches.len(), "branch");
            let predicates = op.branches.len() - 1;
            smallvec![operands("predicates", 0, Some(predicates)), operands("captures", predicates, None)]
        }
        OpClass::While(op) => {
            regions.extend(["cond", "body"]);
            let mut arguments = smallvec![
                operands("initial", 0, Some(op.state)),
                operands("captures", op.state, None),
                option("state", op.state),
                option("trips", op.trips.map_or(Attr::None, |trips| Attr::Number(trips.into())))
            ];
            arguments.extend(op.snapshots.map(|count| option("snapshots", count)));
            arguments
        }
        OpClass::CustomGrad(op) => {
            let mut arguments = smallvec![
                operands("values", 0, Some(op.values)),
                operands("inputs", op.values, Some(op.inputs)),
                operands("captures", op.values + op.inputs, None),
                option("values", op.values),
                option("inputs", op.inputs)
            ];
            // Without a mode it is the rule for reverse mode, the only one that older graphs have.
            match &op.rules {
                CustomRules::Reverse(_) => regions.push("rule"),
                CustomRules::Forward(_) => {
                    regions.push("forward_rule");
                    arguments.push(option("mode", Attr::Text("forward".into())));
                }
                CustomRules::Both { .. } => {
                    regions.extend(["rule", "forward_rule"]);
                    arguments.push(option("mode", Attr::Text("both".into())));
                }
                CustomRules::Recompute { kept, offloaded, .. } => {
                    regions.push("recomputed");
                    arguments.push(option("mode", Attr::Text("recompute".into())));
                    arguments.push(option("kept", *kept));
                    arguments.push(option("offloaded", *offloaded));
                }
            }
            arguments
        }
        OpClass::Implicit(op) => {
            regions.push("condition");
            regions.extend(op.preconditioner.iter().map(|_| "preconditioner"));
            let solver = &op.solver;
            smallvec![
                operands("values", 0, Some(op.values)),
                operands("captures", op.values, None),
                option("values", op.values),
                option("lanes", op.lanes),
                option("solver", Attr::Text(solver.method.name().into())),
                option("restart", solver.method.restart().map_or(Attr::None, Attr::from)),
                option("rtol", Attr::Number(Number::Float(solver.rtol.0))),
                option("atol", Attr::Number(Number::Float(solver.atol.0))),
                option("maxiter", solver.maxiter.map_or(Attr::None, Attr::from)),
                option("holomorphic", Attr::Bool(op.holomorphic))
            ]
        }
        OpClass::Hook(op) => smallvec![
            operands("values", 0, None),
            option("slot", op.slot),
            option("name", op.name.clone().map_or(Attr::None, Attr::Text))
        ],
        OpClass::RuntimeCall(op) => smallvec![operands("values", 0, None), option("slot", op.slot)],
        OpClass::UserBlock(op) => {
            regions.push("default");
            smallvec![
                operands("args", 0, Some(op.args)),
                operands("captures", op.args, None),
                option("name", Attr::Text(op.name.clone())),
                option("attributes", Attr::Text(op.attributes.clone())),
                option("args", op.args),
                option("slot", op.slot)
            ]
        }
    };
    Form { name: name(op), arguments, regions }
}

/// The kind's arguments, then the groups: all their devices in one list, and the size of a group.
fn collective_arguments(op: &CollectiveOp) -> Arguments {
    let mut arguments: Arguments = match &op.kind {
        Collective::AllReduce { op } => {
            smallvec![operand("x", 0), option("op", Attr::Text(op.name().into()))]
        }
        Collective::AllGather { axis } | Collective::ReduceScatter { axis } => {
            smallvec![operand("x", 0), option("axis", axis.index())]
        }
        Collective::CollectivePermute { pairs } => {
            let flat = pairs.iter().flat_map(|&(from, to)| [from, to]).map(i128::from);
            smallvec![operand("x", 0), option("pairs", Attr::Ints(flat.collect()))]
        }
        Collective::MeshIndex => smallvec![],
    };
    let devices = Attr::Ints(op.groups.devices().iter().copied().map(i128::from).collect());
    arguments.push(option("over", Attr::Text(op.groups.axes().clone())));
    arguments.push(option("groups", devices));
    arguments.push(option("size", op.groups.size()));
    arguments
}

/// The public name of an op: the same in Rust, in Python, in graphs and in messages.
pub fn name(op: &Op) -> &'static str {
    match op.class() {
        OpClass::Parameter { .. } => "parameter",
        OpClass::Constant(_) => "constant",
        OpClass::Literal(_) => "tensor",
        OpClass::Primitive(Primitive::ElementWise(op)) => match op {
            ElementWise::Unary(op) => op.name(),
            ElementWise::Binary(op) => op.name(),
            ElementWise::AsType(_) => "as_type",
            ElementWise::Bitcast(_) => "bitcast",
            ElementWise::Select => "select",
            ElementWise::Clip => "clip",
        },
        OpClass::Primitive(_) => op.row_name().expect("primitives with attributes have rows"),
        OpClass::Collective(op) => op.kind.name(),
        OpClass::Fold(_) => "reduce",
        OpClass::WindowFold(_) => "window_reduce",
        OpClass::Cond(_) => "cond",
        OpClass::While(_) => "while",
        OpClass::CustomGrad(_) => "custom_grad",
        OpClass::Implicit(_) => "implicit",
        OpClass::Identity(Identity::Constant) => "stop_grad",
        OpClass::Identity(Identity::Mark(_)) => "mark",
        OpClass::Identity(Identity::Transfer(_)) => "transfer",
        OpClass::Barrier => "barrier",
        OpClass::Hook(_) => "hook",
        OpClass::RuntimeCall(_) => "runtime_call",
        OpClass::Block(block) => block_name(block),
        OpClass::UserBlock(_) => "block",
    }
}

/// The public name of a block.
pub fn block_name(block: &Block) -> &'static str {
    block.name()
}

/// The names of all ops, each leaf separately, in the order of the catalogue. A test compares the list with
/// [`name`] and [`build`].
pub fn all_names() -> Vec<&'static str> {
    let mut names = vec!["parameter", "constant", "tensor"];
    names.extend(UnaryOp::ALL.iter().map(|op| op.name()));
    names.extend(BinaryOp::ALL.iter().map(|op| op.name()));
    names.extend(["as_type", "bitcast", "select", "clip"]);
    names.extend(Op::row_names());
    names.extend(["reduce", "window_reduce"]);
    names.extend(Collective::NAMES);
    names.extend([
        "cond",
        "while",
        "custom_grad",
        "implicit",
        "stop_grad",
        "mark",
        "transfer",
        "barrier",
        "hook",
        "runtime_call",
        "block",
    ]);
    names.extend(CompositeBlock::row_names());
    names.extend(Block::row_names());
    names
}

impl From<usize> for Attr {
    fn from(value: usize) -> Attr {
        Attr::Number(value.into())
    }
}

/// Exact: equal texts denote equal values.
impl fmt::Display for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attr::None => f.write_str("none"),
            Attr::Bool(value) => write!(f, "{value}"),
            Attr::Number(Number::Bool(value)) => write!(f, "{value}"),
            Attr::Number(Number::Int(value)) => write!(f, "{value}"),
            Attr::Number(Number::Huge(value) | Number::Float(value)) => write_float(f, *value),
            Attr::Number(Number::Complex(value)) => {
                f.write_str("(")?;
                write_float(f, value.re)?;
                f.write_str(", ")?;
                write_float(f, value.im)?;
                f.write_str(")")
            }
            Attr::Ints(values) => write!(f, "{values:?}"),
            Attr::Padding(config) => {
                f.write_str("[")?;
                for (position, Padding { low, high, interior }) in config.iter().enumerate() {
                    let comma = if position == 0 { "" } else { ", " };
                    write!(f, "{comma}({low}, {high}, {interior})")?;
                }
                f.write_str("]")
            }
            Attr::Text(name) => f.write_str(&quoted(name)),
            Attr::Bytes(bytes) => {
                f.write_str("x\"")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("\"")
            }
        }
    }
}

/// The shortest text that parses to the same bits; NaNs are written as their bits.
fn write_float(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    if value.is_nan() { write!(f, "nan(0x{:016x})", value.to_bits()) } else { write!(f, "{value:?}") }
}

/// A quoted name; every character that is not printable is escaped.
pub(crate) fn quoted(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    out.push('"');
    for c in name.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                out.extend(c.escape_unicode());
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
