//! Which leaves belong to which argument of a call.

use std::ops::Range;

use pyo3::prelude::*;

use super::{Cursor, Tag, Tree};

/// The leaves of each positional argument, and of each keyword by its name.
pub(crate) struct Arguments {
    pub(crate) positional: Vec<Range<usize>>,
    pub(crate) named: Vec<(String, Range<usize>)>,
}

impl Tree {
    /// The arguments of a call that was taken apart as a tuple and a dict.
    pub(crate) fn arguments(&self, py: Python<'_>) -> Arguments {
        let (mut cursor, mut leaves) = (Cursor::default(), 0);
        let mut next = |cursor: &mut Cursor| {
            let first = leaves;
            leaves += self.count_leaves(cursor);
            first..leaves
        };
        let (_, count) = self.read(&mut cursor);
        let positional = (0..count).map(|_| next(&mut cursor)).collect();
        let mut named = Vec::new();
        if cursor.word < self.words.len() {
            let (_, count) = self.read(&mut cursor);
            let keys = &self.held[cursor.held..cursor.held + count];
            cursor.held += count;
            for key in keys {
                named.push((key.object().bind(py).to_string(), next(&mut cursor)));
            }
        }
        Arguments { positional, named }
    }

    /// The leaves of the structure at a place, which the cursor passes.
    fn count_leaves(&self, cursor: &mut Cursor) -> usize {
        let (tag, count) = self.read(cursor);
        let (held, children) = match tag {
            Tag::Leaf => return 1,
            Tag::Static => (1, 0),
            Tag::Tuple | Tag::List => (0, count),
            Tag::Dict => (count, count),
            Tag::Named | Tag::Object => (1, count),
            Tag::Ordered => (1, 1),
            Tag::Registered => (2, count),
        };
        cursor.held += held;
        (0..children).map(|_| self.count_leaves(cursor)).sum()
    }
}
