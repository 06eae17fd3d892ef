//! Containers: flattened into leaves and a structure, and rebuilt from them.
//!
//! A [`Tree`] is the structure in prefix form: one word for each node, and the objects that nodes hold, such
//! as static values, dict keys and classes. It serves to rebuild a container and as a cache key: two trees
//! are equal if their structures are equal, and static values are compared by type and value.

mod class;
mod several;
mod store;
mod tree;

use defn_core::stack;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyComplex, PyDict, PyFloat, PyFrozenSet, PyFunction, PyInt, PyList, PyRange, PySet,
    PyString, PyTuple, PyType,
};
use smallvec::SmallVec;

use crate::array;
use crate::backends;
use crate::build;
use crate::dlpack;
use crate::dtype::PyDType;
use crate::error::Fallible;
use crate::lazy::{self, PyLazy};
use crate::misuse::Misuse;
use crate::shard::PySharded;
use crate::tensor::PyTensor;
use class::Class;
pub(crate) use class::{Structure, is_marked};
pub(crate) use store::{Numbers, from_value, to_value};
use tree::Tag;
pub(crate) use tree::{
    Aspect, AuxObject, DifferenceSink, LeafValue, Misfit, Tree, ValuePath, any_text, local_name, value_text,
    with_article,
};

/// The tensors, numbers and arrays of a container, in order.
pub(crate) type Leaves<'py> = SmallVec<[Bound<'py, PyAny>; 8]>;

/// Containers nested deeper than this are refused: a container can contain itself.
pub(crate) const DEPTH_LIMIT: usize = 200;

/// Containers with more values are refused: nested containers that share parts can grow exponentially.
const VALUE_LIMIT: usize = 10_000_000;

/// Which values are leaves and which are static.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Inputs of a definition: tensors, arrays and numbers are leaves, unknown objects are refused.
    Inputs,
    /// The receiver of a method: as inputs, but an unknown object is static and compared by identity.
    Receiver,
    /// Options of a definition: tensors and arrays are leaves, the rest is static.
    Options,
    /// Everything is static.
    Static,
    /// The values that a function closes over: as options, but unknown objects are compared by identity.
    Environment,
    /// State and results: as inputs, but unknown objects are refused.
    State,
}

/// A flattened container.
pub(crate) struct Flat<'py> {
    pub(crate) leaves: Leaves<'py>,
    pub(crate) tree: Tree,
    /// The maximum number of values.
    limit: usize,
}

impl Default for Flat<'_> {
    fn default() -> Self {
        Flat { leaves: Leaves::new(), tree: Tree::default(), limit: VALUE_LIMIT }
    }
}

/// Adds the functions on containers.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    class::add(module)?;
    several::add(module)
}

/// Flattens one value.
///
/// # Errors
/// An object that is neither a leaf nor static nor a container; `op` is for the message.
pub(crate) fn flatten<'py>(op: &str, mode: Mode, value: &Bound<'py, PyAny>) -> Fallible<Flat<'py>> {
    let mut flat = Flat::default();
    flat.push(op, mode, value)?;
    Ok(flat)
}

/// As [`flatten`], with at most `limit` values.
///
/// # Errors
/// As [`flatten`], and a container of more values.
pub(crate) fn flatten_within<'py>(
    op: &str,
    mode: Mode,
    value: &Bound<'py, PyAny>,
    limit: usize,
) -> Fallible<Flat<'py>> {
    let mut flat = Flat { limit, ..Flat::default() };
    flat.push(op, mode, value)?;
    Ok(flat)
}

/// The kind of a value that a function reads without being passed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// A tensor or an array.
    Leaf,
    /// A value that is static.
    Plain,
    Function,
    Container,
    /// Any other object, which may have attributes.
    Object,
}

/// The kind of a value.
pub(crate) fn sort(value: &Bound<'_, PyAny>) -> Fallible<Sort> {
    if value.is_exact_instance_of::<PyTensor>() {
        return Ok(Sort::Leaf);
    }
    if value.is_none() {
        return Ok(Sort::Plain);
    }
    if value.is_instance_of::<PyTuple>()
        || value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyDict>()
        || value.is_exact_instance_of::<PySet>()
    {
        return Ok(Sort::Container);
    }
    if value.is_instance_of::<PyType>() {
        return Ok(Sort::Object);
    }
    Ok(match &*class::of(&value.get_type())? {
        Class::Array | Class::Foreign => Sort::Leaf,
        Class::Number => Sort::Plain,
        Class::Function => Sort::Function,
        Class::Plain if has_call(&value.get_type()) && !is_enum(&value.get_type())? => Sort::Object,
        Class::Plain => Sort::Plain,
        Class::Named | Class::Mapping | Class::Object(_) | Class::Registered { .. } => Sort::Container,
        Class::Unknown => Sort::Object,
    })
}

