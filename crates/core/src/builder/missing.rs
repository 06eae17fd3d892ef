//! Reductions that leave out NaN.

use super::composite::reduction;
use super::{Arg, Builder};
use crate::compose::missing;
use crate::error::Result;
use crate::shape::{Axes, AxisRef};

/// Reductions that leave out NaN. Tensors without NaN have the results of the functions without the prefix.
pub trait BuildMissing: Builder + Sized {
    /// The sum over axes of the elements that are not NaN; 0 if there is none. Gradients flow to those elements.
    ///
    /// # Errors
    /// Axes that `x` does not have or that are repeated.
    fn nansum(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        keep_axes: bool,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        reduction(self, "nansum", x, &axes.into(), &[keep_axes.into()], &|b, x, axes| {
            missing::nansum(b, x, axes, keep_axes)
        })
    }

    /// The product over axes of the elements that are not NaN; 1 if there is none.
    ///
    /// # Errors
    /// Axes that `x` does not have or that are repeated.
    fn nanprod(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        keep_axes: bool,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        reduction(self, "nanprod", x, &axes.into(), &[keep_axes.into()], &|b, x, axes| {
            missing::nanprod(b, x, axes, keep_axes)
        })
    }

    /// The greatest element over axes that is not NaN; NaN if there is none.
    ///
    /// # Errors
    /// Axes that `x` does not have or that are repeated, complex elements, and an axis without elements.
    fn nanmax(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        keep_axes: bool,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        reduction(self, "nanmax", x, &axes.into(), &[keep_axes.into()], &|b, x, axes| {
            missing::extreme(b, ("nanmax", true), x, axes, keep_axes)
        })
    }

    /// The least element over axes that is not NaN; NaN if there is none.
    ///
    /// # Errors
    /// Axes that `x` does not have or that are repeated, complex elements, and an axis without elements.
    fn nanmin(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        keep_axes: bool,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        reduction(self, "nanmin", x, &axes.into(), &[keep_axes.into()], &|b, x, axes| {
            missing::extreme(b, ("nanmin", false), x, axes, keep_axes)
        })
    }

    /// The mean over axes of the elements that are not NaN; NaN if there is none.
    ///
    /// # Errors
    /// Axes that `x` does not have or that are repeated, and an axis without elements.
    fn nanmean(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        keep_axes: bool,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        reduction(self, "nanmean", x, &axes.into(), &[keep_axes.into()], &|b, x, axes| {
            missing::nanmean(b, x, axes, keep_axes)
        })
    }

    /// The variance over axes of the elements that are not NaN. The divisor is their number less `ddof`; where it is
    /// not positive, the result is NaN.
    ///
    /// # Errors
    /// Axes that `x` does not have or that are repeated, and an axis without elements.
    fn nanvar(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        keep_axes: bool,
        ddof: i64,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let options = [keep_axes.into(), ddof.cast_unsigned()];
        reduction(self, "nanvar", x, &axes.into(), &options, &|b, x, axes| {
            missing::nanvar(b, x, axes, keep_axes, ddof)
        })
    }

    /// The square root of [`BuildMissing::nanvar`].
    ///
    /// # Errors
    /// Axes that `x` does not have or that are repeated, and an axis without elements.
    fn nanstd(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        keep_axes: bool,
        ddof: i64,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let options = [keep_axes.into(), ddof.cast_unsigned()];
        reduction(self, "nanstd", x, &axes.into(), &options, &|b, x, axes| {
            missing::nanstd(b, x, axes, keep_axes, ddof)
        })
    }

    /// The index of the greatest element along an axis that is not NaN, or its flat index if `axis` is `None`; the first of
    /// equal ones, and -1 if all elements are NaN. It is s32, or s64 where the axis needs it.
    ///
    /// # Errors
    /// An axis that `x` does not have, complex elements, and an axis without elements.
    fn nanargmax(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axis: Option<AxisRef>,
        keep_axis: bool,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let axes = axis.clone().map_or(Axes::All, Axes::from);
        let options = [keep_axis.into(), axis.is_none().into()];
        reduction(self, "nanargmax", x, &axes, &options, &|b, x, _| {
            missing::position(b, ("nanargmax", true), x, axis.as_ref(), keep_axis)
        })
    }

    /// The index of the least element along an axis that is not NaN, or its flat index if `axis` is `None`; the first of
    /// equal ones, and -1 if all elements are NaN. It is s32, or s64 where the axis needs it.
    ///
    /// # Errors
    /// An axis that `x` does not have, complex elements, and an axis without elements.
    fn nanargmin(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axis: Option<AxisRef>,
        keep_axis: bool,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let axes = axis.clone().map_or(Axes::All, Axes::from);
        let options = [keep_axis.into(), axis.is_none().into()];
        reduction(self, "nanargmin", x, &axes, &options, &|b, x, _| {
            missing::position(b, ("nanargmin", false), x, axis.as_ref(), keep_axis)
        })
    }
}

impl<B: Builder> BuildMissing for B {}
