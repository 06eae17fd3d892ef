//! Scratch memory of ops.

use std::cell::Cell;

use defn_core::{DType, Result, Shape, TensorType};

use crate::buffer::Storage;
use crate::kernels::shape;
use crate::par::Par;
use crate::view::{View, ViewMut, dangling};

/// The allocator of an op's scratch memory. In counting mode it allocates nothing and only adds up sizes; no kernel
/// runs then, since there are no elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScratchAllocator<'a> {
    /// The name of the op, for messages.
    pub(super) op: &'static str,
    tally: Option<&'a Tally>,
}

/// The bytes in use at once.
#[derive(Debug, Default)]
pub(super) struct Tally {
    live: Cell<usize>,
    peak: Cell<usize>,
}

impl Tally {
    fn add(&self, bytes: usize) {
        self.live.set(self.live.get() + bytes);
        self.peak.set(self.peak.get().max(self.live.get()));
    }

    fn subtract(&self, bytes: usize) {
        self.live.set(self.live.get() - bytes);
    }

    /// The maximum of the bytes in use.
    pub(super) fn peak(&self) -> usize {
        self.peak.get()
    }
}

impl<'a> ScratchAllocator<'a> {
    /// The allocator of an op that runs.
    pub(super) fn of(op: &'static str) -> ScratchAllocator<'a> {
        ScratchAllocator { op, tally: None }
    }

    /// Counts the memory of an op.
    pub(super) fn counting(op: &'static str, tally: &'a Tally) -> ScratchAllocator<'a> {
        ScratchAllocator { op, tally: Some(tally) }
    }

    /// Whether kernels run. If not, nothing is read or written.
    #[inline]
    pub(super) fn runs(self) -> bool {
        self.tally.is_none()
    }

    /// Scratch memory for the elements of `ty`.
    pub(super) fn scratch(self, ty: TensorType) -> Result<Scratch<'a>> {
        let bytes = ty.byte_size();
        let storage = match self.tally {
            None => ScratchStorage::Taken(Storage::allocate(self.op, bytes)?),
            Some(tally) => {
                tally.add(bytes);
                ScratchStorage::Counted(tally)
            }
        };
        Ok(Scratch { ty, storage })
    }

    /// So many bytes of scratch memory.
    pub(super) fn bytes(self, count: usize) -> Result<Scratch<'a>> {
        self.scratch(TensorType { dtype: DType::U8, shape: Shape::new(&[count]) })
    }

    /// A copy of an operand in another dtype.
    pub(super) fn converted(self, x: View<'_>, dtype: DType, par: Par) -> Result<Scratch<'a>> {
        let mut scratch = self.scratch(x.ty().with_dtype(dtype)?)?;
        self.convert(x, dtype, &mut scratch.view_mut(), par);
        Ok(scratch)
    }

    /// Converts elements, where kernels run.
    pub(super) fn convert(self, x: View<'_>, dtype: DType, out: &mut ViewMut<'_>, par: Par) {
        if self.runs() {
            shape::convert(x, dtype, out, par);
        }
    }

    /// Copies elements, where kernels run.
    pub(super) fn copy(self, plan: &shape::StridedCopy, x: View<'_>, out: &mut ViewMut<'_>, par: Par) {
        if self.runs() {
            shape::copy(plan, x, out, par);
        }
    }
}

/// Memory that an op needs while it runs.
#[derive(Debug)]
pub(super) struct Scratch<'a> {
    ty: TensorType,
    storage: ScratchStorage<'a>,
}

#[derive(Debug)]
enum ScratchStorage<'a> {
    Taken(Storage),
    Counted(&'a Tally),
}

impl Scratch<'_> {
    /// The memory, for writing.
    pub(super) fn view_mut(&mut self) -> ViewMut<'_> {
        match &mut self.storage {
            ScratchStorage::Taken(storage) => {
                let start = storage.start_mut().expect("allocated memory is ours");
                // SAFETY: it was allocated for the type, and the storage is borrowed while the view lives.
                unsafe { ViewMut::new(&self.ty, start) }
            }
            // SAFETY: no kernel runs, so that nothing is accessed.
            ScratchStorage::Counted(_) => unsafe { ViewMut::new(&self.ty, dangling()) },
        }
    }

    /// The elements.
    ///
    /// # Safety
    /// All of them were written, where kernels run.
    pub(super) unsafe fn view(&self) -> View<'_> {
        match &self.storage {
            ScratchStorage::Taken(storage) => {
                // SAFETY: it was allocated for the type; the caller promises that the bytes are initialised.
                let bytes = unsafe { std::slice::from_raw_parts(storage.start(), self.ty.byte_size()) };
                View::new(&self.ty, bytes)
            }
            // SAFETY: no kernel runs, so that nothing is read.
            ScratchStorage::Counted(_) => unsafe { View::of_part(&self.ty, dangling()) },
        }
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        match &self.storage {
            ScratchStorage::Taken(_) => {}
            ScratchStorage::Counted(tally) => tally.subtract(self.ty.byte_size()),
        }
    }
}
