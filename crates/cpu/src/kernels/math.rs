//! Functions of real numbers.
//!
//! f32 is computed in f64 and rounded once, but for the functions that platforms compute well in f32 itself.

use std::f64::consts::PI;

use super::Real;

/// f32 and f64.
pub(crate) trait Float: Real {
    /// The same value, in f64.
    fn wide(self) -> f64;
    /// The nearest value.
    fn nearest(x: f64) -> Self;
    /// `|x|`.
    fn magnitude(self) -> Self;
    /// The greatest integer not above.
    fn floor(self) -> Self;
    /// The least integer not below.
    fn ceil(self) -> Self;
    /// The nearest integer, halves away from zero.
    fn round(self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// `e^x`.
    fn exp(self) -> Self;
    /// The natural logarithm.
    fn log(self) -> Self;
    /// Sine.
    fn sin(self) -> Self;
    /// Cosine.
    fn cos(self) -> Self;
    /// The quotient.
    fn over(self, other: Self) -> Self;
}

macro_rules! float {
    ($ty:ty) => {
        impl Float for $ty {
            fn wide(self) -> f64 {
                self as f64
            }
            fn nearest(x: f64) -> $ty {
                x as $ty
            }
            fn magnitude(self) -> $ty {
                self.abs()
            }
            fn floor(self) -> $ty {
                self.floor()
            }
            fn ceil(self) -> $ty {
                self.ceil()
            }
            fn round(self) -> $ty {
                self.round()
            }
            fn sqrt(self) -> $ty {
                self.sqrt()
            }
            fn exp(self) -> $ty {
                self.exp()
            }
            fn log(self) -> $ty {
                self.ln()
            }
            fn sin(self) -> $ty {
                self.sin()
            }
            fn cos(self) -> $ty {
                self.cos()
            }
            fn over(self, other: $ty) -> $ty {
                self / other
            }
        }
    };
}
float!(f32);
float!(f64);

/// -1, 0 or 1; NaN stays NaN.
pub(crate) fn sign<T: Float>(x: T) -> T {
    if x > T::ZERO {
        T::ONE
    } else if x < T::ZERO {
        T::ONE.negated()
    } else if x == T::ZERO {
        T::ZERO
    } else {
        x
    }
}

/// `1 / (1 + e^-x)`; neither form overflows on its side.
pub(crate) fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let exp = x.exp();
        exp / (1.0 + exp)
    }
}

/// The inverse of the error function.
///
/// Starts from the single-precision polynomials of Giles, Approximating the erfinv function (2010), and takes
/// Halley steps; `erfc` near the ends, where `1 - erf` would cancel.
pub(crate) fn erf_inv(x: f64) -> f64 {
    let magnitude = x.abs();
    if magnitude >= 1.0 {
        return if magnitude == 1.0 { f64::INFINITY.copysign(x) } else { f64::NAN };
    }
    if x == 0.0 || x.is_nan() {
        return x;
    }
    let mut y = erf_inv_start(magnitude);
    for _ in 0..3 {
        let error = if magnitude > 0.5 {
            // Exact: a subtraction of numbers within a factor of two.
            (1.0 - magnitude) - libm::erfc(y)
        } else {
            libm::erf(y) - magnitude
        };
        let step = error / (2.0 / PI.sqrt() * (-y * y).exp());
        // The second derivative is -2y times the first.
        y -= step / (1.0 + y * step);
    }
    y.copysign(x)
}

fn erf_inv_start(x: f64) -> f64 {
    let w = -((1.0 - x) * (1.0 + x)).ln();
    let polynomial =
        |t: f64, coefficients: [f64; 9]| coefficients.into_iter().fold(0.0, |sum, c| sum * t + c);
    let ratio = if w < 5.0 {
        polynomial(
            w - 2.5,
            [
                2.81022636e-08,
                3.43273939e-07,
                -3.5233877e-06,
                -4.39150654e-06,
                0.00021858087,
                -0.00125372503,
                -0.00417768164,
                0.246640727,
                1.50140941,
            ],
        )
    } else if w < 16.0 {
        polynomial(
            w.sqrt() - 3.0,
            [
                -0.000200214257,
                0.000100950558,
                0.00134934322,
                -0.00367342844,
                0.00573950773,
                -0.0076224613,
                0.00943887047,
                1.00167406,
                2.83297682,
            ],
        )
    } else {
        // Beyond single precision: the leading terms of the asymptotic expansion.
        let l = w - (PI * w).ln() / 2.0;
        (w - (PI * l).ln() / 2.0).sqrt()
    };
    ratio * x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erf_inv_inverts_erf_over_the_whole_range() {
        assert_eq!(erf_inv(1.0), f64::INFINITY);
        assert_eq!(erf_inv(-1.0), f64::NEG_INFINITY);
        assert!(erf_inv(1.5).is_nan() && erf_inv(f64::NAN).is_nan());
        assert_eq!(erf_inv(-0.0).to_bits(), (-0.0f64).to_bits());
        // From tables of the inverse error function.
        for (x, y) in [
            (0.5, 0.476_936_276_204_469_9),
            (0.9, 1.163_087_153_676_674),
            (-0.1, -0.088_855_990_494_257_69),
            (1e-10, 8.862_269_254_527_58e-11),
        ] {
            let got = erf_inv(x);
            assert!((got - y).abs() <= 4.0 * f64::EPSILON * y.abs(), "{x}: {got:e} {y:e}");
        }
        // Near the ends the complement decides: erfc(erf_inv(x)) = 1 - x.
        for exponent in 1..53 {
            let complement = 2f64.powi(-exponent);
            let y = erf_inv(1.0 - complement);
            // erfc's relative change is about 2y^2 times that of y.
            let bound = (4.0 + 8.0 * y * y) * f64::EPSILON;
            assert!((libm::erfc(y) / complement - 1.0).abs() <= bound, "1 - 2^-{exponent}");
        }
    }

    #[test]
    fn the_sigmoid_keeps_its_tails() {
        assert_eq!(sigmoid(f64::NEG_INFINITY), 0.0);
        assert_eq!(sigmoid(f64::INFINITY), 1.0);
        assert_eq!(sigmoid(-740.0), (-740f64).exp());
        assert_eq!(sigmoid(0.0), 0.5);
        assert!(sigmoid(f64::NAN).is_nan());
    }

    #[test]
    fn the_sign_of_nan_is_nan() {
        assert!(sign(f32::NAN).is_nan());
        assert_eq!([sign(-3.0f64), sign(-0.0), sign(0.0), sign(f64::INFINITY)], [-1.0, 0.0, 0.0, 1.0]);
    }
}
