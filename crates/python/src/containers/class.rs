//! The cached classification of classes: fields are looked up once, and registered classes are stored here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use rustc_hash::FxHashMap;

use super::{AuxObject, Flat, Mode, Tree, classify, flatten};
use crate::annotations::{self, StaticDeclarations};
use crate::error::{Fallible, guard, if_there};
use crate::lazy;
use crate::misuse::Misuse;
use crate::tensor::PyTensor;

/// How objects of a class are flattened.
pub(crate) enum Class {
    /// A subclass of `int`, `float` or `complex`.
    Number,
    /// A NumPy array or scalar, or an object that represents a tensor.
    Array,
    /// An object that exports an array: a tensor of another library, a column of a table, a buffer.
    Foreign,
    /// A Python function. It equals functions with the same code and environment.
    Function,
    /// A value that is static in every mode.
    Plain,
    /// A named tuple.
    Named,
    /// A mapping whose constructor takes a dict, such as `OrderedDict`.
    Mapping,
    /// A dataclass or an attrs class.
    Object(Vec<Field>),
    /// A class that the user has registered.
    Registered { flatten: Py<PyAny>, unflatten: Py<PyAny> },
    /// Anything else.
    Unknown,
}

impl Class {
    /// The fields of a dataclass or an attrs class; none of others.
    pub(crate) fn fields(&self) -> &[Field] {
        match self {
            Class::Object(fields) => fields,
            Class::Number
            | Class::Array
            | Class::Foreign
            | Class::Function
            | Class::Plain
            | Class::Named
            | Class::Mapping
            | Class::Registered { .. }
            | Class::Unknown => &[],
        }
    }
}

/// A field of a dataclass or an attrs class.
pub(crate) struct Field {
    pub(crate) name: Py<PyString>,
    pub(crate) is_static: bool,
}

/// A class, kept alive so that its address is not reused.
struct CachedClass {
    _class: Py<PyType>,
    kind: Arc<Class>,
}

/// The lock is held only for look-ups and insertions; no Python code runs meanwhile.
static CLASSES: Mutex<Option<FxHashMap<usize, CachedClass>>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<FxHashMap<usize, CachedClass>>> {
    CLASSES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The classification of a class.
pub(super) fn of(class: &Bound<'_, PyType>) -> Fallible<Arc<Class>> {
    let address = class.as_ptr() as usize;
    if let Some(cached) = lock().get_or_insert_default().get(&address) {
        return Ok(cached.kind.clone());
    }
    let kind = Arc::new(classify(class)?);
    Ok(insert(class, kind))
}

fn insert(class: &Bound<'_, PyType>, kind: Arc<Class>) -> Arc<Class> {
    let cached = CachedClass { _class: class.clone().unbind(), kind: kind.clone() };
    let before = lock().get_or_insert_default().insert(class.as_ptr() as usize, cached);
    // Dropped after the lock is released.
    drop(before);
    kind
}

/// The fields of a dataclass or an attrs class; `None` for other classes.
pub(super) fn fields(class: &Bound<'_, PyType>) -> Fallible<Option<Vec<Field>>> {
    let py = class.py();
    let dataclass = class.getattr_opt(intern!(py, "__dataclass_fields__"))?;
    let entries = if dataclass.is_some() {
        py.import("dataclasses")?.call_method1(intern!(py, "fields"), (class,))?
    } else if let Some(attributes) = class.getattr_opt(intern!(py, "__attrs_attrs__"))? {
        attributes
    } else {
        return Ok(None);
    };
    let listed: Vec<Bound<'_, PyAny>> = entries.try_iter()?.collect::<PyResult<_>>()?;
    let mut named = Vec::new();
    for entry in &listed {
        let metadata = entry.getattr(intern!(py, "metadata"))?;
        if metadata.call_method1(intern!(py, "get"), ("static", false))?.is_truthy()? {
            named.push(entry.getattr(intern!(py, "name"))?.extract::<String>()?);
        }
    }
    let is_named = |name: &str| named.iter().any(|known| known == name);
    let advice = ("give the field ", " metadata={\"static\": True}");
    let hints =
        annotations::resolve(class, &StaticDeclarations { op: "container", advice, is_marked: &is_named })?;
    let mut fields = Vec::new();
    for entry in listed {
        let name = entry.getattr(intern!(py, "name"))?.cast_into::<PyString>().map_err(PyErr::from)?;
        let declared = match hints.get_item(&name)? {
            Some(declared) => declared,
            None => entry.getattr(intern!(py, "type"))?,
        };
        let is_static = is_named(name.to_str()?) || is_marked(&declared)?;
        fields.push(Field { name: name.unbind(), is_static });
    }
    Ok(Some(fields))
}

/// The constructor of mappings of this kind: the class, and for a `defaultdict` also its default factory.
pub(super) fn constructor(value: &Bound<'_, PyAny>) -> PyResult<AuxObject> {
    let class = value.get_type().into_any();
    let default = value.py().import("collections")?.getattr(intern!(value.py(), "defaultdict"))?;
    if !value.is_instance(&default)? {
        return Ok(AuxObject::Identity(class.unbind()));
    }
    let factory = value.getattr(intern!(value.py(), "default_factory"))?;
    Ok(AuxObject::Value(PyTuple::new(value.py(), [class, factory])?.into_any().unbind()))
}

/// The class of such a constructor.
pub(super) fn class_of_constructor<'py>(constructor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyType>> {
    match constructor.cast::<PyTuple>() {
        Ok(parts) => Ok(parts.get_item(0)?.cast_into::<PyType>()?),
        Err(_) => Ok(constructor.clone().cast_into::<PyType>()?),
    }
}

