//! Products.

use defn_core as core;
use defn_core::builder::{Arg, BuildLinalg, Contracted};
use defn_core::{AxisRef, Location, Result};

use super::{eager, pair};
use crate::expr::Operand;
use crate::{Expr, Tensor};

binary! {
    /// The sum of products over the last axis of `a` and the last but one of `b`, or its only one. A scalar multiplies.
    ///
    /// - Shape: the other axes of `a`, then those of `b`, with their names.
    /// - Dtypes: any; promoted, the product of two bools is s32. Floats of 8 and 16 bits accumulate in f32; integers
    ///   wrap.
    /// - Gradient: `g` contracted with the other operand, which is not conjugated.
    fn dot;
    errors "Sizes of the contracted axes that differ (`Shape`), and an axis name that the result would have twice \
        (`Axis`).";
    example { (a = s32[2][2] "1, 2, 3, 4", b = s32[2] "10, 100") a.dot("&b") == s32[2] "210, 430" }

    /// The sum of products over the last axes of both. A scalar multiplies.
    ///
    /// - Shape: the other axes of `a`, then those of `b`, with their names.
    /// - Dtypes: any; promoted, the product of two bools is s32. Floats of 8 and 16 bits accumulate in f32; integers
    ///   wrap.
    /// - Gradient: `g` contracted with the other operand, which is not conjugated.
    fn inner;
    errors "Last axes of other sizes (`Shape`), and an axis name that the result would have twice (`Axis`).";
    example { (a = s32[2][2] "1, 2, 3, 4", b = s32[2] "10, 100") a.inner("&b") == s32[2] "210, 430" }

    /// The Kronecker product: a block for each element of `a`, which is that element times `b`.
    ///
    /// - Shape: the products of the sizes; leading axes of size 1 make the ranks equal. Axis names are dropped.
    /// - Dtypes: any; promoted, the product of two bools is s32.
    /// - Gradient: that of the product.
    fn kron;
    errors "A plain integer that the dtype does not hold (`Range`).";
    example { (a = s32[2] "1, 10", b = s32[3] "1, 2, 3") a.kron("&b") == s32[6] "1, 2, 3, 10, 20, 30" }

    /// The matrix product, for every position of the leading axes. A vector on the left is a row, on the right a
    /// column.
    ///
    /// - Shape: `[..][m][k]` and `[..][k][n]` give `[..][m][n]`; the leading axes broadcast. The axis of a vector is
    ///   dropped from the result.
    /// - Dtypes: any; promoted, the product of two bools is s32. Floats of 8 and 16 bits accumulate in f32; integers
    ///   wrap.
    /// - Gradient: `g` times the other operand, transposed.
    fn matmul;
    errors "A scalar, and sizes that do not match (`Shape`).";
    example { (a = s32[2][2] "1, 2, 3, 4", b = s32[2][2] "1, 0, 0, 10") a.matmul("&b") == s32[2][2] "1, 20, 3, 40" }

    /// Every element of `a` times every element of `b`, which is conjugated if the result is complex.
    ///
    /// - Shape: both are flattened; the result has one axis for each.
    /// - Dtypes: any; promoted, the product of two bools is s32. A plain number takes the dtype of the tensor that it
    ///   meets.
    /// - Gradient: that of the product.
    fn outer;
    errors "An axis name that the result would have twice (`Axis`), and a plain integer that the dtype does not hold \
        (`Range`).";
    example { (a = s32[2] "1, 2", b = s32[3] "1, 10, 100") a.outer("&b") == s32[2][3] "1, 10, 100, 2, 20, 200" }

    /// The sum of products of both flattened, the first conjugated.
    ///
    /// - Shape: a scalar; both have the same number of elements.
    /// - Dtypes: any; promoted, the product of two bools is s32. Floats of 8 and 16 bits accumulate in f32; integers
    ///   wrap.
    /// - Gradient: `g` times the other operand.
    fn vdot;
    errors "Numbers of elements that differ (`Shape`).";
    example { (a = s32[2][2] "1, 2, 3, 4", b = s32[4] "1, 10, 100, 1000") a.vdot("&b") == s32 "4321" }
}

