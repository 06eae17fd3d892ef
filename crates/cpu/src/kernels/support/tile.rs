//! Tiles: pieces of operands, converted to the type of computation and small enough for the first-level cache.

use std::borrow::Cow;
use std::mem::MaybeUninit;

use defn_core::DType;
use half::{bf16, f16};
use num_complex::Complex;
use smallvec::SmallVec;

use super::simd::each;
use super::stream::{self, Lines, StoreKind};
use crate::kernels::elementwise::cast::Small;
use crate::kernels::{CastFrom, E4m3, E5m2, Element, Plain};
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

    /// Whether the operand's first element is in the memory of a result.
    pub(crate) fn may_alias(&self, result: &ViewMut<'_>) -> bool {
        let start = result.start().addr();
        (start..start + result.ty().byte_size().max(1)).contains(&self.view.start().addr())
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

    /// The bytes of the operand.
    pub(crate) fn byte_size(&self) -> usize {
        self.view.ty().byte_size()
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

    /// All `size` elements without conversion, if they are bytes that are computed in `C`: a tile has so few bytes that
    /// computing one takes about as long as looking it up.
    pub(crate) fn bytes<C: Element>(&self, dtype: DType, size: usize) -> Option<&[C]> {
        if size_of::<C>() == 1 { TileLoader::<C>::new(self, dtype).lend(0, size) } else { None }
    }

    /// The element of an operand with one element.
    pub(crate) fn only<C: Element>(&self, dtype: DType) -> Option<C> {
        if self.view.ty().size() != 1 {
            return None;
        }
        let mut only = [MaybeUninit::uninit()];
        self.read(dtype, 0, &mut only);
        // SAFETY: `read` has written it.
        Some(unsafe { only[0].assume_init() })
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
        self.convert(dtype, start, out);
        let from = self.view.ty().dtype;
        if from != dtype && !C::stores(dtype) {
            // SAFETY: `convert` has written every element.
            let out = unsafe { out.assume_init_mut() };
            C::fit(out, dtype, from.is_inexact());
        }
    }

    /// Converts the elements for `start..start + out.len()` of the result.
    fn convert<C: Element>(&self, dtype: DType, start: usize, out: &mut [MaybeUninit<C>]) {
        let from = self.view.ty().dtype;
        // Only conversions to the small floats would round twice, because of the f32 in between.
        let odd = dtype.is_float() && dtype.bits() < 32;
        match from {
            DType::Bool | DType::U2 | DType::U4 | DType::U8 => self.cast::<u8, C>(odd, start, out),
            DType::U16 => self.cast::<u16, C>(odd, start, out),
            DType::U32 => self.cast::<u32, C>(odd, start, out),
            DType::U64 => self.cast::<u64, C>(odd, start, out),
            DType::S2 | DType::S4 | DType::S8 => self.cast::<i8, C>(odd, start, out),
            DType::S16 => self.cast::<i16, C>(odd, start, out),
            DType::S32 => self.cast::<i32, C>(odd, start, out),
            DType::S64 => self.cast::<i64, C>(odd, start, out),
            DType::F8E5M2 => self.cast_small::<E5m2, C>(start, out),
            DType::F8E4M3FN => self.cast_small::<E4m3, C>(start, out),
            DType::F16 => self.cast_small::<f16, C>(start, out),
            DType::BF16 => self.cast_small::<bf16, C>(start, out),
            DType::F32 => self.cast::<f32, C>(odd, start, out),
            DType::F64 => self.cast::<f64, C>(odd, start, out),
            DType::C64 => self.cast::<Complex<f32>, C>(odd, start, out),
            DType::C128 => self.cast::<Complex<f64>, C>(odd, start, out),
        }
    }

    /// Writes 1 for elements of `start..start + out.len()` that count as true and 0 for the others.
    fn truth<C: Element>(&self, start: usize, out: &mut [MaybeUninit<C>]) {
        fn of<S: Element, C: Element>(source: &StridedOperand<'_>, start: usize, out: &mut [MaybeUninit<C>]) {
            source.gather::<S, C>(start, out, |x| if x.truth() { C::ONE } else { C::ZERO });
        }
        fn of_small<S: Plain + Small, C: Element>(
            source: &StridedOperand<'_>,
            start: usize,
            out: &mut [MaybeUninit<C>],
        ) {
            source.gather::<S, C>(start, out, |x| if x.wide().truth() { C::ONE } else { C::ZERO });
        }
        match self.view.ty().dtype {
            DType::Bool | DType::U2 | DType::U4 | DType::U8 => of::<u8, C>(self, start, out),
            DType::U16 => of::<u16, C>(self, start, out),
            DType::U32 => of::<u32, C>(self, start, out),
            DType::U64 => of::<u64, C>(self, start, out),
            DType::S2 | DType::S4 | DType::S8 => of::<i8, C>(self, start, out),
            DType::S16 => of::<i16, C>(self, start, out),
            DType::S32 => of::<i32, C>(self, start, out),
            DType::S64 => of::<i64, C>(self, start, out),
            DType::F8E5M2 => of_small::<E5m2, C>(self, start, out),
            DType::F8E4M3FN => of_small::<E4m3, C>(self, start, out),
            DType::F16 => of_small::<f16, C>(self, start, out),
            DType::BF16 => of_small::<bf16, C>(self, start, out),
            DType::F32 => of::<f32, C>(self, start, out),
            DType::F64 => of::<f64, C>(self, start, out),
            DType::C64 => of::<Complex<f32>, C>(self, start, out),
            DType::C128 => of::<Complex<f64>, C>(self, start, out),
        }
    }

    fn cast<S: Plain, C: Element + CastFrom<S>>(&self, odd: bool, start: usize, out: &mut [MaybeUninit<C>]) {
        // The condition is constant: other types get no second copy of every loop.
        if C::COMPUTES_SMALL_FLOATS && odd {
            self.gather::<S, C>(start, out, C::cast_odd);
        } else {
            self.gather::<S, C>(start, out, C::cast_from);
        }
    }

    fn cast_small<S: Plain + Small, C: Element>(&self, start: usize, out: &mut [MaybeUninit<C>]) {
        self.gather::<S, C>(start, out, |x| C::cast_from(x.wide()));
    }

    #[inline(always)]
    fn gather<S: Plain, C: Element>(
        &self,
        start: usize,
        out: &mut [MaybeUninit<C>],
        convert: impl Fn(S) -> C,
    ) {
        debug_assert_eq!(size_of::<S>(), self.view.ty().dtype.storage_bytes());
        let first = self.view.start().cast::<S>();
        let aliased = self.view.is_aliased();
        let len = out.len();
        self.for_each_run(start, len, |element, stride, range| {
            let out = &mut out[range];
            // SAFETY: the element and every step from it are inside the operand: `strided` has checked the extremes,
            // and views are aligned; without aliasing nobody writes them.
            unsafe {
                // If only a part of the operand is in memory, the other elements are outside the allocation.
                let from = first.wrapping_add(element);
                match stride {
                    0 => {
                        let value = convert(from.read());
                        out.iter_mut().for_each(|out| {
                            out.write(value);
                        });
                    }
                    1 if !aliased => each(std::slice::from_raw_parts(from, out.len()), out, &convert),
                    1 => {
                        for (i, out) in out.iter_mut().enumerate() {
                            out.write(convert(from.add(i).read()));
                        }
                    }
                    _ => {
                        for (i, out) in out.iter_mut().enumerate() {
                            out.write(convert(from.offset(i as isize * stride).read()));
                        }
                    }
                }
            }
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
    /// Whether elements are read as truth values, 0 or 1, instead of converted.
    truth: bool,
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
            truth: false,
            start: 0,
            len: 0,
            filled: 0,
            scratch: Box::default(),
        }
    }

    /// A loader of truth values: 1 for elements that count as true and 0 for the others.
    pub(crate) fn truth(source: &'a StridedOperand<'a>) -> TileLoader<'a, C> {
        TileLoader { borrowed: false, truth: true, ..TileLoader::new(source, C::DTYPE) }
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
        if self.truth {
            self.source.truth(start, tile);
            return;
        }
        self.source.read(self.dtype, start, tile);
    }

    /// Any number of elements from `start` on, if they can be read in place.
    pub(crate) fn lend(&self, start: usize, len: usize) -> Option<&'a [C]> {
        let source = self.source;
        self.borrowed.then(|| &source.view.slice::<C>()[source.strided_view.offset + start..][..len])
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
