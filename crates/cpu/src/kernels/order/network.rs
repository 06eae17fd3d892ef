//! Sorting networks over vectors. A few keys form a matrix whose rows are vectors.
//!
//! Columns are sorted by networks on the rows (Knuth, The Art of Computer Programming 3, 5.3.4; that of 16 rows is
//! Green's), which need no moves across lanes. Then neighbouring columns are merged in pairs by bitonic mergers
//! (Batcher, Sorting networks and their applications, 1968), and the matrix is transposed. The order, columns before
//! lanes, is that of Blacher et al., Vectorized and performance-portable Quicksort, 2022.

use super::vector::Vector;

/// The most rows of a matrix.
pub(super) const ROWS: usize = 16;

/// Sorts `len` keys, at most `ROWS` vectors of them, and writes them to `to`, which may be `from`.
///
/// # Safety
/// The processor has the vector's instructions. `len` keys can be read from `from` and written to `to`.
#[inline(always)]
pub(super) unsafe fn sort<V: Vector>(from: *const V::Key, to: *mut V::Key, len: usize) {
    // SAFETY: the caller guarantees it.
    unsafe {
        match len.div_ceil(V::LANES) {
            0 | 1 => matrix::<V, 1>(from, to, len),
            2 => matrix::<V, 2>(from, to, len),
            3 | 4 => matrix::<V, 4>(from, to, len),
            5..=8 => matrix::<V, 8>(from, to, len),
            _ => matrix::<V, 16>(from, to, len),
        }
    }
}

/// Sorts one vector of keys.
///
/// # Safety
/// The processor has the vector's instructions.
#[inline(always)]
pub(super) unsafe fn sort_row<V: Vector>(keys: &mut [V::Key; 16]) {
    // SAFETY: the caller guarantees it. No vector holds more than 16 keys.
    unsafe { matrix::<V, 1>(keys.as_ptr(), keys.as_mut_ptr(), V::LANES) };
}

/// As `sort`, with a matrix of `R` rows. Lanes without a key hold the greatest key.
#[inline(always)]
unsafe fn matrix<V: Vector, const R: usize>(from: *const V::Key, to: *mut V::Key, len: usize) {
    // SAFETY: the caller guarantees it. At most `len` keys are read and written.
    unsafe {
        let rest = V::splat(V::GREATEST);
        let mut rows = [rest; R];
        for (row, keys) in rows.iter_mut().enumerate() {
            let start = row * V::LANES;
            *keys = V::load_part(from.wrapping_add(start), len.saturating_sub(start).min(V::LANES), rest);
        }
        sort_columns::<V, R>(&mut rows);
        if const { V::LANES > 1 } {
            merge::<V, R, 1, 1>(&mut rows);
            clean_rows::<V, R>(&mut rows);
        }
        if const { V::LANES > 2 } {
            merge::<V, R, 2, 3>(&mut rows);
            clean_across::<V, R, 1>(&mut rows);
            clean_rows::<V, R>(&mut rows);
        }
        if const { V::LANES > 4 } {
            merge::<V, R, 4, 7>(&mut rows);
            clean_across::<V, R, 2>(&mut rows);
            clean_across::<V, R, 1>(&mut rows);
            clean_rows::<V, R>(&mut rows);
        }
        if const { V::LANES > 8 } {
            merge::<V, R, 8, 15>(&mut rows);
            clean_across::<V, R, 4>(&mut rows);
            clean_across::<V, R, 2>(&mut rows);
            clean_across::<V, R, 1>(&mut rows);
            clean_rows::<V, R>(&mut rows);
        }
        transpose::<V, R>(&mut rows);
        for (row, keys) in rows.iter().enumerate() {
            let start = row * V::LANES;
            keys.store_part(to.wrapping_add(start), len.saturating_sub(start).min(V::LANES));
        }
    }
}

/// Orders the keys of two rows in each lane.
///
/// # Safety
/// The processor has the vector's instructions. This applies to all functions below.
#[inline(always)]
unsafe fn exchange<V: Vector, const R: usize>(rows: &mut [V; R], first: usize, second: usize) {
    // SAFETY: the caller guarantees it.
    unsafe { (rows[first], rows[second]) = (rows[first].min(rows[second]), rows[first].max(rows[second])) };
}

