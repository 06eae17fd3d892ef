//! Conversion of Python arguments for the core: operands, axes, shapes, names.

use defn_core::builder::Arg;
use defn_core::scalar::Scalar;
use defn_core::{Axes, AxisRef, DType, ErrorKind, Name, Number, Shape, Tensor};
use pyo3::exceptions::PyOverflowError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::array;
use crate::backends;
use crate::build;
use crate::containers;
use crate::error::{Fallible, if_fits};
use crate::lazy;
use crate::misuse::Misuse;
use crate::shard::{self, PySharded};
use crate::tensor::PyTensor;

/// The value of a Python number or bool. NumPy scalars count as tensors, not as numbers.
pub(crate) fn number(value: &Bound<'_, PyAny>) -> Fallible<Option<Number>> {
    // `np.float64` is a subclass of `float`, so exact types are tested first, and NumPy scalars are excluded
    // afterwards.
    if value.is_exact_instance_of::<PyFloat>() {
        return Ok(Some(Number::Float(value.extract()?)));
    }
    if value.is_exact_instance_of::<PyInt>() {
        return integer(value).map(Some);
    }
    if value.is_exact_instance_of::<PyBool>() {
        return Ok(Some(Number::Bool(value.is_truthy()?)));
    }
    if value.is_exact_instance_of::<PyTensor>() {
        return Ok(None);
    }
    let is_number = value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyFloat>()
        || value.is_instance_of::<PyComplex>();
    if !is_number || array::is_scalar(value) {
        return Ok(None);
    }
    if value.is_instance_of::<PyInt>() {
        return integer(value).map(Some);
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Some(Number::Float(value.extract()?)));
    }
    let (re, im): (f64, f64) = (
        value.getattr(intern!(value.py(), "real"))?.extract()?,
        value.getattr(intern!(value.py(), "imag"))?.extract()?,
    );
    Ok(Some(Number::complex(re, im)))
}

/// An integer of any size: it may be combined with a float. Beyond i128 it becomes the nearest float.
fn integer(value: &Bound<'_, PyAny>) -> Fallible<Number> {
    // The value is an `int`, so reading it runs no user code.
    if let Ok(small) = value.extract::<i64>() {
        return Ok(Number::Int(i128::from(small)));
    }
    if let Ok(wide) = value.extract::<i128>() {
        return Ok(Number::Int(wide));
    }
    let py = value.py();
    match value.call_method0(intern!(py, "__float__")).and_then(|float| float.extract::<f64>()) {
        Ok(float) => Ok(Number::Huge(float)),
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => {
            Ok(Number::Huge(if value.lt(0)? { f64::NEG_INFINITY } else { f64::INFINITY }))
        }
        Err(error) => Err(error.into()),
    }
}

/// A number that becomes an element without an operand to take its dtype from.
///
/// # Errors
/// An integer that no element type can represent.
pub(crate) fn element(value: &Bound<'_, PyAny>) -> Fallible<Option<Number>> {
    let number = number(value)?;
    match number {
        Some(number) if DType::S64.lacks(number) && DType::U64.lacks(number) => {
            Err(Misuse::HugeInteger { value: value.str()?.to_string() }.into())
        }
        Some(_) | None => Ok(number),
    }
}

/// The tensor of an object that stands for one: its attribute `__defn_tensor__`. Arrays of `defn.array_api` have it.
pub(crate) fn stand_in<'py>(value: &Bound<'py, PyAny>) -> Fallible<Option<Bound<'py, PyTensor>>> {
    let tensor = value.getattr_opt(intern!(value.py(), "__defn_tensor__"))?;
    Ok(tensor.and_then(|tensor| tensor.cast_into::<PyTensor>().ok()))
}

/// An operand: a tensor, a weak number, or an array; `None` for any other object.
pub(crate) fn try_arg(value: &Bound<'_, PyAny>) -> Fallible<Option<Arg<Tensor>>> {
    if let Ok(tensor) = value.cast::<PyTensor>() {
        return Ok(Some(Arg::Value(tensor.get().tensor.clone())));
    }
    if let Some(number) = number(value)? {
        return Ok(Some(Arg::Number(number)));
    }
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyList>() {
        return Ok(None);
    }
    if let Ok(sharded) = value.cast::<PySharded>() {
        return Err(shard::refuse("tensor", sharded.get()));
    }
    if let Some(leaf) = lazy::of(value) {
        return Ok(Some(Arg::Value(leaf.get().read(value.py())?)));
    }
    if let Some(tensor) = stand_in(value)? {
        return Ok(Some(Arg::Value(tensor.get().tensor.clone())));
    }
    Ok(build::from_array(value, None, &backends::default()?)?.map(Arg::Value))
}

