//! Ready-made rules for splitting.

use defn_core::Name;
use defn_core::stage::{Marks, Rule};
use pyo3::prelude::*;

use crate::convert;
use crate::error::{Fallible, guard};

/// A rule for splitting, in place of a decision function.
#[pyclass(frozen, name = "Rule", module = "defn.graph")]
pub(super) struct PyRule {
    pub rule: Rule,
}

#[pymethods]
impl PyRule {
    fn __repr__(&self) -> String {
        let quoted = |names: &[String]| -> String {
            names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
        };
        match &self.rule {
            Rule::Every(count) => format!("every({count})"),
            Rule::Ops { names, decision } => {
                format!("ops({}, decision={:?})", quoted(names), decision.name())
            }
            Rule::Marks(Marks::All) => "marks()".to_owned(),
            Rule::Marks(Marks::Named(names)) => {
                let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
                format!("marks({})", quoted(&names))
            }
            Rule::Balanced(stages) => format!("balanced({stages})"),
        }
    }
}

/// A number of ops or stages.
fn count(what: &str, value: &Bound<'_, PyAny>) -> Fallible<usize> {
    match convert::index(value)?.map(usize::try_from) {
        Some(Ok(count)) => Ok(count),
        Some(Err(_)) | None => Err(convert::bad("split", what, value, "an int that is at least 1")?),
    }
}

/// Cuts after every `count` ops.
#[pyfunction]
fn graph_every(count: &Bound<'_, PyAny>) -> Fallible<PyRule> {
    guard(|| Ok(PyRule { rule: Rule::Every(self::count("the number of ops in a stage", count)?) }))
}

/// Cuts at the ops with these names.
#[pyfunction]
fn graph_ops(names: Vec<String>, decision: &Bound<'_, PyAny>) -> Fallible<PyRule> {
    guard(|| Ok(PyRule { rule: Rule::Ops { names, decision: super::decision(decision)? } }))
}

/// Cuts after the marks with these names, or after all marks.
#[pyfunction]
fn graph_marks(names: Vec<String>) -> PyRule {
    let named = || Marks::Named(names.iter().map(|name| Name::from(&**name)).collect());
    PyRule { rule: Rule::Marks(if names.is_empty() { Marks::All } else { named() }) }
}

/// Cuts into `stages` stages of nearly equal work.
#[pyfunction]
fn graph_balanced(stages: &Bound<'_, PyAny>) -> Fallible<PyRule> {
    guard(|| Ok(PyRule { rule: Rule::Balanced(count("the number of stages", stages)?) }))
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyRule>()?;
    module.add_function(wrap_pyfunction!(graph_every, module)?)?;
    module.add_function(wrap_pyfunction!(graph_ops, module)?)?;
    module.add_function(wrap_pyfunction!(graph_marks, module)?)?;
    module.add_function(wrap_pyfunction!(graph_balanced, module)?)
}
