//! The error classes, and the class of each error.

use std::fmt;

use super::{Error, ErrorKind};

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
    /// An unexpected NaN or infinity.
    NonFinite,
    /// An algorithm that stopped before its result.
    Convergence,
    /// Containers with different structures.
    Container,
    /// An index out of range.
    Bounds,
    /// Misuse of traced values.
    Trace,
    /// An error of a compiler.
    Compile,
    /// An error of a backend, or elements that are gone.
    Backend,
    /// A malformed file or malformed bytes.
    Format,
    /// Memory.
    OutOfMemory,
}

impl Error {
    /// Adds the trip of a loop in which values were not what they must be. Trips count from 0.
    #[must_use]
    pub(crate) fn in_trip(mut self, trip: u64) -> Error {
        if let ErrorClass::Bounds | ErrorClass::Division | ErrorClass::NonFinite = self.class() {
            self.inner.trips.push(trip);
        }
        self
    }

    pub(super) fn write_trips(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((inner, around)) = self.inner.trips.split_first() else { return Ok(()) };
        write!(f, "\n  in trip {inner}")?;
        around.iter().try_for_each(|trip| write!(f, " of the loop in trip {trip}"))
    }
}

impl ErrorKind {
    /// Whether the text is about several operands and leaves out their types.
    pub(super) fn leaves_out_types(&self) -> bool {
        use ErrorKind::{Broadcast, NamesConflict, NamesRepeated};
        matches!(self, Broadcast { .. } | NamesConflict { .. } | NamesRepeated { .. })
    }

    /// Whether the text is about a loop's state; the origin of the state helps more than its type.
    pub(super) fn is_of_state(&self) -> bool {
        matches!(self, ErrorKind::LoopState { .. } | ErrorKind::StateType { .. })
    }

    /// The public error class.
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
            | SolverDType { .. }
            | ObjectiveDType { .. }
            | TangentDType { .. }
            | StoredDType { .. } => ErrorClass::DType,
            SolverResult { got, expected, .. } if got.dtype != expected.dtype => ErrorClass::DType,
            IntegerRange { .. } | NumberRange { .. } | ArgumentRange { .. } => ErrorClass::Range,
            Malformed { .. } => ErrorClass::Format,
            DivisionByZero { .. } => ErrorClass::Division,
            FoundNan { .. } | FoundInfinity { .. } => ErrorClass::NonFinite,
            OdeStopped { .. } | NotConverged { .. } => ErrorClass::Convergence,
            NegativeExponent { .. }
            | NegativeShift { .. }
            | ZeroDiagonal { .. }
            | OptionValue { .. }
            | UnknownCompilerOption { .. } => ErrorClass::Option,
            NegativeSize { .. }
            | Broadcast { .. }
            | Attention { .. }
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
            | SolverResult { .. }
            | SolverMatrix { .. }
            | ParameterShape { .. }
            | StateShape { .. }
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
            IndexRange { .. } | StartRange { .. } | NothingToTake { .. } | Label { .. } => ErrorClass::Bounds,
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
            | KnownAxis { .. }
            | UnknownNamedAxis { .. }
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
            | DivergentPositions { .. }
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
