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

            /// Whether `x` is neither infinite nor NaN; of a complex number, whether both parts are.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any; the result is bool.
            /// - Gradient: zero.
            fn isfinite(;);
            errors no_own_errors!();
            example { (x = f32[3] "1.0, f32::INFINITY, f32::NAN") x.isfinite() == bool[3] "true, false, false" }

            /// Whether the sign bit is set, also that of -0.0 and of NaN. Bools and unsigned integers have none.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any but complex; the result is bool.
            /// - Gradient: zero.
            fn signbit(;);
            errors "A complex operand (`DType`).";
            example { (x = f32[3] "-0.0, 0.0, -1.0") x.signbit() == bool[3] "true, false, true" }

            /// `x * x`; integers wrap.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any; unchanged.
            /// - Gradient: `2 * g * x`.
            fn square(;);
            errors no_own_errors!();
            example { (x = s32[2] "3, -4") x.square() == s32[2] "9, 16" }

            /// `1 / x`.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any; integers and bools become f32.
            /// - Gradient: `-g * y^2`.
            fn reciprocal(;);
            errors no_own_errors!();
            example { (x = f32[3] "2.0, -4.0, 0.0") x.reciprocal() == f32[3] "0.5, -0.25, f32::INFINITY" }

            /// The number without its fraction; the identity on integers and bools.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any but complex; unchanged.
            /// - Gradient: zero for floats, `g` for integers and bools.
            fn trunc(;);
            errors "A complex operand (`DType`).";
            example { (x = f32[2] "-1.5, 1.5") x.trunc() == f32[2] "-1.0, 1.0" }

            /// `2^x`.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any; integers and bools become f32.
            /// - Gradient: `g * y * log(2)`.
            fn exp2(;);
            errors no_own_errors!();
            example { (x = s32[3] "-1, 0, 10") x.exp2() == f32[3] "0.5, 1.0, 1024.0" }

            /// An angle in radians, from degrees.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any but complex; integers and bools become f32.
            /// - Gradient: `g * pi / 180`.
            fn radians(;);
            errors "A complex operand (`DType`).";
            example { (x = f64[2] "0.0, 180.0") x.radians() == f64[2] "0.0, std::f64::consts::PI" }

            /// An angle in degrees, from radians.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any but complex; integers and bools become f32.
            /// - Gradient: `g * 180 / pi`.
            fn degrees(;);
            errors "A complex operand (`DType`).";
            example { (x = f64[2] "0.0, std::f64::consts::PI") x.degrees() == f64[2] "0.0, 180.0" }

            /// `sin(pi x) / (pi x)`, which is 1 at 0.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any; integers and bools become f32.
            /// - Gradient: of the definition, accurate near 0.
            fn sinc(;);
            errors no_own_errors!();
            example { (x = f32[2] "0.0, f32::MIN_POSITIVE") x.sinc() == f32[2] "1.0, 1.0" }

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
