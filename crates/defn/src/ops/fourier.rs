//! Discrete Fourier transforms.

use defn_core::builder::{BuildFourier, FFT_EPS, FftLength};
use defn_core::{Axes, AxisRef, Location, Result};

use super::eager;
use crate::{Expr, Tensor};

with_operands! {
    /// The discrete Fourier transform along an axis, unscaled.
    ///
    /// - Shape: `axis` is cut, or padded with zeros, to `length`; axis names are kept.
    /// - Dtypes: any; the result is c64, or c128 for f64 and c128.
    /// - Gradient: the same transform of `g`.
    fn fft(; axis: impl Into<AxisRef>, length: FftLength) |ops, x| ops.fft(x, axis, length, FFT_EPS);
    errors "A scalar (`Shape`), an axis that the tensor does not have (`Axis`), and a length below 1 (`Option`).";
    example { (x = f32[4] "1.0, 1.0, 0.0, 0.0") x.fft("0, FftLength::Axis").real() == f32[4] "2.0, 1.0, 0.0, 1.0" }

    /// The inverse of [`fft`](Self::fft): it divides by the length.
    ///
    /// - Shape: `axis` is cut, or padded with zeros, to `length`; axis names are kept.
    /// - Dtypes: any; the result is c64, or c128 for f64 and c128.
    /// - Gradient: the same transform of `g`.
    fn ifft(; axis: impl Into<AxisRef>, length: FftLength) |ops, x| ops.ifft(x, axis, length, FFT_EPS);
    errors "A scalar (`Shape`), an axis that the tensor does not have (`Axis`), and a length below 1 (`Option`).";
    example { (x = f32[4] "4.0, 0.0, 0.0, 0.0") x.ifft("0, FftLength::Axis").real() == f32[4] "1.0, 1.0, 1.0, 1.0" }

    /// The discrete Fourier transform along two axes, unscaled.
    ///
    /// - Shape: the axes are cut, or padded with zeros, to `lengths` in their order; axis names are kept.
    /// - Dtypes: any; the result is c64, or c128 for f64 and c128.
    /// - Gradient: the same transform of `g`.
    fn fft2(; axes: impl Into<Axes>, lengths: [FftLength; 2]) |ops, x| ops.fft2(x, axes, lengths, FFT_EPS);
    errors "A rank below 2 (`Shape`), other than two axes of the tensor (`Axis`), and a length below 1 (`Option`).";
    example {
        (x = f32[2][2] "1.0, 0.0, 1.0, 0.0")
        x.fft2("[0, 1], [FftLength::Axis; 2]").real() == f32[2][2] "2.0, 2.0, 0.0, 0.0"
    }

    /// The inverse of [`fft2`](Self::fft2).
    ///
    /// - Shape: the axes are cut, or padded with zeros, to `lengths` in their order; axis names are kept.
    /// - Dtypes: any; the result is c64, or c128 for f64 and c128.
    /// - Gradient: the same transform of `g`.
    fn ifft2(; axes: impl Into<Axes>, lengths: [FftLength; 2]) |ops, x| ops.ifft2(x, axes, lengths, FFT_EPS);
    errors "A rank below 2 (`Shape`), other than two axes of the tensor (`Axis`), and a length below 1 (`Option`).";
    example {
        (x = f32[2][2] "2.0, 2.0, 0.0, 0.0")
        x.ifft2("[0, 1], [FftLength::Axis; 2]").real() == f32[2][2] "1.0, 0.0, 1.0, 0.0"
    }

    /// The first half of the frequencies of real elements, which determines the other half.
    ///
    /// - Shape: `axis` has `length / 2 + 1` frequencies; `length` is as for [`fft`](Self::fft). Axis names are kept.
    /// - Dtypes: any but complex; the result is c64, or c128 for f64.
    /// - Gradient: through `fft`.
    fn rfft(; axis: impl Into<AxisRef>, length: FftLength) |ops, x| ops.rfft(x, axis, length, FFT_EPS);
    errors "Complex elements (`DType`), a scalar (`Shape`), an axis that the tensor does not have (`Axis`), and a \
        length below 1 (`Option`).";
    example { (x = f32[4] "1.0, 1.0, 0.0, 0.0") x.rfft("0, FftLength::Axis").imag() == f32[3] "0.0, -1.0, 0.0" }

    /// The inverse of [`rfft`](Self::rfft): real elements from the first half of their frequencies.
    ///
    /// - Shape: `axis` has `length` elements, by default `2 * (n - 1)` for n frequencies. The operand is cut, or padded
    ///   with zeros, to `length / 2 + 1`. Axis names are kept.
    /// - Dtypes: any; complex numbers become floats of half the width, integers and bools become f32.
    /// - Gradient: through `ifft`.
    fn irfft(; axis: impl Into<AxisRef>, length: FftLength) |ops, x| ops.irfft(x, axis, length, FFT_EPS);
    errors "Fewer than two frequencies without a length, and a length below 1 (`Option`); a scalar (`Shape`); an \
        axis that the tensor does not have (`Axis`).";
    example { (x = f32[3] "4.0, 0.0, 0.0") x.irfft("0, FftLength::Axis") == f32[4] "1.0, 1.0, 1.0, 1.0" }
}
