//! The builder interface that eager calls, tracing, gradient rules, composites and block defaults share.
//!
//! [`Builder`] consists of values with types and a method that applies an op. The methods named after the ops are
//! extension traits by family, so that each composite is written once for all builders.
//!
//! - [`Graph`](crate::graph::Graph) adds nodes to a graph; its values are [`Value`]s.
//! - [`Ops`] works on tensors. It adds to the open trace, or runs the op eagerly on the operands' backend.

mod arrange;
mod associative;
mod block;
mod checkpoint;
mod collective;
mod composite;
mod control;
mod create;
mod draft;
mod elementwise;
mod fold;
pub(crate) mod fourier;
mod graph;
mod implicit;
mod index;
mod lbfgs;
mod linalg;
mod loops;
mod matrix;
mod missing;
mod nn;
mod ode;
mod ops;
mod optim;
mod optimize;
mod order;
mod quantile;
mod reduce;
mod scan;
mod search;
mod sequence;
mod sets;
pub(crate) mod shape;
mod special;
pub(crate) mod starts;
mod window;

use std::slice::from_ref;

use smallvec::SmallVec;

pub use arrange::{BuildArrange, Indexing, Sections};
pub use associative::{Combine, associative_scan};
pub use block::{Tag, block};
pub use checkpoint::{Kept, checkpoint};
pub use collective::BuildCollective;
pub(crate) use collective::check_pairs;
pub use composite::{Composite, composite_fast_path};
pub use control::{BuildControl, Clause, Rule, Rules, Thunk, cond, custom_derivative, merge_results};
pub use create::BuildCreate;
pub use elementwise::BuildElementwise;
pub use fold::{FoldFunction, reduce, window_reduce};
pub use fourier::{BuildFourier, FFT_EPS, FftLength, FftNorm};
pub(crate) use implicit::{ImplicitRule, with_condition};
pub use implicit::{LinearFunction, LinearMap, LinearOptions, implicit, linear_solve};
pub use index::BuildIndex;
pub use lbfgs::{LbfgsState, lbfgs_begin, lbfgs_update};
pub use linalg::{BuildLinalg, Contracted};
pub use loops::{LoopOptions, MOST_SNAPSHOTS, promoted_dtype, while_};
pub use matrix::{BuildMatrix, NormOrder};
pub use missing::BuildMissing;
pub use nn::BuildNn;
pub use ode::{
    OdeEvent, OdeFunction, OdeGradient, OdeMethod, OdeOptions, OdeSolution, odeint, odeint_until,
    require_reached,
};
pub use ops::{
    Host, Ops, Source, common_backend, fast_path, matmul_fast_path, move_to_common_backend, view_fast_path,
};
pub use optim::BuildOptim;
pub use optimize::{
    LeastSquaresMethod, LeastSquaresOptions, MinimizeMethod, MinimizeOptions, Optimum, RootMethod,
    RootOptions, least_squares, minimize, require_converged, root,
};
pub use order::BuildOrder;
pub use quantile::{BuildQuantile, QuantileMethod};
pub use reduce::BuildReduce;
pub use scan::{ScanOptions, item, scan};
pub use search::{Bins, BuildSearch, Side};
pub use sequence::{BuildSequence, Overlap};
pub use sets::{BuildSets, UniqueOutputs, Uniques};
pub use shape::{BuildShape, Cut, PadMode, Size, Start};
pub use special::BuildSpecial;
pub use window::{BuildWindow, ConvOptions, PerAxis, WindowOptions, WindowPadding};

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Value;
use crate::location::Location;
use crate::op::Op;
use crate::scalar::{Number, Scalar};
use crate::shape::{Axis, TensorType};
use crate::tensor::Tensor;

/// What to do where the values that decide a size are unknown.
pub(crate) const SIZE_HINT: &str =
    "its values decide the size of the result, which a definition fixes before the run; give it as size=n";

/// Applies ops to values of some kind.
pub trait Builder {
    /// The values to which ops are applied.
    type V: Clone + Into<Arg<Self::V>>;

    /// The type of a value.
    fn ty(&self, value: &Self::V) -> TensorType;

    /// Applies an op.
    ///
    /// # Errors
    /// The errors of `infer` for the op on these operands and, if the op runs eagerly, those of the backend.
    fn emit(&mut self, op: Op, operands: &[Self::V]) -> Result<SmallVec<[Self::V; 1]>>;

