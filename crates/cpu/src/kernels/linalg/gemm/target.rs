//! The memory of a product's result, and the epilogue of its complete elements.

use std::ops::Range;

use crate::kernels::epilogue::{CompletedRows, EpilogueFn};

/// The result: rows whose elements are contiguous, or consist of contiguous runs a fixed distance apart.
#[derive(Clone, Copy)]
pub(crate) struct Target<'t, C> {
    first: *mut C,
    stride: usize,
    /// Columns of a run, and the distance from the start of one run to the next.
    runs: Option<(usize, usize)>,
    /// The epilogue, and the position of this target's first element in the epilogue's numbering.
    tail: Option<(EpilogueFn<'t>, usize)>,
}

// SAFETY: threads write disjoint blocks behind the pointer, by the contract of `Target::new`.
unsafe impl<C: Send> Sync for Target<'_, C> {}

impl<'t, C> Target<'t, C> {
    /// Rows that begin at `first`, a stride apart.
    ///
    /// # Safety
    /// While products are written, all elements of the rows are writable and no other thread uses them.
    pub(crate) unsafe fn new(first: *mut C, stride: usize) -> Target<'t, C> {
        Target { first, stride, runs: None, tail: None }
    }

    /// The same rows in runs of `columns` contiguous elements, which begin `apart` elements from each other.
    ///
    /// # Safety
    /// As for [`Target::new`].
    pub(crate) unsafe fn in_runs(self, columns: usize, apart: usize) -> Target<'t, C> {
        let runs = (columns != apart).then_some((columns, apart));
        Target { runs, ..self }
    }

    /// The same rows with an epilogue. `position` is the number that the epilogue knows the first element by.
    pub(crate) fn with_epilogue(self, tail: Option<EpilogueFn<'t>>, position: usize) -> Target<'t, C> {
        Target { tail: tail.map(|tail| (tail, position)), ..self }
    }

    /// The same rows, moved by `element` elements.
    ///
    /// # Safety
    /// The element is inside the result.
    pub(crate) unsafe fn from(&self, element: usize) -> Target<'t, C> {
        let tail = self.tail.map(|(tail, position)| (tail, position + element));
        // SAFETY: the caller guarantees it.
        Target { first: unsafe { self.first.add(element) }, tail, ..*self }
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
    pub(super) fn tail(&self) -> Option<(EpilogueFn<'t>, usize)> {
        debug_assert!(self.runs.is_none());
        self.tail
    }

    /// Whether there is an epilogue.
    pub(super) fn has_epilogue(&self) -> bool {
        self.tail.is_some()
    }

    /// Runs the epilogue on a complete block.
    pub(super) fn complete(&self, rows: &Range<usize>, columns: &Range<usize>) {
        let Some((tail, position)) = self.tail else { return };
        let mut left = columns.clone();
        while !left.is_empty() {
            let len = self.side_by_side(&left);
            let first = position + rows.start * self.stride + self.along(left.start);
            tail(CompletedRows { first, count: rows.len(), len, apart: self.stride });
            left.start += len;
        }
    }

    /// The offset of a column from the start of its row.
    fn along(&self, column: usize) -> usize {
        match self.runs {
            None => column,
            Some((columns, apart)) => column / columns * apart + column % columns,
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
