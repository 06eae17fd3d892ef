//! The innermost loops (micro-kernels) of a matrix product: a tile of the result stays in registers. Each instruction
//! set has its own.
//!
//! A step is a rank-1 update: it multiplies a column of one panel by a row of the other, with each element of the
//! column broadcast to all lanes. Products use fused multiply-add where the processor has it.

use std::mem::MaybeUninit;

use super::direct::{DirectStep, DirectTile, direct_tile};
use super::pack::Load;
use super::pack_kernels::{PackCopy, PackTransposed, copy_rows, pack_transposed, pack_transposed_fours};
use super::portable::PortableVector;

/// A vector register.
///
/// # Safety
/// A value exists only on a processor with the instructions, so the methods may use them.
pub(in super::super) trait Vector: Copy {
    type Element: Copy;
    const LANES: usize;

    /// # Safety
    /// The processor has the instructions.
    unsafe fn zero() -> Self;
    /// # Safety
    /// As above, and `LANES` elements can be read.
    unsafe fn load(from: *const Self::Element) -> Self;
    /// # Safety
    /// As above, and `LANES` elements can be written.
    unsafe fn store(self, to: *mut Self::Element);
    /// Writes groups of four lanes, `group_stride` elements from each other.
    ///
    /// # Safety
    /// The processor has the instructions, and the elements can be written.
    #[inline(always)]
    unsafe fn store_fours(self, to: *mut Self::Element, group_stride: usize) {
        let mut lanes_buffer = [MaybeUninit::<Self::Element>::uninit(); 16];
        // SAFETY: the caller guarantees it. No vector has more than 16 lanes.
        unsafe {
            self.store(lanes_buffer.as_mut_ptr().cast());
            for (index, four) in lanes_buffer.chunks_exact(4).enumerate().take(Self::LANES / 4) {
                std::ptr::copy_nonoverlapping(four.as_ptr().cast(), to.add(index * group_stride), 4);
            }
        }
    }
    /// # Safety
    /// As above, and one element can be read.
    unsafe fn repeat(from: *const Self::Element) -> Self;
    /// `self + a * b`.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn plus_product(self, a: Self, b: Self) -> Self;
    /// # Safety
    /// The processor has the instructions.
    unsafe fn plus(self, other: Self) -> Self;
    /// Prefetches the cache line of an element that is used soon, into the L1 cache.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn prefetch(at: *const Self::Element);
    /// Prefetches a cache line that is read after many others, into the L2 cache.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn prefetch_l2(at: *const Self::Element);
    /// # Safety
    /// The processor has the instructions.
    unsafe fn minus(self, other: Self) -> Self;
    /// The interleaved lanes of both: of the lower halves, and of the upper halves.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn zip(self, other: Self) -> (Self, Self);
}

/// The inputs of a tile. Strides count elements.
pub(super) struct Step<C> {
    /// The number of products that are summed in each element.
    pub(super) depth: usize,
    /// The first row of `a`, and the strides between its rows and its columns.
    pub(super) a: *const C,
    pub(super) a_row: usize,
    pub(super) a_step: usize,
    /// The first row of `b`. The elements of a row are contiguous.
    pub(super) b: *const C,
    pub(super) b_step: usize,
    /// Offsets of the `rows_per_step` rows of `b` that belong to each step of `b_step`; unused if `rows_per_step` is 0. With them
    /// `a` is a panel, and the depth a multiple of `rows_per_step`.
    pub(super) row_offsets: *const usize,
    pub(super) rows_per_step: usize,
    /// Memory that is read after this tile. Some of it is prefetched during the tile.
    pub(super) next: *const C,
    /// The tile.
    pub(super) out: *mut C,
    pub(super) out_row: usize,
    pub(super) accumulation: Accumulation,
}

/// How sums of products are combined with the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accumulation {
    /// They replace the result.
    Nothing,
    /// They are added to the result.
    Plus,
    /// They are subtracted from the result.
    Minus,
}

