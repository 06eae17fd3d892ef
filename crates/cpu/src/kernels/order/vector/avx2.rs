//! AVX2: registers of 256 bits.

use std::arch::x86_64::*;

use super::Vector;

/// Eight keys of 32 bits.
#[derive(Clone, Copy)]
pub(in super::super) struct Half32(__m256i);

/// Four keys of 64 bits.
#[derive(Clone, Copy)]
pub(in super::super) struct Half64(__m256i);

/// For each set of `lanes` lanes, the permutation of 32-bit parts that moves the lanes of the set to the front.
const fn orders<const SETS: usize>(lanes: usize) -> [[u32; 8]; SETS] {
    let parts = 8 / lanes;
    let mut orders = [[0; 8]; SETS];
    let mut set = 0;
    while set < SETS {
        let mut place = 0;
        let mut wanted = 1;
        loop {
            let mut lane = 0;
            while lane < lanes {
                if set >> lane & 1 == wanted {
                    let mut part = 0;
                    while part < parts {
                        orders[set][place] = (lane * parts + part) as u32;
                        place += 1;
                        part += 1;
                    }
                }
                lane += 1;
            }
            if wanted == 0 {
                break;
            }
            wanted = 0;
        }
        set += 1;
    }
    orders
}

static ORDERS_32: [[u32; 8]; 256] = orders(8);
static ORDERS_64: [[u32; 8]; 16] = orders(4);

/// The permutation of 32-bit parts that gives each of `lanes` lanes the key of lane `i ^ distance`.
const fn swapped(lanes: usize, distance: usize) -> [u32; 8] {
    let parts = 8 / lanes;
    let mut order = [0; 8];
    let mut part = 0;
    while part < 8 {
        order[part] = (((part / parts) ^ distance) * parts + part % parts) as u32 % 8;
        part += 1;
    }
    order
}

/// A mask with all bits set in the lanes whose number has `bit`.
const fn having(lanes: usize, bit: usize) -> [u32; 8] {
    let mut mask = [0; 8];
    let mut part = 0;
    while part < 8 {
        if (part / (8 / lanes)) & bit != 0 {
            mask[part] = u32::MAX;
        }
        part += 1;
    }
    mask
}

/// The smaller 64-bit keys, for which AVX2 has no instruction.
#[inline(always)]
unsafe fn lesser_64(a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: the processor has the instructions.
    unsafe { _mm256_blendv_epi8(a, b, Half64(a).above(Half64(b))) }
}

/// The greater 64-bit keys.
#[inline(always)]
unsafe fn greater_64(a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: the processor has the instructions.
    unsafe { _mm256_blendv_epi8(b, a, Half64(a).above(Half64(b))) }
}

