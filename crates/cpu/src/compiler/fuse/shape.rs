//! How the axes of a domain are gone through: which one is the row, and which one threads divide.

use super::build::LONG_ROW;
use super::domain::{Domain, Sizes};

/// The elements of a row from which on it has vectors of its own. Of shorter ones each lane has one.
const SHORT_ROW: usize = 16;

/// The least short rows that a thread takes, where there are several parts.
const SHORT_ROWS_PART: usize = 256;

/// The least columns that a thread reduces, where there are several parts.
const COLUMNS_PART: usize = 512;

/// The least elements of a chunk that begins within a row: whole lines of every type.
const CHUNK_LINES: usize = 1 << 12;

/// How the axes of a domain are gone through.
pub(super) struct Shape {
    /// The axis that is reduced, if it is not the row.
    pub(super) reduced: Option<usize>,
    /// The axis around the row that threads divide.
    pub(super) split: Option<usize>,
    /// Whether threads divide the lanes.
    pub(super) is_row_divided: bool,
    /// Whether rows are so short that lanes are along another axis.
    pub(super) is_short: bool,
    /// The axis along which a short row or a block has its elements.
    pub(super) row: usize,
    /// Whether rows are blocks of an axis around the lanes.
    pub(super) is_block: bool,
    /// The axis that lanes are along: the row, if it is not short.
    pub(super) lanes: usize,
}

/// The least blocks that a thread goes through in a tile: their neighbours are in the same pages.
const BLOCKS_PART: usize = 8;

impl Shape {
    /// None if elements of a group are along several axes. Only with records can lanes be along another axis than short
    /// rows.
    pub(super) fn new(
        sizes: &Sizes,
        domain: &Domain,
        block: Option<usize>,
        has_records: bool,
    ) -> Option<Shape> {
        let row = sizes.len() - 1;
        let length = sizes[row];
        let reduced = if domain.inner > 1 && domain.reduced > 1 {
            let axis = (0..row).rev().find(|&axis| sizes[axis..].iter().product::<usize>() > domain.inner)?;
            if sizes[axis] != domain.reduced {
                return None;
            }
            Some(axis)
        } else {
            if domain.reduced > 1 && domain.reduced != length {
                return None;
            }
            None
        };
        let is_block = block.is_some();
        let is_short = is_block || has_records && reduced.is_none() && row > 0 && length < SHORT_ROW;
        let longest = |axes: &mut dyn Iterator<Item = usize>| {
            axes.max_by_key(|&axis| (sizes[axis], std::cmp::Reverse(axis)))
        };
        let lanes = if is_short && !is_block { longest(&mut (0..row))? } else { row };
        // Threads divide the longest axis: rows, if there are several.
        let is_around = |axis: &usize| Some(*axis) != reduced && *axis != lanes && Some(*axis) != block;
        let split = longest(&mut (0..row).filter(is_around));
        let is_row_divided = match split {
            _ if is_block => false,
            None if is_short => sizes[lanes] >= 2 * SHORT_ROWS_PART,
            Some(_) if is_short => sizes[lanes] >= 4 * SHORT_ROWS_PART,
            None if reduced.is_some() => length >= 2 * COLUMNS_PART,
            None => domain.reduced == 1 && length >= LONG_ROW,
            Some(axis) => reduced.is_some() && length / COLUMNS_PART > sizes[axis],
        };
        let split = split.filter(|_| !is_row_divided);
        let row = block.unwrap_or(row);
        Some(Shape { reduced, split, is_row_divided, is_short, row, is_block, lanes })
    }

    /// How many steps threads divide.
    pub(super) fn steps(&self, sizes: &[usize]) -> usize {
        match self.split {
            Some(axis) => sizes[axis],
            None if self.is_row_divided => sizes[self.lanes],
            None => 1,
        }
    }

    /// The fewest steps that a thread should take.
    pub(super) fn least_steps(&self) -> usize {
        match (self.is_row_divided, self.reduced) {
            (true, Some(_)) => COLUMNS_PART,
            (true, None) if self.is_short => SHORT_ROWS_PART,
            (true, None) => CHUNK_LINES,
            (false, _) if self.is_block => BLOCKS_PART,
            (false, _) => 1,
        }
    }
}
