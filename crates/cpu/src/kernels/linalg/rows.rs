//! Dot products of rows with a vector, one tile of both at a time.
//!
//! A sum has enough lanes for the processor to compute several of them in parallel. All instruction sets use the same
//! number of lanes and join them in the same order. Rows are read one after the other: where several were read at once,
//! a product of 256 x 256 took 2.9 instead of 2.1 us.

use std::mem::MaybeUninit;

use super::columns::Columns;
use super::gemm::Vector;
use crate::kernels::Element;
use crate::kernels::simd::vectorized;

/// Lanes of a sum, for elements without a vector kernel.
const LANES: usize = 64;

/// Bytes of the lanes of a float sum: two vectors of 512 bits, four of 256 or eight of 128.
const BYTES: usize = 128;

/// Elements whose rows can be multiplied by a vector.
pub(super) trait Rows: Columns {
    /// Writes the dot products of `b` with rows that begin a stride apart. `b` has at most one tile of elements.
    fn dots(a: &[Self], stride: usize, b: &[Self], out: &mut [MaybeUninit<Self>]) {
        plain(a, stride, b, out);
    }
}

vectorized! {
    /// Row by row.
    fn plain[C: Element] of [C] (a: &[C], stride: usize, b: &[C], out: &mut [MaybeUninit<C>]) {
        for (row, out) in out.iter_mut().enumerate() {
            out.write(dot(&a[row * stride..][..b.len()], b));
        }
    }
}

