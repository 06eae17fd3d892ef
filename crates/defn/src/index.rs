//! Reads and writes at positions held in a tensor, as methods of expressions and of tensors.

use defn_core as core;
use defn_core::builder::{Arg, BuildIndex, BuildOrder};
use defn_core::{Axes, AxisRef, Location, Result};

use crate::expr::{Operand, record};
use crate::ops::eager;
use crate::{Expr, Tensor};

/// `fn name(operands; options) |builder, x| call`, for both kinds of value.
macro_rules! positions {
    ($($(#[$doc:meta])* fn $name:ident($($operand:ident),*; $arg:ident: $ty:ty) |$b:ident, $x:ident| $body:expr;)*) => {
        impl Expr {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, $($operand: impl Into<Operand>,)* $arg: $ty) -> Expr {
                let location = Location::caller();
                let operands: Result<_> = (|| Ok((self.0.clone()?, $($operand.into().0?,)*)))();
                match operands {
                    Ok(($x, $($operand,)*)) => Expr::make(location, |$b| $body),
                    Err(error) => Expr(Err(error)),
                }
            }
        )*}

        impl Tensor {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// What the operation has against the operands, and a position out of range; with the line of the call.
            #[track_caller]
            pub fn $name(&self, $($operand: impl Into<Arg<core::Tensor>>,)* $arg: $ty) -> Result<Tensor> {
                let $x = self.0.clone();
                eager(Location::caller(), |$b| $body).map(Tensor)
            }
        )*}
    };
}

positions! {
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

impl Expr {
    /// The `k` greatest elements along the last axis, descending, and their s32 positions.
    #[track_caller]
    pub fn top_k(&self, k: i64) -> (Expr, Expr) {
        let location = Location::caller();
        match self.0.clone().and_then(|x| record(location, |ops| ops.top_k(x, k))) {
            Ok((values, places)) => (Expr(Ok(values)), Expr(Ok(places))),
            Err(error) => (Expr(Err(error.clone())), Expr(Err(error))),
        }
    }
}

impl Tensor {
    /// The `k` greatest elements along the last axis, descending, and their s32 positions.
    ///
    /// # Errors
    /// Complex elements, a scalar, and a `k` below 1 or above the size of the axis; with the line of the call.
    #[track_caller]
    pub fn top_k(&self, k: i64) -> Result<(Tensor, Tensor)> {
        let (values, places) = eager(Location::caller(), |ops| ops.top_k(&self.0, k))?;
        Ok((Tensor(values), Tensor(places)))
    }
}
