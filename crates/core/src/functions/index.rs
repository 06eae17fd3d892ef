//! Reads and writes at positions in a tensor.

/// The rows, passed to the macro `$then`.
#[doc(hidden)]
#[macro_export]
macro_rules! index_functions {
    ($then:ident) => {
        $then! {
            /// The elements at positions. The last axis of `indices` holds one position, with an entry for each of
            /// `axes`; [`Axes::All`] stands for the first ones.
            ///
            /// A position below 0 counts from the end. One out of range is refused on tensors; in a compiled function
            /// it is moved to the nearest.
            ///
            /// - Shape: the other axes of the indices, then the axes without an entry. Names are dropped.
            /// - Dtypes: any; unchanged. The indices are integers.
            /// - Gradient: `g` added at the positions that were read; zero to the indices.
            fn gather(indices; axes: Axes);
            errors "Indices that are not integers (`DType`), a scalar of indices or more entries than axes (`Shape`), axes \
                that do not ascend or do not match the entries (`Option`), and on tensors a position out of range \
                (`Bounds`).";
            example {
                (x = s32[2][2] "1, 2, 3, 4", at = s32[3][2] "0, 1, 1, 0, -1, -1")
                x.gather("&at, Axes::All") == s32[3] "2, 3, 4"
            }

            /// The elements at positions along an axis.
            ///
            /// A position below 0 counts from the end. One out of range is refused on tensors; in a compiled function
            /// it is moved to the nearest.
            ///
            /// - Shape: the axis is replaced by the axes of the indices, with their names.
            /// - Dtypes: any; unchanged. The indices are integers.
            /// - Gradient: `g` added at the positions that were read; zero to the indices.
            fn take(indices; axis: AxisRef);
            errors "Indices that are not integers (`DType`), an axis that the tensor does not have or names that differ \
                (`Axis`), and on tensors a position out of range (`Bounds`).";
            example { (x = s32[3] "10, 20, 30", at = s32[2][2] "2, 0, 1, -1") x.take("&at, 0") == s32[2][2] "30, 10, 20, 30" }

            /// The elements at positions along an axis, with positions of its own for each place along the other
            /// axes. It applies what [`argsort`](Self::argsort) returns.
            ///
            /// A position below 0 counts from the end. One out of range is refused on tensors; in a compiled function
            /// it is moved to the nearest.
            ///
            /// - Shape: that of the indices, which equals that of the tensor except on the axis; names of the tensor
            ///   are kept.
            /// - Dtypes: any; unchanged. The indices are integers.
            /// - Gradient: `g` added at the positions that were read; zero to the indices.
            fn take_along_axis(indices; axis: AxisRef);
            errors "Indices that are not integers (`DType`), another axis that differs (`Shape`), an axis that the tensor \
                does not have (`Axis`), and on tensors a position out of range (`Bounds`).";
            example { (x = s32[2][2] "1, 2, 3, 4", at = s32[2][1] "1, 0") x.take_along_axis("&at, 1") == s32[2][1] "2, 3" }

            /// Values in the place of the elements at positions along an axis, with positions of its own for each place along
            /// the other axes, as [`take_along_axis`](Self::take_along_axis) reads them. Of several values of one element
            /// the last one stays.
            ///
            /// A position below 0 counts from the end. One out of range is refused on tensors; in a compiled function its
            /// value is dropped.
            ///
            /// - Shape: unchanged; axis names are kept. The values broadcast to the shape of the indices, which equals
            ///   that of the tensor except on the axis.
            /// - Dtypes: any; promoted. The indices are integers.
            /// - Gradient: `g` where nothing was put, and at the positions to the values; zero to the indices.
            fn put_along_axis(indices, values; axis: AxisRef);
            errors "Indices that are not integers (`DType`), another axis that differs and values that do not broadcast \
                (`Shape`), an axis that the tensor does not have (`Axis`), and on tensors a position out of range (`Bounds`).";
            example {
                (x = s32[2][2] "1, 2, 3, 4", at = s32[2][1] "1, 0", values = s32[2][1] "7, 8")
                x.put_along_axis("&at, &values, 1") == s32[2][2] "1, 7, 8, 4"
            }

            /// Updates added to the elements at positions; each row of `indices` is a position, with an entry for
            /// each of `axes`. Several updates of one element add up.
            ///
            /// Entries below 0 count from the end. An update out of range is refused on tensors; in a compiled
            /// function it is dropped.
            ///
            /// - Shape: unchanged. Indices are `[n][k]`. Updates have `n` on their first axis, then the axes without
            ///   an entry; smaller ones update the first elements there.
            /// - Dtypes: any, promoted, but not two bools. The indices are integers.
            /// - Gradient: `g` to the tensor, `g` at the positions to the updates; zero to the indices.
            fn indexed_add(indices, updates; axes: Axes);
            errors "Indices that are not integers, and two bools (`DType`), indices with more than two axes or updates that \
                do not fit (`Shape`), axes that do not ascend or do not match the entries (`Option`), and on tensors a \
                position out of range (`Bounds`).";
            example {
                (x = s32[3] "0, 0, 0", at = s32[3][1] "1, 2, 1", updates = s32[3] "1, 2, 3")
                x.indexed_add("&at, &updates, Axes::All") == s32[3] "0, 4, 2"
            }

            /// Updates in place of the elements at positions; each row of `indices` is a position, with an entry for
            /// each of `axes`. Of several updates of one element the last one stays.
            ///
            /// Entries below 0 count from the end. An update out of range is refused on tensors; in a compiled
            /// function it is dropped.
            ///
            /// - Shape: unchanged. Indices are `[n][k]`. Updates have `n` on their first axis, then the axes without
            ///   an entry; smaller ones update the first elements there.
            /// - Dtypes: any, promoted. The indices are integers.
            /// - Gradient: `g` to the tensor, with zeros at the positions; `g` there to the updates; zero to the
            ///   indices.
            fn indexed_put(indices, updates; axes: Axes);
            errors "Indices that are not integers (`DType`), indices with more than two axes or updates that do not fit \
                (`Shape`), axes that do not ascend or do not match the entries (`Option`), and on tensors a position out of \
                range (`Bounds`).";
            example {
                (x = s32[3] "0, 0, 0", at = s32[2][1] "2, 0", updates = s32[2] "7, 8")
                x.indexed_put("&at, &updates, Axes::All") == s32[3] "8, 0, 7"
            }

            /// The sums of the elements along the first axis that have the same id, for the ids from 0 to
            /// `num_segments - 1`. A sum without elements is 0.
            ///
            /// - Shape: `num_segments` in the place of the first axis, without its name. There is one id for each
            ///   element of that axis. An element with an id out of this range is left out.
            /// - Dtypes: any; bools are counted as s32, other types stay. The ids are integers.
            /// - Gradient: `g` of its segment to each element; zero to the ids.
            fn segment_sum(segment_ids; num_segments: usize);
            errors "Ids that are not integers (`DType`), and ids that are not one for each element of the first axis \
                (`Shape`).";
            example {
                (x = s32[4] "1, 2, 3, 4", at = s32[4] "0, 2, 0, 3")
                x.segment_sum("&at, 3") == s32[3] "4, 0, 2"
            }

            /// The products of the elements along the first axis that have the same id, for the ids from 0 to
            /// `num_segments - 1`. A product without elements is 1.
            ///
            /// - Shape: `num_segments` in the place of the first axis, without its name. There is one id for each
            ///   element of that axis. An element with an id out of this range is left out.
            /// - Dtypes: any; bools become s32, other types stay. The ids are integers.
            /// - Gradient: `g` times the product of the other elements, exact where elements are 0; zero to the ids.
            fn segment_product(segment_ids; num_segments: usize);
            errors "Ids that are not integers (`DType`), and ids that are not one for each element of the first axis \
                (`Shape`).";
            example {
                (x = s32[4] "2, 5, 3, 4", at = s32[4] "0, 2, 0, 3")
                x.segment_product("&at, 3") == s32[3] "6, 1, 5"
            }

            /// The greatest of the elements along the first axis that have the same id, for the ids from 0 to
            /// `num_segments - 1`. Without elements it is the least value of the type: -inf, false or the least
            /// integer.
            ///
            /// - Shape: `num_segments` in the place of the first axis, without its name. There is one id for each
            ///   element of that axis. An element with an id out of this range is left out.
            /// - Dtypes: any but complex; unchanged. The ids are integers.
            /// - Gradient: `g` to the element that is the greatest, as in [`max`](Self::max); zero to the ids.
            fn segment_max(segment_ids; num_segments: usize);
            errors "Ids that are not integers and complex elements (`DType`), and ids that are not one for each element of \
                the first axis (`Shape`).";
            example {
                (x = s32[4] "1, 2, 3, 4", at = s32[4] "0, 2, 0, 3")
                x.segment_max("&at, 3") == s32[3] "3, -2147483648, 2"
            }

            /// The least of the elements along the first axis that have the same id, for the ids from 0 to
            /// `num_segments - 1`. Without elements it is the greatest value of the type: inf, true or the greatest
            /// integer.
            ///
            /// - Shape: `num_segments` in the place of the first axis, without its name. There is one id for each
            ///   element of that axis. An element with an id out of this range is left out.
            /// - Dtypes: any but complex; unchanged. The ids are integers.
            /// - Gradient: `g` to the element that is the least, as in [`min`](Self::min); zero to the ids.
            fn segment_min(segment_ids; num_segments: usize);
            errors "Ids that are not integers and complex elements (`DType`), and ids that are not one for each element of \
                the first axis (`Shape`).";
            example {
                (x = s32[4] "1, 2, 3, 4", at = s32[4] "0, 2, 0, 3")
                x.segment_min("&at, 3") == s32[3] "1, 2147483647, 2"
            }
        }
    };
}
