//! Non-temporal stores, for results that are far larger than the caches.
//!
//! An ordinary store reads the cache line that it writes to, and evicts another line. If the result does not stay in
//! the caches until it is read, both are useless: a non-temporal store moves half as many bytes. Results are computed
//! in the first-level cache, tile by tile, and copied from there in whole lines (Intel 64 and IA-32 Architectures
//! Optimization Reference Manual, 2023, on write combining).
//!
//! Other threads see such stores in any order: after some calls, a thread calls [`StoreKind::finish`] before it signals
//! that it is done.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(target_arch = "x86_64")]
use super::simd::{Level, level};

/// Results of at least this size use non-temporal stores. With an operand of equal size they exceed one program's part
/// of a last-level cache; at half the size ordinary stores were as fast, and the next reader of the result is faster.
const NON_TEMPORAL_BYTES: usize = 16 << 20;
/// The upper bound for the size of the last cache, which other programs use too.
const MAX_CACHE_BYTES: usize = 64 << 20;

/// How results are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    /// Ordinary stores, into the caches.
    Cached,
    /// Non-temporal stores, past the caches.
    NonTemporal,
}

impl StoreKind {
    /// The kind of stores for results of `bytes` bytes in all.
    pub(crate) fn of(bytes: usize) -> StoreKind {
        if bytes < NON_TEMPORAL_BYTES || !is_possible() { StoreKind::Cached } else { StoreKind::NonTemporal }
    }

    /// The kind of stores for results of `bytes_written` bytes that so many threads compute from `bytes_read` bytes. If
    /// the last cache holds most of both, ordinary stores of several threads are faster, and so is the next reader: on a
    /// processor with 32 MiB, two threads took 343 us instead of 486 for 40 MiB, and the same for 64 MiB. One thread
    /// waits for the lines that it writes to: for 32 MiB it took 470 us with ordinary stores and 390 without.
    pub(crate) fn for_transfer(bytes_read: usize, bytes_written: usize, threads: usize) -> StoreKind {
        let kept = if threads == 1 { cache_bytes() / 4 * 3 } else { cache_bytes() / 2 * 3 };
        if bytes_read + bytes_written <= kept { StoreKind::Cached } else { StoreKind::of(bytes_written) }
    }

    /// Waits until other threads can see the stores of this one.
    pub(crate) fn finish(self) {
        match self {
            StoreKind::Cached => {}
            StoreKind::NonTemporal => fence(),
        }
    }
}

/// The bytes that stay in the last cache.
fn cache_bytes() -> usize {
    // One more than the value; 0 means that it is not known yet.
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    match FOUND.load(Ordering::Relaxed) {
        0 => {
            let bytes = last_cache().unwrap_or(0).min(MAX_CACHE_BYTES);
            FOUND.store(bytes + 1, Ordering::Relaxed);
            bytes
        }
        more => more - 1,
    }
}

/// The size of the last cache, according to the processor (Intel 64 and IA-32 Architectures Software Developer's
/// Manual, and AMD64 Architecture Programmer's Manual, on CPUID).
#[cfg(target_arch = "x86_64")]
#[cold]
fn last_cache() -> Option<usize> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};

    // AMD's processors have a separate leaf in the same format.
    let is_extended = __cpuid(0x8000_0000).eax >= 0x8000_001D && __cpuid(0x8000_0001).ecx >> 22 & 1 == 1;
    let leaf = if is_extended { 0x8000_001D } else { 4 };
    if !is_extended && __cpuid(0).eax < leaf {
        return None;
    }
    let caches = (0..16).map(|index| __cpuid_count(leaf, index)).take_while(|cache| cache.eax & 0x1F != 0);
    let bytes = caches.map(|cache| {
        let field = |from: u32, bits: u32| (cache.ebx >> from & ((1 << bits) - 1)) as usize + 1;
        // Line size in bytes, partitions, ways, and sets.
        field(0, 12) * field(12, 10) * field(22, 10) * (cache.ecx as usize + 1)
    });
    bytes.max()
}

#[cfg(not(target_arch = "x86_64"))]
fn last_cache() -> Option<usize> {
    None
}

/// Whether the processor has non-temporal stores in a useful width.
fn is_possible() -> bool {
    #[cfg(target_arch = "x86_64")]
    return level() != Level::Portable;
    #[cfg(not(target_arch = "x86_64"))]
    false
}

fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// The bytes of a cache line.
const LINE: usize = 64;

/// Copies bytes with non-temporal stores; incomplete lines at the ends are stored normally.
///
/// # Panics
/// When the lengths differ.
pub(crate) fn copy(from: &[u8], to: &mut [MaybeUninit<u8>]) {
    assert_eq!(from.len(), to.len(), "a copy");
    let before = to.as_ptr().align_offset(LINE).min(to.len());
    let (from_head, from) = from.split_at(before);
    let (head, to) = to.split_at_mut(before);
    head.write_copy_of_slice(from_head);
    let whole = to.len() / LINE * LINE;
    let (lines, from_tail) = from.split_at(whole);
    let (to, tail) = to.split_at_mut(whole);
    tail.write_copy_of_slice(from_tail);
    copy_lines(lines, to);
}

