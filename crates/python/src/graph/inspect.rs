//! Inspection of graphs: costs, differences, pictures, and text.

use std::sync::Arc;

use defn_core::diff::{Change, Difference, diff};
use defn_core::region::Region;
use defn_core::stage::{self, Stage};
use defn_core::trace::Trace;
use defn_core::{Tensor, cost, print};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::stage::{PyStage, captured};
use super::{stages, whole};
use crate::error::{Fallible, guard};
use crate::jit::wrap;

/// The costs of a graph, by name.
#[pyfunction]
fn graph_cost<'py>(value: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyDict>> {
    guard(|| {
        let cost = cost::cost(&*whole::needed("cost", value)?);
        let named = PyDict::new(value.py());
        named.set_item("flops", cost.flops)?;
        named.set_item("read", cost.read)?;
        named.set_item("written", cost.written)?;
        named.set_item("peak", cost.peak)?;
        named.set_item("work", cost.work())?;
        named.set_item("assumed_loops", cost.assumed_loops)?;
        Ok(named)
    })
}

/// How one graph differs from another.
///
/// It prints as lines: ``-`` for operations that only the first graph has, ``+`` for operations that only the
/// second has. It is true if anything differs.
#[pyclass(frozen, name = "Difference", module = "defn.graph")]
struct PyDifference {
    difference: Difference,
}

#[pymethods]
impl PyDifference {
    /// The number of operations that both graphs have.
    #[getter]
    fn equal(&self) -> usize {
        self.difference.equal
    }

    /// The operations that only the first graph has.
    #[getter]
    fn removed(&self) -> Vec<&str> {
        let nodes = self.difference.nodes.iter().filter_map(|change| match change {
            Change::Removed(line) => Some(&*line.text),
            Change::Added(_) | Change::Changed { .. } => None,
        });
        nodes.collect()
    }

    /// The operations that only the second graph has.
    #[getter]
    fn added(&self) -> Vec<&str> {
        let nodes = self.difference.nodes.iter().filter_map(|change| match change {
            Change::Added(line) => Some(&*line.text),
            Change::Removed(_) | Change::Changed { .. } => None,
        });
        nodes.collect()
    }

    /// The operations that both graphs have in different forms: before and after.
    #[getter]
    fn changed(&self) -> Vec<(&str, &str)> {
        let nodes = self.difference.nodes.iter().filter_map(|change| match change {
            Change::Changed { old, new, .. } => Some((&*old.text, &*new.text)),
            Change::Removed(_) | Change::Added(_) => None,
        });
        nodes.collect()
    }

    fn __bool__(&self) -> bool {
        !self.difference.is_empty()
    }

    fn __str__(&self) -> String {
        self.difference.to_string()
    }

    fn __repr__(&self) -> String {
        if self.difference.is_empty() {
            return format!("<no difference: {} equal operations>", self.difference.equal);
        }
        self.difference.to_string().trim_end().to_owned()
    }
}

#[pyfunction]
fn graph_diff(old: &Bound<'_, PyAny>, new: &Bound<'_, PyAny>) -> Fallible<PyDifference> {
    guard(|| {
        let (old, new) = (whole::needed("diff", old)?, whole::needed("diff", new)?);
        Ok(PyDifference { difference: diff(&old, &new) })
    })
}

/// The stages, if the value is a list of stages instead of a graph.
fn as_stages(value: &Bound<'_, PyAny>) -> Fallible<Option<Vec<Stage>>> {
    let is_list = value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>();
    let is_stages = is_list && value.len()? > 0 && value.get_item(0)?.is_instance_of::<PyStage>();
    Ok(if is_stages { Some(stages(value)?) } else { None })
}

/// A picture of a graph, of a stage, or of stages and the values that pass between them.
fn picture(
    op: &'static str,
    value: &Bound<'_, PyAny>,
    of_region: fn(&Region) -> String,
    of_stages: fn(&[Stage]) -> String,
) -> Fallible<String> {
    match as_stages(value)? {
        Some(stages) => {
            stage::check(op, &stages)?;
            Ok(of_stages(&stages))
        }
        None => Ok(of_region(&*whole::needed(op, value)?)),
    }
}

#[pyfunction]
fn graph_mermaid(value: &Bound<'_, PyAny>) -> Fallible<String> {
    guard(|| picture("mermaid", value, print::mermaid, print::mermaid_of_stages))
}

#[pyfunction]
fn graph_dot(value: &Bound<'_, PyAny>) -> Fallible<String> {
    guard(|| picture("dot", value, print::dot, print::dot_of_stages))
}

/// The IR text of a graph or a stage.
#[pyfunction]
fn graph_to_text(value: &Bound<'_, PyAny>) -> Fallible<String> {
    guard(|| match value.cast::<PyStage>() {
        Ok(stage) => Ok(stage.get().stage.to_text()),
        Err(_) => Ok(whole::needed("to_text", value)?.to_text()),
    })
}

/// The graph of an IR text: a traced tensor for each of its results.
#[pyfunction]
#[pyo3(signature = (text, captures = None))]
fn graph_from_text<'py>(
    py: Python<'py>,
    text: &str,
    captures: Option<&Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyTuple>> {
    guard(|| {
        let region = Arc::new(Region::from_text(text)?);
        let trace = Trace::ended(region.clone(), captured(&region, captures)?);
        let tensor = |&value| Tensor::traced(region.graph().ty(value).clone(), trace.clone(), value);
        Ok(PyTuple::new(py, wrap(py, region.results().iter().map(tensor))?)?)
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDifference>()?;
    module.add_function(wrap_pyfunction!(graph_cost, module)?)?;
    module.add_function(wrap_pyfunction!(graph_diff, module)?)?;
    module.add_function(wrap_pyfunction!(graph_mermaid, module)?)?;
    module.add_function(wrap_pyfunction!(graph_dot, module)?)?;
    module.add_function(wrap_pyfunction!(graph_to_text, module)?)?;
    module.add_function(wrap_pyfunction!(graph_from_text, module)?)
}