impl Accumulation {
    /// How the sums after the first part are combined.
    pub(super) fn then(self) -> Accumulation {
        match self {
            Accumulation::Nothing | Accumulation::Plus => Accumulation::Plus,
            Accumulation::Minus => Accumulation::Minus,
        }
    }
}

/// Computes a tile.
///
/// # Safety
/// All memory that the step names can be read and written, for the tile's rows and vectors, and the processor has the
/// instructions.
pub(super) type Tile<C> = unsafe fn(&Step<C>);

/// The kernels of one instruction set.
pub(crate) struct Kernels<C: 'static> {
    /// Rows of the smallest tile. Tiles have one, two or three times this number.
    pub(super) rows: usize,
    /// Elements of a vector. A row of a tile has one or two vectors.
    pub(super) lanes: usize,
    /// Indexed by row multiple, then by vectors.
    pub(super) tiles: [[Tile<C>; 2]; 3],
    /// The same for tiles whose last vector need not be whole.
    pub(super) direct: [[DirectTile<C>; 2]; 3],
    pub(super) pack_transposed: PackTransposed<C>,
    pub(super) copy_rows: PackCopy<C>,
}

impl<C> Kernels<C> {
    /// Rows of the largest tile.
    pub(super) fn most_rows(&self) -> usize {
        3 * self.rows
    }

    /// Columns of the largest tile.
    pub(super) fn most_columns(&self) -> usize {
        2 * self.lanes
    }

    /// The smallest tile with at least these rows and columns, and its size.
    pub(super) fn tile(&self, rows: usize, columns: usize) -> (Tile<C>, usize, usize) {
        let (high, wide) = (rows.div_ceil(self.rows), columns.div_ceil(self.lanes));
        (self.tiles[high - 1][wide - 1], high * self.rows, wide * self.lanes)
    }
}

/// Steps between two prefetches of `next`.
pub(super) const UNROLL: usize = 8;

/// How many steps before its use a column of a panel is prefetched: the latency of the last-level cache.
const AHEAD: usize = 32;

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// One step of a tile.
///
/// # Safety
/// As for [`Tile`].
#[inline(always)]
unsafe fn multiply<V: Vector, const ROWS: usize, const VECTORS: usize>(
    sums: &mut [[V; VECTORS]; ROWS],
    a: *const V::Element,
    a_row: usize,
    b: *const V::Element,
) {
    // SAFETY: the caller guarantees it.
    unsafe {
        let mut row = [V::zero(); VECTORS];
        for j in 0..VECTORS {
            row[j] = V::load(b.add(j * V::LANES));
        }
        for i in 0..ROWS {
            let factor = V::repeat(a.add(i * a_row));
            for j in 0..VECTORS {
                sums[i][j] = sums[i][j].plus_product(factor, row[j]);
            }
        }
    }
}

