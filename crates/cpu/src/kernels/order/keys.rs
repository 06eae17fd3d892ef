//! Unsigned integer keys that have the order of the elements.

use std::mem::MaybeUninit;

use defn_core::DType;
use defn_core::op::Direction;

use crate::kernels::simd::vectorized;

/// The bits of an element.
pub(super) trait Bits: super::radix::Item {
    /// The number of bits.
    const WIDTH: u32;
    /// The low bits of a number.
    fn truncate(bits: u64) -> Self;
    fn wide(self) -> u64;
    /// All bits set to the sign bit.
    fn spread(self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
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

/// The mapping from a dtype's elements to keys.
///
/// For signed integers the sign bit is flipped. For negative floats all bits are flipped, for others the sign bit. NaN
/// has the greatest key, and both zeros have the same key; otherwise the order is IEEE 754's totalOrder. For the
/// descending order keys are complemented.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code<T> {
    /// All bits for floats, zero for integers.
    float: T,
    /// The sign bit of signed dtypes, zero for others.
    sign: T,
    /// The greatest magnitude that is not NaN; all bits for integers.
    greatest: T,
    /// All bits for the descending order, zero for the ascending one.
    flip: T,
}

impl<T: Bits> Code<T> {
    /// The mapping for a dtype that has an order.
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

    /// The element of a key. Both zeros become 0.0, and all NaNs one NaN.
    #[inline(always)]
    pub(super) fn bits(self, key: T) -> T {
        let key = key.xor(self.flip);
        key.xor(key.not().spread().and(self.float).or(self.sign))
    }

    /// The key of NaN.
    pub(super) fn nan(self) -> T {
        T::truncate(u64::MAX).xor(self.flip)
    }
}

vectorized! {
    /// Writes the keys of elements. Returns whether an element's key does not restore its bits.
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
    /// Whether an element's key does not restore its bits.
    pub(super) fn loses[T: Bits] of [T] (code: Code<T>, x: &[T]) -> bool {
        let lost = |lost: T, &bits: &T| lost.or(bits.xor(code.bits(code.key(bits))));
        x.iter().fold(T::default(), lost) != T::default()
    }
}

/// The bits that are set in any key of these elements, and those that are not set in any.
pub(super) fn bits_of<T: Bits>(code: Code<T>, x: &[T]) -> (u64, u64) {
    let (mut ones, mut zeros) = (T::default(), T::default());
    for &bits in x {
        let key = code.key(bits);
        (ones, zeros) = (ones.or(key), zeros.or(key.not()));
    }
    (ones.wide(), zeros.wide())
}