    /// Applies an op that has one output.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn emit_one(&mut self, op: Op, operands: &[Self::V]) -> Result<Self::V> {
        let mut outputs = self.emit(op, operands)?;
        debug_assert_eq!(outputs.len(), 1);
        Ok(outputs.remove(0))
    }

    /// Applies an op that has one operand and one output to a value converted to a dtype. Where a backend can, an eager
    /// op converts element by element, without a second array.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn emit_converted(&mut self, op: Op, x: &Self::V, dtype: DType) -> Result<Self::V> {
        convert_and_emit(self, op, x, dtype)
    }

    /// Applies a function of several ops, which `body` applies to the operands. A builder that runs ops one by one may
    /// instead compile the function and keep the program; `body` must therefore depend on nothing but the types of the
    /// operands and the options of `function`.
    ///
    /// # Errors
    /// As `body`.
    fn composite_results<const N: usize, const M: usize>(
        &mut self,
        _function: Composite,
        operands: [Self::V; N],
        body: &dyn Fn(&mut Self, &[Self::V; N]) -> Result<[Self::V; M]>,
    ) -> Result<[Self::V; M]>
    where
        Self: Sized,
    {
        body(self, &operands)
    }

    /// As [`Builder::composite_results`], for a function with one result.
    ///
    /// # Errors
    /// As `body`.
    fn composite<const N: usize>(
        &mut self,
        function: Composite,
        operands: [Self::V; N],
        body: &dyn Fn(&mut Self, &[Self::V; N]) -> Result<Self::V>,
    ) -> Result<Self::V>
    where
        Self: Sized,
    {
        let [result] = self.composite_results(function, operands, &|b, operands| Ok([body(b, operands)?]))?;
        Ok(result)
    }

    /// A scalar constant.
    ///
    /// # Errors
    /// A number whose kind does not match the element type.
    fn scalar(&mut self, scalar: Scalar) -> Result<Self::V> {
        self.emit_one(Op::Constant(scalar), &[])
    }

    /// A value broadcast over the vectorized axes of another, if the builder's values have any.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn vectorized_like(&mut self, value: Self::V, _model: &Self::V) -> Result<Self::V> {
        Ok(value)
    }

    /// Whether a value has vectorized axes.
    fn is_vectorized(&self, _value: &Self::V) -> bool {
        false
    }

    /// Requires that the elements of a value can be read now, so that they may decide the size of a result.
    ///
    /// # Errors
    /// A value that is traced or vectorized, and one of a builder that has no values.
    fn require_values(&self, op: &'static str, value: &Self::V) -> Result<()> {
        Err(ErrorKind::NoValues { op, got: self.ty(value), hint: SIZE_HINT }.into())
    }

    /// The positions at which a vector of bools is true, in ascending order; see [`Builder::require_values`].
    ///
    /// # Errors
    /// As [`Builder::require_values`] and [`Builder::emit`].
    fn true_positions(&mut self, op: &'static str, mask: &Self::V) -> Result<Self::V> {
        Err(ErrorKind::NoValues { op, got: self.ty(mask), hint: SIZE_HINT }.into())
    }

    /// Requires that labels are classes on an axis of a type, where their elements are known and can be read without
    /// waiting for a device.
    ///
    /// # Errors
    /// A label out of range.
    fn require_labels(
        &self,
        _op: &'static str,
        _what: &'static str,
        _labels: &Self::V,
        _of: &TensorType,
        _axis: Axis,
    ) -> Result<()> {
        Ok(())
    }

    /// A value with its vectorized axes, if any, in the order of those of the operands.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn order_vectorized_axes(&mut self, value: Self::V, _operands: &[&Arg<Self::V>]) -> Result<Self::V> {
        Ok(value)
    }

    /// The number of a weak value, which takes the dtype of the other operands. `None` for values with their own
    /// dtype and for builders without weak values.
    fn weakness(&self, _value: &Self::V) -> Option<Number> {
        None
    }

    /// A weak value converted to a dtype; another value unchanged.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn in_dtype(&mut self, value: Self::V, _dtype: DType) -> Result<Self::V> {
        Ok(value)
    }

    /// A value with its own dtype: a weak value gets the default dtype of its number.
    fn strong(&self, value: Self::V) -> Self::V {
        value
    }

    /// Sets the location of the nodes that are added from now on, and returns the previous one. Builders that do not
    /// keep locations ignore it.
    fn relocate(&mut self, _location: Option<Location>) -> Option<Location> {
        None
    }

    /// The value of an operand. A plain number becomes a tensor of its default dtype.
    ///
    /// # Errors
    /// An integer that does not fit s32.
    fn operand(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V>
    where
        Self: Sized,
    {
        match x.into() {
            Arg::Value(value) => Ok(self.strong(value)),
            Arg::Number(number) => self.scalar(default_scalar(number.dtype(), number)?),
        }
    }

    /// The number of a weak operand, which is a plain number or a weak value; `None` for other operands.
    fn weak_number(&self, x: &Arg<Self::V>) -> Option<Number>
    where
        Self: Sized,
    {
        match x {
            Arg::Value(value) => self.weakness(value),
            Arg::Number(number) => Some(*number),
        }
    }

    /// A weak operand in the dtype of `ty`; another operand unchanged.
    ///
    /// # Errors
    /// An integer that does not fit; `op` is for the message.
    fn promote_weak(&mut self, op: &'static str, x: Arg<Self::V>, ty: &TensorType) -> Result<Self::V>
    where
        Self: Sized,
    {
        match x {
            Arg::Value(value) => self.in_dtype(value, ty.dtype),
            Arg::Number(number) => self.scalar(exact_scalar(op, ty, number)?),
        }
    }

    /// The type that weak operands take, or `None` if all operands are weak: the merged dtype of the other values,
    /// merged with the kinds of the numbers, in the shape of the first value that is not weak.
    fn weak_type<'a>(&self, operands: impl IntoIterator<Item = &'a Arg<Self::V>>) -> Option<TensorType>
    where
        Self: Sized,
        Self::V: 'a,
    {
        let (mut merged, mut numbers) = (None::<TensorType>, Numbers::new());
        for operand in operands {
            let value = match operand {
                Arg::Number(number) => {
                    numbers.push(*number);
                    continue;
                }
                Arg::Value(value) => value,
            };
            if let Some(number) = self.weakness(value) {
                numbers.push(number);
                continue;
            }
            let ty = self.ty(value);
            match &mut merged {
                Some(merged) => merged.dtype = merged.dtype.merge(ty.dtype),
                None => merged = Some(ty),
            }
        }
        merged.map(|ty| TensorType { dtype: numbers.into_iter().fold(ty.dtype, DType::merge_weak), ..ty })
    }

    /// The values of operands. Weak operands take the element type of the others. If all operands are weak, plain
    /// numbers get their merged type, and weak values keep their own.
    ///
    /// # Errors
    /// An integer that does not fit the integer type of the other operands; `op` is for the message.
    fn weak_all(
        &mut self,
        op: &'static str,
        operands: impl IntoIterator<Item = Arg<Self::V>>,
    ) -> Result<SmallVec<[Self::V; 3]>>
    where
        Self: Sized,
    {
        let operands: SmallVec<[Arg<Self::V>; 3]> = operands.into_iter().collect();
        let mut numbers: Numbers = operands.iter().filter_map(|operand| self.weak_number(operand)).collect();
        let other_type = if numbers.is_empty() { None } else { self.weak_type(&operands) };
        let merged = numbers.drain(..).map(Number::dtype).reduce(DType::merge);
        operands
            .into_iter()
            .map(|operand| match (operand, &other_type, merged) {
                (operand, Some(ty), _) => self.promote_weak(op, operand, ty),
                // If all operands are weak and their type is a float type, an integer becomes a float, even a wide
                // one.
                (Arg::Value(value), None, Some(dtype))
                    if !dtype.is_integer() && self.is_weak_integer(&value) =>
                {
                    self.in_dtype(value, dtype)
                }
                (Arg::Value(value), None, _) => Ok(self.strong(value)),
                (Arg::Number(number), None, merged) => {
                    self.scalar(default_scalar(merged.unwrap_or(number.dtype()), number)?)
                }
            })
            .collect()
    }

    /// Like [`Builder::weak_all`], for two operands.
    ///
    /// # Errors
    /// As [`Builder::weak_all`].
    fn weak_pair(
        &mut self,
        op: &'static str,
        a: impl Into<Arg<Self::V>>,
        b: impl Into<Arg<Self::V>>,
    ) -> Result<(Self::V, Self::V)>
    where
        Self: Sized,
    {
        match (a.into(), b.into()) {
            (Arg::Value(a), Arg::Value(b)) if self.weakness(&a).is_none() && self.weakness(&b).is_none() => {
                Ok((a, b))
            }
            (a, b) => {
                let mut pair = self.weak_all(op, [a, b])?.into_iter();
                Ok((pair.next().expect("two operands"), pair.next().expect("two operands")))
            }
        }
    }

    /// Like [`Builder::weak_pair`], for ops that are defined for integers outside the other operand's dtype. Such an
    /// integer gets the dtype that `wide_dtype` returns for it. So does a weak integer, because it may be any s64.
    ///
    /// # Errors
    /// As [`Builder::operand`], if both are numbers.
    fn weak_pair_widened(
        &mut self,
        op: &'static str,
        a: impl Into<Arg<Self::V>>,
        b: impl Into<Arg<Self::V>>,
        wide_dtype: fn(Number) -> DType,
    ) -> Result<(Self::V, Self::V)>
    where
        Self: Sized,
    {
        let mut widened = |arg: Arg<Self::V>, other: &Arg<Self::V>| {
            let Arg::Value(other) = other else { return Ok(arg) };
            let (other_type, is_strong) = (self.ty(other).dtype.to_number(), self.weakness(other).is_none());
            Ok::<_, Error>(match arg {
                Arg::Number(number) if other_type.lacks(number) => {
                    Arg::Value(self.scalar(Scalar::new(wide_dtype(number), number)?)?)
                }
                Arg::Value(value) if is_strong && other_type.is_integer() && self.is_weak_integer(&value) => {
                    Arg::Value(self.in_dtype(value, wide_dtype(i64::MIN.into()))?)
                }
                arg @ (Arg::Value(_) | Arg::Number(_)) => arg,
            })
        };
        let (a, b) = (a.into(), b.into());
        let a = widened(a, &b)?;
        let b = widened(b, &a)?;
        self.weak_pair(op, a, b)
    }

    /// Whether a value is a weak integer.
    fn is_weak_integer(&self, value: &Self::V) -> bool {
        self.weakness(value).is_some_and(|number| number.dtype().is_integer())
    }
}

