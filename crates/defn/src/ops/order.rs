//! Elements in order.

use defn_core::builder::BuildOrder;
use defn_core::op::Direction;
use defn_core::{AxisRef, Location, Result};

use super::eager;
use crate::expr::record;
use crate::{Expr, Tensor};

methods! {
    /// In order along an axis, stably: NaN above every number, -0.0 equal to 0.0.
    fn sort(axis: impl Into<AxisRef>, direction: Direction) |ops, x| ops.sort(x, axis, direction);
    /// Where the elements in order come from, as s32, or s64 where the axis needs it.
    fn argsort(axis: impl Into<AxisRef>, direction: Direction)
        |ops, x| ops.argsort(x, axis, direction, None);
}

impl Expr {
    /// The `k` greatest elements along the last axis, descending, and their s32 positions.
    #[track_caller]
    pub fn top_k(&self, k: i64) -> (Expr, Expr) {
        let location = Location::caller();
        match self.0.clone().and_then(|x| record(location, |ops| ops.top_k(x, k))) {
            Ok((values, positions)) => (Expr(Ok(values)), Expr(Ok(positions))),
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
        let (values, positions) = eager(Location::caller(), |ops| ops.top_k(&self.0, k))?;
        Ok((Tensor(values), Tensor(positions)))
    }
}