/// The dot product of one row.
#[inline(always)]
fn dot<C: Element>(a: &[C], b: &[C]) -> C {
    if a.len() < 2 * LANES {
        return a.iter().zip(b).fold(C::ZERO, |sum, (&a, &b)| sum.plus(a.times(b)));
    }
    let ((a_lines, a_rest), (b_lines, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut lanes = [C::ZERO; LANES];
    for (a, b) in a_lines.iter().zip(b_lines) {
        for i in 0..LANES {
            lanes[i] = lanes[i].plus(a[i].times(b[i]));
        }
    }
    for ((lane, &a), &b) in lanes.iter_mut().zip(a_rest).zip(b_rest) {
        *lane = lane.plus(a.times(b));
    }
    joined(&mut lanes)
}

/// The sum of the lanes, by pairwise halving.
#[inline(always)]
fn joined<C: Element>(lanes: &mut [C]) -> C {
    let mut width = lanes.len();
    while width > 1 {
        width /= 2;
        let (low, high) = lanes.split_at_mut(width);
        low.iter_mut().zip(high).for_each(|(low, &mut high)| *low = low.plus(high));
    }
    lanes[0]
}

/// Bytes from a line to the one that is prefetched meanwhile.
const AHEAD: usize = 4096;

/// Writes the dot products of rows with `b`, row by row. A sum has `LANES` lanes in `VECTORS` vectors.
///
/// # Safety
/// The processor has the instructions, and `a` has one row for each element of `out`.
#[inline(always)]
unsafe fn sums<C: Element, V: Vector<Element = C>, const VECTORS: usize, const LANES: usize>(
    a: &[C],
    stride: usize,
    b: &[C],
    out: &mut [MaybeUninit<C>],
) {
    // The hardware prefetcher stays within a page. It is in time for rows that are longer.
    let is_short = stride.saturating_mul(size_of::<C>()) <= AHEAD;
    for (row, out) in out.iter_mut().enumerate() {
        let row = &a[row * stride..][..b.len()];
        let sum = if is_short {
            // SAFETY: the caller guarantees it, here and below.
            unsafe { row_sum::<C, V, VECTORS, LANES, true>(row, b) }
        } else {
            // SAFETY: as above.
            unsafe { row_sum::<C, V, VECTORS, LANES, false>(row, b) }
        };
        out.write(sum);
    }
}

/// The dot product of a row.
///
/// # Safety
/// The processor has the instructions.
#[inline(always)]
unsafe fn row_sum<
    C: Element,
    V: Vector<Element = C>,
    const VECTORS: usize,
    const LANES: usize,
    const PREFETCH: bool,
>(
    row: &[C],
    b: &[C],
) -> C {
    const { assert!(V::LANES * VECTORS == LANES) };
    let ((row_lines, row_rest), (b_lines, b_rest)) = (row.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    // SAFETY: the processor has the instructions, and each line has the elements of its vectors.
    unsafe {
        let mut lanes = [V::zero(); VECTORS];
        let mut add = |row: &[C; LANES], b: &[C; LANES]| {
            for (i, lane) in lanes.iter_mut().enumerate() {
                let at = row.as_ptr().add(i * V::LANES);
                if PREFETCH {
                    V::prefetch(at.wrapping_byte_add(AHEAD));
                }
                *lane = lane.plus_product(V::load(at), V::load(b.as_ptr().add(i * V::LANES)));
            }
        };
        for (row, b) in row_lines.iter().zip(b_lines) {
            add(row, b);
        }
        if !b_rest.is_empty() {
            // Pads the last, incomplete line with zeros.
            let full = |rest: &[C]| {
                let mut line = [C::ZERO; LANES];
                line[..rest.len()].copy_from_slice(rest);
                line
            };
            add(&full(row_rest), &full(b_rest));
        }
        let mut vectors = VECTORS;
        while vectors > 1 {
            vectors /= 2;
            for i in 0..vectors {
                lanes[i] = lanes[i].plus(lanes[i + vectors]);
            }
        }
        let mut partials = V::LANES;
        while partials > 1 {
            partials /= 2;
            let (low, high) = lanes[0].zip(lanes[0]);
            lanes[0] = low.plus(high);
        }
        let mut sum = [C::ZERO; LANES];
        lanes[0].store(sum.as_mut_ptr());
        sum[0]
    }
}

/// The kernels of a float: its vector type for each instruction set.
macro_rules! rows_of_floats {
    ($($C:ty: $wide:ident $half:ident $plainly:ty;)*) => {$(
        impl Rows for $C {
            fn dots(a: &[$C], stride: usize, b: &[$C], out: &mut [MaybeUninit<$C>]) {
                const LANES: usize = BYTES / size_of::<$C>();
                if b.len() < LANES {
                    return plain(a, stride, b, out);
                }
                #[cfg(target_arch = "x86_64")]
                {
                    use std::arch::x86_64::{$half, $wide};

                    use crate::kernels::simd::{Level, level};

                    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi2,fma")]
                    fn avx512(a: &[$C], stride: usize, b: &[$C], out: &mut [MaybeUninit<$C>]) {
                        const VECTORS: usize = BYTES / size_of::<$wide>();
                        // SAFETY: the caller checked that the processor has the instructions.
                        unsafe { sums::<$C, $wide, VECTORS, LANES>(a, stride, b, out) }
                    }

                    #[target_feature(enable = "avx2,bmi2,fma")]
                    fn avx2(a: &[$C], stride: usize, b: &[$C], out: &mut [MaybeUninit<$C>]) {
                        const VECTORS: usize = BYTES / size_of::<$half>();
                        // SAFETY: as above.
                        unsafe { sums::<$C, $half, VECTORS, LANES>(a, stride, b, out) }
                    }

                    match level() {
                        // SAFETY: the level says that the processor has these instructions.
                        Level::Avx512 => return unsafe { avx512(a, stride, b, out) },
                        // SAFETY: as above.
                        Level::Avx2 => return unsafe { avx2(a, stride, b, out) },
                        Level::Portable => {}
                    }
                }
                // SAFETY: every processor has these instructions.
                unsafe { sums::<$C, $plainly, { BYTES / size_of::<$plainly>() }, LANES>(a, stride, b, out) }
            }
        }
    )*};
}
rows_of_floats! {
    f32: __m512 __m256 super::gemm::PortableVector<f32, 4>;
    f64: __m512d __m256d super::gemm::PortableVector<f64, 2>;
}

macro_rules! rows_of_others {
    ($($C:ty),*) => {$(impl Rows for $C {})*};
}
rows_of_others!(u8, u16, u32, u64, i8, i16, i32, i64);
rows_of_others!(num_complex::Complex<f32>, num_complex::Complex<f64>);
