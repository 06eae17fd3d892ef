//! Shapes and the order of elements.

/// The rows, passed to the macro `$then`.
#[doc(hidden)]
#[macro_export]
macro_rules! shape_functions {
    ($then:ident) => {
        $then! {
            /// Adjacent axes merged into one.
            ///
            /// - Shape: the merged axis has the product of the sizes and no name; other axes keep theirs.
            /// - Dtypes: any; unchanged.
            /// - Gradient: `g` in the shape of the operand.
            fn flatten(; axes: Axes);
            errors "Axes that are not adjacent (`Option`), and one that the tensor does not have (`Axis`).";
            example { (x = s32[1][2][2] "0, 1, 2, 3") x.flatten("[1, 2]") == s32[1][4] "0, 1, 2, 3" }

            /// The tensor without axes of size 1: all of them for [`Axes::All`], or those given.
            ///
            /// - Shape: without those axes; other axes keep their names.
            /// - Dtypes: any; unchanged.
            /// - Gradient: `g` with the axes put back.
            fn squeeze(; axes: Axes);
            errors "A given axis of another size (`Shape`), or that the tensor does not have (`Axis`).";
            example { (x = s32[1][3][1] "1, 2, 3") x.squeeze("Axes::All") == s32[3] "1, 2, 3" }

            /// The axes in another order: axis `axes[i]` becomes axis `i`. [`Axes::All`] reverses the order.
            ///
            /// - Shape: the sizes in the new order, with their names.
            /// - Dtypes: any; unchanged.
            /// - Gradient: `g` with the axes in their former order.
            fn transpose(; axes: Axes);
            errors "Axes that do not name every axis once (`Axis`).";
            example { (x = s32[2][3] "0, 1, 2, 3, 4, 5") x.transpose("[1, 0]") == s32[3][2] "0, 3, 1, 4, 2, 5" }

            /// The elements in reverse order along axes.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any; unchanged.
            /// - Gradient: `g`, reversed.
            fn reverse(; axes: Axes);
            errors "An axis that the tensor does not have, or that is given twice (`Axis`).";
            example { (x = s32[3] "1, 2, 3") x.reverse("Axes::All") == s32[3] "3, 2, 1" }
        }
    };
}
