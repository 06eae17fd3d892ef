//! Values that are given for the parts of a container: one for each leaf, or one for all leaves of a part.

use pyo3::prelude::*;

use super::{Cursor, Tag, Tree};
use crate::containers::Flat;
use crate::error::Fallible;

/// The value that is given for a leaf.
#[derive(Clone)]
pub(crate) struct LeafValue<'py> {
    pub(crate) value: Bound<'py, PyAny>,
    /// Where it stands in the container of the values, for messages.
    pub(crate) path: String,
}

/// A part of a container of values that does not fit the part that it is given for.
pub(crate) struct Misfit<'py> {
    /// Where the part stands in the container of the values.
    pub(crate) path: String,
    pub(crate) given: Bound<'py, PyAny>,
    pub(crate) structure: String,
}

/// The search for the values of the leaves.
struct Spread<'a, 'py> {
    py: Python<'py>,
    structure: &'a Tree,
    values: &'a Flat<'py>,
    /// The number of leaves of `values` that were passed.
    passed: usize,
    found: Vec<LeafValue<'py>>,
}

impl Tree {
    /// The value of each leaf. `values` is flattened from a prefix of this structure: a value, or a container
    /// with the structure of this one, whose parts are prefixes of its parts. Tuples, lists and named tuples
    /// of one length have the same structure here, and so have all mappings with the same keys.
    pub(crate) fn spread<'py>(
        &self,
        py: Python<'py>,
        values: &Flat<'py>,
    ) -> Fallible<Result<Vec<LeafValue<'py>>, Misfit<'py>>> {
        let mut spread = Spread { py, structure: self, values, passed: 0, found: Vec::new() };
        let misfit = spread.part(&mut Cursor::default(), &mut Cursor::default(), String::new())?;
        Ok(misfit.map_or(Ok(spread.found), Err))
    }

    /// The kind of a node and the number of its children; those of its dict, if it is a mapping.
    fn read_entries(&self, cursor: &mut Cursor) -> (Tag, usize) {
        match self.read(cursor) {
            (Tag::Mapping, _) => {
                cursor.object += 1;
                self.read(cursor)
            }
            node => node,
        }
    }
}

impl<'py> Spread<'_, 'py> {
    fn part(&mut self, here: &mut Cursor, there: &mut Cursor, path: String) -> Fallible<Option<Misfit<'py>>> {
        let (structure, values) = (self.structure, &self.values.tree);
        let (begin, begin_values) = (*here, *there);
        let (values_tag, values_count) = values.read_entries(there);
        let value = match values_tag {
            Tag::Leaf => {
                self.passed += 1;
                Some(self.values.leaves[self.passed - 1].clone())
            }
            Tag::Static => Some(values.take(there).object().bind(self.py).clone()),
            Tag::Tuple
            | Tag::List
            | Tag::Dict
            | Tag::Named
            | Tag::Mapping
            | Tag::Object
            | Tag::Registered => None,
        };
        if let Some(value) = value {
            let mut leaves = 0;
            structure.skip(here, &mut leaves);
            self.found.extend(std::iter::repeat_n(LeafValue { value, path }, leaves));
            return Ok(None);
        }
        let (tag, count) = structure.read_entries(here);
        let is_sequence = |tag: Tag| tag == Tag::Tuple || tag == Tag::List || tag == Tag::Named;
        let mut fits =
            count == values_count && (tag == values_tag || (is_sequence(tag) && is_sequence(values_tag)));
        // The keys of a dict may come in another order, and classes of sequences may differ.
        if fits && (tag == Tag::Object || tag == Tag::Registered) {
            for (own, other) in (here.object..).zip(there.object..).take(tag.object_count(count)) {
                fits &= structure.objects[own].same(self.py, &values.objects[other])?;
            }
        }
        let order = if fits { self.order(here, there, tag, count)? } else { None };
        let Some(order) = order else {
            let mut expected = String::new();
            structure.write(self.py, &mut begin.clone(), &mut expected)?;
            let mut leaves = self.values.leaves.iter().skip(self.passed).cloned();
            let given = values.build(self.py, &mut begin_values.clone(), &mut leaves)?;
            return Ok(Some(Misfit { path, given, structure: expected }));
        };
        let first = there.object;
        here.object += tag.object_count(count);
        there.object += values_tag.object_count(count);
        let mut starts = Vec::with_capacity(count);
        for _ in 0..count {
            starts.push((*there, self.passed));
            values.skip(there, &mut self.passed);
        }
        let end = self.passed;
        for child in order {
            let (mut there, passed) = starts[child];
            self.passed = passed;
            let step = values.step(self.py, values_tag, first, child)?;
            let misfit = self.part(here, &mut there, format!("{path}{step}"))?;
            if misfit.is_some() {
                return Ok(misfit);
            }
        }
        self.passed = end;
        Ok(None)
    }

    /// For each child of a node, the position of the one of the values; `None` if a key has no value.
    fn order(&self, here: &Cursor, there: &Cursor, tag: Tag, count: usize) -> PyResult<Option<Vec<usize>>> {
        if tag != Tag::Dict {
            return Ok(Some((0..count).collect()));
        }
        let keys = &self.structure.objects[here.object..here.object + count];
        let others = &self.values.tree.objects[there.object..there.object + count];
        let mut order = Vec::with_capacity(count);
        for key in keys {
            let mut found = None;
            for (at, other) in others.iter().enumerate() {
                if key.same(self.py, other)? {
                    found = Some(at);
                }
            }
            match found {
                Some(at) => order.push(at),
                None => return Ok(None),
            }
        }
        Ok(Some(order))
    }
}
