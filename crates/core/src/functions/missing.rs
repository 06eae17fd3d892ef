//! Reductions that leave out NaN.

/// The rows, passed to the macro `$then`.
#[doc(hidden)]
#[macro_export]
macro_rules! missing_functions {
    ($then:ident) => {
        $then! {
            /// The sum over axes of the elements that are not NaN; 0 where there is none.
            ///
            /// - Shape: `axes` are removed, or with `keep_axes` have size 1. [`Axes::All`] are all axes, an empty
            ///   list is none.
            /// - Dtypes: any; as [`sum`](Self::sum).
            /// - Gradient: `g` to the elements that are not NaN.
            fn nansum(; axes: Axes, keep_axes: bool);
            errors "An axis that the tensor does not have, or that is given twice (`Axis`).";
            example { (x = f32[2][2] "1.0, f32::NAN, 3.0, 4.0") x.nansum("1, false") == f32[2] "1.0, 7.0" }

            /// The product over axes of the elements that are not NaN; 1 where there is none.
            ///
            /// - Shape: `axes` are removed, or with `keep_axes` have size 1. [`Axes::All`] are all axes, an empty
            ///   list is none.
            /// - Dtypes: any; as [`product`](Self::product).
            /// - Gradient: `g` times the product of the other elements, to those that are not NaN.
            fn nanprod(; axes: Axes, keep_axes: bool);
            errors "An axis that the tensor does not have, or that is given twice (`Axis`).";
            example { (x = f32[2][2] "1.0, f32::NAN, 3.0, 4.0") x.nanprod("1, false") == f32[2] "1.0, 12.0" }

            /// The greatest element over axes that is not NaN; NaN where there is none.
            ///
            /// - Shape: `axes` are removed, or with `keep_axes` have size 1. [`Axes::All`] are all axes, an empty
            ///   list is none.
            /// - Dtypes: any but complex; unchanged.
            /// - Gradient: `g`, in equal shares to the elements that are the greatest.
            fn nanmax(; axes: Axes, keep_axes: bool);
            errors "An axis that the tensor does not have or that is given twice (`Axis`); nothing to reduce (`Shape`); \
                complex elements (`DType`).";
            example { (x = f32[2][2] "1.0, f32::NAN, 3.0, 4.0") x.nanmax("0, false") == f32[2] "3.0, 4.0" }

            /// The least element over axes that is not NaN; NaN where there is none.
            ///
            /// - Shape: `axes` are removed, or with `keep_axes` have size 1. [`Axes::All`] are all axes, an empty
            ///   list is none.
            /// - Dtypes: any but complex; unchanged.
            /// - Gradient: `g`, in equal shares to the elements that are the least.
            fn nanmin(; axes: Axes, keep_axes: bool);
            errors "An axis that the tensor does not have or that is given twice (`Axis`); nothing to reduce (`Shape`); \
                complex elements (`DType`).";
            example { (x = f32[2][2] "1.0, f32::NAN, 3.0, 4.0") x.nanmin("0, false") == f32[2] "1.0, 4.0" }

            /// The mean over axes of the elements that are not NaN; NaN where there is none.
            ///
            /// - Shape: `axes` are removed, or with `keep_axes` have size 1. [`Axes::All`] are all axes, an empty
            ///   list is none.
            /// - Dtypes: any; integers and bools become f32. Sums accumulate in wider types.
            /// - Gradient: `g / n` to the elements that are not NaN.
            fn nanmean(; axes: Axes, keep_axes: bool);
            errors "An axis that the tensor does not have, or that is given twice (`Axis`); nothing to reduce (`Shape`).";
            example { (x = f32[2][2] "1.0, f32::NAN, 3.0, 4.0") x.nanmean("1, false") == f32[2] "1.0, 3.5" }

            /// The variance over axes of the elements that are not NaN. The divisor is their number less `ddof`; where it is not
            /// positive, the result is NaN.
            ///
            /// - Shape: `axes` are removed, or with `keep_axes` have size 1. [`Axes::All`] are all axes, an empty
            ///   list is none.
            /// - Dtypes: any; integers and bools become f32.
            /// - Gradient: through the definition.
            fn nanvar(; axes: Axes, keep_axes: bool, ddof: i64);
            errors "An axis that the tensor does not have, or that is given twice (`Axis`); nothing to reduce (`Shape`).";
            example { (x = f32[4] "1.0, f32::NAN, 3.0, 2.0") x.nanvar("0, false, 1") == f32 "1.0" }

            /// The square root of [`nanvar`](Self::nanvar) over axes.
            ///
            /// - Shape: `axes` are removed, or with `keep_axes` have size 1. [`Axes::All`] are all axes, an empty
            ///   list is none.
            /// - Dtypes: any; integers and bools become f32.
            /// - Gradient: through the definition.
            fn nanstd(; axes: Axes, keep_axes: bool, ddof: i64);
            errors "An axis that the tensor does not have, or that is given twice (`Axis`); nothing to reduce (`Shape`).";
            example { (x = f32[3] "1.0, f32::NAN, 3.0") x.nanstd("0, false, 0") == f32 "1.0" }

            /// The index of the greatest element that is not NaN along an axis, or without an axis its index in row-major order. It
            /// is the first of equal elements, and -1 where all elements are NaN.
            ///
            /// - Shape: `axis` is removed, or with `keep_axis` has size 1. Without an axis the result is a scalar.
            /// - Dtypes: any but complex; the result is s32, or s64 where the axis needs it.
            /// - Gradient: zero.
            fn nanargmax(; axis: Option<AxisRef>, keep_axis: bool);
            errors "An axis that the tensor does not have (`Axis`), no element (`Shape`), and complex elements (`DType`).";
            example { (x = f32[2][3] "f32::NAN, 5.0, 1.0, 7.0, f32::NAN, f32::NAN") x.nanargmax("Some(1.into()), false") == s32[2] "1, 0" }

            /// The index of the least element that is not NaN along an axis, or without an axis its index in row-major order. It
            /// is the first of equal elements, and -1 where all elements are NaN.
            ///
            /// - Shape: `axis` is removed, or with `keep_axis` has size 1. Without an axis the result is a scalar.
            /// - Dtypes: any but complex; the result is s32, or s64 where the axis needs it.
            /// - Gradient: zero.
            fn nanargmin(; axis: Option<AxisRef>, keep_axis: bool);
            errors "An axis that the tensor does not have (`Axis`), no element (`Shape`), and complex elements (`DType`).";
            example { (x = f32[2][3] "f32::NAN, 5.0, 1.0, 7.0, f32::NAN, f32::NAN") x.nanargmin("Some(1.into()), false") == s32[2] "2, 0" }

            /// The median of the elements that are not NaN, along an axis or of all elements; NaN where there is none.
            ///
            /// - Shape: `axis` is removed, or with `keep_axis` has size 1. Without an axis the result is a scalar.
            /// - Dtypes: any but complex; unchanged, but integers and bools become f32 if their number is even.
            /// - Gradient: `g` to the middle elements.
            fn nanmedian(; axis: Option<AxisRef>, keep_axis: bool);
            errors "An axis that the tensor does not have (`Axis`), no element (`Shape`), and complex elements (`DType`).";
            example { (x = f32[4] "5.0, f32::NAN, 1.0, 2.0") x.nanmedian("None, false") == f32 "2.0" }

            /// The element below which a share of the elements is, along an axis or of all elements; `method` says which of two, or
            /// what between them. NaN among the elements makes it NaN. Shares in a tensor are clipped to 0 and 1.
            ///
            /// - Shape: the axes of `q`, then the others; `axis` is removed, or with `keep_axis` has size 1. Without an axis
            ///   all axes are.
            /// - Dtypes: any but complex; for the methods `Linear` and `Midpoint` integers and bools become f32.
            /// - Gradient: to the elements at the position of the quantile; zero to `q` but for the method `Linear`.
            fn quantile(q; axis: Option<AxisRef>, keep_axis: bool, method: QuantileMethod);
            errors "An axis that the tensor does not have (`Axis`), no element (`Shape`), complex\
                elements (`DType`), and a number `q` out of range (`Option`).";
            example { (x = f32[4] "4.0, 1.0, 3.0, 2.0") x.quantile("0.5, Some(0.into()), false, QuantileMethod::Linear") == f32 "2.5" }

            /// [`quantile`](Self::quantile) for hundredths.
            ///
            /// - Shape: the axes of `q`, then the others; `axis` is removed, or with `keep_axis` has size 1. Without an axis
            ///   all axes are.
            /// - Dtypes: any but complex; for the methods `Linear` and `Midpoint` integers and bools become f32.
            /// - Gradient: to the elements at the position of the quantile; zero to `q` but for the method `Linear`.
            fn percentile(q; axis: Option<AxisRef>, keep_axis: bool, method: QuantileMethod);
            errors "An axis that the tensor does not have (`Axis`), no element (`Shape`), complex\
                elements (`DType`), and a number `q` out of range (`Option`).";
            example { (x = f32[5] "4.0, 1.0, 3.0, 2.0, 5.0") x.percentile("25, None, false, QuantileMethod::Linear") == f32 "2.0" }

            /// [`quantile`](Self::quantile) of the elements that are not NaN; NaN where there is none.
            ///
            /// - Shape: the axes of `q`, then the others; `axis` is removed, or with `keep_axis` has size 1. Without an axis
            ///   all axes are.
            /// - Dtypes: any but complex; for the methods `Linear` and `Midpoint` integers and bools become f32.
            /// - Gradient: to the elements at the position of the quantile; zero to `q` but for the method `Linear`.
            fn nanquantile(q; axis: Option<AxisRef>, keep_axis: bool, method: QuantileMethod);
            errors "An axis that the tensor does not have (`Axis`), no element (`Shape`), complex\
                elements (`DType`), and a number `q` out of range (`Option`).";
            example { (x = f32[4] "4.0, 1.0, f32::NAN, 2.0") x.nanquantile("0.5, None, false, QuantileMethod::Linear") == f32 "2.0" }

            /// [`nanquantile`](Self::nanquantile) for hundredths.
            ///
            /// - Shape: the axes of `q`, then the others; `axis` is removed, or with `keep_axis` has size 1. Without an axis
            ///   all axes are.
            /// - Dtypes: any but complex; for the methods `Linear` and `Midpoint` integers and bools become f32.
            /// - Gradient: to the elements at the position of the quantile; zero to `q` but for the method `Linear`.
            fn nanpercentile(q; axis: Option<AxisRef>, keep_axis: bool, method: QuantileMethod);
            errors "An axis that the tensor does not have (`Axis`), no element (`Shape`), complex\
                elements (`DType`), and a number `q` out of range (`Option`).";
            example { (x = f32[4] "4.0, 1.0, f32::NAN, 2.0") x.nanpercentile("50, None, false, QuantileMethod::Linear") == f32 "2.0" }
        }
    };
}
