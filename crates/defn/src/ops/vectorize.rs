//! Vectorized axes.

use defn_core::{Location, Result, vectorize};

use super::eager;
use crate::{Expr, Tensor};

methods! {
    /// The tensor with its leading axes as vectorized axes under these names. Such an axis is outside the shape: every
    /// operation applies to the inner tensor at each position on it.
    ///
    /// - Shape: the leading axes leave the shape.
    /// - Dtypes: any; unchanged.
    /// - Gradient: differentiable.
    fn vectorize(names: &[&str])
        |ops, x| vectorize::vectorize(ops, x, &names.iter().map(|&name| (name.into(), None)).collect::<Vec<_>>());
    errors "More names than axes (`Shape`), and two axes of one name (`Axis`).";
    example { (x = s32[2][3] "1, 2, 3, 4, 5, 6") x.vectorize("&[\"rows\"]").sum("Axes::All, false") == s32 "6, 15" }

    /// The tensor with its vectorized axes as the first axes of its shape, under their names.
    ///
    /// - Shape: the vectorized axes, then the axes of the shape.
    /// - Dtypes: any; unchanged.
    /// - Gradient: differentiable.
    fn devectorize() |ops, x| vectorize::devectorize(ops, x, true);
    errors "An axis name that the result would have twice (`Axis`).";
    example {
        (x = s32[2][3] "1, 2, 3, 4, 5, 6")
        x.vectorize("&[\"rows\"]").devectorize().sum("Axes::All, false") == s32 "21"
    }
}
