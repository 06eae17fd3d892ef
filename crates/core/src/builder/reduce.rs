//! Reductions over axes, and the statistics that use them.

use super::composite::{along, reduction};
use super::{Arg, BuildElementwise, BuildShape, Builder, Composite};
use crate::compose;
use crate::dtype::DType;
use crate::error::Result;
use crate::infer::reduce::index_dtype;
use crate::op::{ArgOp, Block, CompositeBlock, CumulativeOp, Op, ReduceOp, TieBreak};
use crate::shape::{Axes, AxisRef};

macro_rules! reductions {
    ($($(#[$doc:meta])* $method:ident => $op:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// As [`BuildReduce::reduce`].
        fn $method(
            &mut self,
            x: impl Into<Arg<Self::V>>,
            axes: impl Into<Axes>,
            keep_axes: bool,
        ) -> Result<Self::V> {
            self.reduce(ReduceOp::$op, x, axes, keep_axes)
        }
    )*};
}

macro_rules! scans {
    ($($(#[$doc:meta])* $method:ident => $op:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// As [`BuildReduce::cumulative`].
        fn $method(
            &mut self,
            x: impl Into<Arg<Self::V>>,
            axis: impl Into<AxisRef>,
            reverse: bool,
        ) -> Result<Self::V> {
            self.cumulative(CumulativeOp::$op, x, axis, reverse)
        }
    )*};
}

/// Reductions. [`Axes::All`] reduces every axis. Reduced axes are dropped, or kept with size 1 and their names. An
/// empty list reduces nothing and only changes the element type; for [`all`](BuildReduce::all) and
/// [`any`](BuildReduce::any) to bool.
pub trait BuildReduce: Builder + Sized {
    /// `x` reduced by `op` over axes.
    ///
    /// ```
    /// use defn_core::builder::{BuildCreate, BuildReduce, Builder};
    /// use defn_core::graph::Graph;
    /// use defn_core::{DType, Shape};
    /// let mut graph = Graph::new();
    /// let x = graph.iota(Shape::named(&[2, 3], &[Some("row"), None])?, DType::U8, None)?;
    /// let y = graph.sum(x, -1, false)?;
    /// assert_eq!(Builder::ty(&graph, &y).to_string(), "u32[row: 2]");
    /// # Ok::<(), defn_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Axes that `x` does not have or that are repeated; for maximum and minimum also complex elements, and an axis
    /// without elements.
    fn reduce(
        &mut self,
        op: ReduceOp,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        keep_axes: bool,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let ty = self.ty(&x);
        let axes = axes.into();
        let mut resolved = ty.shape.resolve_all(op.name(), &axes)?;
        if let (Axes::List(_), true) = (&axes, resolved.is_empty()) {
            return match op {
                ReduceOp::Sum | ReduceOp::Product => self.as_type(x, ty.dtype.to_aggregate()),
                ReduceOp::ReduceMax | ReduceOp::ReduceMin => Ok(x),
                ReduceOp::All | ReduceOp::Any => self.as_type(x, DType::Bool),
            };
        }
        resolved.sort_unstable();
        self.emit_one(Op::Reduce { op, axes: resolved, keep_axes }, &[x])
    }

    reductions! {
        /// The sum; small integers add up in 32 bits, wrapping.
        sum => Sum;
        /// The product; small integers multiply in 32 bits, wrapping.
        product => Product;
        /// The greatest element; NaN if any is.
        reduce_max => ReduceMax;
        /// The least element; NaN if any is.
        reduce_min => ReduceMin;
        /// True if no element is zero.
        all => All;
        /// True if an element is not zero.
        any => Any;
    }

    /// At each position of an axis, `op` over the elements up to it, or from it on if `reverse`. The element type is
    /// kept; integers wrap.
    ///
    /// # Errors
    /// An axis that `x` does not have, and complex elements for maximum and minimum.
    fn cumulative(
        &mut self,
        op: CumulativeOp,
        x: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
        reverse: bool,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let axis = self.ty(&x).shape.resolve(op.name(), &axis.into())?;
        self.emit_one(Op::Block(Block::Cumulative { op, axis, reverse }), &[x])
    }

    scans! {
        /// The sum of the elements up to each position.
        cumulative_sum => CumulativeSum;
        /// The product of the elements up to each position.
        cumulative_product => CumulativeProduct;
        /// The greatest element up to each position; NaN from the first NaN on.
        cumulative_max => CumulativeMax;
        /// The least element up to each position; NaN from the first NaN on.
        cumulative_min => CumulativeMin;
    }

    /// The index of the greatest element along `axis`, or the flat index if it is `None`. A NaN counts as the
    /// greatest. The default dtype is s32, or s64 if the axis needs it.
    ///
    /// # Errors
    /// An axis that `x` does not have, complex elements, no elements, and a `dtype` that cannot hold the last index.
    fn argmax(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axis: Option<AxisRef>,
        keep_axis: bool,
        tie_break: TieBreak,
        dtype: impl Into<Option<DType>>,
    ) -> Result<Self::V> {
        arg_reduce(self, ArgOp::Argmax, x.into(), axis, keep_axis, tie_break, dtype.into())
    }

    /// The index of the least element along `axis`, or the flat index if it is `None`. A NaN counts as the least. The
    /// default dtype is s32, or s64 if the axis needs it.
    ///
    /// # Errors
    /// An axis that `x` does not have, complex elements, no elements, and a `dtype` that cannot hold the last index.
    fn argmin(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axis: Option<AxisRef>,
        keep_axis: bool,
        tie_break: TieBreak,
        dtype: impl Into<Option<DType>>,
    ) -> Result<Self::V> {
        arg_reduce(self, ArgOp::Argmin, x.into(), axis, keep_axis, tie_break, dtype.into())
    }

    /// The mean, a float or complex. The sum is computed in f64 or c128, and in f32 for floats of 8 and 16 bits
    /// except bf16, so that integers do not wrap and sums do not overflow.
    ///
    /// # Errors
    /// Axes that `x` does not have or that are repeated, and an axis without elements.
    fn mean(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        keep_axes: bool,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        compose::reduce::mean(self, &x, &axes.into(), keep_axes)
    }

    /// `sum(x * weights) / sum(weights)`, a float or complex. The weights have the shape of `x`, or one axis for
    /// each of `axes`, in their order.
    ///
    /// # Errors
    /// Weights of another shape, and axes that `x` does not have or that are repeated.
    fn weighted_mean(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        weights: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        keep_axes: bool,
    ) -> Result<Self::V> {
        let (x, weights) = self.weak_pair("weighted_mean", x, weights)?;
        let axes = axes.into();
        // Weights for each of the axes differ from weights of all elements: whether the axes are given is an option.
        let options = [keep_axes, matches!(axes, Axes::All)].map(u64::from);
        let resolved = self.ty(&x).shape.resolve_all("weighted_mean", &axes)?;
        let function = Composite::over("weighted_mean", &options, &resolved);
        self.composite(function, [x, weights], &|b, [x, weights]| {
            compose::reduce::weighted_mean(b, x, weights, &axes, keep_axes)
        })
    }

    /// The sum of squared deviations from the mean, divided by the number of elements minus `ddof`.
    ///
    /// # Errors
    /// As [`BuildReduce::mean`].
    fn variance(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        keep_axes: bool,
        ddof: i64,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let options = [keep_axes.into(), ddof.cast_unsigned()];
        reduction(self, "variance", x, &axes.into(), &options, &|b, x, axes| {
            compose::reduce::variance(b, x, axes, keep_axes, ddof)
        })
    }

    /// The square root of the variance.
    ///
    /// # Errors
    /// As [`BuildReduce::mean`].
    fn standard_deviation(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        keep_axes: bool,
        ddof: i64,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let options = [keep_axes.into(), ddof.cast_unsigned()];
        reduction(self, "standard_deviation", x, &axes.into(), &options, &|b, x, axes| {
            compose::reduce::standard_deviation(b, x, axes, keep_axes, ddof)
        })
    }

    /// The covariance of columns, with observations in rows: `conj(d)^T d / (rows - ddof)`, where `d` are the
    /// deviations from `mean`, by default the column means. A mean lacks the row axis, and broadcasts. Leading axes
    /// are batch axes; the result has no names.
    ///
    /// # Errors
    /// Rank below 2, a mean that is a scalar or does not broadcast, and a negative `ddof`.
    fn covariance(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        mean: Option<Arg<Self::V>>,
        ddof: i64,
    ) -> Result<Self::V> {
        let function = Composite::new("covariance", &[ddof.cast_unsigned()]);
        match mean {
            None => {
                let x = self.operand(x)?;
                self.composite(function, [x], &|b, [x]| compose::reduce::covariance(b, x, None, ddof))
            }
            Some(mean) => {
                let (x, mean) = self.weak_pair("covariance", x, mean)?;
                self.composite(function, [x, mean], &|b, [x, mean]| {
                    compose::reduce::covariance(b, x, Some(mean), ddof)
                })
            }
        }
    }

    /// The differences of neighbours along an axis, applied `order` times. Each time the axis loses one element.
    ///
    /// # Errors
    /// A scalar, an axis that `x` does not have, and an order that is negative or above the axis's size.
    fn diff(&mut self, x: impl Into<Arg<Self::V>>, order: i64, axis: impl Into<AxisRef>) -> Result<Self::V> {
        let x = self.operand(x)?;
        let axis = axis.into();
        let Ok(resolved) = self.ty(&x).shape.resolve("diff", &axis) else {
            // The error is that of the function.
            return compose::statistics::diff(self, &x, order, &axis);
        };
        let function = Composite::over("diff", &[order.cast_unsigned()], &[resolved]);
        self.composite(function, [x], &|b, [x]| compose::statistics::diff(b, x, order, &axis))
    }

    /// The middle element along an axis, or of all elements if it is `None`. For an even number of elements, the mean
    /// of the two middle ones, a float. NaN is above every number.
    ///
    /// # Errors
    /// Complex elements, an axis that `x` does not have, and no elements.
    fn median(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axis: Option<AxisRef>,
        keep_axis: bool,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        along(self, "median", [x], axis.as_ref(), &[keep_axis.into()], &|b, [x], axis| {
            compose::statistics::median(b, x, axis, keep_axis)
        })
    }

    /// The most frequent element along an axis, or of all elements if it is `None`; the least of several.
    ///
    /// # Errors
    /// Complex elements, an axis that `x` does not have, and no elements.
    fn mode(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axis: Option<AxisRef>,
        keep_axis: bool,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        compose::statistics::mode(self, &x, axis.as_ref(), keep_axis)
    }

    /// `log(sum(factor * exp(x)))` without overflow. The factor is 1 by default, and broadcasts to `x`. The result is
    /// -inf only if all elements are -inf. No gradient flows through the maximum that is subtracted.
    ///
    /// # Errors
    /// Complex elements, axes that `x` does not have or that are repeated, and a factor that does not broadcast to
    /// `x`.
    fn logsumexp(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        keep_axes: bool,
        exp_scaling_factor: Option<Arg<Self::V>>,
    ) -> Result<Self::V> {
        let (x, factor) = match exp_scaling_factor {
            None => (self.operand(x)?, None),
            Some(factor) => {
                let (x, factor) = self.weak_pair("logsumexp", x, factor)?;
                (x, Some(factor))
            }
        };
        let mut axes = self.ty(&x).shape.resolve_all("logsumexp", &axes.into())?;
        axes.sort_unstable();
        match factor {
            None => {
                let function = Composite::over("logsumexp", &[keep_axes.into()], &axes);
                self.composite(function, [x], &|b, x| {
                    let block = CompositeBlock::Logsumexp { axes: axes.clone(), keep_axes };
                    b.emit_one(Op::Block(Block::Composite(block)), x)
                })
            }
            Some(factor) => compose::reduce::logsumexp(self, &x, &axes, keep_axes, Some(&factor)),
        }
    }

    /// The sum of diagonal `offset` of the last two axes.
    ///
    /// # Errors
    /// A rank below 2, and an offset outside of the matrix.
    fn trace(&mut self, x: impl Into<Arg<Self::V>>, offset: i64) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("trace", &[offset.cast_unsigned()]), [x], &|b, [x]| {
            compose::statistics::trace(b, x, offset)
        })
    }

    /// The number of elements over axes that are not 0, as s32.
    ///
    /// # Errors
    /// Axes that `x` does not have or that are repeated.
    fn count_nonzero(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        keep_axes: bool,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        reduction(self, "count_nonzero", x, &axes.into(), &[keep_axes.into()], &|b, x, axes| {
            compose::statistics::count_nonzero(b, x, axes, keep_axes)
        })
    }

    /// The greatest element over axes minus the least.
    ///
    /// # Errors
    /// Axes that `x` does not have or that are repeated, bools and complex elements, and nothing to reduce.
    fn ptp(&mut self, x: impl Into<Arg<Self::V>>, axes: impl Into<Axes>, keep_axes: bool) -> Result<Self::V> {
        let x = self.operand(x)?;
        reduction(self, "ptp", x, &axes.into(), &[keep_axes.into()], &|b, x, axes| {
            compose::statistics::ptp(b, x, axes, keep_axes)
        })
    }
}

