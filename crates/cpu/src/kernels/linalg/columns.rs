//! Sums of rows, each times its factor: a matrix is multiplied by a vector from the other side. Products are rounded
//! before they are added, in the order of the rows, so that all instruction sets give the same bits.

use std::mem::MaybeUninit;

use super::gemm::{FirstLanes, PortableVector};
use super::vector::piece_rows;
use super::{Matrices, partials};
use crate::kernels::Element;
use crate::kernels::reduce::{CHUNK, Cascade};
use crate::kernels::simd::vectorized;
use crate::par::Par;
use crate::view::ViewMut;

/// Rows of a matrix whose products are summed before this sum is added to the total.
pub(super) const BLOCK: usize = 64;

/// Most results of a task. Its sums stay in the L1 cache.
const MAX_TASK_RESULTS: usize = 2048;

/// Most results of a task of a small matrix.
const NARROW: usize = 256;

/// Bytes of a block of rows that stay in the L1 cache. Of a larger block only a few rows are read at a time, so that
/// each is read along its pages.
const MAX_CACHED_BLOCK_BYTES: usize = 1 << 15;

/// Rows of a larger block that are read at a time.
const ROWS_PER_READ: usize = 16;

/// Elements whose rows can be added.
pub(super) trait Columns: Element {
    /// Adds rows, a stride apart, each times its factor, to `sums`, or to zeros if it `starts`.
    ///
    /// # Safety
    /// The rows are inside the matrix, and as long as the sums, which are initialised unless it starts.
    unsafe fn add_rows(
        factors: &[Self],
        matrix: &[Self],
        stride: usize,
        sums: &mut [MaybeUninit<Self>],
        starts: bool,
    ) {
        if starts {
            sums.fill(MaybeUninit::new(Self::ZERO));
        }
        // SAFETY: they are initialised now.
        add_plainly(factors, matrix, stride, unsafe { sums.assume_init_mut() });
    }
}

vectorized! {
    /// Row by row.
    fn add_plainly[C: Element] of [C] (factors: &[C], matrix: &[C], stride: usize, sums: &mut [C]) {
        for (index, &factor) in factors.iter().enumerate() {
            for (sum, &x) in sums.iter_mut().zip(&matrix[index * stride..]) {
                *sum = sum.plus(x.times(factor));
            }
        }
    }
}

/// Adds rows to as many sums as vectors have lanes, but for the `last` one, of which that many lanes are used.
///
/// # Safety
/// The processor has the instructions, and the rows and sums have these elements.
#[inline(always)]
unsafe fn add_column_block<V: FirstLanes, const VECTORS: usize>(
    factors: &[V::Element],
    mut row: *const V::Element,
    stride: usize,
    (sums, last): (*mut V::Element, usize),
    starts: bool,
) {
    // SAFETY: the caller guarantees it.
    unsafe {
        let last = V::first(last);
        let load = |from: *const V::Element, j: usize| {
            let from = from.add(j * V::LANES);
            if j + 1 < VECTORS { V::load(from) } else { V::load_first(from, last) }
        };
        let mut lanes = [V::zero(); VECTORS];
        if !starts {
            lanes = std::array::from_fn(|j| load(sums, j));
        }
        for factor in factors {
            let factor = V::repeat(factor);
            for (j, lane) in lanes.iter_mut().enumerate() {
                // A product that is added to zero is rounded like a product alone. Sums that begin at positive zero
                // never see the sign of a product that is zero.
                *lane = lane.plus(V::zero().plus_product(load(row, j), factor));
            }
            row = row.wrapping_add(stride);
        }
        for (j, lane) in lanes.into_iter().enumerate() {
            let to = sums.add(j * V::LANES);
            if j + 1 < VECTORS { lane.store(to) } else { lane.store_first(to, last) }
        }
    }
}

