//! Numerical definitions: a function is traced once into a typed graph, checked, differentiated, compiled, and
//! run on the CPU or on another backend.
//!
//! [`jit`] takes a closure over [`Expr`], whose operators do not return a `Result`: the first error stays in
//! the trace, with the line of the program where it was made, and comes out of the call. Operations on
//! [`Tensor`] run at once and do.
//!
//! ```
//! use defn::prelude::*;
//!
//! // A line through points, by gradient descent.
//! let step = jit(|((slope, offset), x, y): ((Expr, Expr), Expr, Expr)| {
//!     let at = (slope, offset);
//!     let (loss, gradient) = value_and_grad(&at, |(slope, offset)| {
//!         (slope * &x + offset - &y).pow(2).mean(Axes::All, false)
//!     });
//!     (each([&at, &gradient], |[value, gradient]| value - 0.1 * gradient), loss)
//! });
//! let x = Tensor::from_slice(&[0f32, 1.0, 2.0, 3.0], &[4])?;
//! let y = Tensor::from_slice(&[1f32, 3.0, 5.0, 7.0], &[4])?;
//! let mut line = (Tensor::scalar(0.0)?, Tensor::scalar(0.0)?);
//! for _ in 0..300 {
//!     line = step.call((line, x.clone(), y.clone()))?.0;
//! }
//! assert!((line.0.item::<f32>()? - 2.0).abs() < 1e-3);
//! assert!((line.1.item::<f32>()? - 1.0).abs() < 1e-3);
//! assert_eq!(step.programs(), 1);
//! # Ok::<(), defn::Error>(())
//! ```
//!
//! # Features
//! - `cpu` (default): the CPU backend, which is then the default backend.
//! - `pjrt`: the module `pjrt`, devices through PJRT plugins, and the compiler "pjrt".
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod backend;
mod collective;
pub mod constants;
mod control;
mod expr;
mod files;
mod grad;
mod jit;
pub mod linalg;
mod ops;
#[cfg(feature = "pjrt")]
pub mod pjrt;
pub mod random;
mod tensor;
mod tree;

/// Several devices: grids with named axes, and how tensors are laid over them.
pub mod mesh {
    pub use defn_core::mesh::{Mesh, MeshError, Spec};
    pub use defn_core::op::{AllReduceOp, DeviceGroups};
}

pub use backend::{compiler, default_backend, set_default_backend};
pub use control::{Exprs, cond, while_};
pub use defn_core::builder::{ConvOptions, FftLength, PerAxis, WindowOptions, WindowPadding};
pub use defn_core::live::Group as LiveTensors;
pub use defn_core::op::Direction;
pub use defn_core::origin::{OperandInfo, Origin};
pub use defn_core::{
    Axes, Axis, AxisRef, DType, Error, ErrorClass, ErrorKind, Number, Result, Shape, TensorType,
};
#[cfg(feature = "cpu")]
pub use defn_cpu::{Allocator, MemoryReport, memory_report};
pub use expr::{Expr, Operand};
pub use files::{load, save};
pub use grad::{grad, value_and_grad, value_and_grad_of};
pub use jit::{Jit, jit};
pub use tensor::{Element, Tensor};
pub use tree::{Leaf, Tree, Visit, each};

/// What most programs use: `use defn::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Axes, DType, Expr, Tensor, cond, each, grad, jit, tree, value_and_grad, value_and_grad_of, while_,
    };
}

/// The core, for those who write backends, compilers and passes.
pub use defn_core as core;
