//! Positions in an ordered vector.

/// The rows, passed to the macro `$then`.
#[doc(hidden)]
#[macro_export]
macro_rules! search_functions {
    ($then:ident) => {
        $then! {
            /// The positions at which values belong in this ordered vector: the numbers of its elements before them. The
            /// search is binary; that the elements ascend is not checked. NaN is above every number.
            ///
            /// - Shape: that of the values, with their names. [`Side`](crate::Side) is that of equal elements on which the
            ///   position is.
            /// - Dtypes: any but complex, compared exactly; the result is s32, or s64 where the vector needs it.
            /// - Gradient: zero.
            fn searchsorted(values; side: Side);
            errors "A tensor that is no vector (`Shape`), and complex elements (`DType`).";
            example {
                (x = s32[4] "1, 3, 3, 5", at = s32[3] "3, 0, 9")
                x.searchsorted("&at, Side::Right") == s32[3] "3, 0, 4"
            }

            /// The bin of each element among ascending or descending edges: the number of edges before it. A bin has its
            /// lower edge, with `right` its upper one. The order is not checked. NaN is above every number.
            ///
            /// - Shape: unchanged; axis names are kept. The edges are a vector.
            /// - Dtypes: any but complex, compared exactly; the result is s32, or s64 where the edges need it.
            /// - Gradient: zero.
            fn digitize(bins; right: bool);
            errors "Edges that are no vector (`Shape`), and complex elements (`DType`).";
            example {
                (x = s32[3] "3, 0, 9", edges = s32[3] "1, 3, 5")
                x.digitize("&edges, false") == s32[3] "2, 0, 3"
            }

            /// The values of straight lines between points with ascending positions `xp` and values `fp`. Before the first
            /// point it is `left`, behind the last one `right`, by default the values of those points. With a `period`
            /// the points are taken modulo it, in any order, and repeat.
            ///
            /// - Shape: unchanged; axis names are kept. The points are vectors of one size.
            /// - Dtypes: any; promoted, integers and bools to f32. Positions are not complex.
            /// - Gradient: through the definition, to all three.
            fn interp(xp, fp; left: Option<f64>, right: Option<f64>, period: Option<f64>);
            errors "Points that are no vectors of one size, and no point (`Shape`), complex positions (`DType`), and a period \
                of 0 (`Option`).";
            example {
                (x = f32[3] "0.5, 2.0, 9.0", xp = f32[3] "0.0, 1.0, 3.0", fp = f32[3] "2.0, 4.0, 8.0")
                x.interp("&xp, &fp, None, None, None") == f32[3] "3.0, 6.0, 8.0"
            }
        }
    };
}
