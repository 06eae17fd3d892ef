//! The objects of structures other than leaves, and how they are compared.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyComplex, PyComplexMethods, PyDict, PyFloat, PyFrozenSet, PyTuple, PyWeakrefMethods, PyWeakrefReference,
};

/// An auxiliary object of a structure (a static value, a dict key, a class, or data), and how it is compared.
pub(crate) enum AuxObject {
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

impl AuxObject {
    pub(crate) fn object(&self) -> &Py<PyAny> {
        match self {
            AuxObject::Value(object)
            | AuxObject::Identity(object)
            | AuxObject::Function(object)
            | AuxObject::Code(object) => object,
            AuxObject::Weak(reference, _) => reference.as_any(),
        }
    }

    pub(super) fn clone_ref(&self, py: Python<'_>) -> AuxObject {
        match self {
            AuxObject::Value(object) => AuxObject::Value(object.clone_ref(py)),
            AuxObject::Identity(object) => AuxObject::Identity(object.clone_ref(py)),
            AuxObject::Function(object) => AuxObject::Function(object.clone_ref(py)),
            AuxObject::Code(object) => AuxObject::Code(object.clone_ref(py)),
            AuxObject::Weak(reference, class) => AuxObject::Weak(reference.clone_ref(py), class.clone()),
        }
    }

    /// Whether this is a function, whose environment must be compared too.
    pub(crate) fn is_function(&self) -> bool {
        match self {
            AuxObject::Function(_) => true,
            AuxObject::Value(_) | AuxObject::Identity(_) | AuxObject::Code(_) | AuxObject::Weak(..) => false,
        }
    }

    pub(super) fn same(&self, py: Python<'_>, other: &AuxObject) -> PyResult<bool> {
        match (self, other) {
            (AuxObject::Weak(reference, _), AuxObject::Weak(other, _)) => return Ok(reference.is(other)),
            (AuxObject::Weak(reference, _), AuxObject::Value(now) | AuxObject::Identity(now)) => {
                return Ok(reference.bind(py).upgrade().is_some_and(|object| object.is(now)));
            }
            (AuxObject::Code(code), AuxObject::Function(now)) => {
                return Ok(now.bind(py).getattr(intern!(py, "__code__"))?.is(code));
            }
            _ => {}
        }
        let (a, b) = (self.object().bind(py), other.object().bind(py));
        if a.is(b) {
            return Ok(true);
        }
        match (self, other) {
            (AuxObject::Value(_), AuxObject::Value(_)) => {
                if !a.get_type().is(b.get_type()) {
                    return Ok(false);
                }
                // By bits: a NaN equals itself as a constant, and -0.0 differs from 0.0.
                match (bits(a), bits(b)) {
                    (Some(a), Some(b)) => Ok(a == b),
                    _ => Ok(a.eq(b)? && same_types(a, b)?),
                }
            }
            (AuxObject::Function(_), AuxObject::Function(_)) => {
                let code = intern!(py, "__code__");
                Ok(a.getattr(code)?.is(&b.getattr(code)?))
            }
            (
                AuxObject::Value(_)
                | AuxObject::Identity(_)
                | AuxObject::Function(_)
                | AuxObject::Code(_)
                | AuxObject::Weak(..),
                _,
            ) => Ok(false),
        }
    }
}

/// The bits of a float, or of the parts of a complex number.
pub(super) fn bits(value: &Bound<'_, PyAny>) -> Option<(u64, u64)> {
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
        let b_entries = PyDict::new(a.py());
        for entry in b.iter() {
            b_entries.set_item(&entry, &entry)?;
        }
        for entry in a.iter() {
            match b_entries.get_item(&entry)? {
                Some(other) if same_types(&entry, &other)? => {}
                Some(_) | None => return Ok(false),
            }
        }
    }
    Ok(true)
}
