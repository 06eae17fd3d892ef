//! Named constants, and the limits of element types.

use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::op::catalogue;
use crate::scalar::{Number, Scalar};

catalogue! {
    /// A named constant, after Nx.Constants.
    pub enum Constant {
        /// The ratio of a circle's circumference to its diameter.
        Pi = "pi",
        /// The base of the natural logarithm.
        E = "e",
        /// The limit of the difference between the harmonic series and the logarithm.
        EulerGamma = "euler_gamma",
        /// Not a number.
        Nan = "nan",
        /// Infinity; the greatest number where the type has none.
        Infinity = "infinity",
        /// Negative infinity; the least number where the type has none.
        NegInfinity = "neg_infinity",
        /// The greatest value: infinity where the type has one.
        Max = "max",
        /// The least value: negative infinity where the type has one.
        Min = "min",
        /// The greatest finite number.
        MaxFinite = "max_finite",
        /// The least finite number.
        MinFinite = "min_finite",
        /// The distance between 1 and the next greater float.
        Epsilon = "epsilon",
        /// The smallest float above 0 with full precision.
        SmallestPositiveNormal = "smallest_positive_normal",
        /// The imaginary unit.
        I = "i",
    }
}

/// The element types for which a constant is defined.
enum Domain {
    Floats,
    Reals,
    Complexes,
}

impl Constant {
    /// The constant as an element of a type, rounded to the nearest.
    ///
    /// ```
    /// use defn_core::{DType, constants::Constant};
    /// assert_eq!(Constant::Pi.scalar(DType::F16)?.to_string(), "3.14");
    /// assert_eq!(Constant::Max.scalar(DType::U8)?.to_string(), "255");
    /// # Ok::<(), defn_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// A type for which the constant is not defined.
    pub fn scalar(self, dtype: DType) -> Result<Scalar> {
        let domain = match self {
            Constant::Pi
            | Constant::E
            | Constant::EulerGamma
            | Constant::Nan
            | Constant::Infinity
            | Constant::NegInfinity
            | Constant::Epsilon
            | Constant::SmallestPositiveNormal => Domain::Floats,
            Constant::Max | Constant::Min | Constant::MaxFinite | Constant::MinFinite => Domain::Reals,
            Constant::I => Domain::Complexes,
        };
        let (fits, required) = match domain {
            Domain::Floats => (dtype.is_float(), "a float dtype"),
            Domain::Reals => (dtype.is_integer() || dtype.is_float(), "an integer or float dtype"),
            Domain::Complexes => (dtype.is_complex(), "a complex dtype"),
        };
        if !fits {
            return Err(ErrorKind::ConstantDType { op: self.name(), dtype, required }.into());
        }
        let number = match self {
            Constant::Pi => Number::Float(std::f64::consts::PI),
            Constant::E => Number::Float(std::f64::consts::E),
            // Euler (1734); the digits are those of OEIS A001620.
            Constant::EulerGamma => Number::Float(0.577_215_664_901_532_9),
            Constant::Nan => Number::Float(f64::NAN),
            Constant::Infinity => Number::Float(f64::INFINITY),
            Constant::NegInfinity => Number::Float(f64::NEG_INFINITY),
            Constant::Max => dtype.highest(),
            Constant::Min => dtype.lowest(),
            Constant::MaxFinite => dtype.greatest_finite(),
            Constant::MinFinite => dtype.least_finite(),
            Constant::Epsilon => dtype.epsilon(),
            Constant::SmallestPositiveNormal => dtype.smallest_normal(),
            Constant::I => Number::complex(0.0, 1.0),
        };
        Scalar::new(dtype, number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(constant: Constant, dtype: DType) -> String {
        constant.scalar(dtype).unwrap().to_string()
    }

    #[test]
    fn limits_are_those_of_the_formats() {
        use DType::*;
        for (dtype, greatest, normal, epsilon) in [
            (F8E5M2, 57344.0, 2f64.powi(-14), 0.25),
            (F8E4M3FN, 448.0, 2f64.powi(-6), 0.125),
            (F16, 65504.0, 2f64.powi(-14), 2f64.powi(-10)),
            (BF16, 255.0 * 2f64.powi(120), 2f64.powi(-126), 2f64.powi(-7)),
            (F32, f64::from(f32::MAX), f64::from(f32::MIN_POSITIVE), f64::from(f32::EPSILON)),
            (F64, f64::MAX, f64::MIN_POSITIVE, f64::EPSILON),
        ] {
            let value = |constant: Constant| constant.scalar(dtype).unwrap().value();
            assert_eq!(value(Constant::MaxFinite), Number::Float(greatest), "{dtype}");
            assert_eq!(value(Constant::MinFinite), Number::Float(-greatest), "{dtype}");
            assert_eq!(value(Constant::SmallestPositiveNormal), Number::Float(normal), "{dtype}");
            assert_eq!(value(Constant::Epsilon), Number::Float(epsilon), "{dtype}");
        }
        assert_eq!(text(Constant::MinFinite, S4), "-8");
        assert_eq!(text(Constant::Max, U64), "18446744073709551615");
    }

    #[test]
    fn meaningless_types_are_refused() {
        for constant in Constant::ALL {
            for &dtype in DType::ALL {
                let fits = match constant {
                    Constant::I => dtype.is_complex(),
                    Constant::Max | Constant::Min | Constant::MaxFinite | Constant::MinFinite => {
                        dtype.is_integer() || dtype.is_float()
                    }
                    Constant::Pi
                    | Constant::E
                    | Constant::EulerGamma
                    | Constant::Nan
                    | Constant::Infinity
                    | Constant::NegInfinity
                    | Constant::Epsilon
                    | Constant::SmallestPositiveNormal => dtype.is_float(),
                };
                assert_eq!(constant.scalar(dtype).is_ok(), fits, "{} {dtype}", constant.name());
            }
        }
    }
}
