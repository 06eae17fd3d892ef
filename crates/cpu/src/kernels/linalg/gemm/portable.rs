//! Vectors of the tile kernels without intrinsics, for every processor.

use super::tile::Vector;

/// Lanes without intrinsics. The compiler may vectorise them.
#[derive(Clone, Copy)]
pub(in super::super) struct PortableVector<T, const LANES: usize>([T; LANES]);

macro_rules! portable {
    ($T:ty, $lanes:literal) => {
        impl Vector for PortableVector<$T, $lanes> {
            type Element = $T;
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn zero() -> Self {
                PortableVector([0.0; $lanes])
            }
            #[inline(always)]
            unsafe fn load(from: *const $T) -> Self {
                // SAFETY: the caller guarantees it.
                PortableVector(unsafe { from.cast::<[$T; $lanes]>().read() })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $T) {
                // SAFETY: the caller guarantees it.
                unsafe { to.cast::<[$T; $lanes]>().write(self.0) }
            }
            #[inline(always)]
            unsafe fn repeat(from: *const $T) -> Self {
                // SAFETY: the caller guarantees it.
                PortableVector([unsafe { from.read() }; $lanes])
            }
            #[inline(always)]
            unsafe fn plus_product(self, a: Self, b: Self) -> Self {
                PortableVector(std::array::from_fn(|i| {
                    // `mul_add` on x86 without FMA would call a function for each element.
                    if cfg!(target_arch = "aarch64") {
                        a.0[i].mul_add(b.0[i], self.0[i])
                    } else {
                        self.0[i] + a.0[i] * b.0[i]
                    }
                }))
            }
            #[inline(always)]
            unsafe fn plus(self, other: Self) -> Self {
                PortableVector(std::array::from_fn(|i| self.0[i] + other.0[i]))
            }
            #[inline(always)]
            unsafe fn minus(self, other: Self) -> Self {
                PortableVector(std::array::from_fn(|i| self.0[i] - other.0[i]))
            }
            #[inline(always)]
            unsafe fn prefetch(_: *const $T) {}
            #[inline(always)]
            unsafe fn prefetch_l2(_: *const $T) {}
            #[inline(always)]
            unsafe fn zip(self, other: Self) -> (Self, Self) {
                let take = |start: usize| {
                    PortableVector(std::array::from_fn(|i| {
                        let from = if i % 2 == 0 { &self.0 } else { &other.0 };
                        from[start + i / 2]
                    }))
                };
                (take(0), take($lanes / 2))
            }
        }
    };
}
portable!(f32, 4);
portable!(f64, 2);
