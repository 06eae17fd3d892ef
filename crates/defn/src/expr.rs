//! Expressions: what a function works on while it is traced.

use std::ops;

use defn_core as core;
use defn_core::builder::{Arg, BuildCreate, BuildElementwise, Ops};
use defn_core::{AxisRef, Location, Number, Result, Shape, TensorType, trace};

use crate::Tensor;
use crate::ops::eager;

/// A value of a function that is being traced. [`jit`](crate::jit) calls the function with expressions.
///
/// Operators and methods on expressions return expressions, not a `Result`. An error, such as a shape that does not
/// fit, is kept with its line of the program, and comes out of [`Jit::call`](crate::Jit::call). Everything that depends
/// on it is void until then.
///
/// ```
/// use defn::prelude::*;
///
/// let line = jit(|x: Expr| 2 * &x + 1);
/// assert_eq!(line.call(Tensor::scalar(3)?)?.item::<i32>()?, 7);
/// let wrong = jit(|x: Expr| x.reshape(&[2]) + 1);
/// assert!(wrong.call(Tensor::scalar(3)?).unwrap_err().to_string().starts_with("reshape: "));
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "an expression computes nothing unless the function returns what depends on it"]
pub struct Expr(pub(crate) Result<core::Tensor>);

impl Expr {
    /// The dtype and the shape, or `None` after an error.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let f = jit(|x: Expr| {
    ///     assert_eq!(x.ty().unwrap().to_string(), "f32[3]");
    ///     assert!(x.reshape(&[2]).ty().is_none());
    ///     x
    /// });
    /// assert!(f.call(Tensor::full(&[3], DType::F32, 0)?).is_err());
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn ty(&self) -> Option<&TensorType> {
        self.0.as_ref().ok().map(core::Tensor::ty)
    }

    /// The shape, or `None` after an error.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let count = jit(|x: Expr| {
    ///     let size = x.shape().map_or(0, |shape| shape.size());
    ///     x.sum(Axes::All, false) / size as i32
    /// });
    /// let x = Tensor::from_slice(&[1f32, 2.0, 6.0], &[3])?;
    /// assert_eq!(count.call(x)?.item::<f32>()?, 3.0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn shape(&self) -> Option<&Shape> {
        self.ty().map(|ty| &ty.shape)
    }

    /// The size of an axis. After an error it is 1, so that a program may go on to where the error comes out.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let mean = jit(|x: Expr| x.sum(-1, false) / x.axis_size(-1) as i32);
    /// assert_eq!(mean.call(tensor![[1.0, 3.0], [2.0, 6.0]]?)?.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// An axis that does not exist (`Axis`): the error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn axis_size(&self, axis: impl Into<AxisRef>) -> usize {
        let axis = axis.into();
        let size = |tensor: &core::Tensor| {
            let shape = &tensor.ty().shape;
            shape.resolve("axis_size", &axis).map(|axis| shape[axis])
        };
        self.record(Location::caller(), |_, tensor| size(tensor)).unwrap_or(1)
    }

    /// Applies ops to the tensor behind the expression.
    #[track_caller]
    pub(crate) fn apply(&self, apply: impl FnOnce(&mut Ops, &core::Tensor) -> Result<core::Tensor>) -> Expr {
        Expr(self.record(Location::caller(), apply))
    }

    /// What ops give for the tensor behind the expression.
    pub(crate) fn record<R>(
        &self,
        location: Location,
        apply: impl FnOnce(&mut Ops, &core::Tensor) -> Result<R>,
    ) -> Result<R> {
        self.0.as_ref().map_err(Clone::clone).and_then(|tensor| record(location, |ops| apply(ops, tensor)))
    }

    /// Two expressions of a pair of tensors, or of one error.
    pub(crate) fn both(pair: Result<(core::Tensor, core::Tensor)>) -> (Expr, Expr) {
        let (a, b) = both(pair);
        (Expr(a), Expr(b))
    }

    /// The expression that `make` gives.
    pub(crate) fn make(location: Location, make: impl FnOnce(&mut Ops) -> Result<core::Tensor>) -> Expr {
        Expr(record(location, make))
    }
}

/// Both parts of a pair, or its error twice.
pub(crate) fn both<A, B>(pair: Result<(A, B)>) -> (Result<A>, Result<B>) {
    match pair {
        Ok((a, b)) => (Ok(a), Ok(b)),
        Err(error) => (Err(error.clone()), Err(error)),
    }
}

/// Applies ops; an error stays in the open trace too, where there is one.
pub(crate) fn record<R>(location: Location, apply: impl FnOnce(&mut Ops) -> Result<R>) -> Result<R> {
    eager(location, apply).inspect_err(|error| {
        if let Some(trace) = trace::current() {
            trace.poison(error.clone());
        }
    })
}