/// Whether a container's parts are attributes.
pub(crate) fn has_fields(value: &Bound<'_, PyAny>) -> Fallible<bool> {
    if value.is_instance_of::<PyType>() {
        return Ok(false);
    }
    Ok(match &*class::of(&value.get_type())? {
        Class::Named | Class::Object(_) | Class::Registered { .. } => true,
        Class::Array
        | Class::Foreign
        | Class::Number
        | Class::Function
        | Class::Plain
        | Class::Mapping
        | Class::Unknown => false,
    })
}

impl<'py> Flat<'py> {
    /// Flattens a value and appends the result.
    pub(crate) fn push(&mut self, op: &str, mode: Mode, value: &Bound<'py, PyAny>) -> Fallible<()> {
        self.flatten_value(op, mode, value, 0)
    }

    /// Begins a tuple; its items are pushed next.
    pub(crate) fn begin_tuple(&mut self, length: usize) {
        self.tree.node(Tag::Tuple, length);
    }

    /// Whether this is a call whose positional arguments are all leaves, without keyword arguments.
    pub(crate) fn is_leaves(&self) -> bool {
        self.tree.is_call_of(self.leaves.len())
    }

    /// Begins a dict; its values are pushed next.
    pub(crate) fn begin_dict(&mut self, keys: impl ExactSizeIterator<Item = Bound<'py, PyAny>>) {
        self.tree.node(Tag::Dict, keys.len());
        keys.for_each(|key| self.tree.push_object(AuxObject::Value(key.unbind())));
    }

    fn leaf(&mut self, value: &Bound<'py, PyAny>) {
        self.tree.node(Tag::Leaf, 0);
        self.leaves.push(value.clone());
    }

    /// A part that only its own object equals.
    fn identity(&mut self, value: &Bound<'py, PyAny>) {
        self.tree.node(Tag::Static, 0);
        self.tree.push_object(AuxObject::Identity(value.clone().unbind()));
    }

    fn constant(&mut self, value: &Bound<'py, PyAny>) {
        self.tree.node(Tag::Static, 0);
        self.tree.push_object(AuxObject::Value(value.clone().unbind()));
    }

    fn flatten_value(
        &mut self,
        op: &str,
        mode: Mode,
        value: &Bound<'py, PyAny>,
        depth: usize,
    ) -> Fallible<()> {
        if depth > DEPTH_LIMIT || !stack::has_stack() {
            let op = if mode == Mode::State { "container" } else { "jit" };
            // At depth 0 nothing is nested yet: the limit was reached because the thread's stack is too
            // small.
            if depth == 0 {
                stack::require(op)?;
            }
            return Err(Misuse::TooDeep { op, limit: depth.min(DEPTH_LIMIT) }.into());
        }
        if self.tree.len() >= self.limit {
            let op = if mode == Mode::State { "container" } else { "jit" };
            return Err(Misuse::TooManyValues { op, limit: self.limit }.into());
        }
        if value.is_exact_instance_of::<PyTensor>() {
            match mode {
                Mode::Static => self.identity(value),
                Mode::Inputs | Mode::Receiver | Mode::Options | Mode::Environment | Mode::State => {
                    self.leaf(value)
                }
            }
            return Ok(());
        }
        if value.is_exact_instance_of::<PyFloat>() || value.is_exact_instance_of::<PyInt>() {
            match mode {
                Mode::Inputs | Mode::Receiver | Mode::State => self.leaf(value),
                Mode::Options | Mode::Static | Mode::Environment => self.constant(value),
            }
            return Ok(());
        }
        if let Ok(tuple) = value.cast_exact::<PyTuple>() {
            self.tree.node(Tag::Tuple, tuple.len());
            // Tuples are immutable, so no snapshot is needed.
            return tuple.iter().try_for_each(|item| self.flatten_value(op, mode, &item, depth + 1));
        }
        if let Ok(dict) = value.cast_exact::<PyDict>() {
            return self.flatten_dict(op, mode, dict, depth);
        }
        if let Ok(list) = value.cast_exact::<PyList>() {
            // A snapshot: the code of a registered container may change the list.
            let items: Leaves<'py> = list.iter().collect();
            self.tree.node(Tag::List, items.len());
            return items.iter().try_for_each(|item| self.flatten_value(op, mode, item, depth + 1));
        }
        if value.is_none()
            || value.is_exact_instance_of::<PyBool>()
            || value.is_exact_instance_of::<PyString>()
        {
            self.constant(value);
            return Ok(());
        }
        self.flatten_object(op, mode, value, depth)
    }

