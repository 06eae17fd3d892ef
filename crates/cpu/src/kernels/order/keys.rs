//! Unsigned integers in the order of elements.

use std::mem::MaybeUninit;

use defn_core::DType;
use defn_core::op::Direction;

use crate::kernels::simd::vectorized;

/// The bits of an element.
pub(super) trait Bits: super::radix::Item {
    /// How many there are.
    const WIDTH: u32;
    /// The low bits.
    fn truncate(bits: u64) -> Self;
    /// The bits as a number.
    fn wide(self) -> u64;
    /// Every bit the sign's.
    fn spread(self) -> Self;
    /// Exclusive or.
    fn xor(self, other: Self) -> Self;
    /// Or.
    fn or(self, other: Self) -> Self;
    /// And.
    fn and(self, other: Self) -> Self;
    /// The complement.
    fn not(self) -> Self;
}

macro_rules! bits {
    ($($ty:ty, $signed:ty;)*) => {$(
        impl Bits for $ty {
            const WIDTH: u32 = <$ty>::BITS;
            #[inline(always)]
            fn truncate(bits: u64) -> $ty { bits as $ty }
            #[inline(always)]
            fn wide(self) -> u64 { u64::from(self) }
            #[inline(always)]
            fn spread(self) -> $ty { (self as $signed >> (<$ty>::BITS - 1)) as $ty }
            #[inline(always)]
            fn xor(self, other: $ty) -> $ty { self ^ other }
            #[inline(always)]
            fn or(self, other: $ty) -> $ty { self | other }
            #[inline(always)]
            fn and(self, other: $ty) -> $ty { self & other }
            #[inline(always)]
            fn not(self) -> $ty { !self }
        }
    )*};
}
bits! {
    u8, i8;
    u16, i16;
    u32, i32;
    u64, i64;
}

/// How the bits of a dtype's elements become keys.
///
/// A signed integer's sign is flipped. A negative float has all bits flipped and another one its sign, so that
/// magnitudes count from zero on in both directions; NaN has the greatest key, and zeros have one (the order
/// without these two is that of IEEE 754's totalOrder). For the descending order keys are complemented.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code<T> {
    /// All bits for floats, none for integers.
    float: T,
    /// The sign, for signed numbers.
    sign: T,
    /// The greatest magnitude that is a number; all bits for integers.
    greatest: T,
    /// All bits for the descending order.
    flip: T,
}

impl<T: Bits> Code<T> {
    /// The code of a dtype that has an order.
    pub(super) fn new(dtype: DType, direction: Direction) -> Code<T> {
        let all = u64::MAX;
        let sign = 1 << (T::WIDTH - 1);
        let (float, sign, greatest) = match dtype {
            DType::Bool | DType::U2 | DType::U4 | DType::U8 | DType::U16 | DType::U32 | DType::U64 => {
                (0, 0, all)
            }
            DType::S2 | DType::S4 | DType::S8 | DType::S16 | DType::S32 | DType::S64 => (0, sign, all),
            DType::F8E5M2 => (all, sign, 0x7c),
            DType::F8E4M3FN => (all, sign, 0x7e),
            DType::F16 => (all, sign, 0x7c00),
            DType::BF16 => (all, sign, 0x7f80),
            DType::F32 => (all, sign, 0x7f80_0000),
            DType::F64 => (all, sign, 0x7ff0_0000_0000_0000),
            DType::C64 | DType::C128 => unreachable!("{dtype} has no order"),
        };
        let flip = match direction {
            Direction::Asc => 0,
            Direction::Desc => all,
        };
        let [float, sign, greatest, flip] = [float, sign, greatest, flip].map(T::truncate);
        Code { float, sign, greatest, flip }
    }

    /// The key of an element.
    #[inline(always)]
    pub(super) fn key(self, bits: T) -> T {
        let magnitude = bits.and(self.sign.not());
        let ordered = bits.xor(bits.spread().and(self.float).or(self.sign));
        let is_zero = magnitude == T::truncate(0) && self.float != T::truncate(0);
        let is_nan = magnitude > self.greatest;
        let key = if is_zero { self.sign } else { ordered };
        let key = if is_nan { T::truncate(u64::MAX) } else { key };
        key.xor(self.flip)
    }

    /// The element of a key: 0.0 for both zeros, and one NaN for all.
    #[inline(always)]
    pub(super) fn bits(self, key: T) -> T {
        let key = key.xor(self.flip);
        key.xor(key.not().spread().and(self.float).or(self.sign))
    }

    /// The key of every NaN.
    pub(super) fn nan(self) -> T {
        T::truncate(u64::MAX).xor(self.flip)
    }
}

vectorized! {
    /// Writes the keys of elements; returns whether one has other bits than its key gives back.
    pub(super) fn encode[T: Bits] of [T] (code: Code<T>, x: &[T], out: &mut [MaybeUninit<T>]) -> bool {
        debug_assert_eq!(x.len(), out.len());
        let mut lost = T::default();
        for (out, &bits) in out.iter_mut().zip(x) {
            let key = code.key(bits);
            lost = lost.or(bits.xor(code.bits(key)));
            out.write(key);
        }
        lost != T::default()
    }
}

vectorized! {
    /// Turns keys into elements.
    pub(super) fn decode[T: Bits] of [T] (code: Code<T>, keys: &mut [T]) {
        keys.iter_mut().for_each(|key| *key = code.bits(*key));
    }
}

vectorized! {
    /// Whether an element has other bits than its key gives back.
    pub(super) fn loses[T: Bits] of [T] (code: Code<T>, x: &[T]) -> bool {
        let lost = |lost: T, &bits: &T| lost.or(bits.xor(code.bits(code.key(bits))));
        x.iter().fold(T::default(), lost) != T::default()
    }
}
