//! Tensors made without operands.

use std::mem::MaybeUninit;

use defn_core::{Axis, Result, Scalar};

use super::simd::vectorized;
use super::{Element, TILE, fill_tiles, with_compute, with_width};
use crate::par::Par;
use crate::view::ViewMut;

/// The elements of a chunk: fewer are not worth waking a thread.
const CREATE_CHUNK: usize = 64 * TILE;

/// Fills the result tile by tile; the body gets the index of a tile's first element.
macro_rules! by_tile {
    ($out:expr, $par:expr, $C:ident, |$first:ident, $tile:ident| $body:block) => {{
        let out: &mut ViewMut<'_> = $out;
        let dtype = out.ty().dtype;
        with_compute!(dtype, $C => {
            fill_tiles::<$C>(out, $par, CREATE_CHUNK, |$first, $tile| $body);
        });
    }};
}

/// Fills the result with `scalar`.
pub(crate) fn constant(scalar: Scalar, out: &mut ViewMut<'_>, par: Par) -> Result<()> {
    debug_assert_eq!(scalar.dtype(), out.ty().dtype);
    let bytes = scalar.to_bytes();
    with_width!(scalar.dtype(), T => {
        assert_eq!(bytes.len(), size_of::<T>(), "the bytes of one element");
        // SAFETY: the lengths are equal, and any bits are a valid `T`.
        let value = unsafe { bytes.as_ptr().cast::<T>().read_unaligned() };
        out.fill::<T>(par, CREATE_CHUNK, |_, chunk| {
            chunk.iter_mut().for_each(|out| {
                out.write(value);
            });
        });
    });
    Ok(())
}

/// Counts along `axis`, or over the flat index. Integers wrap, floats round.
pub(crate) fn iota(axis: Option<Axis>, out: &mut ViewMut<'_>, par: Par) -> Result<()> {
    let shape = &out.ty().shape;
    // The index along the axis is (flat / step) % size.
    let (step, size) = match axis {
        Some(axis) => {
            let step = shape.sizes()[axis.index() + 1..].iter().product::<usize>();
            (step, shape[axis])
        }
        None => (1, shape.size()),
    };
    by_tile!(out, par, C, |first, tile| {
        count(step, size, first, tile);
    });
    Ok(())
}

/// Writes `(flat / step) % size` for the flat indices from `first` on.
pub(crate) fn count<C: Element>(step: usize, size: usize, first: usize, tile: &mut [MaybeUninit<C>]) {
    let mut done = 0;
    while done < tile.len() {
        let flat = first + done;
        let index = (flat / step) % size;
        if step == 1 {
            let count = (size - index).min(tile.len() - done);
            ramp(index as u64, &mut tile[done..done + count]);
            done += count;
        } else {
            let count = (step - flat % step).min(tile.len() - done);
            tile[done..done + count].fill(MaybeUninit::new(C::cast_from(index as u64)));
            done += count;
        }
    }
}

vectorized! {
    /// Counts up from `start`.
    fn ramp[C: Element] of [C] (start: u64, out: &mut [MaybeUninit<C>]) {
        for (i, out) in out.iter_mut().enumerate() {
            out.write(C::cast_from(start + i as u64));
        }
    }
}

/// 1 where the last two indices are equal, else 0.
pub(crate) fn eye(out: &mut ViewMut<'_>, par: Par) -> Result<()> {
    let [.., rows, columns] = *out.ty().shape.sizes() else {
        unreachable!("eye has rank 2 or more, and not {}", out.ty())
    };
    by_tile!(out, par, C, |first, tile| {
        tile.fill(MaybeUninit::new(C::ZERO));
        let (mut row, mut begin) = (first / columns % rows, first / columns * columns);
        while begin < first + tile.len() {
            let position = begin + row;
            if row < columns && position >= first && position < first + tile.len() {
                tile[position - first].write(C::ONE);
            }
            row = if row + 1 == rows { 0 } else { row + 1 };
            begin += columns;
        }
    });
    Ok(())
}
