//! Dot products of rows with a vector, one tile of both at a time.
//!
//! A sum has enough lanes for the processor to compute several of them in parallel. All instruction sets use the same
//! number of lanes and join them in the same order. Float kernels process several rows at once in vectors that stay in
//! registers, because several streams are read faster than one.

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

/// Writes the sums of `ROWS` rows at a time, and of the remaining rows one by one. A sum has `LANES` lanes in `VECTORS`
/// vectors.
///
/// # Safety
/// The processor has the instructions, and `a` has one row for each element of `out`.
#[inline(always)]
unsafe fn sums<
    C: Element,
    V: Vector<Element = C>,
    const ROWS: usize,
    const VECTORS: usize,
    const LANES: usize,
>(
    a: &[C],
    stride: usize,
    b: &[C],
    out: &mut [MaybeUninit<C>],
) {
    const { assert!(V::LANES * VECTORS == LANES) };
    let (groups, rest) = out.as_chunks_mut::<ROWS>();
    let left = ROWS * groups.len();
    for (group, out) in groups.iter_mut().enumerate() {
        // SAFETY: the caller guarantees it, here and below.
        *out = unsafe { group_sums::<C, V, ROWS, VECTORS, LANES>(&a[group * ROWS * stride..], stride, b) };
    }
    for (row, out) in (left..).zip(rest) {
        // SAFETY: as above.
        let [sum] = unsafe { group_sums::<C, V, 1, VECTORS, LANES>(&a[row * stride..], stride, b) };
        *out = sum;
    }
}

/// The dot products of `ROWS` rows.
///
/// # Safety
/// As for [`sums`].
#[inline(always)]
unsafe fn group_sums<
    C: Element,
    V: Vector<Element = C>,
    const ROWS: usize,
    const VECTORS: usize,
    const LANES: usize,
>(
    a: &[C],
    stride: usize,
    b: &[C],
) -> [MaybeUninit<C>; ROWS] {
    let lines = b.len() / LANES;
    let rows: [&[C]; ROWS] = std::array::from_fn(|row| &a[row * stride..][..b.len()]);
    // SAFETY: the processor has the instructions. Each line is inside the rows and the vector, and the buffers have
    // room for one line.
    unsafe {
        let mut lanes = [[V::zero(); VECTORS]; ROWS];
        for line in 0..lines {
            let at = line * LANES;
            let factors: [V; VECTORS] = std::array::from_fn(|i| V::load(b.as_ptr().add(at + i * V::LANES)));
            for (lanes, row) in lanes.iter_mut().zip(rows) {
                for (i, lane) in lanes.iter_mut().enumerate() {
                    let pointer = row.as_ptr().add(at + i * V::LANES);
                    // Prefetches the next group of rows. The hardware prefetcher stays within a page, which holds a
                    // row.
                    V::prefetch(pointer.wrapping_add(ROWS * stride));
                    *lane = lane.plus_product(V::load(pointer), factors[i]);
                }
            }
        }
        if lines * LANES < b.len() {
            // Pads the last, incomplete line with zeros.
            let full = |from: &[C]| {
                let mut line = [C::ZERO; LANES];
                line[..b.len() - lines * LANES].copy_from_slice(&from[lines * LANES..]);
                line
            };
            let last = full(b);
            for (lanes, row) in lanes.iter_mut().zip(rows) {
                let row = full(row);
                for (i, lane) in lanes.iter_mut().enumerate() {
                    let at = i * V::LANES;
                    *lane = lane.plus_product(V::load(row.as_ptr().add(at)), V::load(last.as_ptr().add(at)));
                }
            }
        }
        let halved = |mut lanes: [V; VECTORS]| {
            let mut vectors = VECTORS;
            while vectors > 1 {
                vectors /= 2;
                for i in 0..vectors {
                    lanes[i] = lanes[i].plus(lanes[i + vectors]);
                }
            }
            lanes[0]
        };
        // One addition halves two vectors at once, because `zip` interleaves their lanes.
        let mut sums = lanes.map(halved);
        let mut vectors = ROWS;
        while vectors > 1 {
            vectors /= 2;
            for i in 0..vectors {
                let (low, high) = sums[i].zip(sums[i + vectors]);
                sums[i] = low.plus(high);
            }
        }
        let mut partials = V::LANES / ROWS;
        while partials > 1 {
            partials /= 2;
            let (low, high) = sums[0].zip(sums[0]);
            sums[0] = low.plus(high);
        }
        let mut sum = [C::ZERO; LANES];
        sums[0].store(sum.as_mut_ptr());
        std::array::from_fn(|row| MaybeUninit::new(sum[row * (V::LANES / ROWS)]))
    }
}

/// The kernels of a float: its vector type for each instruction set, and the number of rows that are summed at once.
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
                        unsafe { sums::<$C, $wide, 4, VECTORS, LANES>(a, stride, b, out) }
                    }

                    #[target_feature(enable = "avx2,bmi2,fma")]
                    fn avx2(a: &[$C], stride: usize, b: &[$C], out: &mut [MaybeUninit<$C>]) {
                        const VECTORS: usize = BYTES / size_of::<$half>();
                        // SAFETY: as above. More rows do not fit into 16 registers.
                        unsafe { sums::<$C, $half, 2, VECTORS, LANES>(a, stride, b, out) }
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
                unsafe { sums::<$C, $plainly, 1, { BYTES / size_of::<$plainly>() }, LANES>(a, stride, b, out) }
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
