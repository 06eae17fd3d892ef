//! Structures in prefix form.

mod arguments;
mod aux_object;
mod changes;
mod order;
mod paths;
mod prefix;
mod retained;
mod transpose;

use std::hash::{Hash, Hasher};

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use super::class::{self, Class};
use crate::convert;
use crate::error::Fallible;
use crate::misuse::Misuse;
pub(crate) use aux_object::AuxObject;
use aux_object::bits;
pub(crate) use changes::{Aspect, DifferenceSink, ValuePath, any_text, local_name, value_text, with_article};
pub(super) use paths::Step;
pub(crate) use prefix::{LeafValue, Misfit};
pub(super) use transpose::Part;

/// The kind of a node. Its word also holds the number of children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Tag {
    Leaf,
    /// Holds its value.
    Static,
    Tuple,
    List,
    /// Holds its keys.
    Dict,
    /// Holds its class.
    Named,
    /// Holds its class; the dict follows.
    Mapping,
    /// Holds its class.
    Object,
    /// Holds its class and the auxiliary data that `flatten` returned with the children.
    Registered,
}

const TAGS: [Tag; 9] = [
    Tag::Leaf,
    Tag::Static,
    Tag::Tuple,
    Tag::List,
    Tag::Dict,
    Tag::Named,
    Tag::Mapping,
    Tag::Object,
    Tag::Registered,
];

/// A structure.
#[derive(Default)]
pub(crate) struct Tree {
    words: SmallVec<[u64; 16]>,
    objects: SmallVec<[AuxObject; 4]>,
}

/// A position in a tree.
#[derive(Clone, Copy, Default)]
struct Cursor {
    word: usize,
    object: usize,
}

impl Tree {
    /// A copy of the structure.
    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Tree {
        Tree {
            words: self.words.clone(),
            objects: self.objects.iter().map(|object| object.clone_ref(py)).collect(),
        }
    }

    pub(super) fn node(&mut self, tag: Tag, children: usize) {
        self.words.reserve(1 + children);
        self.words.push((children as u64) << 8 | tag as u64);
    }

    pub(super) fn push_object(&mut self, object: AuxObject) {
        self.objects.push(object);
    }

    /// The number of values and containers.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// The auxiliary objects of the nodes, in order.
    pub(crate) fn objects(&self) -> &[AuxObject] {
        &self.objects
    }

    /// Whether this is a tuple of `leaves` leaves and an empty dict.
    pub(crate) fn is_call_of(&self, leaves: usize) -> bool {
        // Each node has one word, and no other structure has as few words.
        self.words.len() == leaves + 2 && self.objects.is_empty()
    }

    /// The structure of a single leaf.
    pub(crate) fn leaf() -> Tree {
        let mut tree = Tree::default();
        tree.node(Tag::Leaf, 0);
        tree
    }

    /// Whether the structure has a leaf.
    pub(crate) fn has_leaves(&self) -> bool {
        let mut leaves = 0;
        self.skip(&mut Cursor::default(), &mut leaves);
        leaves > 0
    }

    /// Whether the structure is a single leaf.
    pub(crate) fn is_leaf(&self) -> bool {
        let (tag, _) = self.read(&mut Cursor::default());
        self.words.len() == 1 && matches!(tag, Tag::Leaf)
    }

    fn read(&self, cursor: &mut Cursor) -> (Tag, usize) {
        let word = self.words[cursor.word];
        cursor.word += 1;
        (TAGS[(word & 0xFF) as usize], (word >> 8) as usize)
    }

    fn take(&self, cursor: &mut Cursor) -> &AuxObject {
        cursor.object += 1;
        &self.objects[cursor.object - 1]
    }

