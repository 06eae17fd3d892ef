//! The one map between an op and its public name, its operands and its attributes, in the order of the
//! arguments of Nx.Backend's callbacks, where Nx has the op.
//!
//! What those callbacks read off their `out` argument, the result's type, is no attribute here either: the
//! dtype of `as_type`, the shape of `reshape`.

mod build;

use std::fmt;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

pub use build::build;

use crate::op::{
    ArgOp, BinaryOp, Block, Collective, CollectiveOp, ConvOp, CumulativeOp, FftOp, Op, Padding, ReduceOp,
    ScatterOp, Starts, Tolerance, UnaryOp, Window, WindowOp, WindowScatterOp,
};
use crate::scalar::Number;
use crate::shape::{Axis, Name};

/// The value of an attribute.
#[derive(Clone, Debug)]
pub enum Attr {
    /// Nothing, where something is optional.
    None,
    /// Yes or no.
    Bool(bool),
    /// A number; counts and positions are integers.
    Number(Number),
    /// Axes, sizes or positions.
    Ints(SmallVec<[i128; 6]>),
    /// How each axis is padded.
    Padding(SmallVec<[Padding; 4]>),
    /// A name.
    Text(Name),
    /// Elements as they lie in memory.
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
        /// Its name.
        name: &'static str,
        /// The position of the first among the node's inputs.
        start: usize,
        /// How many there are; all that follow where it is not said.
        count: Option<usize>,
    },
    /// An attribute by position.
    Attribute {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: Attr,
    },
    /// An attribute by name, as one of the options at the end.
    Option {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: Attr,
    },
}