/// [`Builder::emit_converted`] by two ops.
fn convert_and_emit<B: Builder + ?Sized>(b: &mut B, op: Op, x: &B::V, dtype: DType) -> Result<B::V> {
    if b.ty(x).dtype == dtype {
        return b.emit_one(op, from_ref(x));
    }
    let x = b.emit_one(Op::AsType { dtype }, from_ref(x))?;
    b.emit_one(op, &[x])
}

/// The numbers of the weak operands.
type Numbers = SmallVec<[Number; 3]>;

/// An operand: a value, or a plain number, which takes the dtype of the other operands.
#[derive(Clone, Debug)]
pub enum Arg<V> {
    /// A value with its own type.
    Value(V),
    /// A number.
    Number(Number),
}

impl From<Value> for Arg<Value> {
    fn from(value: Value) -> Arg<Value> {
        Arg::Value(value)
    }
}

impl From<Tensor> for Arg<Tensor> {
    fn from(tensor: Tensor) -> Arg<Tensor> {
        Arg::Value(tensor)
    }
}

impl<V: Clone> From<&V> for Arg<V> {
    fn from(value: &V) -> Arg<V> {
        Arg::Value(value.clone())
    }
}

impl<V> Arg<V> {
    /// The number, if the operand is one.
    pub fn number(&self) -> Option<Number> {
        match self {
            Arg::Number(number) => Some(*number),
            Arg::Value(_) => None,
        }
    }
}