    fn flatten_dict(
        &mut self,
        op: &str,
        mode: Mode,
        dict: &Bound<'py, PyDict>,
        depth: usize,
    ) -> Fallible<()> {
        // A snapshot, as for a list. Collecting runs no Python code, so that the dict cannot change
        // meanwhile.
        let mut items: SmallVec<[Bound<'py, PyAny>; 16]> = SmallVec::with_capacity(dict.len());
        self.tree.node(Tag::Dict, dict.len());
        self.leaves.reserve(dict.len());
        for (key, item) in dict.iter() {
            self.tree.push_object(AuxObject::Value(key.unbind()));
            items.push(item);
        }
        items.iter().try_for_each(|item| self.flatten_value(op, mode, item, depth + 1))
    }

    fn flatten_object(
        &mut self,
        op: &str,
        mode: Mode,
        value: &Bound<'py, PyAny>,
        depth: usize,
    ) -> Fallible<()> {
        let py = value.py();
        let class = class::of(&value.get_type())?;
        match &*class {
            Class::Number => match mode {
                Mode::Inputs | Mode::Receiver | Mode::State => self.leaf(value),
                Mode::Options | Mode::Static | Mode::Environment => self.constant(value),
            },
            Class::Array => match mode {
                Mode::Inputs | Mode::Receiver | Mode::Options | Mode::State => self.leaf(value),
                Mode::Environment => self.identity(value),
                Mode::Static => self.constant(value),
            },
            Class::Function => {
                self.tree.node(Tag::Static, 0);
                self.tree.push_object(AuxObject::Function(value.clone().unbind()));
            }
            Class::Plain if mode == Mode::Environment && value.is_exact_instance_of::<PySet>() => {
                // A set is mutable, so a frozen copy is held.
                let items: Vec<Bound<'py, PyAny>> = value.try_iter()?.collect::<PyResult<_>>()?;
                self.constant(PyFrozenSet::new(py, items)?.as_any());
            }
            Class::Plain => self.constant(value),
            Class::Named => {
                let tuple = value.cast::<PyTuple>()?;
                self.tree.node(Tag::Named, tuple.len());
                self.tree.push_object(AuxObject::Identity(value.get_type().into_any().unbind()));
                tuple.iter().try_for_each(|item| self.flatten_value(op, mode, &item, depth + 1))?;
            }
            Class::Mapping => {
                self.tree.node(Tag::Mapping, 0);
                self.tree.push_object(class::constructor(value)?);
                self.flatten_dict(op, mode, &entries_of(value)?, depth)?;
            }
            Class::Object(fields) => {
                self.tree.node(Tag::Object, fields.len());
                self.tree.push_object(AuxObject::Identity(value.get_type().into_any().unbind()));
                for field in fields {
                    let item = value.getattr(field.name.bind(py))?;
                    let mode = if field.is_static { Mode::Static } else { mode };
                    self.flatten_value(op, mode, &item, depth + 1)?;
                }
            }
            Class::Registered { flatten, .. } => {
                let (children, data): (Bound<'py, PyAny>, Bound<'py, PyAny>) =
                    flatten.bind(py).call1((value,))?.extract()?;
                let children: Leaves<'py> = children.try_iter()?.collect::<PyResult<_>>()?;
                self.tree.node(Tag::Registered, children.len());
                self.tree.push_object(AuxObject::Identity(value.get_type().into_any().unbind()));
                self.tree.push_object(AuxObject::Value(data.unbind()));
                let has_leaves = match mode {
                    Mode::Inputs | Mode::Receiver | Mode::Options | Mode::State => true,
                    Mode::Static | Mode::Environment => false,
                };
                for child in &children {
                    // The function is called when its tensor is needed.
                    if has_leaves && lazy::takes_nothing(child)? {
                        self.leaf(Bound::new(py, PyLazy::of(child))?.as_any());
                    } else {
                        self.flatten_value(op, mode, child, depth + 1)?;
                    }
                }
            }
            Class::Foreign => match mode {
                Mode::Inputs | Mode::Receiver | Mode::Options | Mode::State => match exported_array(value)? {
                    Some(array) => self.leaf(&array),
                    None => return Err(not_a_container(op, value)?),
                },
                Mode::Environment => self.identity(value),
                Mode::Static => self.constant(value),
            },
            Class::Unknown => match mode {
                Mode::Options | Mode::Static => self.constant(value),
                Mode::Environment | Mode::Receiver => self.identity(value),
                Mode::Inputs | Mode::State => return Err(not_a_container(op, value)?),
            },
        }
        Ok(())
    }
}

fn not_a_container(op: &str, value: &Bound<'_, PyAny>) -> Fallible<crate::error::Fault> {
    let got = value.get_type().name()?.to_string();
    Ok(Misuse::NotAContainer { op: op.to_owned(), path: "a value".to_owned(), got }.into())
}

/// The entries of a mapping, as a dict.
pub(super) fn entries_of<'py>(value: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyDict>> {
    if let Ok(dict) = value.cast::<PyDict>() {
        return Ok(dict.clone());
    }
    let dict = value.py().get_type::<PyDict>().call1((value,))?;
    Ok(dict.cast_into::<PyDict>().map_err(PyErr::from)?)
}

