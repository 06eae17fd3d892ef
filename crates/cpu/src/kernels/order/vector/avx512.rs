//! AVX-512: registers of 512 bits.

use std::arch::x86_64::*;

use super::Vector;

/// Sixteen keys of 32 bits.
#[derive(Clone, Copy)]
pub(in super::super) struct Wide32(__m512i);

/// Eight keys of 64 bits.
#[derive(Clone, Copy)]
pub(in super::super) struct Wide64(__m512i);

/// Permutation indices: `(first + i) ^ distance` for lane `i`.
const fn lanes<const COUNT: usize>(first: usize, distance: usize) -> [u32; COUNT] {
    let mut lanes = [0; COUNT];
    let mut lane = 0;
    while lane < COUNT {
        lanes[lane] = ((first + lane) ^ distance) as u32;
        lane += 1;
    }
    lanes
}

/// Permutation indices that interleave the lanes of two operands, from lane `first` of each on.
const fn turns<const COUNT: usize>(first: usize) -> [u32; COUNT] {
    let mut lanes = [0; COUNT];
    let mut lane = 0;
    while lane < COUNT {
        lanes[lane] = (first + lane / 2 + lane % 2 * COUNT) as u32;
        lane += 1;
    }
    lanes
}

/// A mask of the numbers below 16 that have `bit`.
const fn having(bit: usize) -> u16 {
    let (mut mask, mut lane) = (0, 0);
    while lane < 16 {
        if lane & bit != 0 {
            mask |= 1 << lane;
        }
        lane += 1;
    }
    mask
}

