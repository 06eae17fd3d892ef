//! Windows, convolutions, transforms and folds by functions, as methods of expressions and of tensors.

use defn_core as core;
use defn_core::builder::{
    self, Arg, BuildFourier, BuildWindow, ConvOptions, FFT_EPS, FftLength, FoldFunction, Ops, WindowOptions,
};
use defn_core::{Axes, AxisRef, Location, Result};

use crate::expr::Operand;
use crate::ops::eager;
use crate::{Expr, Tensor};

/// `fn name(operands; options) |builder, x| call`, for both kinds of value.
macro_rules! sliding {
    ($($(#[$doc:meta])* fn $name:ident($($operand:ident),*; $($arg:ident: $ty:ty),*) |$b:ident, $x:ident| $body:expr;)*) => {
        impl Expr {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, $($operand: impl Into<Operand>,)* $($arg: $ty),*) -> Expr {
                let location = Location::caller();
                let operands: Result<_> = (|| Ok((self.0.clone()?, $($operand.into().0?,)*)))();
                match operands {
                    Ok(($x, $($operand,)*)) => Expr::make(location, |$b| $body),
                    Err(error) => Expr(Err(error)),
                }
            }
        )*}

        impl Tensor {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// What the operation has against the operands and options, with the line of the call.
            #[track_caller]
            pub fn $name(&self, $($operand: impl Into<Arg<core::Tensor>>,)* $($arg: $ty),*) -> Result<Tensor> {
                let $x = self.0.clone();
                eager(Location::caller(), |$b| $body).map(Tensor)
            }
        )*}
    };
}

sliding! {
    /// The sum of the elements in each place of a window, which has a size for each axis.
    fn window_sum(; window: &[i64], options: &WindowOptions) |ops, x| ops.window_sum(x, window, options);
    /// The product of the elements in each place of a window.
    fn window_product(; window: &[i64], options: &WindowOptions)
        |ops, x| ops.window_product(x, window, options);
    /// The greatest element in each place of a window; NaN if any is.
    fn window_max(; window: &[i64], options: &WindowOptions) |ops, x| ops.window_max(x, window, options);
    /// The least element in each place of a window; NaN if any is.
    fn window_min(; window: &[i64], options: &WindowOptions) |ops, x| ops.window_min(x, window, options);
    /// The mean of each place of a window, padding counting as zeros.
    fn window_mean(; window: &[i64], options: &WindowOptions) |ops, x| ops.window_mean(x, window, options);
    /// `init` everywhere, plus each element of `source` where its window's greatest element is.
    fn window_scatter_max(source, init; window: &[i64], options: &WindowOptions)
        |ops, x| ops.window_scatter_max(x, source, init, window, options);
    /// `init` everywhere, plus each element of `source` where its window's least element is.
    fn window_scatter_min(source, init; window: &[i64], options: &WindowOptions)
        |ops, x| ops.window_scatter_min(x, source, init, window, options);
    /// Sums of products of a kernel and what it lies over, at each of its places.
    fn conv(kernel; options: &ConvOptions) |ops, x| ops.conv(x, kernel, options);

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

/// The user's function as the core takes it.
fn folding<'a>(fun: impl FnOnce(Expr, Expr) -> Expr + 'a) -> FoldFunction<'a> {
    Box::new(|_: &mut Ops, element, acc| {
        let result = fun(Expr(Ok(element.clone())), Expr(Ok(acc.clone())));
        Ok(Arg::Value(result.0?))
    })
}

impl Expr {
    /// The elements folded over axes by a function of an element and of what was folded so far, from `acc` on.
    #[track_caller]
    pub fn reduce(
        &self,
        acc: impl Into<Operand>,
        axes: impl Into<Axes>,
        keep_axes: bool,
        fun: impl FnOnce(Expr, Expr) -> Expr,
    ) -> Expr {
        let location = Location::caller();
        let operands: Result<_> = (|| Ok((self.0.clone()?, acc.into().0?)))();
        match operands {
            Ok((x, acc)) => Expr::make(location, |ops| {
                builder::reduce(ops, Arg::Value(x), acc, &axes.into(), keep_axes, None, folding(fun))
            }),
            Err(error) => Expr(Err(error)),
        }
    }

    /// The elements in each place of a window folded by a function of an element and of what was folded so far,
    /// from `acc` on, which is also what stands around.
    #[track_caller]
    pub fn window_reduce(
        &self,
        acc: impl Into<Operand>,
        window: &[i64],
        options: &WindowOptions,
        fun: impl FnOnce(Expr, Expr) -> Expr,
    ) -> Expr {
        let location = Location::caller();
        let operands: Result<_> = (|| Ok((self.0.clone()?, acc.into().0?)))();
        match operands {
            Ok((x, acc)) => Expr::make(location, |ops| {
                builder::window_reduce(ops, Arg::Value(x), acc, window, options, folding(fun))
            }),
            Err(error) => Expr(Err(error)),
        }
    }
}

impl Tensor {
    /// The elements folded over axes by a function of an element and of what was folded so far, from `acc` on.
    ///
    /// ```
    /// use defn::prelude::*;
    ///
    /// let digits = Tensor::from_slice(&[1, 2, 3], &[3])?;
    /// let number = digits.reduce(0, 0, false, |digit, number| number * 10 + digit)?;
    /// assert_eq!(number.item::<i32>()?, 123);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Axes that the tensor does not have, an accumulator that is no scalar, and a function that gives none of
    /// its element type.
    #[track_caller]
    pub fn reduce(
        &self,
        acc: impl Into<Arg<core::Tensor>>,
        axes: impl Into<Axes>,
        keep_axes: bool,
        fun: impl FnOnce(Expr, Expr) -> Expr,
    ) -> Result<Tensor> {
        let x = Arg::Value(self.0.clone());
        eager(Location::caller(), |ops| {
            builder::reduce(ops, x, acc.into(), &axes.into(), keep_axes, None, folding(fun))
        })
        .map(Tensor)
    }

    /// The elements in each place of a window folded by a function of an element and of what was folded so far,
    /// from `acc` on, which is also what stands around.
    ///
    /// # Errors
    /// As [`Tensor::reduce`], and a window that does not fit.
    #[track_caller]
    pub fn window_reduce(
        &self,
        acc: impl Into<Arg<core::Tensor>>,
        window: &[i64],
        options: &WindowOptions,
        fun: impl FnOnce(Expr, Expr) -> Expr,
    ) -> Result<Tensor> {
        let x = Arg::Value(self.0.clone());
        eager(Location::caller(), |ops| {
            builder::window_reduce(ops, x, acc.into(), window, options, folding(fun))
        })
        .map(Tensor)
    }
}
