//! Special functions of one operand.

/// The rows, passed to the macro `$then`.
#[doc(hidden)]
#[macro_export]
macro_rules! special_functions {
    ($then:ident) => {
        $then! {
            /// `log(|gamma(x)|)`, which is infinite at 0 and at negative integers.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any but complex; integers and bools become f32.
            /// - Gradient: `g * digamma(x)`.
            fn lgamma(;);
            errors "A complex operand (`DType`).";
            example { (x = f32[3] "1.0, 2.0, 0.0") x.lgamma() == f32[3] "0.0, 0.0, f32::INFINITY" }

            /// The derivative of `lgamma`. It is infinite at 0 and NaN at negative integers.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any but complex; integers and bools become f32.
            /// - Gradient: `g * trigamma(x)`.
            fn digamma(;);
            errors "A complex operand (`DType`).";
            example { (x = f32[2] "0.0, f32::INFINITY") x.digamma() == f32[2] "f32::NEG_INFINITY, f32::INFINITY" }

            /// The derivative of `digamma`; infinite at 0 and at negative integers.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any but complex; integers and bools become f32.
            /// - Gradient: of the definition.
            fn trigamma(;);
            errors "A complex operand (`DType`).";
            example { (x = f32[2] "0.0, f32::INFINITY") x.trigamma() == f32[2] "f32::INFINITY, 0.0" }

            /// The modified Bessel function of the first kind of order 0.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any but complex; integers and bools become f32.
            /// - Gradient: `g * i1(x)`.
            fn i0(;);
            errors "A complex operand (`DType`).";
            example { (x = f32[2] "0.0, f32::INFINITY") x.i0() == f32[2] "1.0, f32::INFINITY" }

            /// `exp(-|x|) * i0(x)`, without overflow.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any but complex; integers and bools become f32.
            /// - Gradient: `g * (i1e(x) - sign(x) * y)`.
            fn i0e(;);
            errors "A complex operand (`DType`).";
            example { (x = f32[2] "0.0, f32::INFINITY") x.i0e() == f32[2] "1.0, 0.0" }

            /// The modified Bessel function of the first kind of order 1.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any but complex; integers and bools become f32.
            /// - Gradient: `g * (i0(x) - y / x)`.
            fn i1(;);
            errors "A complex operand (`DType`).";
            example { (x = f32[2] "0.0, f32::INFINITY") x.i1() == f32[2] "0.0, f32::INFINITY" }

            /// `exp(-|x|) * i1(x)`, without overflow.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any but complex; integers and bools become f32.
            /// - Gradient: `g * (i0e(x) - y * (sign(x) + 1 / x))`.
            fn i1e(;);
            errors "A complex operand (`DType`).";
            example { (x = f32[2] "0.0, f32::INFINITY") x.i1e() == f32[2] "0.0, 0.0" }

            /// The distribution function of the standard normal distribution.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any but complex; integers and bools become f32.
            /// - Gradient: `g * exp(-x^2 / 2) / sqrt(2 pi)`.
            fn ndtr(;);
            errors "A complex operand (`DType`).";
            example { (x = f32[3] "0.0, f32::INFINITY, f32::NEG_INFINITY") x.ndtr() == f32[3] "0.5, 1.0, 0.0" }

            /// The quantile of the standard normal distribution: the inverse of `ndtr`. NaN outside of 0 to 1.
            ///
            /// - Shape: unchanged; axis names are kept.
            /// - Dtypes: any but complex; integers and bools become f32.
            /// - Gradient: `g * sqrt(2 pi) * exp(y^2 / 2)`.
            fn ndtri(;);
            errors "A complex operand (`DType`).";
            example { (x = f32[3] "0.5, 0.0, 1.0") x.ndtri() == f32[3] "0.0, f32::NEG_INFINITY, f32::INFINITY" }
        }
    };
}
