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

            /// The axes in `source` moved to the positions in `destination`. The other axes keep their order.
            ///
            /// - Shape: the sizes in the new order, with their names. A name in `destination` is the present position
            ///   of that axis.
            /// - Dtypes: any; unchanged.
            /// - Gradient: `g` with the axes in their former order.
            fn moveaxis(; source: Axes, destination: Axes);
            errors "An axis or a position that the tensor does not have, or that is given twice (`Axis`), and other than one \
                position for each axis (`Option`).";
            example { (x = s32[2][1][3] "0, 1, 2, 3, 4, 5") x.moveaxis("0, -1") == s32[1][3][2] "0, 3, 1, 4, 2, 5" }

            /// The tensor turned `k` times by 90 degrees in the plane of two axes, from the first towards the second.
            ///
            /// - Shape: the sizes of both axes change places if `k` is odd, with their names.
            /// - Dtypes: any; unchanged.
            /// - Gradient: `g`, turned back.
            fn rot90(; k: i64, axes: Axes);
            errors "An axis that the tensor does not have, or that is given twice, and other than two axes (`Axis`).";
            example { (x = s32[2][2] "1, 2, 3, 4") x.rot90("1, [0, 1]") == s32[2][2] "2, 4, 1, 3" }

            /// The tensor with an axis of size 1 if it is a scalar.
            ///
            /// - Shape: at least one axis; axis names are kept.
            /// - Dtypes: any; unchanged.
            /// - Gradient: `g` in the shape of the operand.
            fn atleast_1d(;);
            errors no_own_errors!();
            example { (x = s32 "7") x.atleast_1d() == s32[1] "7" }

            /// The tensor with axes of size 1 in front, so that there are at least two.
            ///
            /// - Shape: at least two axes; axis names are kept.
            /// - Dtypes: any; unchanged.
            /// - Gradient: `g` in the shape of the operand.
            fn atleast_2d(;);
            errors no_own_errors!();
            example { (x = s32[2] "1, 2") x.atleast_2d() == s32[1][2] "1, 2" }

            /// The tensor with axes of size 1, so that there are at least three: on both sides of a vector, and after a
            /// matrix.
            ///
            /// - Shape: at least three axes; axis names are kept.
            /// - Dtypes: any; unchanged.
            /// - Gradient: `g` in the shape of the operand.
            fn atleast_3d(;);
            errors no_own_errors!();
            example { (x = s32[2] "1, 2") x.atleast_3d() == s32[1][2][1] "1, 2" }
        }
    };
}
