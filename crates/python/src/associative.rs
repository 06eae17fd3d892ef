//! The containers of an associative scan, whose algorithm is in `python/defn/_associative.py`.

use defn_core::builder::Builder;
use pyo3::prelude::*;

use crate::containers::Structure;
use crate::control::{operands, same_structure, tensors};
use crate::convert;
use crate::error::{Fallible, guard};
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

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(scan_elements, module)?)?;
    module.add_function(wrap_pyfunction!(scan_results, module)?)
}
