//! Elements in order.

use defn_core::builder::BuildOrder;
use defn_core::op::Direction;
use defn_core::{AxisRef, Location, Result};

use super::eager;
use crate::{Expr, Tensor};

methods! {
    /// The elements in order along an axis, stably: equal ones keep their order. NaN is above every number, and -0.0
    /// equals 0.0.
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any but complex; unchanged.
    /// - Gradient: `g` in the former order of the elements.
    fn sort(axis: impl Into<AxisRef>, direction: Direction) |ops, x| ops.sort(x, axis, direction);
    errors "Complex elements (`DType`), and an axis that the tensor does not have (`Axis`).";
    example { (x = s32[3] "3, 1, 2") x.sort("0, Direction::Desc") == s32[3] "3, 2, 1" }

    /// The positions along an axis from which the elements in order come; [`take_along_axis`](Self::take_along_axis)
    /// applies them.
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any but complex; the result is s32, or s64 where the axis needs it.
    /// - Gradient: zero.
    fn argsort(axis: impl Into<AxisRef>, direction: Direction)
        |ops, x| ops.argsort(x, axis, direction, None);
    errors "Complex elements (`DType`), and an axis that the tensor does not have (`Axis`).";
    example { (x = s32[3] "3, 1, 2") x.argsort("0, Direction::Asc") == s32[3] "1, 2, 0" }
}

impl Expr {
    /// The `k` greatest elements along the last axis in descending order, and their positions. Equal elements keep
    /// their order; NaN is above every number.
    ///
    /// - Shape: the last axis has size `k`; axis names are kept.
    /// - Dtypes: any but complex; unchanged. The positions are s32, or s64 where the axis needs it.
    /// - Gradient: `g` of the values to the elements chosen; zero from the positions.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let best = jit(|x: Expr| x.top_k(2));
    /// let x = Tensor::from_slice(&[10, 30, 20], &[3])?;
    /// let (values, positions) = best.call(x)?;
    /// assert_eq!(values.to_vec::<i32>()?, [30, 20]);
    /// assert_eq!(positions.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Complex elements (`DType`), a scalar (`Shape`), and a `k` below 1 or above the size of the axis (`Option`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn top_k(&self, k: i64) -> (Expr, Expr) {
        Expr::both(self.record(Location::caller(), |ops, x| ops.top_k(x, k)))
    }
}

impl Tensor {
    /// The `k` greatest elements along the last axis in descending order, and their positions. Equal elements keep
    /// their order; NaN is above every number.
    ///
    /// - Shape: the last axis has size `k`; axis names are kept.
    /// - Dtypes: any but complex; unchanged. The positions are s32, or s64 where the axis needs it.
    /// - Gradient: `g` of the values to the elements chosen; zero from the positions.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let x = Tensor::from_slice(&[10, 30, 20], &[3])?;
    /// let (values, positions) = x.top_k(2)?;
    /// assert_eq!(values.to_vec::<i32>()?, [30, 20]);
    /// assert_eq!(positions.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Complex elements (`DType`), a scalar (`Shape`), and a `k` below 1 or above the size of the axis (`Option`).
    #[track_caller]
    pub fn top_k(&self, k: i64) -> Result<(Tensor, Tensor)> {
        let (values, positions) = eager(Location::caller(), |ops| ops.top_k(&self.0, k))?;
        Ok((Tensor(values), Tensor(positions)))
    }
}
