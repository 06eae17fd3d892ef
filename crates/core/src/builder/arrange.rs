//! Functions that put elements and tensors in another order.

use super::{Arg, Builder, Composite};
use crate::compose::arrange;
use crate::error::Result;
use crate::shape::{Axes, AxisList, AxisRef};

/// Where [`BuildArrange::array_split`] cuts.
///
/// ```
/// use defn_core::builder::Sections;
/// assert_eq!(Sections::from(3), Sections::Count(3));
/// assert_eq!(Sections::from([2, -1]), Sections::At(vec![2, -1]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sections {
    /// Into so many parts. Where the size does not divide evenly, the first parts have one element more.
    Count(i64),
    /// Before these positions. Negative ones count from the end, and those beyond an end are moved to it.
    At(Vec<i64>),
}

impl From<i32> for Sections {
    fn from(count: i32) -> Sections {
        Sections::Count(i64::from(count))
    }
}

impl From<i64> for Sections {
    fn from(count: i64) -> Sections {
        Sections::Count(count)
    }
}

impl From<usize> for Sections {
    fn from(count: usize) -> Sections {
        Sections::Count(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl From<Vec<i64>> for Sections {
    fn from(cuts: Vec<i64>) -> Sections {
        Sections::At(cuts)
    }
}

impl From<&[i64]> for Sections {
    fn from(cuts: &[i64]) -> Sections {
        Sections::At(cuts.to_vec())
    }
}

impl<const N: usize> From<[i64; N]> for Sections {
    fn from(cuts: [i64; N]) -> Sections {
        Sections::At(cuts.to_vec())
    }
}

/// The order of the axes of [`BuildArrange::meshgrid`].
///
/// ```
/// use defn_core::builder::{BuildArrange, BuildCreate, Builder, Indexing};
/// use defn_core::graph::Graph;
/// use defn_core::{DType, Shape};
/// let mut graph = Graph::new();
/// let x = graph.iota(Shape::new(&[2]), DType::S32, None)?;
/// let y = graph.iota(Shape::new(&[3]), DType::S32, None)?;
/// let grids = graph.meshgrid(&[x, y], Indexing::Ij)?;
/// assert_eq!(Builder::ty(&graph, &grids[1]).to_string(), "s32[2][3]");
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Indexing {
    /// The first vector lies along the second axis and the second along the first, as `x` and `y` of a picture.
    #[default]
    Xy,
    /// Each vector lies along the axis of its own position, as the indices of a matrix.
    Ij,
}

/// Functions that put elements and tensors in another order.
pub trait BuildArrange: Builder + Sized {
    /// `x` with the axes in `source` at the positions in `destination`; the other axes keep their order. A name in
    /// `destination` is the present position of that axis.
    ///
    /// # Errors
    /// An axis or a position that `x` does not have or that is repeated, and numbers of axes and positions that
    /// differ.
    fn moveaxis(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        source: impl Into<Axes>,
        destination: impl Into<Axes>,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        arrange::moveaxis(self, &x, &source.into(), &destination.into())
    }

    /// `x` with its elements moved by `shift` positions along axes; those beyond the end return at the start.
    /// One shift serves all axes. [`Axes::All`] rolls all elements in row-major order.
    ///
    /// # Errors
    /// Axes that `x` does not have or that are repeated, and numbers of shifts and axes that differ.
    fn roll(&mut self, x: impl Into<Arg<Self::V>>, shift: &[i64], axes: impl Into<Axes>) -> Result<Self::V> {
        let x = self.operand(x)?;
        let axes = axes.into();
        let (flat, resolved) = match &axes {
            Axes::All => (true, AxisList::new()),
            Axes::List(_) => (false, self.ty(&x).shape.resolve_all("roll", &axes)?),
        };
        let mut options = vec![flat.into(), shift.len() as u64];
        options.extend(shift.iter().map(|shift| shift.cast_unsigned()));
        self.composite(Composite::over("roll", &options, &resolved), [x], &|b, [x]| {
            arrange::roll(b, x, shift, &axes)
        })
    }

    /// `x` with each element repeated along an axis, or all elements in row-major order. One number serves all
    /// elements.
    ///
    /// # Errors
    /// An axis that `x` does not have, a negative number, and numbers that are not one for each element.
    fn repeat(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        repeats: &[i64],
        axis: Option<AxisRef>,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        arrange::repeat(self, &x, repeats, axis.as_ref())
    }

    /// `x` turned `k` times by 90 degrees in the plane of two axes, from the first towards the second.
    ///
    /// # Errors
    /// Axes that `x` does not have or that are repeated, and another number of axes than two.
    fn rot90(&mut self, x: impl Into<Arg<Self::V>>, k: i64, axes: impl Into<Axes>) -> Result<Self::V> {
        let x = self.operand(x)?;
        arrange::rot90(self, &x, k, &axes.into())
    }

    /// The parts of `x` at each position of an axis, without that axis.
    ///
    /// # Errors
    /// An axis that `x` does not have.
    fn unstack(&mut self, x: impl Into<Arg<Self::V>>, axis: impl Into<AxisRef>) -> Result<Vec<Self::V>> {
        let x = self.operand(x)?;
        arrange::unstack(self, &x, &axis.into())
    }

    /// Tensors broadcast to their common shape, with merged names.
    ///
    /// # Errors
    /// Shapes that do not broadcast, and names that differ.
    fn broadcast_arrays(&mut self, tensors: &[Self::V]) -> Result<Vec<Self::V>> {
        arrange::broadcast_arrays(self, tensors)
    }

    /// `x` with an axis of size 1 if it is a scalar.
    ///
    /// # Errors
    /// None of its own.
    fn atleast_1d(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        arrange::at_least(self, &x, 1)
    }

    /// `x` with axes of size 1 in front, so that there are at least two.
    ///
    /// # Errors
    /// None of its own.
    fn atleast_2d(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        arrange::at_least(self, &x, 2)
    }

    /// `x` with axes of size 1, so that there are at least three: on both sides of a vector, and after a matrix.
    ///
    /// # Errors
    /// None of its own.
    fn atleast_3d(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        arrange::at_least(self, &x, 3)
    }

    /// Tensors concatenated along the second axis. Vectors are columns. Element types and names merge.
    ///
    /// # Errors
    /// No tensor, and shapes that differ on another axis.
    fn column_stack(&mut self, tensors: &[Self::V]) -> Result<Self::V> {
        arrange::column_stack(self, tensors)
    }

    /// Tensors concatenated along the third axis, after [`BuildArrange::atleast_3d`]. Element types and names merge.
    ///
    /// # Errors
    /// No tensor, and shapes that differ on another axis.
    fn dstack(&mut self, tensors: &[Self::V]) -> Result<Self::V> {
        arrange::dstack(self, tensors)
    }

    /// `x` cut into parts along an axis.
    ///
    /// # Errors
    /// A number of parts below 1, and an axis that `x` does not have.
    fn array_split(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        sections: impl Into<Sections>,
        axis: impl Into<AxisRef>,
    ) -> Result<Vec<Self::V>> {
        let x = self.operand(x)?;
        arrange::array_split(self, &x, &sections.into(), &axis.into())
    }

    /// Each vector broadcast to the grid of all, which has one axis for each vector, with its name.
    ///
    /// # Errors
    /// A rank above 1, and a name that two vectors have.
    fn meshgrid(&mut self, tensors: &[Self::V], indexing: Indexing) -> Result<Vec<Self::V>> {
        arrange::meshgrid(self, tensors, indexing)
    }
}

impl<B: Builder> BuildArrange for B {}
