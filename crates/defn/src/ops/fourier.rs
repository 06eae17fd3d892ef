//! Discrete Fourier transforms.

use defn_core::builder::{BuildFourier, FFT_EPS, FftLength, FftNorm};
use defn_core::{Axes, AxisRef, DType, Location, Result};

use super::eager;
use crate::{Expr, Tensor};

with_operands! {
    /// The discrete Fourier transform along an axis. With [`FftNorm::Backward`] it is unscaled.
    ///
    /// - Shape: `axis` is cut, or padded with zeros, to `length`; axis names are kept.
    /// - Dtypes: any; the result is c64, or c128 for f64 and c128.
    /// - Gradient: the same transform of `g`.
    fn fft(; axis: impl Into<AxisRef>, length: FftLength, norm: FftNorm) |ops, x| ops.fft(x, axis, length, norm, FFT_EPS);
    errors "A scalar (`Shape`), an axis that the tensor does not have (`Axis`), and a length below 1 (`Option`).";
    example { (x = f32[4] "1.0, 1.0, 0.0, 0.0") x.fft("0, FftLength::Axis, FftNorm::Backward").real() == f32[4] "2.0, 1.0, 0.0, 1.0" }

    /// The inverse of [`fft`](Self::fft). With [`FftNorm::Backward`] it is divided by the length.
    ///
    /// - Shape: `axis` is cut, or padded with zeros, to `length`; axis names are kept.
    /// - Dtypes: any; the result is c64, or c128 for f64 and c128.
    /// - Gradient: the same transform of `g`.
    fn ifft(; axis: impl Into<AxisRef>, length: FftLength, norm: FftNorm) |ops, x| ops.ifft(x, axis, length, norm, FFT_EPS);
    errors "A scalar (`Shape`), an axis that the tensor does not have (`Axis`), and a length below 1 (`Option`).";
    example { (x = f32[4] "4.0, 0.0, 0.0, 0.0") x.ifft("0, FftLength::Axis, FftNorm::Backward").real() == f32[4] "1.0, 1.0, 1.0, 1.0" }

    /// The discrete Fourier transform along two axes. With [`FftNorm::Backward`] it is unscaled.
    ///
    /// - Shape: the axes are cut, or padded with zeros, to `lengths` in their order; axis names are kept.
    /// - Dtypes: any; the result is c64, or c128 for f64 and c128.
    /// - Gradient: the same transform of `g`.
    fn fft2(; axes: impl Into<Axes>, lengths: [FftLength; 2], norm: FftNorm) |ops, x| ops.fft2(x, axes, lengths, norm, FFT_EPS);
    errors "A rank below 2 (`Shape`), other than two axes of the tensor (`Axis`), and a length below 1 (`Option`).";
    example {
        (x = f32[2][2] "1.0, 0.0, 1.0, 0.0")
        x.fft2("[0, 1], [FftLength::Axis; 2], FftNorm::Backward").real() == f32[2][2] "2.0, 2.0, 0.0, 0.0"
    }

    /// The inverse of [`fft2`](Self::fft2).
    ///
    /// - Shape: the axes are cut, or padded with zeros, to `lengths` in their order; axis names are kept.
    /// - Dtypes: any; the result is c64, or c128 for f64 and c128.
    /// - Gradient: the same transform of `g`.
    fn ifft2(; axes: impl Into<Axes>, lengths: [FftLength; 2], norm: FftNorm) |ops, x| ops.ifft2(x, axes, lengths, norm, FFT_EPS);
    errors "A rank below 2 (`Shape`), other than two axes of the tensor (`Axis`), and a length below 1 (`Option`).";
    example {
        (x = f32[2][2] "2.0, 2.0, 0.0, 0.0")
        x.ifft2("[0, 1], [FftLength::Axis; 2], FftNorm::Backward").real() == f32[2][2] "1.0, 0.0, 1.0, 0.0"
    }

    /// The first half of the frequencies of real elements, which determines the other half.
    ///
    /// - Shape: `axis` has `length / 2 + 1` frequencies; `length` is as for [`fft`](Self::fft). Axis names are kept.
    /// - Dtypes: any but complex; the result is c64, or c128 for f64.
    /// - Gradient: through `fft`.
    fn rfft(; axis: impl Into<AxisRef>, length: FftLength, norm: FftNorm) |ops, x| ops.rfft(x, axis, length, norm, FFT_EPS);
    errors "Complex elements (`DType`), a scalar (`Shape`), an axis that the tensor does not have (`Axis`), and a \
        length below 1 (`Option`).";
    example { (x = f32[4] "1.0, 1.0, 0.0, 0.0") x.rfft("0, FftLength::Axis, FftNorm::Backward").imag() == f32[3] "0.0, -1.0, 0.0" }

    /// The inverse of [`rfft`](Self::rfft): real elements from the first half of their frequencies.
    ///
    /// - Shape: `axis` has `length` elements, by default `2 * (n - 1)` for n frequencies. The operand is cut, or padded
    ///   with zeros, to `length / 2 + 1`. Axis names are kept.
    /// - Dtypes: any; complex numbers become floats of half the width, integers and bools become f32.
    /// - Gradient: through `ifft`.
    fn irfft(; axis: impl Into<AxisRef>, length: FftLength, norm: FftNorm) |ops, x| ops.irfft(x, axis, length, norm, FFT_EPS);
    errors "Fewer than two frequencies without a length, and a length below 1 (`Option`); a scalar (`Shape`); an \
        axis that the tensor does not have (`Axis`).";
    example { (x = f32[3] "4.0, 0.0, 0.0") x.irfft("0, FftLength::Axis, FftNorm::Backward") == f32[4] "1.0, 1.0, 1.0, 1.0" }

    /// The real spectrum of elements of which the second half conjugates the first. The operand is the first half.
    ///
    /// - Shape: as that of [`irfft`](Self::irfft). Axis names are kept.
    /// - Dtypes: as those of [`irfft`](Self::irfft).
    /// - Gradient: through `ifft`.
    fn hfft(; axis: impl Into<AxisRef>, length: FftLength, norm: FftNorm)
        |ops, x| ops.hfft(x, axis, length, norm, FFT_EPS);
    errors "Fewer than two elements without a length, and a length below 1 (`Option`); a scalar (`Shape`); an axis \
        that the tensor does not have (`Axis`).";
    example {
        (x = f32[3] "1.0, 1.0, 1.0") x.hfft("0, FftLength::Axis, FftNorm::Backward") == f32[4] "4.0, 0.0, 0.0, 0.0"
    }

    /// The inverse of [`hfft`](Self::hfft): the first half of the elements that have a real spectrum.
    ///
    /// - Shape: as that of [`rfft`](Self::rfft). Axis names are kept.
    /// - Dtypes: any but complex; the result is c64, or c128 for f64.
    /// - Gradient: through `fft`.
    fn ihfft(; axis: impl Into<AxisRef>, length: FftLength, norm: FftNorm)
        |ops, x| ops.ihfft(x, axis, length, norm, FFT_EPS);
    errors "Complex elements (`DType`), a scalar (`Shape`), an axis that the tensor does not have (`Axis`), and a \
        length below 1 (`Option`).";
    example {
        (x = f32[4] "4.0, 0.0, 0.0, 0.0")
        x.ihfft("0, FftLength::Axis, FftNorm::Backward").real() == f32[3] "1.0, 1.0, 1.0"
    }

    /// The discrete Fourier transform along several axes. With [`FftNorm::Backward`] it is unscaled.
    ///
    /// - Shape: the axes are cut, or padded with zeros, to `lengths` in their order. With lengths,
    ///   [`Axes::All`] are the last axes, as many as there are lengths. Axis names are kept.
    /// - Dtypes: any; the result is c64, or c128 for f64 and c128.
    /// - Gradient: the same transform of `g`.
    fn fftn(; axes: impl Into<Axes>, lengths: Option<&[FftLength]>, norm: FftNorm)
        |ops, x| ops.fftn(x, axes, lengths, norm, FFT_EPS);
    errors "Axes that the tensor does not have (`Axis`), and lengths that are below 1 or not one for each axis \
        (`Option`).";
    example {
        (x = f32[2][2] "1.0, 0.0, 1.0, 0.0")
        x.fftn("Axes::All, None, FftNorm::Backward").real() == f32[2][2] "2.0, 2.0, 0.0, 0.0"
    }

    /// The inverse of [`fftn`](Self::fftn).
    ///
    /// - Shape: as that of [`fftn`](Self::fftn).
    /// - Dtypes: any; the result is c64, or c128 for f64 and c128.
    /// - Gradient: the same transform of `g`.
    fn ifftn(; axes: impl Into<Axes>, lengths: Option<&[FftLength]>, norm: FftNorm)
        |ops, x| ops.ifftn(x, axes, lengths, norm, FFT_EPS);
    errors "Axes that the tensor does not have (`Axis`), and lengths that are below 1 or not one for each axis \
        (`Option`).";
    example {
        (x = f32[2][2] "2.0, 2.0, 0.0, 0.0")
        x.ifftn("Axes::All, None, FftNorm::Backward").real() == f32[2][2] "1.0, 0.0, 1.0, 0.0"
    }

    /// The transform of real elements along two axes: [`rfft`](Self::rfft) along the second, then [`fft`](Self::fft)
    /// along the first.
    ///
    /// - Shape: the axes have `lengths`, the second then `length / 2 + 1` frequencies; axis names are kept.
    /// - Dtypes: any but complex; the result is c64, or c128 for f64.
    /// - Gradient: through `fft`.
    fn rfft2(; axes: impl Into<Axes>, lengths: [FftLength; 2], norm: FftNorm)
        |ops, x| ops.rfft2(x, axes, lengths, norm, FFT_EPS);
    errors "Complex elements (`DType`), a rank below 2 (`Shape`), other than two axes of the tensor (`Axis`), and a \
        length below 1 (`Option`).";
    example {
        (x = f32[2][2] "1.0, 0.0, 1.0, 0.0")
        x.rfft2("[0, 1], [FftLength::Axis; 2], FftNorm::Backward").real() == f32[2][2] "2.0, 2.0, 0.0, 0.0"
    }

    /// The inverse of [`rfft2`](Self::rfft2): real elements.
    ///
    /// - Shape: the axes have `lengths`, the second by default `2 * (n - 1)`; axis names are kept.
    /// - Dtypes: any; complex numbers become floats of half the width, integers and bools become f32.
    /// - Gradient: through `ifft`.
    fn irfft2(; axes: impl Into<Axes>, lengths: [FftLength; 2], norm: FftNorm)
        |ops, x| ops.irfft2(x, axes, lengths, norm, FFT_EPS);
    errors "A rank below 2 (`Shape`), other than two axes of the tensor (`Axis`), and a length below 1 (`Option`).";
    example {
        (x = f32[2][2] "2.0, 2.0, 0.0, 0.0")
        x.irfft2("[0, 1], [FftLength::Axis; 2], FftNorm::Backward") == f32[2][2] "1.0, 0.0, 1.0, 0.0"
    }

    /// The transform of real elements along several axes: [`rfft`](Self::rfft) along the last of them, then
    /// [`fft`](Self::fft) along the others.
    ///
    /// - Shape: as that of [`fftn`](Self::fftn), the last axis then with `length / 2 + 1` frequencies.
    /// - Dtypes: any but complex; the result is c64, or c128 for f64.
    /// - Gradient: through `fft`.
    fn rfftn(; axes: impl Into<Axes>, lengths: Option<&[FftLength]>, norm: FftNorm)
        |ops, x| ops.rfftn(x, axes, lengths, norm, FFT_EPS);
    errors "Complex elements (`DType`), no axis or axes that the tensor does not have (`Axis`), and lengths that are \
        below 1 or not one for each axis (`Option`).";
    example {
        (x = f32[2][2] "1.0, 0.0, 1.0, 0.0")
        x.rfftn("Axes::All, None, FftNorm::Backward").real() == f32[2][2] "2.0, 2.0, 0.0, 0.0"
    }

    /// The inverse of [`rfftn`](Self::rfftn): real elements.
    ///
    /// - Shape: as that of [`fftn`](Self::fftn), the last axis by default with `2 * (n - 1)` elements.
    /// - Dtypes: any; complex numbers become floats of half the width, integers and bools become f32.
    /// - Gradient: through `ifft`.
    fn irfftn(; axes: impl Into<Axes>, lengths: Option<&[FftLength]>, norm: FftNorm)
        |ops, x| ops.irfftn(x, axes, lengths, norm, FFT_EPS);
    errors "No axis or axes that the tensor does not have (`Axis`), and lengths that are below 1 or not one for each \
        axis (`Option`).";
    example {
        (x = f32[2][2] "2.0, 2.0, 0.0, 0.0")
        x.irfftn("Axes::All, None, FftNorm::Backward") == f32[2][2] "1.0, 0.0, 1.0, 0.0"
    }

    /// The elements with frequency 0 in the middle of each axis, so that frequencies ascend.
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any; unchanged.
    /// - Gradient: `g`, shifted back.
    fn fftshift(; axes: impl Into<Axes>) |ops, x| ops.fftshift(x, axes);
    errors "Axes that the tensor does not have, or that are repeated (`Axis`).";
    example { (x = f32[4] "0.0, 1.0, -2.0, -1.0") x.fftshift("0") == f32[4] "-2.0, -1.0, 0.0, 1.0" }

    /// The inverse of [`fftshift`](Self::fftshift).
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any; unchanged.
    /// - Gradient: `g`, shifted.
    fn ifftshift(; axes: impl Into<Axes>) |ops, x| ops.ifftshift(x, axes);
    errors "Axes that the tensor does not have, or that are repeated (`Axis`).";
    example { (x = f32[4] "-2.0, -1.0, 0.0, 1.0") x.ifftshift("0") == f32[4] "0.0, 1.0, -2.0, -1.0" }
}

