//! The core's lists of names, for tests that compare them with the public functions.

use defn_core::form;
use defn_core::op::{ArgOp, BinaryOp, Op, OpClass, ReduceOp, UnaryOp};
use defn_core::tensor::Data;
use defn_core::verify;
use defn_core::{DType, Shape, TensorType};
use pyo3::prelude::*;

use crate::error::Fallible;
use crate::tensor::PyTensor;

/// The names of the unary element-wise ops.
#[pyfunction]
fn unary_names() -> Vec<&'static str> {
    UnaryOp::ALL.iter().map(|op| op.name()).collect()
}

/// The names of the binary element-wise ops.
#[pyfunction]
fn binary_names() -> Vec<&'static str> {
    BinaryOp::ALL.iter().map(|op| op.name()).collect()
}

/// The names of the reductions.
#[pyfunction]
fn reduce_names() -> Vec<&'static str> {
    ReduceOp::ALL.iter().map(|op| op.name()).chain(ArgOp::ALL.iter().map(|op| op.name())).collect()
}

/// The names of all ops, blocks and composites of the catalogue.
#[pyfunction]
fn op_names() -> Vec<&'static str> {
    form::all_names()
}

/// The blocks of the catalogue: their names, and the names of their attributes.
#[pyfunction]
fn block_attributes() -> Fallible<Vec<(&'static str, Vec<&'static str>)>> {
    let matrix = TensorType::new(DType::F32, Shape::new(&[2, 2]))?;
    let ops = Op::examples(&matrix).into_iter().map(|(op, _)| op);
    let blocks = ops.filter(|op| matches!(op.class(), OpClass::Block(_))).map(|op| {
        let form = form::form(&op);
        (form.name, form.attributes().map(|(name, _)| name).collect())
    });
    Ok(blocks.collect())
}

/// The nodes of a traced tensor's graph by name, and whether the CPU runs each natively instead of by its
/// default graph; for the table of operations.
#[pyfunction]
fn nodes_of(tensor: &PyTensor) -> Vec<(&'static str, bool)> {
    let cpu = defn_cpu::cpu_backend();
    let is_native = |op: &Op| -> bool {
        if let Op::Block(block) = op {
            cpu.has_native(block)
        } else if let Op::Fold(_) | Op::WindowFold(_) = op {
            cpu.has_native_fold(op)
        } else {
            // A user-defined block runs as its default graph.
            form::name(op) != "block"
        }
    };
    match tensor.tensor.data() {
        Data::Traced { trace, .. } => trace.with_graph(|graph| {
            graph.nodes().iter().map(|node| (form::name(&node.op), is_native(&node.op))).collect()
        }),
        Data::Buffer(_) | Data::Template => Vec::new(),
    }
}

/// Sets whether every traced region and the result of every pass are verified, and their text is parsed back;
/// for tests.
#[pyfunction]
fn verify_graphs(on: bool) {
    verify::set_always(on);
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(verify_graphs, module)?)?;
    module.add_function(wrap_pyfunction!(op_names, module)?)?;
    module.add_function(wrap_pyfunction!(block_attributes, module)?)?;
    module.add_function(wrap_pyfunction!(nodes_of, module)?)?;
    module.add_function(wrap_pyfunction!(unary_names, module)?)?;
    module.add_function(wrap_pyfunction!(binary_names, module)?)?;
    module.add_function(wrap_pyfunction!(reduce_names, module)?)
}
