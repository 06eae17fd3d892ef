//! Tiles: pieces of operands, converted to the type of computation and small enough for the first-level cache.

use std::borrow::Cow;
use std::mem::MaybeUninit;

use defn_core::DType;
use smallvec::SmallVec;

use super::dispatch::with_width;
use super::stream::{self, Lines, StoreKind};
use crate::compiler::convert_in_order;
use crate::kernels::Element;
use crate::par::Par;
use crate::view::{View, ViewMut};

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

    /// The offset of the first element.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// The sizes and strides of the axes, in elements, outermost first.
    pub(crate) fn dims(&self) -> &[(usize, isize)] {
        &self.dims
    }

    /// How often each element is repeated in the result, if the elements are contiguous and more than one.
    pub(crate) fn run(&self) -> Option<usize> {
        match self.dims.as_slice() {
            [(_, 1), (run, 0)] => Some(*run),
            _ => None,
        }
    }

    /// Whether the walk is the first `size` elements in order.
    pub(crate) fn is_plain(&self, size: usize) -> bool {
        *self == StridedView::strided(0, &[size], &[1])
    }

    /// Whether the walk repeats one element.
    pub(crate) fn is_constant(&self) -> bool {
        self.dims.iter().all(|&(_, stride)| stride == 0)
    }

    /// Whether the walk is contiguous.
    fn is_contiguous(&self) -> bool {
        match self.dims.as_slice() {
            [] => true,
            [(_, stride)] => *stride == 1,
            _ => false,
        }
    }
}

/// An operand in the order of the result's elements: broadcast or strided.
#[derive(Clone, Debug)]
pub(crate) struct StridedOperand<'a> {
    view: View<'a>,
    strided_view: Cow<'a, StridedView>,
}

impl<'a> StridedOperand<'a> {
    /// An operand broadcast to `sizes`: axes align at the end, and axes of size 1 repeat.
    pub(crate) fn broadcast(view: View<'a>, sizes: &[usize]) -> StridedOperand<'a> {
        let own = view.ty().shape.sizes();
        let skipped = sizes.len() - own.len();
        let mut strides: SmallVec<[isize; 6]> = smallvec::smallvec![0; sizes.len()];
        let mut step = 1;
        for (axis, &size) in own.iter().enumerate().rev() {
            if size != 1 {
                debug_assert_eq!(
                    size,
                    sizes[skipped + axis],
                    "{} does not broadcast to {sizes:?}",
                    view.ty()
                );
                strides[skipped + axis] = step;
            }
            step *= size as isize;
        }
        StridedOperand::strided(view, 0, sizes, &strides)
    }

    /// An operand seen from element `offset` on, along axes of these sizes and strides in elements.
    pub(crate) fn strided(
        view: View<'a>,
        offset: usize,
        sizes: &[usize],
        strides: &[isize],
    ) -> StridedOperand<'a> {
        StridedOperand::on(view, Cow::Owned(StridedView::strided(offset, sizes, strides)))
    }

