//! Gather and scatter at positions in a tensor.

use defn_core::builder::{Arg, BuildIndex};
use defn_core::{Axes, AxisRef, Shape, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::arrange::several;
use super::{Parse, shared, with};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::tensor::PyTensor;

defn_core::index_functions!(shared);

/// The entries of positions in a shape.
#[pyfunction]
fn unravel_index<'py>(
    py: Python<'py>,
    indices: &Bound<'py, PyAny>,
    shape: &Bound<'py, PyAny>,
) -> Fallible<Bound<'py, PyTuple>> {
    guard(|| {
        let indices = convert::arg("unravel_index", indices)?;
        let shape: Shape = convert::shape("unravel_index", shape)?;
        several(py, &[indices], |ops, indices| ops.unravel_index(&indices[0], &shape))
    })
}

/// The positions in a triangle: those of the rows and those of the columns.
macro_rules! triangles {
    ($($name:ident)*) => {$(
        #[pyfunction]
        #[pyo3(signature = (n, m, offset))]
        fn $name(
            n: &Bound<'_, PyAny>,
            m: Option<&Bound<'_, PyAny>>,
            offset: &Bound<'_, PyAny>,
        ) -> Fallible<(PyTensor, PyTensor)> {
            guard(|| {
                let rows: usize = Parse::parse(stringify!($name), "n", Some(n))?;
                let columns: usize = match m {
                    Some(m) => Parse::parse(stringify!($name), "m", Some(m))?,
                    None => rows,
                };
                let offset: i64 = Parse::parse(stringify!($name), "offset", Some(offset))?;
                let (row, column) = with(|ops| ops.$name(rows, columns, offset))?;
                Ok((PyTensor::new(row), PyTensor::new(column)))
            })
        }
    )*};
}
triangles! { tril_indices triu_indices }

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_shared(module)?;
    module.add_function(wrap_pyfunction!(unravel_index, module)?)?;
    module.add_function(wrap_pyfunction!(tril_indices, module)?)?;
    module.add_function(wrap_pyfunction!(triu_indices, module)?)
}