impl Expr {
    /// The frequencies of a transform of length `n`, in cycles per unit, for samples at a distance `d`: 0 and the
    /// positive ones, then the negative ones.
    ///
    /// - Shape: `[n]`.
    /// - Dtypes: the result has `dtype`, a real float.
    /// - Gradient: none; it has no operand.
    ///
    /// ```
    /// use defn::{DType, Expr, Tensor, jit};
    /// let add = jit(|x: Expr| x + Expr::fftfreq(4, 0.5, DType::F32));
    /// assert_eq!(add.call(Tensor::scalar(1.0)?)?.to_vec::<f32>()?, [1.0, 1.5, 0.0, 0.5]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A length below 1 and a dtype that is no real float (`Option`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn fftfreq(n: i64, d: f64, dtype: DType) -> Expr {
        Expr::make(Location::caller(), |ops| ops.fftfreq(n, d, None, dtype))
    }

    /// The `n / 2 + 1` frequencies of a transform of real elements of length `n`; see [`fftfreq`](Self::fftfreq).
    ///
    /// - Shape: `[n / 2 + 1]`.
    /// - Dtypes: the result has `dtype`, a real float.
    /// - Gradient: none; it has no operand.
    ///
    /// ```
    /// use defn::{DType, Expr, Tensor, jit};
    /// let add = jit(|x: Expr| x + Expr::rfftfreq(4, 0.5, DType::F32));
    /// assert_eq!(add.call(Tensor::scalar(1.0)?)?.to_vec::<f32>()?, [1.0, 1.5, 2.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A length below 1 and a dtype that is no real float (`Option`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn rfftfreq(n: i64, d: f64, dtype: DType) -> Expr {
        Expr::make(Location::caller(), |ops| ops.rfftfreq(n, d, None, dtype))
    }
}

