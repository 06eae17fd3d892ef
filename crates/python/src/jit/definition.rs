//! The parts of a definition.

use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::function::WrappedFunction;
use super::settings::Settings;
use super::signature::Signature;
use super::statistics::Statistics;
use super::versions::Versions;
use crate::grad::Gradient;

/// What a definition does with its function.
pub(crate) enum Kind {
    /// The definition calls the function.
    Plain,
    /// The definition differentiates the function.
    Gradient(Gradient),
}

impl Kind {
    /// The name of the operation in messages.
    pub(super) fn op(&self) -> &'static str {
        match self {
            Kind::Plain => "defn",
            Kind::Gradient(_) => "grad",
        }
    }

    /// The function that is applied to the value before it is differentiated, if there is one.
    pub(super) fn transform<'a, 'py>(&'a self, py: Python<'py>) -> Option<&'a Bound<'py, PyAny>> {
        match self {
            Kind::Plain => None,
            Kind::Gradient(gradient) => gradient.transform.as_ref().map(|transform| transform.bind(py)),
        }
    }

    pub(super) fn has_transform(&self) -> bool {
        match self {
            Kind::Plain => false,
            Kind::Gradient(gradient) => gradient.transform.is_some(),
        }
    }

    /// What the definition does with its function, as an object that can be compared.
    pub(super) fn described<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Kind::Plain => Ok(py.None().into_bound(py)),
            Kind::Gradient(Gradient { argnums, single, transform, derivative, has_aux }) => {
                let argnums = PyTuple::new(py, argnums)?;
                let transform = transform.as_ref().map(|transform| transform.bind(py));
                let parts = (argnums, *single, format!("{derivative:?}"), *has_aux, transform);
                Ok(parts.into_pyobject(py)?.into_any())
            }
        }
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Kind::Plain => Ok(()),
            Kind::Gradient(gradient) => visit.call(&gradient.transform),
        }
    }
}

/// The fields of a definition.
pub(crate) struct Definition {
    pub(super) function: WrappedFunction,
    pub(super) kind: Kind,
    pub(super) signature: Signature,
    pub(super) settings: Settings,
    pub(super) versions: Versions,
    pub(super) statistics: Statistics,
}

impl Definition {
    /// Whether the key of each call has closed-over values.
    pub(super) fn has_closed_values(&self) -> bool {
        self.function.has_closed_values || self.kind.has_transform()
    }

    /// Shows the garbage collector the objects that the definition holds.
    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.function.traverse(visit)?;
        self.settings.traverse(visit)?;
        self.kind.traverse(visit)?;
        self.versions.traverse(visit)
    }

    /// Drops the versions, through which a definition may refer to itself.
    pub(super) fn clear(&self) {
        self.versions.break_cycles();
    }
}
