//! Structures that outlive the call for which they were built.

use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyType, PyWeakrefMethods, PyWeakrefReference};

use super::{Held, Tag, Tree};

impl Tree {
    /// The structure of a static value that is compared by identity.
    pub(crate) fn of_object(py: Python<'_>, object: &Py<PyAny>) -> Tree {
        let mut tree = Tree::default();
        tree.node(Tag::Static, 0);
        tree.hold(Held::Identity(object.clone_ref(py)));
        tree
    }

    /// The structure in a form for keys that outlive the call: objects that are compared by identity are held
    /// by weak references where their class allows it, functions by their code.
    pub(crate) fn kept(self, py: Python<'_>) -> PyResult<Tree> {
        let held = self.held.into_iter().map(|held| held.kept(py)).collect::<PyResult<_>>()?;
        Ok(Tree { words: self.words, held })
    }

    /// Whether an object that is compared by identity no longer exists, so that no call can have this
    /// structure.
    pub(crate) fn is_gone(&self, py: Python<'_>) -> bool {
        self.held.iter().any(|held| match held {
            Held::Weak(reference, _) => reference.bind(py).upgrade().is_none(),
            Held::Value(_) | Held::Identity(_) | Held::Function(_) | Held::Code(_) => false,
        })
    }

    /// Reports the held objects to the garbage collector.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.held.iter().try_for_each(|held| visit.call(held.object()))
    }
}

impl Held {
    fn kept(self, py: Python<'_>) -> PyResult<Held> {
        let object = match &self {
            Held::Function(function) => {
                return Ok(Held::Code(function.bind(py).getattr(intern!(py, "__code__"))?.unbind()));
            }
            // Classes are held by strong references.
            Held::Identity(object) | Held::Value(object) if object.bind(py).is_instance_of::<PyType>() => {
                return Ok(self);
            }
            Held::Identity(object) => object,
            Held::Value(object) if compares_by_identity(object.bind(py))? => object,
            Held::Value(_) | Held::Code(_) | Held::Weak(..) => return Ok(self),
        };
        match PyWeakrefReference::new(object.bind(py)) {
            Ok(reference) => {
                let class = object.bind(py).get_type().name()?.to_string();
                Ok(Held::Weak(reference.unbind(), class.into()))
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
