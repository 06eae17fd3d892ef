//! One builder for eager calls, tracing, gradient rules, composites and block defaults.
//!
//! [`Builder`] is what the three have in common: values with types, and a way to apply an op. The methods named
//! as the ops are extension traits by family, so that a composite is written once over any builder.
//!
//! - [`Graph`](crate::graph::Graph) adds nodes to a graph; its values are [`Value`]s.
//! - [`Ops`] works on tensors: it adds to the open trace, or runs the op at once on the operands' backend.

mod block;
mod collective;
mod control;
mod create;
mod draft;
mod elementwise;
mod fold;
mod fourier;
mod graph;
mod index;
mod linalg;
mod loops;
mod matrix;
mod ops;
mod order;
mod reduce;
mod shape;
mod window;

use smallvec::SmallVec;

pub use block::{Tag, block};
pub use collective::BuildCollective;
pub use control::{BuildControl, Clause, Thunk, cond, custom_grad, merge_results};
pub use create::BuildCreate;
pub use elementwise::BuildElementwise;
pub use fold::{FoldFunction, reduce, window_reduce};
pub use fourier::{BuildFourier, FFT_EPS, FftLength};
pub use index::BuildIndex;
pub use linalg::BuildLinalg;
pub use loops::while_;
pub use matrix::{BuildMatrix, NormOrder};
pub use ops::{Host, Ops, Source, at_once, bring_together, common_backend, part_at_once, product_at_once};
pub use order::BuildOrder;
pub use reduce::BuildReduce;
pub use shape::{BuildShape, Cut, PadMode, Size, Start};
pub use window::{BuildWindow, ConvOptions, PerAxis, WindowOptions, WindowPadding};

use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::graph::Value;
use crate::location::Location;
use crate::op::Op;
use crate::scalar::{Number, Scalar, wrap};
use crate::shape::TensorType;
use crate::tensor::Tensor;

/// Applies ops to values of some kind.
pub trait Builder {
    /// What ops are applied to.
    type V: Clone + Into<Arg<Self::V>>;

    /// The type of a value.
    fn ty(&self, value: &Self::V) -> TensorType;

    /// Applies an op.
    ///
    /// # Errors
    /// What `infer` has against the op on these operands, and, where it runs at once, what the backend has.
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

    /// A scalar constant.
    ///
    /// # Errors
    /// A number of another kind than the element type.
    fn scalar(&mut self, scalar: Scalar) -> Result<Self::V> {
        self.emit_one(Op::Constant(scalar), &[])
    }

    /// A value repeated over the vectorized axes of another, where the builder's values have any.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn vectorized_like(&mut self, value: Self::V, _model: &Self::V) -> Result<Self::V> {
        Ok(value)
    }

    /// A number of the kind of a value that takes on the dtype of what it meets, where the builder's values do.
    fn weakness(&self, _value: &Self::V) -> Option<Number> {
        None
    }

    /// A value that takes on the dtype of what it meets, in a dtype.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn in_dtype(&mut self, value: Self::V, _dtype: DType) -> Result<Self::V> {
        Ok(value)
    }

    /// A value with the dtype that it has alone.
    fn settled(&self, value: Self::V) -> Self::V {
        value
    }

    /// Sets the location that what is made from now on gets, and returns the one before. Builders that do not
    /// keep locations ignore it.
    fn relocate(&mut self, _location: Option<Location>) -> Option<Location> {
        None
    }

    /// The value of an operand as it is written; a plain number is a tensor of its own element type.
    ///
    /// # Errors
    /// An integer that does not fit s32.
    fn operand(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V>
    where
        Self: Sized,
    {
        match x.into() {
            Arg::Value(value) => Ok(self.settled(value)),
            Arg::Number(number) => self.scalar(exact(number.dtype(), number)?),
        }
    }

    /// An operand that gives way, in the dtype that it gives way to; another stays as it is.
    ///
    /// # Errors
    /// An integer that does not fit.
    fn give_way(&mut self, x: Arg<Self::V>, dtype: DType) -> Result<Self::V>
    where
        Self: Sized,
    {
        match x {
            Arg::Value(value) if self.weakness(&value).is_some() => self.in_dtype(value, dtype),
            Arg::Value(value) => Ok(value),
            Arg::Number(number) => self.scalar(exact(dtype, number)?),
        }
    }

    /// A number of the kind of an operand that gives way: the number itself, where it is one.
    fn gives_way(&self, x: &Arg<Self::V>) -> Option<Number> {
        match x {
            Arg::Value(value) => self.weakness(value),
            Arg::Number(number) => Some(*number),
        }
    }

    /// The values of two operands of which one that gives way, a plain number or a weak value, takes on the element
    /// type of the other.
    ///
    /// # Errors
    /// An integer that fits no integer type.
    fn weak_pair(&mut self, a: Arg<Self::V>, b: Arg<Self::V>) -> Result<(Self::V, Self::V)>
    where
        Self: Sized,
    {
        let beside = |b: &Self, value: &Self::V, number: Number| b.ty(value).dtype.merge_weak(number);
        match (a, b) {
            (Arg::Value(a), Arg::Value(b)) => match (self.weakness(&a), self.weakness(&b)) {
                (None, Some(number)) => {
                    let b = self.in_dtype(b, beside(self, &a, number))?;
                    Ok((a, b))
                }
                (Some(number), None) => {
                    let a = self.in_dtype(a, beside(self, &b, number))?;
                    Ok((a, b))
                }
                (Some(_), Some(_)) | (None, None) => Ok((self.settled(a), self.settled(b))),
            },
            (Arg::Value(a), Arg::Number(number)) => {
                let b = self.scalar(exact(beside(self, &a, number), number)?)?;
                Ok((self.settled(a), b))
            }
            (Arg::Number(number), Arg::Value(b)) => {
                let a = self.scalar(exact(beside(self, &b, number), number)?)?;
                Ok((a, self.settled(b)))
            }
            (a @ Arg::Number(_), b @ Arg::Number(_)) => Ok((self.operand(a)?, self.operand(b)?)),
        }
    }
}

/// An operand as it is written: a value, or a plain number, which gives way to the types around it.
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

/// An element that is the number itself: nobody asked for the integer to wrap.
fn exact(dtype: DType, number: Number) -> Result<Scalar> {
    if let Number::Int(value) = number
        && dtype.is_integer()
        && wrap(dtype, value) != value
    {
        return Err(ErrorKind::IntegerRange { value, dtype }.into());
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
arg_from_number!(i32, i64, u32, u64, usize, f32, f64, Number, num_complex::Complex<f64>);
