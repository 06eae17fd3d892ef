//! How the axes of a domain are gone through.

use std::ops::Range;

use super::columns::piece_rows;
use super::domain::{Domain, Sizes};
use crate::kernels::reduce::CHUNK;

/// Elements of a row from which on its length is an argument, so that rows of other lengths share the code.
const LONG_ROW: usize = 512;

/// The elements of a row from which on it has vectors of its own. Of shorter ones each lane has one.
const SHORT_ROW: usize = 16;

/// The least short rows that a thread takes, where there are several parts.
pub(super) const SHORT_ROWS_PART: usize = 256;

/// The least columns that a thread reduces, where there are several parts.
pub(super) const COLUMNS_PART: usize = 1024;

/// The parts of columns below which their rows are divided too.
const FEW_PARTS: usize = 8;

/// What groups are, and where their elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Rows, which lanes go along.
    Rows,
    /// Rows so short that each lane has one.
    Short,
    /// Columns, of which each lane has one.
    Columns,
}

/// What threads divide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Split {
    None,
    /// An axis around the row.
    Axis(usize),
    /// The axis of the lanes.
    Lanes,
    /// The pieces of long groups.
    Pieces,
}

/// How the axes of a domain are gone through.
pub(super) struct Shape {
    pub(super) kind: Kind,
    /// The axes that are reduced.
    pub(super) reduced: Range<usize>,
    pub(super) split: Split,
    /// How many pieces each group has, and of how many elements.
    pub(super) pieces: usize,
    pub(super) piece: usize,
    /// The axis that lanes are along: the row, if it is not short.
    pub(super) lanes: usize,
}

impl Shape {
    /// None if short rows have no records.
    pub(super) fn new(sizes: &Sizes, domain: &Domain, has_records: bool, is_one_pass: bool) -> Option<Shape> {
        let row = sizes.len() - 1;
        let length = sizes[row];
        let before = |elements: usize| {
            (0..=sizes.len()).rev().find(|&axis| sizes[axis..].iter().product::<usize>() >= elements)
        };
        let end = before(domain.inner)?;
        let reduced = if domain.reduced > 1 { before(domain.inner * domain.reduced)?..end } else { end..end };
        let is_columns = domain.inner > 1 && domain.reduced > 1;
        let mut is_short = !is_columns && row > reduced.len().saturating_sub(1) && length < SHORT_ROW;
        is_short &= reduced.len() <= 1;
        if is_short && !has_records {
            if domain.reduced == 1 {
                return None;
            }
            is_short = false;
        }
        let kind = match (is_columns, is_short) {
            (true, _) => Kind::Columns,
            (false, true) => Kind::Short,
            (false, false) => Kind::Rows,
        };
        let longest = |axes: &mut dyn Iterator<Item = usize>| {
            axes.max_by_key(|&axis| (sizes[axis], std::cmp::Reverse(axis)))
        };
        let lanes =
            if is_short { longest(&mut (0..row).filter(|axis| !reduced.contains(axis)))? } else { row };
        // Threads divide the longest axis: rows, if there are several.
        let kept = |&axis: &usize| !reduced.contains(&axis) && axis != lanes && axis != row;
        let axis = longest(&mut (0..row).filter(kept));
        let piece = match kind {
            Kind::Rows | Kind::Short => CHUNK,
            // Threads divide what has few columns by its rows.
            Kind::Columns => {
                let parts = axis.map_or(1, |axis| sizes[axis]).max(length / COLUMNS_PART);
                if parts < FEW_PARTS && is_one_pass { piece_rows(length) } else { domain.reduced }
            }
        };
        let pieces = if is_columns || domain.is_long() { domain.reduced.div_ceil(piece) } else { 1 };
        let is_lanes = match (kind, axis) {
            (Kind::Short, None) => sizes[lanes] >= 2 * SHORT_ROWS_PART,
            (Kind::Short, Some(_)) => sizes[lanes] >= 4 * SHORT_ROWS_PART,
            (Kind::Columns, _) if pieces > 1 => false,
            (Kind::Columns, None) => length >= 2 * COLUMNS_PART,
            (Kind::Columns, Some(axis)) => length / COLUMNS_PART > sizes[axis],
            (Kind::Rows, None) => domain.reduced == 1 && length >= LONG_ROW,
            (Kind::Rows, Some(_)) => false,
        };
        let split = match axis {
            _ if is_lanes => Split::Lanes,
            Some(axis) if sizes[axis] >= pieces => Split::Axis(axis),
            Some(_) | None if pieces > 1 => Split::Pieces,
            Some(axis) => Split::Axis(axis),
            None => Split::None,
        };
        Some(Shape { kind, reduced, split, pieces, piece, lanes })
    }

    /// The longest axis of the groups around the row.
    pub(super) fn longest_kept(&self, sizes: &Sizes) -> Option<usize> {
        let kept = |&axis: &usize| !self.reduced.contains(&axis) && axis != sizes.len() - 1;
        (0..sizes.len()).filter(kept).max_by_key(|&axis| (sizes[axis], std::cmp::Reverse(axis)))
    }
}
