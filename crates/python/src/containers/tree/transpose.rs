//! Containers of containers, inside out.

use pyo3::prelude::*;

use super::{Cursor, Tag, Tree};

/// A part of a container, where another one has a leaf.
pub(crate) struct Part {
    pub(crate) tree: Tree,
    pub(crate) leaves: usize,
}

impl Tree {
    /// The outermost container alone, with a leaf for each of its parts that is no static value.
    pub(crate) fn outermost(&self, py: Python<'_>) -> Tree {
        let (mut cursor, mut outer) = (Cursor::default(), Tree::default());
        let (mut tag, mut count) = self.copy_node(py, &mut cursor, &mut outer);
        if tag == Tag::Mapping {
            (tag, count) = self.copy_node(py, &mut cursor, &mut outer);
        }
        for _ in 0..tag.children(count) {
            match self.read(&mut cursor.clone()).0 {
                Tag::Static => {
                    self.copy_node(py, &mut cursor, &mut outer);
                }
                Tag::Leaf
                | Tag::Tuple
                | Tag::List
                | Tag::Dict
                | Tag::Named
                | Tag::Mapping
                | Tag::Object
                | Tag::Registered => {
                    outer.node(Tag::Leaf, 0);
                    self.skip(&mut cursor, &mut 0);
                }
            }
        }
        outer
    }

    /// Appends a node without its children to another structure.
    fn copy_node(&self, py: Python<'_>, cursor: &mut Cursor, to: &mut Tree) -> (Tag, usize) {
        let (tag, count) = self.read(cursor);
        to.words.push(self.words[cursor.word - 1]);
        for _ in 0..tag.object_count(count) {
            to.push_object(self.take(cursor).clone_ref(py));
        }
        (tag, count)
    }

    /// The parts at the leaves of `outer`. If this is no such container, where and how it differs.
    pub(crate) fn parts_at(&self, py: Python<'_>, outer: &Tree) -> PyResult<Result<Vec<Part>, String>> {
        let mut parts = Vec::new();
        let (mut here, mut there) = (Cursor::default(), Cursor::default());
        let difference = self.collect_parts(py, &mut here, outer, &mut there, "", &mut parts)?;
        Ok(difference.map_or(Ok(parts), Err))
    }

    fn collect_parts(
        &self,
        py: Python<'_>,
        here: &mut Cursor,
        outer: &Tree,
        there: &mut Cursor,
        path: &str,
        parts: &mut Vec<Part>,
    ) -> PyResult<Option<String>> {
        let (begin, begin_outer) = (*here, *there);
        let node = outer.read(there);
        if node.0 == Tag::Leaf {
            let mut leaves = 0;
            self.skip(here, &mut leaves);
            let objects = &self.objects[begin.object..here.object];
            let tree = Tree {
                words: self.words[begin.word..here.word].into(),
                objects: objects.iter().map(|object| object.clone_ref(py)).collect(),
            };
            parts.push(Part { tree, leaves });
            return Ok(None);
        }
        let (tag, count) = node;
        let mut fits = self.read(here) == node;
        let first = there.object;
        if fits {
            for _ in 0..tag.object_count(count) {
                fits &= self.take(here).same(py, outer.take(there))?;
            }
        }
        if !fits {
            return self.difference_at(py, begin, outer, begin_outer, path).map(Some);
        }
        for child in 0..tag.children(count) {
            let step = outer.step(py, tag, first, child)?;
            let path = format!("{path}{step}");
            let difference = self.collect_parts(py, here, outer, there, &path, parts)?;
            if difference.is_some() {
                return Ok(difference);
            }
        }
        Ok(None)
    }

    /// This structure with another one in place of each leaf.
    pub(crate) fn with_leaves(&self, py: Python<'_>, inner: &Tree) -> Tree {
        let (mut cursor, mut out) = (Cursor::default(), Tree::default());
        while cursor.word < self.words.len() {
            if self.read(&mut cursor.clone()).0 == Tag::Leaf {
                cursor.word += 1;
                out.words.extend(inner.words.iter().copied());
                out.objects.extend(inner.objects.iter().map(|object| object.clone_ref(py)));
            } else {
                self.copy_node(py, &mut cursor, &mut out);
            }
        }
        out
    }
}
