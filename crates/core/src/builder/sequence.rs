//! Sums, slopes and products of sampled functions and polynomials.

use super::{Arg, Builder, Composite};
use crate::compose::sequence;
use crate::error::Result;
use crate::shape::{Axes, AxisRef};

/// The positions of two vectors that [`BuildSequence::convolve`] and [`BuildSequence::correlate`] compute.
///
/// ```
/// use defn_core::builder::{BuildCreate, BuildSequence, Builder, Overlap};
/// use defn_core::graph::Graph;
/// use defn_core::{DType, Shape};
/// let mut graph = Graph::new();
/// let x = graph.iota(Shape::new(&[9]), DType::F32, None)?;
/// let y = graph.convolve(x, x, Overlap::Full)?;
/// assert_eq!(Builder::ty(&graph, &y).to_string(), "f32[17]");
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Overlap {
    /// All at which they overlap.
    #[default]
    Full,
    /// As many as the longer one has elements, in the middle of all.
    Same,
    /// Those at which the shorter one lies within the longer one.
    Valid,
}

/// Sums, slopes and products of sampled functions and polynomials.
pub trait BuildSequence: Builder + Sized {
    /// The integral along an axis by the trapezoidal rule, of samples at the positions `x`, a vector or of the shape of
    /// `y`, or at the distance `dx`.
    ///
    /// # Errors
    /// An axis that `y` does not have, and positions of another shape.
    fn trapezoid(
        &mut self,
        y: impl Into<Arg<Self::V>>,
        x: Option<Arg<Self::V>>,
        dx: f64,
        axis: impl Into<AxisRef>,
    ) -> Result<Self::V> {
        let y = self.operand(y)?;
        let x = x.map(|x| self.operand(x)).transpose()?;
        let axis = self.ty(&y).shape.resolve("trapezoid", &axis.into())?;
        let function = Composite::new("trapezoid", &[dx.to_bits(), axis.index() as u64]);
        let axis = axis.into();
        match x {
            None => self.composite(function, [y], &|b, [y]| sequence::trapezoid(b, y, None, dx, &axis)),
            Some(x) => {
                self.composite(function, [y, x], &|b, [y, x]| sequence::trapezoid(b, y, Some(x), dx, &axis))
            }
        }
    }

    /// The slopes along each of `axes`, by central differences, at the ends by one-sided ones of first or second order.
    /// A distance is a scalar, or a vector of positions; one serves all axes.
    ///
    /// # Errors
    /// Axes that `x` does not have, that are repeated or too short, distances that do not fit, and another order.
    fn gradient(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        spacing: &[Arg<Self::V>],
        axes: impl Into<Axes>,
        edge_order: i64,
    ) -> Result<Vec<Self::V>> {
        let x = self.operand(x)?;
        sequence::gradient(self, &x, spacing, &axes.into(), edge_order)
    }

    /// The discrete convolution of two vectors. Floats of at least 512 elements are multiplied as Fourier transforms,
    /// whose rounding errors are relative to the greatest result.
    ///
    /// # Errors
    /// Bools, and operands that are no vectors or have no elements.
    fn convolve(
        &mut self,
        a: impl Into<Arg<Self::V>>,
        b: impl Into<Arg<Self::V>>,
        overlap: Overlap,
    ) -> Result<Self::V> {
        let (a, b) = self.weak_pair("convolve", a, b)?;
        let function = Composite::new("convolve", &[overlap as u64]);
        self.composite(function, [a, b], &|builder, [a, b]| sequence::convolve(builder, a, b, overlap))
    }

    /// The sums of the products of `a` and the conjugate of `b` at the positions of `b` along `a`, computed as in
    /// [`BuildSequence::convolve`].
    ///
    /// # Errors
    /// As [`BuildSequence::convolve`].
    fn correlate(
        &mut self,
        a: impl Into<Arg<Self::V>>,
        b: impl Into<Arg<Self::V>>,
        overlap: Overlap,
    ) -> Result<Self::V> {
        let (a, b) = self.weak_pair("correlate", a, b)?;
        let function = Composite::new("correlate", &[overlap as u64]);
        self.composite(function, [a, b], &|builder, [a, b]| sequence::correlate(builder, a, b, overlap))
    }

    /// The values of a polynomial by Horner's rule. Its coefficients are a vector, that of the greatest power first.
    ///
    /// # Errors
    /// Coefficients that are no vector.
    fn polyval(&mut self, p: impl Into<Arg<Self::V>>, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let (p, x) = self.weak_pair("polyval", p, x)?;
        self.composite(Composite::new("polyval", &[]), [p, x], &|b, [p, x]| sequence::polyval(b, p, x))
    }

    /// The coefficients of the polynomial of a degree that is nearest to points by least squares, that of the greatest
    /// power first.
    ///
    /// # Errors
    /// Complex elements, operands that are no vectors of one size, and no point.
    fn polyfit(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        y: impl Into<Arg<Self::V>>,
        degree: usize,
    ) -> Result<Self::V> {
        let (x, y) = self.weak_pair("polyfit", x, y)?;
        sequence::polyfit(self, &x, &y, degree)
    }

    /// The correlation coefficients of variables, which are the rows of a matrix, or its columns. Of a vector it is 1.
    ///
    /// # Errors
    /// Another rank than 1 and 2, and variables without values.
    fn corrcoef(&mut self, x: impl Into<Arg<Self::V>>, rowvar: bool) -> Result<Self::V> {
        let x = self.operand(x)?;
        self.composite(Composite::new("corrcoef", &[rowvar.into()]), [x], &|b, [x]| {
            sequence::corrcoef(b, x, rowvar)
        })
    }
}

impl<B: Builder> BuildSequence for B {}
