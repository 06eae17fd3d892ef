//! Products of vectors at all their positions, and polynomials.

/// The rows, passed to the macro `$then`.
#[doc(hidden)]
#[macro_export]
macro_rules! sequence_functions {
    ($then:ident) => {
        $then! {
            /// The discrete convolution of two vectors, at the positions of [`Overlap`](crate::Overlap). Floats of at least
            /// 512 elements are multiplied as Fourier transforms: their errors are relative to the greatest result.
            ///
            /// - Shape: a vector, without a name.
            /// - Dtypes: any but bool; promoted. Integers are summed in f64, exactly up to 2^53, and wrap.
            /// - Gradient: through the definition, to both.
            fn convolve(other; mode: Overlap);
            errors "Bools (`DType`), and operands that are no vectors or have no elements (`Shape`).";
            example {
                (x = s32[3] "1, 2, 3", y = s32[2] "1, 10")
                x.convolve("&y, Overlap::Full") == s32[4] "1, 12, 23, 30"
            }

            /// The sums of products of a vector with the conjugate of another at all its positions, as
            /// [`convolve`](Self::convolve) without turning it around.
            ///
            /// - Shape: a vector, without a name.
            /// - Dtypes: any but bool; promoted. Integers are summed in f64, exactly up to 2^53, and wrap.
            /// - Gradient: through the definition, to both.
            fn correlate(other; mode: Overlap);
            errors "Bools (`DType`), and operands that are no vectors or have no elements (`Shape`).";
            example {
                (x = s32[3] "1, 2, 3", y = s32[2] "1, 10")
                x.correlate("&y, Overlap::Valid") == s32[2] "21, 32"
            }

            /// The values of the polynomial with these coefficients, that of the greatest power first, by Horner's rule.
            ///
            /// - Shape: that of the operand; axis names are kept. The coefficients are a vector.
            /// - Dtypes: any; promoted, bools to s32. Integers wrap.
            /// - Gradient: through the definition, to both.
            fn polyval(x;);
            errors "Coefficients that are no vector (`Shape`).";
            example { (p = s32[3] "1, 0, 2", x = s32[2] "3, -1") p.polyval("&x") == s32[2] "11, 3" }

            /// The coefficients of the polynomial of a degree that is nearest to points by least squares, that of the
            /// greatest power first.
            ///
            /// - Shape: a vector of `deg + 1` elements. The points are vectors of one size.
            /// - Dtypes: any but complex; promoted, integers and bools to f32.
            /// - Gradient: through the definition, to both.
            fn polyfit(y; deg: usize);
            errors "Complex elements (`DType`), points that are no vectors of one size, and no point (`Shape`).";
            example {
                (x = f64[3] "0.0, 0.0, 0.0", y = f64[3] "2.0, 2.0, 2.0")
                x.polyfit("&y, 0").round() == f64[1] "2.0"
            }

            /// The correlation coefficients of variables: covariances divided by the standard deviations of both. The
            /// variables are the rows of a matrix, or without `rowvar` its columns. Of a vector it is 1.
            ///
            /// - Shape: a square matrix without names; of a vector a scalar.
            /// - Dtypes: any; integers and bools become f32.
            /// - Gradient: through the definition.
            fn corrcoef(; rowvar: bool);
            errors "Another rank than 1 and 2, and variables without values (`Shape`).";
            example { (x = f32[2][2] "1.0, 2.0, 5.0, 3.0") x.corrcoef("true") == f32[2][2] "1.0, -1.0, -1.0, 1.0" }
        }
    };
}
