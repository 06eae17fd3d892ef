//! Reductions and scans over axes.

/// The rows, passed to the macro `$then`.
#[doc(hidden)]
#[macro_export]
macro_rules! reduce_functions {
    ($then:ident) => {
        $then! {
            /// The sum of the elements over axes.
            ///
            /// - Shape: `axes` are removed, or with `keep_axes` have size 1. [`Axes::All`] are all axes, an empty
            ///   list is none.
            /// - Dtypes: any; bools become s32, integers of up to 32 bits become s32 or u32, those of 64 bits stay
            ///   s64 or u64. Integers wrap.
            /// - Gradient: `g` to every element.
            fn sum(; axes: Axes, keep_axes: bool);
            errors "An axis that the tensor does not have, or that is given twice (`Axis`).";
            example { (x = s32[2][2] "1, 2, 3, 4") x.sum("1, false") == s32[2] "3, 7" }

            /// The product of the elements over axes.
            ///
            /// - Shape: `axes` are removed, or with `keep_axes` have size 1. [`Axes::All`] are all axes, an empty
            ///   list is none.
            /// - Dtypes: any; bools become s32, integers of up to 32 bits become s32 or u32, those of 64 bits stay
            ///   s64 or u64. Integers wrap.
            /// - Gradient: `g` times the product of the other elements, exact where elements are 0.
            fn product(; axes: Axes, keep_axes: bool);
            errors "An axis that the tensor does not have, or that is given twice (`Axis`).";
            example { (x = s32[2][2] "1, 2, 3, 4") x.product("1, false") == s32[2] "2, 12" }

            /// The sum of a diagonal of the last two axes.
            ///
            /// - Shape: the other axes, with their names.
            /// - Dtypes: any; as [`sum`](Self::sum): bools become s32, integers of up to 32 bits become s32 or u32.
            /// - Gradient: `g` to the elements of the diagonal.
            fn trace(; offset: i64);
            errors "A rank below 2 (`Shape`), and an offset outside of the matrix (`Option`).";
            example { (x = s32[2][2] "1, 2, 3, 4") x.trace("0") == s32 "5" }

            /// The number of elements over axes that are not 0. NaN is not 0.
            ///
            /// - Shape: `axes` are removed, or with `keep_axes` have size 1. [`Axes::All`] are all axes, an empty
            ///   list is none.
            /// - Dtypes: any; the result is s32.
            /// - Gradient: zero.
            fn count_nonzero(; axes: Axes, keep_axes: bool);
            errors "An axis that the tensor does not have, or that is given twice (`Axis`).";
            example { (x = s32[2][2] "1, 0, 3, 4") x.count_nonzero("1, false") == s32[2] "1, 2" }

            /// The greatest element over axes minus the least; NaN if any element is NaN.
            ///
            /// - Shape: `axes` are removed, or with `keep_axes` have size 1. [`Axes::All`] are all axes, an empty
            ///   list is none.
            /// - Dtypes: any but bool and complex; unchanged. Integers wrap.
            /// - Gradient: `g`, in equal shares to the greatest elements, and `-g` to the least.
            fn ptp(; axes: Axes, keep_axes: bool);
            errors "An axis that the tensor does not have, or that is given twice (`Axis`); nothing to reduce (`Shape`); \
                bools and complex elements (`DType`).";
            example { (x = s32[2][2] "1, 5, 3, 4") x.ptp("1, false") == s32[2] "4, 1" }

            /// The greatest element over axes; NaN if any element is NaN. [`max`](Self::max) compares two operands
            /// instead.
            ///
            /// - Shape: `axes` are removed, or with `keep_axes` have size 1. [`Axes::All`] are all axes, an empty
            ///   list is none.
            /// - Dtypes: any but complex; unchanged.
            /// - Gradient: `g`, in equal shares to the elements that are the greatest.
            fn reduce_max(; axes: Axes, keep_axes: bool);
            errors "An axis that the tensor does not have, or that is given twice (`Axis`); nothing to reduce (`Shape`); \
                complex elements (`DType`).";
            example { (x = s32[2][2] "1, 5, 7, 3") x.reduce_max("1, false") == s32[2] "5, 7" }

            /// The least element over axes; NaN if any element is NaN. [`min`](Self::min) compares two operands
            /// instead.
            ///
            /// - Shape: `axes` are removed, or with `keep_axes` have size 1. [`Axes::All`] are all axes, an empty
            ///   list is none.
            /// - Dtypes: any but complex; unchanged.
            /// - Gradient: `g`, in equal shares to the elements that are the least.
            fn reduce_min(; axes: Axes, keep_axes: bool);
            errors "An axis that the tensor does not have, or that is given twice (`Axis`); nothing to reduce (`Shape`); \
                complex elements (`DType`).";
            example { (x = s32[2][2] "1, 5, 7, 3") x.reduce_min("0, true") == s32[1][2] "1, 3" }

            /// Whether no element over axes is zero. NaN is not zero.
            ///
            /// - Shape: `axes` are removed, or with `keep_axes` have size 1. [`Axes::All`] are all axes, an empty
            ///   list is none.
            /// - Dtypes: any; the result is bool.
            /// - Gradient: zero.
            fn all(; axes: Axes, keep_axes: bool);
            errors "An axis that the tensor does not have, or that is given twice (`Axis`).";
            example { (x = s32[2][2] "1, 2, 3, 0") x.all("1, false") == bool[2] "true, false" }

            /// Whether an element over axes is not zero. NaN is not zero.
            ///
            /// - Shape: `axes` are removed, or with `keep_axes` have size 1. [`Axes::All`] are all axes, an empty
            ///   list is none.
            /// - Dtypes: any; the result is bool.
            /// - Gradient: zero.
            fn any(; axes: Axes, keep_axes: bool);
            errors "An axis that the tensor does not have, or that is given twice (`Axis`).";
            example { (x = s32[2][2] "0, 2, 0, 0") x.any("1, false") == bool[2] "true, false" }

            /// The sum of the elements over axes, divided by their number.
            ///
            /// - Shape: `axes` are removed, or with `keep_axes` have size 1. [`Axes::All`] are all axes, an empty
            ///   list is none.
            /// - Dtypes: any; integers and bools become f32. Sums accumulate in wider types, so that they neither
            ///   wrap nor overflow.
            /// - Gradient: `g / n` to every element.
            fn mean(; axes: Axes, keep_axes: bool);
            errors "An axis that the tensor does not have, or that is given twice (`Axis`); nothing to reduce (`Shape`).";
            example { (x = s32[4] "1, 2, 3, 4") x.mean("Axes::All, false") == f32 "2.5" }

            /// The mean squared deviation from the mean over axes. The divisor is the number of elements less `ddof`.
            ///
            /// - Shape: `axes` are removed, or with `keep_axes` have size 1. [`Axes::All`] are all axes, an empty
            ///   list is none.
            /// - Dtypes: any; integers and bools become f32.
            /// - Gradient: through the definition.
            fn variance(; axes: Axes, keep_axes: bool, ddof: i64);
            errors "An axis that the tensor does not have, or that is given twice (`Axis`); nothing to reduce (`Shape`).";
            example { (x = f32[4] "1.0, 3.0, 1.0, 5.0") x.variance("Axes::All, false, 0") == f32 "2.75" }

            /// The square root of the [`variance`](Self::variance) over axes.
            ///
            /// - Shape: `axes` are removed, or with `keep_axes` have size 1. [`Axes::All`] are all axes, an empty
            ///   list is none.
            /// - Dtypes: any; integers and bools become f32.
            /// - Gradient: through the definition.
            fn standard_deviation(; axes: Axes, keep_axes: bool, ddof: i64);
            errors "An axis that the tensor does not have, or that is given twice (`Axis`); nothing to reduce (`Shape`).";
            example { (x = f32[4] "1.0, 3.0, 1.0, 3.0") x.standard_deviation("0, false, 0") == f32 "1.0" }

            /// The middle element in order, or the mean of the two in the middle, along an axis or of all elements.
            /// NaN sorts above every number.
            ///
            /// - Shape: `axis` is removed, or with `keep_axis` has size 1. Without an axis the result is a scalar.
            /// - Dtypes: any but complex; unchanged for an odd number of elements, else integers and bools become
            ///   f32.
            /// - Gradient: `g` to the middle elements.
            fn median(; axis: Option<AxisRef>, keep_axis: bool);
            errors "An axis that the tensor does not have (`Axis`), no element (`Shape`), and complex elements (`DType`).";
            example { (x = s32[2][3] "1, 5, 3, 9, 7, 8") x.median("Some(1.into()), false") == s32[2] "3, 8" }

            /// The most frequent element, the least of equally frequent ones, along an axis or of all elements. Each
            /// NaN counts once, because it equals nothing.
            ///
            /// - Shape: `axis` is removed, or with `keep_axis` has size 1. Without an axis the result is a scalar.
            /// - Dtypes: any but complex; unchanged.
            /// - Gradient: `g` to one of the elements equal to the result.
            fn mode(; axis: Option<AxisRef>, keep_axis: bool);
            errors "An axis that the tensor does not have (`Axis`), no element (`Shape`), and complex elements (`DType`).";
            example { (x = s32[2][3] "1, 5, 5, 9, 7, 8") x.mode("Some(1.into()), false") == s32[2] "5, 7" }

            /// Each element minus the one before it along an axis, applied `order` times.
            ///
            /// - Shape: `axis` is shorter by `order`; axis names are kept.
            /// - Dtypes: any but bool; unchanged. Unsigned differences wrap.
            /// - Gradient: through the definition.
            fn diff(; order: i64, axis: AxisRef);
            errors "Bools (`DType`), a scalar (`Shape`), an axis that the tensor does not have (`Axis`), and an order that \
                is negative or above the size of the axis (`Option`).";
            example { (x = s32[4] "1, 4, 9, 16") x.diff("1, -1") == s32[3] "3, 5, 7" }

            /// The sum of the elements up to each position of an axis, or with `reverse` from it on.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any; unchanged, but bools become s32. Integers wrap.
            /// - Gradient: the cumulative sum of `g` in the opposite direction.
            fn cumulative_sum(; axis: AxisRef, reverse: bool);
            errors "An axis that the tensor does not have (`Axis`).";
            example { (x = s32[3] "1, 3, 2") x.cumulative_sum("0, false") == s32[3] "1, 4, 6" }

            /// The product of the elements up to each position of an axis, or with `reverse` from it on.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any; unchanged, but bools become s32. Integers wrap.
            /// - Gradient: `g` times the other factors, exact where elements are 0.
            fn cumulative_product(; axis: AxisRef, reverse: bool);
            errors "An axis that the tensor does not have (`Axis`).";
            example { (x = s32[3] "1, 3, 2") x.cumulative_product("0, true") == s32[3] "6, 6, 2" }

            /// The greatest element of the elements up to each position of an axis, or with `reverse` from it on;
            /// from the first NaN on it is NaN.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any but complex; unchanged.
            /// - Gradient: `g` at each position to the element that is the result there.
            fn cumulative_max(; axis: AxisRef, reverse: bool);
            errors "An axis that the tensor does not have (`Axis`), and complex elements (`DType`).";
            example { (x = s32[3] "1, 3, 2") x.cumulative_max("0, false") == s32[3] "1, 3, 3" }

            /// The least element of the elements up to each position of an axis, or with `reverse` from it on; from
            /// the first NaN on it is NaN.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any but complex; unchanged.
            /// - Gradient: `g` at each position to the element that is the result there.
            fn cumulative_min(; axis: AxisRef, reverse: bool);
            errors "An axis that the tensor does not have (`Axis`), and complex elements (`DType`).";
            example { (x = s32[3] "1, 3, 2") x.cumulative_min("0, true") == s32[3] "1, 2, 2" }
        }
    };
}