    /// An operand with a given walk.
    ///
    /// # Panics
    /// When the walk reaches beyond the operand.
    pub(crate) fn with_strided_view(view: View<'a>, strided_view: &'a StridedView) -> StridedOperand<'a> {
        StridedOperand::on(view, Cow::Borrowed(strided_view))
    }

    fn on(view: View<'a>, strided_view: Cow<'a, StridedView>) -> StridedOperand<'a> {
        // All reads are between the first element and this one.
        assert!(strided_view.end <= view.ty().size(), "{strided_view:?} through {}", view.ty());
        StridedOperand { view, strided_view }
    }

    /// How the elements lie.
    pub(crate) fn strided_view(&self) -> &StridedView {
        &self.strided_view
    }

    /// Changes the address of the elements.
    ///
    /// # Safety
    /// The same number of elements of the same type is there, initialised and aligned, and nobody writes them while
    /// they are read.
    pub(crate) unsafe fn relocate(&mut self, start: *const u8) {
        // SAFETY: the caller says so.
        self.view = unsafe { View::of_part(self.view.ty(), start) };
    }

    /// The elements for `start..start + len` of the result, each of which is repeated `run` times.
    ///
    /// # Panics
    /// When their width differs, or the result overwrites them.
    pub(crate) fn runs<C: Element>(&self, run: usize, start: usize, len: usize) -> &'a [C] {
        debug_assert_eq!(self.strided_view.run(), Some(run));
        let (first, end) = (start / run, (start + len).div_ceil(run));
        assert!(
            self.strided_view.offset + first < self.strided_view.end
                && end <= self.strided_view.end - self.strided_view.offset
        );
        assert!(!self.view.is_aliased() && C::stores(self.view.ty().dtype));
        let from = self.view.start().cast::<C>().wrapping_add(self.strided_view.offset + first);
        // SAFETY: the walk ends behind them, and the elements of a view that are read are initialised, aligned, and of
        // this type.
        unsafe { std::slice::from_raw_parts(from, end - first) }
    }

    /// Whether the walk repeats one element.
    fn is_constant(&self) -> bool {
        self.strided_view.is_constant()
    }

    /// The address of the first element, if the elements can be read in place as ones of `dtype`, which is computed in
    /// `C`.
    pub(crate) fn borrowed<C: Element>(&self, dtype: DType) -> Option<*const C> {
        let is_stored_as_computed = C::stores(self.view.ty().dtype) && C::stores(dtype);
        let is_borrowable = is_stored_as_computed
            && self.strided_view.is_contiguous()
            && !self.is_constant()
            && !self.view.is_aliased();
        is_borrowable.then(|| self.view.start().cast::<C>().wrapping_add(self.strided_view.offset))
    }

    /// Calls `run(element, stride, range)` for pieces of the result that have one stride: the start of the piece in the
    /// operand, and its part of `start..start + len`, counted from 0.
    fn for_each_run(
        &self,
        start: usize,
        len: usize,
        mut run: impl FnMut(usize, isize, std::ops::Range<usize>),
    ) {
        let Some((&(inner, stride), outer)) = self.strided_view.dims.split_last() else {
            run(self.strided_view.offset, 0, 0..len);
            return;
        };
        let (mut within, mut rest) = (start % inner, start / inner);
        // The start of the piece's innermost axis, and its index along each of the outer ones.
        let mut row = self.strided_view.offset as isize;
        let mut indices: SmallVec<[usize; 6]> = smallvec::smallvec![0; outer.len()];
        for (index, &(size, stride)) in indices.iter_mut().zip(outer).rev() {
            *index = rest % size;
            row += *index as isize * stride;
            rest /= size;
        }
        let mut done = 0;
        while done < len {
            let count = (inner - within).min(len - done);
            run((row + within as isize * stride) as usize, stride, done..done + count);
            done += count;
            within = 0;
            for (index, &(size, stride)) in indices.iter_mut().zip(outer).rev() {
                *index += 1;
                row += stride;
                if *index < size {
                    break;
                }
                row -= size as isize * stride;
                *index = 0;
            }
        }
    }

    /// Reads the elements for `start..start + out.len()` of the result as elements of `dtype`, which is computed in
    /// `C`.
    pub(crate) fn read<C: Element>(&self, dtype: DType, start: usize, out: &mut [MaybeUninit<C>]) {
        let width = size_of::<C>();
        let computed = if is_computed_in_itself(dtype) { dtype } else { C::DTYPE };
        let len = out.len();
        // SAFETY: elements are plain bytes.
        let out = unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast(), len * width) };
        self.read_bytes((dtype, computed), start, out);
    }

    /// As [`StridedOperand::read`], with the dtype that elements are stored in.
    fn read_bytes(&self, (dtype, computed): (DType, DType), start: usize, out: &mut [MaybeUninit<u8>]) {
        let from = self.view.ty().dtype;
        if from == computed && dtype == computed {
            return self.gather(start, out);
        }
        let (wide, own) = (computed.storage_bytes(), from.storage_bytes());
        for (tile, out) in out.chunks_mut(wide * TILE).enumerate() {
            let (start, len) = (start + tile * TILE, out.len() / wide);
            let mut gathered = Lines([MaybeUninit::<[u64; 2]>::uninit(); TILE]);
            let elements = match self.contiguous(start) {
                Some(elements) => elements,
                None => {
                    let bytes = gathered.0.as_mut_ptr().cast::<MaybeUninit<u8>>();
                    // SAFETY: a tile has at most 16 bytes for each element.
                    self.gather(start, unsafe { std::slice::from_raw_parts_mut(bytes, len * own) });
                    bytes.cast_const().cast()
                }
            };
            let result = out.as_mut_ptr().cast();
            // SAFETY: the elements are there, and there is room for as many results. Small floats have at most two
            // bytes.
            unsafe {
                if computed == dtype || from == dtype {
                    convert_in_order((from, elements), (computed, result), len);
                } else {
                    let mut small = Lines([MaybeUninit::<u16>::uninit(); TILE]);
                    let small = small.0.as_mut_ptr().cast();
                    convert_in_order((from, elements), (dtype, small), len);
                    convert_in_order((dtype, small), (computed, result), len);
                }
            }
        }
    }

    /// The address of the element for position `start` of the result, if those for the following positions come next.
    fn contiguous(&self, start: usize) -> Option<*const u8> {
        let at = (self.strided_view.offset + start) * self.view.ty().dtype.storage_bytes();
        (self.strided_view.is_contiguous() && !self.is_constant()).then(|| self.view.start().wrapping_add(at))
    }

    /// Copies the elements for as many positions as fit, from `start` on.
    fn gather(&self, start: usize, out: &mut [MaybeUninit<u8>]) {
        with_width!(self.view.ty().dtype, T => {
            let len = out.len() / size_of::<T>();
            let (first, to) = (self.view.start().cast::<T>(), out.as_mut_ptr().cast::<T>());
            self.for_each_run(start, len, |element, stride, range| {
                // If only a part of the operand is in memory, the other elements are outside the allocation.
                let from = first.wrapping_add(element);
                // SAFETY: the element and every step from it are inside the operand: `strided` has checked the
                // extremes, and views are aligned; the result has room for the range.
                unsafe {
                    let to = to.add(range.start);
                    match stride {
                        0 => {
                            let value = from.read();
                            (0..range.len()).for_each(|at| to.add(at).write(value));
                        }
                        1 => from.copy_to(to, range.len()),
                        _ => (0..range.len())
                            .for_each(|at| to.add(at).write(from.offset(at as isize * stride).read())),
                    }
                }
            });
        });
    }
}