macro_rules! half {
    (
        $name:ident, $key:ty, $signed:ty, $count:literal, $orders:ident,
        $set:ident, $mask_load:ident, $mask_store:ident, $above:ident, $low:ident, $high:ident, $bits:ident,
        $float:ident, $min:ident, $max:ident
    ) => {
        impl $name {
            /// A mask with all bits set in the lanes where `self` is greater.
            #[inline(always)]
            unsafe fn above(self, other: Self) -> __m256i {
                // SAFETY: the processor has the instructions. With flipped sign bits, unsigned numbers compare as
                // signed ones.
                unsafe {
                    let sign = $set(<$signed>::MIN);
                    $above(_mm256_xor_si256(self.0, sign), _mm256_xor_si256(other.0, sign))
                }
            }

            /// A mask with all bits set in the first `count` lanes.
            #[inline(always)]
            unsafe fn first(count: usize) -> __m256i {
                const NUMBERS: [$signed; $count] = {
                    let mut numbers = [0; $count];
                    let mut lane = 0;
                    while lane < $count {
                        numbers[lane] = lane as $signed;
                        lane += 1;
                    }
                    numbers
                };
                // SAFETY: the processor has the instructions; an array of 32 bytes is read.
                unsafe { $above($set(count as $signed), _mm256_loadu_si256(NUMBERS.as_ptr().cast())) }
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
                $name(unsafe { _mm256_loadu_si256(from.cast()) })
            }

            #[inline(always)]
            unsafe fn load_part(from: *const $key, count: usize, rest: Self) -> Self {
                // SAFETY: the caller guarantees it; other lanes are not read.
                unsafe {
                    let first = Self::first(count);
                    $name(_mm256_blendv_epi8(rest.0, $mask_load(from.cast(), first), first))
                }
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
                // SAFETY: the caller guarantees it; an array of 32 bytes is read.
                unsafe {
                    let order = const { swapped($count, DISTANCE) };
                    $name(_mm256_permutevar8x32_epi32(self.0, _mm256_loadu_si256(order.as_ptr().cast())))
                }
            }

            #[inline(always)]
            unsafe fn choose<const BIT: usize>(unset: Self, set: Self) -> Self {
                // SAFETY: the caller guarantees it; an array of 32 bytes is read.
                unsafe {
                    let mask = const { having($count, BIT) };
                    $name(_mm256_blendv_epi8(unset.0, set.0, _mm256_loadu_si256(mask.as_ptr().cast())))
                }
            }

            #[inline(always)]
            unsafe fn interleave(self, other: Self) -> (Self, Self) {
                // SAFETY: the caller guarantees it.
                unsafe {
                    let (low, high) = ($low(self.0, other.0), $high(self.0, other.0));
                    let first = _mm256_permute2x128_si256::<0x20>(low, high);
                    ($name(first), $name(_mm256_permute2x128_si256::<0x31>(low, high)))
                }
            }

            #[inline(always)]
            unsafe fn split(self, pivot: Self, left: *mut $key, right: *mut $key) -> usize {
                // SAFETY: the caller guarantees that two whole vectors may be written. An array of 32 bytes is read.
                unsafe {
                    let above = $bits($float(self.above(pivot))) as usize;
                    let low = !above & ((1 << $count) - 1);
                    let order = _mm256_loadu_si256($orders[low].as_ptr().cast());
                    let keys = _mm256_permutevar8x32_epi32(self.0, order);
                    _mm256_storeu_si256(left.cast(), keys);
                    _mm256_storeu_si256(right.sub($count).cast(), keys);
                    low.count_ones() as usize
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
                let (mut keys, mut pivots) = ([0; $count], [0; $count]);
                // SAFETY: the caller guarantees room for `count` keys.
                unsafe {
                    self.store(keys.as_mut_ptr());
                    pivot.store(pivots.as_mut_ptr());
                    let (mut low, mut high) = (0, 0);
                    for &key in &keys[..count] {
                        if key <= pivots[0] {
                            left.add(low).write(key);
                            low += 1;
                        } else {
                            high += 1;
                            right.sub(high).write(key);
                        }
                    }
                    low
                }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $key) {
                // SAFETY: the caller guarantees it.
                unsafe { _mm256_storeu_si256(to.cast(), self.0) };
            }
        }
    };
}

half!(
    Half32,
    u32,
    i32,
    8,
    ORDERS_32,
    _mm256_set1_epi32,
    _mm256_maskload_epi32,
    _mm256_maskstore_epi32,
    _mm256_cmpgt_epi32,
    _mm256_unpacklo_epi32,
    _mm256_unpackhi_epi32,
    _mm256_movemask_ps,
    _mm256_castsi256_ps,
    _mm256_min_epu32,
    _mm256_max_epu32
);
half!(
    Half64,
    u64,
    i64,
    4,
    ORDERS_64,
    _mm256_set1_epi64x,
    _mm256_maskload_epi64,
    _mm256_maskstore_epi64,
    _mm256_cmpgt_epi64,
    _mm256_unpacklo_epi64,
    _mm256_unpackhi_epi64,
    _mm256_movemask_pd,
    _mm256_castsi256_pd,
    lesser_64,
    greater_64
);
