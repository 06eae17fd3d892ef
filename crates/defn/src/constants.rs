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
    ($($(#[$doc:meta])* $name:ident = $constant:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// A type in which the constant means nothing.
        #[track_caller]
        pub fn $name(dtype: DType) -> Result<Tensor> {
            eager(Location::caller(), |ops| ops.scalar(Constant::$constant.scalar(dtype)?)).map(Tensor)
        }
    )*};
}

constants! {
    /// The ratio of a circle's circumference to its diameter.
    pi = Pi;
    /// The base of the natural logarithm.
    e = E;
    /// The limit of the harmonic series less the logarithm.
    euler_gamma = EulerGamma;
    /// Not a number.
    nan = Nan;
    /// Infinity; the greatest number where the type has none.
    infinity = Infinity;
    /// Negative infinity; the least number where the type has none.
    neg_infinity = NegInfinity;
    /// The greatest value: infinity where the type has it.
    max = Max;
    /// The least value: negative infinity where the type has it.
    min = Min;
    /// The greatest number.
    max_finite = MaxFinite;
    /// The least number.
    min_finite = MinFinite;
    /// What is between 1 and the next greater float.
    epsilon = Epsilon;
    /// The smallest float above 0 whose precision is whole.
    smallest_positive_normal = SmallestPositiveNormal;
    /// The imaginary unit.
    i = I;
}