with_operands! {
    /// The cross product of vectors of three elements along an axis.
    ///
    /// - Shape: the other axes broadcast; names merge.
    /// - Dtypes: any but bool; promoted. Integers wrap.
    /// - Gradient: cross products of `g` with the other operand.
    fn cross(other; axis: impl Into<AxisRef>) |ops, x| ops.cross(x, other, axis);
    errors "A scalar, an axis of another size than 3, and axes that do not broadcast (`Shape`); an axis that an operand \
        does not have (`Axis`); bools (`DType`).";
    example { (a = s32[3] "1, 0, 0", b = s32[3] "0, 1, 0") a.cross("&b, -1") == s32[3] "0, 0, 1" }

    /// Sums of products over axes: over a number of last axes of the first operand and of first axes of the second, or
    /// over pairs of axes, `(axes, other_axes)`.
    ///
    /// - Shape: the other axes of `a`, then those of `b`, with their names.
    /// - Dtypes: any; promoted, the product of two bools is s32. Floats of 8 and 16 bits accumulate in f32; integers
    ///   wrap.
    /// - Gradient: `g` contracted with the other operand, which is not conjugated.
    fn tensordot(other; axes: impl Into<Contracted>) |ops, x| ops.tensordot(x, other, axes);
    errors "Sizes of contracted axes that differ (`Shape`), other numbers of axes (`Option`), an axis that an operand \
        does not have, and an axis name that the result would have twice (`Axis`).";
    example { (a = s32[2][2] "1, 2, 3, 4", b = s32[2][2] "1, 10, 100, 1000") a.tensordot("&b, 2") == s32 "4321" }

    /// The dot product of vectors along an axis of both, the first conjugated.
    ///
    /// - Shape: the other axes broadcast; names merge.
    /// - Dtypes: any; promoted, the product of two bools is s32. Floats of 8 and 16 bits accumulate in f32; integers
    ///   wrap.
    /// - Gradient: `g` times the other operand.
    fn vecdot(other; axis: impl Into<AxisRef>) |ops, x| ops.vecdot(x, other, axis);
    errors "A scalar, vectors of different sizes, and axes that do not broadcast (`Shape`); an axis that an operand does \
        not have, and names that differ (`Axis`).";
    example { (a = s32[2][2] "1, 2, 3, 4", b = s32[2] "10, 100") a.vecdot("&b, -1") == s32[2] "210, 430" }
}

impl Expr {
    /// The sum of products that an equation describes, in NumPy's notation: a letter for each axis of each operand,
    /// terms separated by commas, and after `->` the letters of the result. `...` stands for axes without letters.
    /// Letters that the result lacks are summed over; a letter that one operand has twice selects its diagonal. Without
    /// `->` the result has the letters that stand once, in alphabetical order.
    ///
    /// Pairs of operands are contracted one after the other, in the order with the fewest products for up to six
    /// operands, else in a greedy one.
    ///
    /// - Shape: an axis for each letter of the result, with the merged name of its axes. Axes of size 1, and those of
    ///   `...`, broadcast.
    /// - Dtypes: any; promoted, bools count in s32. Floats of 8 and 16 bits accumulate in f32; integers wrap.
    /// - Gradient: `g` contracted with the other operands, which are not conjugated.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let f = jit(|(x, y): (Expr, Expr)| Expr::einsum("ij,j->i", &[x, y]));
    /// let x = Tensor::from_slice(&[1, 2, 3, 4], &[2, 2])?;
    /// let y = Tensor::from_slice(&[10, 100], &[2])?;
    /// assert_eq!(f.call((x, y))?.to_vec::<i32>()?, [210, 430]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// No operand, and sizes of one letter that differ (`Shape`); an equation that does not fit the operands
    /// (`Option`); names that differ, or that the result would have twice (`Axis`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn einsum(equation: &str, exprs: &[Expr]) -> Expr {
        let location = Location::caller();
        match exprs.iter().map(|expr| expr.0.clone()).collect::<Result<Vec<_>>>() {
            Ok(tensors) => Expr::make(location, |ops| ops.einsum(equation, &tensors)),
            Err(error) => Expr(Err(error)),
        }
    }
}

impl Tensor {
    /// The sum of products that an equation describes, in NumPy's notation: a letter for each axis of each operand,
    /// terms separated by commas, and after `->` the letters of the result. `...` stands for axes without letters.
    /// Letters that the result lacks are summed over; a letter that one operand has twice selects its diagonal. Without
    /// `->` the result has the letters that stand once, in alphabetical order.
    ///
    /// Pairs of operands are contracted one after the other, in the order with the fewest products for up to six
    /// operands, else in a greedy one.
    ///
    /// - Shape: an axis for each letter of the result, with the merged name of its axes. Axes of size 1, and those of
    ///   `...`, broadcast.
    /// - Dtypes: any; promoted, bools count in s32. Floats of 8 and 16 bits accumulate in f32; integers wrap.
    /// - Gradient: `g` contracted with the other operands, which are not conjugated.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let x = Tensor::from_slice(&[1, 2, 3, 4], &[2, 2])?;
    /// let y = Tensor::from_slice(&[10, 100], &[2])?;
    /// assert_eq!(Tensor::einsum("ij,j->i", &[x, y])?.to_vec::<i32>()?, [210, 430]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// No operand, and sizes of one letter that differ (`Shape`); an equation that does not fit the operands
    /// (`Option`); names that differ, or that the result would have twice (`Axis`).
    #[track_caller]
    pub fn einsum(equation: &str, tensors: &[Tensor]) -> Result<Tensor> {
        let tensors: Vec<core::Tensor> = tensors.iter().map(|tensor| tensor.0.clone()).collect();
        eager(Location::caller(), |ops| ops.einsum(equation, &tensors)).map(Tensor)
    }
}
