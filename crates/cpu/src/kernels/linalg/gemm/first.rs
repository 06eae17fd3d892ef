//! Vectors of which only the first lanes are read and written: the edges of matrices, in place.

use super::portable::PortableVector;
use super::tile::Vector;

/// A vector register whose first lanes can be read and written alone.
///
/// # Safety
/// As for [`Vector`].
pub(in super::super) trait FirstLanes: Vector {
    /// The lanes that are read or written.
    type First: Copy;

    /// The first `count` lanes; at most all.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn first(count: usize) -> Self::First;
    /// The other lanes are zero.
    ///
    /// # Safety
    /// As above, and the elements of these lanes can be read. No others are touched.
    unsafe fn load_first(from: *const Self::Element, first: Self::First) -> Self;
    /// # Safety
    /// As above, and the elements of these lanes can be written. No others are touched.
    unsafe fn store_first(self, to: *mut Self::Element, first: Self::First);
}

macro_rules! portable {
    ($T:ty, $lanes:literal) => {
        impl FirstLanes for PortableVector<$T, $lanes> {
            type First = usize;

            #[inline(always)]
            unsafe fn first(count: usize) -> usize {
                count
            }
            #[inline(always)]
            unsafe fn load_first(from: *const $T, first: usize) -> Self {
                let mut lanes = [0.0; $lanes];
                for (index, lane) in lanes.iter_mut().enumerate().take(first) {
                    // SAFETY: the caller guarantees it.
                    *lane = unsafe { from.add(index).read() };
                }
                // SAFETY: the array has as many elements as the vector has lanes.
                unsafe { Self::load(lanes.as_ptr()) }
            }
            #[inline(always)]
            unsafe fn store_first(self, to: *mut $T, first: usize) {
                let mut lanes = [0.0; $lanes];
                // SAFETY: the array has as many elements as the vector has lanes.
                unsafe { self.store(lanes.as_mut_ptr()) };
                for (index, &lane) in lanes.iter().enumerate().take(first) {
                    // SAFETY: the caller guarantees it.
                    unsafe { to.add(index).write(lane) };
                }
            }
        }
    };
}
portable!(f32, 4);
portable!(f64, 2);

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::FirstLanes;

    macro_rules! masks {
        ($V:ty, $T:ty, $Mask:ty, $load:ident, $store:ident) => {
            impl FirstLanes for $V {
                type First = $Mask;

                #[inline(always)]
                unsafe fn first(count: usize) -> $Mask {
                    ((1_u32 << count) - 1) as $Mask
                }
                #[inline(always)]
                unsafe fn load_first(from: *const $T, first: $Mask) -> $V {
                    // SAFETY: the caller guarantees it.
                    unsafe { $load(first, from) }
                }
                #[inline(always)]
                unsafe fn store_first(self, to: *mut $T, first: $Mask) {
                    // SAFETY: as above.
                    unsafe { $store(to, first, self) }
                }
            }
        };
    }
    masks!(__m512, f32, __mmask16, _mm512_maskz_loadu_ps, _mm512_mask_storeu_ps);
    masks!(__m512d, f64, __mmask8, _mm512_maskz_loadu_pd, _mm512_mask_storeu_pd);

    macro_rules! signs {
        ($V:ty, $T:ty, $Int:ty, $lanes:literal, $load:ident, $store:ident) => {
            impl FirstLanes for $V {
                /// The sign of a lane says whether it takes part.
                type First = __m256i;

                #[inline(always)]
                unsafe fn first(count: usize) -> __m256i {
                    static SIGNS: [$Int; 2 * $lanes] = {
                        let mut signs = [0; 2 * $lanes];
                        let mut lane = 0;
                        while lane < $lanes {
                            signs[lane] = -1;
                            lane += 1;
                        }
                        signs
                    };
                    debug_assert!(count <= $lanes);
                    // SAFETY: a vector from there on is inside the array. The processor has the instructions.
                    unsafe { _mm256_loadu_si256(SIGNS.as_ptr().add($lanes - count).cast()) }
                }
                #[inline(always)]
                unsafe fn load_first(from: *const $T, first: __m256i) -> $V {
                    // SAFETY: the caller guarantees it.
                    unsafe { $load(from, first) }
                }
                #[inline(always)]
                unsafe fn store_first(self, to: *mut $T, first: __m256i) {
                    // SAFETY: as above.
                    unsafe { $store(to, first, self) }
                }
            }
        };
    }
    signs!(__m256, f32, i32, 8, _mm256_maskload_ps, _mm256_maskstore_ps);
    signs!(__m256d, f64, i64, 4, _mm256_maskload_pd, _mm256_maskstore_pd);
}
