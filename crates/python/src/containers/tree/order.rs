//! Structures that are equal up to the order of dict keys.

use pyo3::prelude::*;

use super::{Cursor, Tag, Tree};

impl Tag {
    /// The number of auxiliary objects of a node with this count.
    pub(super) fn object_count(self, count: usize) -> usize {
        match self {
            Tag::Leaf | Tag::Tuple | Tag::List => 0,
            Tag::Static | Tag::Named | Tag::Mapping | Tag::Object => 1,
            Tag::Dict => count,
            Tag::Registered => 2,
        }
    }

    /// The number of child structures that follow a node with this count.
    pub(super) fn children(self, count: usize) -> usize {
        match self {
            Tag::Mapping => 1,
            Tag::Leaf
            | Tag::Static
            | Tag::Tuple
            | Tag::List
            | Tag::Dict
            | Tag::Named
            | Tag::Object
            | Tag::Registered => count,
        }
    }
}

impl Tree {
    /// For each leaf of this structure, its index in `other`, which may differ in the order of dict keys;
    /// `None` if they differ in anything else.
    pub(crate) fn leaf_positions_in(&self, py: Python<'_>, other: &Tree) -> PyResult<Option<Vec<usize>>> {
        let mut positions = Vec::new();
        let (mut here, mut there, mut leaf) = (Cursor::default(), Cursor::default(), 0);
        let found = self.pair(py, &mut here, other, &mut there, &mut leaf, &mut positions)?;
        Ok(found.then_some(positions))
    }

    fn pair(
        &self,
        py: Python<'_>,
        here: &mut Cursor,
        other: &Tree,
        there: &mut Cursor,
        leaf: &mut usize,
        positions: &mut Vec<usize>,
    ) -> PyResult<bool> {
        let ((tag, count), other_node) = (self.read(here), other.read(there));
        if (tag, count) != other_node {
            return Ok(false);
        }
        if let Tag::Dict = tag {
            let keys = &self.objects[here.object..here.object + count];
            let other_keys = &other.objects[there.object..there.object + count];
            here.object += count;
            there.object += count;
            let mut starts = Vec::with_capacity(count);
            for _ in 0..count {
                starts.push((*there, *leaf));
                other.skip(there, leaf);
            }
            for key in keys {
                let mut found = None;
                for (at, other_key) in other_keys.iter().enumerate() {
                    if key.same(py, other_key)? {
                        found = Some(at);
                    }
                }
                let Some(at) = found else { return Ok(false) };
                let (mut there, mut leaf) = starts[at];
                if !self.pair(py, here, other, &mut there, &mut leaf, positions)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        if let Tag::Leaf = tag {
            positions.push(*leaf);
            *leaf += 1;
        }
        for _ in 0..tag.object_count(count) {
            if !self.take(here).same(py, other.take(there))? {
                return Ok(false);
            }
        }
        for _ in 0..tag.children(count) {
            if !self.pair(py, here, other, there, leaf, positions)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves the cursor past the structure that begins there, and counts its leaves.
    pub(super) fn skip(&self, cursor: &mut Cursor, leaves: &mut usize) {
        let (tag, count) = self.read(cursor);
        cursor.object += tag.object_count(count);
        if tag == Tag::Leaf {
            *leaves += 1;
        }
        for _ in 0..tag.children(count) {
            self.skip(cursor, leaves);
        }
    }
}
