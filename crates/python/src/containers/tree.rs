//! Structures in prefix form.

mod arguments;
mod changes;
mod order;
mod retained;

use std::hash::{Hash, Hasher};

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyComplex, PyComplexMethods, PyDict, PyFloat, PyFrozenSet, PyList, PyTuple, PyType, PyWeakrefMethods,
    PyWeakrefReference,
};
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use super::class::{self, Class};
use crate::convert;
use crate::error::Fallible;
use crate::misuse::Misuse;
pub(crate) use changes::{Aspect, DifferenceSink, ValuePath, any_text, local_name, value_text, with_article};

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

/// An object in a structure, and how it is compared.
pub(crate) enum Held {
    /// By type and value.
    Value(Py<PyAny>),
    /// By identity.
    Identity(Py<PyAny>),
    /// A function: by its code. Its closure is compared separately.
    Function(Py<PyAny>),
    /// The code of a function, in a structure that outlives the call.
    Code(Py<PyAny>),
    /// By identity, in a structure that outlives the call: a weak reference and the name of the class.
    Weak(Py<PyWeakrefReference>, Box<str>),
}

/// A structure.
#[derive(Default)]
pub(crate) struct Tree {
    words: SmallVec<[u64; 16]>,
    held: SmallVec<[Held; 4]>,
}

/// A position in a tree.
#[derive(Clone, Copy, Default)]
struct Cursor {
    word: usize,
    held: usize,
}

impl Held {
    pub(crate) fn object(&self) -> &Py<PyAny> {
        match self {
            Held::Value(object) | Held::Identity(object) | Held::Function(object) | Held::Code(object) => {
                object
            }
            Held::Weak(reference, _) => reference.as_any(),
        }
    }

    fn clone_ref(&self, py: Python<'_>) -> Held {
        match self {
            Held::Value(object) => Held::Value(object.clone_ref(py)),
            Held::Identity(object) => Held::Identity(object.clone_ref(py)),
            Held::Function(object) => Held::Function(object.clone_ref(py)),
            Held::Code(object) => Held::Code(object.clone_ref(py)),
            Held::Weak(reference, class) => Held::Weak(reference.clone_ref(py), class.clone()),
        }
    }

    /// Whether this is a function, whose environment must be compared too.
    pub(crate) fn is_function(&self) -> bool {
        match self {
            Held::Function(_) => true,
            Held::Value(_) | Held::Identity(_) | Held::Code(_) | Held::Weak(..) => false,
        }
    }

    fn same(&self, py: Python<'_>, other: &Held) -> PyResult<bool> {
        match (self, other) {
            (Held::Weak(known, _), Held::Weak(other, _)) => return Ok(known.is(other)),
            (Held::Weak(known, _), Held::Value(now) | Held::Identity(now)) => {
                return Ok(known.bind(py).upgrade().is_some_and(|known| known.is(now)));
            }
            (Held::Code(code), Held::Function(now)) => {
                return Ok(now.bind(py).getattr(intern!(py, "__code__"))?.is(code));
            }
            _ => {}
        }
        let (a, b) = (self.object().bind(py), other.object().bind(py));
        if a.is(b) {
            return Ok(true);
        }
        match (self, other) {
            (Held::Value(_), Held::Value(_)) => {
                if !a.get_type().is(b.get_type()) {
                    return Ok(false);
                }
                // By bits: a NaN equals itself as a constant, and -0.0 differs from 0.0.
                match (bits(a), bits(b)) {
                    (Some(a), Some(b)) => Ok(a == b),
                    _ => Ok(a.eq(b)? && same_types(a, b)?),
                }
            }
            (Held::Function(_), Held::Function(_)) => {
                let code = intern!(py, "__code__");
                Ok(a.getattr(code)?.is(&b.getattr(code)?))
            }
            (Held::Value(_) | Held::Identity(_) | Held::Function(_) | Held::Code(_) | Held::Weak(..), _) => {
                Ok(false)
            }
        }
    }
}

/// The bits of a float, or of the parts of a complex number.
fn bits(value: &Bound<'_, PyAny>) -> Option<(u64, u64)> {
    if let Ok(float) = value.cast_exact::<PyFloat>() {
        return Some((float.value().to_bits(), 0));
    }
    let complex = value.cast_exact::<PyComplex>().ok()?;
    Some((complex.real().to_bits(), complex.imag().to_bits()))
}

