//! Loops over contiguous rows.

use super::Field;
use crate::kernels::simd::vectorized;

/// Elements that are summed in parallel.
const LANES: usize = 16;

vectorized! {
    /// Subtracts rows, a stride apart, each times its factor, from `y`.
    pub(super) fn subtract_rows[T: Field] of [T] (y: &mut [T], factors: &[T], rows: &[T], stride: usize) {
        subtract_rows_inlined(y, factors, rows, stride);
    }
}

/// As [`subtract_rows`], inlined for the instruction set of its caller.
#[inline(always)]
pub(super) fn subtract_rows_inlined<T: Field>(y: &mut [T], factors: &[T], rows: &[T], stride: usize) {
    if factors.is_empty() {
        return;
    }
    let mut column = 0;
    // A block stays in registers until all rows are subtracted.
    while y.len() - column >= 4 * LANES {
        subtract_block::<T, { 4 * LANES }>(&mut y[column..], factors, &rows[column..], stride);
        column += 4 * LANES;
    }
    while y.len() - column >= LANES {
        subtract_block::<T, LANES>(&mut y[column..], factors, &rows[column..], stride);
        column += LANES;
    }
    while y.len() - column >= LANES / 2 {
        subtract_block::<T, { LANES / 2 }>(&mut y[column..], factors, &rows[column..], stride);
        column += LANES / 2;
    }
    for (column, y) in y.iter_mut().enumerate().skip(column) {
        for (index, &factor) in factors.iter().enumerate() {
            *y = *y - factor * rows[index * stride + column];
        }
    }
}

#[inline(always)]
fn subtract_block<T: Field, const WIDTH: usize>(y: &mut [T], factors: &[T], rows: &[T], stride: usize) {
    let y = y.first_chunk_mut::<WIDTH>().expect("a whole strip");
    let mut updated = *y;
    for (index, &factor) in factors.iter().enumerate() {
        let row = rows[index * stride..].first_chunk::<WIDTH>().expect("a whole strip");
        for (updated, &x) in updated.iter_mut().zip(row) {
            *updated = *updated - factor * x;
        }
    }
    *y = updated;
}

/// The dot products of `ROWS` rows, a stride apart, with `x`. It is inlined for the instruction set of its caller.
#[inline(always)]
pub(super) fn sums<T: Field, const ROWS: usize>(rows: &[T], stride: usize, x: &[T]) -> [T; ROWS] {
    let mut lanes = [[T::ZERO; LANES]; ROWS];
    let (lines, rest) = x.as_chunks::<LANES>();
    let whole = x.len() - rest.len();
    for (index, x) in lines.iter().enumerate() {
        for (row, lanes) in lanes.iter_mut().enumerate() {
            let row = rows[row * stride + index * LANES..].first_chunk::<LANES>().expect("a whole line");
            for ((lane, &a), &x) in lanes.iter_mut().zip(row).zip(x) {
                *lane = *lane + a * x;
            }
        }
    }
    std::array::from_fn(|row| {
        let lanes = &mut lanes[row];
        for ((lane, &a), &x) in lanes.iter_mut().zip(&rows[row * stride + whole..]).zip(rest) {
            *lane = *lane + a * x;
        }
        let mut width = LANES;
        while width > 1 {
            width /= 2;
            let (low, high) = lanes.split_at_mut(width);
            low.iter_mut().zip(high).for_each(|(low, &mut high)| *low = *low + high);
        }
        lanes[0]
    })
}

/// The index of the element of the greatest size, the first of several. If there is a NaN, the index of the first NaN.
#[inline(always)]
pub(super) fn greatest<T: Field>(x: &[T]) -> usize {
    let zero = <T::Real as Field>::ZERO;
    let is_nan = |size: T::Real| size.partial_cmp(&size).is_none();
    let mut lanes = [zero; LANES];
    let mut nan = [false; LANES];
    let (lines, rest) = x.as_chunks::<LANES>();
    for x in lines {
        for i in 0..LANES {
            let size = x[i].size();
            lanes[i] = if size > lanes[i] { size } else { lanes[i] };
            nan[i] |= is_nan(size);
        }
    }
    for (i, x) in rest.iter().enumerate() {
        let size = x.size();
        lanes[i] = if size > lanes[i] { size } else { lanes[i] };
        nan[i] |= is_nan(size);
    }
    if nan.contains(&true) {
        return x.iter().position(|x| is_nan(x.size())).unwrap_or(0);
    }
    let most = lanes.into_iter().fold(zero, |most, size| if size > most { size } else { most });
    x.iter().position(|x| x.size() == most).unwrap_or(0)
}

/// Side of a square that is transposed at once.
const SQUARE: usize = 8;

vectorized! {
    /// Transposes a matrix: `to[j, i] = from[i, j]`. The strides are those of the rows.
    pub(super) fn transpose_into[T: Field] of [T] (
        from: &[T],
        from_stride: usize,
        sizes: (usize, usize),
        to: &mut [T],
        to_stride: usize,
    ) {
        let (rows, columns) = sizes;
        for row in (0..rows).step_by(SQUARE) {
            let high = SQUARE.min(rows - row);
            for column in (0..columns).step_by(SQUARE) {
                let wide = SQUARE.min(columns - column);
                let (from, to) =
                    (&from[row * from_stride + column..], &mut to[column * to_stride + row..]);
                if (high, wide) != (SQUARE, SQUARE) {
                    for i in 0..high {
                        for j in 0..wide {
                            to[j * to_stride + i] = from[i * from_stride + j];
                        }
                    }
                    continue;
                }
                let mut square = [[T::ZERO; SQUARE]; SQUARE];
                for (i, line) in square.iter_mut().enumerate() {
                    *line = *from[i * from_stride..].first_chunk().expect("a whole line");
                }
                for j in 0..SQUARE {
                    let line = to[j * to_stride..].first_chunk_mut().expect("a whole line");
                    *line = std::array::from_fn::<T, SQUARE, _>(|i| square[i][j]);
                }
            }
        }
    }
}
