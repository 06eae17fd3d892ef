//! Partial sort: the first elements in order. Candidates are gathered until their buffer is full. Then the best are
//! kept, and from there on elements that are not better than the last of these are skipped.

use defn_core::op::Direction;
use defn_core::{DType, Shape, TensorType};

use super::keys::{Bits, Code};
use super::{Rows, is_narrow, radix::Item};
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
        let code = Code::<T>::new(ty.dtype, Direction::Desc);
        let x: &[T] = x.slice();
        if is_narrow(ty) {
            let pair = |key: T, index: usize| key.wide() << 32 | index as u64;
            let key = |pair: u64| T::truncate(pair >> 32);
            select::<u64, T>(plan, code, x, k, pair, key, candidates, par);
            write::<u64, T>(plan, x, k, |pair| pair as u32, candidates, values, positions, par);
        } else {
            let pair = |key: T, index: usize| [key.wide(), index as u64];
            let key = |pair: [u64; 2]| T::truncate(pair[0]);
            select::<[u64; 2], T>(plan, code, x, k, pair, key, candidates, par);
            write::<[u64; 2], T>(plan, x, k, |pair| pair[1] as u32, candidates, values, positions, par);
        }
    });
}

/// Finds the best `k` candidates of each piece, or all if there are fewer, and writes them to the start of its buffer,
/// sorted.
#[expect(clippy::too_many_arguments, reason = "what a kernel is given, and the form of its pairs")]
fn select<P: Item, T: Bits>(
    plan: Plan,
    code: Code<T>,
    x: &[T],
    k: usize,
    pair: impl Fn(T, usize) -> P + Sync,
    key: impl Fn(P) -> T + Sync,
    candidates: &ViewMut<'_>,
    par: Par,
) {
    let Plan { rows, piece, pieces, capacity } = plan;
    let work = rows.len.min(piece);
    par.for_chunks(rows.count * pieces, (MIN_PIECE / work).max(1), |chunk| {
        for task in chunk {
            let first = task % pieces * piece;
            let x = &x[task / pieces * rows.len..][..rows.len];
            let x = &x[..rows.len.min(first + piece)];
            // SAFETY: each piece has its own buffer and belongs to one chunk.
            let buffer = unsafe { candidates.part::<P>(task * capacity, capacity) };
            let (mut count, mut next) = (0, first);
            // A key that is not below the limit comes after `k` others. There is no limit until the buffer has been
            // full.
            let mut limit = None;
            while next < x.len() {
                if let Some(limit) = limit {
                    next += passed_over(code, &x[next..], limit);
                }
                let block = next..x.len().min(next + BLOCK);
                next = block.end;
                for index in block {
                    let new = code.key(x[index]);
                    if limit.is_some_and(|limit| new >= limit) {
                        continue;
                    }
                    if count == buffer.len() {
                        // SAFETY: the buffer is full, so all were written.
                        let filled = unsafe { buffer.assume_init_mut() };
                        let (_, &mut last, _) = filled.select_nth_unstable(k - 1);
                        limit = Some(key(last));
                        count = k;
                        if new >= key(last) {
                            continue;
                        }
                    }
                    buffer[count].write(pair(new, index));
                    count += 1;
                }
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

/// Selects the best of all pieces' candidates and writes them.
#[expect(clippy::too_many_arguments, reason = "what a kernel is given, and the form of its pairs")]
fn write<P: Item, T: Bits>(
    plan: Plan,
    x: &[T],
    k: usize,
    position: impl Fn(P) -> u32 + Sync,
    candidates: &ViewMut<'_>,
    values: &ViewMut<'_>,
    positions: &ViewMut<'_>,
    par: Par,
) {
    let Plan { rows, piece, pieces, capacity } = plan;
    par.for_chunks(rows.count, (MIN_PIECE / rows.len.min(capacity)).max(1), |chunk| {
        for row in chunk {
            // SAFETY: each row has its own buffers and results, and belongs to one chunk.
            let (all, values, positions) = unsafe {
                (
                    candidates.part::<P>(row * pieces * capacity, pieces * capacity),
                    values.part::<T>(row * k, k),
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
            for ((value, index), &mut pair) in values.iter_mut().zip(positions).zip(best) {
                let at = position(pair);
                value.write(x[row * rows.len + at as usize]);
                index.write(at);
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
