#![doc = include_str!("../README.md")]
//!
//! # How to read these pages
//! - `f32[2][3]` is the type of a tensor: its dtype, and the sizes of its axes. `f32` alone is a scalar.
//! - [`Tensor`] and [`Expr`] have the same methods. An option `impl Into<Axes>` takes an axis, an array of axes, or
//!   [`Axes::All`]; an axis is a position, negative from the end, or a name.
//! - Promoted dtypes are those of [`DType::merge`]. A plain number takes the dtype of the tensor that it meets.
//! - In gradients, `g` is the cotangent of the result, and `y` the result.
//! - Words in parentheses under "Errors" are variants of [`ErrorClass`], which [`Error::class`] returns.
//!
//! # Features
//! - `cpu` (default): the CPU backend, which is then the default backend.
//! - `futures`: [`Stream`] is a `futures::Stream`.
//! - `pjrt`: the module `pjrt`, devices through PJRT plugins, and the compiler "pjrt".
//!
//! Conversions between [`Tensor`] and the types of other crates, by `TryFrom`; "moved" is without a copy, on the CPU:
//! - `ndarray`: `Array` of any dimension (moved), views (copied), and `HostSlice::view`, which borrows a tensor.
//! - `nalgebra`: `DMatrix`, `SMatrix` (copied, since they are column-major) and `DVector` (moved).
//! - `faer`: `Mat` and `Col` (copied).
//! - `arrow`: `PrimitiveArray` (moved both ways), `BooleanArray` (copied), `FixedSizeListArray` of primitive elements
//!   (moved both ways), and `&dyn Array` of these.
//! - `image`: `ImageBuffer` and `DynamicImage` as `[height][width][channels]` (moved).
//! - `serde`: `Serialize` and `Deserialize` of [`Tensor`], [`DType`] and [`Shape`].
//! - `rand`: `random::key_from_rng`, a key from a generator of `rand`.
//!
//! The numbers of the crates [`half`] and [`num_complex`] are elements without any feature. In all conversions,
//! vectorized axes are leading axes, as in [`Tensor::to_vec`], and names of axes are left out, except by `serde`.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// Input never panics: what cannot fail says why, by `expect`.
#![deny(clippy::unwrap_used, clippy::indexing_slicing)]

#[macro_use]
mod tuples;

mod at;
mod backend;
mod checkpoint;
pub mod checkpoints;
mod collective;
mod compile;
mod compiled;
pub mod constants;
mod control;
pub mod data;
mod expr;
mod files;
mod fixed;
mod grad;
pub mod graph;
mod hooks;
mod host;
mod implicit;
mod jit;
mod jvp;
pub mod linalg;
mod loops;
mod neighbours;
mod nested;
pub mod nn;
mod ode;
mod ops;
pub mod optim;
pub mod optimize;
mod parts;
#[cfg(feature = "pjrt")]
pub mod pjrt;
mod print;
mod profile;
pub mod random;
mod replace;
mod saved;
pub mod sparsity;
mod stream;
mod tensor;
pub mod tree;
mod values;
mod vmap;

/// Several devices: grids with named axes, and how tensors are split over them.
///
/// ```
/// use defn::mesh::{Mesh, Spec};
/// use defn::{DType, Shape, TensorType};
///
/// let mesh = Mesh::new(vec![("data".into(), 2), ("model".into(), 2)])?;
/// let rows = Spec(vec![vec!["data".into()]]);
/// let whole = TensorType::new(DType::F32, Shape::new(&[8, 3]))?;
/// assert_eq!(rows.block(&mesh, "x", &whole)?.to_string(), "f32[4][3]");
/// # Ok::<(), defn::Error>(())
/// ```
pub mod mesh {
    pub use defn_core::mesh::{Mesh, MeshError, Spec};
    pub use defn_core::op::{AllReduceOp, DeviceGroups};

    pub use crate::collective::Along;
}

