//! Structures that outlive the call for which they were built.

use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyType, PyWeakrefMethods, PyWeakrefReference};

use super::{AuxObject, Tag, Tree};

impl Tree {
    /// The structure of a static value that is compared by identity.
    pub(crate) fn of_object(py: Python<'_>, object: &Py<PyAny>) -> Tree {
        let mut tree = Tree::default();
        tree.node(Tag::Static, 0);
        tree.push_object(AuxObject::Identity(object.clone_ref(py)));
        tree
    }

    /// The structure in a form for keys that outlive the call: objects that are compared by identity are held
    /// by weak references where their class allows it, functions by their code.
    pub(crate) fn into_retained(self, py: Python<'_>) -> PyResult<Tree> {
        let objects =
            self.objects.into_iter().map(|object| object.into_retained(py)).collect::<PyResult<_>>()?;
        Ok(Tree { words: self.words, objects })
    }

    /// Whether an object that is compared by identity no longer exists, so that no call can have this
    /// structure.
    pub(crate) fn is_gone(&self, py: Python<'_>) -> bool {
        self.objects.iter().any(|object| match object {
            AuxObject::Weak(reference, _) => reference.bind(py).upgrade().is_none(),
            AuxObject::Value(_) | AuxObject::Identity(_) | AuxObject::Function(_) | AuxObject::Code(_) => {
                false
            }
        })
    }

    /// Reports the auxiliary objects to the garbage collector.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.objects.iter().try_for_each(|object| visit.call(object.object()))
    }
}

impl AuxObject {
    fn into_retained(self, py: Python<'_>) -> PyResult<AuxObject> {
        let object = match &self {
            AuxObject::Function(function) => {
                return Ok(AuxObject::Code(function.bind(py).getattr(intern!(py, "__code__"))?.unbind()));
            }
            // Classes are held by strong references.
            AuxObject::Identity(object) | AuxObject::Value(object)
                if object.bind(py).is_instance_of::<PyType>() =>
            {
                return Ok(self);
            }
            AuxObject::Identity(object) => object,
            AuxObject::Value(object) if compares_by_identity(object.bind(py))? => object,
            AuxObject::Value(_) | AuxObject::Code(_) | AuxObject::Weak(..) => return Ok(self),
        };
        match PyWeakrefReference::new(object.bind(py)) {
            Ok(reference) => {
                let class = object.bind(py).get_type().name()?.to_string();
                Ok(AuxObject::Weak(reference.unbind(), class.into()))
            }
            Err(_) => Ok(self),
        }
    }
}

/// Whether a value compares by identity, with the `__eq__` of `object`.
fn compares_by_identity(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    let own = value.get_type().getattr(intern!(py, "__eq__"))?;
    Ok(own.is(&py.get_type::<PyAny>().getattr(intern!(py, "__eq__"))?))
}
