//! The elements of NumPy arrays that Python code reads. They are constants of the program.
//!
//! An array that is only an operand of tensor operations is an input of the program and is read at each call. An
//! array of which Python code takes an element, a view or a sum is compared with its recorded elements. So are all
//! arrays of a function in which NumPy computed something.

use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyWeakrefMethods, PyWeakrefReference};

use crate::array;
use crate::error::Fallible;

/// The largest array in bytes whose elements are compared at each call. Comparing it takes about as long as the call
/// itself.
const BYTE_LIMIT: usize = 1 << 16;

/// What was recorded of an array.
pub(super) struct ArrayElements {
    dtype: Py<PyArrayDescr>,
    shape: Vec<usize>,
    elements: ElementRecord,
}

enum ElementRecord {
    Copy(Py<PyBytes>),
    /// The identity of a large array. Its elements are not compared.
    Identity(Py<PyWeakrefReference>),
}

impl ArrayElements {
    /// The elements of an array. None for another object.
    pub(super) fn of(value: &Bound<'_, PyAny>) -> Fallible<Option<ArrayElements>> {
        if !array::is_array(value) {
            return Ok(None);
        }
        let array = value.cast::<PyUntypedArray>().map_err(PyErr::from)?;
        let dtype = array.dtype();
        // The bytes of an array of objects are references, which say nothing about the objects.
        let is_large = dtype.has_object() || dtype.itemsize().saturating_mul(array.len()) > BYTE_LIMIT;
        let elements = if is_large {
            ElementRecord::Identity(PyWeakrefReference::new(value)?.unbind())
        } else {
            ElementRecord::Copy(bytes(value)?.unbind())
        };
        let shape = array.shape().to_vec();
        Ok(Some(ArrayElements { dtype: dtype.unbind(), shape, elements }))
    }

    /// Whether an object is an array with the same elements.
    pub(super) fn are_in(&self, value: &Bound<'_, PyAny>) -> Fallible<bool> {
        let Ok(array) = value.cast::<PyUntypedArray>() else { return Ok(false) };
        let py = value.py();
        Ok(match &self.elements {
            ElementRecord::Identity(recorded) => {
                recorded.bind(py).upgrade().is_some_and(|recorded| recorded.is(value))
            }
            ElementRecord::Copy(recorded) => {
                array.shape() == self.shape
                    && array.dtype().is_equiv_to(self.dtype.bind(py))
                    && bytes(value)?.as_bytes() == recorded.bind(py).as_bytes()
            }
        })
    }

    /// The elements on one line. Of many elements those in the middle are left out.
    pub(super) fn text(&self, py: Python<'_>) -> Fallible<String> {
        let ElementRecord::Copy(recorded) = &self.elements else {
            return Ok(format!("an array of {:?}", self.shape));
        };
        let numpy = py.import("numpy")?;
        let flat = numpy.call_method1(intern!(py, "frombuffer"), (recorded, &self.dtype))?;
        let options = PyDict::new(py);
        options.set_item("threshold", 6)?;
        options.set_item("separator", ", ")?;
        let text = numpy.call_method(intern!(py, "array2string"), (flat,), Some(&options))?;
        Ok(text.extract::<String>()?.replace('\n', ""))
    }
}

/// The bytes of the elements of an array, in the order of its axes.
fn bytes<'py>(array: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyBytes>> {
    Ok(array.call_method0(intern!(array.py(), "tobytes"))?.cast_into::<PyBytes>().map_err(PyErr::from)?)
}