/// Whether the parts of two equal values have the same types: in Python, `(1,)` equals `(1.0,)`.
fn same_types(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<bool> {
    if !a.get_type().is(b.get_type()) || bits(a) != bits(b) {
        return Ok(false);
    }
    if let (Ok(a), Ok(b)) = (a.cast_exact::<PyTuple>(), b.cast_exact::<PyTuple>()) {
        for (a, b) in a.iter().zip(b.iter()) {
            if !same_types(&a, &b)? {
                return Ok(false);
            }
        }
    }
    if let (Ok(a), Ok(b)) = (a.cast_exact::<PyFrozenSet>(), b.cast_exact::<PyFrozenSet>()) {
        let known = PyDict::new(a.py());
        for entry in b.iter() {
            known.set_item(&entry, &entry)?;
        }
        for entry in a.iter() {
            match known.get_item(&entry)? {
                Some(other) if same_types(&entry, &other)? => {}
                Some(_) | None => return Ok(false),
            }
        }
    }
    Ok(true)
}

impl Tree {
    /// A copy of the structure.
    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Tree {
        Tree { words: self.words.clone(), held: self.held.iter().map(|held| held.clone_ref(py)).collect() }
    }

    pub(super) fn node(&mut self, tag: Tag, children: usize) {
        self.words.reserve(1 + children);
        self.words.push((children as u64) << 8 | tag as u64);
    }

    pub(super) fn hold(&mut self, held: Held) {
        self.held.push(held);
    }

    /// The number of values and containers.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// The objects that nodes hold, in order.
    pub(crate) fn held(&self) -> &[Held] {
        &self.held
    }

    /// Whether this is a tuple of `leaves` leaves and an empty dict.
    pub(crate) fn is_call_of(&self, leaves: usize) -> bool {
        // Each node has one word, and no other structure has as few words.
        self.words.len() == leaves + 2 && self.held.is_empty()
    }

    /// The structure of a single leaf.
    pub(crate) fn leaf() -> Tree {
        let mut tree = Tree::default();
        tree.node(Tag::Leaf, 0);
        tree
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

    fn take(&self, cursor: &mut Cursor) -> &Held {
        cursor.held += 1;
        &self.held[cursor.held - 1]
    }

    /// Whether two structures are equal, static values included.
    pub(crate) fn equals(&self, py: Python<'_>, other: &Tree) -> PyResult<bool> {
        if self.words != other.words || self.held.len() != other.held.len() {
            return Ok(false);
        }
        for (a, b) in self.held.iter().zip(&other.held) {
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
        for held in &self.held {
            match held {
                Held::Value(value) => {
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
                Held::Identity(value) => (value.as_ptr() as usize).hash(&mut hasher),
                Held::Function(function) => {
                    let code = function.bind(py).getattr(intern!(py, "__code__"))?;
                    (code.as_ptr() as usize).hash(&mut hasher);
                }
                Held::Code(code) => (code.as_ptr() as usize).hash(&mut hasher),
                Held::Weak(reference, _) => (reference.as_ptr() as usize).hash(&mut hasher),
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
        let class = |held: &Held| -> PyResult<Bound<'py, PyType>> {
            Ok(held.object().bind(py).clone().cast_into::<PyType>()?)
        };
        Ok(match tag {
            Tag::Leaf => leaves.next().expect("a leaf for each leaf of the structure"),
            Tag::Static => self.take(cursor).object().bind(py).clone(),
            Tag::Tuple => PyTuple::new(py, self.children(py, count, cursor, leaves)?)?.into_any(),
            Tag::List => PyList::new(py, self.children(py, count, cursor, leaves)?)?.into_any(),
            Tag::Dict => {
                let from = cursor.held;
                cursor.held += count;
                let dict = PyDict::new(py);
                for key in 0..count {
                    let value = self.build(py, cursor, leaves)?;
                    dict.set_item(self.held[from + key].object(), value)?;
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
                        let (op, place) = ("container".to_owned(), "a value".to_owned());
                        return Err(Misuse::NotAContainer { op, place, got }.into());
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
                let from = cursor.held;
                cursor.held += count;
                out.push('{');
                for key in 0..count {
                    if key > 0 {
                        out.push_str(", ");
                    }
                    out.push_str(&convert::text(self.held[from + key].object().bind(py))?);
                    out.push_str(": ");
                    self.write(py, cursor, out)?;
                }
                out.push('}');
            }
            Tag::Named | Tag::Object | Tag::Registered | Tag::Mapping => {
                let class = class::class_of_constructor(self.take(cursor).object().bind(py))?.name()?;
                if tag == Tag::Registered {
                    cursor.held += 1;
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
        tree.held.extend(self.held.iter().map(|held| held.clone_ref(py)));
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
        place: &str,
    ) -> PyResult<Option<String>> {
        let (before_a, before_b) = (*a, *b);
        let ((tag, count), (other_tag, other_count)) = (self.read(a), other.read(b));
        let differ = || -> PyResult<Option<String>> {
            let (mut left, mut right) = (String::new(), String::new());
            self.write(py, &mut before_a.clone(), &mut left)?;
            other.write(py, &mut before_b.clone(), &mut right)?;
            let at = if place.is_empty() { String::new() } else { format!("at {place} ") };
            Ok(Some(format!("{at}one is {left}, the other {right}")))
        };
        if tag != other_tag || count != other_count {
            return differ();
        }
        let first = a.held;
        for _ in 0..tag.held(count) {
            if !self.take(a).same(py, other.take(b))? {
                return differ();
            }
        }
        for child in 0..tag.children(count) {
            let step = match tag {
                Tag::Dict => format!("[{}]", value_text(self.held[first + child].object().bind(py))),
                Tag::Mapping => String::new(),
                Tag::Object => {
                    let class = self.held[first].object().bind(py).cast::<PyType>()?;
                    let class = class::of(class).map_err(PyErr::from)?;
                    if let Class::Object(fields) = &*class {
                        format!(".{}", fields[child].name.bind(py))
                    } else {
                        format!("[{child}]")
                    }
                }
                Tag::Leaf | Tag::Static | Tag::Tuple | Tag::List | Tag::Named | Tag::Registered => {
                    format!("[{child}]")
                }
            };
            if let Some(found) = self.compare(py, a, other, b, &format!("{place}{step}"))? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The path of each leaf, such as `[0].weights`, for messages.
    pub(crate) fn places(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let mut places = Vec::new();
        self.locate(py, &mut Cursor::default(), String::new(), &mut places)?;
        Ok(places)
    }

    fn locate(
        &self,
        py: Python<'_>,
        cursor: &mut Cursor,
        place: String,
        places: &mut Vec<String>,
    ) -> PyResult<()> {
        let (tag, count) = self.read(cursor);
        let first = cursor.held;
        cursor.held += tag.held(count);
        if tag == Tag::Leaf {
            places.push(place);
            return Ok(());
        }
        if tag == Tag::Mapping {
            return self.locate(py, cursor, place, places);
        }
        let class = if tag == Tag::Object {
            let class = self.held[first].object().bind(py).cast::<PyType>()?;
            Some(class::of(class).map_err(PyErr::from)?)
        } else {
            None
        };
        for child in 0..if tag == Tag::Static { 0 } else { count } {
            let step = match (tag, class.as_deref()) {
                (Tag::Dict, _) => format!("[{}]", value_text(self.held[first + child].object().bind(py))),
                (_, Some(Class::Object(fields))) => format!(".{}", fields[child].name.bind(py)),
                (_, _) => format!("[{child}]"),
            };
            self.locate(py, cursor, format!("{place}{step}"), places)?;
        }
        Ok(())
    }
}

fn unhashable(op: &str, value: &Bound<'_, PyAny>) -> Fallible<crate::error::Fault> {
    let mut text = convert::text(value)?;
    if text.chars().count() > 60 {
        text = text.chars().take(57).chain("...".chars()).collect();
    }
    let place = format!("type {}", value.get_type().name()?);
    Ok(Misuse::Unhashable { op: op.to_owned(), value: text, place }.into())
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
