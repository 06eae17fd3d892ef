//! Structures that outlive the call that they were made of.

use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyType, PyWeakrefMethods, PyWeakrefReference};

use super::{Held, Tag, Tree};

impl Tree {
    /// The structure of a value that is told apart by identity.
    pub(crate) fn of_object(py: Python<'_>, object: &Py<PyAny>) -> Tree {
        let mut tree = Tree::default();
        tree.node(Tag::Static, 0);
        tree.hold(Held::Identity(object.clone_ref(py)));
        tree
    }

    /// The same structure for a key that outlives the call: objects that are told apart by identity are held
    /// weakly where Python lets them be, functions by their code.
    pub(crate) fn kept(self, py: Python<'_>) -> PyResult<Tree> {
        let held = self.held.into_iter().map(|held| held.kept(py)).collect::<PyResult<_>>()?;
        Ok(Tree { words: self.words, held })
    }

    /// Whether an object is gone that was told apart by identity, so that no call can have this structure.
    pub(crate) fn is_gone(&self, py: Python<'_>) -> bool {
        self.held.iter().any(|held| match held {
            Held::Weak(reference, _) => reference.bind(py).upgrade().is_none(),
            Held::Value(_) | Held::Identity(_) | Held::Function(_) | Held::Code(_) => false,
        })
    }

    /// Shows the garbage collector what is held.
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
            // Classes are kept by those that are known already.
            Held::Identity(object) | Held::Value(object) if object.bind(py).is_instance_of::<PyType>() => {
                return Ok(self);
            }
            Held::Identity(object) => object,
            Held::Value(object) if is_told_by_identity(object.bind(py))? => object,
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

/// Whether a value equals itself alone.
fn is_told_by_identity(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    let own = value.get_type().getattr(intern!(py, "__eq__"))?;
    Ok(own.is(&py.get_type::<PyAny>().getattr(intern!(py, "__eq__"))?))
}
