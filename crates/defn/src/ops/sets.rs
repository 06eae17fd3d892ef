//! Positions of elements, and tensors as sets: functions whose sizes depend on values.

use defn_core as core;
use defn_core::builder::{Arg, BuildSets, UniqueOutputs, Uniques};
use defn_core::{Location, Number, Result};

use super::arrange::{exprs, own};
use super::eager;
use crate::expr::Operand;
use crate::{Expr, Tensor};

methods! {
    /// The positions in row-major order of the elements that are not 0. A size is required while a function is traced:
    /// what is beyond it is left out, and what is missing is `fill`.
    ///
    /// - Shape: a vector of `size` elements, or of as many as are not 0.
    /// - Dtypes: any; the result is s32, or s64 if the number of elements needs it.
    /// - Gradient: none, integers.
    fn flatnonzero(size: Option<i64>, fill: i64) |ops, x| ops.flatnonzero(x, size, fill);
    errors "A negative size (`Option`), and no size while a function is traced (`Trace`).";
    example { (x = s32[4] "0, 3, 0, 5") x.flatnonzero("Some(3), -1") == s32[3] "1, 3, -1" }

    /// The positions of the elements that are not 0, in row-major order: a row for each. The size is as in
    /// [`flatnonzero`](Self::flatnonzero).
    ///
    /// - Shape: a matrix of `size` rows, or of as many as are not 0, with a column for each axis.
    /// - Dtypes: any; the result is s32, or s64 if an axis needs it.
    /// - Gradient: none, integers.
    fn argwhere(size: Option<i64>, fill: i64) |ops, x| ops.argwhere(x, size, fill);
    errors "A negative size (`Option`), and no size while a function is traced (`Trace`).";
    example { (x = s32[2][2] "0, 3, 5, 0") x.argwhere("Some(2), 0") == s32[2][2] "0, 1, 1, 0" }
}

with_operands! {
    /// Whether each element is among others, or with `invert` is not. NaN is not.
    ///
    /// - Shape: unchanged, with its axis names; the others have any shape.
    /// - Dtypes: any; promoted; the result is bool.
    /// - Gradient: none, bools.
    fn isin(among; invert: bool) |ops, x| ops.isin(x, among, invert);
    errors "A number that does not fit the dtype (`Range`).";
    example { (a = s32[3] "1, 2, 3", b = s32[2] "3, 1") a.isin("&b, false") == bool[3] "true, false, true" }

    /// The distinct elements that are not in another tensor, in ascending order. The size is as in
    /// [`flatnonzero`](Self::flatnonzero); the fill is by default the first of them.
    ///
    /// - Shape: a vector of `size` elements, or of as many as there are.
    /// - Dtypes: any; promoted.
    /// - Gradient: `g` to the elements that are the first of their kind.
    fn setdiff1d(other; size: Option<i64>, fill: Option<Number>)
        |ops, x| ops.setdiff1d(x, other, size, fill.map(Arg::Number));
    errors "A negative size (`Option`), and no size while a function is traced (`Trace`).";
    example { (a = s32[3] "3, 1, 2", b = s32[2] "2, 5") a.setdiff1d("&b, Some(2), None") == s32[2] "1, 3" }

    /// The distinct elements that are in another tensor, too, in ascending order; see [`setdiff1d`](Self::setdiff1d).
    ///
    /// - Shape: a vector of `size` elements, or of as many as there are.
    /// - Dtypes: any; promoted.
    /// - Gradient: `g` to the elements that are the first of their kind.
    fn intersect1d(other; size: Option<i64>, fill: Option<Number>)
        |ops, x| ops.intersect1d(x, other, size, fill.map(Arg::Number));
    errors "A negative size (`Option`), and no size while a function is traced (`Trace`).";
    example { (a = s32[3] "3, 1, 2", b = s32[2] "2, 3") a.intersect1d("&b, Some(2), None") == s32[2] "2, 3" }

    /// The distinct elements of both tensors, in ascending order; see [`setdiff1d`](Self::setdiff1d).
    ///
    /// - Shape: a vector of `size` elements, or of as many as there are.
    /// - Dtypes: any; promoted.
    /// - Gradient: `g` to the elements that are the first of their kind.
    fn union1d(other; size: Option<i64>, fill: Option<Number>)
        |ops, x| ops.union1d(x, other, size, fill.map(Arg::Number));
    errors "A negative size (`Option`), and no size while a function is traced (`Trace`).";
    example { (a = s32[2] "3, 1", b = s32[2] "2, 3") a.union1d("&b, Some(3), None") == s32[3] "1, 2, 3" }
}

