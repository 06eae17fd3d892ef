//! Errors about stages: decisions, impossible cuts, and lists of stages that cannot run.

use crate::error::{Error, ErrorClass, ErrorKind};
use crate::shape::TensorType;

/// Errors about stages. `op` is the public name of the function that was called.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum StageError {
    #[error("split: the decision is {given}, it must be \"before\", \"after\", \"both\" or \"none\"")]
    Decision { given: String },
    #[error("split: the op \"{name}\" {problem}, {required} is required, such as \"dot\"")]
    Op { name: String, problem: &'static str, required: &'static str },
    #[error("split: the graph has no mark \"{name}\", it must be one of {known}; set marks with mark")]
    UnknownMark { name: String, known: String },
    #[error("split: the graph has no mark, one to cut at is required; set marks with mark")]
    NoMark,
    #[error("split: {what} is {given}, it must be {required}")]
    Count { what: &'static str, given: usize, required: String },
    #[error(
        "{op}: stage {position} of {stages} is at position {index}, stages are required in the order in which split gave them"
    )]
    Order { op: &'static str, position: usize, stages: usize, index: usize },
    #[error(
        "{op}: the stage at position {index} is of another graph or another split than the first, all stages of one split are required"
    )]
    Foreign { op: &'static str, index: usize },
    #[error("{op}: {given} stages, the graph was split into {expected}; pass all that split gave")]
    Missing { op: &'static str, given: usize, expected: usize },
    #[error("{op}: no stage is given, those that split gave are required")]
    Empty { op: &'static str },
    #[error("{op}: {given} arguments, the graph was traced with {expected}")]
    InputCount { op: &'static str, given: usize, expected: usize },
    #[error(
        "{op}: {argument} is {got}, the graph was traced with {expected}; trace and split it again for other types"
    )]
    InputType { op: &'static str, argument: String, got: TensorType, expected: TensorType },
    #[error("{op}: {given} executables for {expected} stages, one for each is required")]
    Executables { op: &'static str, given: usize, expected: usize },
    #[error(
        "{op}: the executable for stage {position} runs another program, one compiled from the stage's region is required"
    )]
    Program { op: &'static str, position: usize },
}

impl StageError {
    /// The public error class.
    pub fn class(&self) -> ErrorClass {
        match self {
            StageError::Decision { .. }
            | StageError::Op { .. }
            | StageError::UnknownMark { .. }
            | StageError::NoMark
            | StageError::Count { .. } => ErrorClass::Option,
            StageError::Order { .. }
            | StageError::Foreign { .. }
            | StageError::Missing { .. }
            | StageError::Empty { .. }
            | StageError::Executables { .. } => ErrorClass::Container,
            StageError::Program { .. } => ErrorClass::Compile,
            StageError::InputCount { .. } | StageError::InputType { .. } => ErrorClass::Shape,
        }
    }
}

impl From<StageError> for Error {
    #[cold]
    fn from(error: StageError) -> Error {
        ErrorKind::Stage(error).into()
    }
}
