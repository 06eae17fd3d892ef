//! Associative scans over containers, whose checks and messages are in `python/defn/_associative.py`.

use defn_core::Tensor;
use defn_core::builder::{self, Builder, Ops};
use pyo3::prelude::*;

use crate::containers::Structure;
use crate::control::{FaultCarrier, controlled, operands, same_structure, tensors};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::jit::{result_tensor, wrap};
use crate::ops;
use crate::tensor::PyTensor;

const OP: &str = "associative_scan";

/// The leaves of the elements, their structure, and for each leaf its axis and its path in the container.
type Elements = (Vec<PyTensor>, Structure, Vec<usize>, Vec<String>);

/// Flattens the elements of a scan.
#[pyfunction]
fn scan_elements(elements: &Bound<'_, PyAny>, axis: &Bound<'_, PyAny>) -> Fallible<Elements> {
    guard(|| {
        let axis = convert::axis(OP, axis)?;
        let (leaves, tree) = tensors(OP, elements)?;
        let axes = leaves.iter().map(|leaf| Ok(leaf.ty().shape.resolve(OP, &axis)?.index()));
        let axes = axes.collect::<Fallible<_>>()?;
        let paths = tree.leaf_paths(elements.py())?;
        let structure = Structure::new(tree, leaves.len());
        Ok((leaves.into_iter().map(PyTensor::new).collect(), structure, axes, paths))
    })
}

/// The leaves of what the function of a scan gives, which has the structure of the elements.
#[pyfunction]
fn scan_results(result: &Bound<'_, PyAny>, structure: &Bound<'_, Structure>) -> Fallible<Vec<PyTensor>> {
    guard(|| {
        let py = result.py();
        let got = operands(OP, result)?;
        let args =
            same_structure(py, OP, "the function's result", got, "the elements", structure.get().tree())?;
        let leaves = args.into_iter().map(|arg| ops::with(|ops| Builder::operand(ops, arg)));
        leaves.map(|leaf| Ok(PyTensor::new(leaf?))).collect()
    })
}

/// Combines the leaves up to each position by a function of two lists of slices.
#[pyfunction]
fn scan_leaves(
    leaves: Vec<PyRef<'_, PyTensor>>,
    axes: Vec<usize>,
    reverse: bool,
    function: &Bound<'_, PyAny>,
) -> Fallible<Vec<PyTensor>> {
    controlled(|| {
        let py = function.py();
        let leaves: Vec<Tensor> = leaves.iter().map(|leaf| leaf.tensor.clone()).collect();
        let bridge = FaultCarrier::default();
        let mut combine = |_: &mut Ops, before: Vec<Tensor>, after: Vec<Tensor>| {
            bridge.run_user_function(|| {
                let (before, after) =
                    (wrap(py, before.into_iter())?.into_vec(), wrap(py, after.into_iter())?.into_vec());
                let results = function.call1((before, after))?.try_iter()?;
                results.map(|result| result_tensor(OP, &result?)).collect()
            })
        };
        let result = builder::associative_scan(&mut ops::builder()?, leaves, &axes, reverse, &mut combine);
        Ok(bridge.into_result(result)?.into_iter().map(PyTensor::new).collect())
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(scan_elements, module)?)?;
    module.add_function(wrap_pyfunction!(scan_results, module)?)?;
    module.add_function(wrap_pyfunction!(scan_leaves, module)?)
}
