//! The classes of errors, and which each error is of.

use super::ErrorKind;

/// The classes of errors, as the Python package names them.
///
/// ```
/// use defn_core::{DType, ErrorClass};
/// let error = "f31".parse::<DType>().unwrap_err();
/// assert_eq!(error.class(), ErrorClass::DType);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// Shapes that do not fit.
    Shape,
    /// An axis or an axis name.
    Axis,
    /// Element types.
    DType,
    /// An integer that an element type does not hold.
    Range,
    /// A value or name of an option.
    Option,
    /// An integer divided by zero.
    Division,
    /// A NaN or an infinity that was looked for.
    NonFinite,
    /// Containers whose structures differ.
    Container,
    /// An index out of range.
    Bounds,
    /// Misuse of traced values.
    Trace,
    /// A compiler refused.
    Compile,
    /// A backend refused, or data is gone.
    Backend,
    /// A file or bytes that are not what they should be.
    Format,
    /// Memory.
    OutOfMemory,
}

impl ErrorKind {
    /// Whether the text is about several operands and does not say their types.
    pub(super) fn leaves_out_types(&self) -> bool {
        use ErrorKind::{Broadcast, NamesConflict, NamesRepeated};
        matches!(self, Broadcast { .. } | NamesConflict { .. } | NamesRepeated { .. })
    }

    /// Whether the text is about a loop's state, whose origin says more than its type.
    pub(super) fn is_of_state(&self) -> bool {
        matches!(self, ErrorKind::LoopState { .. } | ErrorKind::StateType { .. })
    }

    /// The class that users catch.
    pub fn class(&self) -> ErrorClass {
        use ErrorKind::*;
        match self {
            UnknownDType { .. }
            | NumberKind { .. }
            | OperandDType { .. }
            | OperandsDType { .. }
            | BitcastWidth { .. }
            | ConstantDType { .. }
            | RandomKey { .. }
            | RandomSeed { .. }
            | ParameterDType { .. }
            | IndicesDType { .. }
            | ForeignElements { .. }
            | StoredDType { .. } => ErrorClass::DType,
            IntegerRange { .. } | NumberRange { .. } | ArgumentRange { .. } => ErrorClass::Range,
            Malformed { .. } => ErrorClass::Format,
            DivisionByZero { .. } => ErrorClass::Division,
            FoundNan { .. } | FoundInfinity { .. } => ErrorClass::NonFinite,
            NegativeExponent { .. }
            | NegativeShift { .. }
            | ZeroDiagonal { .. }
            | OptionValue { .. }
            | UnknownCompilerOption { .. } => ErrorClass::Option,
            NegativeSize { .. }
            | Broadcast { .. }
            | Rank { .. }
            | ReshapeSize { .. }
            | ReshapeAuto { .. }
            | SqueezeSize { .. }
            | BroadcastTo { .. }
            | ConcatenateShapes { .. }
            | StackShapes { .. }
            | NoTensors { .. }
            | SliceLength { .. }
            | Stride { .. }
            | StartIndex { .. }
            | PutSlice { .. }
            | PadCount { .. }
            | PadConfig { .. }
            | NotScalar { .. }
            | SelectShapes { .. }
            | EmptyReduction { .. }
            | DotSizes { .. }
            | DotAxes { .. }
            | WindowFit { .. }
            | WindowEntries { .. }
            | WindowSource { .. }
            | FoldResult { .. }
            | Conv { .. }
            | DiagonalLength { .. }
            | ShapesDiffer { .. }
            | ParameterShape { .. }
            | MultivariateShapes { .. }
            | Probabilities { .. }
            | Indices { .. }
            | Updates { .. }
            | VectorizeRank { .. }
            | VectorizeSize { .. }
            | VectorizedSizes { .. }
            | NotVectorizable { .. }
            | NotSquare { .. }
            | System { .. }
            | Predicate { .. }
            | ArgumentType { .. }
            | ArgumentCount { .. } => ErrorClass::Shape,
            IndexRange { .. } | StartRange { .. } | NothingToTake { .. } => ErrorClass::Bounds,
            NamesLength { .. }
            | NamesConflict { .. }
            | NamesRepeated { .. }
            | AxisRange { .. }
            | NewAxisRange { .. }
            | AxisName { .. }
            | AxisAmbiguous { .. }
            | AxisRepeated { .. }
            | AxesCount { .. }
            | VectorizedName { .. }
            | Permutation { .. } => ErrorClass::Axis,
            LoopState { .. }
            | StateType { .. }
            | BranchCount { .. }
            | RegionResults { .. }
            | CallResult { .. }
            | BlockResult { .. }
            | GradOfMany { .. } => ErrorClass::Container,
            NoGradient { .. }
            | TraceEnded { .. }
            | TraceElsewhere { .. }
            | TooNested { .. }
            | NoValues { .. }
            | IsTemplate { .. }
            | IrText { .. } => ErrorClass::Trace,
            UnknownCompiler { .. } => ErrorClass::Compile,
            UnknownBackend { .. }
            | BackendConflict { .. }
            | BackendRefused { .. }
            | NoHostFunction { .. }
            | BufferGone { .. }
            | Host { .. } => ErrorClass::Backend,
            TooLarge { .. } | OutOfMemory { .. } | OutOfMemoryBeside { .. } | SmallStack { .. } => {
                ErrorClass::OutOfMemory
            }
            Device(error) => error.class(),
            Stage(error) => error.class(),
            Mesh(error) => error.class(),
        }
    }
}
