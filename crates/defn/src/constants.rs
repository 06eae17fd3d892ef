//! Numbers with a name, and the limits of element types, as scalars.
//!
//! ```
//! use defn::{DType, constants};
//!
//! assert_eq!(constants::max(DType::U8)?.item::<u8>()?, 255);
//! assert!(constants::pi(DType::S32).is_err());
//! # Ok::<(), defn::Error>(())
//! ```

use defn_core::builder::Builder;
use defn_core::constants::Constant;
use defn_core::{DType, Location, Result};

use crate::Tensor;
use crate::ops::eager;

macro_rules! constants {
    ($($(#[$doc:meta])* $name:ident = $constant:ident: $dtype:ident $value:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// - Shape: a scalar.
        ///
        /// ```
        /// # use defn::{DType, constants};
        #[doc = concat!("let value = constants::", stringify!($name), "(DType::", stringify!($dtype), ")?;")]
        #[doc = concat!("assert_eq!(value", $value, ");")]
        /// # Ok::<(), defn::Error>(())
        /// ```
        ///
        /// # Errors
        /// A dtype in which the constant has no meaning (`DType`).
        #[track_caller]
        pub fn $name(dtype: DType) -> Result<Tensor> {
            eager(Location::caller(), |ops| ops.scalar(Constant::$constant.scalar(dtype)?)).map(Tensor)
        }
    )*};
}

constants! {
    /// The ratio of a circle's circumference to its diameter.
    ///
    /// - Dtypes: floats.
    pi = Pi: F64 ".item::<f64>()?, std::f64::consts::PI";
    /// The base of the natural logarithm.
    ///
    /// - Dtypes: floats.
    e = E: F64 ".item::<f64>()?, std::f64::consts::E";
    /// The Euler-Mascheroni constant: the limit of the harmonic series less the logarithm.
    ///
    /// - Dtypes: floats.
    euler_gamma = EulerGamma: F32 ".item::<f32>()?, 0.5772157";
    /// Not a number.
    ///
    /// - Dtypes: floats.
    nan = Nan: F32 ".item::<f32>()?.is_nan(), true";
    /// Infinity, or the greatest number of a float dtype that has no infinity.
    ///
    /// - Dtypes: floats.
    infinity = Infinity: F32 ".item::<f32>()?, f32::INFINITY";
    /// Negative infinity, or the least number of a float dtype that has no infinity.
    ///
    /// - Dtypes: floats.
    neg_infinity = NegInfinity: F32 ".item::<f32>()?, f32::NEG_INFINITY";
    /// The greatest value: infinity where the dtype has it.
    ///
    /// - Dtypes: integers and floats.
    max = Max: U8 ".item::<u8>()?, 255";
    /// The least value: negative infinity where the dtype has it.
    ///
    /// - Dtypes: integers and floats.
    min = Min: S8 ".item::<i8>()?, -128";
    /// The greatest finite number.
    ///
    /// - Dtypes: integers and floats.
    max_finite = MaxFinite: F32 ".item::<f32>()?, f32::MAX";
    /// The least finite number.
    ///
    /// - Dtypes: integers and floats.
    min_finite = MinFinite: F32 ".item::<f32>()?, f32::MIN";
    /// The distance from 1 to the next greater float.
    ///
    /// - Dtypes: floats.
    epsilon = Epsilon: F32 ".item::<f32>()?, f32::EPSILON";
    /// The smallest float above 0 that has full precision.
    ///
    /// - Dtypes: floats.
    smallest_positive_normal = SmallestPositiveNormal: F32 ".item::<f32>()?, f32::MIN_POSITIVE";
    /// The imaginary unit.
    ///
    /// - Dtypes: complex.
    i = I: C64 ".imag()?.item::<f32>()?, 1.0";
}