/// # Safety
/// As for [`Tile`].
#[inline(always)]
unsafe fn tile<V: Vector, const ROWS: usize, const VECTORS: usize>(step: &Step<V::Element>) {
    let &Step {
        depth,
        a,
        a_row,
        a_step,
        b,
        b_step,
        row_offsets,
        rows_per_step,
        next,
        out,
        out_row,
        accumulation,
    } = step;
    // SAFETY: the caller guarantees it: all positions are inside the operands and the tile.
    unsafe {
        // The result's rows are usually in no near cache, so its lines are prefetched while sums are computed. Long
        // sums would evict them from the L1 cache again. Then they are prefetched twice, a few at a time: first into
        // L2, near the end into L1.
        let rounds = if a_row == 1 && rows_per_step == 0 { depth / UNROLL } else { 0 };
        let is_long = rounds >= ROWS;
        let ask = |row: usize, near: bool| {
            for j in 0..VECTORS {
                let line = out.wrapping_add(row * out_row + j * V::LANES);
                if near { V::prefetch(line) } else { V::prefetch_l2(line) }
            }
        };
        if !is_long {
            for row in 0..ROWS {
                ask(row, true);
            }
        }
        let mut sums = [[V::zero(); VECTORS]; ROWS];
        let (mut a, mut b, mut next) = (a, b, next);
        let mut left = depth;
        if let Some(rounds) = depth.checked_div(rows_per_step) {
            for _ in 0..rounds {
                for index in 0..rows_per_step {
                    V::prefetch(a.wrapping_add(AHEAD * ROWS));
                    multiply::<V, ROWS, VECTORS>(&mut sums, a, 1, b.add(*row_offsets.add(index)));
                    a = a.wrapping_add(ROWS);
                }
                b = b.wrapping_add(b_step);
            }
            left = 0;
        } else if a_row == 1 {
            // A panel: strides are constant, and the next data follows it in memory.
            for round in 0..rounds {
                if is_long && round < ROWS / 2 {
                    ask(2 * round, false);
                    ask(2 * round + 1, false);
                } else if is_long && round >= rounds - ROWS / 2 {
                    ask(2 * (round + ROWS / 2 - rounds), true);
                    ask(2 * (round + ROWS / 2 - rounds) + 1, true);
                }
                V::prefetch_l2(next);
                next = next.wrapping_byte_add(LINE);
                for _ in 0..UNROLL {
                    V::prefetch(a.wrapping_add(AHEAD * ROWS));
                    if ROWS * size_of::<V::Element>() > LINE {
                        V::prefetch(a.wrapping_add(AHEAD * ROWS).wrapping_byte_add(LINE));
                    }
                    multiply::<V, ROWS, VECTORS>(&mut sums, a, 1, b);
                    a = a.wrapping_add(a_step);
                    b = b.wrapping_add(b_step);
                }
            }
            left -= rounds * UNROLL;
        }
        for _ in 0..left {
            multiply::<V, ROWS, VECTORS>(&mut sums, a, a_row, b);
            a = a.wrapping_add(a_step);
            b = b.wrapping_add(b_step);
        }
        for i in 0..ROWS {
            for j in 0..VECTORS {
                let (to, sum) = (out.add(i * out_row + j * V::LANES), sums[i][j]);
                let sum = match accumulation {
                    Accumulation::Nothing => sum,
                    Accumulation::Plus => V::load(to).plus(sum),
                    Accumulation::Minus => V::load(to).minus(sum),
                };
                sum.store(to);
            }
        }
    }
}