/// A mapping built by such a constructor from the entries of a dict.
///
/// # Errors
/// A class whose constructor takes other arguments.
pub(super) fn mapping_of_dict<'py>(
    constructor: &Bound<'py, PyAny>,
    dict: Bound<'py, PyAny>,
) -> Fallible<Bound<'py, PyAny>> {
    let class = class_of_constructor(constructor)?;
    let mapping = match constructor.cast::<PyTuple>() {
        Ok(parts) => class.call1((parts.get_item(1)?, dict)),
        Err(_) => class.call1((dict,)),
    };
    match if_there(class.py(), mapping)? {
        Some(mapping) => Ok(mapping),
        None => Err(Misuse::MappingClass { class: class.name()?.to_string() }.into()),
    }
}

/// Whether an annotation is `Static[...]`.
pub(crate) fn is_marked(annotation: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = annotation.py();
    let Some(metadata) = annotation.getattr_opt(intern!(py, "__metadata__"))? else {
        return Ok(false);
    };
    let marker = static_marker(py)?;
    for entry in metadata.try_iter()? {
        if entry?.is(&marker) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The object that marks an annotation as static.
#[pyfunction]
pub(crate) fn static_marker(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static MARKER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let make = || Ok::<_, PyErr>(py.get_type::<Marker>().call0()?.unbind());
    Ok(MARKER.get_or_try_init(py, make)?.bind(py).clone())
}

/// The class of the marker.
#[pyclass(frozen, name = "StaticMarker", module = "defn._core")]
struct Marker;

#[pymethods]
impl Marker {
    #[new]
    fn new() -> Marker {
        Marker
    }

    fn __repr__(&self) -> &'static str {
        "static"
    }
}

/// Registers how objects of a class are flattened and rebuilt.
#[pyfunction]
#[pyo3(name = "register_container")]
pub(crate) fn register(
    class: &Bound<'_, PyType>,
    flatten: Bound<'_, PyAny>,
    unflatten: Bound<'_, PyAny>,
) -> Fallible<()> {
    guard(|| {
        let is_builtin = [class.py().get_type::<PyTuple>(), class.py().get_type::<PyList>()]
            .into_iter()
            .chain([class.py().get_type::<PyDict>()])
            .any(|known| class.is(&known));
        if is_builtin {
            return Err(Misuse::KnownContainer { got: class.name()?.to_string() }.into());
        }
        let is_known = lock()
            .get_or_insert_default()
            .get(&(class.as_ptr() as usize))
            .is_some_and(|cached| matches!(*cached.kind, Class::Registered { .. }));
        if is_known {
            return Err(Misuse::KnownContainer { got: class.name()?.to_string() }.into());
        }
        let kind = Class::Registered { flatten: flatten.unbind(), unflatten: unflatten.unbind() };
        insert(class, Arc::new(kind));
        Ok(())
    })
}

/// The structure of a container, as a Python object.
#[pyclass(frozen, name = "Structure", module = "defn._core")]
pub(crate) struct Structure {
    tree: Tree,
    leaves: usize,
}

impl Structure {
    pub(crate) fn new(tree: Tree, leaves: usize) -> Structure {
        Structure { tree, leaves }
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }
}

#[pymethods]
impl Structure {
    /// The number of leaves.
    #[getter]
    fn leaf_count(&self) -> usize {
        self.leaves
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.tree.text(py)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<Structure>() {
            Ok(other) => self.tree.equals(other.py(), &other.get().tree),
            Err(_) => Ok(false),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> Fallible<u64> {
        self.tree.hash(py, "container")
    }
}

/// The leaves of a container and its structure.
#[pyfunction]
fn flatten_container<'py>(value: &Bound<'py, PyAny>) -> Fallible<(Bound<'py, PyList>, Bound<'py, PyAny>)> {
    guard(|| {
        let py = value.py();
        let Flat { leaves, tree, .. } = flatten("container", Mode::State, value)?;
        let structure = Structure::new(tree, leaves.len());
        let leaves = leaves.into_iter().map(read).collect::<Fallible<Vec<_>>>()?;
        Ok((PyList::new(py, leaves)?, Bound::new(py, structure)?.into_any()))
    })
}

/// The structure of a container. Leaves that represent tensors are not evaluated.
#[pyfunction]
fn container_structure(value: &Bound<'_, PyAny>) -> Fallible<Structure> {
    guard(|| {
        let Flat { leaves, tree, .. } = flatten("container", Mode::State, value)?;
        Ok(Structure::new(tree, leaves.len()))
    })
}

/// A leaf as container functions receive it: a lazy leaf is evaluated.
pub(super) fn read(leaf: Bound<'_, PyAny>) -> Fallible<Bound<'_, PyAny>> {
    match lazy::of(&leaf) {
        Some(found) => {
            let tensor = PyTensor::new(found.get().read(leaf.py())?);
            Ok(Bound::new(leaf.py(), tensor)?.into_any())
        }
        None => Ok(leaf),
    }
}

/// Builds a container from a structure and leaves.
#[pyfunction]
fn unflatten_container<'py>(
    structure: &Bound<'py, Structure>,
    leaves: Vec<Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyAny>> {
    guard(|| {
        let (given, expected) = (leaves.len(), structure.get().leaves);
        if given != expected {
            return Err(Misuse::LeafCount { op: "rebuild", given, expected }.into());
        }
        structure.get().tree.unflatten(structure.py(), &mut leaves.into_iter())
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Structure>()?;
    module.add_function(wrap_pyfunction!(static_marker, module)?)?;
    module.add_function(wrap_pyfunction!(register, module)?)?;
    module.add_function(wrap_pyfunction!(flatten_container, module)?)?;
    module.add_function(wrap_pyfunction!(container_structure, module)?)?;
    module.add_function(wrap_pyfunction!(unflatten_container, module)?)
}