/// An op as it is written.
#[derive(Clone, Debug)]
pub struct Form {
    /// The public name.
    pub name: &'static str,
    /// Operands and attributes.
    pub arguments: SmallVec<[Argument; 4]>,
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

/// How an op is written: its name, then its operands and attributes in the order of the public arguments.
///
/// ```
/// use defn_core::form::form;
/// use defn_core::op::{Op, UnaryOp};
/// assert_eq!(form(&Op::Unary(UnaryOp::SIN)).name, "sin");
/// ```
pub fn form(op: &Op) -> Form {
    let x = || operand("x", 0);
    let (a, b) = (|index| operand("a", index), |index| operand("b", index));
    let mut regions = SmallVec::new();
    let arguments: SmallVec<[Argument; 4]> = match op {
        Op::Parameter { index, ty: _ } => smallvec![attribute("index", *index)],
        Op::Constant(scalar) => smallvec![attribute("value", Attr::Number(scalar.value()))],
        Op::Literal(literal) => smallvec![attribute("bytes", Attr::Bytes(literal.bytes().clone()))],
        Op::Iota { shape: _, dtype: _, axis } => smallvec![attribute("axis", axis.map(Axis::index))],
        Op::Eye { shape: _, dtype: _ } => smallvec![],
        Op::Unary(_) | Op::AsType { dtype: _ } | Op::Bitcast { dtype: _ } | Op::Reshape { shape: _ } => {
            smallvec![x()]
        }
        Op::Binary(_) => smallvec![a(0), b(1)],
        Op::Select => smallvec![operand("pred", 0), operand("on_true", 1), operand("on_false", 2)],
        Op::Clip => smallvec![x(), operand("lo", 1), operand("hi", 2)],
        Op::Squeeze { axes } | Op::Transpose { axes } | Op::Reverse { axes } => {
            smallvec![x(), attribute("axes", &axes[..])]
        }
        Op::Broadcast { shape, axes } => {
            smallvec![x(), attribute("shape", shape.sizes()), attribute("axes", &axes[..])]
        }
        Op::Pad { config } => {
            smallvec![x(), operand("value", 1), attribute("config", Attr::Padding(config.clone()))]
        }
        Op::Concatenate { axis } => {
            smallvec![operands("tensors", 0, None), attribute("axis", axis.index())]
        }
        Op::Stack { axis, name: _ } => smallvec![operands("tensors", 0, None), attribute("axis", *axis)],
        Op::Slice { starts, lengths, strides } => {
            let mut arguments = smallvec![
                x(),
                starts_argument(starts, 1),
                attribute("lengths", &lengths[..]),
                attribute("strides", &strides[..])
            ];
            arguments.extend(counted_argument(starts));
            arguments
        }
        Op::PutSlice { starts } => {
            let mut arguments = smallvec![x(), operand("update", 1), starts_argument(starts, 2)];
            arguments.extend(counted_argument(starts));
            arguments
        }
        Op::Reduce { op: _, axes, keep_axes } => {
            smallvec![x(), option("axes", &axes[..]), option("keep_axes", Attr::Bool(*keep_axes))]
        }
        Op::ArgReduce { op: _, axis, keep_axis, tie_break, dtype: _ } => smallvec![
            x(),
            option("tie_break", Attr::Text(tie_break.name().into())),
            option("axis", axis.map(Axis::index)),
            option("keep_axis", Attr::Bool(*keep_axis))
        ],
        Op::Dot { contract_a, batch_a, contract_b, batch_b } => smallvec![
            a(0),
            attribute("contract_a", &contract_a[..]),
            attribute("batch_a", &batch_a[..]),
            b(1),
            attribute("contract_b", &contract_b[..]),
            attribute("batch_b", &batch_b[..])
        ],
        Op::Gather { axes } => smallvec![x(), operand("indices", 1), option("axes", &axes[..])],
        Op::Scatter { op: _, axes } => {
            smallvec![x(), operand("indices", 1), operand("updates", 2), option("axes", &axes[..])]
        }
        Op::Sort { axis, direction } | Op::Argsort { axis, direction, dtype: _ } => smallvec![
            x(),
            option("axis", axis.index()),
            option("direction", Attr::Text(direction.name().into()))
        ],
        Op::Window { op: _, window } => {
            let mut arguments = smallvec![x()];
            arguments.extend(window_arguments(window));
            arguments
        }
        Op::WindowScatter { op: _, window } => {
            let mut arguments = smallvec![x(), operand("source", 1), operand("init", 2)];
            arguments.extend(window_arguments(window));
            arguments
        }
        Op::Conv(op) => {
            let mut arguments = smallvec![x(), operand("kernel", 1)];
            arguments.extend(conv_arguments(op));
            arguments
        }
        Op::Fft { op: _, axis, length, eps } => {
            smallvec![x(), option("axis", axis.index()), option("length", *length), option("eps", *eps)]
        }
        Op::TriangularSolve { lower, left_side, transform } => smallvec![
            a(0),
            b(1),
            option("lower", Attr::Bool(*lower)),
            option("left_side", Attr::Bool(*left_side)),
            option("transform_a", Attr::Text(transform.name().into()))
        ],
        Op::Collective(op) => collective_arguments(op),
        Op::Fold(op) => {
            regions.push("fun");
            smallvec![
                x(),
                operand("acc", 1),
                operands("captures", 2, None),
                option("axes", &op.axes[..]),
                option("keep_axes", Attr::Bool(op.keep_axes))
            ]
        }
        Op::WindowFold(op) => {
            regions.push("fun");
            let mut arguments = smallvec![x(), operand("acc", 1), operands("captures", 2, None)];
            arguments.extend(window_arguments(&op.window));
            arguments
        }
        Op::Cond(op) => {
            regions.resize(op.branches.len(), "branch");
            let predicates = op.branches.len() - 1;
            smallvec![operands("predicates", 0, Some(predicates)), operands("captures", predicates, None)]
        }
        Op::While(op) => {
            regions.extend(["cond", "body"]);
            smallvec![
                operands("initial", 0, Some(op.state)),
                operands("captures", op.state, None),
                option("state", op.state),
                option("trips", op.trips.map_or(Attr::None, |trips| Attr::Number(trips.into())))
            ]
        }
        Op::CustomGrad(op) => {
            regions.push("rule");
            smallvec![
                operands("values", 0, Some(op.values)),
                operands("inputs", op.values, Some(op.inputs)),
                operands("captures", op.values + op.inputs, None),
                option("values", op.values),
                option("inputs", op.inputs)
            ]
        }
        Op::StopGrad => smallvec![x()],
        Op::Mark { name } => smallvec![x(), attribute("name", Attr::Text(name.clone()))],
        Op::Hook(op) => smallvec![
            operands("values", 0, None),
            option("slot", op.slot),
            option("name", op.name.clone().map_or(Attr::None, Attr::Text))
        ],
        Op::RuntimeCall(op) => smallvec![operands("values", 0, None), option("slot", op.slot)],
        Op::UserBlock(op) => {
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
        Op::Block(Block::LogicalNot | Block::Phase | Block::Log2 | Block::Log10) => smallvec![x()],
        Op::Block(Block::Logsumexp { axes, keep_axes }) => {
            smallvec![x(), option("axes", &axes[..]), option("keep_axes", Attr::Bool(*keep_axes))]
        }
        Op::Block(Block::AllClose { equal_nan, rtol, atol }) => smallvec![
            a(0),
            b(1),
            option("equal_nan", Attr::Bool(*equal_nan)),
            option("rtol", *rtol),
            option("atol", *atol)
        ],
        Op::Block(Block::Cumulative { op: _, axis, reverse }) => {
            smallvec![x(), option("axis", axis.index()), option("reverse", Attr::Bool(*reverse))]
        }
        Op::Block(Block::Take { axis } | Block::TakeAlongAxis { axis }) => {
            smallvec![x(), operand("indices", 1), option("axis", axis.index())]
        }
        Op::Block(Block::TopK { k }) => smallvec![x(), option("k", *k)],
        Op::Block(Block::Fft2 { op: _, axes, lengths, eps }) => {
            smallvec![x(), option("axes", &axes[..]), option("lengths", &lengths[..]), option("eps", *eps)]
        }
        Op::Block(Block::Rfft { axis, length, eps } | Block::Irfft { axis, length, eps }) => {
            smallvec![x(), option("axis", axis.index()), option("length", *length), option("eps", *eps)]
        }
        Op::Block(Block::Cholesky | Block::Lu | Block::Determinant) => smallvec![x()],
        Op::Block(Block::Solve) => smallvec![a(0), b(1)],
        Op::Block(Block::Threefry) => smallvec![operand("key", 0), operand("counters", 1)],
        Op::Block(Block::RandomBelow { dtype: _, count: _ }) => {
            smallvec![operand("key", 0), operand("bound", 1)]
        }
        Op::Block(Block::RandomBits { dtype: _, count: _ } | Block::RandomUniform { dtype: _, count: _ }) => {
            smallvec![operand("key", 0)]
        }
        Op::Block(Block::Qr { mode, eps }) => {
            smallvec![x(), option("mode", Attr::Text(mode.name().into())), option("eps", *eps)]
        }
        Op::Block(Block::Svd { max_iter, full_matrices }) => {
            smallvec![x(), option("max_iter", *max_iter), option("full_matrices", Attr::Bool(*full_matrices))]
        }
        Op::Block(Block::Eigh { max_iter, eps }) => {
            smallvec![x(), option("max_iter", *max_iter), option("eps", *eps)]
        }
    };
    Form { name: name(op), arguments, regions }
}

/// What is done, then the groups: their devices one after the other, and how many are in each.
fn collective_arguments(op: &CollectiveOp) -> SmallVec<[Argument; 4]> {
    let mut arguments: SmallVec<[Argument; 4]> = match &op.kind {
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
    let devices = Attr::Ints(op.over.devices().iter().copied().map(i128::from).collect());
    arguments.push(option("over", Attr::Text(op.over.axes().clone())));
    arguments.push(option("groups", devices));
    arguments.push(option("size", op.over.size()));
    arguments
}

/// The shape of a window, then its options.
fn window_arguments(window: &Window) -> [Argument; 4] {
    [
        attribute("window", &window.sizes[..]),
        option("strides", &window.strides[..]),
        option("padding", &window.padding[..]),
        option("window_dilations", &window.dilations[..]),
    ]
}

fn conv_arguments(op: &ConvOp) -> [Argument; 9] {
    [
        option("strides", &op.strides[..]),
        option("padding", &op.padding[..]),
        option("input_dilation", &op.input_dilation[..]),
        option("kernel_dilation", &op.kernel_dilation[..]),
        option("feature_group_size", op.feature_groups),
        option("batch_group_size", op.batch_groups),
        option("input_permutation", &op.input_permutation[..]),
        option("kernel_permutation", &op.kernel_permutation[..]),
        option("output_permutation", &op.output_permutation[..]),
    ]
}

/// Starts are an attribute where they are known, and operands where they are not.
fn starts_argument(starts: &Starts, first: usize) -> Argument {
    match starts {
        Starts::Static(starts) => attribute("starts", &starts[..]),
        Starts::Dynamic | Starts::FromEnd => operands("starts", first, None),
    }
}

/// Said only of starts of which those below 0 count from the end.
fn counted_argument(starts: &Starts) -> Option<Argument> {
    match starts {
        Starts::Static(_) | Starts::Dynamic => None,
        Starts::FromEnd => Some(option("from_end", Attr::Bool(true))),
    }
}

/// The public name of an op: the same in Rust, in Python, in graphs and in messages.
pub fn name(op: &Op) -> &'static str {
    match op {
        Op::Parameter { .. } => "parameter",
        Op::Constant(_) => "constant",
        Op::Literal(_) => "tensor",
        Op::Iota { .. } => "iota",
        Op::Eye { .. } => "eye",
        Op::Unary(op) => op.name(),
        Op::Binary(op) => op.name(),
        Op::AsType { .. } => "as_type",
        Op::Bitcast { .. } => "bitcast",
        Op::Select => "select",
        Op::Clip => "clip",
        Op::Reshape { .. } => "reshape",
        Op::Squeeze { .. } => "squeeze",
        Op::Broadcast { .. } => "broadcast",
        Op::Transpose { .. } => "transpose",
        Op::Pad { .. } => "pad",
        Op::Reverse { .. } => "reverse",
        Op::Concatenate { .. } => "concatenate",
        Op::Stack { .. } => "stack",
        Op::Slice { .. } => "slice",
        Op::PutSlice { .. } => "put_slice",
        Op::Reduce { op, .. } => op.name(),
        Op::ArgReduce { op, .. } => op.name(),
        Op::Gather { .. } => "gather",
        Op::Scatter { op, .. } => op.name(),
        Op::Collective(op) => op.kind.name(),
        Op::Sort { .. } => "sort",
        Op::Argsort { .. } => "argsort",
        Op::Window { op, .. } => op.name(),
        Op::WindowScatter { op, .. } => op.name(),
        Op::Conv(_) => "conv",
        Op::Fft { op, .. } => op.name(),
        Op::Dot { .. } => "dot",
        Op::TriangularSolve { .. } => "triangular_solve",
        Op::Fold(_) => "reduce",
        Op::WindowFold(_) => "window_reduce",
        Op::Cond(_) => "cond",
        Op::While(_) => "while",
        Op::CustomGrad(_) => "custom_grad",
        Op::StopGrad => "stop_grad",
        Op::Mark { .. } => "mark",
        Op::Hook(_) => "hook",
        Op::RuntimeCall(_) => "runtime_call",
        Op::Block(block) => block_name(block),
        Op::UserBlock(_) => "block",
    }
}

/// The public name of a block.
pub fn block_name(block: &Block) -> &'static str {
    match block {
        Block::LogicalNot => "logical_not",
        Block::Phase => "phase",
        Block::Log2 => "log2",
        Block::Log10 => "log10",
        Block::Logsumexp { .. } => "logsumexp",
        Block::AllClose { .. } => "all_close",
        Block::Cumulative { op, .. } => op.name(),
        Block::Take { .. } => "take",
        Block::TakeAlongAxis { .. } => "take_along_axis",
        Block::TopK { .. } => "top_k",
        Block::Fft2 { op: FftOp::Fft, .. } => "fft2",
        Block::Fft2 { op: FftOp::Ifft, .. } => "ifft2",
        Block::Rfft { .. } => "rfft",
        Block::Irfft { .. } => "irfft",
        Block::Cholesky => "cholesky",
        Block::Solve => "solve",
        Block::Qr { .. } => "qr",
        Block::Lu => "lu",
        Block::Svd { .. } => "svd",
        Block::Eigh { .. } => "eigh",
        Block::Determinant => "determinant",
        Block::Threefry => "threefry",
        Block::RandomBits { .. } => "random_bits",
        Block::RandomUniform { .. } => "random_uniform",
        Block::RandomBelow { .. } => "random_below",
    }
}

/// The names of all ops, each leaf by itself, in the order of the catalogue. A test holds the list equal to
/// what [`name`] and [`build`] know.
pub fn all_names() -> Vec<&'static str> {
    let mut names = vec!["parameter", "constant", "tensor", "iota", "eye"];
    names.extend(UnaryOp::ALL.iter().map(|op| op.name()));
    names.extend(BinaryOp::ALL.iter().map(|op| op.name()));
    names.extend(["as_type", "bitcast", "select", "clip", "reshape", "squeeze", "broadcast", "transpose"]);
    names.extend(["pad", "reverse", "concatenate", "stack", "slice", "put_slice"]);
    names.extend(ReduceOp::ALL.iter().map(|op| op.name()));
    names.extend(ArgOp::ALL.iter().map(|op| op.name()));
    names.push("gather");
    names.extend(ScatterOp::ALL.iter().map(|op| op.name()));
    names.extend(["sort", "argsort"]);
    names.extend(WindowOp::ALL.iter().map(|op| op.name()));
    names.extend(WindowScatterOp::ALL.iter().map(|op| op.name()));
    names.push("conv");
    names.extend(FftOp::ALL.iter().map(|op| op.name()));
    names.extend(["dot", "triangular_solve", "reduce", "window_reduce"]);
    names.extend(Collective::NAMES);
    names.extend(["cond", "while", "custom_grad", "stop_grad", "mark", "hook", "runtime_call", "block"]);
    names.extend(["logical_not", "phase", "log2", "log10", "logsumexp", "all_close"]);
    names.extend(CumulativeOp::ALL.iter().map(|op| op.name()));
    names.extend(["take", "take_along_axis", "top_k", "fft2", "ifft2", "rfft", "irfft"]);
    names.extend(["cholesky", "solve", "qr", "lu", "svd", "eigh", "determinant"]);
    names.extend(["threefry", "random_bits", "random_uniform", "random_below"]);
    names
}

