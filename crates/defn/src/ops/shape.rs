//! Shapes, names of axes, slices and joins.

use defn_core as core;
use defn_core::builder::{Arg, BuildArrange, BuildShape};
use defn_core::{Axes, AxisRef, Location, Number, Result, Shape};

use super::eager;
use crate::at::{Index, window};
use crate::{Expr, PadMode, Tensor};

methods! {
    /// The tensor with its own elements around it, in a [`PadMode`], or with a scalar; `config` has the numbers of elements
    /// before and after each axis.
    ///
    /// - Shape: each axis grows by both numbers; names are kept. With a scalar a negative number crops.
    /// - Dtypes: any; unchanged, but promoted with a scalar.
    /// - Gradient: the sum of `g` over all copies of an element.
    fn pad_outer(mode: &PadMode, config: &[(i64, i64)]) |ops, x| ops.pad_outer(x, mode.clone(), config);
    errors "Another number of entries than axes, and negative numbers (`Option`); an axis without elements to repeat (`Shape`).";
    example { (x = s32[3] "1, 2, 3") x.pad_outer("&PadMode::Reflect, &[(1, 2)]") == s32[6] "2, 1, 2, 3, 2, 1" }

    /// The same elements in row-major order with other sizes. One size may be -1, which is inferred.
    ///
    /// - Shape: the given sizes; axis names are dropped.
    /// - Dtypes: any; unchanged.
    /// - Gradient: `g` in the shape of the operand.
    fn reshape(sizes: &[i64]) |ops, x| ops.reshape(x, sizes.iter().copied(), None);
    errors "Another number of elements, and a size that cannot be inferred (`Shape`).";
    example { (x = s32[6] "0, 1, 2, 3, 4, 5") x.reshape("&[2, -1]") == s32[2][3] "0, 1, 2, 3, 4, 5" }

    /// The tensor with a new axis of size 1 at a position of the result; -1 appends it.
    ///
    /// - Shape: one more axis, without a name; other axes keep their names.
    /// - Dtypes: any; unchanged.
    /// - Gradient: `g` without the axis.
    fn new_axis(axis: i64) |ops, x| ops.new_axis(x, axis, None);
    errors "A position out of range (`Axis`).";
    example { (x = s32[3] "1, 2, 3") x.new_axis("-1") == s32[3][1] "1, 2, 3" }

    /// The tensor with other axis names, one entry for each axis; `None` is no name. [`TensorType`](crate::TensorType)
    /// prints the names.
    ///
    /// - Shape: the same sizes under the given names.
    /// - Dtypes: any; unchanged.
    /// - Gradient: `g`.
    fn rename(names: &[Option<&str>])
        |ops, x| ops.rename(x, &names.iter().map(|name| name.map(Into::into)).collect::<Vec<_>>());
    errors "Other than one entry per axis (`Axis`).";
    example { (x = s32[2][1] "1, 2") x.rename("&[Some(\"row\"), None]").sum("\"row\", false") == s32[1] "3" }

    /// The elements repeated along new axes in front, and along axes of size 1.
    ///
    /// - Shape: the given sizes; axes align at the end, and names are dropped.
    /// - Dtypes: any; unchanged.
    /// - Gradient: the sum of `g` over the axes that are new or were stretched.
    fn broadcast(sizes: &[usize]) |ops, x| ops.broadcast(x, Shape::new(sizes), Axes::All);
    errors "A size that is neither 1 nor that of the target axis (`Shape`), and too little memory (`OutOfMemory`).";
    example { (x = s32[2] "1, 2") x.broadcast("&[2, 2]") == s32[2][2] "1, 2, 1, 2" }

    /// The elements repeated so many times along each axis. Missing repetitions and missing axes in front count as 1.
    ///
    /// - Shape: each size times its repetition; axis names are dropped.
    /// - Dtypes: any; unchanged.
    /// - Gradient: the sum of `g` over the repetitions.
    fn tile(repetitions: &[i64]) |ops, x| ops.tile(x, repetitions);
    errors "A repetition below 1 (`Option`), and too little memory (`OutOfMemory`).";
    example { (x = s32[2] "1, 2") x.tile("&[2]") == s32[4] "1, 2, 1, 2" }

    /// What positions and ranges choose of the first axes: `x.at((0, 1..3))` is `x[0, 1:3]` of Python. Negative positions
    /// count from the end, and ranges are cut to the axis.
    ///
    /// - Shape: an axis of which one position is taken is dropped, and the others have the lengths of the ranges; axis
    ///   names are kept.
    /// - Dtypes: any; unchanged.
    /// - Gradient: zeros with `g` in the window.
    fn at(index: impl Index) |ops, x| window(ops, x, &index.parts());
    errors "More entries than axes (`Axis`), and a position out of range (`Bounds`).";
    example { (x = s32[2][3] "0, 1, 2, 3, 4, 5") x.at("(-1, 1..)") == s32[2] "4, 5" }

    /// The tensor with a number around its elements and between them.
    ///
    /// - Shape: each axis has an entry `(low, high, interior)` in `config`: how often the number stands before, after,
    ///   and between neighbours. A negative `low` or `high` crops. Axis names are kept.
    /// - Dtypes: any; the number takes the dtype of the tensor.
    /// - Gradient: `g` at the elements of the tensor.
    fn pad(value: impl Into<Number>, config: &[(i64, i64, i64)])
        |ops, x| ops.pad(x, Arg::Number(value.into()), config);
    errors "Other than one entry per axis, a negative interior, and a result with a size below 0 (`Shape`).";
    example { (x = s32[2] "1, 2") x.pad("0, &[(1, 2, 1)]") == s32[6] "0, 1, 0, 2, 0, 0" }
}

