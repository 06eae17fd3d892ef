//! The memory of a product's result, and the epilogue of its complete elements.

use std::ops::Range;

use crate::kernels::epilogue::{CompletedRows, EpilogueFn};

/// The result: rows whose elements are contiguous, or consist of contiguous runs a fixed distance apart.
#[derive(Clone, Copy)]
pub(crate) struct GemmOutput<'t, C> {
    first: *mut C,
    stride: usize,
    /// Columns of a run, and the distance from the start of one run to the next.
    runs: Option<(usize, usize)>,
    /// The epilogue, and the position of this target's first element in the epilogue's numbering.
    epilogue: Option<(EpilogueFn<'t>, usize)>,
}

// SAFETY: threads write disjoint blocks behind the pointer, by the contract of `GemmOutput::new`.
unsafe impl<C: Send> Sync for GemmOutput<'_, C> {}

impl<'t, C> GemmOutput<'t, C> {
    /// Rows that begin at `first`, a stride apart.
    ///
    /// # Safety
    /// While products are written, all elements of the rows are writable and no other thread uses them.
    pub(crate) unsafe fn new(first: *mut C, stride: usize) -> GemmOutput<'t, C> {
        GemmOutput { first, stride, runs: None, epilogue: None }
    }

    /// The same rows in runs of `columns` contiguous elements, which begin `run_stride` elements from each other.
    ///
    /// # Safety
    /// As for [`GemmOutput::new`].
    pub(crate) unsafe fn in_runs(self, columns: usize, run_stride: usize) -> GemmOutput<'t, C> {
        let runs = (columns != run_stride).then_some((columns, run_stride));
        GemmOutput { runs, ..self }
    }

    /// The same rows with an epilogue. `position` is the number that the epilogue knows the first element by.
    pub(crate) fn with_epilogue(
        self,
        epilogue: Option<EpilogueFn<'t>>,
        position: usize,
    ) -> GemmOutput<'t, C> {
        GemmOutput { epilogue: epilogue.map(|epilogue| (epilogue, position)), ..self }
    }

    /// The same rows, moved by `element` elements.
    ///
    /// # Safety
    /// The element is inside the result.
    pub(crate) unsafe fn from(&self, element: usize) -> GemmOutput<'t, C> {
        let epilogue = self.epilogue.map(|(epilogue, position)| (epilogue, position + element));
        // SAFETY: the caller guarantees it.
        GemmOutput { first: unsafe { self.first.add(element) }, epilogue, ..*self }
    }

    /// # Safety
    /// The element is inside the result.
    pub(super) unsafe fn at(&self, row: usize, column: usize) -> *mut C {
        // SAFETY: the caller guarantees it.
        unsafe { self.first.add(row * self.stride + self.along(column)) }
    }

    pub(super) fn start(&self) -> *mut C {
        self.first
    }

    /// Stride between rows.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// The epilogue and the position of the first element. The rows must not be in runs.
    pub(super) fn epilogue(&self) -> Option<(EpilogueFn<'t>, usize)> {
        debug_assert!(self.runs.is_none());
        self.epilogue
    }

    /// Whether the elements of a row are contiguous.
    pub(super) fn is_plain(&self) -> bool {
        self.runs.is_none()
    }

    /// Whether there is an epilogue.
    pub(super) fn has_epilogue(&self) -> bool {
        self.epilogue.is_some()
    }

    /// Runs the epilogue on a complete block.
    pub(super) fn complete(&self, rows: &Range<usize>, columns: &Range<usize>) {
        let Some((epilogue, position)) = self.epilogue else { return };
        let mut left = columns.clone();
        while !left.is_empty() {
            let len = self.side_by_side(&left);
            let first = position + rows.start * self.stride + self.along(left.start);
            epilogue(CompletedRows { first, count: rows.len(), len, row_stride: self.stride });
            left.start += len;
        }
    }

    /// The offset of a column from the start of its row.
    fn along(&self, column: usize) -> usize {
        match self.runs {
            None => column,
            Some((columns, run_stride)) => column / columns * run_stride + column % columns,
        }
    }

    /// The number of `columns`, from the first on, that are contiguous.
    pub(super) fn side_by_side(&self, columns: &Range<usize>) -> usize {
        match self.runs {
            None => columns.len(),
            Some((run, _)) => columns.len().min(run - columns.start % run),
        }
    }
}
