//! Loops over contiguous rows.

use super::{Field, RealField};
use crate::kernels::simd::vectorized;

/// Elements that are summed in parallel.
pub(super) const LANES: usize = 16;

vectorized! {
    /// Subtracts rows, a stride apart, each times its factor, from `y`.
    pub(super) fn subtract_rows[T: Field] of [T] (y: &mut [T], factors: &[T], rows: &[T], stride: usize) {
        if factors.is_empty() {
            return;
        }
        let mut column = 0;
        // A block stays in registers until all rows are subtracted. A complex one has two parts.
        while y.len() - column >= wide::<T>() {
            if const { T::COMPLEX } {
                subtract_block::<T, { 2 * LANES }>(&mut y[column..], factors, &rows[column..], stride);
            } else {
                subtract_block::<T, { 4 * LANES }>(&mut y[column..], factors, &rows[column..], stride);
            }
            column += wide::<T>();
        }
        while y.len() - column >= LANES {
            subtract_block::<T, LANES>(&mut y[column..], factors, &rows[column..], stride);
            column += LANES;
        }
        if column < y.len() {
            subtract_few(&mut y[column..], factors, &rows[column..], stride);
        }
    }
}

/// Elements of the widest block.
const fn wide<T: Field>() -> usize {
    if T::COMPLEX { 2 * LANES } else { 4 * LANES }
}

/// As [`subtract_rows`], inlined for the instruction set of its caller and for fewer than [`LANES`] columns.
#[inline(always)]
pub(super) fn subtract_few<T: Field>(y: &mut [T], factors: &[T], rows: &[T], stride: usize) {
    if factors.is_empty() {
        return;
    }
    let mut column = 0;
    if y.len() >= LANES / 2 {
        subtract_block::<T, { LANES / 2 }>(y, factors, rows, stride);
        column = LANES / 2;
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

/// The dot products of `ROWS` rows, which begin at these elements, with `x`. It is inlined for the instruction set of
/// its caller.
#[inline(always)]
pub(super) fn sums<T: Field, const ROWS: usize>(rows: &[T], starts: [usize; ROWS], x: &[T]) -> [T; ROWS] {
    let mut lanes = [[T::ZERO; LANES]; ROWS];
    let (lines, rest) = x.as_chunks::<LANES>();
    let whole = x.len() - rest.len();
    for (index, x) in lines.iter().enumerate() {
        for row in 0..ROWS {
            let line = rows[starts[row] + index * LANES..].first_chunk::<LANES>().expect("a whole line");
            for i in 0..LANES {
                lanes[row][i] = lanes[row][i] + line[i] * x[i];
            }
        }
    }
    let mut sums = [T::ZERO; ROWS];
    for row in 0..ROWS {
        let lanes = &mut lanes[row];
        for ((lane, &a), &x) in lanes.iter_mut().zip(&rows[starts[row] + whole..]).zip(rest) {
            *lane = *lane + a * x;
        }
        let mut width = LANES;
        while width > 1 {
            width /= 2;
            for i in 0..width {
                lanes[i] = lanes[i] + lanes[width + i];
            }
        }
        sums[row] = lanes[0];
    }
    sums
}

/// Whether a size is NaN.
#[inline(always)]
fn is_nan<R: RealField>(size: R) -> bool {
    size.partial_cmp(&size).is_none()
}

vectorized! {
    /// The index of the element of the greatest size, the first of several. If there is a NaN, the index of the first
    /// NaN.
    pub(super) fn greatest[T: Field] of [T] (x: &[T]) -> usize {
        let zero = <T::Real as Field>::ZERO;
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
        let mut most = zero;
        for size in lanes {
            most = if size > most { size } else { most };
        }
        x.iter().position(|x| x.size() == most).unwrap_or(0)
    }
}

/// As [`greatest`], for few elements.
#[inline(always)]
pub(super) fn greatest_of_few<T: Field>(x: &[T]) -> usize {
    let (mut most, mut index) = (<T::Real as Field>::ZERO, 0);
    for (at, x) in x.iter().enumerate() {
        let size = x.size();
        if is_nan(size) {
            return at;
        }
        (most, index) = if size > most { (size, at) } else { (most, index) };
    }
    index
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
