//! The peak rate of multiplications and additions in registers, for measurements.

use std::hint::black_box;

use super::simd::at_level;

/// The number of independent vector sums: enough to hide the latency, and few enough for the registers.
const SUMS: usize = 10;

macro_rules! peak {
    ($name:ident, $T:ty, $widest:literal) => {
        /// Runs `steps` steps, and returns the number of multiplications and additions.
        pub(crate) fn $name(steps: usize) -> usize {
            fn sums<const LANES: usize>(steps: usize) -> usize {
                #[inline(always)]
                fn plain<const LANES: usize>(steps: usize) -> usize {
                    run::<LANES>(steps, |a, b, sum| a * b + sum)
                }
                #[inline(always)]
                fn fused<const LANES: usize>(steps: usize) -> usize {
                    run::<LANES>(steps, |a, b, sum| a.mul_add(b, sum))
                }
                at_level!(
                    [const LANES: usize],
                    [LANES],
                    (steps: usize),
                    (usize),
                    plain::<LANES>,
                    fused::<LANES>
                )
            }

            #[inline(always)]
            fn run<const LANES: usize>(steps: usize, step: impl Fn($T, $T, $T) -> $T) -> usize {
                let (a, b) = black_box(([1.000_001; LANES], [0.999_999; LANES]));
                let mut sums: [[$T; LANES]; SUMS] = black_box([[0.0; LANES]; SUMS]);
                for _ in 0..steps {
                    for sum in &mut sums {
                        for lane in 0..LANES {
                            sum[lane] = step(a[lane], b[lane], sum[lane]);
                        }
                    }
                }
                black_box(sums);
                2 * LANES * SUMS * steps
            }

            #[cfg(target_arch = "x86_64")]
            match super::simd::level() {
                super::simd::Level::Avx512 => return sums::<$widest>(steps),
                super::simd::Level::Avx2 => return sums::<{ $widest / 2 }>(steps),
                super::simd::Level::Portable => {}
            }
            sums::<{ $widest / 4 }>(steps)
        }
    };
}
peak!(peak_of_f32, f32, 16);
peak!(peak_of_f64, f64, 8);
