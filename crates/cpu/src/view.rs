//! Operands and results as kernels see them.

use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use defn_core::TensorType;

use crate::kernels::Plain;
use crate::kernels::stream::Stores;
use crate::par::Par;

/// An operand: contiguous row-major elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    ty: &'a TensorType,
    start: *const u8,
    aliased: bool,
    bytes: PhantomData<&'a [u8]>,
}

// SAFETY: a view only reads; where its memory is written too, `tile` says what the writer must keep to.
unsafe impl Send for View<'_> {}
// SAFETY: as above.
unsafe impl Sync for View<'_> {}

impl<'a> View<'a> {
    /// The elements of `ty` in `bytes`.
    ///
    /// # Panics
    /// When there are fewer, or they are not aligned.
    pub(crate) fn new(ty: &'a TensorType, bytes: &'a [u8]) -> View<'a> {
        assert!(bytes.len() >= ty.byte_size(), "{} bytes for {ty}", bytes.len());
        assert!(is_aligned(ty, bytes.as_ptr()), "the elements of {ty} are not aligned");
        View { ty, start: bytes.as_ptr(), aliased: false, bytes: PhantomData }
    }

    /// The elements of `ty` of which some lie in memory that begins at `start` for the first of all.
    ///
    /// # Safety
    /// Only those are read that lie in initialised memory, which is aligned and which nobody writes for 'a.
    pub(crate) unsafe fn of_part(ty: &'a TensorType, start: *const u8) -> View<'a> {
        debug_assert!(is_aligned(ty, start));
        View { ty, start, aliased: false, bytes: PhantomData }
    }

    /// The elements of `ty` that the result's memory holds, to be overwritten in place.
    pub(crate) fn aliasing(ty: &'a TensorType, out: &ViewMut<'a>) -> View<'a> {
        assert!(ty.byte_size() <= out.ty.byte_size(), "{ty} lies in the memory of {}", out.ty);
        out.overwrites.set(true);
        View { ty, start: out.start, aliased: true, bytes: PhantomData }
    }

    /// Element type and shape.
    pub(crate) fn ty(&self) -> &'a TensorType {
        self.ty
    }

    /// The same elements as those of another type, of the same width and as many.
    pub(crate) fn with_type(self, ty: &'a TensorType) -> View<'a> {
        assert_eq!((ty.size(), ty.dtype), (self.ty.size(), self.ty.dtype), "{} seen as {ty}", self.ty);
        View { ty, ..self }
    }

    /// Whether the result is written over this operand: then only [`View::start`] may be used.
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
    /// When `T` has another width than the elements, or the result is written over them.
    pub(crate) fn slice<T: Plain>(&self) -> &'a [T] {
        assert!(!self.aliased, "an operand that is overwritten has no slice");
        assert_eq!(size_of::<T>(), self.ty.dtype.storage_bytes(), "elements of {}", self.ty);
        assert!(self.start.cast::<T>().is_aligned(), "elements of {}", self.ty);
        // SAFETY: `new` has checked length and alignment, any bits are a `T`, and nobody writes them for 'a.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.ty.size()) }
    }

    /// All elements as bytes.
    ///
    /// # Panics
    /// When the result is written over them.
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
    /// Whether its lines are in the caches or soon used there: an operand lies in the same memory, for one.
    overwrites: Cell<bool>,
    bytes: PhantomData<&'a mut [MaybeUninit<u8>]>,
}

// SAFETY: whoever holds the view is the only writer; `fill` and `chunks` give threads disjoint parts.
unsafe impl Send for ViewMut<'_> {}
// SAFETY: a shared view cannot be written through but by the unsafe `part`, and that it overwrites is noted before it is
// shared.
unsafe impl Sync for ViewMut<'_> {}