/// An operand of `op`.
///
/// # Errors
/// An object that is neither a tensor nor a number nor an array.
pub(crate) fn arg(op: &str, value: &Bound<'_, PyAny>) -> Fallible<Arg<Tensor>> {
    if let Ok(sharded) = value.cast_exact::<PySharded>() {
        return Err(shard::refuse(op, sharded.get()));
    }
    match try_arg(value)? {
        Some(arg) => Ok(arg),
        None => Err(not_a_tensor(op, value)?),
    }
}

pub(crate) fn not_a_tensor(op: &str, value: &Bound<'_, PyAny>) -> Fallible<crate::error::Fault> {
    let hint = if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        "; make a tensor of a list with dn.tensor, join tensors with dn.stack"
    } else {
        ""
    };
    let got = value.get_type().name()?.to_string();
    Ok(Misuse::NotATensor { op: op.to_owned(), got, hint }.into())
}

/// An operand as a tensor. A number becomes s32, f32 or c64.
pub(crate) fn tensor(op: &str, value: &Bound<'_, PyAny>) -> Fallible<Tensor> {
    match arg(op, value)? {
        Arg::Value(tensor) => Ok(tensor),
        Arg::Number(number) => {
            let dtype = number.dtype();
            build::check_range(number, dtype)?;
            build::scalar(Scalar::new(dtype, number)?)
        }
    }
}

/// An axis: a position or a name.
pub(crate) fn axis(op: &str, value: &Bound<'_, PyAny>) -> Fallible<AxisRef> {
    if let Ok(name) = value.cast::<PyString>() {
        return Ok(AxisRef::Name(Name::from(name.to_str()?)));
    }
    match index(value)? {
        Some(index) if !value.is_instance_of::<PyBool>() => Ok(AxisRef::Index(index)),
        Some(_) | None => Err(bad(op, "an axis", value, "an int or the name of an axis")?),
    }
}

/// Axes: all for `None`, else one axis or a sequence of axes.
pub(crate) fn axes(op: &str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Axes> {
    let Some(value) = value.filter(|value| !value.is_none()) else {
        return Ok(Axes::All);
    };
    if value.is_instance_of::<PyString>() || index(value)?.is_some() {
        return Ok(Axes::List(vec![axis(op, value)?]));
    }
    let Some(entries) = if_fits(value.py(), value.try_iter())? else {
        return Err(bad(op, "axes", value, "an axis or a sequence of axes")?);
    };
    let mut list = Vec::new();
    for entry in entries {
        list.push(axis(op, &entry?)?);
    }
    Ok(Axes::List(list))
}

/// Names, one entry for each axis.
pub(crate) fn names(op: &str, value: &Bound<'_, PyAny>) -> Fallible<Vec<Option<Name>>> {
    let required = "a sequence of one name or None for each axis";
    if value.is_instance_of::<PyString>() {
        return Err(bad(op, "names", value, required)?);
    }
    let Some(entries) = if_fits(value.py(), value.try_iter())? else {
        return Err(bad(op, "names", value, required)?);
    };
    let mut list = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.is_none() {
            list.push(None);
        } else if let Ok(name) = entry.cast::<PyString>() {
            list.push(Some(Name::from(name.to_str()?)));
        } else {
            return Err(bad(op, "an entry of names", &entry, "a str or None")?);
        }
    }
    Ok(list)
}

/// A shape with the given names, if any.
pub(crate) fn named(shape: Shape, op: &str, names: Option<&Bound<'_, PyAny>>) -> Fallible<Shape> {
    match names.filter(|names| !names.is_none()) {
        Some(list) => Ok(shape.with_names(self::names(op, list)?)?),
        None => Ok(shape),
    }
}

/// The value of an exact integer: an int, or an object with `__index__` that is not a tensor.
///
/// # Errors
/// Any error that its `__index__` raises.
pub(crate) fn index(value: &Bound<'_, PyAny>) -> Fallible<Option<i64>> {
    if value.is_instance_of::<PyTensor>() {
        return Ok(None);
    }
    // SAFETY: the object is alive and the thread attached.
    let has_index = unsafe { ffi::PyIndex_Check(value.as_ptr()) } != 0;
    if has_index { if_fits(value.py(), value.extract::<i64>()) } else { Ok(None) }
}

