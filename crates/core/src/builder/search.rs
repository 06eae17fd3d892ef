//! Positions in an ordered vector, and what is counted or interpolated between them.

use super::{Arg, Builder, Composite};
use crate::compose::search;
use crate::dtype::DType;
use crate::error::Result;

/// The side of equal elements on which [`BuildSearch::searchsorted`] finds a position.
///
/// ```
/// use defn_core::builder::{BuildCreate, BuildSearch, Builder, Side};
/// use defn_core::graph::Graph;
/// use defn_core::{DType, Shape};
/// let mut graph = Graph::new();
/// let ordered = graph.iota(Shape::new(&[9]), DType::S32, None)?;
/// let found = graph.searchsorted(ordered, 4, Side::Right)?;
/// assert_eq!(Builder::ty(&graph, &found).to_string(), "s32");
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Side {
    /// Before the first equal element.
    #[default]
    Left,
    /// Behind the last equal element.
    Right,
}

/// The bins of [`BuildSearch::histogram`].
///
/// ```
/// use defn_core::builder::{Bins, BuildCreate, BuildSearch, Builder};
/// use defn_core::graph::Graph;
/// use defn_core::{DType, Shape};
/// let mut graph = Graph::new();
/// let x = graph.iota(Shape::new(&[9]), DType::F32, None)?;
/// let (counts, edges) = graph.histogram(x, Bins::Count(4), None, false, None)?;
/// assert_eq!(Builder::ty(&graph, &counts).to_string(), "s32[4]");
/// assert_eq!(Builder::ty(&graph, &edges).to_string(), "f32[5]");
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Bins<V> {
    /// So many, of equal widths.
    Count(i64),
    /// Those between ascending edges.
    Edges(V),
}

/// Positions in an ordered vector, and what is counted or interpolated between them.
pub trait BuildSearch: Builder + Sized {
    /// The number of elements of an ordered vector before each value: the position at which the value belongs, on the
    /// left or on the right of equal elements. NaN is above every number.
    ///
    /// The result has the shape and the names of the values, and is s32, or s64 where the vector needs it. Its gradient
    /// is zero. The search is binary; the order is not checked.
    ///
    /// # Errors
    /// Complex elements, and ordered elements that are no vector.
    fn searchsorted(
        &mut self,
        ordered: impl Into<Arg<Self::V>>,
        values: impl Into<Arg<Self::V>>,
        side: Side,
    ) -> Result<Self::V> {
        let (ordered, values) = self.weak_pair_widened("searchsorted", ordered, values, DType::comparing)?;
        let function = Composite::new("searchsorted", &[side as u64]);
        self.composite(function, [ordered, values], &|b, [ordered, values]| {
            search::searchsorted(b, ordered, values, side)
        })
    }

    /// The bin of each element among the ascending or descending `bins`: the number of bins before it, as
    /// [`BuildSearch::searchsorted`]. With `right` each bin has its upper edge instead of its lower one.
    ///
    /// # Errors
    /// Complex elements, and bins that are no vector.
    fn digitize(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        bins: impl Into<Arg<Self::V>>,
        right: bool,
    ) -> Result<Self::V> {
        let (bins, x) = self.weak_pair_widened("digitize", bins, x, DType::comparing)?;
        self.composite(Composite::new("digitize", &[right.into()]), [x, bins], &|b, [x, bins]| {
            search::digitize(b, x, bins, right)
        })
    }

    /// The number of each integer from 0 to `length - 1` in a vector, or the sum of its weights. Other integers are left
    /// out. Numbers are s32, or s64 where the size needs it; sums have the weights' dtype, or s32 for bools.
    ///
    /// # Errors
    /// Elements that are no integers, another rank than 1, and weights of another shape.
    fn bincount(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        weights: Option<Arg<Self::V>>,
        length: usize,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let weights = weights.map(|weights| self.operand(weights)).transpose()?;
        let function = Composite::new("bincount", &[length as u64]);
        match weights {
            None => self.composite(function, [x], &|b, [x]| search::bincount(b, x, None, length)),
            Some(weights) => self.composite(function, [x, weights], &|b, [x, weights]| {
                search::bincount(b, x, Some(weights), length)
            }),
        }
    }

    /// The number of elements in each bin, or the sum of their weights, and the edges of the bins. A bin has its lower
    /// edge, the last one also its upper edge. Elements outside and NaN are left out.
    ///
    /// Without a range, bins of equal widths reach from the least element to the greatest. With `density` the numbers
    /// are divided by their sum and by the widths.
    ///
    /// # Errors
    /// Complex elements, fewer bins than 1, a range that is not finite or descends, and weights of another shape.
    fn histogram(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        bins: Bins<Self::V>,
        range: Option<(f64, f64)>,
        density: bool,
        weights: Option<Arg<Self::V>>,
    ) -> Result<(Self::V, Self::V)> {
        let x = self.operand(x)?;
        let weights = weights.map(|weights| self.operand(weights)).transpose()?;
        search::histogram(self, &x, &bins, range, density, weights.as_ref())
    }

    /// The values at `x` of the straight lines between points with ascending positions `xp` and values `fp`. Before the
    /// first point it is `left`, behind the last one `right`; by default the values of those points. With a period the
    /// points are taken modulo it, in any order, and repeat.
    ///
    /// The result has the shape and the names of `x`. Gradients reach all three.
    ///
    /// # Errors
    /// Complex positions, points that are no vectors of one size, no point, and a period of 0.
    fn interp(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        xp: impl Into<Arg<Self::V>>,
        fp: impl Into<Arg<Self::V>>,
        left: Option<f64>,
        right: Option<f64>,
        period: Option<f64>,
    ) -> Result<Self::V> {
        let mut operands = self.weak_all("interp", [x.into(), xp.into(), fp.into()])?.into_iter();
        let operands = std::array::from_fn(|_| operands.next().expect("three operands"));
        let options = [left, right, period];
        let numbers = options.map(|number| number.map_or(0, f64::to_bits));
        let missing = options.map(|number| u64::from(number.is_none()));
        let function = Composite::new("interp", &[numbers, missing].concat());
        self.composite(function, operands, &|b, [x, xp, fp]| {
            search::interp(b, x, [xp, fp], [left, right], period)
        })
    }
}

impl<B: Builder> BuildSearch for B {}
