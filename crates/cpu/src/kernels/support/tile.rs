//! Tiles: pieces of results, small enough for the first-level cache. And how the elements of operands lie.

use std::mem::MaybeUninit;

use defn_core::DType;
use smallvec::SmallVec;

use super::stream::{self, Lines, StoreKind};
use crate::kernels::Element;
use crate::par::Par;
use crate::view::{FillFn, ViewMut};

/// Elements of a tile.
pub(crate) const TILE: usize = 1024;

/// Sizes and strides in elements, outermost first, with axes merged where possible. Few axes are left in most operands,
/// and every op moves walks around.
type Dims = SmallVec<[(usize, isize); 2]>;

/// A strided view of the elements of an operand, in the order of the result's elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StridedView {
    /// The offset of the first element.
    offset: usize,
    dims: Dims,
    /// The least number of elements that the operand must have.
    end: usize,
}

impl StridedView {
    /// A walk that starts at element `offset`, along axes of these sizes and strides in elements.
    pub(crate) fn strided(offset: usize, sizes: &[usize], strides: &[isize]) -> StridedView {
        let mut dims = Dims::new();
        if sizes.contains(&0) {
            return StridedView { offset: 0, dims, end: 0 };
        }
        for (&size, &stride) in sizes.iter().zip(strides) {
            if size == 1 {
                continue;
            }
            match dims.last_mut() {
                // One step of the outer axis is the whole extent of this one: together they are one axis.
                Some((outer, outer_stride)) if *outer_stride == stride * size as isize => {
                    *outer *= size;
                    *outer_stride = stride;
                }
                Some(_) | None => dims.push((size, stride)),
            }
        }
        let reach = |sign: isize| -> isize {
            dims.iter().map(|&(size, stride)| (size as isize - 1) * (stride * sign).max(0)).sum()
        };
        assert!(reach(-1) <= offset as isize, "a walk from {offset} along {dims:?}");
        let end = offset + reach(1) as usize + 1;
        StridedView { offset, dims, end }
    }

    /// The elements of an operand of sizes `own` that is broadcast to `sizes`: axes align at the end, and axes of size 1
    /// repeat.
    pub(crate) fn broadcast(own: &[usize], sizes: &[usize]) -> StridedView {
        let skipped = sizes.len() - own.len();
        let mut strides: SmallVec<[isize; 6]> = smallvec::smallvec![0; sizes.len()];
        let mut step = 1;
        for (axis, &size) in own.iter().enumerate().rev() {
            if size != 1 {
                debug_assert_eq!(size, sizes[skipped + axis], "{own:?} does not broadcast to {sizes:?}");
                strides[skipped + axis] = step;
            }
            step *= size as isize;
        }
        StridedView::strided(0, sizes, &strides)
    }

    /// The offset of the first element.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// The sizes and strides of the axes, in elements, outermost first.
    pub(crate) fn dims(&self) -> &[(usize, isize)] {
        &self.dims
    }

    /// Whether the walk is the first `size` elements in order.
    pub(crate) fn is_plain(&self, size: usize) -> bool {
        *self == StridedView::strided(0, &[size], &[1])
    }
}

/// Fills a result tile by tile with values of a dtype that is computed in `C`, rounding them to the result's.
///
/// For each tile, `compute(start, tile)` writes every element; `start` is the position of the first. Not for results that
/// alias an operand.
pub(crate) fn fill_tiles<C: Element>(
    out: &mut ViewMut<'_>,
    par: Par,
    grain: usize,
    compute: impl Fn(usize, &mut [MaybeUninit<C>]) + Sync,
) {
    // Many kernels compute the same type; what divides their results is compiled once for each.
    fill_tiles_with(out, par, grain, &compute);
}

fn fill_tiles_with<C: Element>(out: &ViewMut<'_>, par: Par, grain: usize, compute: &dyn FillFn<C>) {
    let dtype = out.ty().dtype;
    let writes_directly = C::stores(dtype);
    let width = dtype.storage_bytes();
    let stores = out.stores();
    par.for_chunks(out.ty().size(), grain.next_multiple_of(TILE), |chunk| {
        let mut scratch = Lines([MaybeUninit::<C>::uninit(); TILE]);
        for start in chunk.clone().step_by(TILE) {
            let len = TILE.min(chunk.end - start);
            if writes_directly && stores == StoreKind::Cached {
                // SAFETY: chunks and the tiles in them are disjoint and in bounds.
                compute.call(start, unsafe { out.part(start, len) });
            } else {
                let tile = &mut scratch.0[..len];
                compute.call(start, tile);
                // SAFETY: `compute` writes every element.
                let tile = unsafe { tile.assume_init_ref() };
                // SAFETY: as above, with the elements taken as bytes.
                put(tile, dtype, unsafe { out.part_bytes(start * width, len * width) }, stores);
            }
        }
        stores.finish();
    });
}

/// Stores the elements of a tile as those of `dtype`.
fn put<C: Element>(tile: &[C], dtype: DType, out: &mut [MaybeUninit<u8>], stores: StoreKind) {
    match stores {
        StoreKind::Cached => C::encode(tile, dtype, out),
        StoreKind::NonTemporal if C::stores(dtype) => {
            // SAFETY: elements are plain bytes, all initialised.
            let bytes = unsafe { std::slice::from_raw_parts(tile.as_ptr().cast(), size_of_val(tile)) };
            stream::copy(bytes, out);
        }
        StoreKind::NonTemporal => {
            // Small types have at most four bytes.
            let mut encoded = Lines([MaybeUninit::uninit(); 4 * TILE]);
            let encoded = &mut encoded.0[..out.len()];
            C::encode(tile, dtype, encoded);
            // SAFETY: `encode` writes every byte.
            stream::copy(unsafe { encoded.assume_init_ref() }, out);
        }
    }
}
