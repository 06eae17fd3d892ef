//! Positions of elements, and tensors as sets: functions whose sizes depend on values.

use super::{Arg, Builder};
use crate::compose::sets;
use crate::error::Result;

/// What [`BuildSets::unique`] computes besides the distinct elements.
///
/// ```
/// use defn_core::builder::UniqueOutputs;
/// assert!(!UniqueOutputs::default().counts);
/// assert!(UniqueOutputs::ALL.counts);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UniqueOutputs {
    /// The position of the first of the equal elements, in row-major order.
    pub indices: bool,
    /// For each element of the operand, its position among the distinct ones.
    pub inverse: bool,
    /// The number of elements that are equal.
    pub counts: bool,
}

impl UniqueOutputs {
    /// All of them.
    pub const ALL: UniqueOutputs = UniqueOutputs { indices: true, inverse: true, counts: true };
}

/// The distinct elements, and what was asked for besides.
///
/// ```
/// use defn_core::builder::{BuildCreate, BuildSets, Builder, UniqueOutputs};
/// use defn_core::graph::Graph;
/// use defn_core::{DType, Shape};
/// let mut graph = Graph::new();
/// let x = graph.iota(Shape::new(&[9]), DType::S32, None)?;
/// let outputs = UniqueOutputs { counts: true, ..UniqueOutputs::default() };
/// let found = graph.unique(x, outputs, true, Some(4), None)?;
/// assert_eq!(Builder::ty(&graph, &found.values).to_string(), "s32[4]");
/// assert!(found.counts.is_some() && found.inverse.is_none());
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Uniques<V> {
    /// The distinct elements in ascending order.
    pub values: V,
    /// See [`UniqueOutputs::indices`].
    pub indices: Option<V>,
    /// See [`UniqueOutputs::inverse`].
    pub inverse: Option<V>,
    /// See [`UniqueOutputs::counts`].
    pub counts: Option<V>,
}

impl<V> Uniques<V> {
    /// Those that there are, in the order of the fields.
    pub fn into_vec(self) -> Vec<V> {
        [Some(self.values), self.indices, self.inverse, self.counts].into_iter().flatten().collect()
    }
}

/// Functions whose sizes depend on values. Without a `size` the values are read, which a trace does not have. With one,
/// what is beyond is left out, and what is missing is filled.
pub trait BuildSets: Builder + Sized {
    /// The positions of the elements that are not 0, in row-major order; beyond them `fill`.
    ///
    /// # Errors
    /// A negative size, and no size for a value that is traced or vectorized.
    fn flatnonzero(&mut self, x: impl Into<Arg<Self::V>>, size: Option<i64>, fill: i64) -> Result<Self::V> {
        let x = self.operand(x)?;
        sets::flatnonzero(self, "flatnonzero", &x, size, fill)
    }

    /// The positions of the elements that are not 0, a vector for each axis; beyond them `fill`.
    ///
    /// # Errors
    /// As [`BuildSets::flatnonzero`], and a scalar.
    fn nonzero(&mut self, x: impl Into<Arg<Self::V>>, size: Option<i64>, fill: i64) -> Result<Vec<Self::V>> {
        let x = self.operand(x)?;
        sets::nonzero(self, "nonzero", &x, size, fill)
    }

    /// The positions of the elements that are not 0, a row for each; beyond them rows of `fill`.
    ///
    /// # Errors
    /// As [`BuildSets::flatnonzero`].
    fn argwhere(&mut self, x: impl Into<Arg<Self::V>>, size: Option<i64>, fill: i64) -> Result<Self::V> {
        let x = self.operand(x)?;
        sets::argwhere(self, &x, size, fill)
    }

    /// The distinct elements in ascending order, complex numbers by their real parts first, and what is asked for
    /// besides. NaNs are last; with `equal_nan` all are one. Beyond the elements there is `fill`, by default the first
    /// of them; beyond the counts there are zeros.
    ///
    /// # Errors
    /// As [`BuildSets::flatnonzero`], and a fill that is no scalar or does not fit the element type.
    fn unique(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        outputs: UniqueOutputs,
        equal_nan: bool,
        size: Option<i64>,
        fill: Option<Arg<Self::V>>,
    ) -> Result<Uniques<Self::V>> {
        self.unique_as("unique", x, outputs, equal_nan, size, fill)
    }

    /// [`BuildSets::unique`] under another name in errors.
    ///
    /// # Errors
    /// As [`BuildSets::unique`].
    #[doc(hidden)]
    fn unique_as(
        &mut self,
        op: &'static str,
        x: impl Into<Arg<Self::V>>,
        outputs: UniqueOutputs,
        equal_nan: bool,
        size: Option<i64>,
        fill: Option<Arg<Self::V>>,
    ) -> Result<Uniques<Self::V>> {
        let x = self.operand(x)?;
        sets::unique(self, op, &x, outputs, equal_nan, size, fill)
    }

    /// Whether each element of `x` is among those of another, in their common element type. NaN is not.
    ///
    /// # Errors
    /// Numbers that do not fit the element type.
    fn isin(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        among: impl Into<Arg<Self::V>>,
        invert: bool,
    ) -> Result<Self::V> {
        sets::isin(self, "isin", x.into(), among.into(), invert)
    }

    /// The distinct elements of `a` that are not in `b`, in ascending order; beyond them `fill`, by default the first.
    ///
    /// # Errors
    /// As [`BuildSets::unique`].
    fn setdiff1d(
        &mut self,
        a: impl Into<Arg<Self::V>>,
        b: impl Into<Arg<Self::V>>,
        size: Option<i64>,
        fill: Option<Arg<Self::V>>,
    ) -> Result<Self::V> {
        sets::setdiff1d(self, a.into(), b.into(), size, fill)
    }

    /// The distinct elements of `a` that are in `b`, too, in ascending order; beyond them `fill`, by default the first.
    ///
    /// # Errors
    /// As [`BuildSets::unique`].
    fn intersect1d(
        &mut self,
        a: impl Into<Arg<Self::V>>,
        b: impl Into<Arg<Self::V>>,
        size: Option<i64>,
        fill: Option<Arg<Self::V>>,
    ) -> Result<Self::V> {
        sets::intersect1d(self, a.into(), b.into(), size, fill)
    }

    /// The distinct elements of both, in ascending order; beyond them `fill`, by default the first.
    ///
    /// # Errors
    /// As [`BuildSets::unique`].
    fn union1d(
        &mut self,
        a: impl Into<Arg<Self::V>>,
        b: impl Into<Arg<Self::V>>,
        size: Option<i64>,
        fill: Option<Arg<Self::V>>,
    ) -> Result<Self::V> {
        sets::union1d(self, a.into(), b.into(), size, fill)
    }
}

impl<B: Builder> BuildSets for B {}