pub use at::{Index, Part, Rows};
pub use backend::{compiler, default_backend, set_default_backend, with_checks, with_default_backend};
pub use checkpoint::{Kept, checkpoint};
pub use compiled::Compiled;
pub use control::{Exprs, associative_scan, cond};
/// The error of every function of this crate that returns a [`Result`].
///
/// ```
/// use defn::{Error, ErrorClass, Tensor};
///
/// let error: Error = Tensor::scalar(1)?.sum(0, false).unwrap_err();
/// assert_eq!(error.class(), ErrorClass::Axis);
/// assert!(error.to_string().starts_with("sum: "));
/// assert!(error.location().is_some());
/// # Ok::<(), defn::Error>(())
/// ```
#[doc(inline)]
pub use defn_core::Error;
/// Every error as data, for programs that handle one of them; [`Error::kind`] returns it.
///
/// ```
/// use defn::{ErrorKind, Tensor};
///
/// let error = Tensor::scalar(1)?.item::<f32>().unwrap_err();
/// assert!(matches!(error.kind(), ErrorKind::OperandDType { op: "item", .. }));
/// # Ok::<(), defn::Error>(())
/// ```
#[doc(inline)]
pub use defn_core::ErrorKind;
/// A result whose error is [`Error`].
///
/// ```
/// fn half(x: &defn::Tensor) -> defn::Result<defn::Tensor> {
///     x.divide(2)
/// }
/// assert_eq!(half(&defn::Tensor::scalar(3)?)?.item::<f32>()?, 1.5);
/// # Ok::<(), defn::Error>(())
/// ```
#[doc(inline)]
pub use defn_core::Result;
/// ```
/// # use defn::prelude::*;
/// use defn::Checks;
///
/// let log = jit(|x: Expr| x.log()).with_checks(Checks { nan: true, ..Checks::default() });
/// assert!(log.call(Tensor::scalar(-1.0)?).is_err());
/// # Ok::<(), defn::Error>(())
/// ```
#[doc(inline)]
pub use defn_core::backend::Checks;
/// ```
/// # use defn::prelude::*;
/// use defn::MemoryNeed;
///
/// let f = jit(|x: Expr| x.sin()).compile(Tensor::template(&[100], DType::F32)?)?;
/// let need: MemoryNeed = f.memory()?;
/// assert_eq!(need.peak(), 400);
/// # Ok::<(), defn::Error>(())
/// ```
#[doc(inline)]
pub use defn_core::backend::MemoryNeed;
/// How the linear systems of an [`implicit`](fn@implicit) derivative are solved.
///
/// ```
/// use defn::LinearOptions;
///
/// let options = LinearOptions::cg().with_rtol(1e-8);
/// assert_eq!(options.rtol, Some(1e-8));
/// ```
pub use defn_core::builder::LinearOptions;
pub use defn_core::builder::{
    Contracted, ConvOptions, FftLength, FftNorm, Indexing, OdeGradient, OdeMethod, OdeOptions, Overlap,
    PerAxis, QuantileMethod, Sections, Side, UniqueOutputs, Uniques, WindowOptions, WindowPadding,
};
pub use defn_core::live::Group as LiveTensors;
pub use defn_core::op::{Direction, MemorySpace};
pub use defn_core::origin::{OperandInfo, Origin};
pub use defn_core::{Axes, Axis, AxisRef, DType, ErrorClass, Number, Shape, TensorType};
/// ```
/// let before = defn::set_threads(Some(1))?;
/// assert_eq!(defn::threads()?, 1);
/// defn::set_threads(before)?;
/// # Ok::<(), defn::Error>(())
/// ```
#[cfg(feature = "cpu")]
#[doc(inline)]
pub use defn_cpu::set_threads;
/// ```
/// assert!(defn::threads()? >= 1);
/// # Ok::<(), defn::Error>(())
/// ```
#[cfg(feature = "cpu")]
#[doc(inline)]
pub use defn_cpu::threads;
/// ```
/// let inside = defn::with_threads(1, defn::threads)??;
/// assert_eq!(inside, 1);
/// # Ok::<(), defn::Error>(())
/// ```
#[cfg(feature = "cpu")]
#[doc(inline)]
pub use defn_cpu::with_threads;
#[cfg(feature = "cpu")]
pub use defn_cpu::{Allocator, MemoryReport, machine_code, memory_report};
/// Makes a struct or an enum that is generic over its leaves a container: a [`Tree`](trait@Tree). The first type
/// parameter is the leaf. Every field is a leaf or a container, but for those marked `#[tree(static)]`, which are
/// values: a function is compiled again for another value.
///
/// ```
/// use defn::prelude::*;
///
/// #[derive(Tree)]
/// struct Layer<T> {
///     weight: T,
///     bias: Option<T>,
///     #[tree(static)]
///     slope: f64,
/// }
///
/// let apply = jit(|(layer, x): (Layer<Expr>, Expr)| {
///     let y = &layer.weight * x;
///     let y = match &layer.bias {
///         Some(bias) => y + bias,
///         None => y,
///     };
///     y.greater(0.0).select(&y, layer.slope * &y)
/// });
/// let layer = Layer { weight: Tensor::scalar(-2.0)?, bias: Some(Tensor::scalar(1.0)?), slope: 0.5 };
/// assert_eq!(apply.call((layer, Tensor::scalar(3.0)?))?.item::<f32>()?, -2.5);
/// # Ok::<(), defn::Error>(())
/// ```
pub use defn_derive::Tree;
pub use expr::{Expr, Operand};
pub use files::{deserialize, load, load_tree, save, save_tree, serialize};
pub use fixed::Static;
pub use grad::{
    Pullback, custom_derivative, custom_grad, custom_jvp, grad, hessian, jacfwd, jacobian, jacrev,
    value_and_grad, value_and_grad_of, vjp,
};
/// The crate whose [`f16`](half::f16) and [`bf16`](half::bf16) are the elements of tensors of f16 and bf16.
///
/// ```
/// use defn::half::bf16;
/// use defn::prelude::*;
///
/// let x = Tensor::from_vec(vec![bf16::from_f32(1.5)], &[1])?;
/// assert_eq!(x.dtype(), DType::BF16);
/// assert_eq!((x * 2.0)?.to_vec::<bf16>()?, [bf16::from_f32(3.0)]);
/// # Ok::<(), defn::Error>(())
/// ```
pub use half;
pub use hooks::{Outcome, block, hook, named_hook, runtime_call};
pub use host::HostSlice;
pub use implicit::implicit;
pub use jit::{Jit, jit};
pub use jvp::{Linear, hvp, jvp, linearize};
pub use loops::{LoopOptions, for_, scan, scan_reverse, scan_times, while_};
pub use nested::Nested;
/// The crate whose [`Complex`](num_complex::Complex) of f32 and of f64 are the elements of tensors of c64 and c128.
///
/// ```
/// use defn::num_complex::Complex;
/// use defn::prelude::*;
///
/// let x = Tensor::from_vec(vec![Complex::new(3f32, 4.0)], &[1])?;
/// assert_eq!(x.dtype(), DType::C64);
/// assert_eq!(x.abs()?.to_vec::<f32>()?, [5.0]);
/// # Ok::<(), defn::Error>(())
/// ```
pub use num_complex;
pub use ode::{OdeSolution, odeint, odeint_until};
pub use ops::PadMode;
pub use parts::{Batches, Leftover};
pub use profile::{Profile, ProfileStep};
pub use saved::Saved;
pub use stream::{Stream, stream};
pub use tensor::{Element, Tensor};
#[doc(inline)]
pub use tree::{Leaf, Tree, Visit, each, leaves, named_leaves, try_each};
pub use vmap::{VmapOptions, broadcast_vectors, reshape_vectors, vmap, vmap_at};

