//! Where the elements of operands are.

use smallvec::SmallVec;

use super::build::{NestBuilder, Position};
use super::domain::{Sizes, strides_along};
use super::shape::NestKind;
use crate::compiler::ir::{Access, Val};
use crate::kernels::StridedView;

/// The memory that a thread has for a row.
#[derive(Debug, Default)]
pub(super) struct ScratchLayout {
    pub(super) bytes: usize,
}

impl ScratchLayout {
    pub(super) fn take(&mut self, bytes: usize) -> usize {
        let at = self.bytes;
        self.bytes += bytes.next_multiple_of(64);
        at
    }
}

impl NestBuilder<'_> {
    /// The axes of the groups.
    pub(super) fn group_sizes(&self) -> Sizes {
        let axes = self.sizes.iter().enumerate().filter(|(axis, _)| !self.shape.reduced.contains(axis));
        axes.map(|(_, size)| *size).collect()
    }

    fn partial_buffer(&self) -> u16 {
        self.scratch_buffer() + 1
    }

    /// The result of a piece of a group at a place of the buffer that has them, in elements of `width` bytes. Columns
    /// are beside each other; of rows each has its pieces beside each other.
    pub(super) fn partial_access(
        &self,
        offset: usize,
        width: usize,
        piece: usize,
        counter: Option<(Val, i64)>,
    ) -> Access {
        let groups = self.group_sizes();
        let pieces = self.shape.pieces as isize;
        let (inner, rows) = match self.shape.kind {
            NestKind::Columns => (self.sizes[self.sizes.len() - 1], true),
            NestKind::Rows | NestKind::Short | NestKind::Pairs => (1, false),
        };
        let outer = groups.iter().product::<usize>() / inner;
        let along = if rows { 1 } else { 0 };
        let view = StridedView::strided(0, &[outer, inner], &[pieces * inner as isize, along]);
        let mut access = self.group_access(self.partial_buffer(), &view, width);
        let bytes = (inner * width) as i64;
        access.offset += offset as i64 + piece as i64 * bytes;
        access.terms.extend(counter.map(|(counter, by)| (counter, by * bytes)));
        access
    }

    /// Where the elements of an input are, of the row or of groups.
    pub(super) fn input_access(&self, at: usize, is_per_group: bool, width: usize) -> Access {
        let view = &self.reads.inputs[at].1;
        if is_per_group {
            self.group_access(at as u16, view, width)
        } else {
            self.access(at as u16, view, width)
        }
    }

    /// Where a view's elements of the row are.
    pub(super) fn access(&self, buffer: u16, view: &StridedView, width: usize) -> Access {
        let strides = strides_along(view, self.sizes);
        let positions = self.positions.iter().zip(&strides);
        // Rows of one element each have no lanes.
        let lane = if self.sizes[self.shape.lanes] == 1 { 0 } else { strides[self.shape.lanes] };
        self.placed(buffer, view.offset(), positions, lane, width)
    }

    /// Where a view's elements of groups are: one, or those of a row of columns.
    pub(super) fn group_access(&self, buffer: u16, view: &StridedView, width: usize) -> Access {
        let strides = strides_along(view, &self.group_sizes());
        let axes = (0..self.sizes.len()).filter(|axis| !self.shape.reduced.contains(axis));
        let axes: SmallVec<[usize; 4]> = axes.collect();
        let positions = axes.iter().map(|&axis| &self.positions[axis]).zip(&strides);
        let along = |lanes: usize| {
            let at = axes.iter().position(|&axis| axis == lanes);
            at.map_or(0, |at| strides[at])
        };
        let lane = match self.shape.kind {
            NestKind::Rows | NestKind::Pairs => 0,
            NestKind::Short | NestKind::Columns => along(self.shape.lanes),
        };
        self.placed(buffer, view.offset(), positions, lane, width)
    }

    /// An access by positions and strides, in elements of `width` bytes.
    fn placed<'p>(
        &self,
        buffer: u16,
        offset: usize,
        positions: impl Iterator<Item = (&'p Position, &'p isize)>,
        lane: isize,
        width: usize,
    ) -> Access {
        let width = width as i64;
        let mut offset = offset as i64 * width;
        let mut terms = SmallVec::new();
        for (position, &stride) in positions.filter(|(_, stride)| **stride != 0) {
            let stride = stride as i64 * width;
            offset += position.offset * stride;
            terms.extend(position.terms.iter().map(|&(counter, by)| (counter, by * stride)));
        }
        let lane = lane as i64 * width;
        self.within_row(Access { buffer, offset, terms, lane, is_streaming: false })
    }

    /// An access of the row from where it is done on.
    pub(super) fn within_row(&self, mut access: Access) -> Access {
        if access.lane == 0 {
            return access;
        }
        access.terms.extend(self.row_start.map(|start| (start, access.lane)));
        access
    }

    /// Where a kept value is: of the row, or of the rows that are reduced together.
    pub(super) fn scratch_access(&self, offset: usize, width: usize) -> Access {
        let mut access = self.column_access(offset, width);
        match self.shape.kind {
            NestKind::Rows | NestKind::Short | NestKind::Pairs if self.element.is_none() => {
                return self.within_row(access);
            }
            NestKind::Rows | NestKind::Short | NestKind::Pairs => {
                access.terms.extend(self.element.map(|element| (element, width as i64)));
            }
            NestKind::Columns => {
                let (position, stride) = (&self.columns_row, (self.block_width() * width) as i64);
                access.offset += position.offset * stride;
                access.terms.extend(position.terms.iter().map(|&(counter, by)| (counter, by * stride)));
            }
        }
        access
    }

    /// Elements of the scratch memory, one after the other.
    pub(super) fn column_access(&self, offset: usize, width: usize) -> Access {
        let (buffer, lane) = (self.scratch_buffer(), width as i64);
        Access { buffer, offset: offset as i64, terms: SmallVec::new(), lane, is_streaming: false }
    }
}
