//! Conversion of containers to and from the format of `serialize`.

use defn_core::format::Array;
use defn_core::format::native::{Form, MAX_DEPTH, Object, Value};
use defn_core::{ErrorKind, stack};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyComplex, PyComplexMethods, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType,
};

use super::class::{self, Class};
use super::{AuxObject, entries_of, tree};
use crate::convert;
use crate::dtype::{self, PyDType};
use crate::error::Fallible;
use crate::misuse::Misuse;
use crate::tensor::PyTensor;

const WRITE: &str = "serialize";
const READ: &str = "deserialize";

/// What becomes of Python's numbers where a container may have tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// They become tensors of the default dtypes.
    Tensors,
    /// They stay numbers, with all their digits.
    Kept,
}

/// A value in stored form: tensors, arrays and numbers become tensors, containers stay containers, other
/// values are stored unchanged.
///
/// # Errors
/// Values of other kinds, tensors without elements, and containers that are nested too deep.
pub(crate) fn to_value(value: &Bound<'_, PyAny>, numbers: Numbers) -> Fallible<Value> {
    store(value, numbers, 0)
}

fn store(value: &Bound<'_, PyAny>, numbers: Numbers, depth: usize) -> Fallible<Value> {
    stack::require(WRITE)?;
    if depth > MAX_DEPTH {
        return Err(Misuse::TooDeep { op: WRITE, limit: MAX_DEPTH }.into());
    }
    let next = depth + 1;
    if let Ok(tensor) = value.cast_exact::<PyTensor>() {
        return Ok(Value::Tensor(Box::new(Array::of(WRITE, &tensor.get().tensor)?)));
    }
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        return Ok(Value::Tuple(
            tuple.iter().map(|item| store(&item, numbers, next)).collect::<Fallible<_>>()?,
        ));
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        // A snapshot: the code of a registered container may change the list.
        let items: Vec<Bound<'_, PyAny>> = list.iter().collect();
        return Ok(Value::List(
            items.iter().map(|item| store(item, numbers, next)).collect::<Fallible<_>>()?,
        ));
    }
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        return entries(dict, |item| store(item, numbers, next), next);
    }
    if value.is_none() || value.is_instance_of::<PyBool>() || value.is_exact_instance_of::<PyString>() {
        return constant(value, depth);
    }
    let class = value.get_type();
    let kind = class::of(&class)?;
    match &*kind {
        Class::Number if numbers == Numbers::Kept && is_python_number(value) => constant(value, depth),
        Class::Number | Class::Array | Class::Foreign => leaf(value),
        Class::Plain | Class::Function | Class::Unknown => constant(value, depth),
        Class::Named => {
            let parts =
                value.cast::<PyTuple>()?.iter().map(|item| Ok((String::new(), store(&item, numbers, next)?)));
            object(&class, Form::Named, parts.collect::<Fallible<_>>()?)
        }
        // The default factory of its entries is a function, which is not stored.
        Class::Mapping if matches!(class::constructor(value)?, AuxObject::Value(_)) => constant(value, depth),
        Class::Mapping => {
            let dict = entries(&entries_of(value)?, |item| store(item, numbers, next), next)?;
            object(&class, Form::Ordered, vec![(String::new(), dict)])
        }
        Class::Object(fields) => {
            let mut parts = Vec::with_capacity(fields.len());
            for field in fields {
                let name = field.name.bind(value.py());
                let item = value.getattr(name)?;
                let stored =
                    if field.is_static { constant(&item, next)? } else { store(&item, numbers, next)? };
                parts.push((name.to_string(), stored));
            }
            object(&class, Form::Fields, parts)
        }
        Class::Registered { flatten, .. } => {
            let (children, rest): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
                flatten.bind(value.py()).call1((value,))?.extract()?;
            let children: Vec<Bound<'_, PyAny>> = children.try_iter()?.collect::<PyResult<_>>()?;
            let mut parts = vec![(String::new(), constant(&rest, next)?)];
            for child in &children {
                parts.push((String::new(), store(child, numbers, next)?));
            }
            object(&class, Form::Registered, parts)
        }
    }
}

/// Whether this is a number of Python itself. NumPy's scalars have dtypes, which tensors keep.
fn is_python_number(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyComplex>()
}