/// Sorts each lane across the rows.
#[inline(always)]
unsafe fn sort_columns<V: Vector, const R: usize>(rows: &mut [V; R]) {
    macro_rules! network {
        ($($first:literal $second:literal),*) => {{$(
            // SAFETY: the caller guarantees it.
            unsafe { exchange(rows, $first, $second) };
        )*}};
    }
    match R {
        1 => {}
        2 => network!(0 1),
        4 => network!(0 1, 2 3, 0 2, 1 3, 1 2),
        8 => network!(
            0 1, 2 3, 4 5, 6 7, 0 2, 1 3, 4 6, 5 7, 1 2, 5 6, 0 4, 1 5, 2 6, 3 7, 2 4, 3 5, 1 2, 3 4, 5 6
        ),
        16 => network!(
            0 1, 2 3, 4 5, 6 7, 8 9, 10 11, 12 13, 14 15, 0 2, 4 6, 8 10, 12 14, 1 3, 5 7, 9 11, 13 15,
            0 4, 8 12, 1 5, 9 13, 2 6, 10 14, 3 7, 11 15, 0 8, 1 9, 2 10, 3 11, 4 12, 5 13, 6 14, 7 15,
            5 10, 6 9, 3 12, 13 14, 4 8, 7 11, 1 2, 1 4, 7 13, 2 8, 11 14, 5 6, 9 10, 2 4, 11 13, 3 8,
            7 12, 6 8, 10 12, 3 5, 7 9, 3 4, 5 6, 7 8, 9 10, 11 12, 6 7, 8 9
        ),
        _ => unreachable!("a matrix has a power of two of rows"),
    }
}

/// The first step of merging runs of `G` columns with their neighbours: it orders keys that are equally far from both
/// ends of the pair. A pair has `MIRROR + 1` columns.
#[inline(always)]
unsafe fn merge<V: Vector, const R: usize, const G: usize, const MIRROR: usize>(rows: &mut [V; R]) {
    // SAFETY: the caller guarantees it.
    unsafe {
        if const { R == 1 } {
            clean::<V, MIRROR, G>(&mut rows[0]);
        }
        for row in 0..R / 2 {
            let (near, far) = (rows[row], rows[R - 1 - row].across::<MIRROR>());
            let (low, high) = (near.min(far), near.max(far));
            rows[row] = V::choose::<G>(low, high);
            rows[R - 1 - row] = V::choose::<G>(high, low).across::<MIRROR>();
        }
    }
}

/// Orders the keys of lanes `DISTANCE` apart, in the sense of `across`. `BIT` marks the lane of the greater one.
#[inline(always)]
unsafe fn clean<V: Vector, const DISTANCE: usize, const BIT: usize>(row: &mut V) {
    // SAFETY: the caller guarantees it.
    unsafe {
        let other = row.across::<DISTANCE>();
        *row = V::choose::<BIT>(row.min(other), row.max(other));
    }
}

/// The merge step between columns `D` apart.
#[inline(always)]
unsafe fn clean_across<V: Vector, const R: usize, const D: usize>(rows: &mut [V; R]) {
    for row in rows {
        // SAFETY: the caller guarantees it.
        unsafe { clean::<V, D, D>(row) };
    }
}

/// The merge steps within columns.
#[inline(always)]
unsafe fn clean_rows<V: Vector, const R: usize>(rows: &mut [V; R]) {
    // SAFETY: the caller guarantees it.
    unsafe {
        if const { R > 8 } {
            clean_apart::<V, R, 8>(rows);
        }
        if const { R > 4 } {
            clean_apart::<V, R, 4>(rows);
        }
        if const { R > 2 } {
            clean_apart::<V, R, 2>(rows);
        }
        if const { R > 1 } {
            clean_apart::<V, R, 1>(rows);
        }
    }
}

/// The merge step between rows `D` apart.
#[inline(always)]
unsafe fn clean_apart<V: Vector, const R: usize, const D: usize>(rows: &mut [V; R]) {
    for pair in 0..R / 2 {
        let first = pair / D * 2 * D + pair % D;
        // SAFETY: the caller guarantees it.
        unsafe { exchange(rows, first, first + D) };
    }
}

/// Stores the keys column by column. A perfect shuffle rotates the bits of a position by one. With as many shuffles as
/// a row number has bits, row and lane numbers are exchanged.
#[inline(always)]
unsafe fn transpose<V: Vector, const R: usize>(rows: &mut [V; R]) {
    for _ in 0..R.trailing_zeros() {
        let from = *rows;
        for row in 0..R / 2 {
            // SAFETY: the caller guarantees it.
            unsafe { (rows[2 * row], rows[2 * row + 1]) = from[row].interleave(from[row + R / 2]) };
        }
    }
}
