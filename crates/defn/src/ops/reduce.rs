//! Reductions and scans over axes.

use defn_core::builder::BuildReduce;
use defn_core::op::TieBreak;
use defn_core::{Axes, AxisRef, Location, Result};

use super::eager;
use crate::{Expr, Tensor};

methods! {
    /// The sum over axes, which go, or stay with size 1.
    fn sum(axes: impl Into<Axes>, keep_axes: bool) |ops, x| ops.sum(x, axes, keep_axes);
    /// The product over axes.
    fn product(axes: impl Into<Axes>, keep_axes: bool) |ops, x| ops.product(x, axes, keep_axes);
    /// The greatest over axes; NaN if any element is.
    fn reduce_max(axes: impl Into<Axes>, keep_axes: bool) |ops, x| ops.reduce_max(x, axes, keep_axes);
    /// The least over axes; NaN if any element is.
    fn reduce_min(axes: impl Into<Axes>, keep_axes: bool) |ops, x| ops.reduce_min(x, axes, keep_axes);
    /// 1 if no element is zero.
    fn all(axes: impl Into<Axes>, keep_axes: bool) |ops, x| ops.all(x, axes, keep_axes);
    /// 1 if an element is not zero.
    fn any(axes: impl Into<Axes>, keep_axes: bool) |ops, x| ops.any(x, axes, keep_axes);
    /// The mean over axes.
    fn mean(axes: impl Into<Axes>, keep_axes: bool) |ops, x| ops.mean(x, axes, keep_axes);
    /// The mean squared deviation from the mean; the divisor is the count less `ddof`.
    fn variance(axes: impl Into<Axes>, keep_axes: bool, ddof: i64)
        |ops, x| ops.variance(x, axes, keep_axes, ddof);
    /// The square root of the variance.
    fn standard_deviation(axes: impl Into<Axes>, keep_axes: bool, ddof: i64)
        |ops, x| ops.standard_deviation(x, axes, keep_axes, ddof);
    /// The element in the middle, or the mean of the two there, along an axis or of all.
    fn median(axis: Option<AxisRef>, keep_axis: bool) |ops, x| ops.median(x, axis, keep_axis);
    /// The element that is there most often, the least of several, along an axis or of all.
    fn mode(axis: Option<AxisRef>, keep_axis: bool) |ops, x| ops.mode(x, axis, keep_axis);
    /// The differences of neighbours along an axis, `order` times over.
    fn diff(order: i64, axis: impl Into<AxisRef>) |ops, x| ops.diff(x, order, axis);
    /// `log(sum(exp(x)))` over axes, without overflow.
    fn logsumexp(axes: impl Into<Axes>, keep_axes: bool) |ops, x| ops.logsumexp(x, axes, keep_axes, None);
    /// The sum of the elements up to each place of an axis, or from it on.
    fn cumulative_sum(axis: impl Into<AxisRef>, reverse: bool) |ops, x| ops.cumulative_sum(x, axis, reverse);
    /// The product of the elements up to each place of an axis, or from it on.
    fn cumulative_product(axis: impl Into<AxisRef>, reverse: bool)
        |ops, x| ops.cumulative_product(x, axis, reverse);
    /// The greatest element up to each place of an axis, or from it on; NaN from the first NaN on.
    fn cumulative_max(axis: impl Into<AxisRef>, reverse: bool) |ops, x| ops.cumulative_max(x, axis, reverse);
    /// The least element up to each place of an axis, or from it on; NaN from the first NaN on.
    fn cumulative_min(axis: impl Into<AxisRef>, reverse: bool) |ops, x| ops.cumulative_min(x, axis, reverse);
    /// The index of the first greatest element, along an axis or over the flat index: an s32, or an s64 where the
    /// axis needs it.
    fn argmax(axis: Option<AxisRef>, keep_axis: bool)
        |ops, x| ops.argmax(x, axis, keep_axis, TieBreak::Low, None);
    /// The index of the first least element, along an axis or over the flat index: an s32, or an s64 where the
    /// axis needs it.
    fn argmin(axis: Option<AxisRef>, keep_axis: bool)
        |ops, x| ops.argmin(x, axis, keep_axis, TieBreak::Low, None);
}
