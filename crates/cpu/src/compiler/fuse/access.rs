//! Where the elements of inputs, results and kept values are.

use smallvec::SmallVec;

use super::build::{Making, Position, Tile};
use super::domain::strides_along;
use crate::compiler::ir::Access;
use crate::kernels::{StridedView, TILE};

impl Making<'_> {
    /// Where the elements of an input are, of the row or of groups.
    pub(super) fn input_access(&self, at: usize, is_of_groups: bool, width: usize) -> Access {
        let view = &self.reads.inputs[at].1;
        if is_of_groups {
            self.group_access(at as u16, view, width)
        } else {
            self.access(at as u16, view, width)
        }
    }

    /// Where a view's elements of the row are.
    pub(super) fn access(&self, buffer: u16, view: &StridedView, width: usize) -> Access {
        let strides = strides_along(view, self.sizes);
        let positions = self.positions.iter().zip(&strides);
        self.placed(buffer, view.offset(), positions, strides[self.shape.lanes], width)
    }

    /// Where a view's elements of groups are: one, or those of a row of columns.
    pub(super) fn group_access(&self, buffer: u16, view: &StridedView, width: usize) -> Access {
        let strides = strides_along(view, &self.group_sizes());
        let Some(reduced) = self.shape.reduced else {
            let lane = if self.shape.is_short { strides[self.shape.lanes] } else { 0 };
            return self.placed(buffer, view.offset(), self.positions.iter().zip(&strides), lane, width);
        };
        let positions = self.positions.iter().enumerate().filter(|(axis, _)| *axis != reduced);
        let positions = positions.map(|(_, position)| position).zip(&strides);
        self.placed(buffer, view.offset(), positions, strides[strides.len() - 1], width)
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
    fn within_row(&self, mut access: Access) -> Access {
        if access.lane == 0 {
            return access;
        }
        if let Some(start) = self.row_start {
            access.terms.push((start, access.lane));
        }
        match self.tile {
            Some(Tile::Counted(counter)) => access.terms.push((counter, access.lane * TILE as i64)),
            Some(Tile::Last(before)) => access.offset += access.lane * before as i64,
            None => {}
        }
        access
    }

    /// Where a kept value is: of the row, or of the rows that are reduced together.
    pub(super) fn kept_access(&self, home: usize, width: usize) -> Access {
        let Some(reduced) = self.shape.reduced else {
            return self.within_row(self.column_access(home, width));
        };
        let mut access = self.column_access(home, width);
        let (position, stride) = (&self.positions[reduced], (self.block_width() * width) as i64);
        access.offset += position.offset * stride;
        access.terms.extend(position.terms.iter().map(|&(counter, by)| (counter, by * stride)));
        access
    }

    /// Elements of the scratch memory, one after the other.
    pub(super) fn column_access(&self, home: usize, width: usize) -> Access {
        let (buffer, lane) = (self.scratch_buffer(), width as i64);
        Access { buffer, offset: home as i64, terms: SmallVec::new(), lane, is_streaming: false }
    }
}
