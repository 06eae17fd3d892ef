//! Special functions of real numbers.

use defn_core as core;
use defn_core::builder::{Arg, BuildSpecial};
use defn_core::{Location, Result};

use super::{eager, pair};
use crate::expr::Operand;
use crate::{Expr, Tensor};

core::special_functions!(shared);

binary! {
    /// `log(|beta(a, b)|)`, that is `lgamma(a) + lgamma(b) - lgamma(a + b)` without its cancellation for large
    /// operands.
    ///
    /// - Shape: both operands broadcast together; axis names merge.
    /// - Dtypes: any but complex; promoted, integers and bools to f32. A plain number takes the dtype of the tensor
    ///   that
    ///   it meets.
    /// - Gradient: `g` times `digamma(a) - digamma(a + b)`, and times `digamma(b) - digamma(a + b)`.
    fn betaln;
    errors binary_errors!(betaln Real);
    example { (x = f32[2] "1.0, 2.0") x.betaln("1.0") == f32[2] "0.0, -std::f32::consts::LN_2" }

    /// The regularized lower incomplete gamma function: the integral of `t^(a - 1) exp(-t) / gamma(a)` from 0 to `b`.
    /// NaN for negative operands.
    ///
    /// - Shape: both operands broadcast together; axis names merge.
    /// - Dtypes: any but complex; promoted, integers and bools to f32. A plain number takes the dtype of the tensor
    ///   that
    ///   it meets.
    /// - Gradient: `g` times the density `b^(a - 1) exp(-b) / gamma(a)` to `b`; `g` times the derivative by `a`.
    fn gammainc;
    errors binary_errors!(gammainc Real);
    example { (x = f32[2] "1.0, 2.0") x.gammainc("0.0") == f32[2] "0.0, 0.0" }

    /// The regularized upper incomplete gamma function, `1 - gammainc(a, b)` without its cancellation.
    ///
    /// - Shape: both operands broadcast together; axis names merge.
    /// - Dtypes: any but complex; promoted, integers and bools to f32. A plain number takes the dtype of the tensor
    ///   that
    ///   it meets.
    /// - Gradient: that of `gammainc`, negated.
    fn gammaincc;
    errors binary_errors!(gammaincc Real);
    example { (x = f32[2] "1.0, 2.0") x.gammaincc("0.0") == f32[2] "1.0, 1.0" }
}

with_operands! {
    /// The regularized incomplete beta function: the integral of `t^(a - 1) (1 - t)^(b - 1) / beta(a, b)` from 0 to
    /// `x`. NaN for negative parameters and for an `x` outside of 0 to 1.
    ///
    /// - Shape: the operands broadcast together; axis names merge.
    /// - Dtypes: any but complex; promoted, integers and bools to f32. A plain number takes the dtype of the tensors
    ///   that
    ///   it meets.
    /// - Gradient: `g` times the density `x^(a - 1) (1 - x)^(b - 1) / beta(a, b)` to `x`; `g` times the derivatives
    ///   by the
    ///   parameters to them.
    fn betainc(b, x;) |ops, a| ops.betainc(a, b, x);
    errors "Complex operands (`DType`), shapes that do not broadcast (`Shape`), and axis names that differ (`Axis`).";
    example { (x = f32[2] "1.0, 2.0") x.betainc("1.0, 0.5") == f32[2] "0.5, 0.25" }
}
