//! The types in which kernels compute.

use std::mem::MaybeUninit;

use defn_core::DType;
use half::{bf16, f16};
use num_complex::Complex;

use super::cast::{CastFrom, encode_small};

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
plain!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64, f16, bf16);
plain!(Complex<f32>, Complex<f64>, [u32; 2], [u64; 2]);

/// A type in which kernels compute. Integers wrap.
pub(crate) trait Element: Plain + PartialEq + Default + std::fmt::Debug + CastFrom<u64> {
    /// The dtype whose elements are stored as this type.
    const DTYPE: DType;

    /// Whether elements of a dtype are stored as values of this type: its own dtype, and bool as bytes.
    fn stores(dtype: DType) -> bool {
        dtype == Self::DTYPE || dtype.is_bool() && Self::DTYPE == DType::U8
    }

    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;

    /// The sum.
    fn plus(self, other: Self) -> Self;
    /// The product.
    fn times(self, other: Self) -> Self;
    /// Whether it is NaN; for a complex number, whether either part is.
    fn nan(self) -> bool;

    /// Whether it is infinite; for a complex number, whether either part is.
    fn infinite(self) -> bool;

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
}

/// Two's complement or unsigned integers.
pub(crate) trait Integer: Real + Eq + Ord {
    /// Whether negative values exist.
    const SIGNED: bool;
    /// The bits, sign-extended if signed.
    fn extended(self) -> u64;
    /// The low bits.
    fn truncated(bits: u64) -> Self;
}

macro_rules! integer {
    ($($ty:ty = $dtype:ident, $signed:literal, $wide:ty;)*) => {$(
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            const ZERO: $ty = 0;
            const ONE: $ty = 1;

            fn plus(self, other: $ty) -> $ty { self.wrapping_add(other) }
            fn times(self, other: $ty) -> $ty { self.wrapping_mul(other) }
            fn nan(self) -> bool { false }
            fn infinite(self) -> bool { false }

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
        }

        impl Integer for $ty {
            const SIGNED: bool = $signed;
            fn extended(self) -> u64 { self as $wide as u64 }
            fn truncated(bits: u64) -> $ty { bits as $ty }
        }
    )*};
}
integer! {
    u8 = U8, false, u64;
    u16 = U16, false, u64;
    u32 = U32, false, u64;
    u64 = U64, false, u64;
    i8 = S8, true, i64;
    i16 = S16, true, i64;
    i32 = S32, true, i64;
    i64 = S64, true, i64;
}

/// The low bits of an integer, extended by sign or zeros according to its type.
fn narrow<T: Integer>(x: T, bits: u32) -> T {
    let shift = 64 - bits;
    let raised = x.extended() << shift;
    T::truncated(if T::SIGNED { (raised as i64 >> shift) as u64 } else { raised >> shift })
}

macro_rules! float {
    ($ty:ty = $dtype:ident, $encode:expr) => {
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            const ZERO: $ty = 0.0;
            const ONE: $ty = 1.0;

            fn plus(self, other: $ty) -> $ty {
                self + other
            }
            fn times(self, other: $ty) -> $ty {
                self * other
            }
            fn nan(self) -> bool {
                self.is_nan()
            }
            fn infinite(self) -> bool {
                self.is_infinite()
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
        }
    };
}
float!(f32 = F32, encode_small);
float!(f64 = F64, |_: &[f64], dtype, _: &mut [MaybeUninit<u8>]| wrong(dtype));

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
            fn times(self, other: Self) -> Self {
                self * other
            }
            fn nan(self) -> bool {
                self.re.is_nan() || self.im.is_nan()
            }
            fn infinite(self) -> bool {
                self.re.is_infinite() || self.im.is_infinite()
            }

            fn encode(_: &[Self], dtype: DType, _: &mut [MaybeUninit<u8>]) {
                wrong(dtype)
            }
        }
    };
}
complex!(f32 = C64);
complex!(f64 = C128);
