//! Partial sort: the first elements in order. Candidates are gathered until their buffer is full. Then the best are
//! kept, and from there on elements that are not better than the last of these are skipped.

use std::ops::Range;

use defn_core::op::Direction;
use defn_core::{DType, Shape, TensorType};

use super::keys::{Bits, Code};
use super::{Rows, is_narrow, radix::Pair};
use crate::kernels::simd::vectorized;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// The least length of the pieces of a row that threads share, and the smallest candidate buffer. With a smaller buffer
/// the limit for skipping is known earlier.
const MIN_PIECE: usize = 1 << 16;
const MIN_CAPACITY: usize = 64;

/// Elements that are skipped at once.
const BLOCK: usize = 64;

/// The pieces and the candidate buffers of the rows.
#[derive(Clone, Copy, Debug)]
struct Plan {
    rows: Rows,
    /// The length of a row's pieces, and their number.
    piece: usize,
    pieces: usize,
    /// The candidates that a piece's buffer holds.
    capacity: usize,
}

impl Plan {
    fn new(x: &TensorType, k: usize) -> Plan {
        let rows = Rows::of(x);
        let capacity = MIN_CAPACITY.max(4 * k);
        let piece = MIN_PIECE.max(16 * capacity);
        let pieces = rows.len.div_ceil(piece).max(1);
        Plan { rows, piece, pieces, capacity: capacity.min(rows.len) }
    }
}

/// Whether selecting `k` elements of each row of `x` is faster than sorting the rows.
pub(crate) fn selection_is_faster(x: &TensorType, k: usize) -> bool {
    k <= Rows::of(x).len / 4
}

/// The candidate buffers: keys and positions.
pub(crate) fn candidates_scratch(x: &TensorType, k: usize) -> TensorType {
    let Plan { rows, pieces, capacity, .. } = Plan::new(x, k);
    let dtype = if is_narrow(x) { DType::U64 } else { DType::C128 };
    TensorType { dtype, shape: Shape::new(&[rows.count * pieces * capacity]) }
}

/// The `k` greatest elements of each row, descending, and their positions, as s32. Equal elements keep their order.
pub(crate) fn top_k(
    x: View<'_>,
    k: usize,
    values: &mut ViewMut<'_>,
    positions: &mut ViewMut<'_>,
    candidates: &mut ViewMut<'_>,
    par: Par,
) {
    let (ty, plan) = (x.ty(), Plan::new(x.ty(), k));
    if values.ty().size() == 0 {
        return;
    }
    with_bits!(ty.dtype, T => {
        let keys = Keys { code: Code::<T>::new(ty.dtype, Direction::Desc), x: x.slice::<T>() };
        if is_narrow(ty) {
            select::<u64>(plan, &keys, k, candidates, par);
        } else {
            select::<[u64; 2]>(plan, &keys, k, candidates, par);
        }
    });
    if is_narrow(ty) {
        write::<u64>(plan, k, candidates, positions, par);
    } else {
        write::<[u64; 2]>(plan, k, candidates, positions, par);
    }
    // SAFETY: `write` wrote all of them.
    let positions: &[u32] = unsafe { positions.slice::<u32>().assume_init_ref() };
    let len = plan.rows.len;
    with_bits!(ty.dtype, T => {
        let x: &[T] = x.slice();
        let values = &*values;
        par.for_chunks(plan.rows.count, (MIN_PIECE / k).max(1), |chunk| {
            for row in chunk {
                // SAFETY: each row's results belong to one chunk.
                let values = unsafe { values.part::<T>(row * k, k) };
                for (value, &at) in values.iter_mut().zip(&positions[row * k..]) {
                    value.write(x[row * len + at as usize]);
                }
            }
        });
    });
}

/// The keys of elements.
struct Keys<'a, T> {
    code: Code<T>,
    x: &'a [T],
}

/// Reads keys.
trait ReadKeys: Sync {
    /// The length of the whole blocks at the start of a range that have no key below `limit`.
    fn passed_over(&self, range: Range<usize>, limit: u64) -> usize;

    /// Writes the keys of a block that begins here.
    fn block(&self, start: usize, keys: &mut [u64]);
}

impl<T: Bits> ReadKeys for Keys<'_, T> {
    fn passed_over(&self, range: Range<usize>, limit: u64) -> usize {
        passed_over(self.code, &self.x[range], T::truncate(limit))
    }

    fn block(&self, start: usize, keys: &mut [u64]) {
        for (key, &bits) in keys.iter_mut().zip(&self.x[start..]) {
            *key = self.code.key(bits).wide();
        }
    }
}

