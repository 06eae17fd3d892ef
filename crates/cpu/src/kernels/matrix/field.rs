//! The element types of matrices.

use std::mem::MaybeUninit;
use std::ops::{Add, Div, Mul, Neg, Sub};

use num_complex::Complex;

use super::rows::transpose_into;
use super::schur::{self, Wanted};
use crate::kernels::Plain;
use crate::kernels::linalg::gemm::{self, Accumulation, GemmElement, GemmOutput, Load, Matrix, complex};
use crate::par::Par;

/// The rounding of multiply-add.
pub(crate) trait Products {
    /// Whether a product and its sum are rounded once (FMA).
    const FUSED: bool;
}

/// One rounding.
pub(crate) struct OneRounding;

impl Products for OneRounding {
    const FUSED: bool = true;
}

/// Two roundings, for processors without FMA, where `mul_add` would be a function call.
pub(crate) struct TwoRoundings;

impl Products for TwoRoundings {
    const FUSED: bool = false;
}

/// Defines a function over rows whose loops are compiled for several instruction sets. `$P` is the implementation of
/// `Products` for each. Functions that it calls must be marked `#[inline(always)]`.
macro_rules! multiplying {
    ($(#[$meta:meta])* $vis:vis fn $name:ident[$P:ident; $($generics:tt)*] of [$($param:ident),*] (
        $($arg:ident: $ty:ty),* $(,)?
    ) $(-> $result:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name<$($generics)*>($($arg: $ty),*) $(-> $result)? {
            #[inline(always)]
            fn body<$P: $crate::kernels::matrix::field::Products, $($generics)*>($($arg: $ty),*) $(-> $result)? $body

            $crate::kernels::simd::at_level!(
                [$($generics)*],
                [$($param),*],
                ($($arg: $ty),*),
                ($($result)?),
                body::<$crate::kernels::matrix::field::TwoRoundings, $($param),*>,
                body::<$crate::kernels::matrix::field::OneRounding, $($param),*>
            )
        }
    };
}
pub(super) use multiplying;

/// Real or complex floats.
pub(crate) trait Field:
    Plain + Copy + Send + Sync + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self>
{
    /// The type of magnitudes and eigenvalues.
    type Real: RealField;

    /// Whether the type is complex.
    const COMPLEX: bool;
    const ZERO: Self;
    const ONE: Self;

    /// The element with this real part.
    fn from_real(x: Self::Real) -> Self;
    fn re(self) -> Self::Real;
    fn conj(self) -> Self;
    /// The magnitude.
    fn abs(self) -> Self::Real;
    /// The squared magnitude.
    fn square(self) -> Self::Real;
    /// The quotient.
    fn over(self, other: Self) -> Self;
    /// The product with a real number.
    fn scaled(self, f: Self::Real) -> Self;
    /// Whether no part is infinite or NaN.
    fn is_finite(self) -> bool;
    /// `self + a b`.
    fn plus_product<P: Products>(self, a: Self, b: Self) -> Self;
    /// The numbers as a slice of their real and imaginary parts.
    fn parts(x: &mut [Self]) -> &mut [Self::Real];

    /// The magnitude that pivots are compared by.
    fn size(self) -> Self::Real;

    /// Elements of the space that [`subtract_product`](Field::subtract_product) needs for these sizes and for smaller
    /// ones.
    fn product_space(sizes: [usize; 3]) -> usize;

    /// Subtracts the product of an `m` by `k` and a `k` by `n` matrix from `m` rows of `n` elements, a stride apart.
    /// The free axes are the rows of the left matrix and the columns of the right one.
    ///
    /// # Panics
    /// When an operand, the rows or the space are too small.
    fn subtract_product(
        sizes: [usize; 3],
        operands: (&Matrix<'_, Self>, &Matrix<'_, Self>),
        to: &mut [Self],
        stride: usize,
        space: &mut [Self],
        par: Par,
    );

    /// The Schur factors or the eigenvalues of a complex matrix.
    fn schur(
        a: &mut [Self],
        n: usize,
        wanted: Wanted,
        out: (&mut [Self], Option<&mut [Self]>),
        work: &mut [Self],
        par: Par,
    );
}

/// Real floats.
pub(crate) trait RealField:
    Field<Real = Self> + PartialOrd + Div<Output = Self> + GemmElement + Load<Self>
{
    /// The distance from 1 to the next larger number.
    const EPSILON: Self;
    /// The largest power of two that is at most `self`, which is positive.
    fn power_of_two(self) -> Self;
    fn sqrt(self) -> Self;
    fn from_f64(x: f64) -> Self;
    const NAN: Self;
    /// The smallest normal number.
    const MIN_POSITIVE: Self;
}

/// Calls `multiply` with the rows of a product and its space, unless a size is zero.
fn subtract<T: Field>(
    [m, n, k]: [usize; 3],
    to: &mut [T],
    stride: usize,
    space: &mut [T],
    multiply: impl FnOnce(*mut T, &mut [MaybeUninit<T>]),
) {
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    assert!(n <= stride && (m - 1) * stride + n <= to.len(), "{m} by {n} in less rows");
    // SAFETY: the callee only packs numbers there, so all elements stay initialised.
    let space =
        unsafe { std::slice::from_raw_parts_mut(space.as_mut_ptr().cast::<MaybeUninit<T>>(), space.len()) };
    multiply(to.as_mut_ptr(), space);
}

macro_rules! real {
    ($ty:ident, $mask:expr) => {
        impl Field for $ty {
            type Real = $ty;

            const COMPLEX: bool = false;
            const ZERO: $ty = 0.0;
            const ONE: $ty = 1.0;

            #[inline(always)]
            fn from_real(x: $ty) -> $ty {
                x
            }
            #[inline(always)]
            fn re(self) -> $ty {
                self
            }
            #[inline(always)]
            fn conj(self) -> $ty {
                self
            }
            #[inline(always)]
            fn abs(self) -> $ty {
                $ty::abs(self)
            }
            #[inline(always)]
            fn square(self) -> $ty {
                self * self
            }
            #[inline(always)]
            fn over(self, other: $ty) -> $ty {
                self / other
            }
            #[inline(always)]
            fn scaled(self, f: $ty) -> $ty {
                self * f
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $ty::is_finite(self)
            }
            #[inline(always)]
            fn plus_product<P: Products>(self, a: $ty, b: $ty) -> $ty {
                if P::FUSED { a.mul_add(b, self) } else { self + a * b }
            }
            fn parts(x: &mut [$ty]) -> &mut [$ty] {
                x
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
                subtract(sizes, to, stride, space, |to, space| {
                    // SAFETY: the assertion in `subtract` checks the rows, which are exclusively borrowed.
                    unsafe {
                        gemm::multiply(
                            sizes,
                            a,
                            b,
                            GemmOutput::new(to, stride),
                            Accumulation::Minus,
                            space,
                            par,
                        );
                    }
                });
            }

            fn schur(
                _: &mut [$ty],
                _: usize,
                _: Wanted,
                _: (&mut [$ty], Option<&mut [$ty]>),
                _: &mut [$ty],
                _: Par,
            ) {
                unreachable!("Schur factors are computed in complex numbers")
            }
        }

        impl RealField for $ty {
            const EPSILON: $ty = $ty::EPSILON;
            const NAN: $ty = $ty::NAN;
            const MIN_POSITIVE: $ty = $ty::MIN_POSITIVE;

            #[inline(always)]
            fn power_of_two(self) -> $ty {
                $ty::from_bits(self.max($ty::MIN_POSITIVE).to_bits() & $mask)
            }
            #[inline(always)]
            fn sqrt(self) -> $ty {
                $ty::sqrt(self)
            }
            #[inline(always)]
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

            #[inline(always)]
            fn from_real(x: $ty) -> Self {
                Complex::new(x, 0.0)
            }
            #[inline(always)]
            fn re(self) -> $ty {
                self.re
            }
            #[inline(always)]
            fn conj(self) -> Self {
                Complex::new(self.re, -self.im)
            }
            #[inline(always)]
            fn abs(self) -> $ty {
                self.re.hypot(self.im)
            }
            #[inline(always)]
            fn square(self) -> $ty {
                self.re * self.re + self.im * self.im
            }
            #[inline(always)]
            fn over(self, other: Self) -> Self {
                // Scaled by the larger part, so that its square neither overflows nor underflows (Smith, 1962).
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
            #[inline(always)]
            fn scaled(self, f: $ty) -> Self {
                Complex::new(self.re * f, self.im * f)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                self.re.is_finite() && self.im.is_finite()
            }
            #[inline(always)]
            fn plus_product<P: Products>(self, a: Self, b: Self) -> Self {
                let re = self.re.plus_product::<P>(a.re, b.re).plus_product::<P>(-a.im, b.im);
                let im = self.im.plus_product::<P>(a.re, b.im).plus_product::<P>(a.im, b.re);
                Complex::new(re, im)
            }
            fn parts(x: &mut [Self]) -> &mut [$ty] {
                // SAFETY: complex numbers have the memory layout of two reals.
                unsafe { std::slice::from_raw_parts_mut(x.as_mut_ptr().cast::<$ty>(), 2 * x.len()) }
            }

            fn size(self) -> $ty {
                let square = self.square();
                // Where the square neither overflows nor underflows, its root is faster than `hypot`.
                if ($ty::MIN_POSITIVE / $ty::EPSILON..=$ty::MAX).contains(&square) {
                    square.sqrt()
                } else {
                    self.abs()
                }
            }

            fn product_space([m, n, k]: [usize; 3]) -> usize {
                // Includes room for the left operand as rows.
                m * k + complex::scratch::<$ty>([m, n, k])
            }

            fn subtract_product(
                sizes: [usize; 3],
                (a, b): (&Matrix<'_, Self>, &Matrix<'_, Self>),
                to: &mut [Self],
                stride: usize,
                space: &mut [Self],
                par: Par,
            ) {
                let [m, _, k] = sizes;
                let (rows, space) = space.split_at_mut(if a.along == 1 { 0 } else { m * k });
                let a = if a.along == 1 {
                    *a
                } else {
                    assert_eq!(a.free, 1, "rows or columns");
                    transpose_into(a.elements, a.along, (k, m), rows, k);
                    Matrix { elements: &*rows, free: k, along: 1 }
                };
                subtract(sizes, to, stride, space, |to, space| {
                    // SAFETY: the assertion in `subtract` checks the rows, which are exclusively borrowed.
                    unsafe {
                        let to = GemmOutput::new(to, stride);
                        complex::multiply(sizes, (&a, b), to, Accumulation::Minus, space, par);
                    }
                });
            }

            fn schur(
                a: &mut [Self],
                n: usize,
                wanted: Wanted,
                out: (&mut [Self], Option<&mut [Self]>),
                work: &mut [Self],
                par: Par,
            ) {
                schur::factors(a, n, wanted, out, work, par);
            }
        }
    };
}
complex!(f32);
complex!(f64);
