//! The errors of the core, as data, and their texts.
//!
//! A text reads `<op>: <what was given>, <what is required>[; <what to do>]`: lower case, no full stop, types
//! as they print.

mod class;
mod print;

use std::sync::Arc;

pub use class::ErrorClass;

use crate::backend::Gone;
use crate::device::{Argument, DeviceError};
use crate::dtype::DType;
use crate::location::Location;
use crate::mesh::MeshError;
use crate::origin::OperandInfo;
use crate::scalar::Number;
use crate::shape::{AxisRef, Name, Shape, TensorType};
use crate::stage::StageError;
use print::{positions_text, shape_text};

/// The result of every fallible function.
pub type Result<T> = std::result::Result<T, Error>;

/// An error, and its location in the user's program.
#[derive(Clone)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    location: Option<Location>,
    operands: Vec<OperandInfo>,
    /// The separately run part of the program in which the error occurred.
    within: Option<String>,
    /// The trips of the loops around, the innermost first.
    trips: Vec<u64>,
}

impl Error {
    /// An error of the caller's own, whose message stays as it is: for functions that run inside a program, such as hooks.
    ///
    /// ```
    /// let error = defn_core::Error::other("the sensor does not answer");
    /// assert_eq!(error.to_string(), "the sensor does not answer");
    /// ```
    #[cold]
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        ErrorKind::Host { error: error.into().into() }.into()
    }

    /// The kind of the error.
    pub fn kind(&self) -> &ErrorKind {
        &self.inner.kind
    }

    /// The class of the kind.
    pub fn class(&self) -> ErrorClass {
        self.inner.kind.class()
    }

    /// The user's line, when it is known.
    pub fn location(&self) -> Option<&Location> {
        self.inner.location.as_ref()
    }

    /// The operands of the failed op, when they are known.
    pub fn operands(&self) -> &[OperandInfo] {
        &self.inner.operands
    }

    /// What `{}` prints without the lines about operands and locations: for a user of the program, who does not have its
    /// source.
    ///
    /// ```
    /// use defn_core::DType;
    /// let error = "f31".parse::<DType>().unwrap_err();
    /// assert!(error.message().starts_with("dtype: \"f31\" is no dtype"));
    /// ```
    pub fn message(&self) -> String {
        self.inner.kind.to_string()
    }

    /// Adds the user's line, unless the error has one.
    #[must_use]
    pub fn at(mut self, location: Option<Location>) -> Error {
        if self.inner.location.is_none() {
            self.inner.location = location;
        }
        self
    }

    /// Adds the separately run part of the program in which the error occurred, unless the error has one.
    #[must_use]
    pub fn within(mut self, part: impl FnOnce() -> String) -> Error {
        self.inner.within.get_or_insert_with(part);
        self
    }

    /// Adds the operands' types, unless the error has them.
    #[must_use]
    pub fn with_operands<'a>(mut self, operands: impl IntoIterator<Item = &'a TensorType>) -> Error {
        if self.inner.operands.is_empty() {
            self.inner.operands = operands.into_iter().map(OperandInfo::of_type).collect();
        }
        self
    }

    /// Replaces the known operands by the arguments of the public function that was called.
    #[must_use]
    pub fn with_operand_info(mut self, operands: Vec<OperandInfo>) -> Error {
        if !operands.is_empty() {
            self.inner.operands = operands;
        }
        self
    }

    /// Replaces an argument's position among a program's tensors by its name, where the error has only the
    /// position.
    #[must_use]
    pub fn with_argument(mut self, argument_text: impl FnOnce(usize) -> Option<String>) -> Error {
        if let ErrorKind::ArgumentType { argument, .. }
        | ErrorKind::ArgumentRange { argument, .. }
        | ErrorKind::Device(
            DeviceError::DonateType { argument, .. } | DeviceError::ArgumentGone { argument, .. },
        ) = &mut self.inner.kind
            && let Argument::Position(position) = *argument
            && let Some(text) = argument_text(position)
        {
            *argument = Argument::Written(text);
        }
        self
    }

    /// Adds the public name of the loop, and the location in the state of the leaf whose type changed, which
    /// the error identifies only by its number.
    #[must_use]
    pub fn with_loop_name(mut self, name: &'static str, path_text: impl FnOnce(usize) -> String) -> Error {
        if let ErrorKind::LoopState { index, expected, got, hint, .. } = &self.inner.kind {
            let (expected, got, hint, path) = (expected.clone(), got.clone(), *hint, path_text(*index));
            self.inner.kind = ErrorKind::StateType { op: name, path, expected, got, hint };
        }
        self
    }

    /// Renames the op of an error about a product to the product that the user called.
    #[must_use]
    pub(crate) fn with_product_name(mut self, name: &'static str) -> Error {
        if let ErrorKind::DotSizes { op, .. } | ErrorKind::NamesRepeated { op, .. } = &mut self.inner.kind {
            *op = name;
        }
        self
    }
}

