//! The numbers that matrices hold.

use std::ops::{Add, Div, Mul, Neg, Sub};

use num_complex::Complex;

use super::svd;
use crate::kernels::Plain;

/// Real or complex floats.
pub(crate) trait Field:
    Plain + Copy + Send + Sync + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self>
{
    /// Magnitudes and eigenvalues.
    type Real: RealField;

    /// Whether there are imaginary parts.
    const COMPLEX: bool;
    /// The neutral element of addition.
    const ZERO: Self;
    /// The neutral element of multiplication.
    const ONE: Self;

    /// A real number.
    fn from_real(x: Self::Real) -> Self;
    /// The real part.
    fn re(self) -> Self::Real;
    /// The conjugate.
    fn conj(self) -> Self;
    /// The magnitude.
    fn abs(self) -> Self::Real;
    /// The square of the magnitude.
    fn square(self) -> Self::Real;
    /// The quotient.
    fn over(self, other: Self) -> Self;
    /// Times a real number.
    fn scaled(self, f: Self::Real) -> Self;
    /// Whether no part is infinite or NaN.
    fn is_finite(self) -> bool;

    /// The singular values and vectors of a matrix: real ones only.
    fn svd(
        a: &mut [Self],
        sides: (usize, usize),
        options: (usize, bool),
        out: (&mut [Self], &mut [Self], &mut [Self]),
        work: &mut [Self],
    );
}

/// Real floats.
pub(crate) trait RealField: Field<Real = Self> + PartialOrd + Div<Output = Self> {
    /// The distance from 1 to the next number.
    const EPSILON: Self;
    /// The largest power of two that is at most `x`, a positive number.
    fn power_of_two(self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// A number.
    fn from_f64(x: f64) -> Self;
    /// NaN.
    const NAN: Self;
}

macro_rules! real {
    ($ty:ident, $mask:expr) => {
        impl Field for $ty {
            type Real = $ty;

            const COMPLEX: bool = false;
            const ZERO: $ty = 0.0;
            const ONE: $ty = 1.0;

            fn from_real(x: $ty) -> $ty {
                x
            }
            fn re(self) -> $ty {
                self
            }
            fn conj(self) -> $ty {
                self
            }
            fn abs(self) -> $ty {
                $ty::abs(self)
            }
            fn square(self) -> $ty {
                self * self
            }
            fn over(self, other: $ty) -> $ty {
                self / other
            }
            fn scaled(self, f: $ty) -> $ty {
                self * f
            }
            fn is_finite(self) -> bool {
                $ty::is_finite(self)
            }

            fn svd(
                a: &mut [$ty],
                sides: (usize, usize),
                options: (usize, bool),
                out: (&mut [$ty], &mut [$ty], &mut [$ty]),
                work: &mut [$ty],
            ) {
                svd::factors(a, sides, options, out, work);
            }
        }

        impl RealField for $ty {
            const EPSILON: $ty = $ty::EPSILON;
            const NAN: $ty = $ty::NAN;

            fn power_of_two(self) -> $ty {
                $ty::from_bits(self.max($ty::MIN_POSITIVE).to_bits() & $mask)
            }
            fn sqrt(self) -> $ty {
                $ty::sqrt(self)
            }
            fn from_f64(x: f64) -> $ty {
                x as $ty
            }
        }
    };
}
real!(f32, 0x7f80_0000);
real!(f64, 0x7ff0_0000_0000_0000);

macro_rules! complex {
    ($ty:ident) => {
        impl Field for Complex<$ty> {
            type Real = $ty;

            const COMPLEX: bool = true;
            const ZERO: Self = Complex::new(0.0, 0.0);
            const ONE: Self = Complex::new(1.0, 0.0);

            fn from_real(x: $ty) -> Self {
                Complex::new(x, 0.0)
            }
            fn re(self) -> $ty {
                self.re
            }
            fn conj(self) -> Self {
                Complex::new(self.re, -self.im)
            }
            fn abs(self) -> $ty {
                self.re.hypot(self.im)
            }
            fn square(self) -> $ty {
                self.re * self.re + self.im * self.im
            }
            fn over(self, other: Self) -> Self {
                // Scaled by the larger part, so that its square neither overflows nor vanishes (Smith, 1962).
                if other.re.abs() >= other.im.abs() {
                    let ratio = other.im / other.re;
                    let whole = other.re + other.im * ratio;
                    Complex::new((self.re + self.im * ratio) / whole, (self.im - self.re * ratio) / whole)
                } else {
                    let ratio = other.re / other.im;
                    let whole = other.re * ratio + other.im;
                    Complex::new((self.re * ratio + self.im) / whole, (self.im * ratio - self.re) / whole)
                }
            }
            fn scaled(self, f: $ty) -> Self {
                Complex::new(self.re * f, self.im * f)
            }
            fn is_finite(self) -> bool {
                self.re.is_finite() && self.im.is_finite()
            }

            fn svd(
                _: &mut [Self],
                _: (usize, usize),
                _: (usize, bool),
                _: (&mut [Self], &mut [Self], &mut [Self]),
                _: &mut [Self],
            ) {
                unreachable!("infer refuses singular values of complex matrices")
            }
        }
    };
}
complex!(f32);
complex!(f64);
