//! The numbers that matrices hold.

use std::mem::MaybeUninit;
use std::ops::{Add, Div, Mul, Neg, Sub};

use num_complex::Complex;

use super::rows::turn;
use super::svd;
use crate::kernels::Plain;
use crate::kernels::linalg::gemm::{self, Fused, Matrix, Onto, Operand, Target, complex};
use crate::par::Par;

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

    /// A magnitude by which pivots are chosen.
    fn size(self) -> Self::Real;

    /// Elements of the space that [`subtract_product`](Field::subtract_product) of such sizes, and of smaller ones,
    /// takes.
    fn product_space(sizes: [usize; 3]) -> usize;

    /// Subtracts from `m` rows of `n` elements, a stride apart, the product of an `m` by `k` and a `k` by `n`
    /// matrix; the kept axes are those of the rows, and of the columns.
    ///
    /// # Panics
    /// When an operand, the rows or the space are smaller.
    fn subtract_product(
        sizes: [usize; 3],
        operands: (&Matrix<'_, Self>, &Matrix<'_, Self>),
        to: &mut [Self],
        stride: usize,
        space: &mut [Self],
        par: Par,
    );

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

/// Subtracts a product of real matrices.
fn subtract<C: Fused>(
    sizes: [usize; 3],
    (a, b): (&dyn Operand<C>, &dyn Operand<C>),
    to: &mut [C],
    stride: usize,
    space: &mut [C],
    par: Par,
) {
    let [m, n, k] = sizes;
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    assert!(n <= stride && (m - 1) * stride + n <= to.len(), "{sizes:?} in less rows");
    // SAFETY: numbers are laid out there, nothing else is written.
    let space =
        unsafe { std::slice::from_raw_parts_mut(space.as_mut_ptr().cast::<MaybeUninit<C>>(), space.len()) };
    // SAFETY: the rows are inside by the assertion, and borrowed here only.
    unsafe { gemm::multiply(sizes, a, b, Target::new(to.as_mut_ptr(), stride), Onto::Minus, space, par) };
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

            fn size(self) -> $ty {
                $ty::abs(self)
            }

            fn product_space(sizes: [usize; 3]) -> usize {
                gemm::scratch::<$ty>(sizes)
            }

            fn subtract_product(
                sizes: [usize; 3],
                (a, b): (&Matrix<'_, $ty>, &Matrix<'_, $ty>),
                to: &mut [$ty],
                stride: usize,
                space: &mut [$ty],
                par: Par,
            ) {
                subtract(sizes, (a, b), to, stride, space, par);
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

            fn size(self) -> $ty {
                let square = self.square();
                // A square that neither overflows nor vanishes is faster than a hypotenuse.
                if ($ty::MIN_POSITIVE / $ty::EPSILON..=$ty::MAX).contains(&square) {
                    square.sqrt()
                } else {
                    self.abs()
                }
            }

            fn product_space([m, n, k]: [usize; 3]) -> usize {
                // Room for the left operand as rows, and for its parts.
                m * k + gemm::scratch::<$ty>([m, 2 * n, 2 * k]).div_ceil(2)
            }

            fn subtract_product(
                [m, n, k]: [usize; 3],
                (a, b): (&Matrix<'_, Self>, &Matrix<'_, Self>),
                to: &mut [Self],
                stride: usize,
                space: &mut [Self],
                par: Par,
            ) {
                let (rows, space) = space.split_at_mut(if a.along == 1 { 0 } else { m * k });
                let a = if a.along == 1 {
                    *a
                } else {
                    assert_eq!(a.free, 1, "rows or columns");
                    turn(a.elements, a.along, (k, m), rows, k);
                    Matrix { elements: &*rows, free: k, along: 1 }
                };
                // SAFETY: complex numbers lie in memory as pairs of real ones, of which any are good.
                let parts = |x: &mut [Self]| unsafe {
                    &mut *std::ptr::slice_from_raw_parts_mut(x.as_mut_ptr().cast::<$ty>(), 2 * x.len())
                };
                subtract(
                    [m, 2 * n, 2 * k],
                    (&complex::left(&a), &complex::Right(*b)),
                    parts(to),
                    2 * stride,
                    parts(space),
                    par,
                );
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
