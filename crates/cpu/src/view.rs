//! Operands and results as kernels see them.

use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use defn_core::TensorType;

use crate::kernels::Plain;
use crate::kernels::stream::StoreKind;
use crate::par::Par;

/// An operand: contiguous row-major elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    ty: &'a TensorType,
    start: *const u8,
    aliased: bool,
    bytes: PhantomData<&'a [u8]>,
}

// SAFETY: a view only reads. A kernel whose result overwrites it has read an element before it writes there.
unsafe impl Send for View<'_> {}
// SAFETY: as above.
unsafe impl Sync for View<'_> {}

impl<'a> View<'a> {
    /// The elements of `ty` in `bytes`.
    ///
    /// # Panics
    /// When `bytes` is too short or not aligned.
    pub(crate) fn new(ty: &'a TensorType, bytes: &'a [u8]) -> View<'a> {
        assert!(bytes.len() >= ty.byte_size(), "{} bytes for {ty}", bytes.len());
        assert!(is_aligned(ty, bytes.as_ptr()), "the elements of {ty} are not aligned");
        View { ty, start: bytes.as_ptr(), aliased: false, bytes: PhantomData }
    }

    /// A view of the elements of `ty` of which only some are in memory; `start` is where the first of all would be.
    ///
    /// # Safety
    /// Only elements are read whose memory is initialised, aligned and not written for 'a.
    pub(crate) unsafe fn of_part(ty: &'a TensorType, start: *const u8) -> View<'a> {
        debug_assert!(is_aligned(ty, start));
        View { ty, start, aliased: false, bytes: PhantomData }
    }

    /// The elements of `ty` in the result's memory, to be overwritten in place.
    pub(crate) fn aliasing(ty: &'a TensorType, out: &ViewMut<'a>) -> View<'a> {
        assert!(ty.byte_size() <= out.ty.byte_size(), "{ty} lies in the memory of {}", out.ty);
        out.overwrites.set(true);
        View { ty, start: out.start, aliased: true, bytes: PhantomData }
    }

    /// Element type and shape.
    pub(crate) fn ty(&self) -> &'a TensorType {
        self.ty
    }

    /// The same elements under another type of the same dtype and size.
    pub(crate) fn with_type(self, ty: &'a TensorType) -> View<'a> {
        assert_eq!((ty.size(), ty.dtype), (self.ty.size(), self.ty.dtype), "{} seen as {ty}", self.ty);
        View { ty, ..self }
    }

    /// Whether the result overwrites this operand. If so, only [`View::start`] may be used.
    pub(crate) fn is_aliased(&self) -> bool {
        self.aliased
    }

    /// The first element.
    pub(crate) fn start(&self) -> *const u8 {
        self.start
    }

    /// All elements.
    ///
    /// # Panics
    /// When the width of `T` is not that of the elements, or the result overwrites them.
    pub(crate) fn slice<T: Plain>(&self) -> &'a [T] {
        assert!(!self.aliased, "an operand that is overwritten has no slice");
        assert_eq!(size_of::<T>(), self.ty.dtype.storage_bytes(), "elements of {}", self.ty);
        assert!(self.start.cast::<T>().is_aligned(), "elements of {}", self.ty);
        // SAFETY: `new` has checked length and alignment, any bits are a valid `T`, and nobody writes them for 'a.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.ty.size()) }
    }

    /// All elements as bytes.
    ///
    /// # Panics
    /// When the result overwrites them.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        assert!(!self.aliased, "an operand that is overwritten has no slice");
        // SAFETY: as for `slice`.
        unsafe { std::slice::from_raw_parts(self.start, self.ty.byte_size()) }
    }
}

/// A result: memory for contiguous row-major elements. Every kernel writes every element of its results.
#[derive(Debug)]
pub(crate) struct ViewMut<'a> {
    ty: &'a TensorType,
    start: *mut u8,
    /// Whether its cache lines are already in the caches, or are used there soon; an aliased operand is one reason.
    overwrites: Cell<bool>,
    bytes: PhantomData<&'a mut [MaybeUninit<u8>]>,
}

// SAFETY: the owner of the view is the only writer; `fill` gives disjoint parts to threads.
unsafe impl Send for ViewMut<'_> {}
// SAFETY: only the unsafe `part` writes through a shared view, and `overwrites` is set before the view is shared.
unsafe impl Sync for ViewMut<'_> {}

impl<'a> ViewMut<'a> {
    /// The memory at `start` for the elements of `ty`.
    ///
    /// # Safety
    /// It is large enough and aligned, and for 'a it is accessed only by views derived from this one.
    pub(crate) unsafe fn new(ty: &'a TensorType, start: *mut u8) -> ViewMut<'a> {
        debug_assert!(is_aligned(ty, start));
        ViewMut { ty, start, overwrites: Cell::new(false), bytes: PhantomData }
    }

    /// Element type and shape.
    pub(crate) fn ty(&self) -> &'a TensorType {
        self.ty
    }

