//! Discrete Fourier transforms.

use super::{Arg, Builder};
use crate::compose::transforms::{self, Direction};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::op::{Block, Domain, Fft2Op, FftOp, Op, Tolerance};
use crate::shape::{Axes, Axis, AxisRef, Name, TensorType};

/// The length of a transform.
///
/// ```
/// use defn_core::builder::{BuildCreate, BuildFourier, Builder, FFT_EPS, FftLength, FftNorm};
/// use defn_core::graph::Graph;
/// use defn_core::{DType, Shape};
/// let mut graph = Graph::new();
/// let x = graph.iota(Shape::new(&[6]), DType::F32, None)?;
/// let y = graph.fft(x, 0, FftLength::Explicit(10), FftNorm::Backward, FFT_EPS)?;
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

/// Which direction of a transform is divided by the length n.
///
/// ```
/// use defn_core::builder::FftNorm;
/// assert_eq!(FftNorm::default(), FftNorm::Backward);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FftNorm {
    /// The inverse is divided by n.
    #[default]
    Backward,
    /// Both directions are divided by the square root of n, which makes them unitary.
    Ortho,
    /// The transform is divided by n, its inverse is not.
    Forward,
}

/// The default threshold below which parts of a result may be 0. No backend here uses it.
pub const FFT_EPS: f64 = 1e-10;

