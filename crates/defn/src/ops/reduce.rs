//! Reductions and scans over axes.

use defn_core as core;
use defn_core::builder::{Arg, BuildReduce};
use defn_core::op::TieBreak;
use defn_core::{Axes, AxisRef, Location, Result};

use super::eager;
use crate::expr::Operand;
use crate::{Expr, Tensor};

methods! {
    /// `log(sum(exp(x)))` over axes, without overflow.
    ///
    /// - Shape: `axes` are removed, or with `keep_axes` have size 1. [`Axes::All`] are all axes, an empty list is none.
    /// - Dtypes: any but complex; integers and bools become f32.
    /// - Gradient: `g` times the softmax.
    fn logsumexp(axes: impl Into<Axes>, keep_axes: bool) |ops, x| ops.logsumexp(x, axes, keep_axes, None);
    errors "An axis that the tensor does not have, or that is given twice (`Axis`), and complex elements (`DType`).";
    example { (x = f32[2] "1000.0, f32::NEG_INFINITY") x.logsumexp("Axes::All, false") == f32 "1000.0" }

    /// The index of the greatest element along an axis, or without an axis its index in row-major order. It is the
    /// first of equal elements. NaN counts as the greatest.
    ///
    /// - Shape: `axis` is removed, or with `keep_axis` has size 1. Without an axis the result is a scalar.
    /// - Dtypes: any but complex; the result is s32, or s64 where the axis needs it.
    /// - Gradient: zero.
    fn argmax(axis: Option<AxisRef>, keep_axis: bool)
        |ops, x| ops.argmax(x, axis, keep_axis, TieBreak::Low, None);
    errors "An axis that the tensor does not have (`Axis`), no element (`Shape`), and complex elements (`DType`).";
    example { (x = s32[2][3] "1, 5, 5, 7, 3, 3") x.argmax("Some(1.into()), false") == s32[2] "1, 0" }

    /// The index of the least element along an axis, or without an axis its index in row-major order. It is the first
    /// of equal elements. NaN counts as the least.
    ///
    /// - Shape: `axis` is removed, or with `keep_axis` has size 1. Without an axis the result is a scalar.
    /// - Dtypes: any but complex; the result is s32, or s64 where the axis needs it.
    /// - Gradient: zero.
    fn argmin(axis: Option<AxisRef>, keep_axis: bool)
        |ops, x| ops.argmin(x, axis, keep_axis, TieBreak::Low, None);
    errors "An axis that the tensor does not have (`Axis`), no element (`Shape`), and complex elements (`DType`).";
    example { (x = s32[2][3] "1, 5, 5, 7, 3, 3") x.argmin("Some(1.into()), false") == s32[2] "0, 1" }
}

methods! {
    /// The covariance of columns, with observations in rows: `conj(d)^T d / (rows - ddof)`, where `d` are the deviations
    /// from the means of the columns. Axes in front are batches.
    ///
    /// - Shape: the last two axes have the size of the last one; axis names are dropped.
    /// - Dtypes: any; integers and bools become f32.
    /// - Gradient: of the composition.
    fn covariance(ddof: i64) |ops, x| ops.covariance(x, None, ddof);
    errors "A rank below 2 (`Shape`), and a negative `ddof` (`Option`).";
    example { (x = f32[2][2] "1.0, 2.0, 3.0, 6.0") x.covariance("0") == f32[2][2] "1.0, 2.0, 2.0, 4.0" }
}

with_operands! {
    /// `sum(x * weights) / sum(weights)` over axes. The weights have the shape of the tensor, or one axis for each of
    /// `axes`, in their order.
    ///
    /// - Shape: `axes` are removed, or with `keep_axes` have size 1.
    /// - Dtypes: any; integers and bools become f32.
    /// - Gradient: of the composition, to both.
    fn weighted_mean(weights; axes: impl Into<Axes>, keep_axes: bool)
        |ops, x| ops.weighted_mean(x, weights, axes, keep_axes);
    errors "Weights of another shape (`Shape`), and axes that the tensor does not have, or that are given twice (`Axis`).";
    example { (x = f32[2] "1.0, 4.0", w = f32[2] "1.0, 2.0") x.weighted_mean("&w, Axes::All, false") == f32 "3.0" }
}

defn_core::reduce_functions!(shared);
