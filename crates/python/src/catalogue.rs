//! The core's lists of names, for tests that hold them against the public functions.

use defn_core::form;
use defn_core::op::{ArgOp, BinaryOp, ReduceOp, UnaryOp};
use defn_core::verify;
use pyo3::prelude::*;

/// The names of the ops of one tensor, element by element.
#[pyfunction]
fn unary_names() -> Vec<&'static str> {
    UnaryOp::ALL.iter().map(|op| op.name()).collect()
}

/// The names of the ops of two tensors, element by element.
#[pyfunction]
fn binary_names() -> Vec<&'static str> {
    BinaryOp::ALL.iter().map(|op| op.name()).collect()
}

/// The names of the folds.
#[pyfunction]
fn reduce_names() -> Vec<&'static str> {
    ReduceOp::ALL.iter().map(|op| op.name()).chain(ArgOp::ALL.iter().map(|op| op.name())).collect()
}

/// The names of all ops, blocks and composites of the catalogue.
#[pyfunction]
fn op_names() -> Vec<&'static str> {
    form::all_names()
}

/// Whether every traced region and every pass' result is verified, and its text parsed back; for tests.
#[pyfunction]
fn verify_graphs(on: bool) {
    verify::set_always(on);
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(verify_graphs, module)?)?;
    module.add_function(wrap_pyfunction!(op_names, module)?)?;
    module.add_function(wrap_pyfunction!(unary_names, module)?)?;
    module.add_function(wrap_pyfunction!(binary_names, module)?)?;
    module.add_function(wrap_pyfunction!(reduce_names, module)?)
}
