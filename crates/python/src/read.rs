//! A tensor's elements as Python numbers and lists.

use defn_core::scalar::Scalar;
use defn_core::vectorize::{self, Level};
use defn_core::{DType, ErrorKind, Number, Tensor};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyList};

use crate::error::Fallible;
use crate::misuse::Misuse;

/// An element as a bool, an int, a float or a complex.
pub(crate) fn number(py: Python<'_>, scalar: Scalar) -> Fallible<Bound<'_, PyAny>> {
    Ok(match scalar.value() {
        Number::Bool(value) => into_python(py, value)?,
        Number::Int(value) => into_python(py, value)?,
        Number::Huge(value) | Number::Float(value) => into_python(py, value)?,
        Number::Complex(value) => PyComplex::from_doubles(py, value.re, value.im).into_any(),
    })
}

fn into_python<'py, T: IntoPyObject<'py>>(py: Python<'py>, value: T) -> PyResult<Bound<'py, PyAny>> {
    value.into_bound_py_any(py)
}

/// Whether an element counts as true: everything but zero, NaN included.
pub(crate) fn is_true(scalar: Scalar) -> bool {
    scalar.value().is_true()
}

/// The element of a tensor with a single element.
pub(crate) fn only_element(op: &'static str, tensor: &Tensor) -> Fallible<Scalar> {
    if tensor.is_vectorized() {
        let axes = vectorize::vectorized_axes_text(tensor.vectorized_axes());
        // The way out differs: a mapped function that removed the axis would no longer be one of a single element.
        if Level::is_inside() {
            let hint = if op == "bool" { MAPPED_BOOL_HINT } else { MAPPED_HINT };
            return Err(Misuse::MappedValue { op, axes, hint }.into());
        }
        return Err(ErrorKind::NotVectorizable { op, what: "the tensor", axes }.into());
    }
    let traced_hint = if op == "index" { INDEX_HINT } else { TRACED_HINT };
    if tensor.ty().size() != 1 {
        let hint = if op == "bool" { "; reduce it with all or any" } else { "" };
        // For a traced tensor, the missing values are reported before the wrong size.
        tensor.require_buffer(op, traced_hint)?;
        return Err(Misuse::NotOneElement { op, got: tensor.ty().clone(), hint }.into());
    }
    tensor.require_buffer(op, traced_hint)?;
    Ok(Scalar::from_bytes(tensor.ty().dtype, tensor.host_bytes(op)?.bytes()))
}

const TRACED_HINT: &str = "return it from the definition and read it there, or pass the value as an option (a keyword-only parameter)";

/// For an int that Python asks for: most often `range` does.
const INDEX_HINT: &str = "loop over it in a function decorated with defn, or with dn.for_ over dn.range, or pass the value as an option (a keyword-only parameter)";

const MAPPED_HINT: &str =
    "compute with the tensor itself, and read numbers from the result of the mapped function";

const MAPPED_BOOL_HINT: &str = "use dn.select to choose element by element, dn.if_ to run one of two branches, or Python's own if in a function that is itself decorated with dn.defn";

/// The only element as a float.
pub(crate) fn to_float(tensor: &Tensor) -> Fallible<f64> {
    let scalar = only_element("float", tensor)?;
    match scalar.value() {
        number @ (Number::Bool(_) | Number::Int(_) | Number::Huge(_) | Number::Float(_)) => {
            Ok(number.to_f64())
        }
        Number::Complex(_) => {
            let required = "real; take real or imag first";
            Err(Misuse::NotThisKind { op: "float", got: tensor.ty().clone(), required }.into())
        }
    }
}

/// The element of a scalar without vectorized axes.
pub(crate) fn to_number<'py>(py: Python<'py>, tensor: &Tensor) -> Fallible<Bound<'py, PyAny>> {
    let op = "to_number";
    tensor.require_buffer(op, TRACED_HINT)?;
    let stored = tensor.whole();
    if stored.shape.rank() > 0 {
        let required = "it must be a scalar that is not vectorized; read more elements with to_list";
        return Err(ErrorKind::Rank { op, got: stored.clone(), required }.into());
    }
    number(py, only_element(op, tensor)?)
}

/// The elements in row-major order, vectorized axes first.
pub(crate) fn to_flat_list<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    limit: Option<usize>,
) -> Fallible<Bound<'py, PyList>> {
    tensor.require_buffer("to_flat_list", TRACED_HINT)?;
    let stored = tensor.whole();
    let count = limit.unwrap_or(usize::MAX).min(stored.size());
    let memory = tensor.host_prefix("to_flat_list", count)?;
    list(py, tensor.ty().dtype, &memory.bytes()[..count * tensor.ty().dtype.storage_bytes()])
}

fn list<'py>(py: Python<'py>, dtype: DType, bytes: &[u8]) -> Fallible<Bound<'py, PyList>> {
    let elements = bytes.chunks_exact(dtype.storage_bytes());
    let items: Vec<Bound<'py, PyAny>> =
        elements.map(|element| number(py, Scalar::from_bytes(dtype, element))).collect::<Fallible<_>>()?;
    Ok(PyList::new(py, items)?)
}

/// The maximum nesting depth of lists.
const DEEPEST: usize = 1000;

/// The elements as nested lists, one level for each axis; vectorized axes come first.
pub(crate) fn to_list<'py>(py: Python<'py>, tensor: &Tensor) -> Fallible<Bound<'py, PyAny>> {
    let ty = tensor.whole();
    tensor.require_buffer("to_list", TRACED_HINT)?;
    if ty.shape.rank() == 0 {
        let required = "it must have at least one axis; read a scalar with item";
        return Err(ErrorKind::Rank { op: "to_list", got: ty.clone(), required }.into());
    }
    if ty.shape.rank() > DEEPEST {
        let required = "it must have at most 1000 axes; reshape it first";
        return Err(ErrorKind::Rank { op: "to_list", got: ty.clone(), required }.into());
    }
    let memory = tensor.host_bytes("to_list")?;
    Ok(nested(py, ty.dtype, ty.shape.sizes(), memory.bytes())?.into_any())
}

fn nested<'py>(py: Python<'py>, dtype: DType, sizes: &[usize], bytes: &[u8]) -> Fallible<Bound<'py, PyList>> {
    match sizes {
        [] | [_] => list(py, dtype, bytes),
        [size, rest @ ..] => {
            let width = if *size == 0 { 0 } else { bytes.len() / size };
            let rows: Vec<Bound<'py, PyList>> = (0..*size)
                .map(|row| nested(py, dtype, rest, &bytes[row * width..(row + 1) * width]))
                .collect::<Fallible<_>>()?;
            Ok(PyList::new(py, rows)?)
        }
    }
}
