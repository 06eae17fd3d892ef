//! Epilogues: work on the elements of a result as soon as they are complete, while a cache holds them.

use std::ops::Range;

use crate::par::Par;

/// Elements of a result by their positions: rows of equal length and distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompletedRows {
    /// The first element.
    pub(crate) first: usize,
    pub(crate) count: usize,
    /// The elements of a row.
    pub(crate) len: usize,
    /// The distance between rows.
    pub(crate) row_stride: usize,
}

impl CompletedRows {
    /// The ranges of contiguous elements.
    pub(crate) fn ranges(self) -> impl Iterator<Item = Range<usize>> {
        let CompletedRows { first, count, len, row_stride } = self;
        let (count, len) = if len == row_stride { (1, count * len) } else { (count, len) };
        (0..count).map(move |row| first + row * row_stride..first + row * row_stride + len)
    }
}

/// An epilogue. The thread that has completed elements calls it, once for each element. After that the op does not
/// access them any more.
pub(crate) type EpilogueFn<'a> = &'a (dyn Fn(CompletedRows) + Sync);

/// Elements of a chunk, if the whole result was complete before.
const EPILOGUE_CHUNK: usize = 1 << 15;

/// Calls the epilogue on a complete result of `size` elements.
pub(crate) fn run_on_whole_result(epilogue: Option<EpilogueFn<'_>>, size: usize, par: Par) {
    let Some(epilogue) = epilogue else { return };
    par.for_chunks(size, EPILOGUE_CHUNK, |chunk| {
        epilogue(CompletedRows { first: chunk.start, count: 1, len: chunk.len(), row_stride: chunk.len() });
    });
}
