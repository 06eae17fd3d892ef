//! The search for indices that are out of range.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use defn_core::{ErrorKind, Result, TensorType};
use smallvec::SmallVec;

use super::{INDEX_CHUNK, bits_from_front, from_front};
use crate::kernels::simd::vectorized;
use crate::kernels::{Integer, with_integer};
use crate::par::Par;
use crate::view::View;

/// Returns the error of the first index that is out of range. Entry `i` of the last axis, or each element if there is
/// one axis, counts along `axes[i]` of `x`.
///
/// # Errors
/// The error has the index, the axis and `x`.
pub(crate) fn check(
    op: &'static str,
    x: &TensorType,
    axes: &[usize],
    indices: View<'_>,
    par: Par,
) -> Result<()> {
    if axes.is_empty() {
        return Ok(());
    }
    let sizes: SmallVec<[usize; 6]> = axes.iter().map(|&axis| x.shape.sizes()[axis]).collect();
    with_integer!(indices.ty().dtype, I => {
        let indices: &[I] = indices.slice();
        let is_beyond = |entries: Range<usize>| is_any_beyond(&indices[entries], &sizes);
        let first = first_beyond(indices.len(), &sizes, I::SIGNED, &is_beyond, &|entry| indices[entry].extended(), par);
        let Some((entry, bits)) = first else { return Ok(()) };
        let index = if I::SIGNED { i128::from(bits as i64) } else { i128::from(bits) };
        let (axis, got) = (axes[entry % axes.len()], x.clone());
        Err(ErrorKind::IndexRange { op, index, axis, got }.into())
    })
}

/// The first of `count` entries that is out of range, with its bits. `is_beyond` says whether a range of entries has
/// one, and `bits` are those of an entry.
fn first_beyond(
    count: usize,
    sizes: &[usize],
    is_signed: bool,
    is_beyond: &(dyn Fn(Range<usize>) -> bool + Sync),
    bits: &dyn Fn(usize) -> u64,
    par: Par,
) -> Option<(usize, u64)> {
    let some = AtomicBool::new(false);
    par.for_chunks(count / sizes.len(), INDEX_CHUNK, |rows| {
        if is_beyond(rows.start * sizes.len()..rows.end * sizes.len()) {
            some.store(true, Ordering::Relaxed);
        }
    });
    if !some.into_inner() {
        return None;
    }
    // Another thread that writes the indices may have corrected it meanwhile.
    let entries = (0..count).map(|entry| (entry, bits(entry)));
    entries.zip(sizes.iter().cycle()).find_map(|((entry, bits), &size)| {
        (bits_from_front(bits, is_signed, size as u64) >= size as u64).then_some((entry, bits))
    })
}

/// The flag that a kernel sets when it reads an index that is out of range, if the caller needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutOfRangeFlag<'a>(Option<&'a AtomicBool>);