impl From<usize> for Attr {
    fn from(value: usize) -> Attr {
        Attr::Number(value.into())
    }
}

impl From<Option<usize>> for Attr {
    fn from(value: Option<usize>) -> Attr {
        value.map_or(Attr::None, Attr::from)
    }
}

impl From<Tolerance> for Attr {
    fn from(value: Tolerance) -> Attr {
        Attr::Number(Number::Float(value.0))
    }
}

impl From<&[(i64, i64)]> for Attr {
    fn from(pairs: &[(i64, i64)]) -> Attr {
        Attr::Padding(pairs.iter().map(|&(low, high)| Padding { low, high, interior: 0 }).collect())
    }
}

impl From<&[usize]> for Attr {
    fn from(values: &[usize]) -> Attr {
        Attr::Ints(values.iter().map(|&value| value as i128).collect())
    }
}

impl From<&[Axis]> for Attr {
    fn from(axes: &[Axis]) -> Attr {
        Attr::Ints(axes.iter().map(|axis| axis.index() as i128).collect())
    }
}

/// Exact: equal texts are equal values.
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

/// The shortest text that reads back to the same bits; for NaN the bits.
fn write_float(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    if value.is_nan() { write!(f, "nan(0x{:016x})", value.to_bits()) } else { write!(f, "{value:?}") }
}

/// A name in quotes, in which only printing characters are themselves.
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
