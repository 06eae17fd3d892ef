//! The differences between two structures, with the path of each.

use defn_core::Tensor;
use defn_core::vectorize::type_text;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFunction, PyString, PyType};

use super::super::class;
use super::{AuxObject, Cursor, Tag, Tree};
use crate::convert;
use crate::error::if_there_or_defer;

/// The property that differs at a path, apart from tensor types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Aspect {
    /// The kind of value: a tensor, a static value, a container, or nothing.
    Kind,
    /// The class of a container or of a static value.
    Class,
    /// The number of entries.
    Length,
    /// The keys of a dict, or their order.
    Keys,
    /// The order of keyword arguments.
    Order,
    /// The value of a static value.
    Value,
    /// The identity of the object.
    Object,
    /// The code of a function.
    Function,
}

/// The path of a value: a root, and steps from it.
pub(crate) enum ValuePath<'a> {
    Root(&'a dyn Fn() -> String),
    Entry(&'a ValuePath<'a>, usize),
    Key(&'a ValuePath<'a>, &'a AuxObject),
    Field(&'a ValuePath<'a>, String),
}

impl ValuePath<'_> {
    /// The path as Python writes it: `x["w"][0].bias`.
    pub(crate) fn text(&self, py: Python<'_>) -> String {
        match self {
            ValuePath::Root(name) => name(),
            ValuePath::Entry(of, position) => format!("{}[{position}]", of.text(py)),
            ValuePath::Key(of, key) => format!("{}[{}]", of.text(py), value_text(key.object().bind(py))),
            ValuePath::Field(of, name) => format!("{}.{name}", of.text(py)),
        }
    }
}

