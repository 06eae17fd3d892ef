//! Tensors out of nothing.

use defn_core::{Axis, Result, Scalar};

use super::{CastFrom, TILE, fill_tiles, with_compute, with_width};
use crate::par::Par;
use crate::view::ViewMut;

/// Elements below which a thread is not worth its waking.
const GRAIN: usize = 64 * TILE;

/// Every element is `scalar`.
pub(crate) fn constant(scalar: Scalar, out: &mut ViewMut<'_>, par: Par) -> Result<()> {
    debug_assert_eq!(scalar.dtype(), out.ty().dtype);
    let bytes = scalar.to_bytes();
    with_width!(scalar.dtype(), T => {
        assert_eq!(bytes.len(), size_of::<T>(), "the bytes of one element");
        // SAFETY: the lengths are equal, and any bits are a `T`.
        let value = unsafe { bytes.as_ptr().cast::<T>().read_unaligned() };
        out.fill::<T>(par, GRAIN, |_, chunk| {
            chunk.iter_mut().for_each(|out| {
                out.write(value);
            });
        });
    });
    Ok(())
}

/// Counts along `axis`, or over the flat index; integers wrap, floats round.
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
    indexed(out, par, |flat| ((flat / step) % size) as u64);
    Ok(())
}

/// 1 where the last two indices agree, else 0.
pub(crate) fn eye(out: &mut ViewMut<'_>, par: Par) -> Result<()> {
    let [.., rows, columns] = *out.ty().shape.sizes() else {
        unreachable!("eye has rank 2 or more, and not {}", out.ty())
    };
    indexed(out, par, |flat| u64::from((flat / columns) % rows == flat % columns));
    Ok(())
}

/// Fills with integers made of the flat index.
fn indexed(out: &mut ViewMut<'_>, par: Par, value: impl Fn(usize) -> u64 + Sync) {
    let dtype = out.ty().dtype;
    with_compute!(dtype, C => {
        fill_tiles::<C, usize>(
            out,
            par,
            GRAIN,
            || 0,
            |first, start, _| *first = start,
            |first, tile| {
                for (i, out) in tile.iter_mut().enumerate() {
                    out.write(C::cast_from(value(first + i)));
                }
            },
        );
    });
}
