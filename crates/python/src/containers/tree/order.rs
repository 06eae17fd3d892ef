//! Structures that are equal up to the order of dict keys, or up to parts that are missing.

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
    /// The structure of the first part of a pair and the number of its leaves, or `None` if the structure is no pair.
    pub(crate) fn first_of_pair(&self, py: Python<'_>) -> Option<(Tree, usize)> {
        let mut cursor = Cursor::default();
        if self.read(&mut cursor) != (Tag::Tuple, 2) {
            return None;
        }
        let (mut end, mut leaves) = (cursor, 0);
        self.skip(&mut end, &mut leaves);
        let first = Tree {
            words: self.words[cursor.word..end.word].into(),
            objects: self.objects[..end.object].iter().map(|object| object.clone_ref(py)).collect(),
        };
        Some((first, leaves))
    }

    /// For each leaf of this structure, its index in `other`, which may differ in the order of dict keys;
    /// `None` if they differ in anything else.
    pub(crate) fn leaf_positions_in(&self, py: Python<'_>, other: &Tree) -> PyResult<Option<Vec<usize>>> {
        let found = Pairing { this: self, other, may_lack_parts: false, positions: Vec::new() }.finish(py)?;
        Ok(found.map(|positions| positions.into_iter().flatten().collect()))
    }

    /// As [`Tree::leaf_positions_in`], where `other` may have Python's `None` instead of a value or of a container: these
    /// leaves have no position.
    pub(crate) fn leaf_positions_in_parts(
        &self,
        py: Python<'_>,
        other: &Tree,
    ) -> PyResult<Option<Vec<Option<usize>>>> {
        Pairing { this: self, other, may_lack_parts: true, positions: Vec::new() }.finish(py)
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

/// The search for the leaves of one structure in another.
struct Pairing<'a> {
    this: &'a Tree,
    other: &'a Tree,
    may_lack_parts: bool,
    positions: Vec<Option<usize>>,
}

impl Pairing<'_> {
    fn finish(mut self, py: Python<'_>) -> PyResult<Option<Vec<Option<usize>>>> {
        let (mut here, mut there, mut leaf) = (Cursor::default(), Cursor::default(), 0);
        let fits = self.pair(py, &mut here, &mut there, &mut leaf)?;
        Ok(fits.then_some(self.positions))
    }

    fn pair(
        &mut self,
        py: Python<'_>,
        here: &mut Cursor,
        there: &mut Cursor,
        leaf: &mut usize,
    ) -> PyResult<bool> {
        let (this, other, begin) = (self.this, self.other, *here);
        let ((tag, count), other_node) = (this.read(here), other.read(there));
        let is_none = other_node.0 == Tag::Static && other.objects[there.object].object().is_none(py);
        if self.may_lack_parts && is_none {
            there.object += 1;
            *here = begin;
            let mut missing = 0;
            this.skip(here, &mut missing);
            self.positions.extend(std::iter::repeat_n(None, missing));
            return Ok(true);
        }
        if (tag, count) != other_node {
            return Ok(false);
        }
        if let Tag::Dict = tag {
            let keys = &this.objects[here.object..here.object + count];
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
                if !self.pair(py, here, &mut there, &mut leaf)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        if let Tag::Leaf = tag {
            self.positions.push(Some(*leaf));
            *leaf += 1;
        }
        for _ in 0..tag.object_count(count) {
            if !this.take(here).same(py, other.take(there))? {
                return Ok(false);
            }
        }
        for _ in 0..tag.children(count) {
            if !self.pair(py, here, there, leaf)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