/// Copies whole lines to an address aligned to a line.
#[cfg(target_arch = "x86_64")]
fn copy_lines(from: &[u8], to: &mut [MaybeUninit<u8>]) {
    use std::arch::x86_64::{
        __m256i, __m512i, _mm256_loadu_si256, _mm256_stream_si256, _mm512_loadu_si512, _mm512_stream_si512,
    };

    #[target_feature(enable = "avx512f")]
    unsafe fn avx512(from: *const u8, to: *mut u8, bytes: usize) {
        for at in (0..bytes).step_by(LINE) {
            // SAFETY: both ranges have `bytes` bytes, and `to` is aligned to a line.
            unsafe {
                let line = _mm512_loadu_si512(from.add(at).cast::<__m512i>());
                _mm512_stream_si512(to.add(at).cast::<__m512i>(), line);
            }
        }
    }

    #[target_feature(enable = "avx2")]
    unsafe fn avx2(from: *const u8, to: *mut u8, bytes: usize) {
        for at in (0..bytes).step_by(LINE) {
            // SAFETY: as above.
            unsafe {
                let left = _mm256_loadu_si256(from.add(at).cast::<__m256i>());
                let right = _mm256_loadu_si256(from.add(at + LINE / 2).cast::<__m256i>());
                _mm256_stream_si256(to.add(at).cast::<__m256i>(), left);
                _mm256_stream_si256(to.add(at + LINE / 2).cast::<__m256i>(), right);
            }
        }
    }

    let (start, bytes) = (to.as_mut_ptr().cast::<u8>(), from.len());
    match level() {
        // SAFETY: the level says that the processor has these instructions; `copy` passes whole, aligned lines.
        Level::Avx512 => unsafe { avx512(from.as_ptr(), start, bytes) },
        // SAFETY: as above.
        Level::Avx2 => unsafe { avx2(from.as_ptr(), start, bytes) },
        Level::Portable => {
            to.write_copy_of_slice(from);
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn copy_lines(from: &[u8], to: &mut [MaybeUninit<u8>]) {
    to.write_copy_of_slice(from);
}

/// Memory for a tile, aligned to a cache line.
#[repr(align(64))]
pub(crate) struct Lines<T>(pub(crate) T);

#[cfg(test)]
mod tests {
    use defn_core::op::{BinaryOp, Op};
    use defn_core::{DType, Shape, TensorType};
    use half::bf16;

    use super::*;
    use crate::compiler::run_elementwise;
    use crate::kernels::simd::at_every_level;
    use crate::kernels::testing::Array;
    use crate::par::Par;

    #[test]
    fn what_is_copied_past_the_caches_is_all_there() {
        let from: Vec<u8> = (0..5000).map(|i| (i * 7 % 251) as u8).collect();
        at_every_level(|| {
            for (start, len) in [(0, 4096), (0, 0), (1, 63), (3, 64), (17, 200), (64, 1), (100, 4900)] {
                let mut to = vec![MaybeUninit::new(0); 5000];
                copy(&from[start..start + len], &mut to[start..start + len]);
                StoreKind::NonTemporal.finish();
                // SAFETY: all was written.
                let to: Vec<u8> = to.into_iter().map(|byte| unsafe { byte.assume_init() }).collect();
                assert_eq!(to[start..start + len], from[start..start + len]);
                assert!(to[..start].iter().chain(&to[start + len..]).all(|&byte| byte == 0));
            }
        });
    }

    #[test]
    fn results_past_the_caches_are_as_others() {
        let ty = |dtype, count: usize| TensorType::new(dtype, Shape::new(&[count])).unwrap();
        let count = NON_TEMPORAL_BYTES / 2 + 77;
        let x: Vec<f32> = (0..count).map(|at| (at % 2003) as f32 - 1000.0).collect();
        let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_ne_bytes()).collect();
        let x_array = Array::of_bytes(ty(DType::F32, count), &bytes);

        let mut sum = Array::unwritten(ty(DType::F32, count));
        let (a, mut out) = (x_array.view(), sum.view_mut());
        assert_eq!(out.stores() == StoreKind::NonTemporal, is_possible());
        run_elementwise(&Op::Binary(BinaryOp::ADD), &[a, a], &mut out, Par::Pool);
        let right = |(sum, x): (&[u8], &f32)| sum == (x + x).to_ne_bytes();
        assert!(sum.bytes().chunks(4).zip(&x).all(right));

        let mut small = Array::unwritten(ty(DType::BF16, count));
        let op = Op::AsType { dtype: DType::BF16 };
        run_elementwise(&op, &[a], &mut small.view_mut(), Par::Pool);
        let right = |(small, &x): (&[u8], &f32)| small == bf16::from_f32(x).to_ne_bytes();
        assert!(small.bytes().chunks(2).zip(&x).all(right));

        // An in-place result is in the caches.
        let out = sum.view_mut();
        let _over = crate::view::View::aliasing(out.ty(), &out);
        assert_eq!(out.stores(), StoreKind::Cached);
    }
}