    /// The same memory under another type of the same dtype and size.
    pub(crate) fn with_type<'b>(&'b mut self, ty: &'b TensorType) -> ViewMut<'b> {
        assert_eq!((ty.size(), ty.dtype), (self.ty.size(), self.ty.dtype), "{} seen as {ty}", self.ty);
        ViewMut { ty, start: self.start, overwrites: self.overwrites.clone(), bytes: PhantomData }
    }

    /// The first element.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// A view of the same memory for a shorter borrow.
    pub(crate) fn reborrow(&mut self) -> ViewMut<'_> {
        ViewMut { ty: self.ty, start: self.start, overwrites: self.overwrites.clone(), bytes: PhantomData }
    }

    /// Makes stores go to the caches: the elements are used again at once.
    pub(crate) fn store_to_caches(&mut self) {
        self.overwrites.set(true);
    }

    /// The kind of store for a kernel that reads each operand once, in the order of the result.
    pub(crate) fn stores(&self) -> StoreKind {
        // An element that was just read is in the cache, where the store finds it.
        if self.overwrites.get() { StoreKind::Cached } else { StoreKind::of(self.ty.byte_size()) }
    }

    /// All elements, not yet initialised. Not for results that alias an operand.
    ///
    /// # Panics
    /// When the width of `T` is not that of the elements.
    pub(crate) fn slice<T: Plain>(&mut self) -> &mut [MaybeUninit<T>] {
        // SAFETY: the view is borrowed mutably, so that no other part of it is in use.
        unsafe { self.part(0, self.ty.size()) }
    }

    /// Elements `start..start + len`.
    ///
    /// # Safety
    /// No other slice of them is alive, and the range is in bounds.
    ///
    /// # Panics
    /// When the width of `T` is not that of the elements.
    #[expect(clippy::mut_from_ref, reason = "the caller keeps parts disjoint")]
    pub(crate) unsafe fn part<T: Plain>(&self, start: usize, len: usize) -> &mut [MaybeUninit<T>] {
        assert_eq!(size_of::<T>(), self.ty.dtype.storage_bytes(), "elements of {}", self.ty);
        debug_assert!(start + len <= self.ty.size());
        let first = self.start.cast::<MaybeUninit<T>>();
        assert!(first.is_aligned(), "elements of {}", self.ty);
        // SAFETY: `new` guarantees size and alignment; the caller guarantees that no other part overlaps.
        unsafe { std::slice::from_raw_parts_mut(first.add(start), len) }
    }

    /// Bytes `start..start + len`.
    ///
    /// # Safety
    /// As for [`ViewMut::part`].
    #[expect(clippy::mut_from_ref, reason = "the caller keeps parts disjoint")]
    pub(crate) unsafe fn part_bytes(&self, start: usize, len: usize) -> &mut [MaybeUninit<u8>] {
        debug_assert!(start + len <= self.ty.byte_size());
        // SAFETY: as in `part`.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast::<MaybeUninit<u8>>().add(start), len) }
    }

    /// Fills the result in chunks of `grain` elements: `work` gets the index of a chunk's first element and the chunk.
    /// Not for results that alias an operand.
    pub(crate) fn fill<T: Plain>(
        &mut self,
        par: Par,
        grain: usize,
        work: impl Fn(usize, &mut [MaybeUninit<T>]) + Sync,
    ) {
        self.fill_with(par, grain, &work);
    }

    fn fill_with<T: Plain>(&mut self, par: Par, grain: usize, work: &dyn FillFn<T>) {
        let this = &*self;
        par.for_chunks(this.ty.size(), grain, |chunk| {
            // SAFETY: chunks are disjoint and in bounds, and the view is borrowed mutably meanwhile.
            let out = unsafe { this.part(chunk.start, chunk.len()) };
            work.call(chunk.start, out);
        });
    }
}

/// What writes elements from one on. As `dyn Fn`, each would have two more functions, which nobody calls.
pub(crate) trait FillFn<T>: Sync {
    fn call(&self, start: usize, out: &mut [MaybeUninit<T>]);
}

impl<T, F: Fn(usize, &mut [MaybeUninit<T>]) + Sync> FillFn<T> for F {
    fn call(&self, start: usize, out: &mut [MaybeUninit<T>]) {
        self(start, out);
    }
}

/// An aligned pointer for elements of any type that are never accessed.
pub(crate) fn dangling() -> *mut u8 {
    std::ptr::without_provenance_mut(64)
}

pub(crate) fn is_aligned(ty: &TensorType, start: *const u8) -> bool {
    start.addr().is_multiple_of(element_align(ty))
}

/// The alignment of the elements: their width, or the width of one part for complex numbers.
pub(crate) fn element_align(ty: &TensorType) -> usize {
    let bytes = ty.dtype.storage_bytes();
    if ty.dtype.is_complex() { bytes / 2 } else { bytes }
}