impl Tensor {
    /// The frequencies of a transform of length `n`, in cycles per unit, for samples at a distance `d`: 0 and the
    /// positive ones, then the negative ones.
    ///
    /// - Shape: `[n]`.
    /// - Dtypes: the result has `dtype`, a real float.
    ///
    /// ```
    /// use defn::{DType, Tensor};
    /// assert_eq!(Tensor::fftfreq(4, 0.5, DType::F32)?.to_vec::<f32>()?, [0.0, 0.5, -1.0, -0.5]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A length below 1 and a dtype that is no real float (`Option`).
    #[track_caller]
    pub fn fftfreq(n: i64, d: f64, dtype: DType) -> Result<Tensor> {
        eager(Location::caller(), |ops| ops.fftfreq(n, d, None, dtype)).map(Tensor)
    }

    /// The `n / 2 + 1` frequencies of a transform of real elements of length `n`; see [`fftfreq`](Self::fftfreq).
    ///
    /// - Shape: `[n / 2 + 1]`.
    /// - Dtypes: the result has `dtype`, a real float.
    ///
    /// ```
    /// use defn::{DType, Tensor};
    /// assert_eq!(Tensor::rfftfreq(4, 0.5, DType::F32)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A length below 1 and a dtype that is no real float (`Option`).
    #[track_caller]
    pub fn rfftfreq(n: i64, d: f64, dtype: DType) -> Result<Tensor> {
        eager(Location::caller(), |ops| ops.rfftfreq(n, d, None, dtype)).map(Tensor)
    }
}
