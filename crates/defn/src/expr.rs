//! Expressions: what a function works on while it is traced.

use std::ops;

use defn_core as core;
use defn_core::builder::{Arg, BuildElementwise, Ops};
use defn_core::{Location, Number, Result, Shape, TensorType, trace};

use crate::Tensor;
use crate::ops::eager;

/// A value of a function that is being traced. [`jit`](crate::jit) calls the function with expressions.
///
/// Operators and methods on expressions give expressions. What is wrong with them, a shape that does not fit
/// say, is kept with the line of the program where it was written, and comes out when the compiled function
/// is called; everything that depends on it is void until then.
#[derive(Clone, Debug)]
pub struct Expr(pub(crate) Result<core::Tensor>);

impl Expr {
    /// The element type and the shape, or nothing after an error.
    pub fn ty(&self) -> Option<&TensorType> {
        self.0.as_ref().ok().map(core::Tensor::ty)
    }

    /// The shape, or nothing after an error.
    pub fn shape(&self) -> Option<&Shape> {
        self.ty().map(|ty| &ty.shape)
    }

    /// Applies ops to the tensor behind the expression.
    #[track_caller]
    pub(crate) fn apply(&self, apply: impl FnOnce(&mut Ops, &core::Tensor) -> Result<core::Tensor>) -> Expr {
        let location = Location::caller();
        match &self.0 {
            Ok(tensor) => Expr::make(location, |ops| apply(ops, tensor)),
            Err(error) => Expr(Err(error.clone())),
        }
    }

    /// The expression that `make` gives.
    pub(crate) fn make(location: Location, make: impl FnOnce(&mut Ops) -> Result<core::Tensor>) -> Expr {
        Expr(record(location, make))
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

/// What may stand beside an expression: an expression, a tensor, or a plain number, which gives way to the
/// element type of the other side.
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

/// Of the number types only two have operators, so that a literal's type is never in doubt; the methods take more.
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
