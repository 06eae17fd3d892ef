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

    /// The elements in row-major order, with other vectorized axes and another shape, or its own. One size may be -1 for
    /// what is left.
    ///
    /// - Shape: the given one, without names; that of the tensor if none is given.
    /// - Dtypes: any; unchanged.
    /// - Gradient: differentiable.
    fn revectorize(axes: &[(&str, i64)], shape: Option<&[i64]>) |ops, x| {
        let axes: Vec<_> = axes.iter().map(|&(name, size)| (name.into(), size.into())).collect();
        let shape: Option<Vec<_>> = shape.map(|sizes| sizes.iter().map(|&size| size.into()).collect());
        vectorize::revectorize(ops, x, &axes, shape.as_deref(), None)
    };
    errors "Sizes that do not fit the number of elements, and more than one -1 (`Shape`); an axis name that stands on two \
        axes (`Axis`).";
    example {
        (x = s32[6] "1, 2, 3, 4, 5, 6")
        x.revectorize("&[(\"rows\", 2)], Some(&[-1])").sum("Axes::All, false") == s32 "6, 15"
    }
}
