//! The types in which kernels compute.

use std::mem::MaybeUninit;

use defn_core::DType;
use half::{bf16, f16};
use num_complex::Complex;

use crate::kernels::elementwise::cast::{CastFrom, E4m3, E5m2, encode_small, round_small};

/// A type for which all bit patterns are valid, so that memory can be read as this type.
///
/// # Safety
/// All bit patterns are valid, and the type has no padding.
pub(crate) unsafe trait Plain: Copy + Send + Sync + 'static {}

macro_rules! plain {
    ($($ty:ty),*) => {$(
        // SAFETY: numbers, arrays and `repr(C)` pairs of them have neither padding nor invalid bits.
        unsafe impl Plain for $ty {}
    )*};
}
plain!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64, f16, bf16, E5m2, E4m3);
plain!(Complex<f32>, Complex<f64>, [u32; 2], [u64; 2]);

/// A type in which kernels compute. Integers wrap.
pub(crate) trait Element:
    Plain
    + PartialEq
    + Default
    + std::fmt::Debug
    + CastFrom<u8>
    + CastFrom<u16>
    + CastFrom<u32>
    + CastFrom<u64>
    + CastFrom<i8>
    + CastFrom<i16>
    + CastFrom<i32>
    + CastFrom<i64>
    + CastFrom<f32>
    + CastFrom<f64>
    + CastFrom<Complex<f32>>
    + CastFrom<Complex<f64>>
{
    /// The dtype whose elements are stored as this type.
    const DTYPE: DType;

    /// Whether elements of a dtype are stored as values of this type: its own dtype, and bool as bytes.
    fn stores(dtype: DType) -> bool {
        dtype == Self::DTYPE || dtype.is_bool() && Self::DTYPE == DType::U8
    }

    /// Whether smaller floats are computed in this type.
    const COMPUTES_SMALL_FLOATS: bool = false;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;

    /// The sum.
    fn plus(self, other: Self) -> Self;
    /// The difference.
    fn minus(self, other: Self) -> Self;
    /// The product.
    fn times(self, other: Self) -> Self;
    /// The negative.
    fn negated(self) -> Self;
    /// Whether it counts as true: all values but zero do, NaN too.
    fn truth(self) -> bool;
    /// Whether it is NaN; for a complex number, whether either part is.
    fn nan(self) -> bool;

    /// Whether it is infinite; for a complex number, whether either part is.
    fn infinite(self) -> bool;

    /// Rounds values to the range and precision of a dtype that is computed in this type. If `from_float` is set, they
    /// were converted from a float, and saturate instead of wrapping to an integer.
    fn fit(tile: &mut [Self], dtype: DType, from_float: bool);

    /// Stores values as elements of one or two bytes of a dtype that is computed in this type, rounding floats and
    /// wrapping integers. Only for dtypes other than `DTYPE`.
    fn encode(tile: &[Self], dtype: DType, out: &mut [MaybeUninit<u8>]);
}

/// Elements with an order.
pub(crate) trait Real: Element + PartialOrd {
    /// The greater; NaN if either is.
    fn greater(self, other: Self) -> Self;
    /// The lesser; NaN if either is.
    fn lesser(self, other: Self) -> Self;
    /// The remainder of truncated division; the dividend for an integer divided by zero.
    fn remainder(self, other: Self) -> Self;
}

