//! The leaves of each argument of a call.

use std::ops::Range;

use pyo3::prelude::*;

use super::{Cursor, Tree};

/// The leaves of each positional argument, and of each keyword argument by name.
pub(crate) struct Arguments {
    pub(crate) positional: Vec<Range<usize>>,
    pub(crate) named: Vec<(String, Range<usize>)>,
}

impl Tree {
    /// The arguments of a call that was flattened as a tuple and a dict.
    pub(crate) fn arguments(&self, py: Python<'_>) -> Arguments {
        let (mut cursor, mut leaves) = (Cursor::default(), 0);
        let mut next = |cursor: &mut Cursor| {
            let first = leaves;
            self.skip(cursor, &mut leaves);
            first..leaves
        };
        let (_, count) = self.read(&mut cursor);
        let positional = (0..count).map(|_| next(&mut cursor)).collect();
        let mut named = Vec::new();
        if cursor.word < self.words.len() {
            let (_, count) = self.read(&mut cursor);
            let keys = &self.objects[cursor.object..cursor.object + count];
            cursor.object += count;
            for key in keys {
                named.push((key.object().bind(py).to_string(), next(&mut cursor)));
            }
        }
        Arguments { positional, named }
    }

    /// The path of each leaf of such a call, such as `model.weights`, for messages; `name` names the
    /// positional arguments.
    pub(crate) fn argument_leaf_paths(
        &self,
        py: Python<'_>,
        name: impl Fn(usize) -> String,
    ) -> PyResult<Vec<String>> {
        let (mut cursor, mut paths) = (Cursor::default(), Vec::new());
        let (_, count) = self.read(&mut cursor);
        for position in 0..count {
            self.locate(py, &mut cursor, name(position), &mut paths)?;
        }
        if cursor.word < self.words.len() {
            let (_, count) = self.read(&mut cursor);
            let first = cursor.object;
            cursor.object += count;
            for key in &self.objects[first..first + count] {
                self.locate(py, &mut cursor, key.object().bind(py).to_string(), &mut paths)?;
            }
        }
        Ok(paths)
    }
}
