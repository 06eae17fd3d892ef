//! Operations on each element.

use std::ops;

use defn_core as core;
use defn_core::builder::{Arg, BuildControl, BuildElementwise};
use defn_core::{DType, Location, Result};

use super::{eager, pair};
use crate::expr::Operand;
use crate::{Expr, Tensor};

/// The unary ops of the catalogue.
macro_rules! unary_of_rows {
    ($($(#[$family_doc:meta])* $family:ident($leaf:ident) {
        $($(#[$doc:meta])* $op:ident $constant:ident $name:ident: $domain:ident => $rule:ident, $cost:ident;)*
    })*) => {
        unary! { $($($(#[$doc])* fn $name;)*)* }
    };
}

/// The binary ops of the catalogue.
macro_rules! binary_of_rows {
    ($($(#[$family_doc:meta])* $family:ident $(($leaf:ident))? {
        $($(#[$doc:meta])* $op:ident $constant:ident $name:ident: $domain:ident => $rule:ident,
            $cost:ident, $order:ident $(, refuses $refused:ident)?;)*
    })*) => {
        binary! { $($($(#[$doc])* fn $name;)*)* }
    };
}

core::unary_rows!(unary_of_rows);
core::binary_rows!(binary_of_rows);

unary! {
    /// 1 where `x` is zero.
    fn logical_not;
    /// The angle of a complex number.
    fn phase;
    /// `x`, through which no gradient flows.
    fn stop_grad;
}

binary! {
    /// `a / b` rounded down.
    fn floor_divide;
    /// What division rounded down leaves, with the sign of `b`.
    fn floor_modulo;
}

methods! {
    /// The elements as another type.
    fn as_type(dtype: DType) |ops, x| ops.as_type(x, dtype);
    /// The bits of each element read as another type of the same width.
    fn bitcast(dtype: DType) |ops, x| ops.bitcast(x, dtype);
}

impl Expr {
    /// `on_true` where this is not zero, else `on_false`.
    #[track_caller]
    pub fn select(&self, on_true: impl Into<Operand>, on_false: impl Into<Operand>) -> Expr {
        let location = Location::caller();
        let operands = (|| Ok((self.0.clone()?, on_true.into().0?, on_false.into().0?)))();
        match operands {
            Ok((pred, a, b)) => Expr::make(location, |ops| ops.select(pred, a, b)),
            Err(error) => Expr(Err(error)),
        }
    }

    /// The element moved into bounds, which are scalars.
    #[track_caller]
    pub fn clip(&self, low: impl Into<Operand>, high: impl Into<Operand>) -> Expr {
        let location = Location::caller();
        let operands = (|| Ok((self.0.clone()?, low.into().0?, high.into().0?)))();
        match operands {
            Ok((x, low, high)) => Expr::make(location, |ops| ops.clip(x, low, high)),
            Err(error) => Expr(Err(error)),
        }
    }
}

impl Tensor {
    /// `on_true` where this is not zero, else `on_false`.
    ///
    /// # Errors
    /// Shapes that do not fit.
    #[track_caller]
    pub fn select(
        &self,
        on_true: impl Into<Arg<core::Tensor>>,
        on_false: impl Into<Arg<core::Tensor>>,
    ) -> Result<Tensor> {
        eager(Location::caller(), |ops| ops.select(&self.0, on_true, on_false)).map(Tensor)
    }

    /// The elements moved into bounds, which are scalars.
    ///
    /// # Errors
    /// Bounds that are no scalars, and complex elements.
    #[track_caller]
    pub fn clip(
        &self,
        low: impl Into<Arg<core::Tensor>>,
        high: impl Into<Arg<core::Tensor>>,
    ) -> Result<Tensor> {
        eager(Location::caller(), |ops| ops.clip(&self.0, low, high)).map(Tensor)
    }
}

macro_rules! tensor_operator {
    ($($trait:ident $method:ident $build:ident;)*) => {$(
        impl<R: Into<Arg<core::Tensor>>> ops::$trait<R> for &Tensor {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $method(self, right: R) -> Result<Tensor> {
                self.$build(right)
            }
        }
    )*};
}
tensor_operator! {
    Add add add;
    Sub sub subtract;
    Mul mul multiply;
    Div div divide;
    Rem rem remainder;
}

impl ops::Neg for &Tensor {
    type Output = Result<Tensor>;

    #[track_caller]
    fn neg(self) -> Result<Tensor> {
        self.negate()
    }
}