/// As [`Columns::add_rows`], column block by column block.
///
/// # Safety
/// As there; the processor has the instructions.
#[inline(always)]
unsafe fn add_column_blocks<V: FirstLanes>(
    factors: &[V::Element],
    matrix: &[V::Element],
    stride: usize,
    sums: &mut [MaybeUninit<V::Element>],
    starts: bool,
) {
    let mut done = 0;
    while done < sums.len() {
        let left = sums.len() - done;
        let from = matrix[done..].as_ptr();
        // SAFETY: the caller guarantees it.
        unsafe {
            let to = sums.as_mut_ptr().add(done).cast();
            let last = |vectors: usize| (left - (vectors - 1) * V::LANES).min(V::LANES);
            done += V::LANES
                * match left.div_ceil(V::LANES) {
                    8.. => {
                        add_column_block::<V, 8>(factors, from, stride, (to, last(8)), starts);
                        8
                    }
                    4.. => {
                        add_column_block::<V, 4>(factors, from, stride, (to, last(4)), starts);
                        4
                    }
                    2.. => {
                        add_column_block::<V, 2>(factors, from, stride, (to, last(2)), starts);
                        2
                    }
                    _ => {
                        add_column_block::<V, 1>(factors, from, stride, (to, last(1)), starts);
                        1
                    }
                };
        }
    }
}

/// The kernels of a float: its vector type for each instruction set.
macro_rules! columns_of_floats {
    ($($C:ty: $wide:ident $half:ident $plainly:ty;)*) => {$(
        impl Columns for $C {
            unsafe fn add_rows(
                factors: &[$C],
                matrix: &[$C],
                stride: usize,
                sums: &mut [MaybeUninit<$C>],
                starts: bool,
            ) {
                let rows = factors.len();
                assert!(rows == 0 || (rows - 1) * stride + sums.len() <= matrix.len());
                #[cfg(target_arch = "x86_64")]
                {
                    use std::arch::x86_64::{$half, $wide};

                    use crate::kernels::simd::{Level, level};

                    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi2,fma")]
                    fn avx512(
                        factors: &[$C],
                        matrix: &[$C],
                        stride: usize,
                        sums: &mut [MaybeUninit<$C>],
                        starts: bool,
                    ) {
                        // SAFETY: the caller checked the instructions and the rows.
                        unsafe { add_column_blocks::<$wide>(factors, matrix, stride, sums, starts) }
                    }

                    #[target_feature(enable = "avx2,bmi2,fma")]
                    fn avx2(
                        factors: &[$C],
                        matrix: &[$C],
                        stride: usize,
                        sums: &mut [MaybeUninit<$C>],
                        starts: bool,
                    ) {
                        // SAFETY: as above.
                        unsafe { add_column_blocks::<$half>(factors, matrix, stride, sums, starts) }
                    }

                    match level() {
                        // SAFETY: the level says that the processor has these instructions.
                        Level::Avx512 => return unsafe { avx512(factors, matrix, stride, sums, starts) },
                        // SAFETY: as above.
                        Level::Avx2 => return unsafe { avx2(factors, matrix, stride, sums, starts) },
                        Level::Portable => {}
                    }
                }
                // SAFETY: every processor has these instructions; the rows are inside by the assertion.
                unsafe { add_column_blocks::<$plainly>(factors, matrix, stride, sums, starts) }
            }
        }
    )*};
}
columns_of_floats! {
    f32: __m512 __m256 PortableVector<f32, 4>;
    f64: __m512d __m256d PortableVector<f64, 2>;
}

macro_rules! columns_of_others {
    ($($C:ty),*) => {$(impl Columns for $C {})*};
}
columns_of_others!(u8, u16, u32, u64, i8, i16, i32, i64);
columns_of_others!(num_complex::Complex<f32>, num_complex::Complex<f64>);