/// Transforms along axes. Results keep their operand's names.
pub trait BuildFourier: Builder + Sized {
    /// The transform along an axis; by default unscaled.
    ///
    /// ```
    /// use defn_core::builder::{BuildCreate, BuildFourier, Builder, FFT_EPS, FftLength, FftNorm};
    /// use defn_core::graph::Graph;
    /// use defn_core::{DType, Shape};
    /// let mut graph = Graph::new();
    /// let x = graph.iota(Shape::new(&[2, 6]), DType::F32, None)?;
    /// let y = graph.fft(x, -1, FftLength::PowerOfTwo, FftNorm::Ortho, FFT_EPS)?;
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
        norm: FftNorm,
        eps: f64,
    ) -> Result<Self::V> {
        transform(self, FftOp::Fft, x.into(), &axis.into(), length, norm, eps)
    }

    /// The inverse of [`BuildFourier::fft`]; by default it is divided by the length.
    ///
    /// # Errors
    /// As [`BuildFourier::fft`].
    fn ifft(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
        length: FftLength,
        norm: FftNorm,
        eps: f64,
    ) -> Result<Self::V> {
        transform(self, FftOp::Ifft, x.into(), &axis.into(), length, norm, eps)
    }

    /// The transform along two axes; by default unscaled. Lengths are in the order of the axes.
    ///
    /// # Errors
    /// Rank below 2, another number of axes than two, axes that `x` does not have or that are equal, and a length
    /// below 1.
    fn fft2(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        lengths: [FftLength; 2],
        norm: FftNorm,
        eps: f64,
    ) -> Result<Self::V> {
        transform2(self, Fft2Op::Fft2, x.into(), &axes.into(), lengths, norm, eps)
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
        norm: FftNorm,
        eps: f64,
    ) -> Result<Self::V> {
        transform2(self, Fft2Op::Ifft2, x.into(), &axes.into(), lengths, norm, eps)
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
        norm: FftNorm,
        eps: f64,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let got = real_operand("rfft", self.ty(&x), "; use fft")?;
        let axis = axis_of("rfft", &got, &axis.into())?;
        let length = length.resolve("rfft", got.shape[axis])?;
        transforms::rfft(self, &x, axis, length, norm, eps)
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
        norm: FftNorm,
        eps: f64,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let got = self.ty(&x);
        let axis = axis_of("irfft", &got, &axis.into())?;
        let length = length.of_reals("irfft", got.shape[axis])?;
        transforms::irfft(self, &x, axis, length, norm, eps)
    }

    /// The real spectrum of elements of which the second half conjugates the first: `x` is the first half. The length
    /// is that of the result, by default `2 * (n - 1)` for an axis of size n.
    ///
    /// # Errors
    /// As [`BuildFourier::irfft`].
    fn hfft(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
        length: FftLength,
        norm: FftNorm,
        eps: f64,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let got = self.ty(&x);
        let axis = axis_of("hfft", &got, &axis.into())?;
        let length = length.of_reals("hfft", got.shape[axis])?;
        transforms::hfft(self, &x, axis, length, norm, eps)
    }

    /// The inverse of [`BuildFourier::hfft`]: the first `length / 2 + 1` elements.
    ///
    /// # Errors
    /// As [`BuildFourier::rfft`].
    fn ihfft(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
        length: FftLength,
        norm: FftNorm,
        eps: f64,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let got = real_operand("ihfft", self.ty(&x), "; use ifft")?;
        let axis = axis_of("ihfft", &got, &axis.into())?;
        let length = length.resolve("ihfft", got.shape[axis])?;
        transforms::ihfft(self, &x, axis, length, norm, eps)
    }

    /// The transform along several axes; by default unscaled. There is one length for each axis, in their order.
    /// With lengths, [`Axes::All`] are the last axes, as many as there are lengths.
    ///
    /// # Errors
    /// Axes that `x` does not have or that are repeated, numbers of axes and lengths that differ, and a length below 1.
    fn fftn(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        lengths: Option<&[FftLength]>,
        norm: FftNorm,
        eps: f64,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        transforms::several(self, "fftn", Direction::Forward, &x, &axes.into(), lengths, norm, eps)
    }

    /// The inverse of [`BuildFourier::fftn`]; by default it is divided by the product of the lengths.
    ///
    /// # Errors
    /// As [`BuildFourier::fftn`].
    fn ifftn(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        lengths: Option<&[FftLength]>,
        norm: FftNorm,
        eps: f64,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        transforms::several(self, "ifftn", Direction::Inverse, &x, &axes.into(), lengths, norm, eps)
    }

    /// The transform of real elements along two axes: [`BuildFourier::rfft`] along the second, then
    /// [`BuildFourier::fft`] along the first.
    ///
    /// # Errors
    /// As [`BuildFourier::fft2`], and complex elements.
    fn rfft2(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        lengths: [FftLength; 2],
        norm: FftNorm,
        eps: f64,
    ) -> Result<Self::V> {
        let (x, axes) = (self.operand(x)?, axes.into());
        two_axes("rfft2", &self.ty(&x), &axes)?;
        transforms::real_several(self, "rfft2", &x, &axes, Some(&lengths), norm, eps)
    }

    /// The inverse of [`BuildFourier::rfft2`]: real elements. The lengths are those of the result.
    ///
    /// # Errors
    /// As [`BuildFourier::fft2`], and as [`BuildFourier::irfft`] along the second axis.
    fn irfft2(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        lengths: [FftLength; 2],
        norm: FftNorm,
        eps: f64,
    ) -> Result<Self::V> {
        let (x, axes) = (self.operand(x)?, axes.into());
        two_axes("irfft2", &self.ty(&x), &axes)?;
        transforms::inverse_real_several(self, "irfft2", &x, &axes, Some(&lengths), norm, eps)
    }

    /// The transform of real elements along several axes: [`BuildFourier::rfft`] along the last of them, then
    /// [`BuildFourier::fft`] along the others. Axes and lengths are as in [`BuildFourier::fftn`].
    ///
    /// # Errors
    /// As [`BuildFourier::fftn`], complex elements, and no axis.
    fn rfftn(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        lengths: Option<&[FftLength]>,
        norm: FftNorm,
        eps: f64,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        transforms::real_several(self, "rfftn", &x, &axes.into(), lengths, norm, eps)
    }

    /// The inverse of [`BuildFourier::rfftn`]: real elements. The lengths are those of the result.
    ///
    /// # Errors
    /// As [`BuildFourier::fftn`], as [`BuildFourier::irfft`] along the last axis, and no axis.
    fn irfftn(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
        lengths: Option<&[FftLength]>,
        norm: FftNorm,
        eps: f64,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        transforms::inverse_real_several(self, "irfftn", &x, &axes.into(), lengths, norm, eps)
    }

    /// `x` with frequency 0 in the middle of each axis, so that frequencies ascend. The element type stays.
    ///
    /// # Errors
    /// Axes that `x` does not have or that are repeated.
    fn fftshift(&mut self, x: impl Into<Arg<Self::V>>, axes: impl Into<Axes>) -> Result<Self::V> {
        let x = self.operand(x)?;
        transforms::shift(self, "fftshift", Direction::Forward, &x, &axes.into())
    }

    /// The inverse of [`BuildFourier::fftshift`].
    ///
    /// # Errors
    /// As [`BuildFourier::fftshift`].
    fn ifftshift(&mut self, x: impl Into<Arg<Self::V>>, axes: impl Into<Axes>) -> Result<Self::V> {
        let x = self.operand(x)?;
        transforms::shift(self, "ifftshift", Direction::Inverse, &x, &axes.into())
    }

    /// The frequencies of a transform of length `n`, in cycles per unit, for samples at a distance `d`, a scalar: 0 and
    /// the positive ones, then the negative ones.
    ///
    /// # Errors
    /// A length below 1, a distance that is no real scalar, and an element type that is no real float.
    fn fftfreq(
        &mut self,
        n: i64,
        d: impl Into<Arg<Self::V>>,
        name: Option<Name>,
        dtype: DType,
    ) -> Result<Self::V> {
        transforms::frequencies(self, "fftfreq", n, d.into(), name, dtype)
    }

    /// The `n / 2 + 1` frequencies of a transform of real elements of length `n`; see [`BuildFourier::fftfreq`].
    ///
    /// # Errors
    /// As [`BuildFourier::fftfreq`].
    fn rfftfreq(
        &mut self,
        n: i64,
        d: impl Into<Arg<Self::V>>,
        name: Option<Name>,
        dtype: DType,
    ) -> Result<Self::V> {
        transforms::frequencies(self, "rfftfreq", n, d.into(), name, dtype)
    }
}