/// The kernels with vectors `$V`, compiled with `$feature`.
macro_rules! kernels {
    ($name:ident, $V:ty, $C:ty, $lanes:literal, [$r1:literal, $r2:literal, $r3:literal] $(, $feature:literal)?) => {
        pub(crate) static $name: Kernels<$C> = {
            $(#[target_feature(enable = $feature)])?
            unsafe fn run<const ROWS: usize, const VECTORS: usize>(step: &Step<$C>) {
                // SAFETY: the caller guarantees it.
                unsafe { tile::<$V, ROWS, VECTORS>(step) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn direct<const ROWS: usize, const VECTORS: usize>(step: &DirectStep<$C>) {
                // SAFETY: the caller guarantees it.
                unsafe { direct_tile::<$V, ROWS, VECTORS>(step) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn turned(
                from: *const $C,
                stride: usize,
                rows: usize,
                depth: usize,
                width: usize,
                to: *mut MaybeUninit<$C>,
            ) {
                // `pack_transposed_fours` is for panels that are not whole squares: squares with more rows than the panel would be
                // cut.
                let fours = $r1 == 4 && rows == width && !width.is_multiple_of($lanes);
                let whole = if fours { depth / $lanes * $lanes } else { 0 };
                // SAFETY: the caller guarantees it.
                unsafe {
                    pack_transposed_fours::<$V>(from, stride, whole, width, to);
                    let (from, to) = (from.wrapping_add(whole), to.wrapping_add(whole * width));
                    pack_transposed::<$V, $lanes>(from, stride, rows, depth - whole, width, to)
                }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn copied_rows(
                from: *const $C,
                stride: usize,
                depth: usize,
                width: usize,
                to: *mut MaybeUninit<$C>,
            ) {
                // SAFETY: the caller guarantees it.
                unsafe { copy_rows::<$V, $r1>(from, stride, depth, width, to) }
            }
            Kernels {
                rows: $r1,
                lanes: $lanes,
                tiles: [
                    [run::<$r1, 1>, run::<$r1, 2>],
                    [run::<$r2, 1>, run::<$r2, 2>],
                    [run::<$r3, 1>, run::<$r3, 2>],
                ],
                direct: [
                    [direct::<$r1, 1>, direct::<$r1, 2>],
                    [direct::<$r2, 1>, direct::<$r2, 2>],
                    [direct::<$r3, 1>, direct::<$r3, 2>],
                ],
                pack_transposed: turned,
                copy_rows: copied_rows,
            }
        };
    };
}

/// An element type with matrix product kernels.
pub(crate) trait GemmElement: Load<Self> + Send + 'static {
    const EMPTY_SUM: Self;
    fn sum(self, other: Self) -> Self;
    fn difference(self, other: Self) -> Self;
    /// The kernels that the processor can run, best first.
    fn kernels() -> &'static [&'static Kernels<Self>];
}

macro_rules! fused {
    ($C:ty, $portable:ident, $avx2:ident, $avx512:ident) => {
        impl GemmElement for $C {
            const EMPTY_SUM: $C = 0.0;

            fn sum(self, other: $C) -> $C {
                self + other
            }

            fn difference(self, other: $C) -> $C {
                self - other
            }

            fn kernels() -> &'static [&'static Kernels<$C>] {
                static PORTABLE: [&Kernels<$C>; 1] = [&$portable];
                #[cfg(target_arch = "x86_64")]
                {
                    use crate::kernels::simd::{Level, detect};
                    static ALL: [&Kernels<$C>; 3] = [&x86::$avx512, &x86::$avx2, &$portable];
                    match detect() {
                        Level::Avx512 => return &ALL,
                        Level::Avx2 => return &ALL[1..],
                        Level::Portable => {}
                    }
                }
                &PORTABLE
            }
        }
    };
}
fused!(f32, PORTABLE_F32, AVX2_F32, AVX512_F32);
fused!(f64, PORTABLE_F64, AVX2_F64, AVX512_F64);

kernels!(PORTABLE_F32, PortableVector<f32, 4>, f32, 4, [2, 4, 6]);
kernels!(PORTABLE_F64, PortableVector<f64, 2>, f64, 2, [2, 4, 6]);

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::mem::MaybeUninit;

    use super::{
        DirectStep, Kernels, Step, Vector, copy_rows, direct_tile, pack_transposed, pack_transposed_fours,
        tile,
    };

    macro_rules! vector {
        (
            $V:ty, $T:ty, $lanes:literal, $zero:ident, $load:ident, $store:ident, $repeat:ident, $fused:ident,
            $add:ident, $sub:ident, $zip:expr $(, $fours:expr)?
        ) => {
            impl Vector for $V {
                type Element = $T;
                const LANES: usize = $lanes;

                #[inline(always)]
                unsafe fn zero() -> $V {
                    // SAFETY: the caller guarantees it, here and below.
                    unsafe { $zero() }
                }
                #[inline(always)]
                unsafe fn load(from: *const $T) -> $V {
                    // SAFETY: as above.
                    unsafe { $load(from) }
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut $T) {
                    // SAFETY: as above.
                    unsafe { $store(to, self) }
                }
                $(
                    #[inline(always)]
                    unsafe fn store_fours(self, to: *mut $T, group_stride: usize) {
                        // SAFETY: as above.
                        unsafe { $fours(self, to, group_stride) }
                    }
                )?
                #[inline(always)]
                unsafe fn repeat(from: *const $T) -> $V {
                    // SAFETY: as above.
                    unsafe { $repeat(from.read()) }
                }
                #[inline(always)]
                unsafe fn plus_product(self, a: $V, b: $V) -> $V {
                    // SAFETY: as above.
                    unsafe { $fused(a, b, self) }
                }
                #[inline(always)]
                unsafe fn plus(self, other: $V) -> $V {
                    // SAFETY: as above.
                    unsafe { $add(self, other) }
                }
                #[inline(always)]
                unsafe fn minus(self, other: $V) -> $V {
                    // SAFETY: as above.
                    unsafe { $sub(self, other) }
                }
                #[inline(always)]
                unsafe fn prefetch(at: *const $T) {
                    // SAFETY: as above.
                    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
                }
                #[inline(always)]
                unsafe fn prefetch_l2(at: *const $T) {
                    // SAFETY: as above.
                    unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
                }
                #[inline(always)]
                unsafe fn zip(self, other: $V) -> ($V, $V) {
                    // SAFETY: as above.
                    unsafe { $zip(self, other) }
                }
            }
        };
    }
    vector!(
        __m512,
        f32,
        16,
        _mm512_setzero_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_set1_ps,
        _mm512_fmadd_ps,
        _mm512_add_ps,
        _mm512_sub_ps,
        |a, b| {
            let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
            (_mm512_permutex2var_ps(a, low, b), _mm512_permutex2var_ps(a, high, b))
        },
        |x, to: *mut f32, group_stride| {
            _mm_storeu_ps(to, _mm512_castps512_ps128(x));
            _mm_storeu_ps(to.add(group_stride), _mm512_extractf32x4_ps::<1>(x));
            _mm_storeu_ps(to.add(2 * group_stride), _mm512_extractf32x4_ps::<2>(x));
            _mm_storeu_ps(to.add(3 * group_stride), _mm512_extractf32x4_ps::<3>(x));
        }
    );
    vector!(
        __m512d,
        f64,
        8,
        _mm512_setzero_pd,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_set1_pd,
        _mm512_fmadd_pd,
        _mm512_add_pd,
        _mm512_sub_pd,
        |a, b| {
            let low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
            let high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
            (_mm512_permutex2var_pd(a, low, b), _mm512_permutex2var_pd(a, high, b))
        },
        |x, to: *mut f64, group_stride| {
            _mm256_storeu_pd(to, _mm512_castpd512_pd256(x));
            _mm256_storeu_pd(to.add(group_stride), _mm512_extractf64x4_pd::<1>(x));
        }
    );
    vector!(
        __m256,
        f32,
        8,
        _mm256_setzero_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_set1_ps,
        _mm256_fmadd_ps,
        _mm256_add_ps,
        _mm256_sub_ps,
        |a, b| {
            let (low, high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
            (_mm256_permute2f128_ps::<0x20>(low, high), _mm256_permute2f128_ps::<0x31>(low, high))
        }
    );
    vector!(
        __m256d,
        f64,
        4,
        _mm256_setzero_pd,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_set1_pd,
        _mm256_fmadd_pd,
        _mm256_add_pd,
        _mm256_sub_pd,
        |a, b| {
            let (low, high) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
            (_mm256_permute2f128_pd::<0x20>(low, high), _mm256_permute2f128_pd::<0x31>(low, high))
        }
    );

    kernels!(AVX512_F32, __m512, f32, 16, [4, 8, 12], "avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi2,fma");
    kernels!(AVX512_F64, __m512d, f64, 8, [4, 8, 12], "avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi2,fma");
    kernels!(AVX2_F32, __m256, f32, 8, [2, 4, 6], "avx2,bmi2,fma");
    kernels!(AVX2_F64, __m256d, f64, 4, [2, 4, 6], "avx2,bmi2,fma");
}