/// The array of NumPy, or the tensor, that an object of another library exports.
fn exported_array<'py>(value: &Bound<'py, PyAny>) -> Fallible<Option<Bound<'py, PyAny>>> {
    if dlpack::is_offered(value)? {
        let tensor = build::from_array(value, None, &backends::default()?)?;
        let tensor = tensor.map(|tensor| Bound::new(value.py(), PyTensor::new(tensor))).transpose()?;
        return Ok(tensor.map(Bound::into_any));
    }
    Ok(array::find(value)?.map(Bound::into_any))
}

/// Classifies the class of an object that is not a builtin container.
fn classify(class: &Bound<'_, pyo3::types::PyType>) -> Fallible<Class> {
    let py = class.py();
    if class.is_subclass_of::<PyBool>()? || class.is_subclass_of::<PyString>()? {
        return Ok(Class::Plain);
    }
    if array::is_scalar_class(class)
        || class.is_subclass_of::<numpy::PyUntypedArray>()?
        || class.is_subclass_of::<PySharded>()?
        || class.is_subclass_of::<PyLazy>()?
    {
        return Ok(Class::Array);
    }
    let is_plain = class.is_subclass_of::<PyBytes>()?
        || class.is_subclass_of::<PyRange>()?
        || class.is_subclass_of::<PyFrozenSet>()?
        || class.is_subclass_of::<PySet>()?
        || class.is_subclass_of::<numpy::PyArrayDescr>()?;
    if is_plain {
        return Ok(Class::Plain);
    }
    if is_enum(class)?
        || class.is_subclass_of::<PyDType>()?
        || class.is_subclass_of::<pyo3::types::PyType>()?
    {
        return Ok(Class::Plain);
    }
    if class.is_subclass_of::<PyInt>()?
        || class.is_subclass_of::<PyFloat>()?
        || class.is_subclass_of::<PyComplex>()?
    {
        return Ok(Class::Number);
    }
    if class.is_subclass_of::<PyFunction>()? {
        return Ok(Class::Function);
    }
    if class.is_subclass_of::<PyTuple>()? && class.hasattr(intern!(py, "_fields"))? {
        return Ok(Class::Named);
    }
    if let Some(fields) = class::fields(class)? {
        return Ok(Class::Object(fields));
    }
    if is_mapping(class)? {
        return Ok(Class::Mapping);
    }
    if lends(class)? {
        return Ok(Class::Foreign);
    }
    Ok(if has_call(class) { Class::Plain } else { Class::Unknown })
}

fn is_mapping(class: &Bound<'_, PyType>) -> PyResult<bool> {
    if class.is_subclass_of::<PyDict>()? {
        return Ok(true);
    }
    let py = class.py();
    class.is_subclass(&py.import("collections.abc")?.getattr(intern!(py, "Mapping"))?)
}

/// Whether objects of a class export their elements as an array.
fn lends(class: &Bound<'_, PyType>) -> PyResult<bool> {
    // SAFETY: the class is alive; the slot is only compared with null.
    let is_buffer = unsafe { !ffi::PyType_GetSlot(class.as_type_ptr(), ffi::Py_bf_getbuffer).is_null() };
    if is_buffer {
        return Ok(true);
    }
    for protocol in ["__array__", "__array_interface__", "__dlpack__"] {
        if class.hasattr(protocol)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_enum(class: &Bound<'_, PyType>) -> PyResult<bool> {
    let py = class.py();
    class.is_subclass(&py.import("enum")?.getattr(intern!(py, "Enum"))?)
}

/// Whether objects of a class can be called.
fn has_call(class: &Bound<'_, PyType>) -> bool {
    // SAFETY: the class is alive; the slot is only compared with null.
    unsafe { !ffi::PyType_GetSlot(class.as_type_ptr(), ffi::Py_tp_call).is_null() }
}
