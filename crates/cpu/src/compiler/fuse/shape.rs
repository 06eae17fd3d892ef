//! How the axes of a domain are gone through.

use std::ops::Range;

use super::build::LONG_ROW;
use super::columns::piece_rows;
use super::domain::{Domain, Sizes};
use super::pieces::chunk;
use crate::kernels::StridedView;

/// The elements of a row from which on it has vectors of its own. Of shorter ones each lane has one.
const SHORT_ROW: usize = 16;

/// The least short rows that a thread takes, where there are several parts.
const MIN_SHORT_ROWS_PER_THREAD: usize = 256;

/// The least columns that a thread reduces, where there are several parts.
const MIN_COLUMNS_PER_THREAD: usize = 1024;

/// The same where they are gone through several times: their rows cannot be divided instead.
const MIN_MULTI_PASS_COLUMNS_PER_THREAD: usize = 256;

/// The most elements of columns that are gone through several times by few threads.
const MAX_MULTI_PASS_ELEMENTS: usize = 1 << 18;

/// The parts of columns below which their rows are divided too.
const MIN_COLUMN_PARTS: usize = 8;

/// The least elements of a chunk that begins within a row: whole lines of every type.
const CHUNK_LINES: usize = 1 << 12;

/// The least blocks that a thread goes through in a tile: their neighbours are in the same pages.
const MIN_BLOCKS_PER_THREAD: usize = 8;

/// What groups are, and where their elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NestKind {
    /// Rows, which lanes go along.
    Rows,
    /// Rows so short that each lane has one.
    Short,
    /// Columns, of which each lane has one.
    Columns,
    /// Rows of the first half of all elements; with each element comes the one as far into the second half.
    Pairs,
}

/// What threads divide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadSplit {
    None,
    /// An axis around the row.
    Axis(usize),
    /// The axis of the lanes.
    Lanes,
    /// The pieces of long groups.
    Pieces,
}

/// How the axes of a domain are gone through.
pub(super) struct NestShape {
    pub(super) kind: NestKind,
    /// The axes that are reduced.
    pub(super) reduced: Range<usize>,
    pub(super) split: ThreadSplit,
    /// How many pieces each group has, and of how many elements.
    pub(super) pieces: usize,
    pub(super) piece: usize,
    /// The axis along which a short row or a block has its elements.
    pub(super) row: usize,
    /// Whether rows are blocks of an axis around the lanes.
    pub(super) is_block: bool,
    /// The axis that lanes are along: the row, if it is not short.
    pub(super) lanes: usize,
    /// The least columns that a thread reduces.
    columns_part: usize,
    /// Whether columns are reduced in the order of rows.
    pub(super) is_turned: bool,
    /// How many steps of the first axis the second half is behind the first, where both are gone through at once.
    pub(super) half: usize,
}

impl NestShape {
    /// None if elements of a group are along axes that others are along too, and for long columns that would be gone
    /// through several times by one thread. Only with records can lanes be along another
    /// axis than short rows. What is done in one pass can be done in pieces.
    pub(super) fn new(
        sizes: &Sizes,
        domain: &Domain,
        block: Option<usize>,
        has_records: bool,
        is_one_pass: bool,
    ) -> Option<NestShape> {
        let row = sizes.len() - 1;
        let length = sizes[row];
        let before = |elements: usize| {
            (0..=sizes.len()).rev().find(|&axis| sizes[axis..].iter().product::<usize>() >= elements)
        };
        let end = before(domain.inner)?;
        let reduced = if domain.reduced > 1 { before(domain.inner * domain.reduced)?..end } else { end..end };
        let is_columns = domain.inner > 1 && domain.reduced > 1;
        let is_block = block.is_some();
        let has_few = row > 0 && length < SHORT_ROW && reduced.len() <= 1;
        let is_short = is_block || has_records && has_few && !is_columns;
        let kind = match (is_columns, is_short) {
            (true, _) => NestKind::Columns,
            (false, true) => NestKind::Short,
            (false, false) => NestKind::Rows,
        };
        let longest = |axes: &mut dyn Iterator<Item = usize>| {
            axes.max_by_key(|&axis| (sizes[axis], std::cmp::Reverse(axis)))
        };
        let lanes = if is_short && !is_block {
            // Rows beside each other lie beside each other.
            let beside = (0..row).rev().find(|axis| !reduced.contains(axis));
            let beside = beside.filter(|&axis| sizes[axis] >= SHORT_ROW);
            beside.or_else(|| longest(&mut (0..row).filter(|axis| !reduced.contains(axis))))?
        } else {
            row
        };
        // Threads divide the longest axis: rows, if there are several.
        let kept = |&axis: &usize| !reduced.contains(&axis) && axis != lanes && Some(axis) != block;
        let axis = longest(&mut (0..row).filter(kept));
        let columns_part =
            if is_one_pass { MIN_COLUMNS_PER_THREAD } else { MIN_MULTI_PASS_COLUMNS_PER_THREAD };
        let piece = match kind {
            NestKind::Rows | NestKind::Short | NestKind::Pairs => chunk(),
            // Threads divide what has few columns by its rows.
            NestKind::Columns => {
                let parts = axis.map_or(1, |axis| sizes[axis]).max(length / columns_part);
                // What no cache keeps is as well gone through by several nests, which divide its rows.
                if parts < MIN_COLUMN_PARTS
                    && !is_one_pass
                    && domain.reduced * length > MAX_MULTI_PASS_ELEMENTS
                {
                    return None;
                }
                if parts < MIN_COLUMN_PARTS && is_one_pass {
                    piece_rows(length, domain.is_turned)
                } else {
                    domain.reduced
                }
            }
        };
        let pieces = if is_columns || domain.is_long() { domain.reduced.div_ceil(piece) } else { 1 };
        let is_lanes = match (kind, axis) {
            _ if is_block => false,
            (NestKind::Short, None) => sizes[lanes] >= 2 * MIN_SHORT_ROWS_PER_THREAD,
            (NestKind::Short, Some(_)) => sizes[lanes] >= 4 * MIN_SHORT_ROWS_PER_THREAD,
            (NestKind::Columns, _) if pieces > 1 => false,
            (NestKind::Columns, None) => length >= 2 * columns_part,
            (NestKind::Columns, Some(axis)) => length / columns_part > sizes[axis],
            (NestKind::Rows, None) => domain.reduced == 1 && length >= LONG_ROW,
            (NestKind::Rows, Some(_)) | (NestKind::Pairs, _) => false,
        };
        let split = match axis {
            _ if is_lanes => ThreadSplit::Lanes,
            Some(axis) if sizes[axis] >= pieces => ThreadSplit::Axis(axis),
            Some(_) | None if pieces > 1 => ThreadSplit::Pieces,
            Some(axis) => ThreadSplit::Axis(axis),
            None => ThreadSplit::None,
        };
        let row = block.unwrap_or(row);
        Some(NestShape {
            kind,
            reduced,
            split,
            pieces,
            piece,
            row,
            is_block,
            lanes,
            columns_part,
            is_turned: domain.is_turned,
            half: 0,
        })
    }

