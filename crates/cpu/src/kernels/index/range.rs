//! The search for indices that are out of range.

use std::sync::atomic::{AtomicBool, Ordering};

use defn_core::{ErrorKind, Result, TensorType};
use smallvec::SmallVec;

use super::{INDEX_CHUNK, from_front};
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
        let some = AtomicBool::new(false);
        par.for_chunks(indices.len() / sizes.len(), INDEX_CHUNK, |rows| {
            OutOfRangeFlag::new(Some(&some)).look(&indices[rows.start * sizes.len()..rows.end * sizes.len()], &sizes);
        });
        if !some.into_inner() {
            return Ok(());
        }
        // Another thread that writes the indices may have corrected it meanwhile.
        let entries = indices.iter().zip(sizes.iter().map(|&size| size as u64).cycle());
        let mut entries = entries.map(|(&index, size)| (index.extended(), from_front(index, size), size)).enumerate();
        match entries.find(|(_, (_, position, size))| position >= size) {
            None => Ok(()),
            Some((entry, (bits, _, _))) => {
                let index = if I::SIGNED { i128::from(bits as i64) } else { i128::from(bits) };
                let (axis, got) = (axes[entry % axes.len()], x.clone());
                Err(ErrorKind::IndexRange { op, index, axis, got }.into())
            }
        }
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

    /// Checks rows of indices, whose length is the number of sizes.
    #[inline]
    pub(super) fn look<I: Integer>(self, indices: &[I], sizes: &[usize]) {
        if let Some(some) = self.0
            && !sizes.is_empty()
            && is_any_beyond(indices, sizes)
        {
            some.store(true, Ordering::Relaxed);
        }
    }
}

/// Indices checked in one loop iteration: a multiple of the usual lengths of rows.
const LANES: usize = 48;

/// Whether any index is out of range of its axis.
fn is_any_beyond<I: Integer>(indices: &[I], sizes: &[usize]) -> bool {
    let is_beyond = |(&index, &size): (&I, &usize)| from_front(index, size as u64) >= size as u64;
    let is_narrow = size_of::<I>() <= 4 && sizes.iter().all(|&size| size < 1 << 30);
    let is_wide = sizes.iter().all(|&size| size < 1 << 62);
    if !LANES.is_multiple_of(sizes.len()) || !is_wide {
        return indices.iter().zip(sizes.iter().cycle()).any(is_beyond);
    }
    // An index is in range if it is one of `count` values from the lowest one on.
    let lowest = |at: usize| if I::SIGNED { sizes[at % sizes.len()] as u64 } else { 0 };
    let count = |at: usize| sizes[at % sizes.len()] as u64 + lowest(at);
    let rest = &indices[indices.len() - indices.len() % LANES..];
    let beyond = if is_narrow {
        let (lowest, count) = (|at| lowest(at) as u32, |at| count(at) as u32);
        beyond_narrow(indices, &std::array::from_fn(lowest), &std::array::from_fn(count)) > 0
    } else {
        beyond_wide(indices, &std::array::from_fn(lowest), &std::array::from_fn(count)) > 0
    };
    beyond || rest.iter().zip(sizes.iter().cycle()).any(is_beyond)
}

vectorized! {
    /// Not 0 if an index of the complete groups is out of range. Unlike a search, an `or` over all indices is
    /// vectorized.
    fn beyond_narrow[I: Integer] of [I] (indices: &[I], lowest: &[u32; LANES], count: &[u32; LANES]) -> u32 {
        let mut beyond = 0u32;
        for group in indices.as_chunks::<LANES>().0 {
            for ((&index, &lowest), &count) in group.iter().zip(lowest).zip(count) {
                beyond |= u32::from((index.extended() as u32).wrapping_add(lowest) >= count);
            }
        }
        beyond
    }
}

vectorized! {
    /// As [`beyond_narrow`], for indices of 64 bits or long axes.
    fn beyond_wide[I: Integer] of [I] (indices: &[I], lowest: &[u64; LANES], count: &[u64; LANES]) -> u64 {
        let mut beyond = 0u64;
        for group in indices.as_chunks::<LANES>().0 {
            for ((&index, &lowest), &count) in group.iter().zip(lowest).zip(count) {
                beyond |= u64::from(index.extended().wrapping_add(lowest) >= count);
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