/// The names that most programs use: `use defn::prelude::*;`.
///
/// ```
/// use defn::prelude::*;
///
/// let mean = jit(|x: Expr| x.mean(Axes::All, false));
/// assert_eq!(mean.call(Tensor::iota(&[3], DType::F32, None)?)?.item::<f32>()?, 1.0);
/// # Ok::<(), defn::Error>(())
/// ```
pub mod prelude {
    pub use crate::{
        Axes, DType, Expr, Tensor, Tree, cond, custom_derivative, custom_grad, custom_jvp, each, for_, grad,
        hessian, hook, hvp, jacfwd, jacobian, jacrev, jit, jvp, linearize, scan, tensor, tree,
        value_and_grad, value_and_grad_of, vjp, vmap, while_,
    };
}

/// ```
/// use defn::prelude::*;
///
/// // `dn.vmap(f, in_axes=1)(x)` is a call here, and its closure captures what is not mapped.
/// let f = jit(|x: Expr| defn::vmap_at(x, &[1], 0, |column| column.sum(Axes::All, false)));
/// assert_eq!(f.call(tensor![[1, 2], [3, 4]]?)?.to_vec::<i32>()?, [4, 6]);
/// # Ok::<(), defn::Error>(())
/// ```
#[doc = include_str!("python.md")]
pub mod python {}

/// The core crate, for those who write backends, compilers and passes.
///
/// ```
/// use defn::core::graph::Graph;
/// use defn::core::builder::{BuildCreate, BuildElementwise, Builder};
/// use defn::{DType, Shape};
///
/// let mut graph = Graph::new();
/// let x = graph.iota(Shape::new(&[3]), DType::S32, None)?;
/// let y = graph.sqrt(x)?;
/// assert_eq!(Builder::ty(&graph, &y).to_string(), "f32[3]");
/// # Ok::<(), defn::Error>(())
/// ```
pub use defn_core as core;
