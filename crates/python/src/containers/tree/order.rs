//! Structures that are equal up to the order of dict keys.

use pyo3::prelude::*;

use super::{Cursor, Tag, Tree};

impl Tag {
    /// The number of objects that a node with this count holds.
    pub(super) fn held(self, count: usize) -> usize {
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
    pub(crate) fn places_in(&self, py: Python<'_>, other: &Tree) -> PyResult<Option<Vec<usize>>> {
        let mut places = Vec::new();
        let (mut here, mut there, mut leaf) = (Cursor::default(), Cursor::default(), 0);
        let found = self.pair(py, &mut here, other, &mut there, &mut leaf, &mut places)?;
        Ok(found.then_some(places))
    }

    fn pair(
        &self,
        py: Python<'_>,
        here: &mut Cursor,
        other: &Tree,
        there: &mut Cursor,
        leaf: &mut usize,
        places: &mut Vec<usize>,
    ) -> PyResult<bool> {
        let ((tag, count), other_node) = (self.read(here), other.read(there));
        if (tag, count) != other_node {
            return Ok(false);
        }
        if let Tag::Dict = tag {
            let keys = &self.held[here.held..here.held + count];
            let other_keys = &other.held[there.held..there.held + count];
            here.held += count;
            there.held += count;
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
                if !self.pair(py, here, other, &mut there, &mut leaf, places)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        if let Tag::Leaf = tag {
            places.push(*leaf);
            *leaf += 1;
        }
        for _ in 0..tag.held(count) {
            if !self.take(here).same(py, other.take(there))? {
                return Ok(false);
            }
        }
        for _ in 0..tag.children(count) {
            if !self.pair(py, here, other, there, leaf, places)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves the cursor past the structure that begins there, and counts its leaves.
    pub(super) fn skip(&self, cursor: &mut Cursor, leaves: &mut usize) {
        let (tag, count) = self.read(cursor);
        cursor.held += tag.held(count);
        if tag == Tag::Leaf {
            *leaves += 1;
        }
        for _ in 0..tag.children(count) {
            self.skip(cursor, leaves);
        }
    }
}
