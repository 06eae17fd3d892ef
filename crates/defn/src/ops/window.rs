//! Windows and convolutions.

use defn_core as core;
use defn_core::builder::{Arg, BuildWindow, ConvOptions, WindowOptions};
use defn_core::{Location, Result};

use super::eager;
use crate::expr::Operand;
use crate::{Expr, Tensor};

with_operands! {
    /// The sum of the elements at each position of a window.
    ///
    /// - Shape: one size per axis in `window`; the result has one element per position of the window, as `options` say.
    ///   Axis names are kept. Padding counts as 0.
    /// - Dtypes: any; unchanged, but bools become s32. Integers wrap.
    /// - Gradient: the sum of `g` over the windows that hold the element.
    fn window_sum(; window: &[i64], options: &WindowOptions)
        |ops, x| ops.window_sum(x, window, options);
    errors "An option without one entry per axis, and a window that does not fit once (`Shape`); an entry below 1 \
        (`Option`).";
    example { (x = s32[4] "1, 2, 3, 4") x.window_sum("&[2], &WindowOptions::default()") == s32[3] "3, 5, 7" }

    /// The product of the elements at each position of a window.
    ///
    /// - Shape: one size per axis in `window`; the result has one element per position of the window, as `options` say.
    ///   Axis names are kept. Padding counts as 1.
    /// - Dtypes: any; unchanged, but bools become s32. Integers wrap.
    /// - Gradient: none, it is refused.
    fn window_product(; window: &[i64], options: &WindowOptions)
        |ops, x| ops.window_product(x, window, options);
    errors "An option without one entry per axis, and a window that does not fit once (`Shape`); an entry below 1 \
        (`Option`).";
    example {
        (x = s32[4] "1, 2, 3, 4")
        x.window_product("&[2], &WindowOptions { padding: WindowPadding::Same, ..Default::default() }")
            == s32[4] "2, 6, 12, 4"
    }

    /// The greatest element at each position of a window; NaN if any element is NaN.
    ///
    /// - Shape: one size per axis in `window`; the result has one element per position of the window, as `options` say.
    ///   Axis names are kept. Padding is never the greatest.
    /// - Dtypes: any but complex; unchanged.
    /// - Gradient: `g` to the greatest element of each window, the last of equal ones.
    fn window_max(; window: &[i64], options: &WindowOptions)
        |ops, x| ops.window_max(x, window, options);
    errors "An option without one entry per axis, and a window that does not fit once (`Shape`); an entry below 1 \
        (`Option`); complex elements (`DType`).";
    example {
        (x = s32[4] "1, 4, 3, 2")
        x.window_max("&[2], &WindowOptions { strides: 2.into(), ..Default::default() }") == s32[2] "4, 3"
    }

    /// The least element at each position of a window; NaN if any element is NaN.
    ///
    /// - Shape: one size per axis in `window`; the result has one element per position of the window, as `options` say.
    ///   Axis names are kept. Padding is never the least.
    /// - Dtypes: any but complex; unchanged.
    /// - Gradient: `g` to the least element of each window, the last of equal ones.
    fn window_min(; window: &[i64], options: &WindowOptions)
        |ops, x| ops.window_min(x, window, options);
    errors "An option without one entry per axis, and a window that does not fit once (`Shape`); an entry below 1 \
        (`Option`); complex elements (`DType`).";
    example {
        (x = s32[4] "1, 4, 3, 2")
        x.window_min("&[2], &WindowOptions { dilations: 2.into(), ..Default::default() }") == s32[2] "1, 2"
    }

    /// The mean of the elements at each position of a window.
    ///
    /// - Shape: one size per axis in `window`; the result has one element per position of the window, as `options` say.
    ///   Axis names are kept. Padding counts as zeros, which are among the elements.
    /// - Dtypes: any; integers and bools become f32. Sums accumulate as in [`mean`](Self::mean).
    /// - Gradient: the sum of `g / n` over the windows that hold the element.
    fn window_mean(; window: &[i64], options: &WindowOptions)
        |ops, x| ops.window_mean(x, window, options);
    errors "An option without one entry per axis, and a window that does not fit once (`Shape`); an entry below 1 \
        (`Option`).";
    example {
        (x = s32[4] "1, 2, 3, 4")
        x.window_mean("&[2], &WindowOptions { strides: 2.into(), ..Default::default() }") == f32[2] "1.5, 3.5"
    }

    /// `init` everywhere, plus each element of `source` at the position of its window's greatest element, the last of
    /// equal ones. NaN counts as the greatest. Padding receives nothing.
    ///
    /// - Shape: that of the tensor, with its names. `source` has one element per position of the window, `init` is a
    ///   scalar.
    /// - Dtypes: any but complex; `source` and `init` are promoted, but not two bools. Integers wrap.
    /// - Gradient: `g` at the selected positions to `source`, its sum to `init`; zero to the tensor.
    fn window_scatter_max(source, init; window: &[i64], options: &WindowOptions)
        |ops, x| ops.window_scatter_max(x, source, init, window, options);
    errors "A source without one element per position, and what a window refuses (`Shape`, `Option`); complex \
        elements and two bools (`DType`).";
    example {
        (x = s32[4] "1, 4, 4, 2", source = s32[2] "10, 20")
        x.window_scatter_max("&source, 0, &[2], &WindowOptions { strides: 2.into(), ..Default::default() }")
            == s32[4] "0, 10, 20, 0"
    }

    /// `init` everywhere, plus each element of `source` at the position of its window's least element, the last of
    /// equal ones. NaN counts as the least. Padding receives nothing.
    ///
    /// - Shape: that of the tensor, with its names. `source` has one element per position of the window, `init` is a
    ///   scalar.
    /// - Dtypes: any but complex; `source` and `init` are promoted, but not two bools. Integers wrap.
    /// - Gradient: `g` at the selected positions to `source`, its sum to `init`; zero to the tensor.
    fn window_scatter_min(source, init; window: &[i64], options: &WindowOptions)
        |ops, x| ops.window_scatter_min(x, source, init, window, options);
    errors "A source without one element per position, and what a window refuses (`Shape`, `Option`); complex \
        elements and two bools (`DType`).";
    example {
        (x = s32[4] "1, 4, 4, 2", source = s32[2] "10, 20")
        x.window_scatter_min("&source, 0, &[2], &WindowOptions { strides: 2.into(), ..Default::default() }")
            == s32[4] "10, 0, 0, 20"
    }

    /// The convolution with a kernel that is not flipped: sums of products of the kernel and the part of the tensor
    /// under it, at each of its positions. Roles of axes, groups and dilations are in [`ConvOptions`].
    ///
    /// - Shape: `x` is `[batch][channels][spatial]..`, the kernel `[output channels][channels][spatial]..`, the result
    ///   `[batch][output channels][positions]..`, unless the permutations of `options` say otherwise.
    /// - Dtypes: any; floats and complex are unchanged, others become f32. Floats of 8 and 16 bits accumulate in f32.
    /// - Gradient: `g` convolved with the kernel, and `x` convolved with `g`.
    fn conv(kernel; options: &ConvOptions) |ops, x| ops.conv(x, kernel, options);
    errors "Ranks that differ or are below 3, channels or groups that do not match, an option without one entry per \
        spatial axis, and a kernel that does not fit once (`Shape`); an entry below 1 (`Option`); a permutation that \
        does not name every axis once (`Axis`, `Option`).";
    example {
        (x = f32[1][1][5] "0.0, 1.0, 2.0, 3.0, 4.0", kernel = f32[1][1][2] "1.0, 10.0")
        x.conv("&kernel, &ConvOptions { strides: 2.into(), ..Default::default() }") == f32[1][1][2] "10.0, 32.0"
    }
}