impl Expr {
    /// The positions of the elements that are not 0, in row-major order: a vector for each axis.
    ///
    /// - Shape: vectors of `size` elements. A size is required: what is beyond it is left out, and what is missing is
    ///   `fill`.
    /// - Dtypes: any; the result is s32, or s64 if an axis needs it.
    /// - Gradient: none, integers.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let f = jit(|x: Expr| x.nonzero(Some(3), -1));
    /// let found = f.call(Tensor::from_slice(&[0, 1, 2, 0], &[2, 2])?)?;
    /// assert_eq!(found[0].to_vec::<i32>()?, [0, 1, -1]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A scalar (`Shape`), a negative size (`Option`), and no size (`Trace`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn nonzero(&self, size: Option<i64>, fill: i64) -> Vec<Expr> {
        exprs(self.record(Location::caller(), |ops, x| ops.nonzero(x, size, fill)))
    }

    /// The distinct elements in ascending order, complex numbers by their real parts first, and what is asked for
    /// besides. NaNs are last; they are one element with `equal_nan`. The fill is by default the first of the distinct
    /// elements, to which their indices then belong; counts are filled with 0.
    ///
    /// - Shape: vectors of `size` elements, which is required; the inverse has the shape and names of the tensor.
    /// - Dtypes: any; unchanged. Positions and counts are s32, or s64 if the number of elements needs it.
    /// - Gradient: `g` to the elements that are the first of their kind.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, UniqueOutputs, jit};
    /// let f = jit(|x: Expr| x.unique(UniqueOutputs::ALL, true, Some(2), None));
    /// let parts = f.call(Tensor::from_slice(&[3, 1, 3], &[3])?)?;
    /// assert_eq!(parts[0].to_vec::<i32>()?, [1, 3]);
    /// assert_eq!(parts[3].to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A negative size (`Option`), and no size (`Trace`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn unique(
        &self,
        outputs: UniqueOutputs,
        equal_nan: bool,
        size: Option<i64>,
        fill: Option<Number>,
    ) -> Vec<Expr> {
        exprs(self.record(Location::caller(), |ops, x| {
            Ok(ops.unique(x, outputs, equal_nan, size, fill.map(Arg::Number))?.into_vec())
        }))
    }
}

impl Tensor {
    /// The positions of the elements that are not 0, in row-major order: a vector for each axis.
    ///
    /// - Shape: vectors of `size` elements, or of as many as are not 0.
    /// - Dtypes: any; the result is s32, or s64 if an axis needs it.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let found = Tensor::from_slice(&[0, 1, 2, 0], &[2, 2])?.nonzero(None, 0)?;
    /// assert_eq!(found[1].to_vec::<i32>()?, [1, 0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A scalar (`Shape`), and a negative size (`Option`).
    #[track_caller]
    pub fn nonzero(&self, size: Option<i64>, fill: i64) -> Result<Vec<Tensor>> {
        eager(Location::caller(), |ops| ops.nonzero(&self.0, size, fill)).map(own)
    }

    /// The distinct elements in ascending order, complex numbers by their real parts first, and what is asked for
    /// besides. NaNs are last; they are one element with `equal_nan`. The fill is by default the first of the distinct
    /// elements, to which their indices then belong; counts are filled with 0.
    ///
    /// - Shape: vectors of `size` elements, or of as many as are distinct; the inverse has the shape of the tensor.
    /// - Dtypes: any; unchanged. Positions and counts are s32, or s64 if the number of elements needs it.
    ///
    /// ```
    /// # use defn::{Tensor, UniqueOutputs};
    /// let found = Tensor::from_slice(&[3, 1, 3], &[3])?.unique(UniqueOutputs::ALL, true, None, None)?;
    /// assert_eq!(found.values.to_vec::<i32>()?, [1, 3]);
    /// assert_eq!(found.counts.expect("it was asked for").to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A negative size (`Option`).
    #[track_caller]
    pub fn unique(
        &self,
        outputs: UniqueOutputs,
        equal_nan: bool,
        size: Option<i64>,
        fill: Option<Number>,
    ) -> Result<Uniques<Tensor>> {
        let found = eager(Location::caller(), |ops| {
            ops.unique(&self.0, outputs, equal_nan, size, fill.map(Arg::Number))
        })?;
        let wrap = |tensor: Option<core::Tensor>| tensor.map(Tensor);
        Ok(Uniques {
            values: Tensor(found.values),
            indices: wrap(found.indices),
            inverse: wrap(found.inverse),
            counts: wrap(found.counts),
        })
    }
}