/// A number or an array, as a tensor.
fn leaf(value: &Bound<'_, PyAny>) -> Fallible<Value> {
    Ok(Value::Tensor(Box::new(Array::of(WRITE, &convert::tensor(WRITE, value)?)?)))
}

fn entries(
    dict: &Bound<'_, PyDict>,
    mut item: impl FnMut(&Bound<'_, PyAny>) -> Fallible<Value>,
    depth: usize,
) -> Fallible<Value> {
    let snapshot: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)> = dict.iter().collect();
    let entry =
        |(key, value): &(Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((constant(key, depth)?, item(value)?));
    Ok(Value::Dict(snapshot.iter().map(entry).collect::<Fallible<_>>()?))
}

/// A value of a class. The class must be reachable by its name.
fn object(class: &Bound<'_, PyType>, form: Form, parts: Vec<(String, Value)>) -> Fallible<Value> {
    let (module, name) = (class.module()?.to_string(), class.qualname()?.to_string());
    let found = find(class.py(), &module, &name)?;
    if !found.is_some_and(|found| found.is(class)) {
        return Err(Misuse::ClassPlace { class: format!("{module}.{name}") }.into());
    }
    Ok(Value::Object(Box::new(Object { module, class: name, form, parts })))
}

/// The class with this name in a module that is already imported. The look-up imports nothing and computes no
/// attribute.
fn find<'py>(py: Python<'py>, module: &str, name: &str) -> Fallible<Option<Bound<'py, PyType>>> {
    let modules =
        py.import("sys")?.getattr(intern!(py, "modules"))?.cast_into::<PyDict>().map_err(PyErr::from)?;
    let Some(mut namespace) = modules.get_item(module)? else {
        return Ok(None);
    };
    for part in name.split('.') {
        let names = namespace.getattr(intern!(py, "__dict__"))?;
        match names.get_item(part) {
            Ok(next) => namespace = next,
            Err(_) => return Ok(None),
        }
    }
    Ok(namespace.cast_into::<PyType>().ok())
}

/// A value that is not a tensor: plain Python values, dtypes, enum members, and collections of them.
fn constant(value: &Bound<'_, PyAny>, depth: usize) -> Fallible<Value> {
    stack::require(WRITE)?;
    if depth > MAX_DEPTH {
        return Err(Misuse::TooDeep { op: WRITE, limit: MAX_DEPTH }.into());
    }
    let (py, next) = (value.py(), depth + 1);
    if value.is_none() {
        return Ok(Value::None);
    }
    if value.is_exact_instance_of::<PyBool>() {
        return Ok(Value::Bool(value.is_truthy()?));
    }
    if value.is_exact_instance_of::<PyInt>() {
        let digits: String = value.call_method1(intern!(py, "__format__"), ("x",))?.extract()?;
        return Ok(Value::Integer(digits));
    }
    if let Ok(float) = value.cast_exact::<PyFloat>() {
        return Ok(Value::Float(float.value()));
    }
    if let Ok(complex) = value.cast_exact::<PyComplex>() {
        return Ok(Value::Complex(complex.real(), complex.imag()));
    }
    if let Ok(text) = value.cast_exact::<PyString>() {
        return Ok(Value::Text(text.to_str()?.to_owned()));
    }
    if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        return Ok(Value::Bytes(bytes.as_bytes().to_vec()));
    }
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        return Ok(Value::Tuple(tuple.iter().map(|item| constant(&item, next)).collect::<Fallible<_>>()?));
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        return Ok(Value::List(list.iter().map(|item| constant(&item, next)).collect::<Fallible<_>>()?));
    }
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        return entries(dict, |item| constant(item, next), next);
    }
    if let Ok(dtype) = value.cast_exact::<PyDType>() {
        let parts = vec![(String::new(), Value::Text(dtype.get().dtype.name().to_owned()))];
        return object(&value.get_type(), Form::Member, parts);
    }
    if is_enum(&value.get_type())? {
        let name: String = value.getattr(intern!(py, "name"))?.extract()?;
        return object(&value.get_type(), Form::Member, vec![(String::new(), Value::Text(name))]);
    }
    let got = value.get_type().name()?.to_string();
    Err(Misuse::NotStored { got }.into())
}

fn is_enum(class: &Bound<'_, PyType>) -> PyResult<bool> {
    class.is_subclass(&class.py().import("enum")?.getattr(intern!(class.py(), "Enum"))?)
}