/// The element of a number next to a tensor of a type. Integers must be exact, because the user did not ask for
/// wrapping. Floats are rounded, and become infinite beyond the type's range.
///
/// # Errors
/// An integer that the type cannot hold, or a number of another kind; `op` is for the message.
pub fn exact_scalar(op: &'static str, ty: &TensorType, number: Number) -> Result<Scalar> {
    if ty.dtype.lacks(number) {
        return Err(ErrorKind::NumberRange { op, number, got: ty.clone() }.into());
    }
    Scalar::new(ty.dtype, number)
}

/// The element of a number if no operand has a dtype of its own.
///
/// # Errors
/// An integer that the dtype cannot hold, or a number of another kind.
pub fn default_scalar(dtype: DType, number: Number) -> Result<Scalar> {
    if dtype.lacks(number) {
        return Err(ErrorKind::IntegerRange { number, dtype }.into());
    }
    Scalar::new(dtype, number)
}

macro_rules! arg_from_number {
    ($($ty:ty),*) => {$(
        impl<V> From<$ty> for Arg<V> {
            fn from(number: $ty) -> Arg<V> { Arg::Number(number.into()) }
        }
    )*};
}
arg_from_number!(bool, i32, i64, u32, u64, usize, f32, f64, Number, num_complex::Complex<f64>);