/// As [`rows`](super::vector::rows), for matrices that are contiguous along the free axis.
pub(super) fn columns<C: Columns>(
    matrix: Matrices<'_, C>,
    vector: Matrices<'_, C>,
    sizes: (usize, usize, usize),
    out: &ViewMut<'_>,
    scratch: &ViewMut<'_>,
    par: Par,
) {
    if sizes.1 <= NARROW {
        columns_by::<C, NARROW>(matrix, vector, sizes, out, scratch, par);
    } else {
        columns_by::<C, MAX_TASK_RESULTS>(matrix, vector, sizes, out, scratch, par);
    }
}

/// With at most `WIDTH` results for each task.
fn columns_by<C: Columns, const WIDTH: usize>(
    matrix: Matrices<'_, C>,
    vector: Matrices<'_, C>,
    (batch, count, k): (usize, usize, usize),
    out: &ViewMut<'_>,
    scratch: &ViewMut<'_>,
    par: Par,
) {
    let height = piece_rows(count);
    let (pieces, column_blocks) = (k.div_ceil(height), count.div_ceil(WIDTH));
    let work = count.min(WIDTH) * k.min(height);
    let to = if pieces == 1 { out } else { scratch };
    par.for_chunks(batch * pieces * column_blocks, (CHUNK / work).max(1), |chunk| {
        for task in chunk {
            let (column_block, piece, batch) =
                (task % column_blocks, task / column_blocks % pieces, task / column_blocks / pieces);
            let column = column_block * WIDTH;
            let width = WIDTH.min(count - column);
            let (from, until) = (piece * height, k.min((piece + 1) * height));
            let vector = &vector.row(batch, 0, k)[from..until];
            let (first, stride) = (matrix.element_offset(batch, column), matrix.side.along as usize);
            // SAFETY: each column block of each piece belongs to one chunk.
            let total = unsafe { to.part::<C>((batch * pieces + piece) * count + column, width) };
            block_sums::<C, WIDTH>(vector, &matrix.elements[first + from * stride..], stride, total);
        }
    });
    if pieces > 1 {
        for output in 0..batch * count {
            let first = output / count * pieces * count + output % count;
            let mut cascade = Cascade::new();
            for piece in 0..pieces {
                // SAFETY: all pieces are written and no longer change.
                cascade.push(unsafe { partials::<C>(scratch, first + piece * count, 1) }[0]);
            }
            // SAFETY: only this thread writes the output.
            unsafe { out.part::<C>(output, 1)[0].write(cascade.finish()) };
        }
    }
}

/// The sum of rows of `matrix`, a stride apart, each times an element of `vector`.
fn block_sums<C: Columns, const WIDTH: usize>(
    vector: &[C],
    matrix: &[C],
    stride: usize,
    total: &mut [MaybeUninit<C>],
) {
    let rows = if BLOCK * stride * size_of::<C>() <= MAX_CACHED_BLOCK_BYTES { BLOCK } else { ROWS_PER_READ };
    let sums = |index: usize, factors: &[C], sums: &mut [MaybeUninit<C>]| {
        for (few, factors) in factors.chunks(rows).enumerate() {
            let matrix = &matrix[(index * BLOCK + few * rows) * stride..];
            // SAFETY: the first call starts the sums, and the rows are as long as them.
            unsafe { C::add_rows(factors, matrix, stride, sums, few == 0) };
        }
    };
    let (first, rest) = vector.split_at(BLOCK.min(vector.len()));
    sums(0, first, total);
    if rest.is_empty() {
        return;
    }
    let mut block = [MaybeUninit::uninit(); WIDTH];
    let block = &mut block[..total.len()];
    for (index, factors) in rest.chunks(BLOCK).enumerate() {
        sums(index + 1, factors, block);
        // SAFETY: both were written.
        let (total, block) = unsafe { (total.assume_init_mut(), block.assume_init_ref()) };
        total.iter_mut().zip(block).for_each(|(total, &sum)| *total = total.plus(sum));
    }
}