impl Expr {
    /// The expressions one after the other along an axis that they have.
    ///
    /// - Shape: the sizes of `axis` add up; all others are equal. Names merge.
    /// - Dtypes: any; promoted.
    /// - Gradient: each receives its slice of `g`.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let f = jit(|(x, y): (Expr, Expr)| Expr::concatenate(&[x, y], 0));
    /// let x = Tensor::from_slice(&[1, 2], &[2])?;
    /// let y = Tensor::from_slice(&[3, 4], &[2])?;
    /// assert_eq!(f.call((x, y))?.to_vec::<i32>()?, [1, 2, 3, 4]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// No expression, or another axis that differs (`Shape`); an axis that they do not have, or names that differ
    /// (`Axis`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn concatenate(exprs: &[Expr], axis: impl Into<AxisRef>) -> Expr {
        let location = Location::caller();
        match exprs.iter().map(|expr| expr.0.clone()).collect::<Result<Vec<_>>>() {
            Ok(tensors) => Expr::make(location, |ops| ops.concatenate(&tensors, axis)),
            Err(error) => Expr(Err(error)),
        }
    }

    /// The expressions side by side along a new axis.
    ///
    /// - Shape: all are equal; the result has a new axis at position `axis`. Names merge.
    /// - Dtypes: any; promoted.
    /// - Gradient: each receives its slice of `g`.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let f = jit(|(x, y): (Expr, Expr)| Expr::stack(&[x, y], 1));
    /// let x = Tensor::from_slice(&[1, 2], &[2])?;
    /// let y = Tensor::from_slice(&[3, 4], &[2])?;
    /// assert_eq!(f.call((x, y))?.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// No expression, or shapes that differ (`Shape`); a position out of range, or names that differ (`Axis`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
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
    /// The tensors one after the other along an axis that they have.
    ///
    /// - Shape: the sizes of `axis` add up; all others are equal. Names merge.
    /// - Dtypes: any; promoted.
    /// - Gradient: each receives its slice of `g`.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let x = Tensor::from_slice(&[1, 2], &[2])?;
    /// let y = Tensor::from_slice(&[3, 4], &[2])?;
    /// assert_eq!(Tensor::concatenate(&[x, y], 0)?.to_vec::<i32>()?, [1, 2, 3, 4]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// No tensor, or another axis that differs (`Shape`); an axis that they do not have, or names that differ
    /// (`Axis`).
    #[track_caller]
    pub fn concatenate(tensors: &[Tensor], axis: impl Into<AxisRef>) -> Result<Tensor> {
        let tensors: Vec<core::Tensor> = tensors.iter().map(|tensor| tensor.0.clone()).collect();
        eager(Location::caller(), |ops| ops.concatenate(&tensors, axis)).map(Tensor)
    }

    /// The tensors side by side along a new axis.
    ///
    /// - Shape: all are equal; the result has a new axis at position `axis`. Names merge.
    /// - Dtypes: any; promoted.
    /// - Gradient: each receives its slice of `g`.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let x = Tensor::from_slice(&[1, 2], &[2])?;
    /// let y = Tensor::from_slice(&[3, 4], &[2])?;
    /// assert_eq!(Tensor::stack(&[x, y], 1)?.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// No tensor, or shapes that differ (`Shape`); a position out of range, or names that differ (`Axis`).
    #[track_caller]
    pub fn stack(tensors: &[Tensor], axis: i64) -> Result<Tensor> {
        let tensors: Vec<core::Tensor> = tensors.iter().map(|tensor| tensor.0.clone()).collect();
        eager(Location::caller(), |ops| ops.stack(&tensors, axis, None)).map(Tensor)
    }
}

defn_core::shape_functions!(shared);
