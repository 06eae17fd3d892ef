//! Pickling of tensors.

use defn_core::format::swap_bytes;
use defn_core::tensor::Data;
use defn_core::{DType, Name, Shape, Tensor, TensorType, vectorize};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::backends;
use crate::build;
use crate::error::{Fallible, guard};
use crate::tensor::PyTensor;

/// The function that rebuilds a tensor, and its arguments.
pub(crate) fn reduce<'py>(py: Python<'py>, tensor: &Tensor) -> Fallible<Bound<'py, PyTuple>> {
    let ty = tensor.ty();
    let data = match tensor.data() {
        Data::Template => py.None().into_bound(py),
        Data::Buffer(_) | Data::Traced { .. } => {
            let mut bytes = tensor.host_bytes("pickle")?.bytes().to_vec();
            to_little_endian(ty.dtype, &mut bytes);
            PyBytes::new(py, &bytes).into_any()
        }
    };
    let names: Vec<Option<&str>> = ty.shape.names().map(|name| name.map(|name| &**name)).collect();
    let axes: Vec<(&str, usize)> =
        tensor.vectorized_axes().iter().map(|(name, size)| (&**name, *size)).collect();
    let rebuild = py.import("defn._core")?.getattr("_rebuild")?;
    let sizes = PyTuple::new(py, ty.shape.sizes())?;
    Ok((rebuild, (data, ty.dtype.name(), sizes, names, axes)).into_pyobject(py)?)
}

fn to_little_endian(dtype: DType, bytes: &mut [u8]) {
    if cfg!(target_endian = "big") {
        swap_bytes(dtype, bytes);
    }
}

/// Rebuilds a pickled tensor. Elements are in little-endian order; a template has none.
#[pyfunction]
#[pyo3(name = "_rebuild", signature = (data, dtype, sizes, names, axes = Vec::new()))]
pub(crate) fn rebuild(
    data: Option<&Bound<'_, PyBytes>>,
    dtype: &str,
    sizes: Vec<usize>,
    names: Vec<Option<String>>,
    axes: Vec<(String, usize)>,
) -> Fallible<PyTensor> {
    guard(|| {
        let inner = Shape::new(&sizes).with_names(names.into_iter().map(|name| name.map(Name::from)))?;
        let lanes: Vec<(Name, usize)> =
            axes.into_iter().map(|(name, size)| (Name::from(name), size)).collect();
        let ty = TensorType::new(dtype.parse()?, vectorize::whole_shape(&lanes, &inner))?;
        let Some(data) = data else {
            return Ok(PyTensor::new(Tensor::template(ty).with_vectorized(&lanes)));
        };
        let mut bytes = data.as_bytes().to_vec();
        if bytes.len() != ty.byte_size() {
            return Err(PyValueError::new_err(format!("{} bytes of a pickled {ty}", bytes.len())).into());
        }
        to_little_endian(ty.dtype, &mut bytes);
        Ok(PyTensor::new(build::upload(&backends::default()?, ty, bytes)?.with_vectorized(&lanes)))
    })
}