/// The receiver of a comparison: it gets the common leaves and the differences of two structures.
pub(crate) trait DifferenceSink {
    /// Whether the receiver needs no further differences.
    fn is_full(&self) -> bool;
    /// Both structures have a leaf at this path; `old` and `new` are their indices.
    fn leaves(&mut self, path: &ValuePath<'_>, old: usize, new: usize);
    /// Another property differs; the difference covers `leaves` leaves.
    fn differ(&mut self, path: &ValuePath<'_>, aspect: Aspect, leaves: usize, texts: (String, String));
    /// The type of a leaf of the old structure, for texts.
    fn old_leaf(&self, leaf: usize) -> String;
    /// The type of a leaf of the new structure, for texts.
    fn new_leaf(&self, leaf: usize) -> String;
}

/// The position of a subtree: its first word and its first leaf.
#[derive(Clone, Copy, Default)]
struct SubtreePosition {
    cursor: Cursor,
    leaf: usize,
}

/// Two structures side by side.
struct Sides<'a, 'py> {
    py: Python<'py>,
    old: &'a Tree,
    new: &'a Tree,
}

/// An argument of a call, by position or by name.
struct CallArgument {
    name: String,
    at: SubtreePosition,
}

impl Tree {
    /// Compares the arguments of two calls by name; `name` names the positional ones.
    pub(crate) fn compare_calls(
        &self,
        py: Python<'_>,
        new: &Tree,
        name: &dyn Fn(usize) -> String,
        to: &mut dyn DifferenceSink,
    ) -> PyResult<()> {
        let sides = Sides { py, old: self, new };
        let (old_arguments, new_arguments) = (self.call_arguments(py, name)?, new.call_arguments(py, name)?);
        for argument in &new_arguments {
            let path = ValuePath::Root(&|| argument.name.clone());
            match old_arguments.iter().find(|other| other.name == argument.name) {
                Some(old) => {
                    sides.compare(&path, &mut old.at.clone(), &mut argument.at.clone(), to)?;
                }
                None if to.is_full() => return Ok(()),
                None => {
                    let text = new.summary(py, argument.at, &|leaf| to.new_leaf(leaf))?;
                    to.differ(&path, Aspect::Kind, 1, ("not given".to_owned(), text));
                }
            }
        }
        for argument in &old_arguments {
            if new_arguments.iter().any(|other| other.name == argument.name) {
                continue;
            }
            if to.is_full() {
                return Ok(());
            }
            let path = ValuePath::Root(&|| argument.name.clone());
            let text = self.summary(py, argument.at, &|leaf| to.old_leaf(leaf))?;
            to.differ(&path, Aspect::Kind, 1, (text, "not given".to_owned()));
        }
        let names = |arguments: &[CallArgument]| {
            arguments.iter().map(|argument| argument.name.clone()).collect::<Vec<_>>()
        };
        let (old_names, new_names) = (names(&old_arguments), names(&new_arguments));
        let same_names =
            old_names.len() == new_names.len() && new_names.iter().all(|name| old_names.contains(name));
        if same_names && old_names != new_names && !to.is_full() {
            let path = ValuePath::Root(&|| "the arguments".to_owned());
            to.differ(&path, Aspect::Order, 1, (old_names.join(", "), new_names.join(", ")));
        }
        Ok(())
    }

    /// Compares two values.
    pub(crate) fn compare_values(
        &self,
        py: Python<'_>,
        new: &Tree,
        root: &dyn Fn() -> String,
        to: &mut dyn DifferenceSink,
    ) -> PyResult<()> {
        let sides = Sides { py, old: self, new };
        sides.compare(
            &ValuePath::Root(root),
            &mut SubtreePosition::default(),
            &mut SubtreePosition::default(),
            to,
        )
    }

    /// Compares two tuples or dicts whose entries have their own names; other values are compared as in
    /// [`Tree::compare_values`].
    pub(crate) fn compare_entries(
        &self,
        py: Python<'_>,
        new: &Tree,
        root: &dyn Fn() -> String,
        entry: &dyn Fn(usize, Option<&AuxObject>) -> String,
        to: &mut dyn DifferenceSink,
    ) -> PyResult<()> {
        let sides = Sides { py, old: self, new };
        let (mut a, mut b) = (SubtreePosition::default(), SubtreePosition::default());
        let ((tag, count), other) = (self.read(&mut a.cursor), new.read(&mut b.cursor));
        let is_tuple = tag == Tag::Tuple;
        if (tag, count) != other || !is_tuple && (tag != Tag::Dict || !sides.same_keys(a, b, count)?) {
            return sides.compare(
                &ValuePath::Root(root),
                &mut SubtreePosition::default(),
                &mut SubtreePosition::default(),
                to,
            );
        }
        let keys = if is_tuple { &[][..] } else { &new.objects[b.cursor.object..b.cursor.object + count] };
        a.cursor.object += keys.len();
        b.cursor.object += keys.len();
        for at in 0..count {
            let path = ValuePath::Root(&|| entry(at, keys.get(at)));
            sides.compare(&path, &mut a, &mut b, to)?;
        }
        Ok(())
    }

    /// The arguments of a call by name: a tuple of positional ones, then a dict.
    fn call_arguments(&self, py: Python<'_>, name: &dyn Fn(usize) -> String) -> PyResult<Vec<CallArgument>> {
        let mut at = SubtreePosition::default();
        let (_, positional) = self.read(&mut at.cursor);
        let mut arguments = Vec::with_capacity(positional);
        for position in 0..positional {
            arguments.push(CallArgument { name: name(position), at });
            self.skip(&mut at.cursor, &mut at.leaf);
        }
        let (_, keywords) = self.read(&mut at.cursor);
        let first = at.cursor.object;
        at.cursor.object += keywords;
        for keyword in 0..keywords {
            let name = self.objects[first + keyword].object().bind(py).str()?.to_string();
            arguments.push(CallArgument { name, at });
            self.skip(&mut at.cursor, &mut at.leaf);
        }
        Ok(arguments)
    }

    /// A short text of the whole structure with the types of its leaves.
    pub(crate) fn whole(&self, py: Python<'_>, leaves: &[Tensor]) -> PyResult<String> {
        self.summary(py, SubtreePosition::default(), &|leaf| type_text(&leaves[leaf]))
    }

    /// A short text of the value at a position: a type, a value, or the class of a container.
    fn summary(
        &self,
        py: Python<'_>,
        at: SubtreePosition,
        leaf: &dyn Fn(usize) -> String,
    ) -> PyResult<String> {
        let mut cursor = at.cursor;
        let (tag, _) = self.read(&mut cursor);
        Ok(match tag {
            Tag::Leaf => leaf(at.leaf),
            Tag::Static => self.take(&mut cursor).text(py),
            Tag::Tuple
            | Tag::List
            | Tag::Dict
            | Tag::Named
            | Tag::Mapping
            | Tag::Object
            | Tag::Registered => with_article(&self.class_name(py, at)?),
        })
    }

    /// The class name of the container at a position.
    fn class_name(&self, py: Python<'_>, at: SubtreePosition) -> PyResult<String> {
        let mut cursor = at.cursor;
        let (tag, _) = self.read(&mut cursor);
        Ok(match tag {
            Tag::Leaf => "tensor".to_owned(),
            Tag::Tuple => "tuple".to_owned(),
            Tag::List => "list".to_owned(),
            Tag::Dict => "dict".to_owned(),
            Tag::Static => self.take(&mut cursor).class_name(py),
            Tag::Named | Tag::Mapping | Tag::Object | Tag::Registered => {
                class::class_of_constructor(self.take(&mut cursor).object().bind(py))?.name()?.to_string()
            }
        })
    }
}

impl Sides<'_, '_> {
    fn same_keys(&self, a: SubtreePosition, b: SubtreePosition, count: usize) -> PyResult<bool> {
        for key in 0..count {
            let (old, new) =
                (&self.old.objects[a.cursor.object + key], &self.new.objects[b.cursor.object + key]);
            if !old.same(self.py, new)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Compares the values at two positions, and moves past them.
    fn compare(
        &self,
        path: &ValuePath<'_>,
        a: &mut SubtreePosition,
        b: &mut SubtreePosition,
        to: &mut dyn DifferenceSink,
    ) -> PyResult<()> {
        if to.is_full() {
            return Ok(());
        }
        let (start, other_start) = (*a, *b);
        let ((tag, count), (other_tag, other_count)) =
            (self.old.read(&mut a.cursor), self.new.read(&mut b.cursor));
        let found = if tag != other_tag {
            let is_value = |tag: Tag| tag == Tag::Leaf || tag == Tag::Static;
            Some(if is_value(tag) || is_value(other_tag) { Aspect::Kind } else { Aspect::Class })
        } else {
            match tag {
                Tag::Leaf => {
                    to.leaves(path, a.leaf, b.leaf);
                    a.leaf += 1;
                    b.leaf += 1;
                    return Ok(());
                }
                Tag::Static => {
                    let (old, new) = (self.old.take(&mut a.cursor), self.new.take(&mut b.cursor));
                    return self.compare_static(path, old, new, to);
                }
                Tag::Tuple | Tag::List => (count != other_count).then_some(Aspect::Length),
                Tag::Dict => {
                    let same = count == other_count && self.same_keys(*a, *b, count)?;
                    (!same).then_some(Aspect::Keys)
                }
                Tag::Named | Tag::Mapping | Tag::Object => {
                    let (old, new) = (&self.old.objects[a.cursor.object], &self.new.objects[b.cursor.object]);
                    match old.same(self.py, new)? {
                        true => (count != other_count).then_some(Aspect::Length),
                        false => Some(Aspect::Class),
                    }
                }
                Tag::Registered => {
                    let (old, new) = (&self.old.objects[a.cursor.object], &self.new.objects[b.cursor.object]);
                    let (data, other) = (a.cursor.object + 1, b.cursor.object + 1);
                    match (old.same(self.py, new)?, count == other_count) {
                        (false, _) => Some(Aspect::Class),
                        (true, false) => Some(Aspect::Length),
                        (true, true) => {
                            self.compare_static(path, &self.old.objects[data], &self.new.objects[other], to)?;
                            None
                        }
                    }
                }
            }
        };
        if let Some(aspect) = found {
            let (old, new) = match aspect {
                Aspect::Kind => (
                    self.old.summary(self.py, start, &|leaf| to.old_leaf(leaf))?,
                    self.new.summary(self.py, other_start, &|leaf| to.new_leaf(leaf))?,
                ),
                Aspect::Class => self.class_names(start, other_start)?,
                Aspect::Length => (count.to_string(), other_count.to_string()),
                Aspect::Keys => (
                    self.old.keys_text(self.py, a.cursor.object, count),
                    self.new.keys_text(self.py, b.cursor.object, other_count),
                ),
                Aspect::Order | Aspect::Value | Aspect::Object | Aspect::Function => {
                    unreachable!("containers have no values of their own")
                }
            };
            (*a, *b) = (start, other_start);
            self.old.skip(&mut a.cursor, &mut a.leaf);
            self.new.skip(&mut b.cursor, &mut b.leaf);
            let leaves = (a.leaf - start.leaf).max(b.leaf - other_start.leaf);
            to.differ(path, aspect, leaves, (old, new));
            return Ok(());
        }
        let first = b.cursor.object;
        a.cursor.object += tag.object_count(count);
        b.cursor.object += tag.object_count(count);
        if tag == Tag::Mapping {
            return self.compare(path, a, b, to);
        }
        let fields = match tag {
            Tag::Object | Tag::Named => field_names(self.new.objects[first].object().bind(self.py))?,
            Tag::Leaf | Tag::Static | Tag::Tuple | Tag::List | Tag::Dict | Tag::Mapping | Tag::Registered => {
                Vec::new()
            }
        };
        for child in 0..count {
            let step = match fields.get(child) {
                Some(name) => ValuePath::Field(path, name.clone()),
                None if tag == Tag::Dict => ValuePath::Key(path, &self.new.objects[first + child]),
                None => ValuePath::Entry(path, child),
            };
            self.compare(&step, a, b, to)?;
        }
        Ok(())
    }

    fn class_names(&self, a: SubtreePosition, b: SubtreePosition) -> PyResult<(String, String)> {
        let (old, new) = (self.old.class_name(self.py, a)?, self.new.class_name(self.py, b)?);
        Ok(if old == new { (old, format!("another {new}")) } else { (old, new) })
    }

    fn compare_static(
        &self,
        path: &ValuePath<'_>,
        old: &AuxObject,
        new: &AuxObject,
        to: &mut dyn DifferenceSink,
    ) -> PyResult<()> {
        let py = self.py;
        if old.same(py, new)? || to.is_full() {
            return Ok(());
        }
        let (before, after) = (old.text(py), new.text(py));
        let (class, other_class) = (old.class_name(py), new.class_name(py));
        let (aspect, before, after) = match (old, new) {
            (AuxObject::Function(_) | AuxObject::Code(_), _)
            | (_, AuxObject::Function(_) | AuxObject::Code(_)) => (Aspect::Function, before, after),
            _ if old.is_none(py) || new.is_none(py) => (Aspect::Kind, before, after),
            _ if class != other_class => {
                let show = |object: &AuxObject, class: String, text: String| match object {
                    AuxObject::Value(_) if text != with_article(&class) => format!("{class} {text}"),
                    AuxObject::Value(_)
                    | AuxObject::Identity(_)
                    | AuxObject::Weak(..)
                    | AuxObject::Function(_)
                    | AuxObject::Code(_) => class,
                };
                (Aspect::Class, show(old, class, before), show(new, other_class, after))
            }
            (AuxObject::Value(_), AuxObject::Value(_)) => (Aspect::Value, before, after),
            _ => (Aspect::Object, before, after),
        };
        // If both texts are equal, the second one says "another".
        let after = if before == after { another(&after) } else { after };
        to.differ(path, aspect, 1, (before, after));
        Ok(())
    }
}

impl Tree {
    fn keys_text(&self, py: Python<'_>, first: usize, count: usize) -> String {
        let keys = self.objects[first..first + count].iter().map(|key| value_text(key.object().bind(py)));
        shortened(format!("[{}]", keys.collect::<Vec<_>>().join(", ")))
    }
}

/// The names of the fields of a dataclass, an attrs class or a named tuple.
fn field_names(class: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let py = class.py();
    if let Some(fields) = class.getattr_opt(intern!(py, "_fields"))? {
        return fields.extract();
    }
    let Ok(class) = class.cast::<PyType>() else { return Ok(Vec::new()) };
    let kind = class::of(class).map_err(PyErr::from)?;
    Ok(kind.fields().iter().map(|field| field.name.bind(py).to_string()).collect())
}

impl AuxObject {
    /// The object as a phrase: a value, a function by its name, another object by its class.
    fn text(&self, py: Python<'_>) -> String {
        match self {
            AuxObject::Value(value) => value_text(value.bind(py)),
            AuxObject::Function(function) => function_text(function.bind(py)),
            AuxObject::Code(code) => function_text(code.bind(py)),
            AuxObject::Identity(object) => with_article(&class_text(object.bind(py))),
            AuxObject::Weak(_, class) => with_article(class),
        }
    }

    fn class_name(&self, py: Python<'_>) -> String {
        match self {
            AuxObject::Code(_) => "function".to_owned(),
            AuxObject::Weak(_, class) => class.to_string(),
            AuxObject::Value(object) | AuxObject::Identity(object) | AuxObject::Function(object) => {
                class_text(object.bind(py))
            }
        }
    }

    fn is_none(&self, py: Python<'_>) -> bool {
        self.object().is_none(py)
    }
}

fn class_text(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map(|name| name.to_string()).unwrap_or_else(|_| "object".to_owned())
}

/// A function or a code object, by name.
fn function_text(function: &Bound<'_, PyAny>) -> String {
    let py = function.py();
    let name = function
        .getattr(intern!(py, "__qualname__"))
        .or_else(|_| function.getattr(intern!(py, "co_qualname")))
        .and_then(|name| name.extract::<String>());
    match name {
        Ok(name) => format!("the function {}", local_name(&name)),
        Err(_) => "a function".to_owned(),
    }
}

/// Any value as text: a function by its name, else as a static value.
pub(crate) fn any_text(value: &Bound<'_, PyAny>) -> String {
    let py = value.py();
    let is_code = value.getattr(intern!(py, "co_qualname")).is_ok();
    if is_code || value.is_exact_instance_of::<PyFunction>() {
        function_text(value)
    } else {
        value_text(value)
    }
}

/// A qualified name without its enclosing functions.
pub(crate) fn local_name(name: &str) -> &str {
    name.rsplit("<locals>.").next().unwrap_or(name)
}

/// A static value as text, shortened. If its `repr` contains an address, the class name is used instead.
pub(crate) fn value_text(value: &Bound<'_, PyAny>) -> String {
    let py = value.py();
    if let Ok(text) = value.cast_exact::<PyString>()
        && let Ok(text) = text.to_str()
        && !text.chars().any(|c| c == '"' || c == '\\' || c.is_control())
    {
        return shortened(format!("\"{text}\""));
    }
    let shows_address = || -> PyResult<bool> {
        let own = value.get_type().getattr(intern!(py, "__repr__"))?;
        Ok(own.is(&py.get_type::<PyAny>().getattr(intern!(py, "__repr__"))?))
    };
    if let Ok(class) = value.cast::<PyType>() {
        return class.name().map(|name| format!("the class {name}")).unwrap_or_default();
    }
    match (shows_address(), if_there_or_defer(py, convert::text(value))) {
        (Ok(false), Some(text)) => shortened(text),
        // An error of the user's `__repr__` must not fail the call.
        _ => with_article(&class_text(value)),
    }
}

/// A name with its article: a `Model`, an `Array`.
pub(crate) fn with_article(name: &str) -> String {
    let vowel = name.chars().next().is_some_and(|c| "aeiouAEIOU".contains(c));
    format!("{} {name}", if vowel { "an" } else { "a" })
}

/// The phrase for an object that differs from another one with the same text.
fn another(text: &str) -> String {
    let stripped =
        ["a ", "an ", "the function ", "the class "].iter().find_map(|lead| text.strip_prefix(lead));
    format!("another {}", stripped.unwrap_or(text))
}

/// A text on one line, of at most 60 characters.
fn shortened(text: String) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= 60 {
        return text;
    }
    text.chars().take(57).chain("...".chars()).collect()
}
