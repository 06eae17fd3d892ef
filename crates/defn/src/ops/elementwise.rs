//! Operations on each element.

use std::ops;

use defn_core as core;
use defn_core::builder::{Arg, BuildControl, BuildElementwise};
use defn_core::{DType, Location, Result};

use super::{eager, pair};
use crate::expr::{Operand, record};
use crate::{Expr, Tensor};

/// The unary ops of the catalogue.
macro_rules! unary_of_rows {
    ($($(#[$family_doc:meta])* $family:ident($leaf:ident) {
        $($(#[$doc:meta])* $op:ident $constant:ident $name:ident: $domain:ident => $rule:ident, $cost:ident;)*
    })*) => {
        unary! { $($(
            $(#[$doc])*
            #[doc = ""]
            #[doc = unary_types!($name $domain $rule)]
            #[doc = row!(gradient $name)]
            fn $name;
            errors unary_errors!($name $domain);
            example { row $name }
        )*)* }
    };
}

/// The binary ops of the catalogue.
macro_rules! binary_of_rows {
    ($($(#[$family_doc:meta])* $family:ident $(($leaf:ident))? {
        $($(#[$doc:meta])* $op:ident $constant:ident $name:ident: $domain:ident => $rule:ident,
            $cost:ident, $order:ident $(, refuses $refused:ident)?;)*
    })*) => {
        binary! { $($(
            $(#[$doc])*
            #[doc = ""]
            #[doc = binary_types!($name $domain $rule)]
            #[doc = row!(gradient $name)]
            fn $name;
            errors binary_errors!($name $domain $($refused)?);
            example { row $name }
        )*)* }
    };
}

core::unary_rows!(unary_of_rows);
core::binary_rows!(binary_of_rows);

unary! {
    /// `x` as a constant: no gradient flows through it.
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any; unchanged.
    /// - Gradient: zero.
    fn stop_grad;
    errors no_own_errors!();
    example { (x = f32[2] "1.0, 2.0") x.stop_grad() == f32[2] "1.0, 2.0" }

    /// The logarithm to base 2.
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any; integers and bools become f32.
    /// - Gradient: `g / (x * log(2))`.
    fn log2;
    errors no_own_errors!();
    example { (x = f32[2] "8.0, 0.5") x.log2() == f32[2] "3.0, -1.0" }

    /// The logarithm to base 10.
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any; integers and bools become f32.
    /// - Gradient: `g / (x * log(10))`.
    fn log10;
    errors no_own_errors!();
    example { (x = f32[2] "100.0, 1.0") x.log10() == f32[2] "2.0, 0.0" }
}

methods! {
    /// The elements with numbers in place of NaN and of infinities. Without a number for an infinity it becomes the
    /// greatest or least finite number of the dtype. Each part of a complex number is replaced.
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any; unchanged. Integers and bools stay as they are.
    /// - Gradient: `g` where the element stays, zero where it is replaced.
    fn nan_to_num(nan: f64, posinf: Option<f64>, neginf: Option<f64>)
        |ops, x| ops.nan_to_num(x, nan, posinf, neginf);
    errors no_own_errors!();
    example {
        (x = f32[3] "f32::NAN, f32::INFINITY, 2.0") x.nan_to_num("0.0, None, None") == f32[3] "0.0, f32::MAX, 2.0"
    }
}

with_operands! {
    /// Whether elements are equal within `atol + rtol * |other|`. Equal infinities count as equal, and with `equal_nan`
    /// NaNs do, too.
    ///
    /// - Shape: both operands broadcast together; axis names merge.
    /// - Dtypes: any; the result is bool.
    /// - Gradient: zero.
    fn isclose(other; equal_nan: bool, rtol: f64, atol: f64)
        |ops, x| ops.isclose(x, other, equal_nan, rtol, atol);
    errors "Shapes that do not broadcast (`Shape`), and axis names that differ (`Axis`).";
    example { (x = f32[2] "1.0, 3.0") x.isclose("1.0, false, 0.0, 1.5") == bool[2] "true, false" }

    /// Whether all elements are equal within `atol + rtol * |other|`. Equal infinities count as equal, and with
    /// `equal_nan` NaNs do, too.
    ///
    /// - Shape: both operands broadcast together; the result is a scalar.
    /// - Dtypes: any; the result is bool.
    /// - Gradient: zero.
    fn all_close(other; equal_nan: bool, rtol: f64, atol: f64)
        |ops, x| ops.all_close(x, other, equal_nan, rtol, atol);
    errors "Shapes that do not broadcast (`Shape`), and axis names that differ (`Axis`).";
    example { (x = f32[2] "1.0, 2.0") x.all_close("1.0, false, 0.0, 1.5") == bool "true" }
}

binary! {
    /// `a / b` rounded down; [`quotient`](Self::quotient) truncates instead.
    ///
    /// - Shape: both operands broadcast together; axis names merge.
    /// - Dtypes: any but complex; promoted. A plain number takes the dtype of the tensor that it meets.
    /// - Gradient: zero for floats; none for integers, it is refused.
    fn floor_divide;
    errors binary_errors!(floor_divide RealNumber ZeroDivisor);
    example { (x = s32[2] "7, -7") x.floor_divide("2") == s32[2] "3, -4" }

    /// The remainder of division rounded down; its sign is that of `b`. [`remainder`](Self::remainder) has the sign
    /// of `a`.
    ///
    /// - Shape: both operands broadcast together; axis names merge.
    /// - Dtypes: any but complex; promoted. A plain number takes the dtype of the tensor that it meets.
    /// - Gradient: `g` and `-g * floor(a / b)`.
    fn floor_modulo;
    errors binary_errors!(floor_modulo RealNumber ZeroDivisor);
    example { (x = s32[2] "7, -7") x.floor_modulo("4") == s32[2] "3, 1" }

    /// The magnitude of `a` with the sign bit of `b`, also that of -0.0 and of NaN.
    ///
    /// - Shape: both operands broadcast together; axis names merge.
    /// - Dtypes: any but complex; promoted, integers and bools to f32. A plain number takes the dtype of the tensor that
    ///   it meets.
    /// - Gradient: `g`, or `-g` where the sign of `a` changes; zero to `b`.
    fn copysign;
    errors binary_errors!(copysign Real);
    example { (x = f32[2] "1.5, -2.0") x.copysign("-0.0") == f32[2] "-1.5, -2.0" }

    /// `sqrt(a^2 + b^2)` without overflow in between; infinite if an operand is, even beside NaN.
    ///
    /// - Shape: both operands broadcast together; axis names merge.
    /// - Dtypes: any but complex; promoted, integers and bools to f32. A plain number takes the dtype of the tensor that
    ///   it meets.
    /// - Gradient: `g * a / y` and `g * b / y`; zero where both operands are 0, and where one is infinite.
    fn hypot;
    errors binary_errors!(hypot Real);
    example { (x = f32[2] "3.0, 3e30") x.hypot("0.0") == f32[2] "3.0, 3e30" }

    /// `log(exp(a) + exp(b))` without overflow in between.
    ///
    /// - Shape: both operands broadcast together; axis names merge.
    /// - Dtypes: any but complex; promoted, integers and bools to f32. A plain number takes the dtype of the tensor that
    ///   it meets.
    /// - Gradient: `g` times the softmax of both operands.
    fn logaddexp;
    errors binary_errors!(logaddexp Real);
    example { (x = f32[2] "1000.0, f32::NEG_INFINITY") x.logaddexp("f32::NEG_INFINITY") == f32[2] "1000.0, f32::NEG_INFINITY" }

    /// 0 where `a` is negative, 1 where it is positive, `b` where it is 0, and NaN where it is NaN.
    ///
    /// - Shape: both operands broadcast together; axis names merge.
    /// - Dtypes: any but complex; promoted, integers and bools to f32. A plain number takes the dtype of the tensor that
    ///   it meets.
    /// - Gradient: zero to `a`, `g` to `b` where `a` is 0.
    fn heaviside;
    errors binary_errors!(heaviside Real);
    example { (x = f32[3] "-2.0, 0.0, 3.0") x.heaviside("0.5") == f32[3] "0.0, 0.5, 1.0" }

    /// The next float from `a` towards `b`; `b` where both are equal, and NaN where one is NaN.
    ///
    /// - Shape: both operands broadcast together; axis names merge.
    /// - Dtypes: any but complex; promoted, integers and bools to f32. A plain number takes the dtype of the tensor that
    ///   it meets.
    /// - Gradient: zero.
    fn nextafter;
    errors binary_errors!(nextafter Real);
    example { (x = f32[1] "1.0") x.nextafter("2.0") == f32[1] "1.0 + f32::EPSILON" }
}

impl Expr {
    /// [`floor_divide`](Self::floor_divide) and [`floor_modulo`](Self::floor_modulo): Python's `divmod`.
    ///
    /// - Shape: both operands broadcast together; axis names merge.
    /// - Dtypes: any but complex, but not two bools; promoted. A plain number takes the dtype of the tensor that it meets.
    /// - Gradient: those of both functions.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let parts = jit(|x: Expr| x.divmod(4));
    /// let (quotient, remainder) = parts.call(Tensor::from_slice(&[7, -7], &[2])?)?;
    /// assert_eq!(quotient.to_vec::<i32>()?, [1, -2]);
    /// assert_eq!(remainder.to_vec::<i32>()?, [3, 1]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast (`Shape`), axis names that differ (`Axis`), a plain integer that the dtype does not
    /// hold (`Range`), complex operands and two bools (`DType`). The error comes out of
    /// [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn divmod(&self, other: impl Into<Operand>) -> (Expr, Expr) {
        let location = Location::caller();
        Expr::both(pair(self, other.into()).and_then(|(a, b)| record(location, |ops| ops.divmod(a, b))))
    }

    /// The elements of `on_true` where this is not zero, else those of `on_false`.
    ///
    /// - Shape: all three broadcast together; axis names merge.
    /// - Dtypes: any for the predicate; the other two are promoted, and a plain number takes the other one's dtype.
    /// - Gradient: `g` to the operand that is chosen, zero to the other and to the predicate.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let relu = jit(|x: Expr| x.greater(0.0).select(&x, 0.0));
    /// let x = Tensor::from_slice(&[-1f32, 2.0], &[2])?;
    /// assert_eq!(relu.call(x)?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast (`Shape`), and axis names that differ (`Axis`). The error comes out of
    /// [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn select(&self, on_true: impl Into<Operand>, on_false: impl Into<Operand>) -> Expr {
        let location = Location::caller();
        let operands = (|| Ok((self.0.clone()?, on_true.into().0?, on_false.into().0?)))();
        match operands {
            Ok((pred, a, b)) => Expr::make(location, |ops| ops.select(pred, a, b)),
            Err(error) => Expr(Err(error)),
        }
    }

    /// The elements limited to the range from `low` to `high`. NaN stays NaN; if `low > high` the result is `high`.
    ///
    /// - Shape: unchanged; axis names are kept. The bounds are scalars.
    /// - Dtypes: any but complex; all three are promoted. A plain number takes the dtype of the tensor, or the limit of
    ///   an integer dtype that does not hold it.
    /// - Gradient: `g` within the bounds, inclusive; a bound gets the sum of `g` over the elements beyond it.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let limit = jit(|x: Expr| x.clip(2, 6));
    /// let x = Tensor::from_slice(&[1, 5, 9], &[3])?;
    /// assert_eq!(limit.call(x)?.to_vec::<i32>()?, [2, 5, 6]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Bounds that are not scalars (`Shape`), and complex elements (`DType`). The error comes out of
    /// [`Jit::call`](crate::Jit::call).
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
    /// [`floor_divide`](Self::floor_divide) and [`floor_modulo`](Self::floor_modulo): Python's `divmod`.
    ///
    /// - Shape: both operands broadcast together; axis names merge.
    /// - Dtypes: any but complex, but not two bools; promoted. A plain number takes the dtype of the tensor that it meets.
    /// - Gradient: those of both functions.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let (quotient, remainder) = Tensor::from_slice(&[7, -7], &[2])?.divmod(4)?;
    /// assert_eq!(quotient.to_vec::<i32>()?, [1, -2]);
    /// assert_eq!(remainder.to_vec::<i32>()?, [3, 1]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast (`Shape`), axis names that differ (`Axis`), a plain integer that the dtype does not
    /// hold (`Range`), complex operands and two bools (`DType`), and an integer divisor of 0 (`Division`); a compiled
    /// function computes the quotient -1 and the remainder of the operands instead.
    #[track_caller]
    pub fn divmod(&self, other: impl Into<Arg<core::Tensor>>) -> Result<(Tensor, Tensor)> {
        let (quotient, remainder) = eager(Location::caller(), |ops| ops.divmod(&self.0, other))?;
        Ok((Tensor(quotient), Tensor(remainder)))
    }

    /// The elements of `on_true` where this is not zero, else those of `on_false`.
    ///
    /// - Shape: all three broadcast together; axis names merge.
    /// - Dtypes: any for the predicate; the other two are promoted, and a plain number takes the other one's dtype.
    /// - Gradient: `g` to the operand that is chosen, zero to the other and to the predicate.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let x = Tensor::from_slice(&[1, 2], &[2])?;
    /// let chosen = Tensor::from_slice(&[true, false], &[2])?.select(&x, 10)?;
    /// assert_eq!(chosen.to_vec::<i32>()?, [1, 10]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast (`Shape`), and axis names that differ (`Axis`).
    #[track_caller]
    pub fn select(
        &self,
        on_true: impl Into<Arg<core::Tensor>>,
        on_false: impl Into<Arg<core::Tensor>>,
    ) -> Result<Tensor> {
        eager(Location::caller(), |ops| ops.select(&self.0, on_true, on_false)).map(Tensor)
    }

    /// The elements limited to the range from `low` to `high`. NaN stays NaN; if `low > high` the result is `high`.
    ///
    /// - Shape: unchanged; axis names are kept. The bounds are scalars.
    /// - Dtypes: any but complex; all three are promoted. A plain number takes the dtype of the tensor, or the limit of
    ///   an integer dtype that does not hold it.
    /// - Gradient: `g` within the bounds, inclusive; a bound gets the sum of `g` over the elements beyond it.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let x = Tensor::from_slice(&[1, 5, 9], &[3])?;
    /// assert_eq!(x.clip(2, 6)?.to_vec::<i32>()?, [2, 5, 6]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Bounds that are not scalars (`Shape`), and complex elements (`DType`).
    #[track_caller]
    pub fn clip(
        &self,
        low: impl Into<Arg<core::Tensor>>,
        high: impl Into<Arg<core::Tensor>>,
    ) -> Result<Tensor> {
        eager(Location::caller(), |ops| ops.clip(&self.0, low, high)).map(Tensor)
    }
}

/// Operators run at once: with tensors and numbers on the right, and with the numbers of literals on the left.
macro_rules! tensor_operators {
    ($($trait:ident $method:ident $build:ident;)*) => {$(
        tensor_operators! { @right $trait $method $build: &Tensor, Tensor }
        tensor_operators! { @left $trait $method $build: i32 &Tensor, i32 Tensor, f64 &Tensor, f64 Tensor }
    )*};
    (@right $trait:ident $method:ident $build:ident: $($left:ty),*) => {$(
        impl<R: Into<Arg<core::Tensor>>> ops::$trait<R> for $left {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $method(self, right: R) -> Result<Tensor> {
                // A call by the method's name alone would be one of this operator.
                Tensor::$build(&self, right)
            }
        }
    )*};
    (@left $trait:ident $method:ident $build:ident: $($left:ident $right:ty),*) => {$(
        impl ops::$trait<$right> for $left {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $method(self, right: $right) -> Result<Tensor> {
                eager(Location::caller(), |ops| ops.$build(self, &right.0)).map(Tensor)
            }
        }
    )*};
}
tensor_operators! {
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

macro_rules! tensor_negation {
    ($($ty:ty),*) => {$(
        impl ops::Neg for $ty {
            type Output = Result<Tensor>;

            #[track_caller]
            fn neg(self) -> Result<Tensor> {
                self.negate()
            }
        }
    )*};
}
tensor_negation!(&Tensor, Tensor);

defn_core::elementwise_functions!(shared);