    /// Rows of so many elements along `lanes`, counted along another axis.
    pub(super) fn of_rows(reduced: Range<usize>, rows: usize, lanes: usize, length: usize) -> NestShape {
        NestShape {
            kind: NestKind::Rows,
            reduced,
            split: ThreadSplit::Axis(rows),
            pieces: 1,
            piece: length,
            row: lanes,
            is_block: false,
            lanes,
            columns_part: MIN_COLUMNS_PER_THREAD,
            is_turned: false,
            half: 0,
        }
    }

    /// That of elements whose halves are gone through at once. The first axis is both halves, or all there is.
    pub(super) fn of_pairs(sizes: &Sizes) -> NestShape {
        let lanes = sizes.len() - 1;
        let longest = (1..lanes).max_by_key(|&axis| (sizes[axis], std::cmp::Reverse(axis)));
        let split = match longest {
            Some(axis) if sizes[axis] >= sizes[lanes] / CHUNK_LINES => ThreadSplit::Axis(axis),
            Some(_) | None => ThreadSplit::Lanes,
        };
        let half = if lanes == 0 { sizes[0].div_ceil(2) } else { 1 };
        let (kind, reduced) = (NestKind::Pairs, sizes.len()..sizes.len());
        let (pieces, piece, columns_part) = (1, 1, MIN_COLUMNS_PER_THREAD);
        NestShape {
            kind,
            reduced,
            split,
            pieces,
            piece,
            row: 0,
            is_block: false,
            lanes,
            columns_part,
            is_turned: false,
            half,
        }
    }

    /// Whether lanes have all neighbours whose elements are reduced into results that lie as a view says.
    pub(super) fn has_across(&self, sizes: &[usize], across: &StridedView) -> bool {
        let is_whole = self.kind == NestKind::Short && self.split != ThreadSplit::Lanes;
        let neighbours = across.dims().iter().find(|(_, stride)| *stride == 0);
        is_whole
            && self.lanes + 1 == self.row
            && neighbours.is_some_and(|&(neighbours, _)| sizes[self.lanes] == neighbours)
    }

    /// How many steps the axis of the lanes has, of one half if both are gone through at once.
    pub(super) fn lanes_steps(&self, sizes: &[usize]) -> usize {
        if self.kind == NestKind::Pairs && self.lanes == 0 { self.half } else { sizes[self.lanes] }
    }

    /// How many steps threads divide.
    pub(super) fn steps(&self, sizes: &[usize]) -> usize {
        match self.split {
            ThreadSplit::Axis(axis) => sizes[axis],
            ThreadSplit::Lanes => self.lanes_steps(sizes),
            ThreadSplit::Pieces => self.pieces,
            ThreadSplit::None => 1,
        }
    }

    /// The fewest steps that a thread should take.
    pub(super) fn least_steps(&self) -> usize {
        match (self.split, self.kind) {
            (ThreadSplit::Lanes, NestKind::Columns) => self.columns_part,
            (ThreadSplit::Lanes, NestKind::Short) => MIN_SHORT_ROWS_PER_THREAD,
            (ThreadSplit::Lanes, NestKind::Rows | NestKind::Pairs) => CHUNK_LINES,
            (ThreadSplit::Axis(_) | ThreadSplit::None, _) if self.is_block => MIN_BLOCKS_PER_THREAD,
            (ThreadSplit::Axis(_) | ThreadSplit::Pieces | ThreadSplit::None, _) => 1,
        }
    }

    /// The longest axis of the groups around the row.
    pub(super) fn longest_kept(&self, sizes: &Sizes) -> Option<usize> {
        let kept = |&axis: &usize| !self.reduced.contains(&axis) && axis != sizes.len() - 1;
        (0..sizes.len()).filter(kept).max_by_key(|&axis| (sizes[axis], std::cmp::Reverse(axis)))
    }
}
