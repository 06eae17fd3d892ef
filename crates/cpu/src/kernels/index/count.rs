//! How often integers occur. Threads count pieces of them in tables of their own, which are added.

use std::mem::MaybeUninit;

use defn_core::{DType, Shape, TensorType};

use super::INDEX_CHUNK;
use crate::kernels::{Integer, Plain, SendPtr, with_position};
use crate::par::{Par, poll_within_chunk};
use crate::view::{View, ViewMut};

/// The least integers of a piece, the most pieces, and the least integers of a piece for each number of its table, so that
/// to add the tables takes less than to count.
const MIN_PIECE: usize = 1 << 15;
const MAX_PIECES: usize = 8;
const MIN_SHARE: usize = 8;

/// Integers between two checks for interrupts.
const PAUSE: usize = 1 << 16;

/// The length of the pieces of `ids`.
fn piece(ids: usize, length: usize) -> usize {
    ids.div_ceil(MAX_PIECES).max(MIN_PIECE).max(MIN_SHARE.saturating_mul(length))
}

/// The tables: one for each piece, with a number for each integer and one for those that are out of range.
pub(crate) fn tables_scratch(ids: &TensorType, out: &TensorType) -> TensorType {
    let (count, length) = (ids.size(), out.size());
    let tables = count.div_ceil(piece(count, length)).max(1);
    TensorType { dtype: out.dtype, shape: Shape::new(&[tables, length + 1]) }
}

/// Counts each integer from 0 on, as s32 or s64; those out of range are left out. `tables` are [`tables_scratch`].
pub(crate) fn count(ids: View<'_>, out: &mut ViewMut<'_>, tables: &mut ViewMut<'_>, par: Par) {
    with_position!(ids.ty().dtype, I => {
        let ids: &[I] = ids.slice();
        if out.ty().dtype == DType::S32 {
            count_as::<I, i32>(ids, out.slice(), tables.slice(), par);
        } else {
            count_as::<I, i64>(ids, out.slice(), tables.slice(), par);
        }
    });
}

fn count_as<I: Integer, C: Plain + Default + std::ops::AddAssign + From<bool>>(
    ids: &[I],
    out: &mut [MaybeUninit<C>],
    tables: &mut [MaybeUninit<C>],
    par: Par,
) {
    let length = out.len();
    let piece = piece(ids.len(), length);
    tables.fill(MaybeUninit::new(C::default()));
    {
        let tables = SendPtr::of(tables);
        par.for_chunks(ids.len(), piece, |chunk| {
            // SAFETY: each piece has its own table, which was filled.
            let table =
                unsafe { tables.part(chunk.start / piece * (length + 1), length + 1).assume_init_mut() };
            for ids in ids[chunk].chunks(PAUSE) {
                poll_within_chunk();
                for &id in ids {
                    // A negative one is large as an unsigned number.
                    table[(id.extended() as usize).min(length)] += C::from(true);
                }
            }
        });
    }
    // SAFETY: they were filled.
    let tables: &[C] = unsafe { tables.assume_init_ref() };
    let out = SendPtr::of(out);
    par.for_chunks(length, INDEX_CHUNK, |chunk| {
        // SAFETY: chunks are disjoint and inside.
        let out = unsafe { out.part(chunk.start, chunk.len()) };
        for (at, out) in chunk.zip(out) {
            let mut sum = C::default();
            tables[at..].iter().step_by(length + 1).for_each(|&count| sum += count);
            out.write(sum);
        }
    });
}
