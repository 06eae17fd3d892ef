//! Element-wise functions.

/// The rows, passed to the macro `$then`.
#[doc(hidden)]
#[macro_export]
macro_rules! elementwise_functions {
    ($then:ident) => {
        $then! {
            /// Whether `x` is zero.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any; the result is bool.
            /// - Gradient: zero.
            fn logical_not(;);
            errors no_own_errors!();
            example { (x = s32[2] "0, 3") x.logical_not() == bool[2] "true, false" }

            /// The angle of a complex number, `atan2(imag, real)`.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any; complex numbers become floats of half the width, integers and bools become f32.
            /// - Gradient: through `atan2`.
            fn phase(;);
            errors no_own_errors!();
            example { (x = f32[2] "2.0, -2.0") x.phase() == f32[2] "0.0, std::f32::consts::PI" }

            /// The elements converted to another dtype.
            ///
            /// Integers wrap. A float becomes an integer without its fraction, the nearest integer in range, or 0 for
            /// NaN. A complex number becomes real without its imaginary part. A narrower float is the nearest one,
            /// ties to even. Everything but 0 becomes true.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any to any.
            /// - Gradient: `g`, also through integers; zero through bools.
            fn as_type(; dtype: DType);
            errors no_own_errors!();
            example { (x = f32[3] "1.9, -1.9, 300.0") x.as_type("DType::U8") == u8[3] "1, 0, 255" }

            /// The bits of each element read as another dtype of the same width.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any but complex, to one of the same width.
            /// - Gradient: `g`.
            fn bitcast(; dtype: DType);
            errors "Dtypes of different widths, and complex ones (`DType`).";
            example { (x = f32[1] "1.0") x.bitcast("DType::U32") == u32[1] "0x3f80_0000" }
        }
    };
}