impl<'a> OutOfRangeFlag<'a> {
    pub(crate) fn new(some: Option<&'a AtomicBool>) -> OutOfRangeFlag<'a> {
        OutOfRangeFlag(some)
    }

    /// Sets the flag if `is_beyond`.
    #[inline]
    pub(super) fn note(self, is_beyond: bool) {
        if let Some(some) = self.0
            && is_beyond
        {
            some.store(true, Ordering::Relaxed);
        }
    }
}

/// Indices checked in one loop iteration: a multiple of the usual lengths of rows.
const LANES: usize = 48;

/// Indices that are widened at a time.
const WIDENED: usize = 16 * LANES;

/// Whether any index is out of range of its axis. Sizes repeat.
fn is_any_beyond<I: Integer>(indices: &[I], sizes: &[usize]) -> bool {
    if sizes.is_empty() {
        return false;
    }
    if size_of::<I>() == size_of::<u32>() && is_vectorized(sizes, 1 << 30) {
        // SAFETY: integers of either sign have the same size and alignment, and all bits are numbers.
        let bits = unsafe { std::slice::from_raw_parts(indices.as_ptr().cast::<u32>(), indices.len()) };
        let (lowest, count) = limits(sizes, I::SIGNED);
        let (lowest, count) = (lowest.map(|x| x as u32), count.map(|x| x as u32));
        let rest = indices.len() / LANES * LANES;
        return beyond_narrow(bits, &lowest, &count) > 0 || is_any_of_few_beyond(&indices[rest..], sizes);
    }
    if size_of::<I>() == size_of::<u64>() {
        // SAFETY: as above.
        let bits = unsafe { std::slice::from_raw_parts(indices.as_ptr().cast::<u64>(), indices.len()) };
        return are_any_bits_beyond(bits, sizes, I::SIGNED);
    }
    // Rows are whole in each part.
    let step = WIDENED / sizes.len() * sizes.len();
    if step == 0 {
        return indices.chunks(sizes.len()).any(|row| is_any_of_few_beyond(row, sizes));
    }
    let mut bits = [0; WIDENED];
    indices.chunks(step).any(|part| {
        for (bits, index) in bits.iter_mut().zip(part) {
            *bits = index.extended();
        }
        are_any_bits_beyond(&bits[..part.len()], sizes, I::SIGNED)
    })
}

/// As [`is_any_beyond`], one by one.
fn is_any_of_few_beyond<I: Integer>(indices: &[I], sizes: &[usize]) -> bool {
    indices
        .iter()
        .zip(sizes.iter().cycle())
        .any(|(&index, &size)| from_front(index, size as u64) >= size as u64)
}

/// As [`is_any_beyond`], for the bits of indices.
fn are_any_bits_beyond(bits: &[u64], sizes: &[usize], is_signed: bool) -> bool {
    let mut rest = 0;
    if is_vectorized(sizes, 1 << 62) {
        let (lowest, count) = limits(sizes, is_signed);
        if beyond_wide(bits, &lowest, &count) > 0 {
            return true;
        }
        rest = bits.len() / LANES * LANES;
    }
    let rest = bits[rest..].iter().zip(sizes.iter().cycle());
    rest.into_iter().any(|(&bits, &size)| bits_from_front(bits, is_signed, size as u64) >= size as u64)
}

/// Whether a vector loop checks indices along axes of these sizes.
fn is_vectorized(sizes: &[usize], most: usize) -> bool {
    LANES.is_multiple_of(sizes.len()) && sizes.iter().all(|&size| size < most)
}

/// The bounds of indices in a group: one is in range if it is one of so many values from the lowest one on. The lowest
/// ones are negated.
fn limits(sizes: &[usize], is_signed: bool) -> ([u64; LANES], [u64; LANES]) {
    let (mut lowest, mut count) = ([0; LANES], [0; LANES]);
    for at in 0..LANES {
        let size = sizes[at % sizes.len()] as u64;
        (lowest[at], count[at]) = if is_signed { (size, 2 * size) } else { (0, size) };
    }
    (lowest, count)
}

vectorized! {
    /// Not 0 if an index of the complete groups is out of range. Unlike a search, an `or` over all indices is
    /// vectorized.
    fn beyond_narrow[] of [] (indices: &[u32], lowest: &[u32; LANES], count: &[u32; LANES]) -> u32 {
        let mut beyond = 0u32;
        for group in indices.as_chunks::<LANES>().0 {
            for ((&index, &lowest), &count) in group.iter().zip(lowest).zip(count) {
                beyond |= u32::from(index.wrapping_add(lowest) >= count);
            }
        }
        beyond
    }
}

vectorized! {
    /// As [`beyond_narrow`], for indices of 64 bits or long axes.
    fn beyond_wide[] of [] (indices: &[u64], lowest: &[u64; LANES], count: &[u64; LANES]) -> u64 {
        let mut beyond = 0u64;
        for group in indices.as_chunks::<LANES>().0 {
            for ((&index, &lowest), &count) in group.iter().zip(lowest).zip(count) {
                beyond |= u64::from(index.wrapping_add(lowest) >= count);
            }
        }
        beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_out_of_range_are_found_wherever_they_are() {
        for sizes in [&[7usize][..], &[7, 11], &[7, 11, 3], &[7, 11, 3, 5, 2], &[1 << 31, 9]] {
            let rows = 40;
            let fits: Vec<i64> = (0..rows * sizes.len())
                .map(|at| if at % 2 == 0 { -1 } else { sizes[at % sizes.len()] as i64 - 1 })
                .collect();
            assert!(!is_any_beyond(&fits, sizes));
            for at in 0..fits.len() {
                let size = sizes[at % sizes.len()] as i64;
                for bad in [size, -size - 1, i64::MAX, i64::MIN] {
                    let mut indices = fits.clone();
                    indices[at] = bad;
                    assert!(is_any_beyond(&indices, sizes), "{bad} at {at} of {sizes:?}");
                }
            }
        }
    }

    #[test]
    fn narrow_indices_are_looked_at_as_wide_ones() {
        for index in i16::MIN..=i16::MAX {
            let mut indices = [0i16; 100];
            indices[17] = index;
            assert_eq!(is_any_beyond(&indices, &[1000]), !(-1000..1000).contains(&index), "{index}");
        }
        for index in 0..=u8::MAX {
            let mut indices = [0u8; 100];
            indices[3] = index;
            assert_eq!(is_any_beyond(&indices, &[9, 200]), index >= 200, "{index}");
        }
    }
}
