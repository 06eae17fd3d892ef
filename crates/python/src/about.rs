//! Queries on tensor types. None of them reads elements.

use defn_core::AxisRef;
use pyo3::prelude::*;

use crate::containers::{self, Flat, Mode};
use crate::convert;
use crate::dtype;
use crate::error::{Fallible, guard};

/// Whether two values have the same structure, and the same dtype, shape and vectorized axes at each leaf. A
/// missing axis name matches any name.
#[pyfunction]
fn compatible(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> Fallible<bool> {
    guard(|| {
        let op = "compatible";
        let Flat { leaves: left, tree, .. } = containers::flatten(op, Mode::State, a)?;
        let Flat { leaves: right, tree: other, .. } = containers::flatten(op, Mode::State, b)?;
        if left.len() != right.len() || !tree.equals(a.py(), &other)? {
            return Ok(false);
        }
        for (left, right) in left.iter().zip(&right) {
            let (left, right) = (convert::tensor(op, left)?, convert::tensor(op, right)?);
            if !left.ty().is_compatible(right.ty()) || left.vectorized_axes() != right.vectorized_axes() {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// The position of an axis.
#[pyfunction]
fn axis_index(tensor: &Bound<'_, PyAny>, axis: &Bound<'_, PyAny>) -> Fallible<usize> {
    guard(|| {
        let op = "axis_index";
        let axis: AxisRef = convert::axis(op, axis)?;
        Ok(convert::tensor(op, tensor)?.ty().shape.resolve(op, &axis)?.index())
    })
}

/// The size of an axis.
#[pyfunction]
fn axis_size(tensor: &Bound<'_, PyAny>, axis: &Bound<'_, PyAny>) -> Fallible<usize> {
    guard(|| {
        let op = "axis_size";
        let axis: AxisRef = convert::axis(op, axis)?;
        let tensor = convert::tensor(op, tensor)?;
        let shape = &tensor.ty().shape;
        Ok(shape[shape.resolve(op, &axis)?])
    })
}

/// The size of all elements in bits.
#[pyfunction]
fn bit_size(tensor: &Bound<'_, PyAny>) -> Fallible<usize> {
    guard(|| {
        let tensor = convert::tensor("bit_size", tensor)?;
        let ty = tensor.whole();
        Ok(ty.size().saturating_mul(dtype::bits(ty.dtype)))
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(compatible, module)?)?;
    module.add_function(wrap_pyfunction!(axis_index, module)?)?;
    module.add_function(wrap_pyfunction!(axis_size, module)?)?;
    module.add_function(wrap_pyfunction!(bit_size, module)?)
}
