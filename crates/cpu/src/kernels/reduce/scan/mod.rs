//! Scans: at each position of an axis, the reduction of the elements up to it.
//!
//! An axis of at most [`IN_ORDER`] elements is scanned in order. A longer one consists of blocks, which are scanned as
//! axes of their own; then each element of a block is joined to the result at the end of the block before. So the order
//! depends on the length of the axis alone, and sums of numbers that are not negative never decrease, as in order.
//!
//! A sum waits for the addition before: three or four cycles an element. So several advance together: those of rows, of
//! columns, or of the blocks of a long axis.

mod blocks;
mod columns;
mod fold;
mod matrices;
#[cfg(test)]
mod tests;

use std::mem::MaybeUninit;

use defn_core::DType;
use defn_core::op::CumulativeOp;

use self::fold::{ByOp, Fold};
use self::matrices::TOGETHER;
use super::layout::CHUNK;
use crate::kernels::stream::{self, StoreKind};
use crate::kernels::thread_memory::with_thread_memory;
use crate::kernels::{Element, Plain, Real, SendPtr, with_real, with_unsigned};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// The longest axis that is scanned in order.
const IN_ORDER: usize = CHUNK;

/// Elements of a block of a longer axis.
const BLOCK: usize = 1024;

/// Elements below which a further thread does not pay.
const PER_THREAD: usize = 1 << 14;

/// The least bytes of a row of columns, or of a matrix, that are stored past the caches. Shorter ones take longer so.
const MIN_NON_TEMPORAL: usize = 1024;

/// Scans `x`, whose dtype is one of computation, along an axis, from its first element on or from its last.
pub(crate) fn scan(
    op: CumulativeOp,
    x: View<'_>,
    axis: usize,
    reverse: bool,
    out: &mut ViewMut<'_>,
    par: Par,
) {
    let bytes = out.ty().byte_size();
    let stores = match out.stores() {
        StoreKind::Cached => StoreKind::Cached,
        StoreKind::NonTemporal => StoreKind::for_transfer(bytes, bytes, par.threads()),
    };
    scan_with(op, x, (axis, reverse), out, stores, par);
}

/// Scans with this kind of stores.
fn scan_with(
    op: CumulativeOp,
    x: View<'_>,
    (axis, reverse): (usize, bool),
    out: &mut ViewMut<'_>,
    stores: StoreKind,
    par: Par,
) {
    if out.ty().size() == 0 {
        return;
    }
    let sizes = x.ty().shape.sizes();
    let dtype = x.ty().dtype;
    let lines = Lines {
        outer: sizes[..axis].iter().product(),
        len: sizes[axis],
        inner: sizes[axis + 1..].iter().product(),
        reverse,
        is_exact: is_exact(op, dtype),
        stores,
        par,
    };
    match op {
        CumulativeOp::CumulativeSum => with_unsigned!(dtype, C => lines.scan::<C>(x, out, &ByOp(C::plus))),
        CumulativeOp::CumulativeProduct => {
            with_unsigned!(dtype, C => lines.scan::<C>(x, out, &ByOp(C::times)))
        }
        CumulativeOp::CumulativeMax => with_real!(dtype, C => lines.scan::<C>(x, out, &ByOp(C::greater))),
        CumulativeOp::CumulativeMin => with_real!(dtype, C => lines.scan::<C>(x, out, &ByOp(C::lesser))),
    }
}

/// Whether the order makes no difference. Of equal extremes, such as 0 and -0, the last is the result in any order.
fn is_exact(op: CumulativeOp, dtype: DType) -> bool {
    match op {
        CumulativeOp::CumulativeSum | CumulativeOp::CumulativeProduct => !dtype.is_inexact(),
        CumulativeOp::CumulativeMax | CumulativeOp::CumulativeMin => true,
    }
}

/// A tensor seen as `[outer][len][inner]`, scanned along the middle axis.
#[derive(Clone, Copy, Debug)]
struct Lines {
    outer: usize,
    len: usize,
    inner: usize,
    reverse: bool,
    is_exact: bool,
    stores: StoreKind,
    par: Par,
}

impl Lines {
    fn scan<C: Element>(self, x: View<'_>, out: &mut ViewMut<'_>, fold: &dyn Fold<C>) {
        let (x, out): (&[C], _) = (x.slice(), SendPtr::of(out.slice::<C>()));
        // Blocks keep more sums and threads busy than few lines do.
        let few = TOGETHER.max(self.par.threads());
        let prefers_blocks = self.is_exact && self.len >= 4 * BLOCK && self.outer * self.inner < few;
        if (self.has_blocks() || prefers_blocks) && self.has_rows_for_blocks::<C>() {
            self.by_blocks(x, &out, fold);
        } else if !self.has_blocks() && self.has_narrow_rows::<C>() {
            self.by_matrices(x, &out, fold);
        } else {
            self.by_columns(x, &out, fold);
        }
    }

    /// Whether the axis has blocks.
    fn has_blocks(self) -> bool {
        self.len > IN_ORDER
    }

    /// The row at the place `place` of the scan.
    fn row(self, place: usize) -> usize {
        if self.reverse { self.len - 1 - place } else { place }
    }

    /// The first of the rows at `count` places of the scan from `place` on, as they lie.
    fn first_row(self, place: usize, count: usize) -> usize {
        if self.reverse { self.len - place - count } else { place }
    }
}

/// Copies elements into a result.
fn store<T: Plain>(from: &[T], to: &mut [MaybeUninit<T>], stores: StoreKind) {
    assert_eq!(from.len(), to.len(), "as many elements");
    let bytes = size_of_val(from);
    match stores {
        StoreKind::Cached => {
            to.write_copy_of_slice(from);
        }
        StoreKind::NonTemporal => {
            // SAFETY: plain elements have no padding.
            let from = unsafe { std::slice::from_raw_parts(from.as_ptr().cast::<u8>(), bytes) };
            // SAFETY: the same memory; its bytes need not be initialised.
            let to =
                unsafe { std::slice::from_raw_parts_mut(to.as_mut_ptr().cast::<MaybeUninit<u8>>(), bytes) };
            stream::copy(from, to);
        }
    }
}

/// Calls `work` with so many elements of this thread's own.
fn with_elements<T: Plain>(count: usize, work: impl FnOnce(&mut [T])) {
    with_thread_memory(count * size_of::<T>(), |memory| {
        // SAFETY: there is room for them, all is initialised, and all bits are valid elements.
        work(unsafe { std::slice::from_raw_parts_mut(memory.cast::<T>(), count) });
    });
}

/// Elements as memory that may be written to.
fn uninit<T: Plain>(elements: &mut [T]) -> &mut [MaybeUninit<T>] {
    // SAFETY: what is written are elements, too.
    unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), elements.len()) }
}