impl<B: Builder> BuildFourier for B {}

/// The type, if it is not complex.
pub(crate) fn real_operand(op: &'static str, got: TensorType, hint: &'static str) -> Result<TensorType> {
    if got.dtype.is_complex() {
        return Err(ErrorKind::OperandDType { op, got, required: Domain::Real.text(), hint }.into());
    }
    Ok(got)
}

/// Two axes of a type.
fn two_axes(op: &'static str, got: &TensorType, axes: &Axes) -> Result<[Axis; 2]> {
    if got.shape.rank() < 2 {
        return Err(
            ErrorKind::Rank { op, got: got.clone(), required: "at least two axes are required" }.into()
        );
    }
    let resolved = got.shape.resolve_all(op, axes)?;
    let &[first, second] = resolved.as_slice() else {
        let (given, shape, required) = (resolved.len(), got.shape.clone(), "two are required");
        return Err(ErrorKind::AxesCount { op, given, shape, required }.into());
    };
    Ok([first, second])
}

fn axis_of(op: &'static str, got: &TensorType, axis: &AxisRef) -> Result<Axis> {
    if got.shape.rank() == 0 {
        let required = "at least one axis is required";
        return Err(ErrorKind::Rank { op, got: got.clone(), required }.into());
    }
    got.shape.resolve(op, axis)
}

impl FftLength {
    /// The length of real elements that have so many frequencies in the first half.
    pub(crate) fn of_reals(self, op: &'static str, count: usize) -> Result<usize> {
        let whole = 2 * (count as i64 - 1);
        let length = match self {
            FftLength::Axis => FftLength::Explicit(whole),
            FftLength::PowerOfTwo | FftLength::Explicit(_) => self,
        };
        length.resolve(op, whole.max(1) as usize)
    }

    /// The length for an axis of the given size.
    pub(crate) fn resolve(self, op: &'static str, size: usize) -> Result<usize> {
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
    norm: FftNorm,
    eps: f64,
) -> Result<B::V> {
    let x = b.operand(x)?;
    let got = b.ty(&x);
    let axis = axis_of(op.name(), &got, axis)?;
    let length = length.resolve(op.name(), got.shape[axis])?;
    let transformed = b.emit_one(Op::Fft { op, axis, length, eps: Tolerance(eps) }, &[x])?;
    transforms::scaled(b, transformed, Direction::of(op), &[length], norm)
}

fn transform2<B: Builder>(
    b: &mut B,
    op: Fft2Op,
    x: Arg<B::V>,
    axes: &Axes,
    lengths: [FftLength; 2],
    norm: FftNorm,
    eps: f64,
) -> Result<B::V> {
    let name = op.name();
    let x = b.operand(x)?;
    let got = b.ty(&x);
    let axes = two_axes(name, &got, axes)?;
    let [one, two] = [0, 1].map(|i| lengths[i].resolve(name, got.shape[axes[i]]));
    let lengths = [one?, two?];
    let block = Block::Fft2 { op, axes, lengths, eps: Tolerance(eps) };
    let transformed = b.emit_one(Op::Block(block), &[x])?;
    transforms::scaled(b, transformed, Direction::of(op.each()), &lengths, norm)
}