/// A stored value as a Python object; `to_tensor` creates tensors.
///
/// # Errors
/// Classes that are missing or have changed.
pub(crate) fn from_value<'py>(
    py: Python<'py>,
    value: Value,
    to_tensor: &dyn Fn(Array) -> Fallible<PyTensor>,
) -> Fallible<Bound<'py, PyAny>> {
    let items = |items: Vec<Value>| -> Fallible<Vec<Bound<'py, PyAny>>> {
        items.into_iter().map(|item| from_value(py, item, to_tensor)).collect()
    };
    Ok(match value {
        Value::Tensor(array) => Bound::new(py, to_tensor(*array)?)?.into_any(),
        Value::Tuple(parts) => PyTuple::new(py, items(parts)?)?.into_any(),
        Value::List(parts) => PyList::new(py, items(parts)?)?.into_any(),
        Value::Dict(entries) => {
            let dict = PyDict::new(py);
            for (key, item) in entries {
                let key = from_value(py, key, to_tensor)?;
                if key.hash().is_err() {
                    return Err(damaged("a key of a dict cannot be one"));
                }
                dict.set_item(key, from_value(py, item, to_tensor)?)?;
            }
            dict.into_any()
        }
        Value::Object(object) => make(py, *object, to_tensor)?,
        Value::None => py.None().into_bound(py),
        Value::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
        Value::Integer(digits) => py.get_type::<PyInt>().call1((digits, 16))?,
        Value::Float(value) => PyFloat::new(py, value).into_any(),
        Value::Complex(re, im) => PyComplex::from_doubles(py, re, im).into_any(),
        Value::Text(text) => PyString::new(py, &text).into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, &bytes).into_any(),
    })
}

fn damaged(problem: &str) -> crate::error::Fault {
    let required = "the bytes must be as serialize gave them; they are cut short or damaged".to_owned();
    ErrorKind::Malformed { op: READ, problem: problem.to_owned(), required }.into()
}

fn make<'py>(
    py: Python<'py>,
    object: Object,
    to_tensor: &dyn Fn(Array) -> Fallible<PyTensor>,
) -> Fallible<Bound<'py, PyAny>> {
    let Object { module, class: name, form, parts } = object;
    let text = format!("{module}.{name}");
    let Some(class) = find(py, &module, &name)? else {
        return Err(Misuse::ClassMissing { class: text }.into());
    };
    let changed = || -> crate::error::Fault { Misuse::ClassChanged { class: text.clone() }.into() };
    let (names, values): (Vec<String>, Vec<Value>) = parts.into_iter().unzip();
    let values: Vec<Bound<'py, PyAny>> =
        values.into_iter().map(|value| from_value(py, value, to_tensor)).collect::<Fallible<_>>()?;
    if form == Form::Member {
        let [name] = &values[..] else { return Err(damaged("a member has no name")) };
        if class.is(py.get_type::<PyDType>()) {
            return Ok(dtype::object(py, dtype::parse(name)?)?.clone().into_any());
        }
        // Only enum classes are indexed: the `[]` of other classes may run arbitrary code.
        return if is_enum(&class)? { class.get_item(name).map_err(|_| changed()) } else { Err(changed()) };
    }
    match (&*class::of(&class)?, form) {
        (Class::Object(fields), Form::Fields) => {
            let field_names = fields.iter().map(|field| field.name.bind(py).to_string());
            if !field_names.eq(names.iter().cloned()) {
                return Err(changed());
            }
            tree::rebuild(&class, values)
        }
        (Class::Named, Form::Named) => {
            let fields: Vec<Bound<'py, PyAny>> = class.getattr(intern!(py, "_fields"))?.extract()?;
            if fields.len() != values.len() {
                return Err(changed());
            }
            Ok(class.call_method1(intern!(py, "_make"), (values,))?)
        }
        (Class::Mapping, Form::Ordered) => match &values[..] {
            [dict] if dict.is_exact_instance_of::<PyDict>() => {
                class::mapping_of_dict(class.as_any(), dict.clone())
            }
            _ => Err(damaged("an ordered dict holds none")),
        },
        (Class::Registered { unflatten, .. }, Form::Registered) => {
            let Some((rest, children)) = values.split_first() else {
                return Err(damaged("a registered container has no parts"));
            };
            Ok(unflatten.bind(py).call1((rest, PyList::new(py, children)?))?)
        }
        _ => Err(changed()),
    }
}