/// The other operand of an expression: an expression, a tensor, or a plain number, which takes the dtype of the tensor
/// that it meets.
///
/// Methods take `impl Into<Operand>`, so it is seldom named.
///
/// ```
/// use defn::prelude::*;
/// use defn::Operand;
///
/// let ten = Tensor::scalar(10)?;
/// let f = jit(|x: Expr| {
///     let operands = [Operand::from(&x), Operand::from(&ten), Operand::from(5)];
///     operands.into_iter().fold(x.zeros_like(), |sum, operand| sum.add(operand))
/// });
/// assert_eq!(f.call(Tensor::scalar(1)?)?.item::<i32>()?, 16);
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Operand(pub(crate) Result<Arg<core::Tensor>>);

impl From<Expr> for Operand {
    fn from(expr: Expr) -> Operand {
        Operand(expr.0.map(Arg::Value))
    }
}

impl From<&Expr> for Operand {
    fn from(expr: &Expr) -> Operand {
        expr.clone().into()
    }
}

impl From<Tensor> for Operand {
    fn from(tensor: Tensor) -> Operand {
        Operand(Ok(Arg::Value(tensor.0)))
    }
}

impl From<&Tensor> for Operand {
    fn from(tensor: &Tensor) -> Operand {
        tensor.clone().into()
    }
}

macro_rules! operand_from_number {
    ($($ty:ty),*) => {$(
        impl From<$ty> for Operand {
            fn from(number: $ty) -> Operand { Operand(Ok(Arg::Number(number.into()))) }
        }
    )*};
}
operand_from_number!(i32, i64, f32, f64, Number);

/// A tensor as a constant of the function that is being traced: it is not copied into the program.
impl From<Tensor> for Expr {
    fn from(tensor: Tensor) -> Expr {
        Expr(Ok(tensor.0))
    }
}

impl From<&Tensor> for Expr {
    fn from(tensor: &Tensor) -> Expr {
        tensor.clone().into()
    }
}

macro_rules! scalar_from_number {
    ($($(#[$doc:meta])* $ty:ty;)*) => {$(
        $(#[$doc])*
        impl From<$ty> for Expr {
            #[track_caller]
            fn from(number: $ty) -> Expr {
                let number = Number::from(number);
                Expr::make(Location::caller(), |ops| ops.constant(number.dtype(), number))
            }
        }
    )*};
}
scalar_from_number! {
    /// A scalar, as the state of a loop begins with: s32 from an integer, f32 from a float. An operand that meets a tensor
    /// should stay a plain number, which takes the tensor's dtype.
    ///
    /// ```
    /// use defn::prelude::*;
    ///
    /// let twice = jit(|x: Expr| for_((x, Expr::from(0)), 0..4, |(x, count), _| (2 * x, count + 1)));
    /// let (x, count) = twice.call(Tensor::scalar(0.5)?)?;
    /// assert_eq!((x.item::<f32>()?, count.item::<i32>()?), (8.0, 4));
    /// # Ok::<(), defn::Error>(())
    /// ```
    i32;
    /// As of an integer.
    f64;
}

/// Only two of the number types have operators, so that the type of a literal is never ambiguous; the methods take
/// more.
///
/// `$left op $right` for each pair of kinds of operand, as `$build` of the builder.
macro_rules! operator {
    ($trait:ident $method:ident $build:ident: $($left:ty, $right:ty;)*) => {$(
        impl ops::$trait<$right> for $left {
            type Output = Expr;

            #[track_caller]
            fn $method(self, right: $right) -> Expr {
                let (left, right) = (Operand::from(self), Operand::from(right));
                match (left.0, right.0) {
                    (Ok(left), Ok(right)) => Expr::make(Location::caller(), |ops| ops.$build(left, right)),
                    (Err(error), _) | (Ok(_), Err(error)) => Expr(Err(error)),
                }
            }
        }
    )*};
}

macro_rules! operators {
    ($($trait:ident $method:ident $build:ident;)*) => {$(
        operator! { $trait $method $build:
            Expr, Expr; Expr, &Expr; &Expr, Expr; &Expr, &Expr;
            Expr, &Tensor; &Expr, &Tensor; &Tensor, Expr; &Tensor, &Expr;
            Expr, Tensor; &Expr, Tensor; Tensor, Expr; Tensor, &Expr;
            Expr, i32; &Expr, i32; i32, Expr; i32, &Expr;
            Expr, f64; &Expr, f64; f64, Expr; f64, &Expr;
        }
    )*};
}
operators! {
    Add add add;
    Sub sub subtract;
    Mul mul multiply;
    Div div divide;
    Rem rem remainder;
    BitAnd bitand bitwise_and;
    BitOr bitor bitwise_or;
    BitXor bitxor bitwise_xor;
    Shl shl left_shift;
    Shr shr right_shift;
}

impl ops::Neg for Expr {
    type Output = Expr;

    #[track_caller]
    fn neg(self) -> Expr {
        self.negate()
    }
}

impl ops::Neg for &Expr {
    type Output = Expr;

    #[track_caller]
    fn neg(self) -> Expr {
        self.negate()
    }
}
