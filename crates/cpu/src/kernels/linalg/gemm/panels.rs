//! Packed operands: panels, which tiles of the result read one after the other.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

use super::pack::Operand;
use super::tile::{GemmElement, Kernels};

/// Memory for the panels of one operand: panel after panel for each part of the sums.
pub(super) struct Panels<'a, C> {
    start: *mut MaybeUninit<C>,
    /// The indices of the operand that the panels hold.
    pub(super) free: Range<usize>,
    pub(super) along: Range<usize>,
    /// Elements of the free axis, including the padding of the last panel.
    rows: usize,
    /// Elements of the free axis in a panel.
    pub(super) width: usize,
    /// Elements of the contracted axis in a part of the sums.
    part_depth: usize,
    workspace: PhantomData<&'a mut [MaybeUninit<C>]>,
}

// SAFETY: threads write disjoint panels, and read them only after all are written.
unsafe impl<C: Send + Sync> Sync for Panels<'_, C> {}

impl<'a, C: GemmElement> Panels<'a, C> {
    /// # Panics
    /// When the memory is too small.
    pub(super) fn new(
        workspace: &'a mut [MaybeUninit<C>],
        (free, along): (Range<usize>, Range<usize>),
        (step, width): (usize, usize),
        part_depth: usize,
    ) -> Panels<'a, C> {
        let rows = free.len().next_multiple_of(step);
        assert!(rows * along.len() <= workspace.len(), "no room for {rows} by {} elements", along.len());
        Panels { start: workspace.as_mut_ptr(), free, along, rows, width, part_depth, workspace: PhantomData }
    }

    /// The number of panels in one part of the sums, and in total.
    pub(super) fn count(&self) -> (usize, usize) {
        let each = self.rows.div_ceil(self.width);
        (each, each * self.along.len().div_ceil(self.part_depth))
    }

    /// A panel of one part of the sums: its start, width and depth.
    pub(super) fn panel(&self, part: usize, index: usize) -> (*mut MaybeUninit<C>, usize, usize) {
        let (before, first) = (part * self.part_depth, index * self.width);
        let depth = self.part_depth.min(self.along.len() - before);
        debug_assert!(first < self.rows);
        // SAFETY: the memory has space for all panels.
        let start = unsafe { self.start.add(self.rows * before + first * depth) };
        (start, self.width.min(self.rows - first), depth)
    }

    /// Packs panel `index` of all panels.
    ///
    /// # Safety
    /// No other thread uses the panel.
    pub(super) unsafe fn write(&self, kernels: &Kernels<C>, operand: &dyn Operand<C>, index: usize) {
        let (part, index) = (index / self.count().0, index % self.count().0);
        let (start, width, depth) = self.panel(part, index);
        let first = self.free.start + index * self.width;
        let along = self.along.start + part * self.part_depth;
        // SAFETY: the panel is inside the memory, and panels are disjoint.
        let to = unsafe { std::slice::from_raw_parts_mut(start, width * depth) };
        operand.pack(kernels, first..self.free.end.min(first + width), along..along + depth, width, to);
    }
}