impl<B: Builder> BuildReduce for B {}

fn arg_reduce<B: Builder>(
    b: &mut B,
    op: ArgOp,
    x: Arg<B::V>,
    axis: Option<AxisRef>,
    keep_axis: bool,
    tie_break: TieBreak,
    dtype: Option<DType>,
) -> Result<B::V> {
    let x = b.operand(x)?;
    let ty = b.ty(&x);
    let axis = axis.map(|axis| ty.shape.resolve(op.name(), &axis)).transpose()?;
    let count = axis.map_or(ty.size(), |axis| ty.shape[axis]);
    let dtype = dtype.unwrap_or_else(|| index_dtype(count));
    if axis.is_some() {
        return b.emit_one(Op::ArgReduce { op, axis, keep_axis, tie_break, dtype }, &[x]);
    }
    // The flat index has no axis to keep, but with vectorized axes each position keeps its own axes with size 1.
    let kept_shape = (keep_axis && b.is_vectorized(&x))
        .then(|| ty.shape.reduced(&ty.shape.axes().collect::<Vec<_>>(), true));
    let index = b.emit_one(Op::ArgReduce { op, axis, keep_axis: false, tie_break, dtype }, &[x])?;
    match kept_shape {
        Some(shape) => b.reshape_to(index, shape),
        None => Ok(index),
    }
}
