//! Reductions and scans over axes.

use defn_core::builder::BuildReduce;
use defn_core::op::TieBreak;
use defn_core::{Axes, AxisRef, Location, Result};

use super::eager;
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

defn_core::reduce_functions!(shared);