/// Reads an operand tile by tile as elements of one dtype. One per thread.
pub(crate) struct TileLoader<'a, C> {
    source: &'a StridedOperand<'a>,
    dtype: DType,
    /// Whether tiles can be read in place.
    borrowed: bool,
    /// Whether one tile, once read, is valid for all positions.
    constant: bool,
    start: usize,
    len: usize,
    /// The number of initialised elements of `scratch`.
    filled: usize,
    /// Memory for a tile that is not read in place, allocated for the first one. Most operands are read in place, and a
    /// tile inside the loader would be moved with it.
    scratch: Box<[MaybeUninit<C>]>,
}

impl<'a, C: Element> TileLoader<'a, C> {
    /// A loader that converts to `dtype`, which is computed in `C`.
    pub(crate) fn new(source: &'a StridedOperand<'a>, dtype: DType) -> TileLoader<'a, C> {
        let constant = source.is_constant();
        TileLoader {
            source,
            dtype,
            borrowed: source.borrowed::<C>(dtype).is_some(),
            constant,
            start: 0,
            len: 0,
            filled: 0,
            scratch: Box::default(),
        }
    }

    /// Reads the elements for `start..start + len` of the result; at most a tile.
    pub(crate) fn seek(&mut self, start: usize, len: usize) {
        (self.start, self.len) = (start, len);
        if self.borrowed || self.constant && self.filled >= len {
            return;
        }
        if self.scratch.len() < len {
            self.scratch = Box::new_uninit_slice(len);
        }
        let tile = &mut self.scratch[..len];
        self.filled = len;
        self.source.read(self.dtype, start, tile);
    }

    /// The elements that were read last.
    pub(crate) fn tile(&self) -> &[C] {
        if self.borrowed {
            return &self.source.view.slice::<C>()[self.source.strided_view.offset + self.start..]
                [..self.len];
        }
        // SAFETY: `seek` has initialised them.
        unsafe { self.scratch[..self.len].assume_init_ref() }
    }
}

/// Whether elements of a dtype are computed as they are stored: all but small floats, integers of less than a byte as
/// bytes.
fn is_computed_in_itself(dtype: DType) -> bool {
    !dtype.is_float() || dtype.bits() >= 32
}

/// Fills a result tile by tile with values of a dtype that is computed in `C`, rounding them to the result's.
///
/// For each tile, `load(state, start, len)` reads the operands, then `compute(state, tile)` writes every element of the
/// tile. Results may alias operands with elements of the same width: a tile is read before it is written. `state` makes
/// the state of one thread.
pub(crate) fn fill_tiles<C: Element, S>(
    out: &mut ViewMut<'_>,
    par: Par,
    grain: usize,
    state: impl Fn() -> S + Sync,
    load: impl Fn(&mut S, usize, usize) + Sync,
    compute: impl Fn(&S, &mut [MaybeUninit<C>]) + Sync,
) {
    let out = &*out;
    let dtype = out.ty().dtype;
    let writes_directly = C::stores(dtype);
    let width = dtype.storage_bytes();
    let stores = out.stores();
    par.for_chunks(out.ty().size(), grain.next_multiple_of(TILE), |chunk| {
        let mut state = state();
        let mut scratch = Lines([MaybeUninit::<C>::uninit(); TILE]);
        for start in chunk.clone().step_by(TILE) {
            let len = TILE.min(chunk.end - start);
            load(&mut state, start, len);
            if writes_directly && stores == StoreKind::Cached {
                // SAFETY: chunks and the tiles in them are disjoint, and operands are read before and after the
                // lifetime of this slice.
                compute(&state, unsafe { out.part(start, len) });
            } else {
                let tile = &mut scratch.0[..len];
                compute(&state, tile);
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
