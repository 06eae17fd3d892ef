//! Shapes, names of axes, slices and joins.

use defn_core as core;
use defn_core::builder::{Arg, BuildShape, Start};
use defn_core::{Axes, AxisRef, Location, Number, Result, Shape};

use super::eager;
use crate::{Expr, Tensor};

methods! {
    /// The same elements under other sizes, one of which may be -1; without names.
    fn reshape(sizes: &[i64]) |ops, x| ops.reshape(x, sizes.iter().copied(), None);
    /// The axes, consecutive ones, as one.
    fn flatten(axes: impl Into<Axes>) |ops, x| ops.flatten(x, axes);
    /// Without axes of size 1.
    fn squeeze(axes: impl Into<Axes>) |ops, x| ops.squeeze(x, axes);
    /// With a new axis of size 1 at a position of the result.
    fn new_axis(axis: i64) |ops, x| ops.new_axis(x, axis, None);
    /// With other names of axes, one entry for each.
    fn rename(names: &[Option<&str>])
        |ops, x| ops.rename(x, &names.iter().map(|name| name.map(Into::into)).collect::<Vec<_>>());
    /// With axes in another order; reversed for [`Axes::All`].
    fn transpose(axes: impl Into<Axes>) |ops, x| ops.transpose(x, axes);
    /// Repeated to a shape; axes align at the end.
    fn broadcast(sizes: &[usize]) |ops, x| ops.broadcast(x, Shape::new(sizes), Axes::All);
    /// Read backwards along axes.
    fn reverse(axes: impl Into<Axes>) |ops, x| ops.reverse(x, axes);
    /// A window: where it begins and how long it is on each axis.
    fn slice(starts: &[i64], lengths: &[i64]) |ops, x| {
        let starts: Vec<Start<core::Tensor>> = starts.iter().map(|&start| start.into()).collect();
        ops.slice(x, &starts, lengths, None)
    };
    /// A window along one axis.
    fn slice_along_axis(start: i64, length: i64, axis: impl Into<AxisRef>)
        |ops, x| ops.slice_along_axis(x, start, length, axis, 1);
    /// With elements around and between: (low, high, interior) for each axis; negative ones crop.
    fn pad(value: impl Into<Number>, config: &[(i64, i64, i64)])
        |ops, x| ops.pad(x, Arg::Number(value.into()), config);
}

impl Expr {
    /// The expressions one after the other along an axis.
    #[track_caller]
    pub fn concatenate(exprs: &[Expr], axis: impl Into<AxisRef>) -> Expr {
        let location = Location::caller();
        match exprs.iter().map(|expr| expr.0.clone()).collect::<Result<Vec<_>>>() {
            Ok(tensors) => Expr::make(location, |ops| ops.concatenate(&tensors, axis)),
            Err(error) => Expr(Err(error)),
        }
    }

    /// The expressions side by side along a new axis.
    #[track_caller]
    pub fn stack(exprs: &[Expr], axis: i64) -> Expr {
        let location = Location::caller();
        match exprs.iter().map(|expr| expr.0.clone()).collect::<Result<Vec<_>>>() {
            Ok(tensors) => Expr::make(location, |ops| ops.stack(&tensors, axis, None)),
            Err(error) => Expr(Err(error)),
        }
    }
}

impl Tensor {
    /// The tensors one after the other along an axis.
    ///
    /// # Errors
    /// No tensor, or shapes that differ on another axis.
    #[track_caller]
    pub fn concatenate(tensors: &[Tensor], axis: impl Into<AxisRef>) -> Result<Tensor> {
        let tensors: Vec<core::Tensor> = tensors.iter().map(|tensor| tensor.0.clone()).collect();
        eager(Location::caller(), |ops| ops.concatenate(&tensors, axis)).map(Tensor)
    }

    /// The tensors side by side along a new axis.
    ///
    /// # Errors
    /// No tensor, or shapes that differ.
    #[track_caller]
    pub fn stack(tensors: &[Tensor], axis: i64) -> Result<Tensor> {
        let tensors: Vec<core::Tensor> = tensors.iter().map(|tensor| tensor.0.clone()).collect();
        eager(Location::caller(), |ops| ops.stack(&tensors, axis, None)).map(Tensor)
    }
}
