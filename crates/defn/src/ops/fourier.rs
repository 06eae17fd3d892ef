//! Discrete Fourier transforms.

use defn_core::builder::{BuildFourier, FFT_EPS, FftLength};
use defn_core::{Axes, AxisRef, Location, Result};

use super::eager;
use crate::{Expr, Tensor};

with_operands! {
    /// The discrete Fourier transform along an axis, unscaled.
    fn fft(; axis: impl Into<AxisRef>, length: FftLength) |ops, x| ops.fft(x, axis, length, FFT_EPS);
    /// The inverse of `fft`.
    fn ifft(; axis: impl Into<AxisRef>, length: FftLength) |ops, x| ops.ifft(x, axis, length, FFT_EPS);
    /// The discrete Fourier transform along two axes.
    fn fft2(; axes: impl Into<Axes>, lengths: [FftLength; 2]) |ops, x| ops.fft2(x, axes, lengths, FFT_EPS);
    /// The inverse of `fft2`.
    fn ifft2(; axes: impl Into<Axes>, lengths: [FftLength; 2]) |ops, x| ops.ifft2(x, axes, lengths, FFT_EPS);
    /// The first half of the frequencies of real elements.
    fn rfft(; axis: impl Into<AxisRef>, length: FftLength) |ops, x| ops.rfft(x, axis, length, FFT_EPS);
    /// Real elements from the first half of their frequencies.
    fn irfft(; axis: impl Into<AxisRef>, length: FftLength) |ops, x| ops.irfft(x, axis, length, FFT_EPS);
}