/// Tuples of `N` integers, one for each axis; `None` for anything else.
///
/// # Errors
/// Any error that methods of the objects raise.
pub(crate) fn tuples<T: for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr>, const N: usize>(
    value: &Bound<'_, PyAny>,
) -> Fallible<Option<Vec<[T; N]>>> {
    let py = value.py();
    let Some(entries) = if_fits(py, value.extract::<Vec<Bound<'_, PyAny>>>())? else { return Ok(None) };
    let mut tuples = Vec::with_capacity(entries.len());
    for entry in &entries {
        let Some(tuple) = entry.cast::<PyTuple>().ok().filter(|tuple| tuple.len() == N) else {
            return Ok(None);
        };
        let mut items = Vec::with_capacity(N);
        for item in tuple.iter() {
            match if_fits(py, item.extract::<T>())? {
                Some(item) => items.push(item),
                None => return Ok(None),
            }
        }
        let Ok(items) = items.try_into() else { return Ok(None) };
        tuples.push(items);
    }
    Ok(Some(tuples))
}

/// Sizes as the user passes them: an int, or a sequence of ints. An entry may be a tensor by mistake.
pub(crate) fn integers(op: &'static str, value: &Bound<'_, PyAny>) -> Fallible<Vec<i64>> {
    if let Some(size) = index(value)? {
        return Ok(vec![size]);
    }
    let refuse = |what: &Bound<'_, PyAny>| -> Fallible<crate::error::Fault> {
        let hint = if what.is_instance_of::<PyTensor>() {
            "; pass a size as an option (a keyword-only parameter) rather than as a tensor"
        } else {
            ""
        };
        Ok(Misuse::BadShape { op, got: describe(what)?, hint }.into())
    };
    if value.is_instance_of::<PyTensor>() || value.is_instance_of::<PyString>() {
        return Err(refuse(value)?);
    }
    let Some(entries) = if_fits(value.py(), value.try_iter())? else {
        return Err(refuse(value)?);
    };
    let mut sizes = Vec::new();
    for entry in entries {
        let entry = entry?;
        match index(&entry)? {
            Some(size) => sizes.push(size),
            None => return Err(refuse(&entry)?),
        }
    }
    Ok(sizes)
}

/// A shape with sizes of at least 0.
pub(crate) fn shape(op: &'static str, value: &Bound<'_, PyAny>) -> Fallible<Shape> {
    let sizes = integers(op, value)?;
    let mut checked = Vec::with_capacity(sizes.len());
    for (axis, size) in sizes.into_iter().enumerate() {
        let size = usize::try_from(size).map_err(|_| ErrorKind::NegativeSize { op, size, axis })?;
        checked.push(size);
    }
    Ok(Shape::new(&checked))
}

/// The error for an invalid argument.
pub(crate) fn bad(
    op: &str,
    what: &str,
    got: &Bound<'_, PyAny>,
    required: &str,
) -> Fallible<crate::error::Fault> {
    let (op, what, required) = (op.to_owned(), what.to_owned(), required.to_owned());
    Ok(Misuse::BadArgument { op, what, got: describe(got)?, required }.into())
}

/// What an option stands for that is one of some names.
pub(crate) fn one_of<T>(
    op: &str,
    option: &str,
    value: &Bound<'_, PyAny>,
    names: &[&str],
    of_name: impl FnOnce(&str) -> Fallible<Option<T>>,
) -> Fallible<T> {
    let name = value.cast::<PyString>().map_or_else(|_| String::new(), |name| name.to_string());
    if let Some(known) = of_name(&name)? {
        return Ok(known);
    }
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    Err(bad(op, option, value, &names.join(" or "))?)
}

/// The `repr` of an object. A very deeply nested object is named by its class instead: Python computes a
/// `repr` by recursion, for which the stack may be too small.
pub(crate) fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if is_deep(value) {
        return Ok(containers::with_article(&value.get_type().name()?.to_string()));
    }
    Ok(value.repr()?.to_string())
}

/// Whether lists, tuples and dicts are nested deeper than a message shows, or hold too many items to inspect.
fn is_deep(value: &Bound<'_, PyAny>) -> bool {
    const LEVELS: usize = 20;
    const ITEMS: usize = 100_000;
    let (mut level, mut count) = (vec![value.clone()], 0);
    for _ in 0..LEVELS {
        let mut next = Vec::new();
        for item in &level {
            if let Ok(list) = item.cast_exact::<PyList>() {
                next.extend(list.iter());
            } else if let Ok(tuple) = item.cast_exact::<PyTuple>() {
                next.extend(tuple.iter());
            } else if let Ok(dict) = item.cast_exact::<PyDict>() {
                next.extend(dict.iter().map(|(_, item)| item));
            }
        }
        count += next.len();
        if next.is_empty() || count > ITEMS {
            return count > ITEMS;
        }
        level = next;
    }
    true
}

/// An object as part of a sentence: a tensor by its type, any other object by its `repr`, on one line and
/// shortened.
pub(crate) fn describe(value: &Bound<'_, PyAny>) -> PyResult<String> {
    const LIMIT: usize = 80;
    if let Ok(tensor) = value.cast::<PyTensor>() {
        return Ok(format!("the tensor {}", defn_core::vectorize::type_text(&tensor.get().tensor)));
    }
    let text = text(value)?;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LIMIT {
        return Ok(line);
    }
    Ok(line.chars().take(LIMIT - 3).chain("...".chars()).collect())
}