impl<'a> ViewMut<'a> {
    /// The memory at `start` for the elements of `ty`.
    ///
    /// # Safety
    /// It has room for them, is aligned, and is accessed by nobody else for 'a but by views made of this one.
    pub(crate) unsafe fn new(ty: &'a TensorType, start: *mut u8) -> ViewMut<'a> {
        debug_assert!(is_aligned(ty, start));
        ViewMut { ty, start, overwrites: Cell::new(false), bytes: PhantomData }
    }

    /// Element type and shape.
    pub(crate) fn ty(&self) -> &'a TensorType {
        self.ty
    }

    /// The same memory for elements of another type, of the same width and as many.
    pub(crate) fn with_type<'b>(&'b mut self, ty: &'b TensorType) -> ViewMut<'b> {
        assert_eq!((ty.size(), ty.dtype), (self.ty.size(), self.ty.dtype), "{} seen as {ty}", self.ty);
        ViewMut { ty, start: self.start, overwrites: self.overwrites.clone(), bytes: PhantomData }
    }

    /// The first element.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// The same memory, as long as it is borrowed.
    pub(crate) fn reborrow(&mut self) -> ViewMut<'_> {
        ViewMut { ty: self.ty, start: self.start, overwrites: self.overwrites.clone(), bytes: PhantomData }
    }

    /// Has stores go to the caches: what is stored is used at once.
    pub(crate) fn stay_near(&mut self) {
        self.overwrites.set(true);
    }

    /// How a kernel that reads each operand once, in the order of the result, stores all elements.
    pub(crate) fn stores(&self) -> Stores {
        // What was just read is in the cache, where a store finds it.
        if self.overwrites.get() { Stores::Near } else { Stores::of(self.ty.byte_size()) }
    }

    /// All elements, not yet initialised. Not for results that alias an operand.
    ///
    /// # Panics
    /// When `T` has another width than the elements.
    pub(crate) fn slice<T: Plain>(&mut self) -> &mut [MaybeUninit<T>] {
        // SAFETY: the view is borrowed mutably, so that no other part of it is in use.
        unsafe { self.part(0, self.ty.size()) }
    }

    /// Elements `start..start + len`.
    ///
    /// # Safety
    /// No other slice of them is alive, and the range is inside the result.
    ///
    /// # Panics
    /// When `T` has another width than the elements.
    #[expect(clippy::mut_from_ref, reason = "the caller keeps parts disjoint")]
    pub(crate) unsafe fn part<T: Plain>(&self, start: usize, len: usize) -> &mut [MaybeUninit<T>] {
        assert_eq!(size_of::<T>(), self.ty.dtype.storage_bytes(), "elements of {}", self.ty);
        debug_assert!(start + len <= self.ty.size());
        let first = self.start.cast::<MaybeUninit<T>>();
        assert!(first.is_aligned(), "elements of {}", self.ty);
        // SAFETY: `new` promises room and alignment, the caller that nobody else uses the part.
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

    /// Fills the result in chunks of `grain` elements: `work` gets the position of a chunk's first element and
    /// the chunk. Not for results that alias an operand.
    pub(crate) fn fill<T: Plain>(
        &mut self,
        par: Par,
        grain: usize,
        work: impl Fn(usize, &mut [MaybeUninit<T>]) + Sync,
    ) {
        let this = &*self;
        par.for_chunks(this.ty.size(), grain, |chunk| {
            // SAFETY: chunks are disjoint and inside, and the view is borrowed mutably meanwhile.
            let out = unsafe { this.part(chunk.start, chunk.len()) };
            work(chunk.start, out);
        });
    }
}

/// The place of elements of any type that nobody reads or writes.
pub(crate) fn nowhere() -> *mut u8 {
    std::ptr::without_provenance_mut(64)
}

fn is_aligned(ty: &TensorType, start: *const u8) -> bool {
    start.addr().is_multiple_of(element_align(ty))
}

/// The alignment of the elements: their width, that of the parts for complex numbers.
pub(crate) fn element_align(ty: &TensorType) -> usize {
    let bytes = ty.dtype.storage_bytes();
    if ty.dtype.is_complex() { bytes / 2 } else { bytes }
}
