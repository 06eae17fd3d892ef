//! Merge sort: pieces are sorted separately, then merged in pairs until one is left. Threads share the pieces, and
//! share each merge at positions that are found by bisection (Odeh et al., Merge Path, 2012).

use std::mem::MaybeUninit;

use super::quicksort::{Finish, Read};
use super::radix::Item;
use crate::kernels::SendPtr;
use crate::par::Par;

/// The least length of a piece that pays for a thread.
const MIN_PIECE: usize = 1 << 15;

/// The greatest length of a piece.
const MAX_PIECE: usize = 1 << 19;

/// Items that one thread merges at a time.
const MERGE_CHUNK: usize = 1 << 16;

/// Sorts the items that `read` writes, and passes sorted parts of `out` to `finish`. `tmp` has the same length. The sort
/// need not be stable, because equal items are identical.
pub(super) fn sort<T: Item>(
    par: Par,
    read: &Read<'_, T>,
    finish: &Finish<'_, T>,
    out: &mut [MaybeUninit<T>],
    tmp: &mut [MaybeUninit<T>],
) {
    let len = out.len();
    assert_eq!(len, tmp.len(), "buffers of one length");
    // A piece is small enough that an interrupt can wait for its end.
    let pieces = par.threads().min(len / MIN_PIECE).max(len.div_ceil(MAX_PIECE));
    let rounds = pieces.max(1).next_power_of_two().trailing_zeros();
    let mut piece = len.div_ceil(1 << rounds).max(1);
    // The buffers swap after each round, and the last one writes to `out`.
    let (mut from, mut to) = if rounds.is_multiple_of(2) { (out, tmp) } else { (tmp, out) };
    let target = SendPtr::of(from);
    par.for_chunks(len, piece, |chunk| {
        // SAFETY: chunks are disjoint and inside.
        let part = unsafe { target.part(chunk.start, chunk.len()) };
        read(chunk.start, part);
        // SAFETY: `read` wrote all of them.
        let part = unsafe { part.assume_init_mut() };
        part.sort_unstable();
        if rounds == 0 {
            finish(part);
        }
    });
    for round in 1..=rounds {
        // SAFETY: the pieces, and then each round, write every item.
        let items: &[T] = unsafe { from.assume_init_ref() };
        merge_pairs(items, piece, to, par, finish, round == rounds);
        piece *= 2;
        (from, to) = (to, from);
    }
}

/// Merges each pair of neighbouring pieces. The last piece may be shorter or missing. In the last round parts are
/// finished.
fn merge_pairs<T: Item>(
    items: &[T],
    piece: usize,
    to: &mut [MaybeUninit<T>],
    par: Par,
    finish: &Finish<'_, T>,
    is_last: bool,
) {
    let target = SendPtr::of(to);
    for (pair, both) in items.chunks(2 * piece).enumerate() {
        let (left, right) = both.split_at(piece.min(both.len()));
        par.for_chunks(both.len(), MERGE_CHUNK, |chunk| {
            let (first, last) = (split(left, right, chunk.start), split(left, right, chunk.end));
            let left = &left[first..last];
            let right = &right[chunk.start - first..chunk.end - last];
            // SAFETY: chunks are disjoint and inside the pair's part of the result.
            let out = unsafe { target.part(2 * piece * pair + chunk.start, chunk.len()) };
            merge(left, right, out);
            if is_last {
                // SAFETY: `merge` wrote all of them.
                finish(unsafe { out.assume_init_mut() });
            }
        });
    }
}

/// The number of items from the left among the first `count` items of a merge.
fn split<T: Item>(left: &[T], right: &[T], count: usize) -> usize {
    let (mut low, mut high) = (count.saturating_sub(right.len()), count.min(left.len()));
    while low < high {
        let middle = low.midpoint(high);
        if left[middle] <= right[count - middle - 1] { low = middle + 1 } else { high = middle }
    }
    low
}

/// Merges two sorted slices.
fn merge<T: Item>(left: &[T], right: &[T], out: &mut [MaybeUninit<T>]) {
    let (mut i, mut j, mut k) = (0, 0, 0);
    while i < left.len() && j < right.len() {
        // The next side is unpredictable: a conditional move is faster than a branch.
        let (a, b) = (left[i], right[j]);
        let is_left = a <= b;
        out[k].write(if is_left { a } else { b });
        (i, j) = (i + usize::from(is_left), j + usize::from(!is_left));
        k += 1;
    }
    let (left, right) = (&left[i..], &right[j..]);
    out[k..k + left.len()].write_copy_of_slice(left);
    out[k + left.len()..].write_copy_of_slice(right);
}