    /// Whether two structures are equal, static values included.
    pub(crate) fn equals(&self, py: Python<'_>, other: &Tree) -> PyResult<bool> {
        if self.words != other.words || self.objects.len() != other.objects.len() {
            return Ok(false);
        }
        for (a, b) in self.objects.iter().zip(&other.objects) {
            if !a.same(py, b)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A hash; equal structures have equal hashes.
    ///
    /// # Errors
    /// A static value that cannot be hashed; `op` is for the message.
    pub(crate) fn hash(&self, py: Python<'_>, op: &str) -> Fallible<u64> {
        let mut hasher = FxHasher::default();
        self.words.hash(&mut hasher);
        for object in &self.objects {
            match object {
                AuxObject::Value(value) => {
                    let value = value.bind(py);
                    // Python hashes a NaN by identity.
                    if let Some(bits) = bits(value) {
                        bits.hash(&mut hasher);
                        continue;
                    }
                    match value.hash() {
                        Ok(hash) => hash.hash(&mut hasher),
                        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                            return Err(unhashable(op, value)?);
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
                AuxObject::Identity(value) => (value.as_ptr() as usize).hash(&mut hasher),
                AuxObject::Function(function) => {
                    let code = function.bind(py).getattr(intern!(py, "__code__"))?;
                    (code.as_ptr() as usize).hash(&mut hasher);
                }
                AuxObject::Code(code) => (code.as_ptr() as usize).hash(&mut hasher),
                AuxObject::Weak(reference, _) => (reference.as_ptr() as usize).hash(&mut hasher),
            }
        }
        Ok(hasher.finish())
    }

    /// Rebuilds a container.
    pub(crate) fn unflatten<'py>(
        &self,
        py: Python<'py>,
        leaves: &mut dyn Iterator<Item = Bound<'py, PyAny>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        self.build(py, &mut Cursor::default(), leaves)
    }

    /// Rebuilds two containers that were flattened one after the other.
    pub(crate) fn unflatten_pair<'py>(
        &self,
        py: Python<'py>,
        leaves: &mut dyn Iterator<Item = Bound<'py, PyAny>>,
    ) -> Fallible<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let mut cursor = Cursor::default();
        let first = self.build(py, &mut cursor, leaves)?;
        Ok((first, self.build(py, &mut cursor, leaves)?))
    }

    fn build<'py>(
        &self,
        py: Python<'py>,
        cursor: &mut Cursor,
        leaves: &mut dyn Iterator<Item = Bound<'py, PyAny>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let (tag, count) = self.read(cursor);
        let class = |object: &AuxObject| -> PyResult<Bound<'py, PyType>> {
            Ok(object.object().bind(py).clone().cast_into::<PyType>()?)
        };
        Ok(match tag {
            Tag::Leaf => leaves.next().expect("a leaf for each leaf of the structure"),
            Tag::Static => self.take(cursor).object().bind(py).clone(),
            Tag::Tuple => PyTuple::new(py, self.children(py, count, cursor, leaves)?)?.into_any(),
            Tag::List => PyList::new(py, self.children(py, count, cursor, leaves)?)?.into_any(),
            Tag::Dict => {
                let from = cursor.object;
                cursor.object += count;
                let dict = PyDict::new(py);
                for key in 0..count {
                    let value = self.build(py, cursor, leaves)?;
                    dict.set_item(self.objects[from + key].object(), value)?;
                }
                dict.into_any()
            }
            Tag::Named => {
                let class = class(self.take(cursor))?;
                let values = PyTuple::new(py, self.children(py, count, cursor, leaves)?)?;
                class.call_method1(intern!(py, "_make"), (values,))?
            }
            Tag::Mapping => {
                let constructor = self.take(cursor).object().bind(py).clone();
                class::mapping_of_dict(&constructor, self.build(py, cursor, leaves)?)?
            }
            Tag::Object => {
                let class = class(self.take(cursor))?;
                let values = self.children(py, count, cursor, leaves)?;
                rebuild(&class, values)?
            }
            Tag::Registered => {
                let class = class(self.take(cursor))?;
                let data = self.take(cursor).object().bind(py).clone();
                let values = PyList::new(py, self.children(py, count, cursor, leaves)?)?;
                match &*class::of(&class)? {
                    Class::Registered { unflatten, .. } => unflatten.bind(py).call1((data, values))?,
                    Class::Number
                    | Class::Array
                    | Class::Foreign
                    | Class::Function
                    | Class::Plain
                    | Class::Named
                    | Class::Mapping
                    | Class::Object(_)
                    | Class::Unknown => {
                        let got = class.name()?.to_string();
                        let (op, path) = ("container".to_owned(), "a value".to_owned());
                        return Err(Misuse::NotAContainer { op, path, got }.into());
                    }
                }
            }
        })
    }

    fn children<'py>(
        &self,
        py: Python<'py>,
        count: usize,
        cursor: &mut Cursor,
        leaves: &mut dyn Iterator<Item = Bound<'py, PyAny>>,
    ) -> Fallible<Vec<Bound<'py, PyAny>>> {
        (0..count).map(|_| self.build(py, cursor, leaves)).collect()
    }

    /// The structure as text: `(tensor, {'w': tensor})`.
    pub(crate) fn text(&self, py: Python<'_>) -> PyResult<String> {
        let mut out = String::new();
        self.write(py, &mut Cursor::default(), &mut out)?;
        Ok(out)
    }

    fn write(&self, py: Python<'_>, cursor: &mut Cursor, out: &mut String) -> PyResult<()> {
        let (tag, count) = self.read(cursor);
        let list = |tree: &Tree, cursor: &mut Cursor, out: &mut String| -> PyResult<()> {
            for child in 0..count {
                if child > 0 {
                    out.push_str(", ");
                }
                tree.write(py, cursor, out)?;
            }
            Ok(())
        };
        match tag {
            Tag::Leaf => out.push_str("tensor"),
            Tag::Static => out.push_str(&convert::text(self.take(cursor).object().bind(py))?),
            Tag::Tuple => {
                out.push('(');
                list(self, cursor, out)?;
                out.push_str(if count == 1 { ",)" } else { ")" });
            }
            Tag::List => {
                out.push('[');
                list(self, cursor, out)?;
                out.push(']');
            }
            Tag::Dict => {
                let from = cursor.object;
                cursor.object += count;
                out.push('{');
                for key in 0..count {
                    if key > 0 {
                        out.push_str(", ");
                    }
                    out.push_str(&convert::text(self.objects[from + key].object().bind(py))?);
                    out.push_str(": ");
                    self.write(py, cursor, out)?;
                }
                out.push('}');
            }
            Tag::Named | Tag::Object | Tag::Registered | Tag::Mapping => {
                let class = class::class_of_constructor(self.take(cursor).object().bind(py))?.name()?;
                if tag == Tag::Registered {
                    cursor.object += 1;
                }
                out.push_str(&format!("{class}("));
                if tag == Tag::Mapping {
                    self.write(py, cursor, out)?;
                } else {
                    list(self, cursor, out)?;
                }
                out.push(')');
            }
        }
        Ok(())
    }

    /// The structure of a tuple of a leaf and this structure.
    pub(crate) fn after_leaf(&self, py: Python<'_>) -> Tree {
        let mut tree = Tree::default();
        tree.node(Tag::Tuple, 2);
        tree.node(Tag::Leaf, 0);
        tree.words.extend(self.words.iter().copied());
        tree.objects.extend(self.objects.iter().map(|object| object.clone_ref(py)));
        tree
    }

    /// As [`Tree::difference`], for a call's positional arguments and keywords.
    pub(crate) fn difference_of_calls(&self, py: Python<'_>, other: &Tree) -> PyResult<String> {
        let (mut a, mut b) = (Cursor::default(), Cursor::default());
        if let Some(text) = self.compare(py, &mut a, other, &mut b, "args")? {
            return Ok(text);
        }
        let text = self.compare(py, &mut a, other, &mut b, "kwargs")?;
        Ok(text.unwrap_or_else(|| "they are equal".to_owned()))
    }

    /// Where and how another structure first differs, for messages.
    pub(crate) fn difference(&self, py: Python<'_>, other: &Tree) -> PyResult<String> {
        let (mut a, mut b) = (Cursor::default(), Cursor::default());
        match self.compare(py, &mut a, other, &mut b, "")? {
            Some(text) => Ok(text),
            None => Ok("they are equal".to_owned()),
        }
    }

    fn compare(
        &self,
        py: Python<'_>,
        a: &mut Cursor,
        other: &Tree,
        b: &mut Cursor,
        path: &str,
    ) -> PyResult<Option<String>> {
        let (before_a, before_b) = (*a, *b);
        let ((tag, count), (other_tag, other_count)) = (self.read(a), other.read(b));
        let differ = || self.difference_at(py, before_a, other, before_b, path).map(Some);
        if tag != other_tag || count != other_count {
            return differ();
        }
        let first = a.object;
        for _ in 0..tag.object_count(count) {
            if !self.take(a).same(py, other.take(b))? {
                return differ();
            }
        }
        for child in 0..tag.children(count) {
            let step = self.step(py, tag, first, child)?;
            if let Some(found) = self.compare(py, a, other, b, &format!("{path}{step}"))? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// How the structures at two positions differ, for messages; `path` leads there.
    fn difference_at(
        &self,
        py: Python<'_>,
        mut here: Cursor,
        other: &Tree,
        mut there: Cursor,
        path: &str,
    ) -> PyResult<String> {
        let (mut left, mut right) = (String::new(), String::new());
        self.write(py, &mut here, &mut left)?;
        other.write(py, &mut there, &mut right)?;
        let at = if path.is_empty() { String::new() } else { format!("at {path} ") };
        Ok(format!("{at}one is {left}, the other {right}"))
    }

    /// The step from a node to one of its children, for messages; `first` is the index of the node's first
    /// object.
    fn step(&self, py: Python<'_>, tag: Tag, first: usize, child: usize) -> PyResult<String> {
        Ok(self.step_to(py, tag, first, child)?.map_or_else(String::new, |step| step.text()))
    }

    /// The path of each leaf, such as `[0].weights`, for messages.
    pub(crate) fn leaf_paths(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let mut paths = Vec::new();
        self.locate(py, &mut Cursor::default(), String::new(), &mut paths)?;
        Ok(paths)
    }

    fn locate(
        &self,
        py: Python<'_>,
        cursor: &mut Cursor,
        path: String,
        paths: &mut Vec<String>,
    ) -> PyResult<()> {
        let (tag, count) = self.read(cursor);
        let first = cursor.object;
        cursor.object += tag.object_count(count);
        if tag == Tag::Leaf {
            paths.push(path);
            return Ok(());
        }
        for child in 0..if tag == Tag::Static { 0 } else { tag.children(count) } {
            let step = self.step(py, tag, first, child)?;
            self.locate(py, cursor, format!("{path}{step}"), paths)?;
        }
        Ok(())
    }
}

fn unhashable(op: &str, value: &Bound<'_, PyAny>) -> Fallible<crate::error::Fault> {
    let mut text = convert::text(value)?;
    if text.chars().count() > 60 {
        text = text.chars().take(57).chain("...".chars()).collect();
    }
    let path = format!("type {}", value.get_type().name()?);
    Ok(Misuse::Unhashable { op: op.to_owned(), value: text, path }.into())
}

/// An object of a dataclass or an attrs class with these fields. `__init__` does not run, so that frozen
/// classes and fields outside of it are restored unchanged.
pub(super) fn rebuild<'py>(
    class: &Bound<'py, PyType>,
    values: Vec<Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyAny>> {
    let py = class.py();
    let object = class.call_method1(intern!(py, "__new__"), (class,))?;
    if let Class::Object(fields) = &*class::of(class)? {
        for (field, value) in fields.iter().zip(values) {
            let name = field.name.bind(py);
            // SAFETY: all three are live objects; the function sets the attribute without calling a frozen
            // `__setattr__`.
            let status =
                unsafe { ffi::PyObject_GenericSetAttr(object.as_ptr(), name.as_ptr(), value.as_ptr()) };
            if status < 0 {
                return Err(PyErr::fetch(py).into());
            }
        }
    }
    Ok(object)
}
