//! Stores past the caches, for results that are far larger than they.
//!
//! An ordinary store reads the line that it writes a part of, and pushes another line out. Where a result does not stay
//! in the caches until it is read again, neither is of use: a store that goes past them moves half as many bytes as
//! reading and writing the line. What is stored so is computed in the first cache, tile by tile, and copied from there
//! in whole lines (Intel 64 and IA-32 Architectures Optimization Reference Manual, 2023, on write combining).
//!
//! Other threads see such stores in any order: whoever has made some calls [`Stores::finish`] before it says that it is
//! done.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(target_arch = "x86_64")]
use super::simd::{Level, level};

/// Results of so many bytes go past the caches. With an operand of as many they are more than last-level caches hold
/// for one program; from half of it down, ordinary stores were as fast, and whoever reads the result next is faster.
const FAR: usize = 16 << 20;
/// However large a cache is: it has to hold what other programs use too.
const MOST: usize = 64 << 20;

/// How results are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stores {
    /// Into the caches.
    Near,
    /// Past them.
    Far,
}

impl Stores {
    /// How results of so many bytes in all are stored.
    pub(crate) fn of(bytes: usize) -> Stores {
        if bytes < FAR || !is_possible() { Stores::Near } else { Stores::Far }
    }

    /// How results of so many bytes in all are stored, where so many are read for them: what the last cache holds
    /// together is as fast to write there, and to read again.
    pub(crate) fn beside(read: usize, written: usize) -> Stores {
        if read + written <= held() { Stores::Near } else { Stores::of(written) }
    }

    /// Waits until other threads can see what this one has stored.
    pub(crate) fn finish(self) {
        match self {
            Stores::Near => {}
            Stores::Far => fence(),
        }
    }
}

/// How many bytes stay in the last cache.
fn held() -> usize {
    // One more, since none is not known yet.
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    match FOUND.load(Ordering::Relaxed) {
        0 => {
            let bytes = last_cache().unwrap_or(0).min(MOST);
            FOUND.store(bytes + 1, Ordering::Relaxed);
            bytes
        }
        more => more - 1,
    }
}

/// The bytes of the last cache, as the processor tells (Intel 64 and IA-32 Architectures Software Developer's Manual, and
/// AMD64 Architecture Programmer's Manual, on CPUID).
#[cfg(target_arch = "x86_64")]
#[cold]
fn last_cache() -> Option<usize> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};

    // AMD's have a leaf of their own for it, in the form of the other.
    let is_extended = __cpuid(0x8000_0000).eax >= 0x8000_001D && __cpuid(0x8000_0001).ecx >> 22 & 1 == 1;
    let leaf = if is_extended { 0x8000_001D } else { 4 };
    if !is_extended && __cpuid(0).eax < leaf {
        return None;
    }
    let caches = (0..16).map(|index| __cpuid_count(leaf, index)).take_while(|cache| cache.eax & 0x1F != 0);
    let bytes = caches.map(|cache| {
        let field = |from: u32, bits: u32| (cache.ebx >> from & ((1 << bits) - 1)) as usize + 1;
        // The bytes of a line, partitions of lines, ways, and sets.
        field(0, 12) * field(12, 10) * field(22, 10) * (cache.ecx as usize + 1)
    });
    bytes.max()
}

#[cfg(not(target_arch = "x86_64"))]
fn last_cache() -> Option<usize> {
    None
}

/// Whether the processor has such stores in widths that pay.
fn is_possible() -> bool {
    #[cfg(target_arch = "x86_64")]
    return level() != Level::Portable;
    #[cfg(not(target_arch = "x86_64"))]
    false
}

fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this kind has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Bytes of a line.
const LINE: usize = 64;

/// Copies bytes past the caches, as far as they fill lines; the ends are stored as ever.
///
/// # Panics
/// When there are not as many bytes on both sides.
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

/// Copies whole lines to where lines begin.
#[cfg(target_arch = "x86_64")]
fn copy_lines(from: &[u8], to: &mut [MaybeUninit<u8>]) {
    use std::arch::x86_64::{
        __m256i, __m512i, _mm256_loadu_si256, _mm256_stream_si256, _mm512_loadu_si512, _mm512_stream_si512,
    };

    #[target_feature(enable = "avx512f")]
    unsafe fn avx512(from: *const u8, to: *mut u8, bytes: usize) {
        for at in (0..bytes).step_by(LINE) {
            // SAFETY: both ranges have so many bytes, and `to` begins with a line.
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
        // SAFETY: the level says that the processor has these instructions; `copy` gives whole lines that begin where
        // lines do.
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

/// Memory for a tile, which begins with a line.
#[repr(align(64))]
pub(crate) struct Lines<T>(pub(crate) T);

#[cfg(test)]
mod tests {
    use defn_core::op::BinaryOp;
    use defn_core::{DType, Shape, TensorType};
    use half::bf16;

    use super::*;
    use crate::kernels::elementwise;
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
                Stores::Far.finish();
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
        let count = FAR / 2 + 77;
        let x: Vec<f32> = (0..count).map(|at| (at % 2003) as f32 - 1000.0).collect();
        let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_ne_bytes()).collect();
        let x_array = Array::of_bytes(ty(DType::F32, count), &bytes);

        let mut sum = Array::unwritten(ty(DType::F32, count));
        let (a, mut out) = (x_array.view(), sum.view_mut());
        assert_eq!(out.stores() == Stores::Far, is_possible());
        elementwise::binary(BinaryOp::ADD, a, a, &mut out, Par::Pool, true).unwrap();
        let right = |(sum, x): (&[u8], &f32)| sum == (x + x).to_ne_bytes();
        assert!(sum.bytes().chunks(4).zip(&x).all(right));

        let mut small = Array::unwritten(ty(DType::BF16, count));
        elementwise::as_type(a, &mut small.view_mut(), Par::Pool).unwrap();
        let right = |(small, &x): (&[u8], &f32)| small == bf16::from_f32(x).to_ne_bytes();
        assert!(small.bytes().chunks(2).zip(&x).all(right));

        // What is written over is in the caches.
        let out = sum.view_mut();
        let _over = crate::view::View::aliasing(out.ty(), &out);
        assert_eq!(out.stores(), Stores::Near);
    }
}