impl From<ErrorKind> for Error {
    #[cold]
    fn from(kind: ErrorKind) -> Error {
        let (operands, trips) = (Vec::new(), Vec::new());
        Error { inner: Box::new(Inner { kind, location: None, operands, within: None, trips }) }
    }
}

/// All kinds of errors. `op` is the public name of the function that was called.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum ErrorKind {
    // dtypes and numbers
    #[error("dtype: \"{name}\" is no dtype, it must be one of {}", dtype_names())]
    UnknownDType { name: String },
    #[error("tensor: {} cannot be stored as {dtype}; convert it explicitly with as_type", number_text(*number))]
    NumberKind { number: Number, dtype: DType },
    #[error(
        "tensor: {} does not fit {dtype}; give a wider dtype, or ask for wrapping with dtype=\"{dtype}\"",
        number_text(*number)
    )]
    IntegerRange { number: Number, dtype: DType },
    #[error(
        "{op}: {} beside {got}, an integer from {} to {} is required; convert the tensor to a wider dtype with as_type",
        number_text(*number), number_digits(got.dtype.lowest()), number_digits(got.dtype.highest())
    )]
    NumberRange { op: &'static str, number: Number, got: TensorType },
    #[error(
        "{op}: {argument} is {}, it must fit {dtype}, the dtype of what it meets; convert that to a wider dtype, or give a tensor",
        number_text(*number)
    )]
    ArgumentRange { op: &'static str, argument: Argument, number: Number, dtype: DType },
    #[error("{op}: the operand is {got}, it must be {required}{hint}")]
    OperandDType { op: &'static str, got: TensorType, required: &'static str, hint: &'static str },
    #[error("{op}: the operands are {left} and {right}, their common dtype must be {required}{hint}")]
    OperandsDType {
        op: &'static str,
        left: TensorType,
        right: TensorType,
        required: &'static str,
        hint: &'static str,
    },
    #[error("bitcast: the operand is {got}, a bitcast to {dtype} needs elements of {} bits that are not complex", dtype.bits())]
    BitcastWidth { got: TensorType, dtype: DType },
    #[error(
        "pow: the exponent of an integer base is {value}, it must not be negative; convert the base to a float"
    )]
    NegativeExponent { value: i128 },
    #[error("{op}: the divisor of an integer division is zero, it must not be zero")]
    DivisionByZero { op: &'static str },
    #[error("{op}: the result {got} has a NaN, none is allowed under checks(\"nan\")")]
    FoundNan { op: &'static str, got: TensorType },
    #[error(
        "{op}: the result {got} has an infinity and no operand has one, none is allowed under checks(\"inf\")"
    )]
    FoundInfinity { op: &'static str, got: TensorType },
    #[error("{op}: the number of bits to shift by is {value}, it must not be negative")]
    NegativeShift { op: &'static str, value: i128 },
    #[error(
        "triangular_solve: the diagonal of {got} has a zero, it must have none; use linalg.least_squares for a singular system"
    )]
    ZeroDiagonal { got: TensorType },

    // shapes and names
    #[error("tensor: {dtype}{shape} has more bytes than memory can address; use smaller sizes")]
    TooLarge { dtype: DType, shape: Shape },
    #[error("{op}: size {size} on axis {axis}, sizes must be at least 0")]
    NegativeSize { op: &'static str, size: i64, axis: usize },
    #[error("names: {names} for the shape {}, one entry for each of its {} axes is required", shape_text(shape), shape.rank())]
    NamesLength { names: String, shape: Shape },
    #[error(
        "{op}: axis {left_axis} is named \"{left}\" and axis {right_axis} of the other operand \"{right}\", merged axes must have one name; rename one of them"
    )]
    NamesConflict { op: &'static str, left: Name, left_axis: usize, right: Name, right_axis: usize },
    #[error(
        "{op}: the name \"{name}\" would stand on two axes of the result, names must differ; rename one operand's axis"
    )]
    NamesRepeated { op: &'static str, name: Name },
    #[error("{op}: shapes {} and {} do not broadcast, axis {axis} of the result has sizes {} and {}; sizes must be equal or 1", shape_text(left), shape_text(right), sizes.0, sizes.1)]
    Broadcast { op: &'static str, left: Shape, right: Shape, axis: usize, sizes: (usize, usize) },
    #[error("{op}: axis {axis} is out of range for the shape {}, it must be in {}..{}", shape_text(shape), -(shape.rank() as i64), shape.rank())]
    AxisRange { op: &'static str, axis: i64, shape: Shape },
    #[error("{op}: a new axis cannot be inserted at axis {axis} of {}, the axis must be in {}..={}", shape_text(shape), -(shape.rank() as i64) - 1, shape.rank())]
    NewAxisRange { op: &'static str, axis: i64, shape: Shape },
    #[error("{op}: no axis is named \"{name}\", the shape is {}", shape_text(shape))]
    AxisName { op: &'static str, name: Name, shape: Shape },
    #[error(
        "{op}: several axes are named \"{name}\", the shape is {}; use the axis number",
        shape_text(shape)
    )]
    AxisAmbiguous { op: &'static str, name: Name, shape: Shape },
    #[error("{op}: axis {axis} is given twice, axes of {} must be unique", shape_text(shape))]
    AxisRepeated { op: &'static str, axis: AxisRef, shape: Shape },
    #[error("{op}: {given} axes for the shape {}, {required}", shape_text(shape))]
    AxesCount { op: &'static str, given: usize, shape: Shape, required: &'static str },
    #[error("{op}: the operand is {got}, {required}")]
    Rank { op: &'static str, got: TensorType, required: &'static str },
    #[error("reshape: {got} has {} elements, the new shape {} has {}; the counts must be equal", got.size(), shape_text(to), to.size())]
    ReshapeSize { got: TensorType, to: Shape },
    #[error("reshape: the free size of {sizes} cannot be found for {got}; exactly one size may be -1 and the others must divide {}", got.size())]
    ReshapeAuto { got: TensorType, sizes: String },
    #[error("squeeze: axis {axis} of {got} has size {size}, only axes of size 1 can be squeezed")]
    SqueezeSize { got: TensorType, axis: usize, size: usize },
    #[error("transpose: axes {axes} of {got}, a permutation of all {} axes is required", got.shape.rank())]
    Permutation { got: TensorType, axes: String },
    #[error(
        "broadcast: {got} does not fit the shape {} with axes {axes}; each size must be 1 or equal the size it meets, and axes must ascend",
        shape_text(to)
    )]
    BroadcastTo { got: TensorType, to: Shape, axes: String },
    #[error(
        "{op}: input {position} is {got}, the first is {first}, {}; they may differ only on axis {axis}",
        got.shape.mismatch_text(&first.shape, |at, a, b| at != *axis && a != b, "together they are too large")
    )]
    ConcatenateShapes { op: &'static str, position: usize, got: TensorType, first: TensorType, axis: usize },
    #[error("stack: input {position} is {got}, the first is {first}, {}; shapes must be equal", got.shape.mismatch_text(&first.shape, |_, a, b| a != b, ""))]
    StackShapes { position: usize, got: TensorType, first: TensorType },
    #[error("{op}: no tensors were given, at least one is required")]
    NoTensors { op: &'static str },
    #[error("{op}: start {start} and length {length} on axis {axis} of {got}, the length must be in 0..={}", got.shape.sizes().get(*axis).copied().unwrap_or(0))]
    SliceLength { op: &'static str, got: TensorType, axis: usize, start: i64, length: i64 },
    #[error("{op}: stride {stride} on axis {axis}, strides must be at least 1")]
    Stride { op: &'static str, stride: i64, axis: usize },
    #[error(
        "{op}: the start index of axis {axis} is {got}, it must be an integer or a scalar integer tensor"
    )]
    StartIndex { op: &'static str, axis: usize, got: TensorType },
    #[error(
        "put_slice: the slice is {slice} and the target {target}, {}; ranks must be equal and no size may exceed the target's",
        slice.shape.mismatch_text(&target.shape, |_, a, b| a > b, "")
    )]
    PutSlice { target: TensorType, slice: TensorType },
    #[error("pad: {count} entries for {got}, one (low, high, interior) for each axis is required")]
    PadCount { count: usize, got: TensorType },
    #[error(
        "pad: ({low}, {high}, {interior}) on axis {axis} of {got}, the interior must not be negative and the size of the result must be at least 0"
    )]
    PadConfig { low: i64, high: i64, interior: i64, axis: usize, got: TensorType },
    #[error("{op}: {what} is {got}, it must be a scalar")]
    NotScalar { op: &'static str, what: &'static str, got: TensorType },
    #[error(
        "select: the predicate is {pred} and the branches are {on_true} and {on_false}; all three must broadcast together"
    )]
    SelectShapes { pred: TensorType, on_true: TensorType, on_false: TensorType },
    #[error("{op}: {got} has no element on axis {axis}, a reduction without an identity needs at least one")]
    EmptyReduction { op: &'static str, got: TensorType, axis: usize },
    #[error("{op}: axis {left_axis} of {left} and axis {right_axis} of {right} are {what} together and have sizes {} and {}; they must be equal", left.shape.sizes()[*left_axis], right.shape.sizes()[*right_axis])]
    DotSizes {
        op: &'static str,
        left: TensorType,
        left_axis: usize,
        right: TensorType,
        right_axis: usize,
        what: &'static str,
    },
    #[error("dot: {problem} for {left} and {right}, {required}")]
    DotAxes { left: TensorType, right: TensorType, problem: String, required: &'static str },
    #[error(
        "{op}: the window spans {span} of {padded} elements on axis {axis} of {got} with padding ({}, {}), it must fit at least once",
        padding.0, padding.1
    )]
    WindowFit {
        op: &'static str,
        axis: usize,
        got: TensorType,
        span: i128,
        padding: (i64, i64),
        padded: i128,
    },
    #[error("{op}: {what} has {given} entries for {got}, one for each of its {required} {axes} is required")]
    WindowEntries {
        op: &'static str,
        what: &'static str,
        given: usize,
        got: TensorType,
        required: usize,
        axes: &'static str,
    },
    #[error(
        "{op}: the source is {left} and the window on {got} has the positions {}, their shapes must be equal",
        shape_text(expected)
    )]
    WindowSource { op: &'static str, left: TensorType, got: TensorType, expected: Shape },
    #[error(
        "{op}: the function gives {got}, it must give a scalar {expected}; convert what it gives with as_type"
    )]
    FoldResult { op: &'static str, got: TensorType, expected: TensorType },
    #[error("conv: {problem} for {left} and {right}, {required}")]
    Conv { left: TensorType, right: TensorType, problem: String, required: &'static str },
    #[error(
        "put_diagonal: the diagonal is {got}, diagonal {offset} of {matrix} has {expected} elements; pass a vector of that length"
    )]
    DiagonalLength { got: TensorType, matrix: TensorType, offset: i64, expected: usize },
    #[error("{op}: the operand is {got}, its last two axes must have equal sizes")]
    NotSquare { op: &'static str, got: TensorType },
    #[error("{op}: the matrix is {left} and the right-hand side {right}, {required}")]
    System { op: &'static str, left: TensorType, right: TensorType, required: &'static str },
    #[error("{op}: shapes {left} and {right} must be equal, {}", left.shape.mismatch_text(&right.shape, |_, a, b| a != b, "the names differ"))]
    ShapesDiffer { op: &'static str, left: TensorType, right: TensorType },

    // positions in a tensor
    #[error("{op}: the indices are {got}, integers are required; convert them with as_type")]
    IndicesDType { op: &'static str, got: TensorType },
    #[error("{op}: the indices are {got}, {required}")]
    Indices { op: &'static str, got: TensorType, required: String },
    #[error("{op}: the updates are {got}, {required}")]
    Updates { op: &'static str, got: TensorType, required: String },
    #[error("{op}: index {index} on axis {axis} of {got}, it must be in {}", positions_text(got, *axis, 1, true))]
    IndexRange { op: &'static str, index: i128, axis: usize, got: TensorType },
    #[error("odeint: stopped at the time {time}, {reason}")]
    OdeStopped { time: String, reason: &'static str },
    #[error("attention: the query is {query}, the key {key} and the value {value}, {required}")]
    Attention { query: TensorType, key: TensorType, value: TensorType, required: &'static str },
    #[error("{op}: {what} {} for axis {axis} of {got}, it must be in 0..{}", number_digits(*label), got.shape.sizes()[*axis])]
    Label { op: &'static str, what: &'static str, label: Number, axis: usize, got: TensorType },
    #[error("{op}: start {start} on axis {axis} of {got}, it must be in {}", positions_text(got, *axis, *length, *from_end))]
    StartRange { op: &'static str, start: i128, axis: usize, length: usize, from_end: bool, got: TensorType },
    #[error(
        "{op}: axis {axis} of {got} has no element to take, the indices are {indices}; indices without elements are required"
    )]
    NothingToTake { op: &'static str, got: TensorType, axis: usize, indices: TensorType },
    // vectorized axes
    #[error("{op}: {what} is {axes}, it must not be vectorized; devectorize it first")]
    NotVectorizable { op: &'static str, what: &'static str, axes: String },
    #[error(
        "{op}: the vectorized axis \"{name}\" has sizes {left} and {right}, they must be equal or one of them 1"
    )]
    VectorizedSizes { op: &'static str, name: Name, left: usize, right: usize },
    #[error(
        "{op}: the name \"{name}\" would stand on two axes of a vectorized tensor, names must differ; rename one of them"
    )]
    VectorizedName { op: &'static str, name: Name },
    #[error(
        "{op}: axis_name is \"{name}\", the name of an axis of an enclosing vmap or of the mesh, another name is required"
    )]
    KnownAxis { op: &'static str, name: Name },
    #[error("{op}: no enclosing vmap or mesh has an axis \"{name}\", it must be one of {known}")]
    UnknownNamedAxis { op: &'static str, name: Name, known: String },
    #[error(
        "{op}: an exchange along \"{name}\" inside {inside}, every position must come to it equally often; move it out"
    )]
    DivergentPositions { op: &'static str, name: Name, inside: &'static str },
    #[error("vectorize: {count} axes of {got}, at most {} can be vectorized", got.shape.rank())]
    VectorizeRank { count: usize, got: TensorType },
    #[error("vectorize: the size of \"{name}\" is said to be {size}, it must be {found} for {got}")]
    VectorizeSize { name: Name, size: usize, found: usize, got: TensorType },

    // options
    #[error("{op}: {option} is {given}, it must be {required}")]
    OptionValue { op: &'static str, option: &'static str, given: String, required: String },

    // constants and random numbers
    #[error("{op}: {dtype} has no such number, it must be {required}")]
    ConstantDType { op: &'static str, dtype: DType, required: &'static str },
    #[error("{op}: the key is {got}, it must be u32[2]; make one with random.key")]
    RandomKey { op: &'static str, got: TensorType },
    #[error(
        "key: the seed is {got}, it must be an integer of 64 bits, or a scalar of u64 or s64; convert a tensor with as_type"
    )]
    RandomSeed { got: String },
    #[error("{op}: {what} is {got}, it must be {required}")]
    ParameterDType { op: &'static str, what: &'static str, got: TensorType, required: &'static str },
    #[error(
        "choice: the probabilities are {got}, a vector of floats with one for each of the {expected} elements is required"
    )]
    Probabilities { got: TensorType, expected: usize },
    #[error(
        "multivariate_normal: the mean is {mean} and the covariance {covariance}, a vector and a square matrix of its size are required"
    )]
    MultivariateShapes { mean: TensorType, covariance: TensorType },
    #[error("{op}: {what} is {got}, it must broadcast to the shape {}", shape_text(shape))]
    ParameterShape { op: &'static str, what: &'static str, got: TensorType, shape: Shape },
    #[error("{op}: {what} is {got}, its shape must be {}", shape_text(shape))]
    StateShape { op: &'static str, what: &'static str, got: TensorType, shape: Shape },

    // control flow
    #[error("{op}: the predicate is {got}, it must be a scalar; reduce it with all or any")]
    Predicate { op: &'static str, got: TensorType },
    #[error(
        "{op}: the body's value is {got}{path} and was {expected} before; dtype, shape and names must stay the same{hint}"
    )]
    StateType { op: &'static str, path: String, got: TensorType, expected: TensorType, hint: &'static str },
    #[error(
        "{op}: {what} {index} is {got} after the body and {expected} before; dtype, shape and names must stay the same{hint}"
    )]
    LoopState {
        op: &'static str,
        what: String,
        index: usize,
        expected: TensorType,
        got: TensorType,
        hint: &'static str,
    },
    #[error(
        "{op}: branch {branch} gives {got} values, the first gives {expected}; branches must have the same structure"
    )]
    BranchCount { op: &'static str, branch: usize, got: usize, expected: usize },
    #[error(
        "{op}: result {index} of the function is {got}, the output says {expected}; dtype, shape and names must agree"
    )]
    CallResult { op: &'static str, index: usize, got: TensorType, expected: TensorType },
    #[error(
        "block: result {index} of the default of {name} is {got}, the output says {expected}; dtype, shape and names must agree"
    )]
    BlockResult { name: Name, index: usize, got: TensorType, expected: TensorType },
    #[error(
        "runtime_call: the run has no host function in slot {slot}, one is required; run the program by the definition that it was traced in"
    )]
    NoHostFunction { slot: usize },
    #[error("{op}: the {what} gives {got} values, {expected} are required")]
    RegionResults { op: &'static str, what: &'static str, got: usize, expected: usize },

    // gradients
    #[error("{op}: no derivative passes through it; {hint}")]
    NoGradient { op: &'static str, hint: &'static str },
    #[error("{op}: the tangent of {value} is {got}, {required}")]
    TangentDType { op: &'static str, value: TensorType, got: TensorType, required: &'static str },

    // solvers
    #[error(
        "{op}: {what} gives {got} for {expected} of value {index}, dtype and shape must stay the same; convert or broadcast its result"
    )]
    SolverResult { op: &'static str, what: &'static str, index: usize, got: TensorType, expected: TensorType },
    #[error("{op}: a value is {got}, a float or a complex number is required; convert it with as_type")]
    SolverDType { op: &'static str, got: TensorType },
    #[error(
        "{op}: {option} is {got} for b of {b}, a square matrix of the length of b's first axis is required, or a function that multiplies by it"
    )]
    SolverMatrix { op: &'static str, option: &'static str, got: TensorType, b: TensorType },
    #[error(
        "grad: the function's value is {what}, gradients are of one tensor; choose it with value_and_grad's transform"
    )]
    GradOfMany { what: String },

    #[error("{op}: the value of fun is {got}, it must be a float")]
    ObjectiveDType { op: &'static str, got: TensorType },
    #[error("{op}: {stopped}, it must converge; {hint}")]
    NotConverged { op: &'static str, stopped: String, hint: &'static str },

    // tracing, compiling, running
    #[error(
        "{op}: the tensor {got} belongs to a definition that has ended; return it from the definition instead"
    )]
    TraceEnded { op: &'static str, got: TensorType },
    #[error(
        "{op}: the tensor {got} belongs to a definition that is being traced {context}, it can be used only by what that definition calls itself; pass tensors with values instead"
    )]
    TraceElsewhere { op: &'static str, got: TensorType, context: &'static str },
    #[error(
        "{op}: functions are traced {depth} deep inside one another, that is the limit; repeat with while_, and choose among many branches with one cond"
    )]
    TooNested { op: &'static str, depth: usize },
    #[error(
        "{op}: this thread's stack has {left} KiB left, {} KiB are required for a function inside others; start the thread with a larger stack", crate::stack::MIN_STACK_BYTES >> 10
    )]
    SmallStack { op: &'static str, left: usize },
    #[error("{op}: the tensor {got} is being traced and has no values yet; {hint}")]
    NoValues { op: &'static str, got: TensorType, hint: &'static str },
    #[error("{op}: {got} is a template, it has a type but no values; pass a tensor")]
    IsTemplate { op: &'static str, got: TensorType },
    #[error(
        "{op}: {argument} is {got}, the compiled function takes {expected}; compile it again for other types"
    )]
    ArgumentType { op: &'static str, argument: Argument, got: TensorType, expected: TensorType },
    #[error("{op}: {given} arguments, the compiled function takes {expected}")]
    ArgumentCount { op: &'static str, given: usize, expected: usize },
    #[error("compiler: \"{name}\" is unknown, it must be one of {known}")]
    UnknownCompiler { name: String, known: String },
    #[error("compiler \"{compiler}\": unknown option \"{option}\", it takes {known}")]
    UnknownCompilerOption { compiler: String, option: String, known: String },
    #[error("backend: \"{name}\" is unknown, it must be one of {known}")]
    UnknownBackend { name: String, known: String },
    #[error("{op}: the operands are on {left} and {right}; move one with backend_copy or backend_transfer")]
    BackendConflict { op: &'static str, left: String, right: String },
    #[error("{op}: the backend {backend} cannot do this: {why}")]
    BackendRefused { op: &'static str, backend: String, why: String },
    #[error("{op}: the tensor's memory was {gone}; keep a copy, or do not use it after")]
    BufferGone { op: &'static str, gone: Gone },
    #[error(
        "{op}: {requested} bytes are needed and {available} are available; use smaller shapes or free tensors"
    )]
    OutOfMemory { op: &'static str, requested: usize, available: usize },
    #[error(
        "{op}: {requested} bytes are needed and {available} are available; use smaller shapes or free tensors: {live}"
    )]
    OutOfMemoryBeside { op: &'static str, requested: usize, available: usize, live: String },

    /// An error of the host language or of a backend, passed through unchanged.
    #[error("{error}")]
    Host { error: Arc<dyn std::error::Error + Send + Sync> },

    #[error(transparent)]
    Device(DeviceError),

    #[error(transparent)]
    Stage(StageError),

    #[error(transparent)]
    Mesh(MeshError),

    // files
    #[error("{op}: {problem}, {required}")]
    Malformed { op: &'static str, problem: String, required: String },
    #[error("{op}: the elements {got} have no counterpart here, {required}")]
    ForeignElements { op: &'static str, got: String, required: &'static str },
    #[error(
        "{op}: elements of {dtype} cannot be stored in {format}; convert them with as_type, or use serialize"
    )]
    StoredDType { op: &'static str, dtype: DType, format: &'static str },

    // text
    #[error("from_text: line {line}: {problem}")]
    IrText { line: usize, problem: String },
}

fn dtype_names() -> String {
    let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
    names.join(", ")
}

fn number_text(number: Number) -> String {
    match number {
        Number::Bool(_) => format!("the truth value {}", number_digits(number)),
        Number::Int(_) | Number::Huge(_) => format!("the integer {}", number_digits(number)),
        Number::Float(_) => format!("the float {}", number_digits(number)),
        Number::Complex(_) => format!("the complex number {}", number_digits(number)),
    }
}

fn number_digits(number: Number) -> String {
    match number {
        Number::Bool(value) => value.to_string(),
        Number::Int(value) => value.to_string(),
        Number::Huge(value) => format!("{value:e}"),
        Number::Float(value) => value.to_string(),
        Number::Complex(value) => value.to_string(),
    }
}
