//! Reads and writes at positions held in a tensor.

use defn_core as core;
use defn_core::builder::{Arg, BuildIndex};
use defn_core::{Axes, AxisRef, Location, Result};

use super::eager;
use crate::expr::Operand;
use crate::{Expr, Tensor};

with_operands! {
    /// The elements at positions: the last axis of `indices` holds one entry for each of `axes`, the first ones for
    /// [`Axes::All`].
    ///
    /// In a compiled function a position out of range is moved to the nearest.
    fn gather(indices; axes: impl Into<Axes>) |ops, x| ops.gather(x, indices, axes);
    /// The elements at positions along an axis, which gives way to the axes of `indices`.
    ///
    /// In a compiled function a position out of range is moved to the nearest.
    fn take(indices; axis: impl Into<AxisRef>) |ops, x| ops.take(x, indices, axis);
    /// The element at a position along an axis for each place along the others.
    ///
    /// In a compiled function a position out of range is moved to the nearest.
    fn take_along_axis(indices; axis: impl Into<AxisRef>) |ops, x| ops.take_along_axis(x, indices, axis);
    /// With updates added at the positions that the rows of `indices` hold; several of one element add up.
    ///
    /// In a compiled function an update out of range is dropped.
    fn indexed_add(indices, updates; axes: impl Into<Axes>)
        |ops, x| ops.indexed_add(x, indices, updates, axes);
    /// With updates in place of the elements at positions; of several of one element the last stays.
    ///
    /// In a compiled function an update out of range is dropped.
    fn indexed_put(indices, updates; axes: impl Into<Axes>)
        |ops, x| ops.indexed_put(x, indices, updates, axes);
}
