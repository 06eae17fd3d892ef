//! The core of numerical definitions: element types, shapes, operations, graphs, their passes, and the traits
//! that backends and compilers implement. No threads, no foreign functions, no unsafe, and no backend.
#![forbid(unsafe_code)]

pub mod backend;
pub mod background;
pub mod batches;
pub mod builder;
pub mod collected;
pub mod compose;
pub mod constants;
pub mod cost;
pub mod device;
pub mod diff;
pub mod distance;
pub mod donation;
pub mod dtype;
pub mod error;
pub mod evaluator;
pub mod form;
pub mod format;
mod functions;
pub mod grad;
pub mod graph;
pub mod infer;
pub mod jvp;
pub mod live;
pub mod location;
pub mod memory;
pub mod mesh;
pub mod op;
mod optimize;
pub mod origin;
pub mod pass;
pub mod print;
pub mod profile;
pub mod region;
pub mod scalar;
#[cfg(feature = "serde")]
mod serde;
pub mod shape;
mod solvers;
pub mod sparsity;
pub mod stack;
pub mod stage;
pub mod tensor;
pub mod trace;
pub mod vectorize;
pub mod verify;
pub mod weak;

pub use dtype::{DType, Kind};
pub use error::{Error, ErrorClass, ErrorKind, Result};
pub use location::Location;
pub use scalar::{Number, Scalar};
pub use shape::{Axes, Axis, AxisRef, Name, Shape, TensorType};
pub use tensor::Tensor;