macro_rules! wide {
    (
        $name:ident, $key:ty, $signed:ty, $count:literal, $mask:ty, $lanes:expr,
        $set:ident, $maskz_load:ident, $mask_store:ident, $min:ident, $max:ident, $permute:ident, $blend:ident,
        $permute_two:ident, $compare:ident, $compress:ident
    ) => {
        impl $name {
            /// A mask of the first `count` lanes.
            #[inline(always)]
            fn first(count: usize) -> $mask {
                ((1u32 << count) - 1) as $mask
            }

            /// As `Vector::split`, for the lanes in the masks `low` and `high`.
            #[inline(always)]
            unsafe fn scatter(
                self,
                low: $mask,
                high: $mask,
                left: *mut $key,
                right: *mut $key,
                whole: bool,
            ) -> usize {
                let (lows, highs) = (low.count_ones() as usize, high.count_ones() as usize);
                // SAFETY: the caller guarantees it. A store writes only the selected keys, or a whole vector where
                // there is room for one. The right side is written last, over the excess of the left one.
                unsafe {
                    let keys = $compress(low, self.0);
                    if whole {
                        _mm512_storeu_si512(left.cast(), keys);
                    } else {
                        $mask_store(left.cast(), Self::first(lows), keys);
                    }
                    $mask_store(right.sub(highs).cast(), Self::first(highs), $compress(high, self.0));
                }
                lows
            }
        }

        impl Vector for $name {
            type Key = $key;
            const LANES: usize = $count;
            const GREATEST: $key = <$key>::MAX;

            #[inline(always)]
            unsafe fn splat(key: $key) -> Self {
                // SAFETY: the caller guarantees it.
                $name(unsafe { $set(key as $signed) })
            }

            #[inline(always)]
            unsafe fn load(from: *const $key) -> Self {
                // SAFETY: the caller guarantees it.
                $name(unsafe { _mm512_loadu_si512(from.cast()) })
            }

            #[inline(always)]
            unsafe fn load_part(from: *const $key, count: usize, rest: Self) -> Self {
                // SAFETY: the caller guarantees it; other lanes are not read.
                $name(unsafe { $maskz_load(rest.0, Self::first(count), from.cast()) })
            }

            #[inline(always)]
            unsafe fn store_part(self, to: *mut $key, count: usize) {
                // SAFETY: the caller guarantees it; other lanes are not written.
                unsafe { $mask_store(to.cast(), Self::first(count), self.0) };
            }

            #[inline(always)]
            unsafe fn min(self, other: Self) -> Self {
                // SAFETY: the caller guarantees it.
                $name(unsafe { $min(self.0, other.0) })
            }

            #[inline(always)]
            unsafe fn max(self, other: Self) -> Self {
                // SAFETY: the caller guarantees it.
                $name(unsafe { $max(self.0, other.0) })
            }

            #[inline(always)]
            unsafe fn across<const DISTANCE: usize>(self) -> Self {
                // SAFETY: the caller guarantees it; arrays of 64 bytes are read.
                unsafe {
                    let order =
                        _mm512_loadu_si512(const { $lanes(lanes::<$count>(0, DISTANCE)) }.as_ptr().cast());
                    $name($permute(order, self.0))
                }
            }

            #[inline(always)]
            unsafe fn choose<const BIT: usize>(unset: Self, set: Self) -> Self {
                // SAFETY: the caller guarantees it.
                $name(unsafe { $blend(const { having(BIT) as $mask }, unset.0, set.0) })
            }

            #[inline(always)]
            unsafe fn interleave(self, other: Self) -> (Self, Self) {
                // SAFETY: the caller guarantees it; arrays of 64 bytes are read.
                unsafe {
                    let low = _mm512_loadu_si512(const { $lanes(turns::<$count>(0)) }.as_ptr().cast());
                    let high =
                        _mm512_loadu_si512(const { $lanes(turns::<$count>($count / 2)) }.as_ptr().cast());
                    ($name($permute_two(self.0, low, other.0)), $name($permute_two(self.0, high, other.0)))
                }
            }

            #[inline(always)]
            unsafe fn split(self, pivot: Self, left: *mut $key, right: *mut $key) -> usize {
                // SAFETY: the caller guarantees it.
                unsafe {
                    let low = $compare(self.0, pivot.0);
                    self.scatter(low, !low, left, right, true)
                }
            }

            #[inline(always)]
            unsafe fn split_part(
                self,
                count: usize,
                pivot: Self,
                left: *mut $key,
                right: *mut $key,
            ) -> usize {
                let valid = Self::first(count);
                // SAFETY: the caller guarantees it.
                unsafe {
                    let low = $compare(self.0, pivot.0);
                    self.scatter(low & valid, !low & valid, left, right, false)
                }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $key) {
                // SAFETY: the caller guarantees it.
                unsafe { _mm512_storeu_si512(to.cast(), self.0) };
            }
        }
    };
}

const fn same(lanes: [u32; 16]) -> [u32; 16] {
    lanes
}

const fn doubled(lanes: [u32; 8]) -> [u64; 8] {
    let mut wide = [0; 8];
    let mut lane = 0;
    while lane < 8 {
        wide[lane] = lanes[lane] as u64;
        lane += 1;
    }
    wide
}

wide!(
    Wide32,
    u32,
    i32,
    16,
    u16,
    same,
    _mm512_set1_epi32,
    _mm512_mask_loadu_epi32,
    _mm512_mask_storeu_epi32,
    _mm512_min_epu32,
    _mm512_max_epu32,
    _mm512_permutexvar_epi32,
    _mm512_mask_blend_epi32,
    _mm512_permutex2var_epi32,
    _mm512_cmple_epu32_mask,
    _mm512_maskz_compress_epi32
);
wide!(
    Wide64,
    u64,
    i64,
    8,
    u8,
    doubled,
    _mm512_set1_epi64,
    _mm512_mask_loadu_epi64,
    _mm512_mask_storeu_epi64,
    _mm512_min_epu64,
    _mm512_max_epu64,
    _mm512_permutexvar_epi64,
    _mm512_mask_blend_epi64,
    _mm512_permutex2var_epi64,
    _mm512_cmple_epu64_mask,
    _mm512_maskz_compress_epi64
);
