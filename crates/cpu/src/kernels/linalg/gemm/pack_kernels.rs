//! Packing of rows into panels, by transposition or by copying.

use std::mem::MaybeUninit;

use super::first::FirstLanes;
use super::tile::Vector;

/// Transposes `rows` rows of `depth` contiguous elements into a panel. The elements at one position of all rows are
/// contiguous in the panel, and missing rows are zeros.
///
/// # Safety
/// The rows, a stride apart, can be read, and `width * depth` elements can be written; `rows <= width`.
pub(super) type PackTransposed<C> = unsafe fn(
    from: *const C,
    stride: usize,
    rows: usize,
    depth: usize,
    width: usize,
    to: *mut MaybeUninit<C>,
);

/// Copies `depth` rows of `width` contiguous elements, one behind the other.
///
/// # Safety
/// The rows, a stride apart, can be read, and `width * depth` elements can be written. The width is a tile's width or
/// height.
pub(super) type PackCopy<C> =
    unsafe fn(from: *const C, stride: usize, depth: usize, width: usize, to: *mut MaybeUninit<C>);

/// The transpose of a square.
///
/// # Safety
/// The processor has the instructions.
#[inline(always)]
unsafe fn transposed<V: Vector, const LANES: usize>(mut square: [V; LANES]) -> [V; LANES] {
    // A transposition takes one round of interleaving for each bit of an index: log2(`LANES`) rounds.
    let mut distance = 1;
    while distance < LANES {
        let before = square;
        for i in 0..LANES / 2 {
            // SAFETY: the caller guarantees it.
            (square[2 * i], square[2 * i + 1]) = unsafe { before[i].zip(before[i + LANES / 2]) };
        }
        distance *= 2;
    }
    square
}

/// Row stride, in bytes, from which on rows are assumed to be in no cache yet.
const MIN_UNCACHED_STRIDE: usize = 1024;

/// # Safety
/// As for [`PackTransposed`].
#[inline(always)]
pub(super) unsafe fn pack_transposed<V: FirstLanes, const LANES: usize>(
    from: *const V::Element,
    stride: usize,
    rows: usize,
    depth: usize,
    width: usize,
    to: *mut MaybeUninit<V::Element>,
) {
    let to = to.cast::<V::Element>();
    // The rows of the next panel are prefetched, unless these rows are a buffer's.
    let is_far = stride * size_of::<V::Element>() >= MIN_UNCACHED_STRIDE;
    // SAFETY: the caller guarantees it. Squares are stored row by row, in order, so that the excess of a row is
    // overwritten by the next row. The last rows of a panel that is narrower than a square go through a buffer.
    unsafe {
        for first in (0..width).step_by(LANES) {
            // The last square of a panel begins earlier and rewrites some elements.
            let first = first.min(width.saturating_sub(LANES));
            let (across, lines) = (LANES.min(width), LANES.min(rows.saturating_sub(first)));
            for position in (0..depth).step_by(LANES) {
                let down = LANES.min(depth - position);
                let start = to.add(position * width + first);
                if lines == LANES && down == LANES {
                    // Whole squares stay in registers.
                    let mut square = [V::zero(); LANES];
                    for i in 0..LANES {
                        let source = from.add((first + i) * stride + position);
                        if is_far {
                            V::prefetch_l2(source.wrapping_add(width * stride));
                        }
                        square[i] = V::load(source);
                    }
                    let square = transposed::<V, LANES>(square);
                    for i in 0..LANES {
                        square[i].store(start.add(i * width));
                    }
                    continue;
                }
                let mut square = [V::zero(); LANES];
                for (i, line) in square.iter_mut().enumerate().take(lines) {
                    let source = from.add((first + i) * stride + position);
                    if is_far {
                        V::prefetch_l2(source.wrapping_add(width * stride));
                    }
                    *line = V::load_first(source, V::first(down));
                }
                let square = transposed::<V, LANES>(square);
                let whole = if across == LANES {
                    down
                } else {
                    down.min((depth - position).saturating_sub(LANES.div_ceil(width)))
                };
                for (k, line) in square.iter().enumerate().take(whole) {
                    line.store(start.add(k * width));
                }
                for (k, line) in square.iter().enumerate().take(down).skip(whole) {
                    line.store_first(start.add(k * width), V::first(across));
                }
            }
        }
    }
}

/// As [`pack_transposed`], for exactly as many rows as the panel is wide, four at a time.
///
/// # Safety
/// As for [`PackTransposed`]; the width is a multiple of four, the depth a multiple of a vector's lanes.
#[inline(always)]
pub(super) unsafe fn pack_transposed_fours<V: Vector>(
    from: *const V::Element,
    stride: usize,
    depth: usize,
    width: usize,
    to: *mut MaybeUninit<V::Element>,
) {
    let to = to.cast::<V::Element>();
    let is_far = stride * size_of::<V::Element>() >= MIN_UNCACHED_STRIDE;
    // SAFETY: the caller guarantees it.
    unsafe {
        for position in (0..depth).step_by(V::LANES) {
            for first in (0..width).step_by(4) {
                let line = |i: usize| {
                    let source = from.add((first + i) * stride + position);
                    if is_far {
                        V::prefetch_l2(source.wrapping_add(width * stride));
                    }
                    V::load(source)
                };
                let ((a, b), (c, d)) = (line(0).zip(line(2)), line(1).zip(line(3)));
                let ((a, b), (c, d)) = (a.zip(c), b.zip(d));
                let start = to.add(position * width + first);
                for (index, fours) in [a, b, c, d].into_iter().enumerate() {
                    fours.store_fours(start.add(index * (V::LANES / 4) * width), width);
                }
            }
        }
    }
}

/// # Safety
/// As for [`PackCopy`]; the width is a multiple of `ROWS`.
#[inline(always)]
pub(super) unsafe fn copy_rows<V: Vector, const ROWS: usize>(
    from: *const V::Element,
    stride: usize,
    depth: usize,
    width: usize,
    to: *mut MaybeUninit<V::Element>,
) {
    let to = to.cast::<V::Element>();
    // SAFETY: the caller guarantees it.
    unsafe {
        if width == 2 * V::LANES {
            for k in 0..depth {
                let (from, to) = (from.add(k * stride), to.add(k * width));
                // Prefetches the data of the next panel.
                V::prefetch_l2(from.wrapping_add(width));
                V::prefetch_l2(from.wrapping_add(width + V::LANES));
                let (low, high) = (V::load(from), V::load(from.add(V::LANES)));
                low.store(to);
                high.store(to.add(V::LANES));
            }
        } else if width == V::LANES {
            for k in 0..depth {
                V::load(from.add(k * stride)).store(to.add(k * width));
            }
        } else {
            for k in 0..depth {
                for position in (0..width).step_by(ROWS) {
                    let (from, to) = (from.add(k * stride + position), to.add(k * width + position));
                    to.cast::<[V::Element; ROWS]>()
                        .write_unaligned(from.cast::<[V::Element; ROWS]>().read_unaligned());
                }
            }
        }
    }
}