/// Finds the best `k` candidates of each piece, or all if there are fewer, and writes them to the start of its buffer,
/// sorted.
fn select<P: Pair>(plan: Plan, all: &dyn ReadKeys, k: usize, candidates: &ViewMut<'_>, par: Par) {
    let Plan { rows, piece, pieces, capacity } = plan;
    let work = rows.len.min(piece);
    par.for_chunks(rows.count * pieces, (MIN_PIECE / work).max(1), |chunk| {
        let mut keys = [0; BLOCK];
        for task in chunk {
            let first = task % pieces * piece;
            let row = task / pieces * rows.len;
            let end = rows.len.min(first + piece);
            // SAFETY: each piece has its own buffer and belongs to one chunk.
            let buffer = unsafe { candidates.part::<P>(task * capacity, capacity) };
            let (mut count, mut next) = (0, first);
            // A key that is not below the limit comes after `k` others. There is no limit until the buffer has been
            // full.
            let mut limit = None;
            while next < end {
                if let Some(limit) = limit {
                    next += all.passed_over(row + next..row + end, limit);
                }
                let keys = &mut keys[..BLOCK.min(end - next)];
                all.block(row + next, keys);
                for (index, &new) in (next..).zip(&*keys) {
                    if limit.is_some_and(|limit| new >= limit) {
                        continue;
                    }
                    if count == buffer.len() {
                        // SAFETY: the buffer is full, so all were written.
                        let filled = unsafe { buffer.assume_init_mut() };
                        let (_, &mut last, _) = filled.select_nth_unstable(k - 1);
                        limit = Some(last.key());
                        count = k;
                        if new >= last.key() {
                            continue;
                        }
                    }
                    buffer[count].write(P::of(new, index));
                    count += 1;
                }
                next += keys.len();
            }
            // SAFETY: `count` candidates were written.
            let filled = unsafe { buffer[..count].assume_init_mut() };
            if count > k {
                filled.select_nth_unstable(k - 1);
            }
            filled[..count.min(k)].sort_unstable();
        }
    });
}

vectorized! {
    /// The length of the whole blocks at the start of `x` that have no key below `limit`.
    fn passed_over[T: Bits] of [T] (code: Code<T>, x: &[T], limit: T) -> usize {
        let (blocks, _) = x.as_chunks::<BLOCK>();
        for (index, block) in blocks.iter().enumerate() {
            let mut is_below = false;
            for &bits in block {
                is_below |= code.key(bits) < limit;
            }
            if is_below {
                return index * BLOCK;
            }
        }
        blocks.len() * BLOCK
    }
}

/// Selects the best of all pieces' candidates and writes their positions.
fn write<P: Pair>(plan: Plan, k: usize, candidates: &ViewMut<'_>, positions: &ViewMut<'_>, par: Par) {
    let Plan { rows, piece, pieces, capacity } = plan;
    par.for_chunks(rows.count, (MIN_PIECE / rows.len.min(capacity)).max(1), |chunk| {
        for row in chunk {
            // SAFETY: each row has its own buffers and results, and belongs to one chunk.
            let (all, positions) = unsafe {
                (
                    candidates.part::<P>(row * pieces * capacity, pieces * capacity),
                    positions.part::<u32>(row * k, k),
                )
            };
            // Moves the candidates of all pieces together.
            let mut count = 0;
            for index in 0..pieces {
                let filled = k.min(piece.min(rows.len - index * piece));
                all.copy_within(index * capacity..index * capacity + filled, count);
                count += filled;
            }
            // SAFETY: `select` wrote this number of candidates for each piece.
            let best: &mut [P] = unsafe { all[..count].assume_init_mut() };
            if pieces > 1 {
                best.sort_unstable();
            }
            for (position, pair) in positions.iter_mut().zip(&*best) {
                position.write(pair.position() as u32);
            }
        }
    });
}

/// Writes the first `k` positions of each row of `order`, which has the shape of `x`, and the elements at these
/// positions.
pub(crate) fn first_of(
    x: View<'_>,
    order: View<'_>,
    k: usize,
    values: &mut ViewMut<'_>,
    positions: &mut ViewMut<'_>,
    par: Par,
) {
    let rows = Rows::of(x.ty());
    if values.ty().size() == 0 {
        return;
    }
    let (values, positions) = (&*values, &*positions);
    with_bits!(x.ty().dtype, T => {
        let (x, order): (&[T], &[u32]) = (x.slice(), order.slice());
        par.for_chunks(rows.count, (MIN_PIECE / rows.len).max(1), |chunk| {
            for row in chunk {
                let (x, order) = (&x[row * rows.len..][..rows.len], &order[row * rows.len..][..k]);
                // SAFETY: each row's results belong to one chunk.
                let (values, positions) = unsafe { (values.part::<T>(row * k, k), positions.part(row * k, k)) };
                positions.write_copy_of_slice(order);
                for (value, &at) in values.iter_mut().zip(order) {
                    value.write(x[at as usize]);
                }
            }
        });
    });
}
