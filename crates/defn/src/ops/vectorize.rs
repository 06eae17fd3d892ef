//! Vectorized axes.

use defn_core::{Location, Result, vectorize};

use super::eager;
use crate::{Expr, Tensor};

methods! {
    /// With its leading axes as vectorized ones under these names: what is done to the tensor is done at each
    /// place on them.
    fn vectorize(names: &[&str])
        |ops, x| vectorize::vectorize(ops, x, &names.iter().map(|&name| (name.into(), None)).collect::<Vec<_>>());
    /// With its vectorized axes in front of the others, under their names.
    fn devectorize() |ops, x| vectorize::devectorize(ops, x, true);
}
