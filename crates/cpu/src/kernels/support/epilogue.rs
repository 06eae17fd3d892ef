//! What is done with the elements of a result as soon as they are complete, while a cache holds them.

use std::ops::Range;

use crate::par::Par;

/// Elements of a result in memory, by their positions: rows of as many elements, as far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    /// The first element.
    pub(crate) first: usize,
    pub(crate) count: usize,
    /// Elements of a row.
    pub(crate) len: usize,
    /// From one row to the next.
    pub(crate) apart: usize,
}

impl Rows {
    /// The elements that lie side by side, one range after the other.
    pub(crate) fn ranges(self) -> impl Iterator<Item = Range<usize>> {
        let Rows { first, count, len, apart } = self;
        let (count, len) = if len == apart { (1, count * len) } else { (count, len) };
        (0..count).map(move |row| first + row * apart..first + row * apart + len)
    }
}

/// Is told of elements by the thread that has completed them, of each once: nobody reads or writes it as a part of the
/// result any more.
pub(crate) type Tail<'a> = &'a (dyn Fn(Rows) + Sync);

/// Elements that one thread is told of at a time, where all were complete before.
const GRAIN: usize = 1 << 15;

/// Tells of all of so many elements.
pub(crate) fn at_the_end(tail: Option<Tail<'_>>, size: usize, par: Par) {
    let Some(tail) = tail else { return };
    par.for_chunks(size, GRAIN, |chunk| {
        tail(Rows { first: chunk.start, count: 1, len: chunk.len(), apart: chunk.len() });
    });
}
