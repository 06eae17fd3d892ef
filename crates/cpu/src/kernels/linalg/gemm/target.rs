//! Where a product is written, and who is told of its elements when they are complete.

use std::ops::Range;

use crate::kernels::epilogue::{Rows, Tail};

/// The result: rows of which the elements lie side by side, or some of them and then others.
#[derive(Clone, Copy)]
pub(crate) struct Target<'t, C> {
    first: *mut C,
    stride: usize,
    /// Columns whose elements lie side by side, and how far from the first of them the first of the next are.
    runs: Option<(usize, usize)>,
    /// Who is told of elements that are complete, and the position of the first of all.
    tail: Option<(Tail<'t>, usize)>,
}

// SAFETY: threads write disjoint blocks behind the pointer, by the contract of `Target::new`.
unsafe impl<C: Send> Sync for Target<'_, C> {}

impl<'t, C> Target<'t, C> {
    /// Rows that begin at `first`, a stride apart.
    ///
    /// # Safety
    /// While products are written there, all of their elements can be, and nobody else uses them.
    pub(crate) unsafe fn new(first: *mut C, stride: usize) -> Target<'t, C> {
        Target { first, stride, runs: None, tail: None }
    }

    /// The same rows, of which so many columns lie side by side, and those that follow so far from the first.
    ///
    /// # Safety
    /// As for [`Target::new`].
    pub(crate) unsafe fn in_runs(self, columns: usize, apart: usize) -> Target<'t, C> {
        let runs = (columns != apart).then_some((columns, apart));
        Target { runs, ..self }
    }

    /// The same, of which a tail is told when elements are complete; the first of all is the one at a position of what
    /// the tail knows.
    pub(crate) fn with_tail(self, tail: Option<Tail<'t>>, position: usize) -> Target<'t, C> {
        Target { tail: tail.map(|tail| (tail, position)), ..self }
    }

    /// The same rows from an element on.
    ///
    /// # Safety
    /// It is inside.
    pub(crate) unsafe fn from(&self, element: usize) -> Target<'t, C> {
        let tail = self.tail.map(|(tail, position)| (tail, position + element));
        // SAFETY: the caller's promise.
        Target { first: unsafe { self.first.add(element) }, tail, ..*self }
    }

    /// # Safety
    /// The element is inside.
    pub(super) unsafe fn at(&self, row: usize, column: usize) -> *mut C {
        // SAFETY: the caller's promise.
        unsafe { self.first.add(row * self.stride + self.along(column)) }
    }

    /// The first element.
    pub(super) fn start(&self) -> *mut C {
        self.first
    }

    /// From one row to the next.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// Who is told of elements that are complete, and the position of the first of all, where the rows are not in runs.
    pub(super) fn tail(&self) -> Option<(Tail<'t>, usize)> {
        debug_assert!(self.runs.is_none());
        self.tail
    }

    /// Whether somebody is told of elements that are complete.
    pub(super) fn has_tail(&self) -> bool {
        self.tail.is_some()
    }

    /// Says that a block is complete.
    pub(super) fn complete(&self, rows: &Range<usize>, columns: &Range<usize>) {
        let Some((tail, position)) = self.tail else { return };
        let mut left = columns.clone();
        while !left.is_empty() {
            let len = self.side_by_side(&left);
            let first = position + rows.start * self.stride + self.along(left.start);
            tail(Rows { first, count: rows.len(), len, apart: self.stride });
            left.start += len;
        }
    }

    /// How far behind the start of a row a column is.
    fn along(&self, column: usize) -> usize {
        match self.runs {
            None => column,
            Some((columns, apart)) => column / columns * apart + column % columns,
        }
    }

    /// How many of some columns, from the first on, lie side by side.
    pub(super) fn side_by_side(&self, columns: &Range<usize>) -> usize {
        match self.runs {
            None => columns.len(),
            Some((run, _)) => columns.len().min(run - columns.start % run),
        }
    }
}
