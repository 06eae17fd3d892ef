//! Discrete Fourier transforms.

use super::{Arg, Builder};
use crate::error::{ErrorKind, Result};
use crate::op::{Block, Domain, Fft2Op, FftOp, Op, Tolerance};
use crate::shape::{Axes, Axis, AxisRef, TensorType};

/// The length of a transform.
///
/// ```
/// use defn_core::builder::{BuildCreate, BuildFourier, Builder, FFT_EPS, FftLength};
/// use defn_core::graph::Graph;
/// use defn_core::{DType, Shape};
/// let mut graph = Graph::new();
/// let x = graph.iota(Shape::new(&[6]), DType::F32, None)?;
/// let y = graph.fft(x, 0, FftLength::Explicit(10), FFT_EPS)?;
/// assert_eq!(Builder::ty(&graph, &y).to_string(), "c64[10]");
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FftLength {
    /// The size of the axis.
    #[default]
    Axis,
    /// The smallest power of two that is at least the size of the axis.
    PowerOfTwo,
    /// This length; the axis is cut or padded with zeros.
    Explicit(i64),
}

/// The default threshold below which parts of a result may be 0. No backend here uses it.
pub const FFT_EPS: f64 = 1e-10;

/// Transforms along axes. Results are complex and keep their operand's names.
pub trait BuildFourier: Builder + Sized {
    /// The transform along an axis, unscaled.
    ///
    /// ```
    /// use defn_core::builder::{BuildCreate, BuildFourier, Builder, FFT_EPS, FftLength};
    /// use defn_core::graph::Graph;
    /// use defn_core::{DType, Shape};
    /// let mut graph = Graph::new();
    /// let x = graph.iota(Shape::new(&[2, 6]), DType::F32, None)?;
    /// let y = graph.fft(x, -1, FftLength::PowerOfTwo, FFT_EPS)?;
    /// assert_eq!(Builder::ty(&graph, &y).to_string(), "c64[2][8]");
    /// # Ok::<(), defn_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// A scalar, an axis that `x` does not have, and a length below 1.
    fn fft(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
        length: FftLength,
        eps: f64,
    ) -> Result<Self::V> {
        transform(self, FftOp::Fft, x.into(), &axis.into(), length, eps)
    }

    /// The inverse of [`BuildFourier::fft`]: divided by the length.
    ///
    /// # Errors
    /// As [`BuildFourier::fft`].
    fn ifft(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
        length: FftLength,
        eps: f64,
    ) -> Result<Self::V> {
        transform(self, FftOp::Ifft, x.into(), &axis.into(), length, eps)
    }

    /// The transform along two axes, unscaled. Lengths are in the order of the axes.
    ///
    /// # Errors
    /// Rank below 2, another number of axes than two, axes that `x` does not have or that are equal, and a length
    /// below 1.
    fn fft2(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        lengths: [FftLength; 2],
        eps: f64,
    ) -> Result<Self::V> {
        transform2(self, Fft2Op::Fft2, x.into(), &axes.into(), lengths, eps)
    }

    /// The inverse of [`BuildFourier::fft2`].
    ///
    /// # Errors
    /// As [`BuildFourier::fft2`].
    fn ifft2(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        lengths: [FftLength; 2],
        eps: f64,
    ) -> Result<Self::V> {
        transform2(self, Fft2Op::Ifft2, x.into(), &axes.into(), lengths, eps)
    }

    /// The first `length / 2 + 1` frequencies of real elements, which determine the others.
    ///
    /// # Errors
    /// As [`BuildFourier::fft`], and complex elements.
    fn rfft(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
        length: FftLength,
        eps: f64,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let got = self.ty(&x);
        if got.dtype.is_complex() {
            let (required, hint) = (Domain::Real.text(), "; use fft");
            return Err(ErrorKind::OperandDType { op: "rfft", got, required, hint }.into());
        }
        let axis = axis_of("rfft", &got, &axis.into())?;
        let length = length.resolve("rfft", got.shape[axis])?;
        self.emit_one(Op::Block(Block::Rfft { axis, length, eps: Tolerance(eps) }), &[x])
    }

    /// The real elements that have the given first half of frequencies. The length is that of the result, by default
    /// `2 * (n - 1)` for an axis of size n. The first `length / 2 + 1` frequencies are used.
    ///
    /// # Errors
    /// As [`BuildFourier::fft`], and an axis of fewer than two elements if no length is given.
    fn irfft(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
        length: FftLength,
        eps: f64,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let got = self.ty(&x);
        let axis = axis_of("irfft", &got, &axis.into())?;
        let size = got.shape[axis];
        let whole = 2 * (size as i64 - 1);
        let length = match length {
            FftLength::Axis => FftLength::Explicit(whole),
            FftLength::PowerOfTwo | FftLength::Explicit(_) => length,
        };
        let length = length.resolve("irfft", whole.max(1) as usize)?;
        self.emit_one(Op::Block(Block::Irfft { axis, length, eps: Tolerance(eps) }), &[x])
    }
}

impl<B: Builder> BuildFourier for B {}

fn axis_of(op: &'static str, got: &TensorType, axis: &AxisRef) -> Result<Axis> {
    if got.shape.rank() == 0 {
        let required = "at least one axis is required";
        return Err(ErrorKind::Rank { op, got: got.clone(), required }.into());
    }
    got.shape.resolve(op, axis)
}

impl FftLength {
    /// The length for an axis of the given size.
    fn resolve(self, op: &'static str, size: usize) -> Result<usize> {
        match self {
            FftLength::Axis => Ok(size),
            FftLength::PowerOfTwo => Ok(size.next_power_of_two()),
            FftLength::Explicit(length) => match usize::try_from(length) {
                Ok(length) if length >= 1 => Ok(length),
                Ok(_) | Err(_) => {
                    let (option, given) = ("length", length.to_string());
                    let required = "an integer of at least 1".to_owned();
                    Err(ErrorKind::OptionValue { op, option, given, required }.into())
                }
            },
        }
    }
}

fn transform<B: Builder>(
    b: &mut B,
    op: FftOp,
    x: Arg<B::V>,
    axis: &AxisRef,
    length: FftLength,
    eps: f64,
) -> Result<B::V> {
    let x = b.operand(x)?;
    let got = b.ty(&x);
    let axis = axis_of(op.name(), &got, axis)?;
    let length = length.resolve(op.name(), got.shape[axis])?;
    b.emit_one(Op::Fft { op, axis, length, eps: Tolerance(eps) }, &[x])
}

fn transform2<B: Builder>(
    b: &mut B,
    op: Fft2Op,
    x: Arg<B::V>,
    axes: &Axes,
    lengths: [FftLength; 2],
    eps: f64,
) -> Result<B::V> {
    let name = op.name();
    let x = b.operand(x)?;
    let got = b.ty(&x);
    if got.shape.rank() < 2 {
        let required = "at least two axes are required";
        return Err(ErrorKind::Rank { op: name, got, required }.into());
    }
    let resolved = got.shape.resolve_all(name, axes)?;
    let &[first, second] = resolved.as_slice() else {
        let (given, shape, required) = (resolved.len(), got.shape, "two are required");
        return Err(ErrorKind::AxesCount { op: name, given, shape, required }.into());
    };
    let axes = [first, second];
    let [one, two] = [0, 1].map(|i| lengths[i].resolve(name, got.shape[axes[i]]));
    let block = Block::Fft2 { op, axes, lengths: [one?, two?], eps: Tolerance(eps) };
    b.emit_one(Op::Block(block), &[x])
}