/// Two's complement or unsigned integers.
pub(crate) trait Integer: Real + Eq + Ord {
    /// Whether negative values exist.
    const SIGNED: bool;
    /// The bits, sign-extended if signed.
    fn extended(self) -> u64;
    /// The low bits.
    fn truncated(bits: u64) -> Self;
    /// The quotient, truncated; all bits set for a division by zero. Wraps.
    fn quotient(self, other: Self) -> Self;
    /// Shifts in zeros; the result is 0 if the distance, read as unsigned, is at least the width.
    fn shifted_left(self, by: Self) -> Self;
    /// Shifts in copies of the sign, or zeros if unsigned.
    fn shifted_right(self, by: Self) -> Self;
    /// The number of bits set.
    fn ones(self) -> Self;
    /// Bitwise and.
    fn both(self, other: Self) -> Self;
    /// Bitwise or.
    fn either(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    fn one_of(self, other: Self) -> Self;
    /// `|self|`; the least value wraps.
    fn magnitude(self) -> Self;
    /// -1, 0 or 1.
    fn signum(self) -> Self;
}

macro_rules! integer {
    ($($ty:ty = $dtype:ident, $signed:literal, $wide:ty, $unsigned:ty;)*) => {$(
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            const ZERO: $ty = 0;
            const ONE: $ty = 1;

            fn plus(self, other: $ty) -> $ty { self.wrapping_add(other) }
            fn minus(self, other: $ty) -> $ty { self.wrapping_sub(other) }
            fn times(self, other: $ty) -> $ty { self.wrapping_mul(other) }
            fn negated(self) -> $ty { self.wrapping_neg() }
            fn truth(self) -> bool { self != 0 }
            fn nan(self) -> bool { false }
            fn infinite(self) -> bool { false }

            fn fit(tile: &mut [$ty], dtype: DType, from_float: bool) {
                let bits = dtype.bits() as u32;
                if bits >= <$ty>::BITS {
                    return;
                }
                if from_float {
                    let high = <$ty>::MAX >> (<$ty>::BITS - bits);
                    let low = if $signed { !high } else { 0 };
                    tile.iter_mut().for_each(|x| *x = (*x).clamp(low, high));
                } else {
                    tile.iter_mut().for_each(|x| *x = narrow(*x, bits));
                }
            }

            fn encode(tile: &[$ty], dtype: DType, out: &mut [MaybeUninit<u8>]) {
                // Only the 2- and 4-bit types are computed in a wider integer, and that has one byte.
                assert_eq!(size_of::<$ty>(), 1, "{dtype} is not computed in {}", Self::DTYPE);
                let bits = dtype.bits() as u32;
                for (out, &x) in out.iter_mut().zip(tile) {
                    out.write(narrow(x, bits) as u8);
                }
            }
        }

        impl Real for $ty {
            fn greater(self, other: $ty) -> $ty { self.max(other) }
            fn lesser(self, other: $ty) -> $ty { self.min(other) }
            fn remainder(self, other: $ty) -> $ty {
                if other == 0 { self } else { self.wrapping_rem(other) }
            }
        }

        impl Integer for $ty {
            const SIGNED: bool = $signed;
            fn extended(self) -> u64 { self as $wide as u64 }
            fn truncated(bits: u64) -> $ty { bits as $ty }
            fn quotient(self, other: $ty) -> $ty {
                if other == 0 { !0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            fn shifted_left(self, by: $ty) -> $ty {
                let by = by as $unsigned;
                let shifted = self.wrapping_shl(by as u32);
                if by < <$unsigned>::BITS as $unsigned { shifted } else { 0 }
            }
            #[inline(always)]
            fn shifted_right(self, by: $ty) -> $ty {
                let by = by as $unsigned;
                let most = <$unsigned>::BITS as $unsigned - 1;
                // For distances of at least the width, only copies of the sign are left.
                let shifted = self.wrapping_shr(by.min(most) as u32);
                if $signed || by <= most { shifted } else { 0 }
            }
            #[inline(always)]
            fn ones(self) -> $ty { self.count_ones() as $ty }
            #[inline(always)]
            fn both(self, other: $ty) -> $ty { self & other }
            #[inline(always)]
            fn either(self, other: $ty) -> $ty { self | other }
            #[inline(always)]
            fn one_of(self, other: $ty) -> $ty { self ^ other }
            fn magnitude(self) -> $ty { if self < Self::ZERO { self.wrapping_neg() } else { self } }
            fn signum(self) -> $ty {
                (self > 0) as $ty - if self < Self::ZERO { 1 } else { 0 }
            }
        }
    )*};
}
integer! {
    u8 = U8, false, u64, u8;
    u16 = U16, false, u64, u16;
    u32 = U32, false, u64, u32;
    u64 = U64, false, u64, u64;
    i8 = S8, true, i64, u8;
    i16 = S16, true, i64, u16;
    i32 = S32, true, i64, u32;
    i64 = S64, true, i64, u64;
}

/// The low bits of an integer, extended by sign or zeros according to its type.
fn narrow<T: Integer>(x: T, bits: u32) -> T {
    let shift = 64 - bits;
    let raised = x.extended() << shift;
    T::truncated(if T::SIGNED { (raised as i64 >> shift) as u64 } else { raised >> shift })
}

macro_rules! float {
    ($ty:ty = $dtype:ident, $fit:expr, $encode:expr) => {
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            const COMPUTES_SMALL_FLOATS: bool = size_of::<$ty>() == 4;
            const ZERO: $ty = 0.0;
            const ONE: $ty = 1.0;

            fn plus(self, other: $ty) -> $ty {
                self + other
            }
            fn minus(self, other: $ty) -> $ty {
                self - other
            }
            fn times(self, other: $ty) -> $ty {
                self * other
            }
            fn negated(self) -> $ty {
                -self
            }
            fn truth(self) -> bool {
                self != 0.0
            }
            fn nan(self) -> bool {
                self.is_nan()
            }
            fn infinite(self) -> bool {
                self.is_infinite()
            }

            fn fit(tile: &mut [$ty], dtype: DType, _: bool) {
                if dtype != Self::DTYPE {
                    $fit(tile, dtype);
                }
            }

            fn encode(tile: &[$ty], dtype: DType, out: &mut [MaybeUninit<u8>]) {
                $encode(tile, dtype, out)
            }
        }

        impl Real for $ty {
            // One comparison and one blend each, so that they vectorise.
            fn greater(self, other: $ty) -> $ty {
                let greater = if self > other { self } else { other };
                if self.is_nan() { self } else { greater }
            }
            fn lesser(self, other: $ty) -> $ty {
                let lesser = if self < other { self } else { other };
                if self.is_nan() { self } else { lesser }
            }
            fn remainder(self, other: $ty) -> $ty {
                self % other
            }
        }
    };
}
float!(f32 = F32, round_small, encode_small);
float!(f64 = F64, |_, dtype| wrong(dtype), |_: &[f64], dtype, _: &mut [MaybeUninit<u8>]| wrong(dtype));

fn wrong(dtype: DType) {
    unreachable!("{dtype} is computed in its own type");
}

macro_rules! complex {
    ($ty:ty = $dtype:ident) => {
        impl Element for Complex<$ty> {
            const DTYPE: DType = DType::$dtype;
            const ZERO: Self = Complex::new(0.0, 0.0);
            const ONE: Self = Complex::new(1.0, 0.0);

            fn plus(self, other: Self) -> Self {
                self + other
            }
            fn minus(self, other: Self) -> Self {
                self - other
            }
            fn times(self, other: Self) -> Self {
                self * other
            }
            fn negated(self) -> Self {
                -self
            }
            fn truth(self) -> bool {
                self.re != 0.0 || self.im != 0.0
            }
            fn nan(self) -> bool {
                self.re.is_nan() || self.im.is_nan()
            }
            fn infinite(self) -> bool {
                self.re.is_infinite() || self.im.is_infinite()
            }

            fn fit(_: &mut [Self], dtype: DType, _: bool) {
                if dtype != Self::DTYPE {
                    wrong(dtype);
                }
            }

            fn encode(_: &[Self], dtype: DType, _: &mut [MaybeUninit<u8>]) {
                wrong(dtype)
            }
        }
    };
}
complex!(f32 = C64);
complex!(f64 = C128);
