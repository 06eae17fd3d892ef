//! Products.

use defn_core as core;
use defn_core::builder::{Arg, BuildLinalg};
use defn_core::{Location, Result};

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
}
