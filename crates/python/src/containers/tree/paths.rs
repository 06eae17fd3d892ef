//! The steps that lead from a container to its leaves.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::{Cursor, Tag, Tree, value_text};
use crate::containers::class;

/// A step from a container to one of its parts.
#[derive(Clone)]
pub(crate) enum Step<'py> {
    Key(Bound<'py, PyAny>),
    Position(usize),
    Field(Bound<'py, PyString>),
}

impl Step<'_> {
    /// The step as messages show it.
    pub(crate) fn text(&self) -> String {
        match self {
            Step::Key(key) => format!("[{}]", value_text(key)),
            Step::Position(position) => format!("[{position}]"),
            Step::Field(name) => format!(".{}", name),
        }
    }
}

impl Tree {
    /// The step from a node to one of its children; `None` from a mapping to its dict. `first` is the index of
    /// the node's first object.
    pub(super) fn step_to<'py>(
        &self,
        py: Python<'py>,
        tag: Tag,
        first: usize,
        child: usize,
    ) -> PyResult<Option<Step<'py>>> {
        Ok(match tag {
            Tag::Dict => Some(Step::Key(self.objects[first + child].object().bind(py).clone())),
            Tag::Mapping => None,
            Tag::Named => {
                let names = self.objects[first].object().bind(py).getattr(intern!(py, "_fields"))?;
                Some(Step::Field(names.get_item(child)?.cast_into::<PyString>()?))
            }
            Tag::Object => {
                let class = self.objects[first].object().bind(py).cast::<PyType>()?;
                let class = class::of(class).map_err(PyErr::from)?;
                Some(match class.fields().get(child) {
                    Some(field) => Step::Field(field.name.bind(py).clone()),
                    None => Step::Position(child),
                })
            }
            Tag::Leaf | Tag::Static | Tag::Tuple | Tag::List | Tag::Registered => Some(Step::Position(child)),
        })
    }

    /// The steps to each leaf.
    pub(crate) fn leaf_steps<'py>(&self, py: Python<'py>) -> PyResult<Vec<Vec<Step<'py>>>> {
        let mut found = Vec::new();
        self.walk(py, &mut Cursor::default(), &mut Vec::new(), &mut found)?;
        Ok(found)
    }

    fn walk<'py>(
        &self,
        py: Python<'py>,
        cursor: &mut Cursor,
        path: &mut Vec<Step<'py>>,
        found: &mut Vec<Vec<Step<'py>>>,
    ) -> PyResult<()> {
        let (tag, count) = self.read(cursor);
        let first = cursor.object;
        cursor.object += tag.object_count(count);
        if tag == Tag::Leaf {
            found.push(path.clone());
            return Ok(());
        }
        for child in 0..tag.children(count) {
            let length = path.len();
            path.extend(self.step_to(py, tag, first, child)?);
            self.walk(py, cursor, path, found)?;
            path.truncate(length);
        }
        Ok(())
    }
}
