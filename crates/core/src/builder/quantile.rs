//! Quantiles and averages.

use super::composite::along;
use super::{Arg, Builder};
use crate::compose::quantile::{self, Kind};
use crate::error::Result;
use crate::scalar::Number;
use crate::shape::{Axes, AxisRef};

/// Which element, or number between two elements, is a quantile whose position is not whole (Hyndman and Fan, Sample
/// Quantiles in Statistical Packages, 1996, definition 7 and its neighbours).
///
/// ```
/// use defn_core::builder::{BuildCreate, BuildQuantile, Builder, QuantileMethod};
/// use defn_core::graph::Graph;
/// use defn_core::{DType, Shape};
/// let mut graph = Graph::new();
/// let x = graph.iota(Shape::new(&[2, 9]), DType::S32, None)?;
/// let y = graph.quantile(x, 0.3, Some(1.into()), false, QuantileMethod::Lower)?;
/// assert_eq!(Builder::ty(&graph, &y).to_string(), "s32[2]");
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum QuantileMethod {
    /// The number between both elements, by the fraction of the position.
    #[default]
    Linear,
    /// The lower element.
    Lower,
    /// The higher element.
    Higher,
    /// The nearer element; half way between two, the one whose position is even.
    Nearest,
    /// The mean of both elements.
    Midpoint,
}

impl QuantileMethod {
    /// All methods.
    pub const ALL: [QuantileMethod; 5] = [
        QuantileMethod::Linear,
        QuantileMethod::Lower,
        QuantileMethod::Higher,
        QuantileMethod::Nearest,
        QuantileMethod::Midpoint,
    ];

    /// The name, as in NumPy.
    pub fn name(self) -> &'static str {
        match self {
            QuantileMethod::Linear => "linear",
            QuantileMethod::Lower => "lower",
            QuantileMethod::Higher => "higher",
            QuantileMethod::Nearest => "nearest",
            QuantileMethod::Midpoint => "midpoint",
        }
    }
}

/// Quantiles and averages.
pub trait BuildQuantile: Builder + Sized {
    /// The element below which a share `q` of the elements is, along an axis or of all elements. The axes of `q` are the
    /// first ones of the result. Elements with NaN have the quantile NaN. Shares in a tensor are clipped to 0 and 1.
    ///
    /// # Errors
    /// An axis that `x` does not have or that has no elements, complex elements, and a number `q` out of range.
    fn quantile(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        q: impl Into<Arg<Self::V>>,
        axis: Option<AxisRef>,
        keep_axis: bool,
        method: QuantileMethod,
    ) -> Result<Self::V> {
        let kind = Kind { op: "quantile", whole: 1.0, skips_nan: false };
        quantiles(self, kind, x.into(), q.into(), axis.as_ref(), keep_axis, method)
    }

    /// [`BuildQuantile::quantile`] with `q` in hundredths.
    ///
    /// # Errors
    /// An axis that `x` does not have or that has no elements, complex elements, and a number `q` out of range.
    fn percentile(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        q: impl Into<Arg<Self::V>>,
        axis: Option<AxisRef>,
        keep_axis: bool,
        method: QuantileMethod,
    ) -> Result<Self::V> {
        let kind = Kind { op: "percentile", whole: 100.0, skips_nan: false };
        quantiles(self, kind, x.into(), q.into(), axis.as_ref(), keep_axis, method)
    }

    /// [`BuildQuantile::quantile`] of the elements that are not NaN; NaN if there is none.
    ///
    /// # Errors
    /// An axis that `x` does not have or that has no elements, complex elements, and a number `q` out of range.
    fn nanquantile(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        q: impl Into<Arg<Self::V>>,
        axis: Option<AxisRef>,
        keep_axis: bool,
        method: QuantileMethod,
    ) -> Result<Self::V> {
        let kind = Kind { op: "nanquantile", whole: 1.0, skips_nan: true };
        quantiles(self, kind, x.into(), q.into(), axis.as_ref(), keep_axis, method)
    }

    /// [`BuildQuantile::nanquantile`] with `q` in hundredths.
    ///
    /// # Errors
    /// An axis that `x` does not have or that has no elements, complex elements, and a number `q` out of range.
    fn nanpercentile(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        q: impl Into<Arg<Self::V>>,
        axis: Option<AxisRef>,
        keep_axis: bool,
        method: QuantileMethod,
    ) -> Result<Self::V> {
        let kind = Kind { op: "nanpercentile", whole: 100.0, skips_nan: true };
        quantiles(self, kind, x.into(), q.into(), axis.as_ref(), keep_axis, method)
    }

    /// The median of the elements that are not NaN, along an axis or of all elements; NaN if there is none.
    ///
    /// # Errors
    /// An axis that `x` does not have or that has no elements, and complex elements.
    fn nanmedian(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axis: Option<AxisRef>,
        keep_axis: bool,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        along(self, "nanmedian", [x], axis.as_ref(), &[keep_axis.into()], &|b, [x], axis| {
            quantile::nanmedian(b, x, axis, keep_axis)
        })
    }

    /// The mean over axes, or with weights the weighted mean.
    ///
    /// # Errors
    /// Axes that `x` does not have, that are repeated or have no elements, and weights that do not fit.
    fn average(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        weights: Option<Arg<Self::V>>,
        keep_axes: bool,
    ) -> Result<Self::V> {
        quantile::average(self, x.into(), &axes.into(), weights, keep_axes)
    }
}

impl<B: Builder> BuildQuantile for B {}

/// The quantiles of one of the functions. A number `q` is an option of a program, a tensor an operand.
fn quantiles<B: Builder>(
    b: &mut B,
    kind: Kind,
    x: Arg<B::V>,
    q: Arg<B::V>,
    axis: Option<&AxisRef>,
    keep_axis: bool,
    method: QuantileMethod,
) -> Result<B::V> {
    let x = b.operand(x)?;
    let (keep, chosen) = (keep_axis.into(), method as u64);
    match q {
        Arg::Number(number @ (Number::Int(_) | Number::Float(_))) => {
            let options = [keep, chosen, number.to_f64().to_bits()];
            along(b, kind.op, [x], axis, &options, &|b, [x], axis| {
                quantile::quantile(b, kind, x, Arg::Number(number), axis, keep_axis, method)
            })
        }
        // These are refused, or as good as never given.
        Arg::Number(Number::Bool(_) | Number::Huge(_) | Number::Complex(_)) => {
            quantile::quantile(b, kind, &x, q, axis, keep_axis, method)
        }
        Arg::Value(q) => along(b, kind.op, [x, q], axis, &[keep, chosen], &|b, [x, q], axis| {
            quantile::quantile(b, kind, x, Arg::Value(q.clone()), axis, keep_axis, method)
        }),
    }
}
